// The part index: all metadata that our reader needs of a part (the Parquet file of a table), in one checksummed block,
// so that opening a part parses no Thrift. It is stored between the last column and the Parquet footer, where other
// Parquet readers skip it. Little-endian:
//
//   pages    for each column of the metadata, for each page: offset f64 | header bytes u32 | bytes u32 |
//            raw bytes u32 | crc32 u32 | nulls u32 | 1 has bounds, 2 has a sum u32 | least 8 |
//            greatest 8 | sum 8                                                                      (56 bytes)
//   rows     first row of each page u32
//   metadata JSON text (PartMetadata)
//   tail     pages per column u32 | metadata bytes u32 | crc32 of pages, rows and metadata u32 | "PNI1"
//
// Every byte of a part is covered by a checksum. Pages, dictionary pages, symbol ids and Bloom filters have their own,
// this index has one, and `outsideCrc` of the metadata covers the rest in file order: the magic at both ends, page
// headers, column and offset indexes, and the footer.
//
// Bounds are as the range kernel (WebAssembly) writes them: an i32, u32, f32, i64 or f64 in 8 bytes each. Sums are as
// the sum kernel writes them: an f64 for floating-point types, else an i64 that did not overflow. Parts of format 1
// have no sums: their records have 48 bytes.

import { crc32 } from 'node:zlib'
import { assert } from '../../base/assert.js'
import { CorruptionError } from '../../base/errors.js'
import type { File, Files } from '../../base/files.js'
import { rangeKinds } from '../../kernels/parquet.js'
import type { DataType } from '../../types/column-types.js'
import type { ColumnSchema } from '../schema/schema.js'
import { pageCodecs } from './parquet-codec.js'
import { encodings, mappingOf } from './parquet-types.js'
import type { PagePlace, WrittenColumn, WrittenDictionary, WrittenPage } from './part-column.js'

export const parquetMagic = 'PAR1'
const indexMagic = 'PNI1'
const pageBytes = 56
/** Record size in parts of format 1. */
const pageBytesBefore = 48
const indexTailBytes = 16
const parquetTailBytes = 8
export const partFormat = 2

/** A run of i32 in the file: for each entry of a SYMBOL column's dictionary page the id in the table's dictionary. */
export interface SymbolRun {
  readonly columnId: number
  readonly offset: number
  readonly count: number
  readonly crc: number
}

/** The Bloom filter of a column (bloom-filter.ts), which follows its Thrift header. */
export interface BloomRun {
  readonly columnId: number
  /** Of the filter itself. */
  readonly offset: number
  readonly headerBytes: number
  readonly bytes: number
  readonly crc: number
}

export interface PartMetadata {
  readonly format: 1 | 2
  readonly partId: number
  readonly table: string
  readonly tableId: number
  readonly schemaVersion: number
  readonly partition: string
  readonly timestampId: number
  readonly minTxn: number
  readonly maxTxn: number
  readonly rows: number
  readonly columns: readonly ColumnMetadata[]
  readonly symbols: readonly SymbolRun[]
  /** Absent in parts without Bloom filters. */
  readonly blooms?: readonly BloomRun[]
  /** Only in the part index, not in the footer; undefined in parts of earlier versions. */
  readonly outsideCrc?: number
}

export interface ColumnMetadata {
  readonly id: number
  readonly name: string
  readonly type: DataType
  /** The type in SQL syntax, for people. */
  readonly text: string
  /** Parquet's number of the codec. */
  readonly codec: number
  readonly encoding: number
  readonly dictionary: WrittenDictionary | null
}

/** Whether the part can only be read by servers that know PARQUET(..) of a column. */
export function hasColumnStorage({ columns, blooms }: PartMetadata): boolean {
  return (
    blooms !== undefined ||
    columns.some(({ codec, encoding, type }) => {
      if (!usualCodecs.includes(codec)) return true
      return encoding === encodings.plain && mappingOf(type).conversion === 'text'
    })
  )
}

const usualCodecs: readonly number[] = [pageCodecs.none, pageCodecs.lz4_raw, pageCodecs.zstd]

/** The metadata of a written column. */
export function columnMetadata({ id, name, type }: ColumnSchema, text: string, written: WrittenColumn): ColumnMetadata {
  const { encoding, dictionary = null } = written
  return { id, name, type, text, codec: pageCodecs[written.codec], encoding, dictionary }
}

