// Writes one column of a part (Parquet file). Unless PARQUET(..) of the column names encoding and codec, it chooses
// between dictionary and other encodings, and whether to compress, by the sizes that it measures. Then it writes the
// pages. It is a generator whose steps each do about one page of work, so that queries can run in between.

import { crc32 } from 'node:zlib'
import { assert } from '../../base/assert.js'
import { rangeKinds } from '../../kernels/parquet.js'
import type { SharedMemory } from '../../memory/shared-memory.js'
import type { DataType } from '../../types/column-types.js'
import { BloomFilter, falseShareUsual } from './bloom-filter.js'
import { encodePageHeader, type PageHeader } from './page-header.js'
import { compressPage, type PageCodec } from './parquet-codec.js'
import { encodings } from './parquet-types.js'
import { bitsFor, ChunkDictionary, type DictionaryLimits } from './part-dictionary.js'
import {
  bestTrial,
  bodyBytesMax,
  codecFor,
  encodingOfBody,
  type PageTools,
  type PreparedPage,
  preparePage,
  type Trial,
  textBytesOf,
  writeBody,
  writeLevels,
} from './part-page.js'

export interface ColumnJob {
  readonly tools: PageTools
  readonly type: DataType
  readonly codec: PageCodec
  /** Whether this is the designated timestamp, which is delta-encoded without trying a dictionary. */
  readonly sorted: boolean
  /** First row of each page, followed by the row count. */
  readonly firstRows: readonly number[]
  /** Address of the page's values, valid until the next call; 0 if all are null. */
  read(page: number): number
  /** The string of a symbol. */
  symbol(id: number): Uint8Array
  /** Appends a page's header, whose checksum is in the part index, and its body; returns the offset of the header. */
  write(header: Uint8Array, body: Uint8Array): number
}

/** Location of a page, with all that a reader needs to read it without parsing its header. */
export interface PagePlace {
  /** Offset of the page's header in the file. */
  readonly offset: number
  readonly headerBytes: number
  /** Bytes after the header, as stored. */
  readonly bytes: number
  /** Bytes after the header when decompressed. */
  readonly rawBytes: number
  /** CRC-32 of the stored bytes after the header. */
  readonly crc: number
}

export interface WrittenPage extends PagePlace {
  readonly nulls: number
  /** 16 bytes {min, max} as the range kernel writes them; undefined if all values are NULL or the type has no range. */
  readonly range: Uint8Array | undefined
  /** 8 bytes as the sum kernel writes them; undefined if all values are NULL, the type has no sums, or it overflows. */
  readonly sum: Uint8Array | undefined
}

export interface WrittenDictionary extends PagePlace {
  readonly count: number
}

export interface WrittenColumn {
  readonly encodings: readonly number[]
  /** Encoding of the data pages. */
  readonly encoding: number
  readonly codec: PageCodec
  readonly dictionary: WrittenDictionary | undefined
  readonly pages: readonly WrittenPage[]
  /** Sizes of all pages with their headers, decompressed and stored. */
  readonly rawBytes: number
  readonly bytes: number
  /** SYMBOL: for each entry of the chunk's dictionary the id in the table's dictionary. */
  readonly symbolIds: Int32Array | undefined
  /** Undefined if the column has none. */
  readonly bloom?: Uint8Array | undefined
}

const symbolLimits: DictionaryLimits = { count: 2 ** 31, bytes: 0 }
const fixedLimits: DictionaryLimits = { count: 2 ** 20, bytes: 0 }
const textLimits: DictionaryLimits = { count: 2 ** 17, bytes: 4 * 1024 * 1024 }
/** With more distinct values than this share of the values so far, a dictionary for several pages is given up. */
const distinctShareMax = 0.9
/**
 * A dictionary must be smaller than plain values by this factor, because decoding it takes a lookup for each value.
 * Delta encoding decodes slower still and has no random access, so a dictionary only needs to be smaller than that.
 */
const dictionaryGain = 0.75

