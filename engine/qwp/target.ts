// The uncommitted rows of one table in the current request of QWP (columnar protocol over WebSocket): one chunk of
// columns in shared memory for each table block of the message.
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
} from '../storage/writer/writer-batch.js'
import type { WriterTable } from '../storage/writer/writer-table.js'

const capacityMin = 64
/** Larger chunks have a multiple of this many rows. */
const capacityStep = 4096
const spareChunksMax = 4
/** A spare chunk is taken for at least this share of its rows. */
const spareUse = 1 / 4

export class QwpTarget {
  readonly table: WriterTable
  readonly heap: BatchHeap
  readonly chunks: RowChunk[] = []
  private readonly memory: SharedMemory
  private readonly allocator: Allocator
  private spare: RowChunk[] = []
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
    const at = this.spare.findIndex(({ capacity }) => capacity >= rows && rows >= capacity * spareUse)
    const [known] = at < 0 ? [] : this.spare.splice(at, 1)
    const chunk = known ?? newChunk(capacityFor(rows))
    assert(chunk.rows === 0, 'R4: rows of an earlier request are gone')
    this.chunks.push(chunk)
    return chunk
  }

  /** The chunk's column. Throws ResourceError. */
  column(chunk: RowChunk, id: number): ChunkColumn {
    return chunkColumn(this.allocator, chunk, id, this.table.columnById(id).type)
  }

  /** Memory until the request ends, aligned to 8 bytes. Throws ResourceError. */
  scratch(bytes: number): number {
    return this.heap.reserve(bytes)
  }

  /** Copies what rows refer to out of the ingest ring. */
  own(): void {
    for (const chunk of this.chunks) ownStrings(this.memory, this.heap, chunk)
  }

  /** Empties the batch; some chunks are kept for the next request. */
  reset(): void {
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

function capacityFor(rows: number): number {
  if (rows > capacityStep) return Math.ceil(rows / capacityStep) * capacityStep
  return Math.max(capacityMin, 2 ** Math.ceil(Math.log2(rows)))
}
