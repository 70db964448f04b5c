// Writes and reads the result rows of a chunk, a range of a query's input that one thread processes. A worker thread
// writes them to shared memory, where the coordinator of the query reads them.
//
//   result  rows u32 | 0 u32 | address u32, dictionary u32 of each column

import type { SharedMemory } from '../../memory/shared-memory.js'
import { type DataType, widthOf } from '../../types/column-types.js'
import type { ExecContext } from '../batch/context.js'
import type { RowBuffer } from '../batch/row-buffer.js'
import { type Batch, batchRowsMax } from '../batch/vector.js'

export function columnsBytes(columns: number): number {
  return 8 + columns * 8
}

export function writeColumns({ memory }: ExecContext, at: number, store: RowBuffer, columns: number): void {
  const word = at >>> 2
  memory.u32[word] = store.rows
  for (let index = 0; index < columns; index++) {
    // The columns of an empty buffer have the address 0.
    const { address, dictionary } = store.column(index)
    memory.u32[word + 2 + index * 2] = address
    memory.u32[word + 3 + index * 2] = dictionary
  }
}

/** Bytes of packed copies of the columns. */
export function packedBytes(types: readonly DataType[], rows: number): number {
  return types.reduce((sum, type) => sum + packedSpan(type, rows), 0)
}

/** Writes the result with packed copies of the columns at `into`, so that the row buffer can be reused. */
export function packColumns(
  context: ExecContext,
  at: number,
  store: RowBuffer,
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

/** Address of a column's first value. */
export function columnAt({ u32 }: SharedMemory, at: number, index: number): number {
  return u32[(at >>> 2) + 2 + index * 2]!
}

/** The rows from `from` on, as many as fit a batch; null when there are none. Not copied. */
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
