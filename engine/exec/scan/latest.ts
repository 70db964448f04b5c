// Operator: LATEST ON, which returns the newest row of each key, in time order. A table is scanned from its newest row
// backwards: the first row found for a key is its newest. If the keys are symbols (dictionary-encoded strings), the
// number of possible keys is known, so the scan stops when all keys have been found. When only keys with NULL are
// missing, it skips morsels (pages and memtable blocks) whose keys contain no NULL. Over any other input, all rows are
// read in input order, and a row replaces the stored row of its key if it is newer or equally old.

import { dictionaryCount } from '../../memory/column-layout.js'
import type { SharedMemory } from '../../memory/shared-memory.js'
import type { Plan } from '../../sql/plan/plan.js'
import type { DataType } from '../../types/column-types.js'
import type { ExecContext } from '../batch/context.js'
import { GroupKeys } from '../batch/group-keys.js'
import { RowBuffer } from '../batch/row-buffer.js'
import { GatheredBatch } from '../batch/selection.js'
import { rowsFor } from '../batch/small-batches.js'
import { sortedOrder } from '../batch/sort-order.js'
import { type Batch, batchRowsMax, isBatch, type Operator, type Pull, type Vector } from '../batch/vector.js'
import type { Run, ScanMorsel } from './morsels.js'
import type { SkipTest } from './streams.js'

export type LatestPlan = Extract<Plan, { kind: 'latest' }>

/** For an input in any order. */
export function latestOperator(context: ExecContext, input: Operator, plan: LatestPlan): Operator {
  return newestOperator(context, input, plan, new NewestRows(context, plan, null))
}

/**
 * A key column of a table. `requested`: how many symbols the filter admits; null when it does not restrict the column.
 */
export interface TableKey {
  readonly columnId: number
  readonly requested: number | null
}

/** `scan` builds the input: descending timestamps, ties reversed, without the morsels that `skips` rejects. */
export function latestOfTable(
  context: ExecContext,
  plan: LatestPlan,
  keys: readonly TableKey[],
  scan: (skips: SkipTest) => Operator,
): Operator {
  const newest = new NewestRows(context, plan, keys)
  const input = scan((rows) => newest.hasAllOf(rows))
  return newestOperator(context, input, plan, newest)
}

function newestOperator(context: ExecContext, input: Operator, plan: LatestPlan, newest: NewestRows): Operator {
  let emit: (() => Batch | null) | null = null
  const pull = (): Pull => {
    if (emit !== null) return emit()
    const batch = newest.complete ? null : input.pull()
    if (isBatch(batch)) newest.add(batch)
    if (batch !== null) return batch === 'waiting' ? batch : 'working'
    if (newest.rows.rows === 0) return null
    const types = plan.columns.map(({ type }) => type)
    emit = orderedRows(context, types, newest.rows, newest.order())
    return emit()
  }
  return { pull }
}

/** Returns batches of buffered rows in the order of the row numbers (u32) at address `order`. */
export function orderedRows(
  context: ExecContext,
  types: readonly DataType[],
  rows: RowBuffer,
  order: number,
): () => Batch | null {
  const gathered = new GatheredBatch(context, types)
  let next = 0
  return () => {
    const count = Math.min(rowsFor(types.length), rows.rows - next)
    if (count <= 0) return null
    const batch = gathered.gather(rows.columns(), order + next * 4, count)
    next += count
    return batch
  }
}

const pruneRowsMin = 65_536

class NewestRows {
  readonly rows: RowBuffer
  readonly #context: ExecContext
  readonly #plan: LatestPlan
  readonly #descending: boolean
  readonly #tableKeys: readonly TableKey[]
  readonly #groups: GroupKeys
  readonly #gathered: GatheredBatch
  readonly #index: number
  /** For each group: the buffered row that is its newest, and its timestamp. */
  #newest: number[] = []
  #timestamps: bigint[] = []
  /** Maximal number of groups, with and without NULL as a key; known for symbol keys only. */
  #groupsMax = Number.POSITIVE_INFINITY
  #groupsWithoutNull = Number.POSITIVE_INFINITY
  #nullSeen = false

