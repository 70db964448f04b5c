// The uncommitted rows of one table in the current line-protocol request, as columns in chunks of shared memory, and
// the template (kernels/ilp.ts) by which the kernel writes into these columns.
//
// The template has all columns that lines of the table had so far; rows of the general parser go to the same chunks, so
// rows stay in line order. While the kernel runs, the template holds the row count; sync() copies it to the chunk,
// resume() back to the template.
//
// Invariant: after sync(), each column for which the kernel has written a value is filled up to the chunk's row count.

import { assert, nonNull } from '../base/assert.js'
import {
  bindIlpTemplate,
  hasIlpValues,
  ilpTemplateSize,
  pauseIlpTemplate,
  readIlpBatch,
  resumeIlpTemplate,
  writeIlpTemplate,
} from '../kernels/ilp.js'
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
import { extendShape, type LineShape, type ShapeColumn } from './shape.js'
import type { TemplateIndex } from './template-index.js'

const chunkRowsFirst = 32
const chunkRowsMax = 8192
/** Size limit of a chunk: one of a wide table has fewer rows. */
const chunkBytesMax = 4 * 1024 * 1024
const spareChunksMax = 8

interface Template {
  readonly address: number
  readonly shape: LineShape
  /** Of the shape, tags first. */
  readonly columns: readonly ShapeColumn[]
  /** The chunk with its buffers. */
  chunk: RowChunk | undefined
  /** Rows of the chunk when the kernel last continued. */
  from: number
}

export class LineTarget {
  readonly table: WriterTable
  readonly heap: BatchHeap
  /** Chunks of the current request; rows are added to the last one. */
  readonly chunks: RowChunk[] = []
  private readonly memory: SharedMemory
  private readonly allocator: Allocator
  private readonly spare: RowChunk[] = []
  private readonly index: TemplateIndex<LineTarget> | undefined
  private known: Template | undefined
  /** The table's name in the lines of the template. */
  private lineName = ''
  private epoch: number
  /** The template holds the row count. */
  private running = false

  /** Without an index there is no template. */
  constructor(
    memory: SharedMemory,
    allocator: Allocator,
    table: WriterTable,
    index: TemplateIndex<LineTarget> | undefined,
  ) {
    this.memory = memory
    this.allocator = allocator
    this.table = table
    this.index = index
    this.epoch = table.shapeEpoch
    this.heap = new BatchHeap(memory, allocator)
  }

  /** Address of the template; 0: none. */
  get template(): number {
    return this.known?.address ?? 0
  }

  /** Name by which lines of the template find the table. */
  get name(): string {
    return this.lineName
  }

  /** Rows of the request so far. */
  get rows(): number {
    const rows = this.chunks.reduce((sum, chunk) => sum + chunk.rows, 0)
    const { known } = this
    if (!this.running || known?.chunk === undefined) return rows
    return rows - known.chunk.rows + readIlpBatch(this.memory, known.address).rows
  }

  /** Removes rows, by their numbers among all rows; every column has its values. */
  drop(memory: SharedMemory, rows: ReadonlySet<number>): void {
    if (rows.size > 0) dropChunkRows(memory, this.chunks, rows)
  }

  /** Updates the chunk with the rows that the kernel added, which adds no more until resume(). */
  sync(): void {
    const { known } = this
    const chunk = known?.chunk
    if (!this.running || known === undefined || chunk === undefined) return
    this.running = false
    pauseIlpTemplate(this.memory, known.address)
    const batch = readIlpBatch(this.memory, known.address)
    assert(batch.rows >= chunk.rows, 'K3: the line kernel only adds rows')
    assert(batch.rows <= chunk.capacity, 'K3: the line kernel fills no more rows than a chunk has')
    if (batch.rows === chunk.rows) return
    Object.assign(chunk, batch)
    for (let index = 0; index < known.columns.length; index++) {
      if (!hasIlpValues(this.memory, known.address, index)) continue
      const column = nonNull(chunk.columns.get(nonNull(known.columns[index]).id))
      settleColumn(this.memory, column, known.from)
      column.filled = chunk.rows
    }
    nonNull(chunk.columns.get(this.table.schema.timestampId)).filled = chunk.rows
  }

  /** Lets the kernel continue after the rows of the chunk. Throws ResourceError. */
  resume(): void {
    this.refresh()
    const { known } = this
    if (known === undefined) return
    const chunk = this.currentChunk()
    if (known.chunk !== chunk) this.bind(known, chunk)
    settleColumn(this.memory, nonNull(chunk.columns.get(this.table.schema.timestampId)), chunk.rows)
    known.from = chunk.rows
    resumeIlpTemplate(this.memory, known.address, chunk, chunk.capacity)
    this.running = true
  }

  /** Adds the columns of a line to the template. `name`: the table's in the line. Call sync() before and resume() after. */
  learn(line: LineShape, name: string): void {
    this.refresh()
    const { known, index } = this
    assert(!this.running, 'R4: a template changes between its rows')
    const shape = known === undefined ? line : extendShape(known.shape, line)
    this.lineName = name
    if (index === undefined || shape === known?.shape) return
    const { timestampId } = this.table.schema
    const form = { ...shape, nanos: this.table.columnById(timestampId).type.name === 'TIMESTAMP_NS' }
    index.reserve()
    const address = this.allocator.allocateOrThrow(ilpTemplateSize(form), budgets.ingest)
    writeIlpTemplate(this.memory, address, form)
    index.add(address, this)
    if (known !== undefined) this.forgetTemplate()
    this.known = { address, shape, columns: [...shape.tags, ...shape.fields], chunk: undefined, from: 0 }
  }

  /** Makes room for a symbol in the dictionary of a column of the template, given by its number there. */
  growDictionary(column: number, bytes: number): void {
    this.table.dictionary(nonNull(this.known?.columns[column]).id).grow(bytes)
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
    this.forgetTemplate()
  }

  /** Drops all learnt and cached state because column ids may have changed. Never called within a request. */
  private refresh(): void {
    if (this.epoch === this.table.shapeEpoch) return
    assert(this.chunks.length === 0, 'R4: a table changes between requests')
    this.forgetTemplate()
    this.epoch = this.table.shapeEpoch
    for (const chunk of this.spare.splice(0)) freeChunk(this.allocator, chunk)
  }

  private freeChunk(chunk: RowChunk): void {
    freeChunk(this.allocator, chunk)
    if (this.known?.chunk === chunk) this.known.chunk = undefined
  }

  private nextCapacity(last: RowChunk | undefined): number {
    const rows = last === undefined ? chunkRowsFirst : Math.min(chunkRowsMax, last.capacity * 4)
    const byBytes = Math.floor(chunkBytesMax / (8 * this.table.schema.columns.length))
    return Math.max(chunkRowsFirst, Math.min(rows, byBytes))
  }

  private bind(template: Template, chunk: RowChunk): void {
    const buffers = template.columns.map(({ id, type }) => ({
      values: chunkColumn(this.allocator, chunk, id, type).address,
      dictionary: type.name === 'SYMBOL' ? this.table.dictionary(id).address : 0,
    }))
    const timestamp = this.table.columnById(this.table.schema.timestampId)
    const timestamps = chunkColumn(this.allocator, chunk, timestamp.id, timestamp.type).address
    bindIlpTemplate(this.memory, template.address, buffers, timestamps)
    template.chunk = chunk
  }

  private forgetTemplate(): void {
    const { known } = this
    if (known === undefined) return
    this.known = undefined
    this.running = false
    this.index?.remove(known.address)
    this.allocator.free(known.address)
  }
}
