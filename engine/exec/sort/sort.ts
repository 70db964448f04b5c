// Operator: ORDER BY, with or without LIMIT. It buffers all rows and then sorts them. With a limit it regularly sorts
// the buffered rows, drops those beyond the limit, and then ignores input rows that sort after the last one left. Rows
// that outgrow the memory are written to temporary files as sorted runs (sort-runs.ts).

import type { SortKey } from '../../sql/plan/plan.js'
import type { DataType } from '../../types/column-types.js'
import type { ExecContext } from '../batch/context.js'
import { RowBuffer } from '../batch/row-buffer.js'
import { GatheredBatch } from '../batch/selection.js'
import { eachPart, rowsFor } from '../batch/small-batches.js'
import { type KernelKey, kernelKey } from '../batch/sort-keys.js'
import { type SortShape, sortBytesOf, sortedOrder } from '../batch/sort-order.js'
import { type Batch, batchRowsMax, isBatch, type Operator, type Pull, type Vector } from '../batch/vector.js'
import type { Bound } from '../scan/sort-bound.js'
import { SymbolThreshold } from '../scan/symbol-threshold.js'
import { TextThreshold } from '../scan/text-threshold.js'
import { SortRuns } from './sort-runs.js'
import { SortTies } from './sort-ties.js'

/** With a limit, this many rows more than twice the limit are buffered before the surplus is dropped. */
const pruneRowsMin = 8192
/** Rows are spilled as a run when they and their sort need more than this fraction of the free memory of queries. */
const runShare = 0.4
/** Minimal bytes of a run, so that there are few runs. */
const runBytesMin = 2 * 1024 * 1024

/**
 * Called when the rows are sorted, all in memory. Returns an operator that takes over their output, or undefined to
 * return them as batches.
 */
export type ParallelSorted = (rows: SortedRows) => Operator | undefined

export function sortOperator(
  context: ExecContext,
  input: Operator,
  shape: SortShape,
  parallel?: ParallelSorted,
): Operator {
  const rows = new SortedRows(context, shape)
  let runs: SortRuns | null = null
  let shared: Operator | undefined
  const pull = (): Pull => {
    if (runs?.merging === true) return runs.next()
    if (rows.sorted) return shared === undefined ? rows.next() : shared.pull()
    const batch = input.pull()
    if (isBatch(batch)) {
      eachPart(context, batch, (part) => {
        rows.add(part)
        if (!rows.outgrown) return
        runs ??= new SortRuns(context, shape)
        rows.writeRun(runs)
      })
    } else if (batch !== null) return batch
    else if (runs === null) {
      rows.sort()
      shared = parallel?.(rows)
    } else {
      rows.writeRun(runs)
      runs.merge()
    }
    return 'working'
  }
  return { pull, goIdle: () => shared?.goIdle?.() }
}

/** Buffers rows, with a limit only those that can be in the result, and returns them in order. */
export class SortedRows {
  readonly store: RowBuffer
  readonly #context: ExecContext
  readonly #keys: readonly SortKey[]
  readonly #types: readonly DataType[]
  readonly #wanted: number
  readonly #threshold: Threshold
  readonly #gathered: GatheredBatch
  #order = -1
  #next = 0

