// Copies batches of rows that arrive in columnar form (from SQL and CSV) into the columns of a staged chunk, from which
// a commit takes them. Each batch numbers its symbols on its own, so each distinct string is looked up once in the
// table's dictionary.

import { assert } from '../../base/assert.js'
import { SqlError } from '../../base/errors.js'
import type { Kernels } from '../../kernels/load.js'
import type { Allocator } from '../../memory/budgets.js'
import type { SharedMemory } from '../../memory/shared-memory.js'
import type { PackedColumn, PackedRows } from '../jobs/messages.js'
import { type BatchHeap, type ChunkColumn, chunkColumn, type RowChunk } from './writer-batch.js'
import type { WriterTable } from './writer-table.js'

interface Resources {
  readonly memory: SharedMemory
  readonly allocator: Allocator
  readonly heap: BatchHeap
  readonly kernels: Pick<Kernels, 'rows'>
}

export function stagePacked(resources: Resources, table: WriterTable, rows: PackedRows, chunk: RowChunk): void {
  for (const { columnId, type, values } of rows.columns) {
    const column = chunkColumn(resources.allocator, chunk, columnId, type)
    stageColumn(resources, table, column, values, rows.rows)
    column.filled = rows.rows
  }
  chunk.rows = rows.rows
}

function stageColumn(
  { memory, heap, kernels }: Resources,
  table: WriterTable,
  column: ChunkColumn,
  values: PackedColumn,
  rows: number,
): void {
  switch (values.kind) {
    case 'fixed':
      assert(values.bytes.length === rows * column.width, 'R1: every row has a value')
      memory.put(values.bytes, column.address)
      return
    case 'texts': {
      const { lengths, bytes } = values
      assert(lengths.length === rows, 'R1: every row has a length')
      const lengthsAt = heap.put(new Uint8Array(lengths.buffer, lengths.byteOffset, lengths.byteLength))
      kernels.rows.entriesOf(lengthsAt, lengths.length, heap.put(bytes), column.address)
      return
    }
    case 'symbols':
      assert(values.ids.length === rows, 'R1: every row has a code')
      stageSymbols(memory, heap, table, column, values)
  }
}

function stageSymbols(
  { i32, u32 }: SharedMemory,
  heap: BatchHeap,
  table: WriterTable,
  { id, address }: ChunkColumn,
  { ids, texts, count }: Extract<PackedColumn, { kind: 'symbols' }>,
): void {
  const dictionary = table.dictionary(id)
  const known = new Int32Array(count)
  let at = heap.put(texts)
  for (let index = 0; index < count; index++) {
    const bytes = unaligned(u32, at)
    const code = dictionary.intern(at + 4, bytes)
    if (code === undefined) throw new SqlError('a symbol is not valid UTF-8', 0)
    known[index] = code
    at += 4 + bytes
  }
  for (let row = 0; row < ids.length; row++) {
    const local = ids[row]!
    i32[(address >>> 2) + row] = local < 0 ? -1 : known[local]!
  }
}

/** Reads a u32 from an unaligned address. */
function unaligned(u32: Uint32Array, address: number): number {
  const shift = (address & 3) * 8
  const low = u32[address >>> 2]!
  if (shift === 0) return low
  return ((low >>> shift) | (u32[(address >>> 2) + 1]! << (32 - shift))) >>> 0
}
