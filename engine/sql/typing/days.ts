// DATE values as whole days, as clients of PostgreSQL expect them (Dialect.dateIsDay): `ts::date` has no time of day,
// and `date + 3` adds days. A DATE of the native dialect (that of HTTP clients) is a timestamp in milliseconds. Both
// are stored in milliseconds; the type's `kind` tells them apart.

import { type DataType, dataType, dateKinds, isDay } from '../../types/column-types.js'
import { isTime } from '../../types/convert.js'
import { midnightOf } from '../../types/timestamp-calendar.js'
import type { Value } from '../../types/value.js'
import type { TypeName } from '../ast/ast.js'
import type { Expression } from '../plan/plan.js'
import type { BindContext } from '../scope/bind-context.js'
import { scalarCall } from './make-call.js'
import { castTo, constantOf, convertTo } from './types.js'

const dayMillis = 86_400_000n
export const dayType = dataType('DATE', dateKinds.day)

/** Whether a cast to this type name yields a whole day. */
export function isDayTypeName({ name, dimensions }: TypeName, { dialect }: BindContext): boolean {
  return dialect.dateIsDay && name === 'date' && dimensions === 0
}

/** Midnight of a DATE in milliseconds, or NULL. */
export function truncateToDay(millis: Value): Value {
  return typeof millis === 'bigint' ? midnightOf(millis) : millis
}

/** The day of a DATE or timestamp that is stored in a column declared as a day. */
export function storedDay(value: Expression): Expression {
  const time = isTime(value.type) ? value : castTo(value, dataType('TIMESTAMP'))
  return { kind: 'call', name: 'date', args: [time], type: dayType, position: value.position }
}

/** The day of an expression that is not constant. */
export function dayOf(value: Expression, context: BindContext): Expression {
  const { position } = value
  const time = isTime(value.type) ? value : castTo(castTo(value, dataType('DATE')), dataType('TIMESTAMP'))
  const unit = constantOf('day', dataType('STRING'), position)
  return { ...castTo(scalarCall('date_trunc', [unit, time], position, context), dataType('DATE')), type: dayType }
}

const whole: ReadonlySet<DataType['name']> = new Set(['BYTE', 'SHORT', 'INT', 'LONG'])

/**
 * Day arithmetic: `day + 3`, `3 + day`, `day - 3`, and `day - day`, where one side may be a DATE with a time of day.
 * Null for any other operands.
 */
export function dayArithmetic(
  operator: string,
  left: Expression,
  right: Expression,
  position: number,
  context: BindContext,
): Expression | null {
  if (operator !== '+' && operator !== '-') return null
  const areDates = left.type.name === 'DATE' && right.type.name === 'DATE'
  if (operator === '-' && areDates && (isDay(left.type) || isDay(right.type)))
    return daysBetween(left, right, position, context)
  if (isDay(left.type) && whole.has(right.type.name)) return moved(left, right, operator, position, context)
  return operator === '+' && whole.has(left.type.name) && isDay(right.type)
    ? moved(right, left, operator, position, context)
    : null
}

function daysBetween(left: Expression, right: Expression, position: number, context: BindContext): Expression {
  const [from, to] = [right, left].map((day) => convertTo(day, dataType('LONG'))) as [Expression, Expression]
  const millis = scalarCall('-', [to, from], position, context)
  const days = scalarCall('/', [millis, constantOf(dayMillis, dataType('LONG'), position)], position, context)
  return castTo(days, dataType('INT'))
}

function moved(
  day: Expression,
  count: Expression,
  operator: string,
  position: number,
  context: BindContext,
): Expression {
  const days = convertTo(count, dataType('LONG'))
  const millis = scalarCall('*', [days, constantOf(dayMillis, dataType('LONG'), position)], position, context)
  return { ...scalarCall(operator, [day, millis], position, context), type: dayType }
}
