// One flat column of an exported Parquet file: values are gathered until a page is full, pages until the row group ends.
//
// A page is dictionary indexes while the dictionary pays, else plain (version 2: deltas). Dictionaries begin anew in each
// row group; a page that its dictionary does not take ends its use for the rest of the group, as the format allows.

import { xxh64 } from '../../kernels/xxh64.js'
import { encodings } from '../../storage/part/parquet-types.js'
import { ChunkDictionary } from '../../storage/part/part-dictionary.js'
import type { BodyEncoding, PageTools, PreparedPage } from '../../storage/part/part-page.js'
import { bodyBytesMax, encodingOfBody, writeBody, writeLevels } from '../../storage/part/part-page.js'
import type { Scratch } from '../../storage/part/part-scratch.js'
import type { StoredPage } from '../../storage/part/part-stored.js'
import type { DataType } from '../../types/column-types.js'
import type { ExecContext } from '../batch/context.js'
import type { Vector } from '../batch/vector.js'
import type { BloomHashes } from './encode-parquet-bloom.js'
import { createGather, type Gather, type GatheredSymbols } from './encode-parquet-gather.js'
import { dataPage, dictionaryPage, type EncodedPage, type ExportTools } from './encode-parquet-page.js'
import { type IndexMap, passes, takeStored, wantsDictionary } from './encode-parquet-stored.js'
import { exportMappingOf, gatherFormOf } from './encode-parquet-types.js'

/** What the footer and the writer of a row group need of a column. */
export interface ExportedChunk {
  readonly dictionary: EncodedPage | null
  readonly pages: readonly EncodedPage[]
  readonly encodings: readonly number[]
  /** Values with NULLs; of lists: levels. */
  readonly values: number
  readonly nulls: number
  /** Of each page: 16 bytes {least, greatest}, undefined without present values or order. */
  readonly ranges: readonly (Uint8Array | undefined)[]
  /** Bits of a Bloom filter. */
  readonly bloom: Uint8Array | null
}

export interface ExportedColumn {
  /**
   * Takes a whole page as it lies in a part, with the dictionary of its table's symbols; false, and nothing was taken, when
   * its rows have to be appended.
   */
  takeStored(stored: StoredPage, dictionary: number): boolean
  /** Adds rows [from, to); pages may be made on the way. */
  append(vector: Vector, from: number, to: number): void
  /** The column's part of the row group; the next one begins. */
  finish(): ExportedChunk
  /** Of the pages that wait for the end of the row group. */
  readonly waitingBytes: number
  /** Of values that wait for the end of their page, with what else the column keeps until the end of the row group. */
  readonly gatheredBytes: number
}

interface MappedEntries {
  readonly partId: number
  readonly count: number
  /** Every index stays as it is. */
  readonly same: boolean
  /** False: the row group's dictionary has no room for them. */
  readonly fits: boolean
}

const dictionaryNames = ['dictionaryIndexes', 'dictionarySlots', 'dictionaryValues', 'dictionaryOffsets']
/** As large as those of parts, whose dictionaries are taken. */
const limits = { count: 2 ** 20, bytes: 4 * 1024 * 1024 }
/** Beyond these, rows that are encoded here do not join. */
const joinLimits = { fixedCount: 2 ** 15, textCount: 2 ** 16, textBytes: 1024 * 1024 }
/** More distinct values than this share of the first page: the dictionary would not pay. */
const distinctShareMax = 0.5
/** Of the first page, added at one time. */
const firstValues = 8192
/** Room for the lengths of levels before a page. */
const headRoomBytes = 64

export class FlatColumn implements ExportedColumn {
  waitingBytes = 0
  private readonly tools: ExportTools
  private readonly page: PageTools
  private readonly gather: Gather
  private readonly own: Scratch
  private dictionary: ChunkDictionary | null = null
  private indexed = 0
  /** No more values join the dictionary in this row group. */
  private closed = false
  /** Of the last part whose dictionary was taken: its indexes' places in the row group's. */
  private mapped: MappedEntries | null = null
  /** Once a row group has found that a dictionary does not pay, the others do not try. */
  private hopeless = false
  private readonly type: DataType
  private readonly bloom: BloomHashes | null
  private pages: EncodedPage[] = []
  private ranges: (Uint8Array | undefined)[] = []
  private used = new Set<number>()
  private values = 0
  private nulls = 0

