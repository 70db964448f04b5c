// ColumnReader: reads one column of a Parquet file that another program wrote. It decodes the pages of a row group one
// by one to vectors in memory. Decoded rows stay valid until the next page is loaded. A leaf of a nested column is read
// by it, too, but its pages are passed on with their levels (nested-reader.ts).

import { type Allocator, budgets } from '../memory/budgets.js'
import type { SharedMemory } from '../memory/shared-memory.js'
import { encodings } from '../storage/part/parquet-types.js'
import { Scratch } from '../storage/part/part-scratch.js'
import type { ForeignCodecs } from './codecs.js'
import type { ForeignChunk } from './footer.js'
import { type ForeignColumn, physical, valueBytes } from './foreign-column.js'
import type { ForeignFile, ForeignPlace } from './foreign-file.js'
import { type ArrayRows, ListAssembler, type ListPage } from './lists.js'
import { type ForeignPage, PageReader } from './pages.js'
import {
  decodeValues,
  type EncodedValues,
  type ForeignDictionary,
  spreadNulls,
  type ValueTools,
  wordAt,
} from './values.js'

export interface ColumnTools extends ForeignCodecs {
  readonly memory: SharedMemory
  readonly allocator: Allocator
  readonly file: ForeignFile
  /** Scratch memory shared by all columns, for one page at a time. */
  readonly shared: Scratch
}

/** Reads the rows of a column. */
export interface RowReader {
  readonly column: ForeignColumn
  /** Starts a row group. `chunks`: of the leaves of the column. */
  open(chunks: readonly ForeignChunk[], rows: number, place: ForeignPlace): void
  /** Rows that are decoded and not taken yet. */
  readonly ready: number
  take(rows: number): number
  /**
   * Decodes more, which may complete no row. Call only when no rows are ready; throws SqlError when there is nothing
   * left.
   */
  load(): void
  release(): void
}

export class ColumnReader implements RowReader {
  readonly column: ForeignColumn
  readonly #tools: ValueTools
  readonly #codecs: ForeignCodecs
  readonly #scratch: Scratch
  /** Gets the pages of a leaf; null: they become rows. */
  readonly #pass: ((page: ListPage) => void) | null
  #pages: PageReader | null = null
  #place: ForeignPlace = {}
  #dictionary: ForeignDictionary | null = null
  #lists: ListAssembler | null = null
  /** Values of the chunk that no page has provided yet. */
  #valuesLeft = 0
  #address = 0
  #rows = 0
  #taken = 0

  constructor(tools: ColumnTools, column: ForeignColumn, pass: ((page: ListPage) => void) | null = null) {
    const { memory, allocator, file, shared, parquet, foreign } = tools
    this.column = column
    this.#pass = pass
    this.#scratch = new Scratch(memory, allocator, budgets.queries)
    this.#codecs = tools
    this.#tools = { file, parquet, foreign, scratch: this.#scratch, shared }
  }

  open([chunk]: readonly ForeignChunk[], rows: number, place: ForeignPlace): void {
    const { file } = this.#tools
    const { column } = this
    if (chunk === undefined) throw file.error('a row group lacks the column', place)
    if (chunk.physical !== column.physical)
      throw file.error(`a row group has values of type ${chunk.physical} instead of ${column.physical}`, place)
    if (column.repetition === 0 && chunk.values !== rows)
      throw file.error(`a row group of ${rows} rows has ${chunk.values} values of the column`, place)
    this.#pages = new PageReader({ ...this.#tools, codecs: this.#codecs }, chunk, place)
    this.#place = place
    this.#dictionary = null
    this.#lists = column.lists.length === 0 ? null : new ListAssembler(file, column, this.#scratch)
    this.#valuesLeft = chunk.values
    this.#rows = 0
    this.#taken = 0
  }

  /** Whether the chunk has further values; pages of a leaf may be loaded then. */
  get hasMore(): boolean {
    return this.#valuesLeft > 0
  }

  get ready(): number {
    return this.#rows - this.#taken
  }

  /** Address of the next rows, which must be ready. */
  take(rows: number): number {
    const address = this.#address + this.#taken * valueBytes(this.column)
    this.#taken += rows
    return address
  }

