// Operator: LATEST ON, the newest row per key, in time order. Over a table the scan below comes in descending order, so
// that the first row of a key is its newest one, and the walk may stop when no key can be missing. Over other inputs every
// row is a candidate until a newer one (or one as new that comes later) replaces it.

import type { SharedMemory } from '../../memory/shared-memory.js'
import { dictionaryCount } from '../../storage/layout.js'
import type { Plan } from '../plan/plan.js'
import type { ExecContext } from './context.js'
import { GroupKeys } from './group-keys.js'
import type { Piece, Run } from './pieces.js'
import { RowStore } from './row-store.js'
import { Gathered } from './selection.js'
import { sortedOrder } from './sort-order.js'
import type { SkipTest } from './streams.js'
import { type Batch, batchRowsMax, isBatch, type Operator, type Pull, type Vector } from './vector.js'

export type LatestPlan = Extract<Plan, { kind: 'latest' }>

/** The input comes in time order, or in any. */
export function latestOperator(context: ExecContext, input: Operator, plan: LatestPlan): Operator {
  return newestOperator(context, input, plan, new NewestRows(context, plan, null))
}

/** `wanted`: how many keys there are at most, where the filter says so. `scan` makes the input in descending order of the timestamp, ties reversed, without pieces that are skipped. */
export function latestOfTable(
  context: ExecContext,
  plan: LatestPlan,
  keyIds: readonly number[],
  wanted: number | null,
  scan: (skips: SkipTest) => Operator,
): Operator {
  const newest = new NewestRows(context, plan, { keys: wanted ?? Number.POSITIVE_INFINITY })
  const input = scan((rows) => newest.hasAllOf(rows, keyIds))
  return newestOperator(context, input, plan, newest)
}

function newestOperator(context: ExecContext, input: Operator, plan: LatestPlan, newest: NewestRows): Operator {
  const types = plan.columns.map(({ type }) => type)
  const gathered = new Gathered(context, types)
  let order = 0
  let next = 0
  const pull = (): Pull => {
    if (order === 0) {
      const batch = newest.complete ? null : input.pull()
      if (isBatch(batch)) newest.add(batch)
      if (batch !== null) return batch === 'waiting' ? batch : 'working'
      if (newest.rows.rows === 0) return null
      order = newest.order()
    }
    const rows = Math.min(batchRowsMax, newest.rows.rows - next)
    if (rows <= 0) return null
    const batch = gathered.gather(
      types.map((_, index) => newest.rows.column(index)),
      order + next * 4,
      rows,
    )
    next += rows
    return batch
  }
  return { pull }
}

const pruneRowsMin = 65_536

class NewestRows {
  readonly rows: RowStore
  readonly #context: ExecContext
  readonly #plan: LatestPlan
  readonly #descending: boolean
  /** Keys that rows can have at most. */
  readonly #keysMax: number
  readonly #groups: GroupKeys
  readonly #gathered: Gathered
  readonly #index: number
  /** Row in the store of each group's newest row, and its timestamp. */
  #newest: number[] = []
  #timestamps: bigint[] = []
  /** Entries of the key's dictionary; -1 unless the key is one symbol. */
  #symbols = -1
  #nullSeen = false

  /** `descending`: rows come from the newest one on. */
  constructor(context: ExecContext, plan: LatestPlan, descending: { readonly keys: number } | null) {
    const types = plan.columns.map(({ type }) => type)
    this.#context = context
    this.#plan = plan
    this.#descending = descending !== null
    this.#keysMax = descending?.keys ?? Number.POSITIVE_INFINITY
    this.rows = new RowStore(context, types)
    this.#groups = new GroupKeys(
      context,
      plan.keys.map((index) => (plan.columns[index] as (typeof plan.columns)[number]).type),
    )
    this.#gathered = new Gathered(context, types)
    this.#index = context.space.take(batchRowsMax * 4)
  }

  /** Every entry of the dictionary and NULL have their row, or all keys that the filter lets through: nothing is left to find. */
  get complete(): boolean {
    return this.#groups.count >= this.#keysMax || (this.#symbols >= 0 && this.#groups.count > this.#symbols)
  }

  /** One symbol key: all entries have their row, and there is no NULL among the keys. */
  hasAllOf(source: Piece | Run, keyIds: readonly number[]): boolean {
    const [id, ...more] = keyIds
    if (this.complete) return true
    if (id === undefined || more.length > 0 || this.#symbols < 0) return false
    if (this.#groups.count < this.#symbols || this.#nullSeen) return false
    const nulls = source.nulls?.(id)
    if (nulls !== undefined) return nulls === 0
    const address = 'pieces' in source ? 0 : source.column(id)
    if (address === 0) return false
    return !hasNull(this.#context.memory, address, source.rows)
  }

  add(batch: Batch): void {
    const keys = this.#plan.keys.map((index) => batch.vectors[index] as Vector)
    const [key, ...more] = keys
    if (this.#descending && more.length === 0 && key?.type.name === 'SYMBOL') {
      this.#symbols = dictionaryCount(this.#context.memory, key.dictionary)
      this.#nullSeen ||= hasNull(this.#context.memory, key.address, batch.rows)
    }
    this.#groups.assign(keys, batch.rows)
    const count = this.#descending ? this.#selectFirst(batch) : this.#selectNewer(batch)
    if (count > 0) this.rows.append(this.#gathered.gather(batch.vectors, this.#index, count))
    if (this.rows.rows > this.#newest.length * 2 + pruneRowsMin) this.#prune()
  }

  /** Row numbers of the store in time order, ties as they came. */
  order(): number {
    if (!this.#descending) this.#prune()
    const { rows } = this.rows
    const { space, kernels, memory } = this.#context
    if (this.#descending) {
      const order = space.take(rows * 4)
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
      const group = u32[ids + row] as number
      if (this.#newest[group] !== undefined) continue
      this.#newest[group] = this.rows.rows + count
      u32[(this.#index >>> 2) + count++] = row
    }
    return count
  }

  /** Rows that are as new as the newest of their group so far; the last of them counts. */
  #selectNewer(batch: Batch): number {
    const { u32, i64 } = this.#context.memory
    const ids = this.#groups.ids >>> 2
    const ts = (batch.vectors[this.#plan.timestampIndex] as Vector).address >>> 3
    let count = 0
    for (let row = 0; row < batch.rows; row++) {
      const group = u32[ids + row] as number
      const value = i64[ts + row] as bigint
      const known = this.#timestamps[group]
      if (known !== undefined && value < known) continue
      this.#timestamps[group] = value
      this.#newest[group] = this.rows.rows + count
      u32[(this.#index >>> 2) + count++] = row
    }
    return count
  }

  /** Drops rows that were replaced; the order of the others stays. */
  #prune(): void {
    const { space, memory } = this.#context
    const kept = this.#newest.map((row, group) => ({ row, group })).sort((a, b) => a.row - b.row)
    const index = space.take(Math.max(1, kept.length) * 4)
    kept.forEach(({ row, group }, at) => {
      memory.u32[(index >>> 2) + at] = row
      this.#newest[group] = at
    })
    this.rows.keepGathered(index, kept.length)
    space.give(index)
  }
}

/** Whether a symbol column has a NULL. */
function hasNull({ i32 }: SharedMemory, address: number, rows: number): boolean {
  return i32.subarray(address >>> 2, (address >>> 2) + rows).includes(-1)
}
