// Operator: ORDER BY. Rows are kept, then sorted key by key from the last to the first: the kernel's sort is stable. With
// a limit the rows that cannot be among the first are dropped each time enough have come.

import { sortScratchBytes } from '../../kernels/sort.js'
import type { PlanColumn, SortKey } from '../plan/plan.js'
import type { ExecContext } from './context.js'
import { RowStore } from './row-store.js'
import { Gathered } from './selection.js'
import { sortWords } from './sort-keys.js'
import { batchRowsMax, isBatch, type Operator, type Pull } from './vector.js'

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
  const prune = (): void => {
    const permutation = sortedOrder(context, store, keys)
    store.keepGathered(permutation, Math.min(wanted, store.rows))
    context.space.give(permutation)
  }
  const pull = (): Pull => {
    if (order === 0) {
      const batch = input.pull()
      if (isBatch(batch)) {
        store.append(batch)
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
