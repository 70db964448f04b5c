// Relocation of rows to the head of the log: the rows of a small memtable are appended to the log again, in a
// relocation frame (kind `relocation`). Then old segments of the log can be removed without flushing many small tables
// to small Parquet files.
//
// A relocation frame contains all rows of the table that are not in Parquet files, with the table's newest transaction
// number. Replay discards the rows of the table that it has read before and uses these instead. So a relocation frame
// with fewer rows than the memtable also removes rows durably (writer-drop-rows.ts).

import { assert } from '../../base/assert.js'
import { ResourceError } from '../../base/errors.js'
import { blockAt, blockColumn, blockCount, blockRows } from '../../memory/column-layout.js'
import type { SharedMemory } from '../../memory/shared-memory.js'
import { widthOf } from '../../types/column-types.js'
import { encodeRows } from '../../wal/frame-rows.js'
import { noSourcePosition } from '../../wal/source-position.js'
import { frameKinds, type Lsn } from '../../wal/types.js'
import type { Memtable } from '../memtable/memtable.js'
import { frameColumns, newChunk, type RowChunk } from './writer-batch.js'
import { newSymbols } from './writer-commit.js'
import { enqueue, type WriterState } from './writer-state.js'
import type { MemtableEntry, WriterTable } from './writer-table.js'

/** Appends a relocation frame for the memtable. The old frames are needed until it is durable. */
export function relocateMemtable(state: WriterState, table: WriterTable, entry: MemtableEntry): void {
  const firstLsn = state.wal.headLsn
  try {
    appendRelocationFrame(state, table, entry)
    enqueue(state, { after: () => relocated(state, table, entry, firstLsn) })
  } catch (thrown) {
    if (!(thrown instanceof ResourceError)) throw thrown
    state.options.log(
      'W',
      'writer',
      `rows were not relocated in the log [table=${table.schema.name}, error=${thrown.message}]`,
    )
  }
}

/** Appends the frame with the memtable's rows. Throws ResourceError if the log does not accept it. */
export function appendRelocationFrame(state: WriterState, table: WriterTable, entry: MemtableEntry): Lsn {
  const { memory, allocator } = state.options
  const { memtable } = entry
  const chunks = chunksOf(memory, table, memtable)
  const own = chunks.map(({ columns }) => new Set([...columns.values()].map(({ address }) => address)))
  assert(
    chunks.reduce((sum, { rows }) => sum + rows, 0) === memtable.rows,
    'S2: a relocation frame has every row of its memtable',
  )
  const firstLsn = state.wal.headLsn
  const packed: number[] = []
  try {
    const range = memtable.timeRange() ?? { min: 0n, max: 0n }
    const payload = encodeRows({
      sourcePosition: noSourcePosition,
      ddl: [],
      tables: [
        {
          tableId: table.id,
          transaction: table.transaction,
          structureVersion: table.schema.version,
          rowCount: memtable.rows,
          minTimestamp: range.min,
          maxTimestamp: range.max,
          symbols: newSymbols(table, table.namedSymbols),
          columns: frameColumns({ ...state.options, packed }, chunks),
        },
      ],
    })
    const endLsn = state.wal.append(frameKinds.relocation, payload)
    state.lastEndLsn = endLsn
    entry.lastLsn = endLsn
    entry.relocatedLsn = firstLsn
    return endLsn
  } finally {
    for (const address of packed) allocator.free(address)
    chunks.forEach(({ columns }, index) => {
      for (const { address } of columns.values()) if (!own[index]?.has(address)) allocator.free(address)
    })
  }
}

/** Releases the old frames, if the new one is durable: in mode async it may be acknowledged earlier. */
function relocated(state: WriterState, table: WriterTable, entry: MemtableEntry, firstLsn: number): void {
  if (state.wal.durableLsn < entry.lastLsn) return
  entry.firstLsn = Math.max(entry.firstLsn, firstLsn)
  // The frame contains every symbol that the manifest lacks.
  if (table.symbolsLsn < firstLsn) table.symbolsLsn = firstLsn
}

/** The memtable's blocks as staged chunks, without copying. */
function chunksOf(memory: SharedMemory, table: WriterTable, memtable: Memtable): RowChunk[] {
  const chunks: RowChunk[] = []
  for (let index = 0; index < blockCount(memory, memtable.address); index++) {
    const block = blockAt(memory, memtable.address, index)
    const rows = blockRows(memory, block)
    if (rows > 0) chunks.push(chunkOf(memory, table, block, 0, rows))
  }
  return chunks
}

/** A range of a block's rows as a staged chunk. */
export function chunkOf(
  memory: SharedMemory,
  table: WriterTable,
  block: number,
  first: number,
  rows: number,
): RowChunk {
  const chunk = newChunk(rows)
  chunk.rows = rows
  for (const { id, type } of table.schema.columns) {
    const start = blockColumn(memory, block, id)
    const width = widthOf(type)
    if (start !== 0) chunk.columns.set(id, { id, type, width, address: start + first * width, filled: rows })
  }
  return chunk
}
