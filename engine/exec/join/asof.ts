// Operator: ASOF JOIN and LT JOIN. It merges both inputs in time order: for each left batch, it reads the right input
// up to the batch's timestamps, and records the latest right row of each key in a table. Left columns are returned as
// they are; right columns are gathered by row number.
//
// Buffered right rows that are neither in the table nor matches of the current batch are dropped from time to time. So
// the memory of the join depends on the number of keys and not on the number of right rows. Joins with further
// conditions, and those that look into the future, are in asof-search.ts.

import { asofStateBytes } from '../../kernels/join.js'
import type { Plan } from '../../sql/plan/plan.js'
import type { ExecContext } from '../batch/context.js'
import { RowBuffer } from '../batch/row-buffer.js'
import { type Batch, batchRowsMax, isBatch, type Operator, type Vector } from '../batch/vector.js'
import { searched } from './asof-search.js'
import { inTimeOrder, keepReferred, LastRows, type TimeScales, timeReader, timeScales } from './asof-times.js'
import { trimmedSide } from './asof-trimmed.js'
import { operatorOf, type Steps } from './join-build.js'
import { JoinKeys } from './join-keys.js'
import { nullVectors, SideGather } from './join-pairs.js'

type JoinPlan = Extract<Plan, { kind: 'join' }>

/** Rows buffered in addition to twice the referenced ones before they are pruned. */
const pruneRowsMin = 262_144
/** The same where the buffered rows take more than this fraction of the free memory of queries. */
const pruneRowsLeast = 16_384
const pruneShare = 1 / 8

export function asofJoin(context: ExecContext, left: Operator, right: Operator, plan: JoinPlan): Operator {
  const ordered = {
    left: inTimeOrder(context, left, plan.left, plan.leftTimestamp),
    right: inTimeOrder(context, right, plan.right, plan.rightTimestamp),
  }
  const searches = plan.residual !== null || plan.direction !== undefined
  return operatorOf(searches ? searched(context, ordered, plan) : merged(context, ordered, plan))
}

function* merged(context: ExecContext, { left, right }: { left: Operator; right: Operator }, plan: JoinPlan): Steps {
  const scales = timeScales(plan)
  const keys = new JoinKeys(
    context,
    plan.leftKeys.map((index) => plan.left.columns[index]?.type as Vector['type']),
    plan.rightKeys.map((index) => plan.right.columns[index]?.type as Vector['type']),
  )
  const merge = new AsofMerge(context, plan, keys, scales)
  let side: Operator | null = null
  for (;;) {
    const batch = left.pull()
    if (batch === null) return
    if (!isBatch(batch)) {
      yield batch
      continue
    }
    side ??= trimmedSide(context, plan, scales, batch, right) ?? right
    merge.begin(batch)
    while (!merge.advance()) {
      const more = side.pull()
      if (more === null) merge.complete()
      else if (isBatch(more)) merge.add(more)
      yield more === 'waiting' ? more : 'working'
    }
    yield merge.result(batch)
  }
}

// Word indexes in the ASOF structure of the kernel.
const [leftWord, rightWord, lastWord, firstWord, strictWord, completeWord, outWord] = [0, 4, 8, 9, 10, 11, 14] as const

class AsofMerge {
  readonly #context: ExecContext
  readonly #plan: JoinPlan
  readonly #keys: JoinKeys
  readonly #state: number
  readonly #leftCodes: number
  readonly #rightCodes: number
  readonly #out: number
  readonly #last: LastRows
  readonly #store: RowBuffer
  readonly #gather: SideGather
  readonly #types: readonly Vector['type'][]
  readonly #leftTimes: (vector: Vector, rows: number) => number
  readonly #rightTimes: (vector: Vector, rows: number) => number
  /** At so many rows; twice the rows left by the last time, and pruneRowsMin. */
  #pruneAt = pruneRowsMin