export function* writeColumn(job: ColumnJob): Generator<undefined, WrittenColumn> {
  const pages: PreparedStatistics[] = []
  const dictionary = wantsDictionary(job) ? new ChunkDictionary(...dictionaryArguments(job)) : undefined
  const scan = yield* scanColumn(job, dictionary, pages)
  const result =
    scan.dictionary !== undefined
      ? yield* writeDictionaryPages(job, scan.dictionary, pages)
      : yield* writePlainPages(job, scan.trial as Trial)
  assert(result.pages.length === job.firstRows.length - 1, 'F2: a column has every page of its part')
  for (const name of [
    'dictionaryIndexes',
    'dictionarySlots',
    'dictionaryValues',
    'dictionaryOffsets',
    'bloomHashes',
    'bloomValues',
  ]) {
    job.tools.scratch.drop(name)
  }
  return result
}

function wantsDictionary({ tools: { mapping, storage }, sorted }: ColumnJob): boolean {
  const encoding = storage?.encoding
  if (encoding !== undefined) return encoding === 'rle_dictionary'
  if (sorted || mapping.conversion === 'boolean') return false
  return mapping.conversion === 'text' || mapping.conversion === 'symbol' || mapping.diskBytes > 0
}

function dictionaryArguments({ tools, firstRows }: ColumnJob): ConstructorParameters<typeof ChunkDictionary> {
  const { kernel, scratch, mapping } = tools
  const rows = firstRows.at(-1) as number
  if (mapping.conversion === 'text') return [kernel, scratch, 0, textLimits, rows]
  if (mapping.conversion === 'symbol') return [kernel, scratch, 4, symbolLimits, rows]
  return [kernel, scratch, mapping.diskBytes, fixedLimits, rows]
}

/** A scanned page, kept for the second pass if a dictionary is written. */
interface PreparedStatistics {
  readonly page: PreparedPage
  /** Number of non-null values before the page. */
  readonly firstIndex: number
  readonly summary: PageSummary
}

interface Scan {
  readonly dictionary: ChunkDictionary | undefined
  readonly trial: Trial | undefined
}

/** First pass: adds page after page to the dictionary, until it is complete or a dictionary does not pay. */
function* scanColumn(
  job: ColumnJob,
  dictionary: ChunkDictionary | undefined,
  pages: PreparedStatistics[],
): Generator<undefined, Scan> {
  const { tools } = job
  const pageCount = job.firstRows.length - 1
  const forced = tools.mapping.conversion === 'symbol'
  let trial: Trial | undefined
  let firstIndex = 0
  for (let page = 0; page < pageCount; page++) {
    const prepared = readPage(job, page, true)
    if (page === 0 && !forced) trial = bestTrial(tools, job.codec, prepared)
    if (dictionary === undefined) return { dictionary: undefined, trial }
    if (!dictionary.add(prepared.values, prepared.present)) return { dictionary: undefined, trial }
    pages.push({ page: prepared, firstIndex, summary: summaryOf(tools, prepared) })
    firstIndex += prepared.present
    if (trial !== undefined && !pays(job, dictionary, trial, pages)) return { dictionary: undefined, trial }
    yield
  }
  assert(dictionary === undefined || dictionary.added === firstIndex, 'R2: every value that is present has a code')
  return { dictionary, trial }
}

