// A piece in slices of at most a vector's rows, restricted to exact ranges of time and to rows that live. The filter of
// the scan reads its own columns first; the others are touched only where a row passed.

import { assert } from '../../base/assert.js'
import type { TimeRange } from '../../sql/plan/plan.js'
import { type DataType, widthOf } from '../../types/column-types.js'
import { codedColumn } from '../batch/coded-texts.js'
import type { ExecContext } from '../batch/context.js'
import { Gathered, selectRows } from '../batch/selection.js'
import { type Batch, batchRowsMax, type Vector } from '../batch/vector.js'
import { compileFilter, type RowFilter } from '../expression/row-filter.js'
import { type ListedRows, listedRows, sparseShare } from './listed-rows.js'
import { covers, type Piece } from './pieces.js'
import type { ScanShape } from './scan-shape.js'

/** Rows that an operator above can use at all, known better and better while the scan goes on. */
export interface WantedRows {
  /** Columns of the scan that tell. */
  readonly columns: readonly number[]
  /** Whether no row of the piece is wanted. */
  skips(piece: Piece): boolean
  /** Writes ascending row numbers (u32) of the wanted rows; returns how many, -1 when all are. */
  select(vectors: readonly Vector[], rows: number, out: number): number
}

/** A scan of fewer pieces finds them decoded when it comes again: small queries count microseconds. */
export const longScanPieces = 16
const symbolBytes = 4
const byteType: DataType = { name: 'BYTE', a: 0, b: 0 }

/**
 * How a scan reads pages. `kept`: as others may ask for them, too. `long`: many pieces one behind the other, symbols need
 * not be kept decoded. `once`: all of every piece, and nobody else is likely to.
 */
export type PageReads = 'kept' | 'long' | 'once'

const fills: Record<PageReads, FillColumn | null> = {
  kept: null,
  long: (piece, columnId, room) => piece.unpack(columnId, room(piece.rows * symbolBytes), symbolBytes),
  once: (piece, columnId, room) => piece.decode(columnId, room),
}

/** Rows [from, to) of a piece. */
export interface Slice {
  readonly from: number
  readonly to: number
}

export class SliceReader {
  readonly #context: ExecContext
  readonly #shape: ScanShape
  readonly #dictionaries: readonly number[]
  readonly #filter: RowFilter | null
  readonly #listed: ListedRows | null
  readonly #gathered: Gathered
  readonly #wanted: WantedRows | null
  readonly #own: PageColumns | null
  readonly #bytes: PageColumns
  readonly #once: boolean
  readonly #index: number
  readonly #mask: number
  #kept = 0

  constructor(context: ExecContext, shape: ScanShape, reads: PageReads = 'kept', wanted: WantedRows | null = null) {
    this.#context = context
    this.#shape = shape
    const dictionaries = new Map(shape.snapshot.version.dictionaries)
    this.#dictionaries = shape.columnIds.map((id) => dictionaries.get(id) ?? 0)
    this.#filter =
      shape.filter === null
        ? null
        : compileFilter(context, shape.filter, {
            types: shape.types,
            dictionaryOf: (column) => this.#dictionaries[column] as number,
          })
    this.#listed = listedRows(context, shape)
    this.#gathered = new Gathered(context, shape.types)
    this.#wanted = wanted
    this.#once = reads === 'once'
    const fill = fills[reads]
    this.#own = fill === null ? null : new PageColumns(context, fill)
    this.#bytes = new PageColumns(context, (piece, columnId, room) => narrowed(context, piece, columnId, room))
    this.#index = context.space.take(batchRowsMax * 4)
    this.#mask = context.space.take(batchRowsMax)
  }

  /** Parts of the piece that can hold rows of the ranges: exact for sorted pieces. */
  slices(piece: Piece): Slice[] {
    const { ranges, snapshot } = this.#shape
    const { timestampId } = snapshot.version.schema
    if (!piece.sorted || covers(ranges, piece.minTs, piece.maxTs)) return [{ from: 0, to: piece.rows }]
    const { lowerBound, upperBound } = this.#context.kernels.sort
    const ts = piece.column(timestampId)
    return (ranges ?? []).flatMap(({ lo, hi }) => {
      const from = lowerBound(ts, 0, piece.rows, lo)
      const to = upperBound(ts, from, piece.rows, hi)
      return from < to ? [{ from, to }] : []
    })
  }