export function encodePartIndex(
  metadata: PartMetadata,
  firstRows: readonly number[],
  columns: readonly { readonly written: WrittenColumn }[],
): Uint8Array[] {
  const pageCount = firstRows.length - 1
  const pages = Buffer.alloc(columns.length * pageCount * pageBytes)
  let at = 0
  for (const { written } of columns) for (const page of written.pages) at = putPage(pages, at, page)
  assert(at === pages.length, 'F2: the index of a part has a record for each page')
  const rows = Buffer.alloc(pageCount * 4)
  for (let page = 0; page < pageCount; page++) rows.writeUInt32LE(firstRows[page] as number, page * 4)
  const text = Buffer.from(JSON.stringify(metadata))
  const tail = Buffer.alloc(indexTailBytes)
  tail.writeUInt32LE(pageCount, 0)
  tail.writeUInt32LE(text.length, 4)
  tail.writeUInt32LE(crc32(text, crc32(rows, crc32(pages))), 8)
  tail.write(indexMagic, 12, 'latin1')
  return [pages, rows, text, tail]
}

const hasBounds = 1
const hasSum = 2

function putPage(target: Buffer, at: number, page: WrittenPage): number {
  target.writeDoubleLE(page.offset, at)
  const known = (page.range === undefined ? 0 : hasBounds) + (page.sum === undefined ? 0 : hasSum)
  const words = [page.headerBytes, page.bytes, page.rawBytes, page.crc, page.nulls, known]
  for (const [index, value] of words.entries()) target.writeUInt32LE(value, at + 8 + index * 4)
  if (page.range !== undefined) target.set(page.range, at + 32)
  if (page.sum !== undefined) target.set(page.sum, at + 48)
  return at + pageBytes
}

/** One column of an opened part. */
export interface PartColumn {
  readonly metadata: ColumnMetadata
  readonly symbols: SymbolRun | undefined
  readonly bloom: BloomRun | undefined
  /** The records of its pages. */
  readonly pages: Buffer
  readonly recordBytes: number
}

export interface PartIndex {
  /** Location of the index in the file. */
  readonly place: { readonly offset: number; readonly bytes: number }
  readonly metadata: PartMetadata
  /** First row of each page, followed by the row count. */
  readonly firstRows: Uint32Array
  readonly columns: ReadonlyMap<number, PartColumn>
}

export function pageAt({ pages, recordBytes }: PartColumn, page: number): PagePlace {
  assert((page + 1) * recordBytes <= pages.length, 'F2: a page of the part is read')
  const at = page * recordBytes
  const word = (index: number) => pages.readUInt32LE(at + 8 + index * 4)
  return { offset: pages.readDoubleLE(at), headerBytes: word(0), bytes: word(1), rawBytes: word(2), crc: word(3) }
}

export function nullsAt({ pages, recordBytes }: PartColumn, page: number): number {
  return pages.readUInt32LE(page * recordBytes + 24)
}

/** The sum of the page's values; undefined if all are NULL or no sum was stored. */
export function sumAt({ pages, recordBytes }: PartColumn, page: number, kind: number): number | bigint | undefined {
  const at = page * recordBytes
  if ((pages.readUInt32LE(at + 28) & hasSum) === 0) return undefined
  const floating = kind === rangeKinds.f32 || kind === rangeKinds.f64
  return floating ? pages.readDoubleLE(at + 48) : pages.readBigInt64LE(at + 48)
}

/** The page's bounds as the range kernel wrote them. */
export function rangeBytesAt({ pages, recordBytes }: PartColumn, page: number): Uint8Array | undefined {
  const at = page * recordBytes
  return (pages.readUInt32LE(at + 28) & hasBounds) === 0 ? undefined : Uint8Array.from(pages.subarray(at + 32, at + 48))
}

/** The page's bounds; undefined if all values are NULL or the type has no bounds. */
export function boundsAt(
  { pages, recordBytes }: PartColumn,
  page: number,
  kind: number,
): { min: number | bigint; max: number | bigint } | undefined {
  const at = page * recordBytes
  if ((pages.readUInt32LE(at + 28) & hasBounds) === 0) return undefined
  return { min: rangeValue(kind, pages, at + 32), max: rangeValue(kind, pages, at + 40) }
}

/** A bound as a number, or as a bigint for 64-bit integers. */
export function rangeValue(kind: number, range: Buffer, offset: number): number | bigint {
  switch (kind) {
    case rangeKinds.i32:
      return range.readInt32LE(offset)
    case rangeKinds.u32:
      return range.readUInt32LE(offset)
    case rangeKinds.i64:
      return range.readBigInt64LE(offset)
    case rangeKinds.f32:
      return range.readFloatLE(offset)
    default:
      return range.readDoubleLE(offset)
  }
}

/** Large enough for most indexes, so that one read suffices. */
const firstReadBytes = 64 * 1024