/** Estimates from the pages so far whether a dictionary makes the chunk smaller than the best other encoding. */
function pays(
  job: ColumnJob,
  dictionary: ChunkDictionary,
  trial: Trial,
  pages: readonly PreparedStatistics[],
): boolean {
  const first = pages[0]?.page as PreparedPage
  if (job.tools.storage?.encoding === 'rle_dictionary') return dictionary.count <= dictionary.countLimit
  const last = pages.at(-1) as PreparedStatistics
  const seen = last.firstIndex + last.page.present
  const complete = pages.length === job.firstRows.length - 1
  if (!complete && dictionary.count > seen * distinctShareMax) return false
  const all = complete ? seen : (seen * (job.firstRows.length - 1)) / pages.length
  const distinct = complete ? dictionary.count : distinctOf(dictionary.count, seen, all)
  if (distinct > dictionary.countLimit) return false
  const grown = distinct / Math.max(1, dictionary.count)
  const other = (trial.bytes * all) / Math.max(1, first.present)
  const moreBits = bitsFor(Math.round(distinct)) - dictionary.bits
  const bits = packedBits(job, dictionary, trial, last) + moreBits
  const mine = dictionary.bytes * grown + (all * bits) / 8
  const isPlain = trial.codec === 'none' && trial.encoding === 'plain'
  return mine < other * (isPlain ? dictionaryGain : 1) || mine < 64
}

/** Extrapolates distinct values: `seen` values have `distinct`, how many have `all`, if all are equally frequent? */
function distinctOf(distinct: number, seen: number, all: number): number {
  if (distinct >= seen) return all
  let low = distinct
  let high = Math.max(distinct, 1) * 64
  for (let step = 0; step < 40; step++) {
    const middle = (low + high) / 2
    if (-middle * Math.expm1(-seen / middle) < distinct) low = middle
    else high = middle
  }
  return Math.max(distinct, -high * Math.expm1(-all / high))
}

/** Bits per index of the last page, after compression if that pays; measured only if the alternative is compressed. */
function packedBits(job: ColumnJob, dictionary: ChunkDictionary, trial: Trial, last: PreparedStatistics): number {
  if (trial.codec === 'none' || last.page.present === 0) return dictionary.bits
  const { address, bytes } = writeIndexes(job, dictionary, last)
  return (codecFor(job.tools, job.codec, address, bytes).bytes * 8) / last.page.present
}

function writeIndexes(job: ColumnJob, dictionary: ChunkDictionary, { page, firstIndex }: PreparedStatistics) {
  const address = job.tools.scratch.room('raw', page.present * 4 + 1024)
  const bytes = job.tools.kernel.packIndexes(dictionary.indexesFrom(firstIndex), page.present, dictionary.bits, address)
  return { address, bytes }
}

/** `keep`: presence bits of all pages are kept for the second pass. */
function readPage(job: ColumnJob, page: number, keep: boolean): PreparedPage {
  const { firstRows, tools } = job
  const first = firstRows[page] as number
  const rows = (firstRows[page + 1] as number) - first
  assert(rows > 0, 'F2: a page has rows')
  // The bits of each page begin at a byte boundary, whatever the number of rows before it.
  const rowsTotal = firstRows.at(-1) as number
  const all = tools.scratch.room('bits', (rowsTotal >>> 3) + firstRows.length * 16)
  return preparePage(tools, job.read(page), rows, keep ? all + (first >>> 3) + page * 8 : all)
}

type PageSummary = Pick<WrittenPage, 'range' | 'sum'>

function summaryOf({ kernel, scratch, mapping }: PageTools, page: PreparedPage): PageSummary {
  if (mapping.range < 0 || page.present === 0) return { range: undefined, sum: undefined }
  const target = scratch.room('range', 24)
  kernel.range(page.values, page.present, mapping.range, target)
  const range = scratch.memory.u8.slice(target, target + 16)
  if (!mapping.summed || !sumFits(scratch.memory, target, page.present, mapping.range)) return { range, sum: undefined }
  kernel.sum(page.values, page.present, mapping.range, target + 16)
  return { range, sum: scratch.memory.u8.slice(target + 16, target + 24) }
}

/** Whether the sum of that many values within the range fits 64 bits. */
function sumFits({ i64 }: SharedMemory, range: number, count: number, kind: number): boolean {
  if (kind !== rangeKinds.i64) return true
  const [low, high] = [i64[range >>> 3]!, i64[(range >>> 3) + 1]!]
  const largest = (1n << 63n) / BigInt(count) - 1n
  return low >= -largest && high <= largest
}

