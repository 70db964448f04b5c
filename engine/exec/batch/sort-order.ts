// Sorts buffered rows: computes the permutation of row numbers for ORDER BY. It sorts by one key after the other, the
// last key first; the WebAssembly kernel's radix sort is stable, so the first key decides.

import { sortScratchBytes } from '../../kernels/sort.js'
import type { PlanColumn, SortKey } from '../../sql/plan/plan.js'
import type { ExecContext } from './context.js'
import type { RowBuffer } from './row-buffer.js'
import { sortWords } from './sort-keys.js'

export interface SortShape {
  readonly columns: readonly PlanColumn[]
  readonly keys: readonly SortKey[]
  readonly limit: number | null
}

/** Upper bound of the memory that sortedOrder() allocates, including its result. */
export function sortBytesOf(rows: number): number {
  return sortScratchBytes(rows) + rows * 28
}

/** The row numbers (u32) in the order of the keys. The caller frees the area. */
export function sortedOrder(context: ExecContext, store: RowBuffer, keys: readonly SortKey[]): number {
  const { arena, kernels } = context
  const rows = store.rows
  let order = arena.take(rows * 4)
  kernels.sort.identity(rows, order)
  const words = arena.take(rows * 8)
  let moved = 0
  const scratchBytes = sortScratchBytes(rows)
  const scratch = arena.take(scratchBytes)
  const passes = keys.flatMap((key) => sortWords(context, store.column(key.index), rows, key)).reverse()
  let first = true
  for (const write of passes) {
    write(words)
    if (first) {
      kernels.sort.sortPermutation(words, rows, scratch, scratchBytes, order)
      first = false
      continue
    }
    if (moved === 0) moved = arena.take(rows * 8)
    kernels.sort.gather(8, words, order, rows, moved)
    const step = arena.take(rows * 4)
    if (kernels.sort.sortPermutation(moved, rows, scratch, scratchBytes, step) === 1) {
      arena.give(step)
      continue
    }
    const composed = arena.take(rows * 4)
    kernels.sort.gather(4, order, step, rows, composed)
    arena.give(order)
    arena.give(step)
    order = composed
  }
  for (const address of [words, moved, scratch]) arena.give(address)
  return order
}
