// Decodes pages of parts (Parquet files that the server wrote) to columns in memory: verifies the checksum,
// decompresses, decodes, and inserts the values that represent NULL. It reads exactly what part-page.ts and
// part-column.ts write, and treats anything else as damage.

import { crc32 } from 'node:zlib'
import { assert } from '../../base/assert.js'
import { CorruptionError } from '../../base/errors.js'
import type { File } from '../../base/files.js'
import type { Kernels } from '../../kernels/load.js'
import type { ParquetKernel } from '../../kernels/parquet.js'
import { decompressPage, pageCodecs } from './parquet-codec.js'
import { type ColumnMapping, encodings } from './parquet-types.js'
import type { PagePlace } from './part-column.js'
import { nullsAt, type PartColumn } from './part-index.js'
import type { Scratch } from './part-scratch.js'

export interface DecodeTools {
  readonly kernels: Pick<Kernels, 'parquet' | 'foreign'>
  readonly kernel: ParquetKernel
  readonly scratch: Scratch
}

/** A page of an open file. */
export interface PageInFile extends PagePlace {
  readonly file: File
  readonly codec: number
  readonly encoding: number
  /** Whether the checksum need not be verified again. */
  readonly isChecked?: boolean
}

/** The verified and decompressed bytes of a page. */
export interface RawPage {
  readonly place: PageInFile
  readonly address: number
  readonly bytes: number
}

/** A decoded dictionary in memory: values of 4 to 32 bytes, or entries of strings. */
export interface DecodedDictionary {
  readonly address: number
  readonly count: number
}

export function damaged({ file, offset }: Pick<PageInFile, 'file' | 'offset'>, message: string): CorruptionError {
  return new CorruptionError(message, file.path, offset)
}

export function readPage({ kernels, scratch }: DecodeTools, place: PageInFile): RawPage {
  const { memory } = scratch
  const address = scratch.room('encoded', place.bytes)
  readBody({ scratch }, place, address)
  if (place.codec === pageCodecs.none) return { place, address, bytes: place.bytes }
  const target = scratch.room('page', place.rawBytes)
  const from = { address, bytes: place.bytes }
  if (!decompressPage(kernels, memory.u8, place.codec, from, target, place.rawBytes)) {
    throw damaged(place, 'a page cannot be decompressed')
  }
  return { place, address: target, bytes: place.rawBytes }
}

/** Reads the page's bytes as stored to an address, and verifies the checksum if that is due. */
export function readBody({ scratch }: Pick<DecodeTools, 'scratch'>, place: PageInFile, address: number): void {
  const body = scratch.memory.u8.subarray(address, address + place.bytes)
  if (place.file.read(body, place.offset + place.headerBytes) < place.bytes) throw damaged(place, 'a part is cut off')
  if (place.isChecked !== true && crc32(body) !== place.crc) throw damaged(place, 'the checksum of a page is wrong')
}

/** Size of a decoded page. Its strings follow the entries. */
export function decodedBytes(mapping: ColumnMapping, rows: number, page: RawPage): number {
  const fixed = rows * mapping.memoryBytes
  const ownStrings = mapping.conversion === 'text' && page.place.encoding !== encodings.dictionary
  return fixed + 63 - ((fixed + 63) % 64) + (ownStrings ? page.bytes : 0)
}

/** Decodes a data page of `rows` rows into `target`. */
export function decodePage(
  tools: DecodeTools,
  mapping: ColumnMapping,
  page: RawPage,
  dictionary: DecodedDictionary | undefined,
  rows: number,
  target: number,
): void {
  const { kernel, scratch } = tools
  assert(target % 8 === 0, 'K1: a page is decoded to aligned memory')
  const levels = mapping.optional ? readLevels(scratch.memory.u8, page, rows) : { present: rows, bits: 0, bytes: 0 }
  const whole = levels.present === rows
  const values = whole ? target : scratch.room('values', levels.present * Math.max(4, mapping.memoryBytes))
  const body = { place: page.place, address: page.address + levels.bytes, bytes: page.bytes - levels.bytes }
  if (levels.present > 0) decodeBody(tools, mapping, body, dictionary, { count: levels.present, values, target, rows })
  if (whole) return
  if (levels.present === 0) kernel.fillNull(rows, mapping.memoryBytes, mapping.nullKind, target)
  else {
    const done = kernel.expand(
      ...([values, levels.present, rows, mapping.memoryBytes, levels.bits, mapping.nullKind, target] as const),
    )
    if (done !== 0) throw damaged(page.place, 'the levels of a page are wrong')
  }
}

