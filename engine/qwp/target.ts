// The uncommitted rows of one table in the current request of QWP (columnar protocol over WebSocket): one chunk of
// columns in shared memory for each table block (rows for one table) of the messages. Chunks with few rows are joined,
// since a group of messages may have thousands of table blocks.
//
// It owns the chunks and the memory of strings, and reuses both for the next request until memory is short.

import { assert } from '../base/assert.js'
import type { Allocator } from '../memory/budgets.js'
import type { SharedMemory } from '../memory/shared-memory.js'
import {
  BatchHeap,
  type ChunkColumn,
  chunkColumn,
  freeChunk,
  newChunk,
  ownStrings,
  type RowChunk,
  resetChunk,
  settleColumn,
} from '../storage/writer/writer-batch.js'
import type { WriterTable } from '../storage/writer/writer-table.js'

const capacityMin = 64
/** Larger chunks have a multiple of this many rows. */
const capacityStep = 4096
const spareChunksMax = 4
/** A spare chunk is taken for at least this share of its rows. */
const spareUse = 1 / 4
/** Blocks of so many rows are moved together. */
const joinedRowsMax = 1024

export class QwpTarget {
  readonly table: WriterTable
  readonly heap: BatchHeap
  readonly chunks: RowChunk[] = []
  private readonly memory: SharedMemory
  private readonly allocator: Allocator
  private spare: RowChunk[] = []
  /** Chunks whose strings are copied, apart from rows that were moved to the last of them. */
  private owned = 0
  private epoch: number

  constructor(memory: SharedMemory, allocator: Allocator, table: WriterTable) {
    this.memory = memory
    this.allocator = allocator
    this.table = table
    this.epoch = table.shapeEpoch
    this.heap = new BatchHeap(memory, allocator)
  }

  get rows(): number {
    return this.chunks.reduce((sum, chunk) => sum + chunk.rows, 0)
  }

  /** A chunk with room for so many rows. */
  addChunk(rows: number): RowChunk {
    if (this.epoch !== this.table.shapeEpoch) this.forgetColumns()
    // Another block may get its rows.
    const isJoined = this.chunks.length > 0 && rows <= joinedRowsMax
    const used = isJoined ? 0 : spareUse
    const at = this.spare.findIndex(({ capacity }) => capacity >= rows && rows >= capacity * used)
    const [known] = at < 0 ? [] : this.spare.splice(at, 1)
    const chunk = known ?? newChunk(capacityFor(isJoined ? joinedRowsMax : rows))
    assert(chunk.rows === 0, 'R4: rows of an earlier request are gone')
    this.chunks.push(chunk)
    return chunk
  }

  /** The chunk's column. Throws ResourceError. */
  column(chunk: RowChunk, id: number): ChunkColumn {
    return chunkColumn(this.allocator, chunk, id, this.table.columnById(id).type)
  }

  /** Moves the rows of the last chunk to the one before, if they fit there. The chunk is complete. Throws ResourceError. */
  join(): void {
    const [into, last] = this.chunks.slice(-2)
    if (into === undefined || last === undefined || last.rows > joinedRowsMax) return
    if (into.rows + last.rows > into.capacity) return
    assert(last.ownedRows === 0, 'R4: rows are moved before their strings are copied')
    if (last.rows > 0) moveRows(this.memory, this.allocator, last, into)
    this.chunks.pop()
    resetChunk(last)
    this.spare.push(last)
  }

  /** Memory until the request ends, aligned to 8 bytes. Throws ResourceError. */
  scratch(bytes: number): number {
    return this.heap.reserve(bytes)
  }

  /** Copies what rows refer to out of the ingest ring. */
  own(): void {
    const from = Math.max(0, this.owned - 1)
    for (let index = from; index < this.chunks.length; index++) {
      const chunk = this.chunks[index]
      if (chunk !== undefined) ownStrings(this.memory, this.heap, chunk)
    }
    this.owned = this.chunks.length
  }

  /** Empties the batch; some chunks are kept for the next request. */
  reset(): void {
    this.owned = 0
    this.spare.push(...this.chunks.splice(0))
    for (const chunk of this.spare.splice(0, this.spare.length - spareChunksMax)) freeChunk(this.allocator, chunk)
    for (const chunk of this.spare) resetChunk(chunk)
    this.heap.reset()
  }

  free(): void {
    this.reset()
    for (const chunk of this.spare.splice(0)) freeChunk(this.allocator, chunk)
    this.heap.free()
  }

  /** Column ids may mean other columns now. */
  private forgetColumns(): void {
    for (const chunk of this.spare.splice(0)) freeChunk(this.allocator, chunk)
    this.epoch = this.table.shapeEpoch
  }
}

function moveRows(memory: SharedMemory, allocator: Allocator, from: RowChunk, to: RowChunk): void {
  for (const { id, type, width, address, filled } of from.columns.values()) {
    if (filled === 0) continue
    assert(filled === from.rows, 'R1: every column of a chunk has a value for each row')
    const column = chunkColumn(allocator, to, id, type)
    settleColumn(memory, column, to.rows)
    memory.copy(column.address + to.rows * width, address, address + from.rows * width)
    column.filled = to.rows + from.rows
  }
  to.sorted = to.sorted && from.sorted && from.minTs >= to.lastTs
  to.lastTs = from.lastTs
  if (from.minTs < to.minTs) to.minTs = from.minTs
  if (from.maxTs > to.maxTs) to.maxTs = from.maxTs
  to.rows += from.rows
}

function capacityFor(rows: number): number {
  if (rows > capacityStep) return Math.ceil(rows / capacityStep) * capacityStep
  return Math.max(capacityMin, 2 ** Math.ceil(Math.log2(rows)))
}