  /**
   * Column vectors from a row of a piece on; only the listed columns, or all. `pages`: readable for a whole page. Behind
   * the columns of the scan come the same ones once more, as bytes, for symbols whose numbers are so small.
   */
  vectors(piece: Piece, from: number, only: readonly number[] | null, pages = false): Vector[] {
    const vectors: Vector[] = []
    const { types } = this.#shape
    if (only === null)
      for (let column = 0; column < types.length; column++) vectors.push(this.#vector(piece, from, column, pages))
    else for (const column of only) vectors[column] = this.#vector(piece, from, column, pages)
    return vectors
  }

  /** Gives back what holds pages; the next call reads them again. */
  rest(): void {
    this.#own?.clear()
    this.#bytes.clear()
    this.#gathered.clear()
  }

  dictionaryOf(column: number): number {
    return this.#dictionaries[column] as number
  }

  #vector(piece: Piece, from: number, column: number, pages: boolean): Vector {
    const { space } = this.#context
    const { types } = this.#shape
    if (column >= types.length) return this.#narrowVector(piece, from, column - types.length)
    const type = types[column] as DataType
    const columnId = this.#shape.columnIds[column] as number
    const coded = this.#once ? undefined : codedColumn(piece, columnId, type, from)
    if (coded !== undefined) return coded
    const own = this.#once || type.name === 'SYMBOL' ? (this.#own?.column(piece, columnId) ?? 0) : 0
    const address = own === 0 ? piece.column(columnId) : own
    return {
      type,
      address: address === 0 ? (pages ? space.pageOfNulls(type) : space.nulls(type)) : address + from * widthOf(type),
      dictionary: this.#dictionaries[column] as number,
    }
  }

  #narrowVector(piece: Piece, from: number, column: number): Vector {
    const address = this.#bytes.column(piece, this.#shape.columnIds[column] as number)
    assert(address !== 0, 'there is room for columns of bytes')
    return { type: byteType, address: address + from, dictionary: this.#dictionaries[column] as number }
  }