/** Throws CorruptionError if the file does not end like a part. */
export function readPartIndex(files: Files, path: string): PartIndex {
  const file = files.open(path, 'read')
  try {
    return readIndex(file, path)
  } finally {
    file.close()
  }
}

/** `endBytesMax`: what may be read of the end of the file to find the index in it. */
export function readIndex(file: File, path: string, endBytesMax = firstReadBytes): PartIndex {
  const size = file.size()
  const endBytes = Math.min(size, endBytesMax, firstReadBytes)
  const end = readAt(file, path, size - endBytes, endBytes)
  if (end.length < parquetTailBytes || end.toString('latin1', end.length - 4) !== parquetMagic) {
    throw new CorruptionError('a part file does not end like a part', path, Math.max(0, size - parquetTailBytes))
  }
  const footerBytes = end.readUInt32LE(end.length - parquetTailBytes)
  const tailAt = size - parquetTailBytes - footerBytes - indexTailBytes
  if (tailAt < 4) throw new CorruptionError('the footer of a part is too long', path, size - parquetTailBytes)
  const tail = readFrom(file, path, end, size, tailAt, indexTailBytes)
  if (tail.toString('latin1', 12) !== indexMagic) throw new CorruptionError('a part has no index', path, tailAt)
  const [pageCount, textBytes] = [tail.readUInt32LE(0), tail.readUInt32LE(4)]
  if (textBytes > tailAt) throw new CorruptionError('the index of a part is too long', path, tailAt)
  const text = readFrom(file, path, end, size, tailAt - textBytes, textBytes)
  const metadata = parseMetadata(path, text, tailAt - textBytes)
  const recordBytes = metadata.format === 1 ? pageBytesBefore : pageBytes
  const bytes = metadata.columns.length * pageCount * recordBytes + pageCount * 4
  const offset = tailAt - textBytes - bytes
  if (offset < 4) throw new CorruptionError('the index of a part is too long', path, tailAt)
  const records = readFrom(file, path, end, size, offset, bytes)
  if (crc32(text, crc32(records)) !== tail.readUInt32LE(8)) {
    throw new CorruptionError('the index of a part is damaged', path, offset)
  }
  // Records are copied, so that the index does not retain the whole buffer.
  const place = { offset, bytes: tailAt + indexTailBytes - offset }
  return { place, ...indexOf(metadata, pageCount, Buffer.from(records), recordBytes) }
}

/** Bytes of the file, taken from the buffer of its end if they are in it. */
function readFrom(file: File, path: string, end: Buffer, size: number, offset: number, bytes: number): Buffer {
  const first = offset - (size - end.length)
  return first >= 0 ? end.subarray(first, first + bytes) : readAt(file, path, offset, bytes)
}

function readAt(file: File, path: string, offset: number, bytes: number): Buffer {
  const target = Buffer.alloc(bytes)
  if (file.read(target, offset) < bytes) throw new CorruptionError('a part is cut off', path, offset)
  return target
}

/** Called before the checksum is verified, so the text may be anything. */
function parseMetadata(path: string, text: Buffer, offset: number): PartMetadata {
  try {
    const metadata = JSON.parse(text.toString('utf8')) as PartMetadata
    const format: unknown = metadata.format
    if ((format === partFormat || format === 1) && Array.isArray(metadata.columns)) return metadata
    if (typeof format === 'number') throw CorruptionError.ofFormat(format, partFormat, path, offset)
  } catch (cause) {
    if (cause instanceof CorruptionError) throw cause
    throw Object.assign(new CorruptionError('the metadata of a part is unreadable', path, offset), { cause })
  }
  throw new CorruptionError('the metadata of a part is unreadable', path, offset)
}

function indexOf(
  metadata: PartMetadata,
  pageCount: number,
  records: Buffer,
  recordBytes: number,
): Omit<PartIndex, 'place'> {
  const columnBytes = pageCount * recordBytes
  const columns = new Map<number, PartColumn>()
  for (const [index, column] of metadata.columns.entries()) {
    columns.set(column.id, {
      metadata: column,
      symbols: metadata.symbols.find(({ columnId }) => columnId === column.id),
      bloom: metadata.blooms?.find(({ columnId }) => columnId === column.id),
      pages: records.subarray(index * columnBytes, (index + 1) * columnBytes),
      recordBytes,
    })
  }
  const firstRows = new Uint32Array(pageCount + 1)
  const rowsAt = metadata.columns.length * columnBytes
  for (let page = 0; page < pageCount; page++) firstRows[page] = records.readUInt32LE(rowsAt + page * 4)
  firstRows[pageCount] = metadata.rows
  return { metadata, firstRows, columns }
}