  constructor(context: ExecContext, plan: JoinPlan, keys: JoinKeys, scales: TimeScales) {
    const { arena, memory } = context
    this.#context = context
    this.#plan = plan
    this.#keys = keys
    this.#types = plan.right.columns.map(({ type }) => type)
    this.#leftCodes = arena.take(batchRowsMax * 4)
    this.#rightCodes = arena.take(batchRowsMax * 4)
    this.#out = arena.take(batchRowsMax * 4)
    this.#last = new LastRows(context)
    // The last column holds the right timestamps in the common unit.
    this.#store = new RowBuffer(context, [...this.#types, { name: 'TIMESTAMP', a: 0, b: 0 }])
    this.#gather = new SideGather(context, this.#types)
    this.#leftTimes = timeReader(context, scales.left)
    this.#rightTimes = timeReader(context, scales.right)
    this.#state = arena.keep(asofStateBytes)
    memory.u8.fill(0, this.#state, this.#state + asofStateBytes)
    this.#put(strictWord, plan.join === 'lt' ? 1 : 0)
    this.#put(outWord, this.#out)
    memory.i64[(this.#state + 48) >>> 3] = scales.tolerance
  }

  /** Starts a left batch. */
  begin({ rows, vectors }: Batch): void {
    const { leftKeys, leftTimestamp } = this.#plan
    this.#keys.number(
      leftKeys.map((index) => vectors[index] as Vector),
      rows,
      this.#leftCodes,
    )
    this.#put(leftWord, this.#leftTimes(vectors[leftTimestamp] as Vector, rows))
    this.#put(leftWord + 1, this.#leftCodes)
    this.#put(leftWord + 2, rows)
    this.#put(leftWord + 3, 0)
    this.#reserve()
  }

  /** True when every row of the left batch has been matched; false when more right rows are needed. */
  advance(): boolean {
    return this.#context.kernels.join.asof(this.#state) === this.#get(leftWord + 2)
  }

  /** Adds right rows; the kernel has put all earlier ones into the table. */
  add({ rows, vectors }: Batch): void {
    const { rightKeys, rightTimestamp } = this.#plan
    if (this.#store.rows >= this.#pruneAt || this.#isCrowded) this.#prune()
    this.#keys.number(
      rightKeys.map((index) => vectors[index] as Vector),
      rows,
      this.#rightCodes,
    )
    const first = this.#store.rows
    const ts = vectors[rightTimestamp] as Vector
    const times = { ...ts, address: this.#rightTimes(ts, rows) }
    this.#store.append({ rows, vectors: [...vectors.slice(0, this.#types.length), times] })
    this.#put(rightWord, this.#store.column(this.#types.length).address)
    this.#put(rightWord + 1, this.#rightCodes)
    this.#put(rightWord + 2, this.#store.rows)
    this.#put(rightWord + 3, first)
    this.#put(firstWord, first)
    this.#reserve()
  }

  complete(): void {
    this.#put(completeWord, 1)
  }

  result({ rows, vectors }: Batch): Batch {
    const own = vectors.slice(0, this.#plan.left.columns.length)
    if (this.#store.rows === 0) return { rows, vectors: [...own, ...nullVectors(this.#context, this.#types)] }
    const found = this.#store.columns(this.#types.length)
    const side = { vectors: found, index: this.#out, mayLack: true }
    return { rows, vectors: [...own, ...this.#gather.gather(side, rows, null)] }
  }

  get #isCrowded(): boolean {
    const rowsMin = this.#pruneAt - pruneRowsMin + pruneRowsLeast
    return this.#store.rows >= rowsMin && this.#store.bytes > this.#context.arena.left * pruneShare
  }

  #reserve(): void {
    this.#last.reserve(this.#keys.size)
    this.#put(lastWord, this.#last.address)
  }

  /** Keeps the rows to which the table or the current matches refer. */
  #prune(): void {
    const matches = { address: this.#out, size: this.#get(leftWord + 3) }
    const live = keepReferred(this.#context, this.#store, [this.#last, matches], this.#store.rows)
    this.#pruneAt = live * 2 + pruneRowsMin
  }

  #get(word: number): number {
    return this.#context.memory.u32[(this.#state >>> 2) + word]!
  }

  #put(word: number, value: number): void {
    this.#context.memory.u32[(this.#state >>> 2) + word] = value
  }
}