  constructor(tools: ExportTools, context: ExecContext, type: DataType, bloom: BloomHashes | null) {
    this.tools = tools
    this.bloom = bloom
    this.type = type
    this.own = tools.ownScratch()
    const mapping = exportMappingOf(type)
    this.page = { kernel: tools.kernel, scratch: tools.scratch, mapping }
    const form = gatherFormOf(type, true)
    this.gather = createGather(form, { tools, context, own: this.own, mapping })
    this.hopeless =
      mapping.conversion === 'boolean' ||
      type.name.startsWith('TIMESTAMP') ||
      type.name === 'DECIMAL' ||
      form === 'symbol'
  }

  append(vector: Vector, from: number, to: number): void {
    for (let row = from; row < to; ) {
      row += this.gather.take(vector, row, to)
      if (this.gather.full) this.flush()
    }
  }

  takeStored(stored: StoredPage, dictionary: number): boolean {
    const { tools, page } = this
    if (this.bloom !== null || !passes(stored, this.type, tools.encoding.pageBytes)) return false
    if (this.mayJoin && wantsDictionary(stored, tools)) return false
    if (stored.nulls === stored.rows && stored.encoding === encodings.dictionary) return false
    if (this.gather.rows > 0) this.flush()
    const map = stored.encoding === encodings.dictionary ? this.mapOf(stored, dictionary) : null
    if (map === undefined) return false
    const taken = takeStored(tools, page, stored, map)
    this.used.add(taken.encoding)
    this.values += stored.rows
    this.nulls += stored.nulls
    this.ranges.push(tools.encoding.statistics && page.mapping.range >= 0 ? stored.range : undefined)
    this.pages.push(taken.page)
    this.waitingBytes += taken.page.header.length + taken.page.body.length
    return true
  }

  get gatheredBytes(): number {
    return this.own.bytes
  }

  /** Whether rows that are appended can go into a dictionary of the row group. */
  private get mayJoin(): boolean {
    return !this.hopeless && !this.closed && (this.dictionary !== null || this.isEmpty)
  }

  /** Nothing but NULLs in the row group so far. */
  private get isEmpty(): boolean {
    return this.values === this.nulls
  }

  /** Where the entries of a part's dictionary are in the row group's: null as they were, undefined when they do not fit. */
  private mapOf(stored: StoredPage, dictionary: number): IndexMap | null | undefined {
    if (this.mapped?.partId !== stored.partId) {
      this.mapped = null
      stored.dictionary((values, count) => this.noteEntries(stored.partId, values, count, dictionary))
    }
    const { mapped } = this
    if (mapped === null || !mapped.fits) return undefined
    if (mapped.same) return null
    const entries = this.gather.symbols?.count ?? (this.dictionary as ChunkDictionary).count
    return { address: this.own.room('mapped', mapped.count * 4), count: mapped.count, bits: indexBits(entries) }
  }

  private noteEntries(partId: number, values: number, count: number, dictionary: number): void {
    const { gather, own } = this
    const target = own.room('mapped', count * 4)
    if (gather.symbols !== null) gather.mapSymbols({ address: values, dictionary }, count, target)
    else {
      const unused = this.dictionary === null
      this.dictionary ??= this.newDictionary()
      const first = this.dictionary.added
      if (!this.dictionary.add(values, count)) {
        if (unused) this.dropDictionary()
        this.mapped = { partId, count, same: false, fits: false }
        return
      }
      const indexes = this.dictionary.indexesFrom(first)
      own.memory.u8.copyWithin(target, indexes, indexes + count * 4)
    }
    const map = own.memory.u32.subarray(target >>> 2, (target >>> 2) + count)
    this.mapped = { partId, count, same: map.every((to, from) => to === from), fits: true }
  }

  private newDictionary(): ChunkDictionary {
    const width = this.gather.holdsTexts ? 0 : this.page.mapping.diskBytes
    return new ChunkDictionary(this.tools.kernel, this.own, width, limits)
  }

