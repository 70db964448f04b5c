// SliceReader: reads a morsel (memtable block or page) and returns the rows that a scan wants, as batches. It reads a
// slice of the morsel of at most the length of a batch, drops rows outside of the time ranges, rows that later
// transactions have removed or replaced, and rows that fail the filter, and gathers the rest. The filter's columns are
// read first; other columns are read only if some row has passed. vectors() returns columns without dropping rows, for
// generated code.

import { assert } from '../../base/assert.js'
import type { TimeRange } from '../../sql/plan/plan.js'
import { dictionariesOf } from '../../storage/schema/schema.js'
import { type DataType, widthOf } from '../../types/column-types.js'
import { contains } from '../../types/interval.js'
import type { ExecContext } from '../batch/context.js'
import { dictionaryColumn } from '../batch/dictionary-strings.js'
import type { QueryArena } from '../batch/query-arena.js'
import { GatheredBatch, selectRows } from '../batch/selection.js'
import { type Batch, batchRowsMax, type Vector } from '../batch/vector.js'
import { compileFilter, type RowFilter } from '../expression/row-filter.js'
import { type IndexedRows, indexedRows, passingOf, sparseShare } from './indexed-rows.js'
import { covers, type ScanMorsel } from './morsels.js'
import type { ScanShape } from './scan-shape.js'
import { type SearchedKeys, wantedKeys } from './wanted-keys.js'

/**
 * Rows that the operator above can still use, for example below the bound of a top-N sort. The bound may tighten during
 * the scan.
 */
export interface WantedRows {
  /** Columns of the scan that decide about a row. */
  readonly columns: readonly number[]
  /** Whether the morsel has no usable row. */
  skips(morsel: ScanMorsel): boolean
  /** Writes the ascending numbers (u32) of usable rows to `out`; returns how many, -1 when all are. */
  select(vectors: readonly Vector[], rows: number, out: number): number
}

/** A scan of fewer morsels leaves its pages decoded in the chunk cache, for the next small query. */
export const longScanMorsels = 16
const symbolBytes = 4
const byteType: DataType = { name: 'BYTE', a: 0, b: 0 }

/**
 * How a scan reads pages. `cached`: through the chunk cache, for later queries. `long`: many morsels, whose symbol
 * columns are not kept decoded. `once`: every row of each morsel is read, and other queries are unlikely to read the
 * pages, so they bypass the cache.
 */
export type PageReads = 'cached' | 'long' | 'once'

const fills: Record<PageReads, FillColumn | null> = {
  cached: null,
  long: (morsel, columnId, room) => morsel.unpack(columnId, room(morsel.rows * symbolBytes), symbolBytes),
  once: (morsel, columnId, room) => morsel.decode(columnId, room),
}

/** Rows [from, to) of a morsel. */
export interface Slice {
  readonly from: number
  readonly to: number
}

/** Slices of a morsel that are read one by one. */
const slicesMax = 8

export class SliceReader {
  /** The keys that the filter looks for. */
  readonly keys: SearchedKeys | null
  readonly #context: ExecContext
  readonly #shape: ScanShape
  readonly #dictionaries: readonly number[]
  readonly #filter: RowFilter | null
  readonly #indexed: IndexedRows | null
  readonly #gathered: GatheredBatch
  readonly #wanted: WantedRows | null
  readonly #own: PageColumns | null
  readonly #bytes: PageColumns
  readonly #once: boolean
  readonly #index: number
  readonly #mask: number
  #cached = 0
  /** Rows in the time ranges, of a morsel whose ranges are read as one. */
  #cuts: { readonly morsel: ScanMorsel; readonly slices: readonly Slice[] } | null = null

