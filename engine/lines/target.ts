// The uncommitted rows of one table in the current line-protocol request, as columns in chunks of shared memory, and
// the templates (kernels/ilp.ts) by which the kernel writes into these columns.
//
// A table may have a template for each form of line that it receives; one is active at a time. All write to the same
// chunk, so rows stay in line order. While the kernel runs, the template holds the row count; sync() copies it to the
// chunk, resume() back to the template.
//
// Invariant: after sync(), each column that the active template writes is filled up to the chunk's row count.

import { assert, nonNull } from '../base/assert.js'
import {
  type IlpColumn,
  ilpColumnBytes,
  ilpTemplateBytes,
  ilpTemplateSize,
  readIlpBatch,
  writeIlpTemplate,
} from '../kernels/ilp.js'
import * as layout from '../kernels/ilp-layout.js'
import { type Allocator, budgets } from '../memory/budgets.js'
import type { SharedMemory } from '../memory/shared-memory.js'
import {
  BatchHeap,
  type ChunkColumn,
  chunkColumn,
  dropChunkRows,
  freeChunk,
  newChunk,
  noteTimestamp,
  ownStrings,
  type RowChunk,
  resetChunk,
  settleColumn,
} from '../storage/writer/writer-batch.js'
import type { WriterTable } from '../storage/writer/writer-table.js'
import { type ShapeColumn, shapeKey } from './shape.js'

const chunkRowsFirst = 32
const chunkRowsMax = 8192
/** Size limit of a chunk: one of a wide table has fewer rows. */
const chunkBytesMax = 4 * 1024 * 1024
const spareChunksMax = 8
const shapesMax = 32

interface Template {
  readonly address: number
  readonly columns: readonly ShapeColumn[]
  /** The chunk that its column addresses refer to. */
  chunk: RowChunk | undefined
}

export class LineTarget {
  readonly table: WriterTable
  readonly heap: BatchHeap
  /** Chunks of the current request; rows are added to the last one. */
  readonly chunks: RowChunk[] = []
  private readonly memory: SharedMemory
  private readonly allocator: Allocator
  private readonly spare: RowChunk[] = []
  private readonly templates = new Map<string, Template>()
  private active: Template | undefined
  private epoch: number
  /** The template holds the row count. */
  private running = false

  constructor(memory: SharedMemory, allocator: Allocator, table: WriterTable) {
    this.memory = memory
    this.allocator = allocator
    this.table = table
    this.epoch = table.shapeEpoch
    this.heap = new BatchHeap(memory, allocator)
  }

  /** Address of the active template; 0: none. */
  get template(): number {
    return this.active?.address ?? 0
  }

  /** Rows of the request so far. Call sync() first. */
  get rows(): number {
    return this.chunks.reduce((sum, chunk) => sum + chunk.rows, 0)
  }

  /** Removes rows, by their numbers among all rows; every column has its values. */
  drop(memory: SharedMemory, rows: ReadonlySet<number>): void {
    if (rows.size > 0) dropChunkRows(memory, this.chunks, rows)
  }

  /** Updates the chunk with the rows that the kernel added. */
  sync(): void {
    const chunk = this.active?.chunk
    if (!this.running || this.active === undefined || chunk === undefined) return
    this.running = false
    const batch = readIlpBatch(this.memory, this.active.address)
    assert(batch.rows >= chunk.rows, 'K3: the line kernel only adds rows')
    assert(batch.rows <= chunk.capacity, 'K3: the line kernel fills no more rows than a chunk has')
    if (batch.rows === chunk.rows) return
    chunk.rows = batch.rows
    chunk.minTs = batch.minTs
    chunk.maxTs = batch.maxTs
    chunk.sorted = batch.sorted
    chunk.lastTs = this.memory.i64[(this.active.address + layout.templateLastTs) >>> 3]!
    for (const { id } of this.active.columns) nonNull(chunk.columns.get(id)).filled = chunk.rows
    nonNull(chunk.columns.get(this.table.schema.timestampId)).filled = chunk.rows
  }

  /** Lets the kernel continue after the rows of the chunk. Throws ResourceError. */
  resume(): void {
    this.refresh()
    const template = this.active
    if (template === undefined) return
    const chunk = this.currentChunk()
    if (template.chunk !== chunk) this.bind(template, chunk)
    for (const { id } of template.columns) settleColumn(this.memory, nonNull(chunk.columns.get(id)), chunk.rows)
    settleColumn(this.memory, nonNull(chunk.columns.get(this.table.schema.timestampId)), chunk.rows)
    const { u32, i64 } = this.memory
    u32[(template.address + layout.templateRows) >>> 2] = chunk.rows
    u32[(template.address + layout.templateNext) >>> 2] = template.address
    u32[(template.address + layout.templateSorted) >>> 2] = chunk.sorted ? 1 : 0
    i64[(template.address + layout.templateMinTs) >>> 3] = chunk.minTs
    i64[(template.address + layout.templateMaxTs) >>> 3] = chunk.maxTs
    i64[(template.address + layout.templateLastTs) >>> 3] = chunk.lastTs
    this.running = true
  }

