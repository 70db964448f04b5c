// Staged batch of one table for the current line-protocol request, and the templates with which the kernel writes
// into it.
//
// One template of a table is active at a time; all write to the same morsel, so rows stay in line order. While the
// kernel runs, the template holds the row count; sync() copies it to the morsel, resume() back to the template.
//
// Invariant: after sync(), a column of the active shape is filled up to the morsel's row count.

import { assert } from '../base/assert.js'
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
  freePiece,
  newPiece,
  noteTimestamp,
  ownTexts,
  type Piece,
  type PieceColumn,
  pieceColumn,
  resetPiece,
  settleColumn,
} from '../storage/writer/writer-batch.js'
import type { WriterTable } from '../storage/writer/writer-table.js'
import { type ShapeColumn, shapeKey } from './shape.js'

const pieceRowsFirst = 32
const pieceRowsMax = 8192
/** Size limit of a morsel: one of a wide table has fewer rows. */
const pieceBytesMax = 4 * 1024 * 1024
const sparePiecesMax = 8
const shapesMax = 32

interface Template {
  readonly address: number
  readonly columns: readonly ShapeColumn[]
  /** The morsel that its column addresses refer to. */
  piece: Piece | undefined
}

export class LineTarget {
  readonly table: WriterTable
  readonly heap: BatchHeap
  /** Morsels of the current request; rows are added to the last one. */
  readonly pieces: Piece[] = []
  private readonly memory: SharedMemory
  private readonly allocator: Allocator
  private readonly spare: Piece[] = []
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
    return this.pieces.reduce((sum, piece) => sum + piece.rows, 0)
  }

  /** Updates the morsel with the rows that the kernel added. */
  sync(): void {
    const piece = this.active?.piece
    if (!this.running || this.active === undefined || piece === undefined) return
    this.running = false
    const batch = readIlpBatch(this.memory, this.active.address)
    assert(batch.rows >= piece.rows, 'K3: the line kernel only adds rows')
    assert(batch.rows <= piece.capacity, 'K3: the line kernel fills no more rows than a piece has')
    if (batch.rows === piece.rows) return
    piece.rows = batch.rows
    piece.minTs = batch.minTs
    piece.maxTs = batch.maxTs
    piece.sorted = batch.sorted
    piece.lastTs = this.memory.i64[(this.active.address + layout.templateLastTs) >>> 3]!
    for (const { id } of this.active.columns) (piece.columns.get(id) as PieceColumn).filled = piece.rows
    ;(piece.columns.get(this.table.schema.timestampId) as PieceColumn).filled = piece.rows
  }

  /** Lets the kernel continue after the rows of the morsel. Throws ResourceError. */
  resume(): void {
    this.refresh()
    const template = this.active
    if (template === undefined) return
    const piece = this.currentPiece()
    if (template.piece !== piece) this.bind(template, piece)
    for (const { id } of template.columns) settleColumn(this.memory, piece.columns.get(id) as PieceColumn, piece.rows)
    settleColumn(this.memory, piece.columns.get(this.table.schema.timestampId) as PieceColumn, piece.rows)
    const { u32, i64 } = this.memory
    u32[(template.address + layout.templateRows) >>> 2] = piece.rows
    u32[(template.address + layout.templateNext) >>> 2] = template.address
    u32[(template.address + layout.templateSorted) >>> 2] = piece.sorted ? 1 : 0
    i64[(template.address + layout.templateMinTs) >>> 3] = piece.minTs
    i64[(template.address + layout.templateMaxTs) >>> 3] = piece.maxTs
    i64[(template.address + layout.templateLastTs) >>> 3] = piece.lastTs
    this.running = true
  }

  /** Activates the shape. Call sync() before and resume() after. */
  activate(columns: readonly ShapeColumn[] | undefined): void {
    if (columns === undefined || columns.length === 0) return
    const key = shapeKey(columns)
    let template = this.templates.get(key)
    if (template === undefined) {
      if (this.templates.size >= shapesMax) this.forgetShapes()
      template = { address: this.allocator.demand(ilpTemplateSize(columns), budgets.ingest), columns, piece: undefined }
      this.templates.set(key, template)
    }
    this.active = template
  }

  /** The morsel for the next row; a new one when the last is full. Throws ResourceError. */
  currentPiece(): Piece {
    this.refresh()
    const last = this.pieces.at(-1)
    if (last !== undefined && last.rows < last.capacity) return last
    const piece = this.spare.pop() ?? newPiece(this.nextCapacity(last))
    assert(piece.rows === 0, 'R4: rows of an earlier request are gone')
    this.pieces.push(piece)
    return piece
  }

  /** The morsel's column, NULL up to the next row. */
  columnFor(piece: Piece, id: number): PieceColumn {
    const column = pieceColumn(this.allocator, piece, id, this.table.columnById(id).type)
    settleColumn(this.memory, column, piece.rows)
    return column
  }

  /** Ends a row that the general path wrote. */
  endRow(piece: Piece, ts: bigint): void {
    const column = this.columnFor(piece, this.table.schema.timestampId)
    this.memory.i64[(column.address >>> 3) + piece.rows] = ts
    column.filled = piece.rows + 1
    piece.rows++
    noteTimestamp(piece, ts)
  }

  /** Copies data out of the ingest ring before its bytes are released. */
  own(): void {
    for (const piece of this.pieces) ownTexts(this.memory, this.heap, piece)
  }

  /** Empties the batch. The largest morsels are kept for the next request. */
  reset(): void {
    this.spare.push(...this.pieces.splice(0))
    this.spare.sort((a, b) => a.capacity - b.capacity)
    while (this.spare.length > sparePiecesMax) this.freePiece(this.spare.shift() as Piece)
    for (const piece of this.spare) resetPiece(piece)
    this.running = false
    this.heap.reset()
  }

  free(): void {
    this.reset()
    for (const piece of this.spare.splice(0)) freePiece(this.allocator, piece)
    this.heap.free()
    this.forgetShapes()
  }

  /** Drops all learnt and cached state because column ids may have changed. Never called within a request. */
  private refresh(): void {
    if (this.epoch === this.table.shapeEpoch) return
    assert(this.pieces.length === 0, 'R4: a table changes between requests')
    this.forgetShapes()
    for (const piece of this.spare.splice(0)) freePiece(this.allocator, piece)
  }

  private freePiece(piece: Piece): void {
    freePiece(this.allocator, piece)
    for (const template of this.templates.values()) if (template.piece === piece) template.piece = undefined
  }

  private nextCapacity(last: Piece | undefined): number {
    const rows = last === undefined ? pieceRowsFirst : Math.min(pieceRowsMax, last.capacity * 4)
    const byBytes = Math.floor(pieceBytesMax / (8 * this.table.schema.columns.length))
    return Math.max(pieceRowsFirst, Math.min(rows, byBytes))
  }

  private bind(template: Template, piece: Piece): void {
    const columns: IlpColumn[] = template.columns.map(({ id, key, kind, type }) => ({
      key,
      kind,
      values: pieceColumn(this.allocator, piece, id, type).address,
      dictionary: type.name === 'SYMBOL' ? this.table.dictionary(id).address : 0,
    }))
    const timestamp = this.table.columnById(this.table.schema.timestampId)
    const timestamps = pieceColumn(this.allocator, piece, timestamp.id, timestamp.type).address
    if (template.piece === undefined) {
      const nanos = timestamp.type.name === 'TIMESTAMP_NS'
      writeIlpTemplate(this.memory, template.address, { columns, maxRows: piece.capacity, timestamps, nanos })
    } else {
      this.rebind(template.address, columns, piece.capacity, timestamps)
    }
    template.piece = piece
  }

  /** Updates the addresses only. */
  private rebind(address: number, columns: readonly IlpColumn[], maxRows: number, timestamps: number): void {
    assert(maxRows > 0, 'K2: a piece has room for rows')
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
