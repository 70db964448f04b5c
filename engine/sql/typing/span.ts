// Arithmetic on INTERVAL values: `interval '1 day'`, columns of intervals, and calls that take or return them. An
// interval is a LONG of microseconds with the kind `span` (types/span.ts). If a literal or parameter is added to a
// timestamp, scope/interval-shift.ts has rewritten it before. Only there may an interval contain months.

import { SqlError } from '../../base/errors.js'
import { type DataType, dataType, isSpan, longKinds } from '../../types/column-types.js'
import { isFraction, isText, isTime } from '../../types/convert.js'
import { parseIntervalValue } from '../../types/interval.js'
import { microsOfSpan, microsOfUnit, monthsProblem, shiftsOf } from '../../types/span.js'
import { microsPerDay } from '../../types/timestamp-calendar.js'
import { partNamed } from '../functions/times.js'
import { intervalArguments } from '../parse/call.js'
import type { Expression } from '../plan/plan.js'
import type { BindContext } from '../scope/bind-context.js'
import { isConstant, scalarCall, textOf } from './make-call.js'
import { castTo, constantOf, convertTo, isUntypedNull, learnType, nullAs } from './types.js'

const spanType = dataType('LONG', longKinds.span)

/** Binds `value::interval`. Null: the cast means the native type INTERVAL, a pair of timestamps. */
export function castToSpan(value: Expression, { dialect }: BindContext): Expression | null {
  if (isSpan(value.type)) return value
  if (isConstant(value) && value.parameter !== undefined) return convertTo(value, spanType)
  if (dialect.intervalValues && isUntypedNull(value)) return nullAs(value, spanType)
  if (!isText(value.type)) return null
  const text = textOf(value)
  if (text === undefined) return dialect.intervalValues ? convertTo(value, spanType) : null
  const isOwn = shiftsOf(text) === null && (!dialect.intervalValues || parseIntervalValue(text) !== null)
  return isOwn ? null : convertTo(value, spanType)
}

/** Type of a parameter beside an interval, by operator. */
const operandTypes: Readonly<Record<string, DataType>> = {
  ...{ '+': spanType, '-': spanType, '*': dataType('DOUBLE'), '/': dataType('DOUBLE') },
}

/** Arithmetic with an interval operand where it differs from that of numbers; null for any other. */
export function spanArithmetic(
  operator: string,
  left: Expression,
  right: Expression,
  position: number,
  context: BindContext,
): Expression | null {
  if (!isSpan(left.type) && !isSpan(right.type)) return null
  for (const side of [left, right]) if (isUntypedNull(side)) learnType(side, operandTypes[operator] ?? side.type)
  if (operator === '+' && isTimestamp(right.type)) return moved(right, left, position, context)
  if (operator === '+' && isTimestamp(left.type)) return moved(left, right, position, context)
  if (operator === '-' && isTimestamp(left.type))
    return moved(left, scalarCall('negate', [right], position, context), position, context)
  const isScaled = operator === '*' || (operator === '/' && isSpan(left.type))
  const factor = isSpan(left.type) ? right : left
  if (!isScaled || !(isFraction(factor.type) || factor.type.name === 'DECIMAL')) return null
  const sides = [left, right].map((side) => convertTo(side, dataType('DOUBLE')))
  return castTo(scalarCall(operator, sides, position, context), spanType)
}

/**
 * The difference of two timestamps: an interval for clients of PostgreSQL, a number in the native dialect. Null if the
 * operands are not timestamps.
 */
export function timestampDifference(
  left: Expression,
  right: Expression,
  position: number,
  context: BindContext,
): Expression | null {
  if (!context.dialect.intervalValues || !isTimestamp(left.type) || !isTimestamp(right.type)) return null
  if (!isTime(left.type) && !isTime(right.type)) return null
  if (isUntypedNull(left) || isUntypedNull(right)) return null
  const sides = [left, right].map((side) => castTo(castTo(side, dataType('TIMESTAMP')), dataType('LONG')))
  return { ...scalarCall('-', sides, position, context), type: spanType }
}

function isTimestamp(type: DataType): boolean {
  return isTime(type) || type.name === 'DATE'
}

/** Adds an interval to a timestamp in its unit; a DATE becomes a TIMESTAMP. */
function moved(time: Expression, span: Expression, position: number, context: BindContext): Expression {
  const nanos = constantOf(1000n, dataType('LONG'), position)
  const ticks = time.type.name === 'TIMESTAMP_NS' ? scalarCall('*', [span, nanos], position, context) : span
  const start = time.type.name === 'DATE' ? convertTo(time, dataType('TIMESTAMP')) : time
  return scalarCall('+', [start, ticks], position, context)
}