  constructor(context: ExecContext, shape: ScanShape, reads: PageReads = 'cached', wanted: WantedRows | null = null) {
    this.#context = context
    this.#shape = shape
    const dictionaries = dictionariesOf(shape.snapshot.version)
    this.#dictionaries = shape.columnIds.map((id) => dictionaries.get(id) ?? 0)
    this.#filter =
      shape.filter === null
        ? null
        : compileFilter(context, shape.filter, {
            types: shape.types,
            dictionaryOf: (column) => this.#dictionaries[column] as number,
          })
    this.#indexed = indexedRows(context, shape)
    this.keys = wantedKeys(context, shape)
    this.#gathered = new GatheredBatch(context, shape.types)
    this.#wanted = wanted
    this.#once = reads === 'once'
    const fill = fills[reads]
    const { arena } = context
    const ownMax = Math.min(bytesMax, arena.limit / memoryParts)
    const isFull = (bytes: number): boolean => bytes > ownMax || arena.short
    this.#own = fill === null ? null : new PageColumns(arena, fill, isFull)
    this.#bytes = new PageColumns(
      arena,
      (morsel, columnId, room) => narrowed(context, morsel, columnId, room),
      () => false,
    )
    this.#index = context.arena.take(batchRowsMax * 4)
    this.#mask = context.arena.take(batchRowsMax)
  }

  /** The row ranges of a morsel that may be in the time ranges; exact for sorted morsels. */
  slices(morsel: ScanMorsel): Slice[] {
    const { ranges, snapshot } = this.#shape
    const { timestampId } = snapshot.version.schema
    if (!morsel.sorted || covers(ranges, morsel.minTs, morsel.maxTs)) return [{ from: 0, to: morsel.rows }]
    const { lowerBound, upperBound } = this.#context.kernels.sort
    const ts = morsel.column(timestampId)
    const near = (ranges ?? []).filter(({ lo, hi }) => lo <= morsel.maxTs && hi >= morsel.minTs)
    return near.flatMap(({ lo, hi }) => {
      const from = lowerBound(ts, 0, morsel.rows, lo)
      const to = upperBound(ts, from, morsel.rows, hi)
      return from < to ? [{ from, to }] : []
    })
  }

  /** The same for read(), in at most some slices: batches of many short ranges would cost more than their rows. */
  longSlices(morsel: ScanMorsel): Slice[] {
    const slices = this.slices(morsel)
    this.#cuts = null
    const [first, last] = [slices[0], slices.at(-1)]
    if (slices.length <= slicesMax || first === undefined || last === undefined) return slices
    this.#cuts = { morsel, slices }
    return [{ from: first.from, to: last.to }]
  }

  /**
   * Column vectors of a morsel from row `from` on: the columns in `only`, or all if it is null. `pages`: the vectors
   * can be read for a whole page. Behind the columns of the scan, the same columns can be read as bytes, for symbols
   * whose ids fit.
   */
  vectors(morsel: ScanMorsel, from: number, only: readonly number[] | null, pages = false): Vector[] {
    const vectors: Vector[] = []
    const { types } = this.#shape
    if (only === null)
      for (let column = 0; column < types.length; column++) vectors.push(this.#vector(morsel, from, column, pages))
    else for (const column of only) vectors[column] = this.#vector(morsel, from, column, pages)
    return vectors
  }

  /** Unpins pages and frees buffers; the next call reads the pages again. */
  goIdle(): void {
    this.#own?.clear()
    this.#bytes.clear()
    this.#gathered.clear()
  }

  dictionaryOf(column: number): number {
    return this.#dictionaries[column] as number
  }

  #vector(morsel: ScanMorsel, from: number, column: number, pages: boolean): Vector {
    const { arena } = this.#context
    const { types } = this.#shape
    if (column >= types.length) return this.#narrowVector(morsel, from, column - types.length)
    const type = types[column] as DataType
    const columnId = this.#shape.columnIds[column] as number
    const encoded = this.#once ? undefined : dictionaryColumn(morsel, columnId, type, from)
    if (encoded !== undefined) return encoded
    const own = this.#once || type.name === 'SYMBOL' ? (this.#own?.column(morsel, columnId) ?? 0) : 0
    const address = own === 0 ? morsel.column(columnId) : own
    return {
      type,
      address: address === 0 ? (pages ? arena.pageOfNulls(type) : arena.nulls(type)) : address + from * widthOf(type),
      dictionary: this.#dictionaries[column] as number,
    }
  }

  #narrowVector(morsel: ScanMorsel, from: number, column: number): Vector {
    const address = this.#bytes.column(morsel, this.#shape.columnIds[column] as number)
    assert(address !== 0, 'A1: a column of bytes is in memory')
    return { type: byteType, address: address + from, dictionary: this.#dictionaries[column] as number }
  }

  /** The rows of [from, to), at most a batch, that pass; null when there are none. */
  read(morsel: ScanMorsel, from: number, to: number): Batch | null {
    const rows = to - from
    const passed = this.#filter === null ? rows : this.#filtered(this.#filter, morsel, from, rows)
    if (passed === 0) return null
    const mask = this.#rowMask(morsel, from, rows)
    const whole = this.#filter === null && mask === 0
    const found = whole ? rows : this.#masked(passed, rows, mask)
    const count = this.#wanted === null || found === 0 ? found : this.#narrow(this.#wanted, morsel, from, rows, found)
    if (count === 0) return null
    if (count === rows) return { rows, vectors: this.vectors(morsel, from, null) }
    if (count * sparseShare > rows) return this.#gathered.gather(this.vectors(morsel, from, null), this.#index, count)
    return { rows: count, vectors: this.#shape.types.map((_, column) => this.#sparse(morsel, from, column, count)) }
  }

  /** Reduces the selected rows to usable ones; returns how many. */
  #narrow(wanted: WantedRows, morsel: ScanMorsel, from: number, rows: number, found: number): number {
    if (found === rows) {
      const count = wanted.select(this.vectors(morsel, from, wanted.columns), rows, this.#index)
      return count < 0 ? rows : count
    }
    const vectors: Vector[] = []
    for (const column of wanted.columns) {
      vectors[column] =
        found * sparseShare > rows
          ? this.#gathered.column(this.#vector(morsel, from, column, false), column, this.#index, found)
          : this.#sparse(morsel, from, column, found)
    }
    if (this.#cached === 0) this.#cached = this.#context.arena.take(batchRowsMax * 4)
    const count = wanted.select(vectors, found, this.#cached)
    if (count < 0) return found
    // Safe in place: no row moves to a higher position.
    this.#context.kernels.sort.gather(4, this.#index, this.#cached, count, this.#index)
    return count
  }

  /** A column of the selected rows: read from the encoded page if possible, without decoding all of it. */
  #sparse(morsel: ScanMorsel, from: number, column: number, count: number): Vector {
    const type = this.#shape.types[column] as DataType
    const address = this.#gathered.room(column, count)
    if (morsel.pick(this.#shape.columnIds[column] as number, this.#index, from, count, address)) {
      return { type, address, dictionary: this.#dictionaries[column] as number }
    }
    return this.#gathered.column(this.#vector(morsel, from, column, false), column, this.#index, count)
  }

  /** Selects the rows that pass the filter; returns how many. */
  #filtered(filter: RowFilter, morsel: ScanMorsel, from: number, rows: number): number {
    const values = (column: number, found: number): Vector => this.#sparse(morsel, from, column, found)
    const indexed = this.#indexed?.select(morsel, from, rows, this.#index, values) ?? -1
    if (indexed >= 0) return indexed
    const listed = this.keys?.select(morsel, from, rows, this.#index) ?? -1
    if (listed >= 0) {
      if (this.#cached === 0) this.#cached = this.#context.arena.take(batchRowsMax * 4)
      const found = { out: this.#index, count: listed, retained: this.#cached }
      return passingOf(this.#context.kernels, filter, found, values)
    }
    const count = filter.select(this.vectors(morsel, from, filter.columns), rows, this.#index)
    if (from === 0 && count * sparseShare <= rows) this.keys?.keep(morsel)
    return count
  }

  /** Reduces the rows that have passed the filter, of all without one, by the mask; returns how many are left. */
  #masked(passed: number, rows: number, mask: number): number {
    const { memory } = this.#context
    if (this.#filter === null) return selectRows(memory, mask, rows, this.#index)
    if (mask === 0) return passed
    const { u8, u32 } = memory
    const first = this.#index >>> 2
    let left = 0
    for (let at = first; at < first + passed; at++) {
      const row = u32[at]!
      u32[first + left] = row
      left += u8[mask + row]!
    }
    return left
  }

  /** A mask of bytes 0 and 1: the row is in the time ranges and not replaced by a visible row. 0 when all rows are. */
  #rowMask(morsel: ScanMorsel, from: number, rows: number): number {
    const { ranges, snapshot } = this.#shape
    const dead = morsel.superseded !== 0
    const cuts = this.#cuts?.morsel === morsel ? this.#cuts.slices : null
    const timed = !morsel.sorted && !covers(ranges, morsel.minTs, morsel.maxTs)
    if (!dead && !timed && cuts === null) return 0
    const { u8, u32, i64 } = this.#context.memory
    u8.fill(cuts === null ? 1 : 0, this.#mask, this.#mask + rows)
    for (const slice of cuts ?? []) {
      const [start, end] = [Math.max(slice.from - from, 0), Math.min(slice.to - from, rows)]
      if (start < end) u8.fill(1, this.#mask + start, this.#mask + end)
    }
    if (timed) {
      const ts = (morsel.column(snapshot.version.schema.timestampId) >>> 3) + from
      for (let row = 0; row < rows; row++) if (!inRanges(ranges, i64[ts + row]!)) u8[this.#mask + row] = 0
    }
    if (dead) {
      const by = (morsel.superseded >>> 2) + from
      for (let row = 0; row < rows; row++) {
        const replacement = u32[by + row]!
        if (replacement !== 0 && replacement - 1 < morsel.visibleRows) u8[this.#mask + row] = 0
      }
    }
    return this.#mask
  }
}

/** Decodes a symbol column to one-byte ids. */
function narrowed(
  { memory, kernels }: ExecContext,
  morsel: ScanMorsel,
  columnId: number,
  room: (bytes: number) => number,
): true {
  const target = room(morsel.rows)
  if (morsel.unpack(columnId, target, 1)) return true
  const wide = morsel.column(columnId)
  if (wide === 0) memory.i8.fill(-1, target, target + morsel.rows)
  else kernels.parquet.narrow(wide, morsel.rows, 1, target)
  return true
}

function inRanges(ranges: readonly TimeRange[] | null, value: bigint): boolean {
  return ranges === null || contains(ranges, value)
}

// Decoded columns of the current morsel in memory of the query, instead of the chunk cache: filling the cache would
// cost page faults and evict pages that are read often.

/** Bytes that a reader may touch after a page. */
const readAheadBytes = 128
/** Limit for all columns together; further columns are read through the cache. */
const bytesMax = 32 * 1024 * 1024
/** At most this fraction of the query memory, since many queries may scan at the same time. */
const memoryParts = 16

/**
 * Decodes a column of the morsel to the memory that it requests by `room`; false when the column must be read by
 * column().
 */
type FillColumn = (morsel: ScanMorsel, columnId: number, room: (bytes: number) => number) => boolean

interface Area {
  address: number
  bytes: number
  morsel: ScanMorsel
  done: boolean
}

class PageColumns {
  readonly #arena: QueryArena
  readonly #fill: FillColumn
  readonly #isFull: (bytes: number) => boolean
  readonly #areas = new Map<number, Area>()
  #bytes = 0

  /** `isFull`: whether further columns are read through the cache, given the bytes held. */
  constructor(arena: QueryArena, fill: FillColumn, isFull: (bytes: number) => boolean) {
    this.#arena = arena
    this.#fill = fill
    this.#isFull = isFull
  }

  /** Address of the decoded column; 0 when it must be read by column(). */
  column(morsel: ScanMorsel, columnId: number): number {
    let area = this.#areas.get(columnId)
    if (area === undefined) {
      if (this.#isFull(this.#bytes)) return 0
      area = { address: 0, bytes: 0, morsel, done: false }
      this.#areas.set(columnId, area)
    } else if (area.morsel === morsel) return area.done ? area.address : 0
    const own = area
    own.morsel = morsel
    own.done = false
    own.done = this.#fill(morsel, columnId, (bytes) => this.#room(own, bytes))
    return own.done ? own.address : 0
  }

  /** Frees all memory. */
  clear(): void {
    for (const { address } of this.#areas.values()) if (address !== 0) this.#arena.give(address)
    this.#areas.clear()
    this.#bytes = 0
  }

  #room(area: Area, bytes: number): number {
    if (area.bytes >= bytes) return area.address
    if (area.address !== 0) this.#arena.give(area.address)
    this.#bytes -= area.bytes
    area.bytes = 0
    area.address = 0
    area.address = this.#arena.take(bytes + readAheadBytes)
    area.bytes = bytes
    this.#bytes += bytes
    return area.address
  }
}
