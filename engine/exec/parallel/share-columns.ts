// Columns of a chunk's result, for the lead: {rows u32, 0, then per column address u32, dictionary u32}.

import type { SharedMemory } from '../../memory/shared-memory.js'
import { type DataType, widthOf } from '../../types/column-types.js'
import type { ExecContext } from '../batch/context.js'
import type { RowStore } from '../batch/row-store.js'
import { type Batch, batchRowsMax } from '../batch/vector.js'

export function columnsBytes(columns: number): number {
  return 8 + columns * 8
}

export function writeColumns({ memory }: ExecContext, at: number, store: RowStore, columns: number): void {
  const word = at >>> 2
  memory.u32[word] = store.rows
  for (let index = 0; index < columns; index++) {
    // A store without rows has no columns yet.
    const { address, dictionary } = store.column(index)
    memory.u32[word + 2 + index * 2] = address
    memory.u32[word + 3 + index * 2] = dictionary
  }
}

/** Bytes of copies of so many rows of such columns. */
export function packedBytes(types: readonly DataType[], rows: number): number {
  return types.reduce((sum, type) => sum + packedSpan(type, rows), 0)
}

/** The same with copies of the columns, no longer than they have to be, at `into`. */
export function packColumns(
  context: ExecContext,
  at: number,
  store: RowStore,
  types: readonly DataType[],
  into: number,
): void {
  const { u8, u32 } = context.memory
  writeColumns(context, at, store, types.length)
  let next = into
  types.forEach((type, index) => {
    const { address } = store.column(index)
    u8.copyWithin(next, address, address + store.rows * widthOf(type))
    u32[(at >>> 2) + 2 + index * 2] = next
    next += packedSpan(type, store.rows)
  })
}

function packedSpan(type: DataType, rows: number): number {
  return (widthOf(type) * rows + 127) & ~63
}

export function rowsAt({ u32 }: SharedMemory, at: number): number {
  return u32[at >>> 2]!
}

/** Where a column's first value lies. */
export function columnAt({ u32 }: SharedMemory, at: number, index: number): number {
  return u32[(at >>> 2) + 2 + index * 2]!
}

/** Rows from one on, at most a vector's; null when there are none. Not copied. */
export function batchOf({ u32 }: SharedMemory, at: number, types: readonly DataType[], from: number): Batch | null {
  const word = at >>> 2
  const rows = Math.min(batchRowsMax, u32[word]! - from)
  if (rows <= 0) return null
  const vectors = types.map((type, index) => ({
    type,
    address: u32[word + 2 + index * 2]! + from * widthOf(type),
    dictionary: u32[word + 3 + index * 2]!,
  }))
  return { rows, vectors }
}