/** Calls with an interval argument that are not calls of number functions; null for any other. */
export function spanCall(
  name: string,
  args: readonly Expression[],
  position: number,
  context: BindContext,
): Expression | null {
  if (!args.some(({ type }) => isSpan(type))) return null
  if (name === 'extract' || name === 'date_part') return partOfSpan(args, position, context)
  if (name === 'date_trunc') return cutToUnit(args, position, context)
  if (name === 'overlaps') return scalarCall(name, withEnds(args, position, context), position, context)
  return name === 'dateadd' ? lengthened(args, position, context) : null
}

/** `(a, span) overlaps (c, d)`: the end of the period is `a + span`. */
function withEnds(args: readonly Expression[], position: number, context: BindContext): Expression[] {
  return args.map((end, index) => {
    const start = args[index - 1]
    return index % 2 === 1 && start !== undefined && isSpan(end.type) ? moved(start, end, position, context) : end
  })
}

/** `date_trunc('hour', span)`: truncates to whole units. */
function cutToUnit([unit, span]: readonly Expression[], position: number, context: BindContext): Expression | null {
  const micros = microsOfText(unit === undefined ? undefined : textOf(unit))
  if (micros === null || span === undefined || !isSpan(span.type)) return null
  const one = constantOf(micros, dataType('LONG'), position)
  const whole = scalarCall('/', [span, one], position, context)
  return { ...scalarCall('*', [whole, one], position, context), type: spanType }
}

/** Microseconds in one unit; null if the unit has no fixed length or is unknown. */
function microsOfText(unit: string | undefined): bigint | null {
  return unit === undefined ? null : microsOfSpan(`1 ${unit}`)
}

/** `make_interval(days => 1, hours => 2)` that is not added to a timestamp: the sum of its parts. */
export function spanOfParts(args: readonly Expression[], position: number, context: BindContext): Expression {
  const double = dataType('DOUBLE')
  const parts = args.flatMap((count, place): Expression[] => {
    if (isConstant(count) && Number(count.value) === 0 && count.value !== null) return []
    const micros = microsOfText(intervalArguments[place])
    if (micros === null) throw new SqlError(monthsProblem, position)
    const one = constantOf(Number(micros), double, position)
    return [scalarCall('*', [convertTo(count, double), one], position, context)]
  })
  const none = constantOf(0, double, position)
  const total = parts.reduce((sum, part) => scalarCall('+', [sum, part], position, context), none)
  return castTo(scalarCall('round', [total], position, context), spanType)
}

/** `dateadd('d', 2, span)`, the form into which `span + interval '2 days'` was rewritten. */
function lengthened(
  [unit, count, span]: readonly Expression[],
  position: number,
  context: BindContext,
): Expression | null {
  if (unit === undefined || count === undefined || span === undefined || !isSpan(span.type)) return null
  const micros = microsOfUnit(textOf(unit) ?? '')
  if (micros === undefined) throw new SqlError(monthsProblem, position)
  const one = constantOf(micros, dataType('LONG'), position)
  return scalarCall('+', [span, scalarCall('*', [count, one], position, context)], position, context)
}

/**
 * `extract(epoch from span)` and `extract(day from span)`. Null for other fields: they are read from the interval as if
 * it were a timestamp.
 */
function partOfSpan([part, span]: readonly Expression[], position: number, context: BindContext): Expression | null {
  if (part === undefined || span === undefined || !isSpan(span.type)) return null
  const divided = (type: 'DOUBLE' | 'LONG', by: number | bigint): Expression =>
    scalarCall('/', [castTo(span, dataType(type)), constantOf(by, dataType(type), position)], position, context)
  switch (partNamed(textOf(part) ?? '')) {
    case 'epoch':
      return divided('DOUBLE', 1e6)
    case 'day':
      return divided('LONG', BigInt(microsPerDay))
    default:
      return null
  }
}

/** Result type of an aggregate: the sum of intervals is an interval. */
export function sumType(name: string, [first]: readonly Expression[], type: DataType): DataType {
  return /^sum(_distinct)?$/.test(name) && first !== undefined && isSpan(first.type) ? spanType : type
}

/** Casts the average of intervals, and their sum over a window, back to an interval. */
export function totalOfSpans(name: string, [first]: readonly Expression[], total: Expression): Expression {
  const isTotal = total.type.name === 'DOUBLE' && /^(avg|sum)(_distinct)?$/.test(name)
  return isTotal && first !== undefined && isSpan(first.type) ? castTo(total, spanType) : total
}