  finish(): ExportedChunk {
    if (this.gather.rows > 0) this.flush()
    const dictionary = this.dictionaryOfGroup()
    if (dictionary !== null) this.used.add(encodings.plain)
    const { pages, ranges, values, nulls } = this
    const bloom = this.bloomOfGroup()
    const chunk = { dictionary, pages, ranges, values, nulls, bloom, encodings: [...this.used, encodings.rle] }
    this.dropDictionary()
    this.mapped = null
    this.closed = false
    this.indexed = 0
    this.pages = []
    this.ranges = []
    this.used = new Set()
    this.values = 0
    this.nulls = 0
    this.waitingBytes = 0
    this.gather.groupEnded()
    this.own.release()
    return chunk
  }

  /** Makes a page of what was gathered. */
  private flush(): void {
    const { tools, page } = this
    const { scratch } = tools
    const { rows } = this.gather
    const prepared = this.gather.prepare(page)
    const textBytes = this.gather.textBytes
    const levelBytesMax = (rows >>> 3) + 64
    const raw = scratch.room(
      'raw',
      headRoomBytes + levelBytesMax + bodyBytesMax(page.mapping, rows) + rows * 4 + textBytes,
    )
    const address = raw + headRoomBytes
    const levels = page.mapping.optional ? writeLevels(scratch.memory.u8, prepared, address - 4) - 4 : 0
    const { encoding, bytes } = this.body(prepared, address + levels)
    this.note(prepared, encoding)
    this.noteHashes(prepared)
    const made = dataPage(tools, {
      values: rows,
      nulls: rows - prepared.present,
      rows,
      encoding,
      address,
      repetitionBytes: 0,
      definitionBytes: levels,
      bytes: levels + bytes,
    })
    this.pages.push(made)
    this.waitingBytes += made.header.length + made.body.length
    this.gather.reset()
  }

  private note(prepared: PreparedPage, encoding: number): void {
    const { kernel, scratch, mapping } = this.page
    this.used.add(encoding)
    this.values += prepared.rows
    this.nulls += prepared.rows - prepared.present
    let range: Uint8Array | undefined
    if (this.tools.encoding.statistics && mapping.range >= 0 && prepared.present > 0) {
      const target = scratch.room('range', 16)
      kernel.range(prepared.values, prepared.present, mapping.range, target)
      range = scratch.memory.u8.slice(target, target + 16)
    }
    this.ranges.push(range)
  }

  /** Hashes of the page's values as PLAIN has them; symbols are hashed at the end of the row group. */
  private noteHashes(prepared: PreparedPage): void {
    const { bloom, page, gather } = this
    if (bloom === null || gather.symbols !== null || prepared.present === 0) return
    const { scratch } = this.tools
    const count = prepared.present
    const bytes = bodyBytesMax(page.mapping, prepared.rows) + count * 4 + gather.textBytes
    const plain = scratch.room('bloomValues', bytes)
    if (gather.holdsTexts) this.tools.kernel.plainTexts(prepared.values, count, plain)
    else writeBody(page, 'plain', prepared, plain)
    const hashes = scratch.room('bloomHashes', count * 8)
    this.tools.kernel.hashPlain(plain, count, gather.holdsTexts ? 0 : page.mapping.diskBytes, hashes)
    bloom.add(scratch, hashes, count)
  }

  private bloomOfGroup(): Uint8Array | null {
    const { bloom, dictionary } = this
    if (bloom === null) return null
    for (const text of this.gather.symbols?.texts ?? []) bloom.addOne(xxh64(text))
    const inDictionary = dictionary !== null && this.indexed === this.values - this.nulls
    return bloom.filter(inDictionary ? dictionary.count : null)
  }

  private body(prepared: PreparedPage, target: number): { encoding: number; bytes: number } {
    // Not of a dictionary, which might stay empty: fastparquet and hyparquet read no page of no bytes.
    if (prepared.present === 0) return { encoding: encodings.plain, bytes: 0 }
    const symbols = this.gather.symbols
    if (symbols !== null) return this.indexes(prepared.values, prepared.present, symbols.count, target)
    const first = this.dictionary?.added ?? 0
    if (this.joins(prepared)) {
      const dictionary = this.dictionary as ChunkDictionary
      return this.indexes(dictionary.indexesFrom(first), prepared.present, dictionary.count, target)
    }
    if (this.gather.holdsTexts) return this.texts(prepared, target)
    const encoding = this.plainEncoding()
    return { encoding: encodingOfBody[encoding], bytes: writeBody(this.page, encoding, prepared, target) }
  }