  /** Activates the shape. Call sync() before and resume() after. */
  activate(columns: readonly ShapeColumn[] | undefined): void {
    if (columns === undefined || columns.length === 0) return
    const key = shapeKey(columns)
    let template = this.templates.get(key)
    if (template === undefined) {
      if (this.templates.size >= shapesMax) this.forgetShapes()
      template = {
        address: this.allocator.allocateOrThrow(ilpTemplateSize(columns), budgets.ingest),
        columns,
        chunk: undefined,
      }
      this.templates.set(key, template)
    }
    this.active = template
  }

  /** The chunk for the next row; a new one when the last is full. Throws ResourceError. */
  currentChunk(): RowChunk {
    this.refresh()
    const last = this.chunks.at(-1)
    if (last !== undefined && last.rows < last.capacity) return last
    const chunk = this.spare.pop() ?? newChunk(this.nextCapacity(last))
    assert(chunk.rows === 0, 'R4: rows of an earlier request are gone')
    this.chunks.push(chunk)
    return chunk
  }

  /** The chunk's column, NULL up to the next row. */
  columnFor(chunk: RowChunk, id: number): ChunkColumn {
    const column = chunkColumn(this.allocator, chunk, id, this.table.columnById(id).type)
    settleColumn(this.memory, column, chunk.rows)
    return column
  }

  /** Ends a row that the general path wrote. */
  endRow(chunk: RowChunk, ts: bigint): void {
    const column = this.columnFor(chunk, this.table.schema.timestampId)
    this.memory.i64[(column.address >>> 3) + chunk.rows] = ts
    column.filled = chunk.rows + 1
    chunk.rows++
    noteTimestamp(chunk, ts)
  }

  /** Copies data out of the ingest ring before its bytes are released. */
  own(): void {
    for (const chunk of this.chunks) ownStrings(this.memory, this.heap, chunk)
  }

  /** Empties the batch. The largest chunks are kept for the next request. */
  reset(): void {
    this.spare.push(...this.chunks.splice(0))
    this.spare.sort((a, b) => a.capacity - b.capacity)
    while (this.spare.length > spareChunksMax) this.freeChunk(nonNull(this.spare.shift()))
    for (const chunk of this.spare) resetChunk(chunk)
    this.running = false
    this.heap.reset()
  }

  free(): void {
    this.reset()
    for (const chunk of this.spare.splice(0)) freeChunk(this.allocator, chunk)
    this.heap.free()
    this.forgetShapes()
  }

  /** Drops all learnt and cached state because column ids may have changed. Never called within a request. */
  private refresh(): void {
    if (this.epoch === this.table.shapeEpoch) return
    assert(this.chunks.length === 0, 'R4: a table changes between requests')
    this.forgetShapes()
    for (const chunk of this.spare.splice(0)) freeChunk(this.allocator, chunk)
  }

  private freeChunk(chunk: RowChunk): void {
    freeChunk(this.allocator, chunk)
    for (const template of this.templates.values()) if (template.chunk === chunk) template.chunk = undefined
  }

  private nextCapacity(last: RowChunk | undefined): number {
    const rows = last === undefined ? chunkRowsFirst : Math.min(chunkRowsMax, last.capacity * 4)
    const byBytes = Math.floor(chunkBytesMax / (8 * this.table.schema.columns.length))
    return Math.max(chunkRowsFirst, Math.min(rows, byBytes))
  }

  private bind(template: Template, chunk: RowChunk): void {
    const columns: IlpColumn[] = template.columns.map(({ id, key, kind, type }) => ({
      key,
      kind,
      values: chunkColumn(this.allocator, chunk, id, type).address,
      dictionary: type.name === 'SYMBOL' ? this.table.dictionary(id).address : 0,
    }))
    const timestamp = this.table.columnById(this.table.schema.timestampId)
    const timestamps = chunkColumn(this.allocator, chunk, timestamp.id, timestamp.type).address
    if (template.chunk === undefined) {
      const nanos = timestamp.type.name === 'TIMESTAMP_NS'
      writeIlpTemplate(this.memory, template.address, { columns, maxRows: chunk.capacity, timestamps, nanos })
    } else {
      this.rebind(template.address, columns, chunk.capacity, timestamps)
    }
    template.chunk = chunk
  }

  /** Updates the addresses only. */
  private rebind(address: number, columns: readonly IlpColumn[], maxRows: number, timestamps: number): void {
    assert(maxRows > 0, 'K2: a chunk has room for rows')
    const { u32 } = this.memory
    u32[(address + layout.templateMaxRows) >>> 2] = maxRows
    u32[(address + layout.templateTimestamps) >>> 2] = timestamps
    const first = (address + ilpTemplateBytes + layout.columnValues) >>> 2
    columns.forEach(({ values }, index) => {
      u32[first + (index * ilpColumnBytes) / 4] = values
    })
  }

  private forgetShapes(): void {
    for (const { address } of this.templates.values()) this.allocator.free(address)
    this.templates.clear()
    this.active = undefined
    this.epoch = this.table.shapeEpoch
  }
}
