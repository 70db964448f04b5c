// Operators that return rows without reading a table: rows given as JavaScript values, such as those of VALUES or the
// results of other operators, and the consecutive numbers of long_sequence.

import type { PlanColumn } from '../../sql/plan/plan.js'
import { widthOf } from '../../types/column-types.js'
import type { Value } from '../../types/value.js'
import type { ExecContext } from '../batch/context.js'
import { rowsFor } from '../batch/small-batches.js'
import { StringHeap } from '../batch/string-heap.js'
import { writeValue } from '../batch/values.js'
import { batchRowsMax, type Operator, type Vector } from '../batch/vector.js'

/** Kernels may read up to the end of a group of 64 rows. */
function paddedRows(rows: number): number {
  return Math.ceil(rows / 64) * 64
}

/** `rows(from, count)` returns the rows from an index on, at most `count`; `total` is the number of all rows. */
export function valuesOperator(
  context: ExecContext,
  columns: readonly PlanColumn[],
  rows: (from: number, count: number) => readonly (readonly Value[])[],
  total = batchRowsMax,
): Operator {
  const { memory, arena, symbols } = context
  const heap = new StringHeap(arena)
  let vectors: readonly Vector[] | null = null
  let next = 0
  const rowsMax = Math.max(1, Math.min(total, rowsFor(columns.length)))
  return {
    pull: () => {
      const chunk = rows(next, rowsMax)
      if (chunk.length === 0) return null
      next += chunk.length
      heap.reset()
      vectors ??= columns.map(({ type }) => ({
        type,
        address: arena.take(paddedRows(rowsMax) * widthOf(type)),
        dictionary: type.name === 'SYMBOL' ? symbols.dictionary : 0,
      }))
      vectors.forEach(({ type, address }, column) => {
        chunk.forEach((row, index) => {
          writeValue({ memory, heap, symbols }, type, address, index, row[column] ?? null)
        })
      })
      return { rows: chunk.length, vectors }
    },
  }
}

export function sequenceOperator(context: ExecContext, columns: readonly PlanColumn[], count: bigint): Operator {
  const { memory, arena } = context
  const type = columns[0]?.type ?? { name: 'LONG', a: 0, b: 0 }
  const address = arena.take(batchRowsMax * 8)
  const low = address >>> 2
  const total = Number(count)
  let next = 0
  return {
    pull: () => {
      const rows = Math.min(batchRowsMax, total - next)
      if (rows <= 0) return null
      for (let row = 0; row < rows; row++) {
        const value = next + row + 1
        memory.u32[low + row * 2] = value >>> 0
        memory.u32[low + row * 2 + 1] = Math.floor(value / 0x1_0000_0000)
      }
      next += rows
      return { rows, vectors: [{ type, address, dictionary: 0 }] }
    },
  }
}
