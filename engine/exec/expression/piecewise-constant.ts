// Evaluates functions of a timestamp that are constant within an interval, such as hour(ts) or to_str(ts,
// 'yyyy-MM-dd'). Neighbouring rows mostly fall into the same interval, so the function is called once for each run of
// such rows, and a WebAssembly kernel writes its result to all rows of the run. `constantWithin` in the function's
// definition (engine/sql/functions) tells the interval.

import { int64Max, int64Min } from '../../base/int64.js'
import { compileExpression, scalarOf } from '../../sql/functions/registry/evaluate.js'
import type { Expression } from '../../sql/plan/plan.js'
import { widthOf } from '../../types/column-types.js'
import type { TimestampUnit } from '../../types/timestamp-calendar.js'
import { floorTimestamp, nextBucket, type SampleInterval } from '../../types/timestamp-floor.js'
import type { Value } from '../../types/value.js'
import type { ExecContext } from '../batch/context.js'
import { StringHeap } from '../batch/string-heap.js'
import { batchRowsMax } from '../batch/vector.js'
import { compileVector, type VectorEvaluator } from './expression.js'

type Call = Extract<Expression, { kind: 'call' }>

/** How NULL is stored in a timestamp column. */
const nullTicks = int64Min
const int32Min = -0x8000_0000

export interface PiecewiseConstantCall {
  readonly time: Expression
  readonly unit: TimestampUnit
  /** The result is constant within each bucket of this interval. */
  readonly interval: SampleInterval
  /** The call, rewritten to read a row that has only the timestamp. */
  readonly call: Call
}

/** undefined when the call is not of this kind. */
export function piecewiseConstantCall(call: Call): PiecewiseConstantCall | undefined {
  const constantWithin = scalarOf(call)?.constantWithin
  const at = call.args.findIndex(({ kind }) => kind !== 'constant')
  const time = call.args[at]
  if (constantWithin === undefined || time === undefined) return undefined
  const unit = time.type.name
  if (unit !== 'TIMESTAMP' && unit !== 'TIMESTAMP_NS') return undefined
  if (call.args.some(({ kind }, index) => index !== at && kind !== 'constant')) return undefined
  const interval = constantWithin(
    call.args.map((argument) => (argument.kind === 'constant' ? argument.value : undefined)),
  )
  if (interval === null) return undefined
  const column: Expression = { kind: 'column', index: 0, type: time.type, position: call.position }
  return { time, unit, interval, call: { ...call, args: call.args.with(at, column) } }
}

/** The result for a stored timestamp. */
export function piecewiseConstantEvaluator(
  { call }: PiecewiseConstantCall,
  context: ExecContext,
): (ts: bigint) => Value {
  const evaluate = compileExpression(call, context.evaluation)
  const row: Value[] = []
  return (ts) => {
    row[0] = ts === nullTicks ? null : ts
    return evaluate(row)
  }
}

/** undefined when the call is not of this kind. */
export function compilePiecewiseConstant(call: Call, context: ExecContext): VectorEvaluator | undefined {
  const piecewise = piecewiseConstantCall(call)
  if (piecewise === undefined) return undefined
  const { memory, arena, kernels } = context
  const { type } = call
  const width = widthOf(type) === 4 ? 4 : 8
  const heap = new StringHeap(arena)
  const wordOf = wordWriter(type.name, heap)
  if (wordOf === undefined) return undefined
  const source = compileVector(piecewise.time, context)
  const evaluate = piecewiseConstantEvaluator(piecewise, context)
  const address = arena.take((context.rowsMax ?? batchRowsMax) * width)
  return (batch) => {
    const from = source(batch).address
    heap.reset()
    for (let row = 0; row < batch.rows; ) {
      context.alive()
      const ts = memory.i64[(from >>> 3) + row]!
      const word = wordOf(evaluate(ts))
      const [low, last] = boundsOf(ts, piecewise)
      row = kernels.aggregate.fillWithin(from, row, batch.rows, low, last, width, word, address)
    }
    return { type, address, dictionary: 0 }
  }
}

/** Converts a value to the 64-bit word that a vector stores for it; undefined for types that are not supported. */
function wordWriter(name: string, heap: StringHeap): ((value: Value) => bigint) | undefined {
  switch (name) {
    case 'INT':
      return (value) => BigInt(typeof value === 'number' ? value : int32Min)
    case 'TIMESTAMP':
    case 'TIMESTAMP_NS':
      return (value) => (typeof value === 'bigint' ? value : nullTicks)
    case 'STRING':
    case 'VARCHAR':
      return (value) => {
        if (typeof value !== 'string') return -1n << 32n
        const bytes = Buffer.from(value)
        return (BigInt(bytes.length) << 32n) | BigInt(heap.put(bytes))
      }
    default:
      return undefined
  }
}

/** The first and last timestamp that have the same result as this one. */
function boundsOf(ts: bigint, { interval, unit }: PiecewiseConstantCall): readonly [bigint, bigint] {
  if (ts === nullTicks) return [ts, ts]
  const start = floorTimestamp(ts, interval, unit)
  const [first, last] = [clamped(start), clamped(nextBucket(start, interval, unit) - 1n)]
  return [first < ts ? first : ts, last > ts ? last : ts]
}

/** Limits the value to the range of a column. */
function clamped(ticks: bigint): bigint {
  if (ticks < int64Min) return int64Min
  return ticks > int64Max ? int64Max : ticks
}
