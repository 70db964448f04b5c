// Defines generate_series() as a set-returning function for bounds that are columns: the number of values, and the n-th
// value as an expression. Values are integers, or timestamps with a SAMPLE BY interval as step (`6h`, `1M`). If all
// arguments are constants, scope/row-functions.ts binds the function instead.

import { type DataType, dataType } from '../../types/column-types.js'
import { isNumber, isTime } from '../../types/convert.js'
import type { TimestampUnit } from '../../types/timestamp-calendar.js'
import { parseSampleInterval, ticksPerUnit } from '../../types/timestamp-floor.js'
import type { Expression } from '../plan/plan.js'
import { isConstant, scalarCall, textOf } from '../typing/make-call.js'
import { noMatch } from '../typing/mismatch.js'
import { constantOf, convertTo } from '../typing/types.js'
import type { RowReplication, SetReturningFunction } from './set-returning.js'

const intType = dataType('INT')
const longType = dataType('LONG')
const name = 'generate_series'

type Operation = (operator: string, ...args: readonly Expression[]) => Expression

export const series: SetReturningFunction = (args, call, context) => {
  const compute: Operation = (operator, ...operands) => scalarCall(operator, operands, call.position, context)
  const [from, to, step] = args
  if (from === undefined || to === undefined || args.length > 3) throw noMatch(call.name, args, call.position)
  const made =
    isTimestamp(from.type) || isTimestamp(to.type) ? ofTimes(from, to, step, compute) : ofNumbers(args, compute)
  if (made === null) throw noMatch(call.name, args, call.position)
  return made
}

function isTimestamp(type: DataType): boolean {
  return isTime(type) || type.name === 'DATE'
}

const long = (value: bigint): Expression => constantOf(value, longType, 0)

/** The number of values; no rows if the bounds contradict the step. */
function countOf(
  [from, to]: readonly [Expression, Expression],
  distance: Expression,
  step: bigint,
  compute: Operation,
): Expression {
  const count = compute('+', compute('/', distance, long(step)), long(1n))
  const isEmpty = compute(step > 0n ? '<' : '>', to, from)
  return convertTo(compute('case', isEmpty, long(0n), count), intType)
}

/** (number of the copy - 1) * step */
function offsetOf(place: Expression, step: bigint, compute: Operation): Expression {
  return compute('*', compute('-', place, long(1n)), long(step))
}

function ofNumbers(args: readonly Expression[], compute: Operation): RowReplication | null {
  const [from, to, step = long(1n)] = args.map((argument) =>
    isNumber(argument.type) ? convertTo(argument, longType) : argument,
  )
  if (from?.type.name !== 'LONG' || to?.type.name !== 'LONG' || !isConstant(step)) return null
  const { value: by } = step
  if (typeof by !== 'bigint' || by === 0n) return null
  return {
    count: countOf([from, to], compute('-', to, from), by, compute),
    columns: [{ name, value: (place) => compute('+', from, offsetOf(place, by, compute)) }],
  }
}

function ofTimes(
  from: Expression,
  to: Expression,
  step: Expression | undefined,
  compute: Operation,
): RowReplication | null {
  const text = step === undefined ? undefined : textOf(step)
  const interval = text === undefined ? null : parseSampleInterval(text.replace(/^-/, ''))
  if (text === undefined || interval === null) return null
  const type = isTime(from.type) ? from.type : isTime(to.type) ? to.type : dataType('TIMESTAMP')
  const [first, last] = [convertTo(from, type), convertTo(to, type)]
  const count = BigInt(interval.count) * (text.startsWith('-') ? -1n : 1n)
  const ticks = ticksPerUnit(interval.unit, type.name as TimestampUnit)
  if (ticks === null) return ofCalendar(first, last, interval.unit, count, compute)
  const distance = compute('-', convertTo(last, longType), convertTo(first, longType))
  return {
    count: countOf([first, last], distance, ticks * count, compute),
    columns: [{ name, value: (place) => compute('+', first, offsetOf(place, ticks * count, compute)) }],
  }
}

/** Months and years. */
function ofCalendar(
  from: Expression,
  to: Expression,
  character: string,
  count: bigint,
  compute: Operation,
): RowReplication {
  const unit = constantOf(character, dataType('CHAR'), 0)
  const units = compute('datediff', unit, from, to)
  const distance = compute('case', compute('<', to, from), compute('negate', units), units)
  return {
    count: countOf([from, to], distance, count, compute),
    columns: [
      { name, value: (place) => compute('dateadd', unit, convertTo(offsetOf(place, count, compute), intType), from) },
    ],
  }
}
