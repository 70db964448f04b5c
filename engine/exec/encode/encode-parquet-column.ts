// Encodes one column of an exported Parquet file that is not a list: collects values until a page is full, and pages
// until the row group ends.
//
// Pages are dictionary-encoded as long as that saves space. Other pages are plain, except that integers and strings are
// delta-encoded in files of version 2. Each row group has a dictionary of its own. When it becomes too large, the
// remaining pages of the row group do not use it, as the Parquet format permits.

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
import { copyStoredPage, type IndexMap, isCopyable, wantsDictionary } from './encode-parquet-stored.js'
import { exportMappingOf, gatherFormOf } from './encode-parquet-types.js'

/** The column's part of a row group, for the footer and the writer. */
export interface ExportedChunk {
  readonly dictionary: EncodedPage | null
  readonly pages: readonly EncodedPage[]
  readonly encodings: readonly number[]
  /** Number of values including NULLs; for lists, of levels. */
  readonly values: number
  readonly nulls: number
  /** For each page 16 bytes {minimum, maximum}; undefined without values, or for types without an order. */
  readonly ranges: readonly (Uint8Array | undefined)[]
  /** The bits of the Bloom filter. */
  readonly bloom: Uint8Array | null
}

export interface ExportedColumn {
  /**
   * Takes over a whole stored page of a part; `dictionary` is the table's symbol dictionary. False when the page cannot
   * be copied; then its rows must be appended.
   */
  takeStored(stored: StoredPage, dictionary: number): boolean
  /** Adds the rows [from, to), and encodes pages as they fill. */
  append(vector: Vector, from: number, to: number): void
  /** Returns the column's part of the row group, and starts the next one. */
  finish(): ExportedChunk
  /** Bytes of encoded pages that wait for the end of the row group. */
  readonly waitingBytes: number
  /** Bytes of collected values, and of what else the column holds until the end of the row group. */
  readonly gatheredBytes: number
}

/** The dictionary of a part, of which `stored` is a page, and the address of the table's symbol dictionary. */
interface AdoptedDictionary {
  readonly stored: StoredPage
  readonly dictionary: number
}

interface MappedEntries {
  readonly partId: number
  readonly count: number
  /** All indexes stay unchanged. */
  readonly same: boolean
  /** False: the dictionary of the row group has no room for the entries. */
  readonly fits: boolean
}

const dictionaryNames = ['dictionaryIndexes', 'dictionarySlots', 'dictionaryValues', 'dictionaryOffsets']
/** As large as in parts, so that their dictionaries fit. */
const limits = { count: 2 ** 20, bytes: 4 * 1024 * 1024 }
/** Beyond these limits, no more appended values are added to the dictionary. */
const joinLimits = { fixedCount: 2 ** 15, textCount: 2 ** 16, textBytes: 1024 * 1024 }
/** With a higher ratio of distinct values in the first page, a dictionary does not pay off. */
const distinctShareMax = 0.5
/** The first page is added to the dictionary in steps of this many values. */
const firstValues = 8192
/** Room for the length prefixes of levels before a page. */
const headRoomBytes = 64

