// Parts of a timestamp (hour, day, month, ...): neighbouring rows mostly lie in the same hour or day, so the part of the
// last row is kept together with the bounds within which it holds, and those are asked first.

import type { TimestampUnit } from '../../types/timestamp-calendar.js'
import { floorTimestamp, nextBucket } from '../../types/timestamp-floor.js'
import type { Value } from '../../types/value.js'
import { compileExpression } from '../functions/evaluate.js'
import type { Expression, SampleInterval } from '../plan/plan.js'
import type { ExecContext } from './context.js'
import type { VectorEvaluator } from './expression.js'
import { batchRowsMax } from './vector.js'

type Call = Extract<Expression, { kind: 'call' }>

/** The interval over which a part does not change. */
const steadyOver: Record<string, SampleInterval['unit']> = {
  year: 'y',
  quarter: 'M',
  month: 'M',
  days_in_month: 'M',
  day: 'd',
  day_of_week: 'd',
  day_of_week_sunday_first: 'd',
  week_of_year: 'd',
  hour: 'h',
  minute: 'm',
  second: 's',
  // Of extract() and date_part().
  century: 'y',
  decade: 'y',
  millennium: 'y',
  isoyear: 'd',
  isodow: 'd',
  dow: 'd',
  doy: 'd',
  week: 'd',
}

const int32Min = -0x8000_0000
const int64Min = -(2n ** 63n)
/** Doubles are exact to 256 for nanoseconds of this century. */
const roundingTicks = 1024

interface Part {
  readonly unit: SampleInterval['unit']
  readonly time: Expression
  /** The call over a single column that holds the timestamp. */
  readonly call: Call
}

/** undefined: not of that kind. `compile` compiles the timestamp. */
export function compileTimePart(
  call: Call,
  context: ExecContext,
  compile: (expression: Expression) => VectorEvaluator,
): VectorEvaluator | undefined {
  const part = timePart(call)
  if (part === undefined || call.type.name !== 'INT') return undefined
  const timestamps = part.time.type.name
  if (timestamps !== 'TIMESTAMP' && timestamps !== 'TIMESTAMP_NS') return undefined
  const { memory, space } = context
  const source = compile(part.time)
  const partAt = partEvaluator(part, context)
  const address = space.take(batchRowsMax * 4)
  const { u32, i32, i64 } = memory
  return (batch) => {
    const from = source(batch).address
    let [low, high, held] = [1, 0, 0]
    for (let index = 0; index < batch.rows; index++) {
      const word = (from >>> 2) + index * 2
      const ts = (i32[word + 1] as number) * 0x1_0000_0000 + (u32[word] as number)
      if (!(ts >= low && ts < high)) {
        const exact = i64[word >>> 1] as bigint
        held = partAt(exact)
        ;[low, high] = exact === int64Min ? [1, 0] : boundsOf(exact, part.unit, timestamps)
      }
      i32[(address >>> 2) + index] = held
    }
    return { type: call.type, address, dictionary: 0 }
  }
}

function timePart(call: Call): Part | undefined {
  const [first, second] = call.args
  if (first === undefined || call.args.length > 2) return undefined
  const argument = (time: Expression): Expression => ({
    kind: 'column',
    index: 0,
    type: time.type,
    position: call.position,
  })
  if (second === undefined) {
    const unit = steadyOver[call.name]
    return unit && { unit, time: first, call: { ...call, args: [argument(first)] } }
  }
  if (call.name !== 'extract' && call.name !== 'date_part') return undefined
  if (first.kind !== 'constant' || typeof first.value !== 'string') return undefined
  const unit = steadyOver[first.value.toLowerCase()]
  return unit && { unit, time: second, call: { ...call, args: [first, argument(second)] } }
}

function partEvaluator({ call }: Part, context: ExecContext): (ts: bigint) => number {
  const evaluate = compileExpression(call, context.evaluation)
  const row: Value[] = []
  return (ts) => {
    row[0] = ts === int64Min ? null : ts
    const value = evaluate(row)
    return value === null ? int32Min : (value as number)
  }
}

/** Where the value holds, as doubles: a safe distance from both ends is left to the exact way. */
function boundsOf(ts: bigint, unit: SampleInterval['unit'], timestamps: TimestampUnit): [number, number] {
  const interval = { count: 1, unit }
  const start = floorTimestamp(ts, interval, timestamps)
  return [Number(start) + roundingTicks, Number(nextBucket(start, interval, timestamps)) - roundingTicks]
}
