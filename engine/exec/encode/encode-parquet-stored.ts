// Copies pages from a table's parts (its own Parquet files) to an exported Parquet file, where possible without
// decoding their values. A page is handled in one of four ways:
//
//   copied        the page has the export's codec: its bytes are copied. So are those of a page that the part left
//                 uncompressed for lack of savings, if the export has Snappy or LZ4.
//   recompressed  the page has another codec, or is copied to a file of version 2, or to ZSTD at another level than 3
//   reindexed     the row group's dictionary differs from the part's: the dictionary indexes are replaced
//   decoded       many readers do not support the encoding: the values are stored plain. This applies to byte stream
//                 split. It also applies to delta in files of Iceberg tables, and in files of version 1, except those
//                 with ZSTD or LZ4: readers of these codecs support delta, too.
//
// Types that exports store differently than parts are encoded row by row (encode-parquet-types.ts): DATE, IPv4,
// DECIMAL, ARRAY, INTERVAL.

import { combineCrc32, crc32 } from '../../base/checksum.js'
import { pageCodecs } from '../../storage/part/parquet-codec.js'
import { encodings, mappingOf } from '../../storage/part/parquet-types.js'
import type { RawPage } from '../../storage/part/part-decode.js'
import { damaged } from '../../storage/part/part-decode.js'
import { rangeValue } from '../../storage/part/part-index.js'
import type { PageTools } from '../../storage/part/part-page.js'
import type { StoredPage } from '../../storage/part/part-stored.js'
import { type DataType, typeText } from '../../types/column-types.js'
import { codecIds, plainHead } from './encode-parquet-codec.js'
import { dataPage, type EncodedPage, type ExportTools, firstPage } from './encode-parquet-page.js'

const otherwise = new Set(['DATE', 'IPv4', 'DECIMAL', 'ARRAY', 'INTERVAL'])
/** A stored page may exceed the requested page size by this factor. */
const oversize = 1.5
const zstdLevelUsual = 3

export function isCopyable(stored: StoredPage, type: DataType, pageBytes: number): boolean {
  return (
    !otherwise.has(type.name) && typeText(stored.type) === typeText(type) && stored.rawBytes <= pageBytes * oversize
  )
}

/** Maps the part's dictionary indexes to those of the row group: address of u32, and their number. */
export interface IndexMap {
  readonly address: number
  readonly count: number
  /** Bits of an index into the row group's dictionary so far. */
  readonly bits: number
}

/** `map` is null when the page has no indexes, or they stay unchanged. */
export function copyStoredPage(
  tools: ExportTools,
  page: PageTools,
  stored: StoredPage,
  map: IndexMap | null,
): { readonly page: EncodedPage; readonly encoding: number } {
  const target = targetEncoding(stored.encoding, tools.encoding)
  const header = { values: stored.rows, nulls: stored.nulls, rows: stored.rows, encoding: target }
  const changed = target !== stored.encoding || map !== null
  const head = changed ? null : headOf(tools, stored)
  if (head !== null) {
    const bytes = head.length + stored.packedBytes
    const address = tools.take(bytes)
    stored.readPacked(address + head.length)
    const body = tools.scratch.memory.u8.subarray(address, address + bytes)
    body.set(head)
    const crc = combineCrc32(crc32(Uint8Array.from(head)), stored.packedCrc, stored.packedBytes)
    return { page: firstPage(header, body, stored.rawBytes, crc), encoding: target }
  }
  const raw = stored.read()
  const levels = page.mapping.optional ? levelBytes(tools, raw) : 0
  const gain = !isIncompressible(stored) || target !== stored.encoding
  // dataPage() expects levels without their length prefix.
  const prefix = levels > 0 ? 4 : 0
  const body = changed ? rewritten(tools, page, stored, raw, levels, map) : raw
  const made = dataPage(tools, {
    ...header,
    address: body.address + prefix,
    repetitionBytes: 0,
    definitionBytes: levels - prefix,
    bytes: body.bytes - prefix,
    gain,
  })
  return { page: made, encoding: target }
}

