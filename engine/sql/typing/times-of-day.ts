// Times of day (TIME values). They have no column type of their own but are strings in one canonical form
// (types/time-of-day.ts), so comparing the strings compares the times. This module brings string literals beside a time
// of day into that form, and turns a time of day into a timestamp of 1970-01-01 so that extract() can read its fields.

import { SqlError } from '../../base/errors.js'
import { dataType, isTimeOfDay, textKinds } from '../../types/column-types.js'
import { isText } from '../../types/convert.js'
import { timeOfDayProblem, timeOfDayText, writtenTimeOfDay } from '../../types/time-of-day.js'
import type { Expression } from '../plan/plan.js'
import type { BindContext } from '../scope/bind-context.js'
import { deferredOf, isDeferredParameter } from './deferred-values.js'
import { isConstant, scalarCall } from './make-call.js'
import { castTo, constantOf, isUntypedNull } from './types.js'

export function timeOfDayValue(text: string, position: number): string {
  const time = writtenTimeOfDay(text)
  if (time === null) throw new SqlError(timeOfDayProblem(text), position)
  return time
}

/** The time of day of a timestamp that is stored in a TIME column. `microseconds` count from the epoch. */
export function timeOfDayOfTimestamp(microseconds: bigint): string {
  const microsPerDay = 86_400_000_000n
  return timeOfDayText(((microseconds % microsPerDay) + microsPerDay) % microsPerDay)
}

/** If one argument is a time of day, converts string constants among the others to times of day. */
export function stringsAsTimesOfDay(args: readonly Expression[]): readonly Expression[] {
  return args.some(({ type }) => isTimeOfDay(type)) ? args.map(asTimeOfDay) : args
}

function asTimeOfDay(written: Expression): Expression {
  const { type, position } = written
  if (isTimeOfDay(type) || !isText(type) || !isConstant(written) || isUntypedNull(written)) return written
  const timeType = dataType('STRING', textKinds.time)
  const read = (): string => timeOfDayValue(String(written.value), position)
  return isDeferredParameter(written)
    ? deferredOf(read, timeType, position, written)
    : constantOf(read(), timeType, position)
}

/**
 * Arguments of `extract(field from time)` and date_part(), with a time of day replaced by a timestamp of 1970-01-01.
 */
export function timestampOfTimeOfDay(
  name: string,
  args: readonly Expression[],
  context: BindContext,
): readonly Expression[] {
  const [field, time, ...more] = args
  const takesPart = (name === 'extract' || name === 'date_part') && field !== undefined && more.length === 0
  if (!takesPart || time === undefined || !isTimeOfDay(time.type)) return args
  const day = constantOf('1970-01-01T', dataType('STRING'), time.position)
  const timestamp = scalarCall('concat', [day, time], time.position, context)
  return [
    field,
    scalarCall('case', [isThere(time, context), castTo(timestamp, dataType('TIMESTAMP'))], time.position, context),
  ]
}

function isThere(time: Expression, context: BindContext): Expression {
  return scalarCall('<>', [time, constantOf(null, time.type, time.position)], time.position, context)
}