/** Writes pages and collects what the footer needs of them. */
class ChunkOutput {
  readonly pages: WrittenPage[] = []
  readonly codec: PageCodec
  rawBytes = 0
  bytes = 0
  private readonly job: ColumnJob

  constructor(job: ColumnJob, codec: PageCodec) {
    this.job = job
    this.codec = codec
  }

  put(header: Pick<PageHeader, 'kind' | 'values' | 'encoding'>, address: number, bytes: number): PagePlace {
    const { kernel, scratch, storage } = this.job.tools
    const packed = compressPage(kernel, scratch, this.codec, address, bytes, storage?.level)
    assert(packed.bytes > 0 || bytes === 0, 'K3: a page fits into its compression bound')
    const body = scratch.memory.u8.subarray(packed.address, packed.address + packed.bytes)
    const crc = crc32(body)
    const head = encodePageHeader({ ...header, rawBytes: bytes, bytes: packed.bytes, crc })
    this.rawBytes += head.length + bytes
    this.bytes += head.length + packed.bytes
    const offset = this.job.write(head, body)
    return { offset, headerBytes: head.length, bytes: packed.bytes, rawBytes: bytes, crc }
  }

  putData(page: PreparedPage, encoding: number, summary: PageSummary, address: number, bytes: number): void {
    assert(page.present <= page.rows, 'R1: a page has no more values than rows')
    const header = { kind: 'data', values: page.rows, encoding } as const
    this.pages.push({ ...this.put(header, address, bytes), nulls: page.rows - page.present, ...summary })
  }
}

function* writePlainPages(job: ColumnJob, trial: Trial): Generator<undefined, WrittenColumn> {
  const { tools } = job
  const { scratch, mapping } = tools
  const output = new ChunkOutput(job, trial.codec)
  const bloom = bloomOf(job, job.firstRows.at(-1) ?? 0)
  for (let index = 0; index < job.firstRows.length - 1; index++) {
    const page = readPage(job, index, false)
    if (bloom !== null) noteHashes(tools, bloom, page)
    const roomBytes = bodyBytesMax(mapping, page.rows) + page.rows + textBytesOf(tools, page)
    const raw = scratch.room('raw', roomBytes)
    const levels = mapping.optional ? writeLevels(scratch.memory.u8, page, raw) : 0
    const body =
      page.present > 0 || trial.encoding !== 'boolean' ? writeBody(tools, trial.encoding, page, raw + levels) : 0
    assert(levels + body <= roomBytes, 'K2: an encoded page has its room')
    output.putData(page, encodingOfBody[trial.encoding], summaryOf(tools, page), raw, levels + body)
    yield
  }
  const { pages, rawBytes, bytes, codec } = output
  const used = [...new Set([encodingOfBody[trial.encoding], encodings.rle])]
  const encoding = encodingOfBody[trial.encoding]
  const rest = { dictionary: undefined, symbolIds: undefined, bloom: bloom?.bytes }
  return { encodings: used, encoding, codec, pages, rawBytes, bytes, ...rest }
}

function bloomOf({ tools: { storage } }: ColumnJob, distinct: number): BloomFilter | null {
  return storage?.bloomFilter === true ? new BloomFilter(distinct, falseShareUsual) : null
}

function noteHashes(tools: PageTools, bloom: BloomFilter, { values, present }: PreparedPage): void {
  const { kernel, scratch, mapping } = tools
  if (present === 0) return
  if (mapping.conversion !== 'text') {
    addHashes(tools, bloom, values, present, mapping.diskBytes)
    return
  }
  const lengths = scratch.room('lengths', present * 4)
  const plain = scratch.room('bloomValues', kernel.textLengths(values, present, lengths) + present * 4)
  kernel.plainStrings(values, present, plain)
  addHashes(tools, bloom, plain, present, 0)
}

/** `width`: bytes of a value; 0 for strings, each preceded by its length. */
function addHashes({ kernel, scratch }: PageTools, bloom: BloomFilter, plain: number, count: number, width: number) {
  const hashes = scratch.room('bloomHashes', count * 8)
  kernel.hashPlain(plain, count, width, hashes)
  bloom.add(scratch.memory.u32.subarray(hashes >>> 2, (hashes >>> 2) + count * 2), count)
}