/** Location of a page's dictionary indexes, if it is dictionary-encoded and has no NULLs; else undefined. */
export function packedValues(
  { scratch }: DecodeTools,
  mapping: ColumnMapping,
  page: RawPage,
  rows: number,
): { readonly address: number; readonly bytes: number; readonly bits: number } | undefined {
  if (page.place.encoding !== encodings.dictionary) return undefined
  const levels = mapping.optional ? readLevels(scratch.memory.u8, page, rows) : { present: rows, bytes: 0 }
  if (levels.present !== rows || page.bytes <= levels.bytes) return undefined
  const at = page.address + levels.bytes
  return { address: at + 1, bytes: page.bytes - levels.bytes - 1, bits: scratch.memory.u8[at]! }
}

/** Whether dictionary entries of the column have the memory layout. */
export function isPickable({ conversion, diskBytes, memoryBytes }: ColumnMapping): boolean {
  const direct = conversion === 'none' || conversion === 'symbol' || conversion === 'text'
  return direct && (diskBytes <= 0 || diskBytes === memoryBytes) && memoryBytes >= 4
}

/** Whether the stored values have the memory layout, preceded by levels without NULLs. */
export function isAsInMemory(column: PartColumn, mapping: ColumnMapping, page: number): boolean {
  const { codec, encoding } = column.metadata
  if (codec !== pageCodecs.none || encoding !== encodings.plain) return false
  if (mapping.conversion !== 'none' || mapping.diskBytes !== mapping.memoryBytes) return false
  return !mapping.optional || nullsAt(column, page) === 0
}

interface Levels {
  readonly present: number
  /** Address of one bit per row, 1 = present; set only if some values are NULL and some are not. */
  readonly bits: number
  readonly bytes: number
}

/** Reads definition levels in the two forms that writeLevels produces: one RLE run, or one bit-packed run. */
function readLevels(u8: Uint8Array, page: RawPage, rows: number): Levels {
  const word = (at: number) => u8[at]! + (u8[at + 1]! << 8) + (u8[at + 2]! << 16) + u8[at + 3]! * 2 ** 24
  const bytes = page.bytes >= 4 ? word(page.address) + 4 : 0
  if (bytes < 6 || bytes > page.bytes) throw damaged(page.place, 'the levels of a page are too long')
  let at = page.address + 4
  let header = 0
  for (let shift = 0; shift <= 28; shift += 7) {
    const byte = u8[at++]!
    header += (byte & 127) * 2 ** shift
    if (byte < 128) break
  }
  if (header === rows * 2) return { present: u8[at] === 0 ? 0 : rows, bits: 0, bytes }
  const groups = (rows + 7) >>> 3
  if (header !== groups * 2 + 1 || at + groups !== page.address + bytes) {
    throw damaged(page.place, 'the levels of a page have an unknown form')
  }
  return { present: countBits(u8, at, rows), bits: at, bytes }
}

function countBits(u8: Uint8Array, from: number, rows: number): number {
  let count = 0
  const whole = rows >>> 3
  for (let i = 0; i < whole; i++) count += bitsOf(u8[from + i]!)
  return rows % 8 === 0 ? count : count + bitsOf(u8[from + whole]! & ((1 << (rows % 8)) - 1))
}

function bitsOf(byte: number): number {
  const pairs = byte - ((byte >>> 1) & 0x55)
  const nibbles = (pairs & 0x33) + ((pairs >>> 2) & 0x33)
  return (nibbles + (nibbles >>> 4)) & 15
}

