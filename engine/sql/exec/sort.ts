// Operator: ORDER BY. Rows are kept, then sorted key by key from the last to the first: the kernel's sort is stable. With
// a limit the rows that cannot be among the first are dropped each time enough have come.

import { sortScratchBytes } from '../../kernels/sort.js'
import { type DataType, storageOf } from '../../types/column-types.js'
import type { PlanColumn, SortKey } from '../plan/plan.js'
import type { ExecContext } from './context.js'
import { RowStore } from './row-store.js'
import { Gathered } from './selection.js'
import { sortWords } from './sort-keys.js'
import { type Batch, batchRowsMax, isBatch, type Operator, type Pull, type Vector } from './vector.js'

export interface SortShape {
  readonly columns: readonly PlanColumn[]
  readonly keys: readonly SortKey[]
  readonly limit: number | null
}

const pruneRowsMin = 65_536

export function sortOperator(context: ExecContext, input: Operator, { columns, keys, limit }: SortShape): Operator {
  const types = columns.map(({ type }) => type)
  const store = new RowStore(context, types)
  const gathered = new Gathered(context, types)
  const wanted = limit ?? Number.POSITIVE_INFINITY
  let order = 0
  let next = 0
  const threshold = new Threshold(context, keys[0] as SortKey, types)
  const prune = (): void => {
    const permutation = sortedOrder(context, store, keys)
    store.keepGathered(permutation, Math.min(wanted, store.rows))
    context.space.give(permutation)
    if (store.rows >= wanted) threshold.set(store)
  }
  const pull = (): Pull => {
    if (order === 0) {
      const batch = input.pull()
      if (isBatch(batch)) {
        const candidates = threshold.filter(batch)
        if (candidates !== null) store.append(candidates)
        if (store.rows >= wanted * 2 + pruneRowsMin) prune()
        return 'working'
      }
      if (batch !== null) return batch
      if (store.rows === 0) return null
      order = sortedOrder(context, store, keys)
    }
    const rows = Math.min(batchRowsMax, Math.min(wanted, store.rows) - next)
    if (rows <= 0) return null
    const vectors = types.map((_, index) => store.column(index))
    const batch = gathered.gather(vectors, order + next * 4, rows)
    next += rows
    return batch
  }
  return { pull }
}

/** u32 row numbers in the order of the keys; the caller gives the area back. */
export function sortedOrder(context: ExecContext, store: RowStore, keys: readonly SortKey[]): number {
  const { space, kernels } = context
  const rows = store.rows
  let order = space.take(rows * 4)
  kernels.sort.identity(rows, order)
  const words = space.take(rows * 8)
  const moved = space.take(rows * 8)
  const scratchBytes = sortScratchBytes(rows)
  const scratch = space.take(scratchBytes)
  const passes = keys.flatMap((key) => sortWords(context, store.column(key.index), rows, key)).reverse()
  let first = true
  for (const write of passes) {
    write(words)
    if (first) {
      kernels.sort.sortPermutation(words, rows, scratch, scratchBytes, order)
      first = false
      continue
    }
    kernels.sort.gather(8, words, order, rows, moved)
    const step = space.take(rows * 4)
    if (kernels.sort.sortPermutation(moved, rows, scratch, scratchBytes, step) === 1) {
      space.give(step)
      continue
    }
    const composed = space.take(rows * 4)
    kernels.sort.gather(4, order, step, rows, composed)
    space.give(order)
    space.give(step)
    order = composed
  }
  for (const address of [words, moved, scratch]) space.give(address)
  return order
}

/** The first key of the last row that is wanted: rows beyond it need not be kept. Keys of one word whose order is fixed. */
class Threshold {
  readonly #context: ExecContext
  readonly #key: SortKey
  readonly #gathered: Gathered
  readonly #usable: boolean
  #words = 0
  #mask = 0
  #index = 0
  #highest: bigint | null = null

  constructor(context: ExecContext, key: SortKey, types: readonly DataType[]) {
    this.#context = context
    this.#key = key
    this.#gathered = new Gathered(context, types)
    const type = types[key.index] as DataType
    this.#usable = type.name !== 'SYMBOL' && ['i8', 'i16', 'i32', 'i64', 'f32', 'f64'].includes(storageOf(type))
  }

  set(store: RowStore): void {
    if (!this.#usable) return
    const { space, memory } = this.#context
    if (this.#words === 0) {
      this.#words = space.take(batchRowsMax * 8)
      this.#mask = space.take(batchRowsMax)
      this.#index = space.take(batchRowsMax * 4)
    }
    const last = store.batchAt(store.rows - 1, store.rows)
    if (last === null) return
    this.#write(last)
    this.#highest = memory.i64[this.#words >>> 3] as bigint
  }

  /** The rows that may be wanted; null when there are none. */
  filter(batch: Batch): Batch | null {
    if (this.#highest === null) return batch
    const { aggregate } = this.#context.kernels
    this.#write(batch)
    aggregate.maskRange(this.#words, batch.rows, -(2n ** 63n), this.#highest, 0, this.#mask)
    const count = aggregate.maskToIndex(this.#mask, batch.rows, 0, this.#index)
    if (count === batch.rows) return batch
    return count === 0 ? null : this.#gathered.gather(batch.vectors, this.#index, count)
  }

  #write(batch: Batch): void {
    const vector = batch.vectors[this.#key.index] as Vector
    const [write] = sortWords(this.#context, vector, batch.rows, this.#key)
    write?.(this.#words)
  }
}