function* writeDictionaryPages(
  job: ColumnJob,
  dictionary: ChunkDictionary,
  pages: readonly PreparedStatistics[],
): Generator<undefined, WrittenColumn> {
  const { scratch, mapping } = job.tools
  const symbolIds = mapping.conversion === 'symbol' ? idsOf(job, dictionary) : undefined
  const output = new ChunkOutput(job, dictionaryCodec(job, dictionary, pages))
  const bloom = bloomOf(job, dictionary.count)
  const place = putDictionary(job, output, dictionary, symbolIds, bloom)
  yield
  for (const { page, firstIndex, summary } of pages) {
    const raw = scratch.room('raw', page.present * 4 + (page.rows >>> 3) + 1024)
    const at = raw + (mapping.optional ? writeLevels(scratch.memory.u8, page, raw) : 0)
    scratch.memory.u8[at] = dictionary.bits
    const indexes = dictionary.indexesFrom(firstIndex)
    const bytes = job.tools.kernel.packIndexes(indexes, page.present, dictionary.bits, at + 1)
    output.putData(page, encodings.dictionary, summary, raw, at + 1 + bytes - raw)
    yield
  }
  const { rawBytes, bytes, codec } = output
  const used = [encodings.plain, encodings.rle, encodings.dictionary]
  const rest = { dictionary: { ...place, count: dictionary.count }, symbolIds, bloom: bloom?.bytes }
  return { encodings: used, encoding: encodings.dictionary, codec, pages: output.pages, rawBytes, bytes, ...rest }
}

/** The one that the column names, or chosen by compressing the indexes of a page from the middle of the chunk. */
function dictionaryCodec(job: ColumnJob, dictionary: ChunkDictionary, pages: readonly PreparedStatistics[]): PageCodec {
  const middle = pages[pages.length >>> 1]
  if (job.tools.storage?.codec !== undefined) return job.codec
  if (job.codec === 'none' || middle === undefined || middle.page.present === 0) return 'none'
  const { address, bytes } = writeIndexes(job, dictionary, middle)
  return codecFor(job.tools, job.codec, address, bytes).codec
}

function idsOf({ tools: { scratch } }: ColumnJob, dictionary: ChunkDictionary): Int32Array {
  const first = dictionary.values >>> 2
  return scratch.memory.i32.slice(first, first + dictionary.count)
}

function putDictionary(
  job: ColumnJob,
  output: ChunkOutput,
  dictionary: ChunkDictionary,
  symbolIds: Int32Array | undefined,
  bloom: BloomFilter | null,
): PagePlace {
  const body =
    symbolIds === undefined ? { address: dictionary.values, bytes: dictionary.bytes } : writeSymbols(job, symbolIds)
  if (bloom !== null)
    addHashes(job.tools, bloom, body.address, dictionary.count, Math.max(0, job.tools.mapping.diskBytes))
  const header = { kind: 'dictionary', values: dictionary.count, encoding: encodings.plain } as const
  return output.put(header, body.address, body.bytes)
}

/** Writes the strings of the symbols as PLAIN byte arrays. */
function writeSymbols(job: ColumnJob, ids: Int32Array): { address: number; bytes: number } {
  const { u8 } = job.tools.scratch.memory
  const strings = Array.from(ids, (id) => job.symbol(id))
  const bytes = strings.reduce((sum, text) => sum + 4 + text.length, 0)
  const address = job.tools.scratch.room('raw', bytes)
  let at = address
  for (const text of strings) {
    for (let byte = 0; byte < 4; byte++) u8[at + byte] = (text.length >>> (byte * 8)) & 255
    u8.set(text, at + 4)
    at += 4 + text.length
  }
  assert(at === address + bytes, 'R3: lengths of symbols add up to their bytes')
  return { address, bytes }
}
