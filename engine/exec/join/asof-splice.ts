// Operator: SPLICE JOIN, an ASOF JOIN in both directions. Returns the rows of both inputs in time order, each with the
// latest row of the other input at or before its timestamp. At equal timestamps left rows come first, and a right row
// that has been joined with a left row of the same timestamp is not returned a second time. Both inputs are buffered.

import { assert } from '../../base/assert.js'
import { spliceStateBytes } from '../../kernels/join.js'
import type { Plan } from '../../sql/plan/plan.js'
import type { DataType } from '../../types/column-types.js'
import type { ExecContext } from '../batch/context.js'
import { RowBuffer } from '../batch/row-buffer.js'
import { rowsFor } from '../batch/small-batches.js'
import { batchRowsMax, isBatch, type Operator, type Vector } from '../batch/vector.js'
import { inTimeOrder, LastRows, timeReader, timeScales } from './asof-times.js'
import { operatorOf, type Steps } from './join-build.js'
import { codeType, JoinKeys } from './join-keys.js'
import { nullVectors, SideGather } from './join-pairs.js'

type JoinPlan = Extract<Plan, { kind: 'join' }>

interface Side {
  readonly input: Operator
  readonly types: readonly DataType[]
  readonly keys: readonly number[]
  readonly timestamp: number
  readonly scaled: boolean
}

export function spliceJoin(context: ExecContext, left: Operator, right: Operator, plan: JoinPlan): Operator {
  assert(plan.residual === null, 'the binder takes equal keys alone')
  const scales = timeScales(plan)
  const side = (input: Operator, source: Plan, keys: readonly number[], timestamp: number, scaled: boolean): Side => ({
    input: inTimeOrder(context, input, source, timestamp),
    types: source.columns.map(({ type }) => type),
    keys,
    timestamp,
    scaled,
  })
  return operatorOf(
    spliced(
      context,
      side(left, plan.left, plan.leftKeys, plan.leftTimestamp, scales.left),
      side(right, plan.right, plan.rightKeys, plan.rightTimestamp, scales.right),
    ),
  )
}

function* spliced(context: ExecContext, left: Side, right: Side): Steps {
  const { arena, memory, kernels } = context
  const keys = new JoinKeys(context, keyTypes(left), keyTypes(right))
  const rows = { left: yield* readSide(context, left, keys), right: yield* readSide(context, right, keys) }
  const state = arena.keep(spliceStateBytes)
  memory.u8.fill(0, state, state + spliceStateBytes)
  const tables = [new LastRows(context), new LastRows(context)] as const
  for (const table of tables) table.reserve(keys.size)
  describeSide(context, state, rows.left, left)
  describeSide(context, state + 16, rows.right, right)
  memory.u32[(state >>> 2) + 8] = tables[0].address
  memory.u32[(state >>> 2) + 9] = tables[1].address
  const indexes = { left: arena.take(batchRowsMax * 4), right: arena.take(batchRowsMax * 4) }
  const gathers = { left: new SideGather(context, left.types), right: new SideGather(context, right.types) }
  const vectors = { left: columnsOf(context, rows.left, left), right: columnsOf(context, rows.right, right) }
  const rowsMax = rowsFor(left.types.length + right.types.length)
  for (;;) {
    const count = kernels.join.splice(state, indexes.left, indexes.right, rowsMax)
    if (count === 0) return
    const own = gathers.left.gather({ vectors: vectors.left, index: indexes.left, mayLack: true }, count, null)
    const other = gathers.right.gather({ vectors: vectors.right, index: indexes.right, mayLack: true }, count, null)
    yield { rows: count, vectors: [...own, ...other] }
  }
}

function keyTypes({ keys, types }: Side): DataType[] {
  return keys.map((index) => types[index] as DataType)
}

/** Buffers an input. Two columns are appended: the timestamps in the common unit, and the codes of the keys. */
function* readSide(
  context: ExecContext,
  { input, types, keys: keyColumns, timestamp, scaled }: Side,
  keys: JoinKeys,
): Generator<'working' | 'waiting', RowBuffer, undefined> {
  const store = new RowBuffer(context, [...types, { name: 'TIMESTAMP', a: 0, b: 0 }, codeType])
  const codes = context.arena.take(batchRowsMax * 4)
  const times = timeReader(context, scaled)
  for (;;) {
    const batch = input.pull()
    if (batch === null) return store
    if (isBatch(batch)) {
      const { rows, vectors } = batch
      keys.number(
        keyColumns.map((index) => vectors[index] as Vector),
        rows,
        codes,
      )
      const ts = vectors[timestamp] as Vector
      const added = [
        { ...ts, address: times(ts, rows) },
        { type: codeType, address: codes, dictionary: 0 },
      ]
      store.append({ rows, vectors: [...vectors.slice(0, types.length), ...added] })
    }
    yield batch === 'waiting' ? batch : 'working'
  }
}

function describeSide({ memory }: ExecContext, words: number, store: RowBuffer, { types }: Side): void {
  const first = words >>> 2
  memory.u32[first] = store.column(types.length).address
  memory.u32[first + 1] = store.column(types.length + 1).address
  memory.u32[first + 2] = store.rows
  memory.u32[first + 3] = 0
}

function columnsOf(context: ExecContext, store: RowBuffer, { types }: Side): Vector[] {
  return store.rows === 0 ? nullVectors(context, types) : store.columns(types.length)
}