  /** `tableKeys`: rows come in descending time order; null: in any order. */
  constructor(context: ExecContext, plan: LatestPlan, tableKeys: readonly TableKey[] | null) {
    const types = plan.columns.map(({ type }) => type)
    this.#context = context
    this.#plan = plan
    this.#descending = tableKeys !== null
    this.#tableKeys = tableKeys ?? []
    this.rows = new RowBuffer(context, types)
    this.#groups = new GroupKeys(
      context,
      plan.keys.map((index) => (plan.columns[index] as (typeof plan.columns)[number]).type),
    )
    this.#gathered = new GatheredBatch(context, types)
    this.#index = context.arena.take(batchRowsMax * 4)
  }

  /** Every possible key has its row, so the scan can stop. */
  get complete(): boolean {
    return this.#groups.count >= this.#groupsMax
  }

  /** Every possible key without NULL has its row, and these rows have no NULL key, so they can be skipped. */
  hasAllOf(source: ScanMorsel | Run): boolean {
    if (this.complete) return true
    if (this.#nullSeen || this.#groups.count < this.#groupsWithoutNull) return false
    return this.#tableKeys.every(
      ({ columnId, requested }) => requested !== null || this.#isWithoutNull(source, columnId),
    )
  }

  #isWithoutNull(source: ScanMorsel | Run, columnId: number): boolean {
    const nulls = source.nulls?.(columnId)
    if (nulls !== undefined) return nulls === 0
    const address = 'morsels' in source ? 0 : source.column(columnId)
    return address !== 0 && !hasNull(this.#context.memory, address, source.rows)
  }

  add(batch: Batch): void {
    const keys = this.#plan.keys.map((index) => batch.vectors[index] as Vector)
    if (this.#descending && keys.every(({ type }) => type.name === 'SYMBOL')) this.#noteSymbols(keys, batch.rows)
    this.#groups.assign(keys, batch.rows)
    const count = this.#descending ? this.#selectFirst(batch) : this.#selectNewer(batch)
    if (count > 0) this.rows.append(this.#gathered.gather(batch.vectors, this.#index, count))
    if (this.rows.rows > this.#newest.length * 2 + pruneRowsMin) this.#prune()
  }

  #noteSymbols(keys: readonly Vector[], rows: number): void {
    const { memory } = this.#context
    this.#groupsMax = 1
    this.#groupsWithoutNull = 1
    keys.forEach(({ dictionary, address }, at) => {
      const { requested } = this.#tableKeys[at] as TableKey
      const symbols = requested ?? dictionaryCount(memory, dictionary)
      this.#groupsWithoutNull *= symbols
      this.#groupsMax *= requested ?? symbols + 1
      this.#nullSeen ||= hasNull(memory, address, rows)
    })
  }

  /** Row numbers of the buffer in time order; ties keep the order of the input. */
  order(): number {
    if (!this.#descending) this.#prune()
    const { rows } = this.rows
    const { arena, kernels, memory } = this.#context
    if (this.#descending) {
      const order = arena.take(rows * 4)
      kernels.sort.identity(rows, order)
      memory.u32.subarray(order >>> 2, (order >>> 2) + rows).reverse()
      return order
    }
    return sortedOrder(this.#context, this.rows, [
      { index: this.#plan.timestampIndex, descending: false, nullsFirst: true },
    ])
  }

  #selectFirst(batch: Batch): number {
    const { u32 } = this.#context.memory
    const ids = this.#groups.ids >>> 2
    let count = 0
    for (let row = 0; row < batch.rows; row++) {
      const group = u32[ids + row]!
      if (this.#newest[group] !== undefined) continue
      this.#newest[group] = this.rows.rows + count
      u32[(this.#index >>> 2) + count++] = row
    }
    return count
  }

  /** Rows that are at least as new as the newest row of their group so far; the last one wins. */
  #selectNewer(batch: Batch): number {
    const { u32, i64 } = this.#context.memory
    const ids = this.#groups.ids >>> 2
    const ts = (batch.vectors[this.#plan.timestampIndex] as Vector).address >>> 3
    let count = 0
    for (let row = 0; row < batch.rows; row++) {
      const group = u32[ids + row]!
      const value = i64[ts + row]!
      const known = this.#timestamps[group]
      if (known !== undefined && value < known) continue
      this.#timestamps[group] = value
      this.#newest[group] = this.rows.rows + count
      u32[(this.#index >>> 2) + count++] = row
    }
    return count
  }

  /** Drops replaced rows; the others keep their order. */
  #prune(): void {
    const { arena, memory } = this.#context
    const retained = this.#newest.map((row, group) => ({ row, group })).sort((a, b) => a.row - b.row)
    const index = arena.take(Math.max(1, retained.length) * 4)
    retained.forEach(({ row, group }, at) => {
      memory.u32[(index >>> 2) + at] = row
      this.#newest[group] = at
    })
    this.rows.keepGathered(index, retained.length)
    arena.give(index)
  }
}

/** Whether a symbol column contains NULL. */
function hasNull({ i32 }: SharedMemory, address: number, rows: number): boolean {
  return i32.subarray(address >>> 2, (address >>> 2) + rows).includes(-1)
}