  constructor(context: ExecContext, { columns, keys, limit }: SortShape, bound: Bound = { word: null }) {
    this.#context = context
    this.#keys = keys
    this.#types = columns.map(({ type }) => type)
    this.#wanted = limit ?? Number.POSITIVE_INFINITY
    this.store = new RowBuffer(context, this.#types)
    this.#gathered = new GatheredBatch(context, this.#types)
    this.#threshold = new Threshold(context, keys, this.#types, bound)
  }

  get sorted(): boolean {
    return this.#order >= 0
  }

  /** Address of the sorted u32 row numbers; valid after sort(). */
  get order(): number {
    return this.#order
  }

  /** Number of rows in the result. */
  get count(): number {
    return Math.min(this.#wanted, this.store.rows)
  }

  /** Number of rows that next() has returned. */
  get taken(): number {
    return this.#next
  }

  add(batch: Batch): void {
    const candidates = this.#threshold.filter(batch)
    if (candidates !== null) this.store.append(candidates)
    if (this.store.rows >= this.#wanted * 2 + pruneRowsMin) this.prune()
  }

  /** Sorts, and drops the rows that cannot be in the result. */
  prune(): void {
    const { store } = this
    if (store.rows === 0) return
    const permutation = sortedOrder(this.#context, store, this.#keys)
    store.keepGathered(permutation, Math.min(this.#wanted, store.rows))
    this.#context.arena.give(permutation)
    if (store.rows >= this.#wanted) this.#threshold.set(store)
  }

  /** Whether the rows and their sort would leave too little memory for other queries. */
  get outgrown(): boolean {
    const { arena, temporary } = this.#context
    if (temporary === undefined) return false
    const held = this.store.bytes
    const needed = held + sortBytesOf(this.store.rows)
    return needed > Math.max(runBytesMin, (arena.left + held) * runShare)
  }

  /** Sorts all rows, writes them as a run, and empties the buffer. */
  writeRun(runs: SortRuns): void {
    const { store } = this
    if (store.rows === 0) return
    const order = sortedOrder(this.#context, store, this.#keys)
    runs.write(Math.min(this.#wanted, store.rows), (from, rows) => this.#gatherAt(order + from * 4, rows))
    this.#context.arena.give(order)
    store.free()
  }

  #gatherAt(order: number, rows: number): Batch {
    return this.#gathered.gather(this.store.columns(), order, rows)
  }

  sort(): void {
    this.#order = this.store.rows === 0 ? 0 : sortedOrder(this.#context, this.store, this.#keys)
  }

  next(): Batch | null {
    const rows = Math.min(rowsFor(this.#types.length), this.count - this.#next)
    if (rows <= 0) return null
    const batch = this.#gatherAt(this.#order + this.#next * 4, rows)
    this.#next += rows
    return batch
  }
}

function textThreshold(context: ExecContext, key: SortKey, { name }: DataType, bound: Bound) {
  if (name === 'SYMBOL') return new SymbolThreshold(context, key)
  return name === 'VARCHAR' || name === 'STRING' ? new TextThreshold(context, key, bound) : undefined
}

/**
 * The first key of the current last row of the result, for key types that the kernel converts to sort words, and for
 * strings. Rows that sort after it are dropped early.
 */
class Threshold {
  readonly #context: ExecContext
  readonly #index: number
  readonly #key: KernelKey | undefined
  readonly #gathered: GatheredBatch
  readonly #tiesOf: () => SortTies | undefined
  #ties: SortTies | undefined
  readonly #bound: Bound
  readonly #word: number
  readonly #rows: number
  readonly #strings: SymbolThreshold | TextThreshold | undefined

  constructor(context: ExecContext, keys: readonly SortKey[], types: readonly DataType[], bound: Bound) {
    const key = keys[0] as SortKey
    this.#bound = bound
    this.#tiesOf = () => SortTies.of(context, keys, types)
    this.#context = context
    this.#index = key.index
    this.#key = kernelKey(types[key.index] as DataType, key)
    this.#gathered = new GatheredBatch(context, types)
    this.#word = context.arena.take(8)
    this.#strings = textThreshold(context, key, types[key.index] as DataType, bound)
    const asks = this.#key !== undefined || this.#strings !== undefined
    this.#rows = asks ? context.arena.take((batchRowsMax + 1) * 4) : 0
  }

  set(store: RowBuffer): void {
    const last = store.batchAt(store.rows - 1, store.rows)
    if (last === null) return
    this.#strings?.set(last.vectors[this.#index] as Vector)
    this.#ties ??= this.#tiesOf()
    this.#ties?.set(last.vectors)
    if (this.#key === undefined) return
    const { kind, missing, nullWord, turn } = this.#key
    const { kernels, memory } = this.#context
    const { address } = last.vectors[this.#index] as Vector
    kernels.sort.orderWords(kind, address, 1, missing, nullWord, turn, this.#word)
    const word = memory.i64[this.#word >>> 3]!
    if (this.#bound.word === null || word < this.#bound.word) this.#bound.word = word
  }

  /** Writes the numbers of the rows that may be in the result and returns their count; -1 means all rows. */
  #select(vector: Vector, rows: number): number {
    if (this.#strings !== undefined) return this.#strings.select(vector, rows, this.#rows)
    const { word } = this.#bound
    if (this.#key === undefined || word === null) return -1
    const { kind, missing, nullWord, turn } = this.#key
    const { sort } = this.#context.kernels
    return sort.rowsWithin(kind, vector.address, rows, missing, nullWord, turn, word, this.#rows)
  }

  /** The rows that may be in the result; null when there are none. */
  filter(batch: Batch): Batch | null {
    const within = this.#select(batch.vectors[this.#index] as Vector, batch.rows)
    const count = within > 0 && this.#ties !== undefined ? this.#ties.filter(batch.vectors, this.#rows, within) : within
    if (count < 0 || count === batch.rows) return batch
    return count === 0 ? null : this.#gathered.gather(batch.vectors, this.#rows, count)
  }
}
