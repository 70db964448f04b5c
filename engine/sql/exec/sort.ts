// Operator: ORDER BY. Rows are kept, then sorted key by key from the last to the first: the kernel's sort is stable. With
// a limit the rows that cannot be among the first are dropped each time enough have come.

import { sortScratchBytes } from '../../kernels/sort.js'
import type { DataType } from '../../types/column-types.js'
import type { PlanColumn, SortKey } from '../plan/plan.js'
import type { ExecContext } from './context.js'
import { RowStore } from './row-store.js'
import { Gathered } from './selection.js'
import type { Bound } from './sort-bound.js'
import { type KernelKey, kernelKey, sortWords } from './sort-keys.js'
import { SymbolThreshold } from './symbol-threshold.js'
import { TextThreshold } from './text-threshold.js'
import { type Batch, batchRowsMax, isBatch, type Operator, type Pull, type Vector } from './vector.js'

export interface SortShape {
  readonly columns: readonly PlanColumn[]
  readonly keys: readonly SortKey[]
  readonly limit: number | null
}

/** Rows gathered before those that cannot be among the first are dropped. */
const pruneRowsMin = 8192

export function sortOperator(context: ExecContext, input: Operator, shape: SortShape): Operator {
  const rows = new SortedRows(context, shape)
  const pull = (): Pull => {
    if (rows.sorted) return rows.next()
    const batch = input.pull()
    if (isBatch(batch)) rows.add(batch)
    else if (batch !== null) return batch
    else rows.sort()
    return 'working'
  }
  return { pull }
}

/** Gathers rows, the first ones of the order only where there is a limit, and gives them back in order. */
export class SortedRows {
  readonly store: RowStore
  readonly #context: ExecContext
  readonly #keys: readonly SortKey[]
  readonly #types: readonly DataType[]
  readonly #wanted: number
  readonly #threshold: Threshold
  readonly #gathered: Gathered
  #order = -1
  #next = 0

  constructor(context: ExecContext, { columns, keys, limit }: SortShape, bound: Bound = { word: null }) {
    this.#context = context
    this.#keys = keys
    this.#types = columns.map(({ type }) => type)
    this.#wanted = limit ?? Number.POSITIVE_INFINITY
    this.store = new RowStore(context, this.#types)
    this.#gathered = new Gathered(context, this.#types)
    this.#threshold = new Threshold(context, keys[0] as SortKey, this.#types, bound)
  }

  get sorted(): boolean {
    return this.#order >= 0
  }

  add(batch: Batch): void {
    const candidates = this.#threshold.filter(batch)
    if (candidates !== null) this.store.append(candidates)
    if (this.store.rows >= this.#wanted * 2 + pruneRowsMin) this.prune()
  }

  /** Drops what cannot be among the first; the rest is in order. */
  prune(): void {
    const { store } = this
    if (store.rows === 0) return
    const permutation = sortedOrder(this.#context, store, this.#keys)
    store.keepGathered(permutation, Math.min(this.#wanted, store.rows))
    this.#context.space.give(permutation)
    if (store.rows >= this.#wanted) this.#threshold.set(store)
  }

  sort(): void {
    this.#order = this.store.rows === 0 ? 0 : sortedOrder(this.#context, this.store, this.#keys)
  }

  next(): Batch | null {
    const rows = Math.min(batchRowsMax, Math.min(this.#wanted, this.store.rows) - this.#next)
    if (rows <= 0) return null
    const vectors = this.#types.map((_, index) => this.store.column(index))
    const batch = this.#gathered.gather(vectors, this.#order + this.#next * 4, rows)
    this.#next += rows
    return batch
  }
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

function textThreshold(context: ExecContext, key: SortKey, { name }: DataType, bound: Bound) {
  if (name === 'SYMBOL') return new SymbolThreshold(context, key)
  return name === 'VARCHAR' || name === 'STRING' ? new TextThreshold(context, key, bound) : undefined
}

/** The first key of the last row that is wanted: rows beyond it need not be kept. Keys that the kernel makes words of. */
class Threshold {
  readonly #context: ExecContext
  readonly #index: number
  readonly #key: KernelKey | undefined
  readonly #gathered: Gathered
  readonly #bound: Bound
  readonly #word: number
  readonly #rows: number
  readonly #texts: SymbolThreshold | TextThreshold | undefined

  constructor(context: ExecContext, key: SortKey, types: readonly DataType[], bound: Bound) {
    this.#bound = bound
    this.#context = context
    this.#index = key.index
    this.#key = kernelKey(types[key.index] as DataType, key)
    this.#gathered = new Gathered(context, types)
    this.#word = context.space.take(8)
    this.#texts = textThreshold(context, key, types[key.index] as DataType, bound)
    const asks = this.#key !== undefined || this.#texts !== undefined
    this.#rows = asks ? context.space.take((batchRowsMax + 1) * 4) : 0
  }

  set(store: RowStore): void {
    const last = store.batchAt(store.rows - 1, store.rows)
    if (last !== null) this.#texts?.set(last.vectors[this.#index] as Vector)
    if (this.#key === undefined || last === null) return
    const { kind, missing, nullWord, turn } = this.#key
    const { kernels, memory } = this.#context
    const { address } = last.vectors[this.#index] as Vector
    kernels.sort.orderWords(kind, address, 1, missing, nullWord, turn, this.#word)
    const word = memory.i64[this.#word >>> 3] as bigint
    if (this.#bound.word === null || word < this.#bound.word) this.#bound.word = word
  }

  /** How many rows may be wanted; their numbers are noted. -1 = all. */
  #select(vector: Vector, rows: number): number {
    if (this.#texts !== undefined) return this.#texts.select(vector, rows, this.#rows)
    const { word } = this.#bound
    if (this.#key === undefined || word === null) return -1
    const { kind, missing, nullWord, turn } = this.#key
    const { sort } = this.#context.kernels
    return sort.rowsWithin(kind, vector.address, rows, missing, nullWord, turn, word, this.#rows)
  }

  /** The rows that may be wanted; null when there are none. */
  filter(batch: Batch): Batch | null {
    const count = this.#select(batch.vectors[this.#index] as Vector, batch.rows)
    if (count < 0 || count === batch.rows) return batch
    return count === 0 ? null : this.#gathered.gather(batch.vectors, this.#rows, count)
  }
}