  load(): void {
    const pages = this.#pages
    this.#taken = 0
    this.#rows = 0
    if (pages === null || this.#valuesLeft === 0) this.#end()
    else this.#read(pages.next())
  }

  release(): void {
    this.#scratch.release()
  }

  #read(page: ForeignPage): void {
    const { file } = this.#tools
    if (page.kind === 'dictionary') {
      this.#readDictionary(page)
      return
    }
    if (page.values > this.#valuesLeft)
      throw file.error(`a page has ${page.values} values, but its column has only ${this.#valuesLeft} left`, page.place)
    this.#valuesLeft -= page.values
    this.#decode(page)
  }

  /** After the last page: returns the last list, or fails because rows are missing. */
  #end(): void {
    const rest = this.#lists?.end(this.#place) ?? { address: 0, rows: 0 }
    this.#lists = null
    if (rest.rows === 0) throw this.#tools.file.error('the column has fewer rows than its row group', this.#place)
    this.#address = rest.address
    this.#rows = rest.rows
  }

  #readDictionary({ encoding, address, bytes, values, place }: ForeignPage): void {
    const { file } = this.#tools
    if (this.#dictionary !== null) throw file.error('the column has two dictionaries in a row group', place)
    if (this.column.physical === physical.boolean) throw file.error('a dictionary of booleans is not supported', place)
    if (encoding !== encodings.plain && encoding !== 2)
      throw file.error(`dictionary encoding ${encoding} is not supported`, place)
    const encoded = { encoding: encodings.plain, address, bytes, count: values, place }
    const decoded = decodeValues(this.#tools, this.column, encoded, null, 'dictionary')
    this.#dictionary = { address: decoded, count: values }
  }

  #decode(page: ForeignPage): void {
    const tools = this.#tools
    const { column } = this
    const { repetition, definition, rest } = readLevels(tools, column, page)
    const decode = (count: number): number =>
      decodeValues(tools, column, { ...rest, count }, this.#dictionary, 'values')
    if (this.#lists !== null || this.#pass !== null) {
      const bits = this.#scratch.room('bits', (page.values + 7) >>> 3)
      const present =
        definition === 0 ? page.values : tools.foreign.levelBits(definition, page.values, column.definition, bits)
      const values = decode(present)
      const made = this.#passed({ repetition, definition, levels: page.values, values, place: page.place })
      this.#address = made.address
      this.#rows = made.rows
      return
    }
    this.#address = definition === 0 ? decode(page.values) : spreadNulls(tools, column, definition, page.values, decode)
    this.#rows = page.values
  }

  /** The rows that the page completes. */
  #passed(page: ListPage): ArrayRows {
    this.#pass?.(page)
    return this.#lists?.add(page) ?? { address: 0, rows: 0 }
  }
}

// Decodes the repetition and definition levels of a page to u32: which values are present, and where lists begin.
//
//   version 1   RLE: length u32, then the RLE/bit-packing hybrid | BIT_PACKED (deprecated): bit-packed, most
//               significant bit first
//   version 2   the hybrid; the header has its length

interface PageLevels {
  /** Addresses; 0 when the column has no such levels. */
  readonly repetition: number
  readonly definition: number
  /** What follows the levels. */
  readonly rest: Omit<EncodedValues, 'count'>
}

const oldPacked = 4

function readLevels(tools: ValueTools, column: ForeignColumn, page: ForeignPage): PageLevels {
  const { encoding, place, levels, levelEncodings } = page
  const end = page.address + page.bytes
  let at = page.address
  const read = (limit: number, own: number | undefined, encoding: number, name: string): number => {
    if (own !== undefined) at += own
    if (limit === 0) return 0
    const target = tools.shared.room(name, page.values * 4)
    const bits = 32 - Math.clz32(limit)
    const from = own === undefined ? at : at - own
    const bytes = own ?? lengthOf(tools, encoding, from, end)
    const start = own === undefined && encoding === encodings.rle ? from + 4 : from
    const taken =
      bytes < 0
        ? -1
        : own === undefined && encoding === oldPacked
          ? tools.foreign.packedLevels(start, end - from, page.values, bits, limit, target)
          : tools.foreign.hybrid(start, bytes, page.values, bits, limit, target)
    if (taken < 0) throw tools.file.error(`the levels of a page do not match its ${page.values} values`, place)
    if (own === undefined) at = encoding === oldPacked ? from + taken : start + bytes
    return target
  }
  const repetition = read(column.repetition, levels?.repetition, levelEncodings.repetition, 'repetition')
  const definition = read(column.definition, levels?.definition, levelEncodings.definition, 'definition')
  return { repetition, definition, rest: { encoding, address: at, bytes: end - at, place } }
}

/** Length of the levels after their length prefix; -1 when they exceed the page, or have an unknown encoding. */
function lengthOf({ scratch }: ValueTools, encoding: number, from: number, end: number): number {
  if (encoding === oldPacked) return end - from
  if (encoding !== encodings.rle || from + 4 > end) return -1
  const bytes = wordAt(scratch.memory, from)
  return bytes <= end - from - 4 ? bytes : -1
}