  private plainEncoding(): BodyEncoding {
    const { mapping } = this.page
    if (mapping.conversion === 'boolean') return 'boolean'
    const integer = mapping.physical === 'INT32' || mapping.physical === 'INT64'
    return this.tools.encoding.version === 2 && integer ? 'delta' : 'plain'
  }

  private texts(prepared: PreparedPage, target: number): { encoding: number; bytes: number } {
    if (this.tools.encoding.version === 2) {
      return { encoding: encodings.deltaLength, bytes: writeBody(this.page, 'deltaLength', prepared, target) }
    }
    const bytes = this.tools.kernel.plainTexts(prepared.values, prepared.present, target)
    return { encoding: encodings.plain, bytes }
  }

  private indexes(
    indexes: number,
    count: number,
    entries: number,
    target: number,
  ): { encoding: number; bytes: number } {
    const { kernel, memory } = { kernel: this.tools.kernel, memory: this.tools.scratch.memory }
    const bits = indexBits(entries)
    memory.u8[target] = bits
    const bytes = kernel.packIndexes(indexes, count, bits, target + 1)
    return { encoding: encodings.dictionary, bytes: bytes + 1 }
  }

  /** Whether the page's values are in the dictionary now. */
  private joins({ values, present }: PreparedPage): boolean {
    if (!this.mayJoin) return false
    this.dictionary ??= this.newDictionary()
    const { dictionary } = this
    const added = this.isEmpty ? this.addFirst(dictionary, values, present) : dictionary.add(values, present)
    const small = added && this.isSmall(dictionary)
    if (this.isEmpty && (!small || dictionary.count > present * distinctShareMax)) {
      this.hopeless = present > 1000
      this.dropDictionary()
      return false
    }
    this.closed = !small
    if (added) this.indexed += present
    return added
  }

  /** Values of the first page; false as soon as it shows that a dictionary does not pay: it need not grow further. */
  private addFirst(dictionary: ChunkDictionary, values: number, present: number): boolean {
    const width = this.gather.holdsTexts ? 8 : this.page.mapping.diskBytes
    for (let from = 0; from < present; from += firstValues) {
      if (!dictionary.add(values + from * width, Math.min(firstValues, present - from))) return false
      if (!this.isSmall(dictionary) || dictionary.count > present * distinctShareMax) return false
    }
    return true
  }

  private isSmall({ count, bytes }: ChunkDictionary): boolean {
    if (!this.gather.holdsTexts) return count <= joinLimits.fixedCount
    return count <= joinLimits.textCount && bytes <= joinLimits.textBytes
  }

  private dictionaryOfGroup(): EncodedPage | null {
    const { symbols } = this.gather
    if (symbols !== null) return symbols.count === 0 ? null : this.symbolPage(symbols)
    const { dictionary } = this
    return dictionary === null || dictionary.count === 0
      ? null
      : dictionaryPage(this.tools, dictionary.count, dictionary.values, dictionary.bytes)
  }

  private symbolPage({ texts, count }: GatheredSymbols): EncodedPage {
    const { scratch } = this.tools
    const bytes = texts.reduce((sum, text) => sum + 4 + text.length, 0)
    const address = scratch.room('raw', bytes)
    let at = address
    for (const text of texts) {
      for (let byte = 0; byte < 4; byte++) scratch.memory.u8[at + byte] = (text.length >>> (byte * 8)) & 255
      scratch.memory.u8.set(text, at + 4)
      at += 4 + text.length
    }
    return dictionaryPage(this.tools, count, address, bytes)
  }

  private dropDictionary(): void {
    this.dictionary = null
    for (const name of dictionaryNames) this.own.drop(name)
  }
}

function indexBits(entries: number): number {
  return entries <= 2 ? 1 : 32 - Math.clz32(entries - 1)
}