interface BodyTarget {
  readonly count: number
  /** Address for the non-null values: the target itself if there are no NULLs. */
  readonly values: number
  readonly target: number
  readonly rows: number
}

function decodeBody(
  tools: DecodeTools,
  mapping: ColumnMapping,
  page: RawPage,
  dictionary: DecodedDictionary | undefined,
  out: BodyTarget,
): void {
  const { kernel, scratch } = tools
  const { count } = out
  if (mapping.conversion === 'boolean') {
    if (page.bytes < (count + 7) >>> 3) throw damaged(page.place, 'a page of booleans is too short')
    kernel.unpackBooleans(page.address, count, out.values)
    return
  }
  if (page.place.encoding === encodings.deltaLength || (mapping.conversion === 'text' && isPlain(page))) {
    decodeStrings(tools, mapping, page, out)
    return
  }
  const small = mapping.diskBytes > 0 && mapping.diskBytes !== mapping.memoryBytes
  const decoded = small ? scratch.room('wide', count * 4) : out.values
  const done =
    page.place.encoding === encodings.dictionary
      ? decodeDictionary(tools, mapping, page, dictionary, count, decoded)
      : decodePlain(tools, mapping, page, count, decoded)
  if (!done) throw damaged(page.place, 'the values of a page are unreadable')
  if (small) kernel.narrow(decoded, count, mapping.memoryBytes, out.values)
  if (mapping.conversion === 'reverse') kernel.reverseBytes(decoded, count, mapping.memoryBytes, out.values)
}

function decodeDictionary(
  { kernel, scratch }: DecodeTools,
  mapping: ColumnMapping,
  { address, bytes }: RawPage,
  dictionary: DecodedDictionary | undefined,
  count: number,
  target: number,
): boolean {
  if (dictionary === undefined || bytes < 1) return false
  const bits = scratch.memory.u8[address]!
  const width = mapping.diskBytes > 0 ? mapping.diskBytes : mapping.memoryBytes
  return (
    kernel.decodeIndexed(address + 1, bytes - 1, count, bits, dictionary.address, dictionary.count, width, target) === 0
  )
}

function decodePlain(
  { kernel, scratch }: DecodeTools,
  { diskBytes }: ColumnMapping,
  { address, bytes, place }: RawPage,
  count: number,
  target: number,
): boolean {
  switch (place.encoding) {
    case encodings.plain:
      if (bytes < count * diskBytes) return false
      scratch.memory.copy(target, address, address + count * diskBytes)
      return true
    case encodings.byteStreamSplit:
      if (bytes < count * diskBytes) return false
      kernel.joinBytes(address, count, diskBytes, target)
      return true
    case encodings.delta:
      return diskBytes === 8
        ? kernel.deltaDecode64(address, bytes, count, target) >= 0
        : kernel.deltaDecode32(address, bytes, count, target) >= 0
    default:
      return false
  }
}

function isPlain({ place }: RawPage): boolean {
  return place.encoding === encodings.plain
}

/** Writes the entries to the values, and the strings after all entries of the target. */
function decodeStrings({ kernel, scratch }: DecodeTools, mapping: ColumnMapping, page: RawPage, out: BodyTarget): void {
  const fixed = out.rows * mapping.memoryBytes + 63
  const strings = out.target + fixed - (fixed % 64)
  if (isPlain(page)) {
    scratch.memory.copy(strings, page.address, page.address + page.bytes)
    if (kernel.plainTextEntries(strings, page.bytes, out.count, out.values) === 0) return
    throw damaged(page.place, 'the strings of a page do not match their lengths')
  }
  const lengths = scratch.room('lengths', out.count * 4)
  const head = kernel.deltaDecode32(page.address, page.bytes, out.count, lengths)
  if (head < 0) throw damaged(page.place, 'the lengths of a page are unreadable')
  const bytes = page.bytes - head
  scratch.memory.copy(strings, page.address + head, page.address + page.bytes)
  if (kernel.textEntries(lengths, out.count, strings, bytes, out.values) !== 0) {
    throw damaged(page.place, 'the strings of a page do not match their lengths')
  }
}