const rowsPerValue = 4

/**
 * Whether the page would become plain, although its range is so small that a dictionary pays off: encoding one is
 * faster than compression, and takes a third of the bytes.
 */
export function wantsDictionary({ encoding, rows, range, type }: StoredPage, { encoding: file }: ExportTools): boolean {
  if (encoding !== encodings.delta || targetEncoding(encoding, file) === encoding) return false
  if (file.codec === 'NONE' || range === undefined || type.name.startsWith('TIMESTAMP')) return false
  const [bounds, kind] = [Buffer.from(range), mappingOf(type).range]
  const span = Number(rangeValue(kind, bounds, 8)) - Number(rangeValue(kind, bounds, 0))
  return span * rowsPerValue < rows
}

/** Readers that support these codecs support delta encoding, too. */
const recentCodecs: ReadonlySet<string> = new Set(['ZSTD', 'LZ4'])

function targetEncoding(encoding: number, { version, codec, fieldIds }: ExportTools['encoding']): number {
  if (encoding === encodings.byteStreamSplit) return encodings.plain
  const plain = fieldIds !== undefined || (version === 1 && !recentCodecs.has(codec))
  return encoding === encodings.delta && plain ? encodings.plain : encoding
}

/** The header that makes the stored bytes a page of the export; null when they have to be encoded again. */
function headOf({ encoding: { codec, version, level } }: ExportTools, stored: StoredPage): readonly number[] | null {
  // Version 2 pages store their levels outside of the compressed data.
  if (version === 2) return null
  if (codecIds[codec] === stored.codec) return codec !== 'ZSTD' || level === zstdLevelUsual ? [] : null
  return isIncompressible(stored) ? plainHead(codec, stored.rawBytes) : null
}

/** Parts do not compress plain numbers, even if it might save something (storage/part/part-page.ts). */
function isIncompressible({ codec, encoding }: StoredPage): boolean {
  return codec === pageCodecs.none && encoding !== encodings.plain
}

function levelBytes({ scratch }: ExportTools, raw: RawPage): number {
  const { u8 } = scratch.memory
  const word = (at: number) => u8[at]! + (u8[at + 1]! << 8) + (u8[at + 2]! << 16)
  const bytes = raw.bytes >= 4 ? word(raw.address) + 4 : 0
  if (bytes < 6 || bytes > raw.bytes) throw damaged(raw.place, 'the levels of a page are too long')
  return bytes
}

/** The page with its levels, and newly encoded values. */
function rewritten(
  { scratch, kernel }: ExportTools,
  { mapping }: PageTools,
  { rows, nulls, encoding }: StoredPage,
  raw: RawPage,
  levels: number,
  map: IndexMap | null,
): { address: number; bytes: number } {
  const { u8 } = scratch.memory
  const present = rows - nulls
  const width = mapping.diskBytes
  const [source, bytes] = [raw.address + levels, raw.bytes - levels]
  const address = scratch.room('raw', headRoomBytes + levels + present * Math.max(4, width) + 1024) + headRoomBytes
  u8.copyWithin(address, raw.address, source)
  const target = address + levels
  if (map !== null) {
    const indexes = scratch.room('packed', present * 4)
    const bits = u8[source]!
    if (kernel.decodeIndexed(source + 1, bytes - 1, present, bits, map.address, map.count, 4, indexes) !== 0)
      throw damaged(raw.place, 'the values of a page are unreadable')
    u8[target] = map.bits
    return { address, bytes: levels + 1 + kernel.packIndexes(indexes, present, map.bits, target + 1) }
  }
  if (encoding === encodings.byteStreamSplit) kernel.joinBytes(source, present, width, target)
  else {
    const read =
      width === 8
        ? kernel.deltaDecode64(source, bytes, present, target)
        : kernel.deltaDecode32(source, bytes, present, target)
    if (read < 0) throw damaged(raw.place, 'the values of a page are unreadable')
  }
  return { address, bytes: levels + present * width }
}

/** Room for the length prefixes of levels before a page. */
const headRoomBytes = 64
