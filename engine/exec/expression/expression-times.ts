// Parts of a timestamp (hour, day, month, ...) and texts of it: neighbouring rows mostly lie in the same hour or day, so the
// part of the last row is kept together with the bounds within which it holds, and those are asked first.

import { compileExpression } from '../../sql/functions/registry/evaluate.js'
import type { Expression, SampleInterval } from '../../sql/plan/plan.js'
import type { TimestampUnit } from '../../types/timestamp-calendar.js'
import { floorTimestamp, nextBucket } from '../../types/timestamp-floor.js'
import { steadyUnit } from '../../types/timestamp-pattern.js'
import type { Value } from '../../types/value.js'
import type { ExecContext } from '../batch/context.js'
import { nullTicks, steadyBounds } from '../batch/steady-bounds.js'
import { TextHeap } from '../batch/text-heap.js'
import { batchRowsMax } from '../batch/vector.js'
import type { VectorEvaluator } from './expression.js'

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

export interface TimePart {
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
  const { memory, space, kernels } = context
  const source = compile(part.time)
  const partAt = partEvaluator(part, context)
  const address = space.take(batchRowsMax * 4)
  return (batch) => {
    const from = source(batch).address
    for (let row = 0; row < batch.rows; ) {
      const ts = memory.i64[(from >>> 3) + row]!
      const held = partAt(ts)
      const [low, last] = boundsOf(ts, part.unit, timestamps)
      row = kernels.aggregate.fillWithin(from, row, batch.rows, low, last, 4, BigInt(held), address)
    }
    return { type: call.type, address, dictionary: 0 }
  }
}

/** undefined: the call asks for no part of a timestamp. */
export function timePart(call: Call): TimePart | undefined {
  const [first, second] = call.args
  if (first === undefined || call.args.length > 2) return undefined
  if (second === undefined) {
    const unit = steadyOver[call.name]
    return unit && { unit, time: first, call: { ...call, args: [argumentOf(call, first)] } }
  }
  if (call.name !== 'extract' && call.name !== 'date_part') return undefined
  if (first.kind !== 'constant' || typeof first.value !== 'string') return undefined
  const unit = steadyOver[first.value.toLowerCase()]
  return unit && { unit, time: second, call: { ...call, args: [first, argumentOf(call, second)] } }
}

/** A single column that holds the timestamp. */
function argumentOf({ position }: Call, { type }: Expression): Expression {
  return { kind: 'column', index: 0, type, position }
}

/** The part that holds a timestamp, int32Min for none. */
export function partEvaluator({ call }: TimePart, context: ExecContext): (ts: bigint) => number {
  const evaluate = compileExpression(call, context.evaluation)
  const row: Value[] = []
  return (ts) => {
    row[0] = ts === nullTicks ? null : ts
    const value = evaluate(row)
    return value === null ? int32Min : (value as number)
  }
}

function boundsOf(ts: bigint, unit: SampleInterval['unit'], timestamps: TimestampUnit): readonly [bigint, bigint] {
  if (ts === nullTicks) return [ts, ts]
  const interval = { count: 1, unit }
  const start = floorTimestamp(ts, interval, timestamps)
  return steadyBounds(ts, start, nextBucket(start, interval, timestamps))
}

/** to_str with a constant pattern: rows share the text's bytes. undefined: not of that kind. */
export function compileTimeText(
  call: Call,
  context: ExecContext,
  compile: (expression: Expression) => VectorEvaluator,
): VectorEvaluator | undefined {
  const [time, pattern] = call.args
  const timestamps = time?.type.name
  if (call.name !== 'to_str' || pattern?.kind !== 'constant' || typeof pattern.value !== 'string') return undefined
  if (time === undefined || (timestamps !== 'TIMESTAMP' && timestamps !== 'TIMESTAMP_NS')) return undefined
  const unit = steadyUnit(pattern.value)
  if (unit === undefined) return undefined
  const { memory, space, kernels } = context
  const source = compile(time)
  const evaluate = compileExpression({ ...call, args: [argumentOf(call, time), pattern] }, context.evaluation)
  const heap = new TextHeap(space)
  const address = space.take(batchRowsMax * 8)
  const row: Value[] = []
  return (batch) => {
    const from = source(batch).address
    heap.reset()
    for (let at = 0; at < batch.rows; ) {
      context.alive()
      const ts = memory.i64[(from >>> 3) + at]!
      row[0] = ts === nullTicks ? null : ts
      const entry = entryOf(heap, evaluate(row))
      const [low, last] = boundsOf(ts, unit, timestamps)
      at = kernels.aggregate.fillWithin(from, at, batch.rows, low, last, 8, entry, address)
    }
    return { type: call.type, address, dictionary: 0 }
  }
}

/** {address u32, bytes i32} as one word. */
function entryOf(heap: TextHeap, text: Value): bigint {
  if (typeof text !== 'string') return -1n << 32n
  const bytes = Buffer.from(text)
  return (BigInt(bytes.length) << 32n) | BigInt(heap.put(bytes))
}