export class FlatColumn implements ExportedColumn {
  waitingBytes = 0
  private readonly tools: ExportTools
  private readonly page: PageTools
  private readonly gather: Gather
  private readonly own: Scratch
  private dictionary: ChunkDictionary | null = null
  private indexed = 0
  /**
   * The dictionary of the row group while it is that of one part: its page is copied. Its values are added to
   * `dictionary`, or to the gathered symbols, only when others follow.
   */
  private adopted: AdoptedDictionary | null = null
  /** No more values are added to the dictionary in this row group. */
  private closed = false
  /** The last part whose dictionary was taken: maps its indexes to those of the row group. */
  private mapped: MappedEntries | null = null
  /** Once a dictionary did not pay off in a row group, the later groups do not try one. */
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
    if (this.gather.symbols !== null) this.addAdopted()
    for (let row = from; row < to; ) {
      row += this.gather.take(vector, row, to)
      if (this.gather.full) this.flush()
    }
  }

  takeStored(stored: StoredPage, dictionary: number): boolean {
    const { tools, page } = this
    if (this.bloom !== null || !isCopyable(stored, this.type, tools.encoding.pageBytes)) return false
    if (this.mayJoin && wantsDictionary(stored, tools)) return false
    if (stored.nulls === stored.rows && stored.encoding === encodings.dictionary) return false
    if (stored.encoding === encodings.deltaLength && tools.encoding.fieldIds !== undefined) return false
    if (this.gather.rows > 0) this.flush()
    const map = stored.encoding === encodings.dictionary ? this.mapOf(stored, dictionary) : null
    if (map === undefined) return false
    const taken = copyStoredPage(tools, page, stored, map)
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

  /** Whether appended rows may be added to a dictionary of the row group. */
  private get mayJoin(): boolean {
    const hasDictionary = this.dictionary !== null || this.adopted !== null
    return !this.hopeless && !this.closed && (hasDictionary || this.isEmpty)
  }

  /** The row group has only NULLs so far. */
  private get isEmpty(): boolean {
    return this.values === this.nulls
  }

  /**
   * Maps the part's dictionary indexes to those of the row group: null if they are the same, undefined when the entries
   * do not fit.
   */
  private mapOf(stored: StoredPage, dictionary: number): IndexMap | null | undefined {
    if (this.mapped?.partId !== stored.partId) this.mapped = this.mappedBy({ stored, dictionary })
    const { mapped } = this
    if (!mapped.fits) return undefined
    if (mapped.same) return null
    const entries = this.gather.symbols?.count ?? (this.dictionary as ChunkDictionary).count
    return { address: this.own.room('mapped', mapped.count * 4), count: mapped.count, bits: indexBits(entries) }
  }

  private mappedBy(part: AdoptedDictionary): MappedEntries {
    const { partId, dictionaryCount: count } = part.stored
    const isUnused = this.dictionary === null && (this.gather.symbols?.count ?? 0) === 0
    if (this.adopted === null && isUnused) this.adopted = part
    if (this.adopted?.stored.partId === partId) return { partId, count, same: true, fits: true }
    return this.addAdopted() ? this.addEntries(part) : { partId, count, same: false, fits: false }
  }

  /** Adds the values of the adopted dictionary to the row group's own; false when they do not fit. */
  private addAdopted(): boolean {
    const { adopted } = this
    if (adopted === null) return true
    if (!this.addEntries(adopted).fits) return false
    this.adopted = null
    return true
  }

  private addEntries({ stored, dictionary }: AdoptedDictionary): MappedEntries {
    const { partId } = stored
    let mapped: MappedEntries = { partId, count: 0, same: false, fits: false }
    stored.dictionary((values, count) => {
      mapped = this.noteEntries(partId, values, count, dictionary)
    })
    return mapped
  }

  private noteEntries(partId: number, values: number, count: number, dictionary: number): MappedEntries {
    const { gather, own } = this
    const target = own.room('mapped', count * 4)
    if (gather.symbols !== null) gather.mapSymbols({ address: values, dictionary }, count, target)
    else {
      const unused = this.dictionary === null
      this.dictionary ??= this.newDictionary()
      const first = this.dictionary.added
      if (!this.dictionary.add(values, count)) {
        if (unused) this.dropDictionary()
        return { partId, count, same: false, fits: false }
      }
      const indexes = this.dictionary.indexesFrom(first)
      own.memory.u8.copyWithin(target, indexes, indexes + count * 4)
    }
    const map = own.memory.u32.subarray(target >>> 2, (target >>> 2) + count)
    return { partId, count, same: map.every((to, from) => to === from), fits: true }
  }

  private newDictionary(): ChunkDictionary {
    const width = this.gather.holdsStrings ? 0 : this.page.mapping.diskBytes
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
    this.adopted = null
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

  /** Encodes a page from the collected values. */
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

  /** Hashes the page's values in PLAIN encoding. Symbols are hashed at the end of the row group. */
  private noteHashes(prepared: PreparedPage): void {
    const { bloom, page, gather } = this
    if (bloom === null || gather.symbols !== null || prepared.present === 0) return
    const { scratch } = this.tools
    const count = prepared.present
    const bytes = bodyBytesMax(page.mapping, prepared.rows) + count * 4 + gather.textBytes
    const plain = scratch.room('bloomValues', bytes)
    if (gather.holdsStrings) this.tools.kernel.plainStrings(prepared.values, count, plain)
    else writeBody(page, 'plain', prepared, plain)
    const hashes = scratch.room('bloomHashes', count * 8)
    this.tools.kernel.hashPlain(plain, count, gather.holdsStrings ? 0 : page.mapping.diskBytes, hashes)
    bloom.add(scratch, hashes, count)
  }

  private bloomOfGroup(): Uint8Array | null {
    const { bloom, dictionary } = this
    if (bloom === null) return null
    for (const text of this.gather.symbols?.strings ?? []) bloom.addOne(xxh64(text))
    const inDictionary = dictionary !== null && this.indexed === this.values - this.nulls
    return bloom.filter(inDictionary ? dictionary.count : null)
  }

  private body(prepared: PreparedPage, target: number): { encoding: number; bytes: number } {
    // Not dictionary-encoded, since the dictionary might be empty: fastparquet and hyparquet cannot read a dictionary
    // page without values.
    if (prepared.present === 0) return { encoding: encodings.plain, bytes: 0 }
    const symbols = this.gather.symbols
    if (symbols !== null) return this.indexes(prepared.values, prepared.present, symbols.count, target)
    if (this.mayJoin && !this.addAdopted()) this.closed = true
    const first = this.dictionary?.added ?? 0
    if (this.joins(prepared)) {
      const dictionary = this.dictionary as ChunkDictionary
      return this.indexes(dictionary.indexesFrom(first), prepared.present, dictionary.count, target)
    }
    if (this.gather.holdsStrings) return this.strings(prepared, target)
    const encoding = this.plainEncoding()
    return { encoding: encodingOfBody[encoding], bytes: writeBody(this.page, encoding, prepared, target) }
  }

  private plainEncoding(): BodyEncoding {
    const { mapping } = this.page
    if (mapping.conversion === 'boolean') return 'boolean'
    const integer = mapping.physical === 'INT32' || mapping.physical === 'INT64'
    return this.tools.encoding.version === 2 && integer ? 'delta' : 'plain'
  }

  private strings(prepared: PreparedPage, target: number): { encoding: number; bytes: number } {
    if (this.tools.encoding.version === 2) {
      return { encoding: encodings.deltaLength, bytes: writeBody(this.page, 'deltaLength', prepared, target) }
    }
    const bytes = this.tools.kernel.plainStrings(prepared.values, prepared.present, target)
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

  /** Adds the page's values to the dictionary; false when they are not in it. */
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

  /** Adds the values of the first page; false as soon as it is clear that a dictionary does not pay off. */
  private addFirst(dictionary: ChunkDictionary, values: number, present: number): boolean {
    const width = this.gather.holdsStrings ? 8 : this.page.mapping.diskBytes
    for (let from = 0; from < present; from += firstValues) {
      if (!dictionary.add(values + from * width, Math.min(firstValues, present - from))) return false
      if (!this.isSmall(dictionary) || dictionary.count > present * distinctShareMax) return false
    }
    return true
  }

  private isSmall({ count, bytes }: ChunkDictionary): boolean {
    if (!this.gather.holdsStrings) return count <= joinLimits.fixedCount
    return count <= joinLimits.textCount && bytes <= joinLimits.textBytes
  }

  private dictionaryOfGroup(): EncodedPage | null {
    const { symbols } = this.gather
    if (this.adopted !== null) {
      const { dictionaryCount, readDictionary } = this.adopted.stored
      const { address, bytes } = readDictionary()
      return dictionaryPage(this.tools, dictionaryCount, address, bytes)
    }
    if (symbols !== null) return symbols.count === 0 ? null : this.symbolPage(symbols)
    const { dictionary } = this
    return dictionary === null || dictionary.count === 0
      ? null
      : dictionaryPage(this.tools, dictionary.count, dictionary.values, dictionary.bytes)
  }

  private symbolPage({ strings, count }: GatheredSymbols): EncodedPage {
    const { scratch } = this.tools
    const bytes = strings.reduce((sum, text) => sum + 4 + text.length, 0)
    const address = scratch.room('raw', bytes)
    let at = address
    for (const text of strings) {
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