  /** The rows of [from, to), at most a vector's, that are in the result; null when there are none. */
  read(piece: Piece, from: number, to: number): Batch | null {
    const rows = to - from
    const mask = this.#rowMask(piece, from, rows)
    const whole = this.#filter === null && mask === 0
    const found = whole ? rows : this.#select(piece, from, rows, mask)
    const count = this.#wanted === null || found === 0 ? found : this.#narrow(this.#wanted, piece, from, rows, found)
    if (count === 0) return null
    if (count === rows) return { rows, vectors: this.vectors(piece, from, null) }
    if (count * sparseShare > rows) return this.#gathered.gather(this.vectors(piece, from, null), this.#index, count)
    return { rows: count, vectors: this.#shape.types.map((_, column) => this.#sparse(piece, from, column, count)) }
  }

  /** Of the rows found, all or those of the index, the wanted ones; returns how many. */
  #narrow(wanted: WantedRows, piece: Piece, from: number, rows: number, found: number): number {
    if (found === rows) {
      const count = wanted.select(this.vectors(piece, from, wanted.columns), rows, this.#index)
      return count < 0 ? rows : count
    }
    const vectors: Vector[] = []
    for (const column of wanted.columns) {
      vectors[column] =
        found * sparseShare > rows
          ? this.#gathered.column(this.#vector(piece, from, column, false), column, this.#index, found)
          : this.#sparse(piece, from, column, found)
    }
    if (this.#kept === 0) this.#kept = this.#context.space.take(batchRowsMax * 4)
    const count = wanted.select(vectors, found, this.#kept)
    if (count < 0) return found
    // In place: the row kept as the n-th is the n-th or a later one of those found.
    this.#context.kernels.sort.gather(4, this.#index, this.#kept, count, this.#index)
    return count
  }

  /** A column of the selected rows: picked out of its page where that need not be decoded for it. */
  #sparse(piece: Piece, from: number, column: number, count: number): Vector {
    const type = this.#shape.types[column] as DataType
    const address = this.#gathered.room(column, count)
    if (piece.pick(this.#shape.columnIds[column] as number, this.#index, from, count, address)) {
      return { type, address, dictionary: this.#dictionaries[column] as number }
    }
    return this.#gathered.column(this.#vector(piece, from, column, false), column, this.#index, count)
  }

  #select(piece: Piece, from: number, rows: number, mask: number): number {
    const { memory } = this.#context
    if (this.#filter === null) return selectRows(memory, mask, rows, this.#index)
    const values = (column: number, found: number): Vector => this.#sparse(piece, from, column, found)
    const listed = this.#listed?.select(piece, from, rows, this.#index, values) ?? -1
    const count =
      listed < 0 ? this.#filter.select(this.vectors(piece, from, this.#filter.columns), rows, this.#index) : listed
    if (mask === 0) return count
    const { u8, u32 } = memory
    const first = this.#index >>> 2
    let kept = 0
    for (let at = first; at < first + count; at++) {
      const row = u32[at]!
      u32[first + kept] = row
      kept += u8[mask + row]!
    }
    return kept
  }

  /** Bytes 0 and 1: in the ranges, and not replaced by a visible row. 0 when all rows are. */
  #rowMask(piece: Piece, from: number, rows: number): number {
    const { ranges, snapshot } = this.#shape
    const dead = piece.superseded !== 0
    const timed = !piece.sorted && !covers(ranges, piece.minTs, piece.maxTs)
    if (!dead && !timed) return 0
    const { u8, u32, i64 } = this.#context.memory
    u8.fill(1, this.#mask, this.#mask + rows)
    if (timed) {
      const ts = (piece.column(snapshot.version.schema.timestampId) >>> 3) + from
      for (let row = 0; row < rows; row++) if (!inRanges(ranges, i64[ts + row]!)) u8[this.#mask + row] = 0
    }
    if (dead) {
      const by = (piece.superseded >>> 2) + from
      for (let row = 0; row < rows; row++) {
        const replacement = u32[by + row]!
        if (replacement !== 0 && replacement - 1 < piece.visibleRows) u8[this.#mask + row] = 0
      }
    }
    return this.#mask
  }
}

/** Symbols as bytes. */
function narrowed(
  { memory, kernels }: ExecContext,
  piece: Piece,
  columnId: number,
  room: (bytes: number) => number,
): true {
  const target = room(piece.rows)
  if (piece.unpack(columnId, target, 1)) return true
  const wide = piece.column(columnId)
  if (wide === 0) memory.i8.fill(-1, target, target + piece.rows)
  else kernels.parquet.narrow(wide, piece.rows, 1, target)
  return true
}

function inRanges(ranges: readonly TimeRange[] | null, value: bigint): boolean {
  return ranges === null || ranges.some(({ lo, hi }) => value >= lo && value <= hi)
}

// Columns of the piece that a thread reads just now, in memory of its query instead of the chunk cache: filling that costs
// page faults and drives out what others read often.

/** What a reader of a page may touch behind it. */
const readAheadBytes = 128
/** Of all columns together; those of wider tables are read through the cache. */
const bytesMax = 32 * 1024 * 1024

/** Writes a column of the piece to the room that it asks for; false: the piece has it at an address of its own. */
type FillColumn = (piece: Piece, columnId: number, room: (bytes: number) => number) => boolean

interface Area {
  address: number
  bytes: number
  piece: Piece
  done: boolean
}

class PageColumns {
  readonly #context: ExecContext
  readonly #fill: FillColumn
  readonly #areas = new Map<number, Area>()
  #bytes = 0

  constructor(context: ExecContext, fill: FillColumn) {
    this.#context = context
    this.#fill = fill
  }

  /** 0: the piece has the column at an address of its own. */
  column(piece: Piece, columnId: number): number {
    let area = this.#areas.get(columnId)
    if (area === undefined) {
      if (this.#bytes > bytesMax) return 0
      area = { address: 0, bytes: 0, piece, done: false }
      this.#areas.set(columnId, area)
    } else if (area.piece === piece) return area.done ? area.address : 0
    const own = area
    own.piece = piece
    own.done = false
    own.done = this.#fill(piece, columnId, (bytes) => this.#room(own, bytes))
    return own.done ? own.address : 0
  }

  /** Gives all areas back. */
  clear(): void {
    for (const { address } of this.#areas.values()) if (address !== 0) this.#context.space.give(address)
    this.#areas.clear()
    this.#bytes = 0
  }

  #room(area: Area, bytes: number): number {
    if (area.bytes >= bytes) return area.address
    const { space } = this.#context
    if (area.address !== 0) space.give(area.address)
    this.#bytes += bytes - area.bytes
    area.bytes = bytes
    area.address = space.take(bytes + readAheadBytes)
    return area.address
  }
}
