// Reads QWP messages, the columnar binary format of ingestion over WebSocket: header, dictionary delta, table blocks
// and where the values of each column are. Everything is little-endian; a varint is unsigned LEB128.
//
//   message     header | [delta, with flag 0x08] | table block * tableCount
//   header      magic "QWP1" (4) | version u8 (1) | flags u8 | tableCount u16 | payload bytes u32
//   flags       0x01 rows wait for a later message without this flag, which commits them together
//               0x04 timestamps have an encoding byte
//               0x08 symbols are ids of the connection's dictionary, to which the delta adds entries
//   delta       first id varint | count varint | (bytes varint | UTF-8) * count
//   table       name bytes varint | name | rows varint | columns varint | definition * columns | values * columns
//   definition  name bytes varint | name | type u8; an empty name is the designated timestamp
//   values      null flag u8 | [bitmap of ceil(rows / 8) bytes, unless the flag is 0: bit 1 = NULL, lowest bit first]
//               | n values: n = rows without a bitmap, else the rows that are not NULL
//
//   BOOLEAN               ceil(n / 8) bytes, lowest bit first
//   BYTE SHORT INT LONG   n integers of 1, 2, 4, 8 bytes; INT and LONG: the minimum is NULL
//   FLOAT DOUBLE          n numbers of 4, 8 bytes; NaN is NULL
//   CHAR IPv4 DATE        n integers of 2, 4, 8 bytes; IPv4 0 is NULL; DATE: milliseconds, without encoding byte
//   UUID LONG256          n values of 16, 32 bytes, least significant word first; all words the minimum: NULL
//   TIMESTAMP(_NANOS)     [encoding u8, with flag 0x04] | encoding 0: n i64; 1: first i64 | second i64 | differences
//                         of differences as bits (gorilla.ts)
//   VARCHAR BINARY        n + 1 offsets u32 from 0 on | bytes
//   SYMBOL                [entries varint | (bytes varint | UTF-8) * entries, without flag 0x08] | n ids, varint each
//   GEOHASH               bits varint (1 to 60) | n values of ceil(bits / 8) bytes; all ones: NULL
//   DECIMAL64/128/256     scale u8 | n two's complement integers of 8, 16, 32 bytes; the minimum is NULL
//   DOUBLE_ARRAY          n times: dimensions u8 (not 0) | length i32 * dimensions | f64 in row-major order
//   LONG_ARRAY            the same with i64
//
// A message is checked as a whole before anything of it is used. NetworkError: it breaks the format.

import { isUtf8 } from 'node:buffer'
import { NetworkError } from '../base/errors.js'
import { arrayDimensionsMax, decimalDigitsMax, nameCharactersMax, tableColumnsMax } from '../base/limits.js'
import { gorillaEnd } from './gorilla.js'

const messageHeaderBytes = 12
const messageVersion = 1
export const messageFlags = { defer: 0x01, gorilla: 0x04, deltaSymbols: 0x08 } as const
const knownFlags = messageFlags.defer | messageFlags.gorilla | messageFlags.deltaSymbols
const magic = 0x31505751
/** Names are UTF-8: a character of a name takes at most 3 bytes for each UTF-16 unit. */
const nameBytesMax = nameCharactersMax * 3
const geohashBitsMax = 60
const emptyText = ''

export const wireTypes = {
  BOOLEAN: 0x01,
  BYTE: 0x02,
  SHORT: 0x03,
  INT: 0x04,
  LONG: 0x05,
  FLOAT: 0x06,
  DOUBLE: 0x07,
  SYMBOL: 0x09,
  TIMESTAMP: 0x0a,
  DATE: 0x0b,
  UUID: 0x0c,
  LONG256: 0x0d,
  GEOHASH: 0x0e,
  VARCHAR: 0x0f,
  TIMESTAMP_NANOS: 0x10,
  DOUBLE_ARRAY: 0x11,
  LONG_ARRAY: 0x12,
  DECIMAL64: 0x13,
  DECIMAL128: 0x14,
  DECIMAL256: 0x15,
  CHAR: 0x16,
  BINARY: 0x17,
  IPv4: 0x18,
} as const

export type WireType = keyof typeof wireTypes

const typesByCode = new Map<number, WireType>()
for (const name of Object.keys(wireTypes)) if (isWireType(name)) typesByCode.set(wireTypes[name], name)

/** Undefined: there is no type with that number. */
export function wireTypeOf(code: number): WireType | undefined {
  return typesByCode.get(code)
}

function isWireType(name: string): name is WireType {
  return name in wireTypes
}

/** Bytes of a value, for types whose values have one size. */
export const wireWidths: Partial<Record<WireType, number>> = {
  ...{ BYTE: 1, SHORT: 2, CHAR: 2, INT: 4, IPv4: 4, FLOAT: 4, LONG: 8, DOUBLE: 8, DATE: 8 },
  ...{ TIMESTAMP: 8, TIMESTAMP_NANOS: 8, UUID: 16, LONG256: 32 },
  ...{ DECIMAL64: 8, DECIMAL128: 16, DECIMAL256: 32 },
}

/** One column of a table block. Positions are those of the reader's bytes. */
export interface WireColumn {
  readonly name: string
  readonly type: WireType
  /** Rows that have a value. */
  values: number
  /** Where the bitmap of NULLs is; -1: every row has a value. */
  nulls: number
  /** Where the values begin; of texts, their offsets. */
  at: number
  /** Where the bytes of texts begin. */
  data: number
  /** GEOHASH: bits; DECIMAL: scale; arrays: dimensions of the first value, 0 without one. */
  parameter: number
  /** Timestamps are differences of differences. */
  gorilla: boolean
  /** Where the column's own dictionary begins, and its entries; -1: ids are those of the connection. */
  entriesAt: number
  entries: number
}

interface MessageHeader {
  readonly flags: number
  readonly tables: number
}

export interface TableBlock {
  readonly name: string
  readonly rows: number
  readonly columns: readonly WireColumn[]
}

/** The encoding of WireReader.varint(). */
export function varint(value: number): Buffer {
  const bytes: number[] = []
  let rest = value
  for (; rest >= 0x80; rest = Math.floor(rest / 128)) bytes.push((rest % 128) | 0x80)
  return Buffer.from([...bytes, rest])
}

/**
 * A cursor over the bytes of one message, with positions below 2^31: V8 reads typed arrays slowly beyond, and allocates a
 * number for each position.
 */
export class WireReader {
  readonly u8: Uint8Array
  readonly view: DataView
  readonly start: number
  readonly end: number
  at: number

  constructor(u8: Uint8Array, view: DataView, start: number, end: number) {
    this.u8 = u8
    this.view = view
    this.start = start
    this.end = end
    this.at = start
  }

  /** The position before so many bytes, after which the reader is then. */
  take(bytes: number): number {
    const { at } = this
    if (bytes > this.end - at) throw this.error(`the message ends within ${bytes} bytes that it announces`)
    this.at = at + bytes
    return at
  }

  byte(): number {
    return this.u8[this.take(1)]!
  }

  varint(): number {
    let value = 0
    let scale = 1
    for (;;) {
      const byte = this.byte()
      value += (byte & 0x7f) * scale
      if (byte < 0x80) break
      scale *= 128
      if (scale > 2 ** 49) throw this.error('a number is too large')
    }
    return value
  }

  text(bytes: number): string {
    const at = this.take(bytes)
    const view = this.u8.subarray(at, at + bytes)
    if (!isUtf8(view)) throw this.error('a string is not UTF-8')
    return Buffer.from(view).toString('utf8')
  }

  name(): string {
    const bytes = this.varint()
    if (bytes > nameBytesMax) throw this.error(`a name is too long [bytes=${bytes}, limit=${nameBytesMax}]`)
    return bytes === 0 ? emptyText : this.text(bytes)
  }

  error(what: string): NetworkError {
    return new NetworkError(`malformed message: ${what} [offset=${this.at - this.start}]`)
  }
}

/** What of a message waits for a later one: nothing, its symbols alone (it has no rows), or its rows. */
export function deferral(message: Uint8Array): 'none' | 'symbols' | 'rows' {
  if (message.length < messageHeaderBytes || ((message[5] ?? 0) & messageFlags.defer) === 0) return 'none'
  return message[6] === 0 && message[7] === 0 ? 'symbols' : 'rows'
}

/** Whether the bytes begin like a message that refers to no other one, and are as many as it says. */
export function isLoneMessage(message: Uint8Array): boolean {
  if (message.length < messageHeaderBytes) return false
  const view = new DataView(message.buffer, message.byteOffset, message.length)
  if (view.getUint32(0, true) !== magic || view.getUint8(4) !== messageVersion) return false
  const otherFlags = ~(messageFlags.gorilla | messageFlags.defer)
  return (view.getUint8(5) & otherFlags) === 0 && view.getUint32(8, true) === message.length - messageHeaderBytes
}

export function readHeader(reader: WireReader): MessageHeader {
  const { view } = reader
  const at = reader.take(messageHeaderBytes)
  if (view.getUint32(at, true) !== magic) throw reader.error('it does not begin with QWP1')
  const version = view.getUint8(at + 4)
  if (version !== messageVersion) throw reader.error(`the version is ${version}, agreed is ${messageVersion}`)
  const flags = view.getUint8(at + 5)
  if ((flags & ~knownFlags) !== 0) throw reader.error(`unknown flags [flags=${flags}]`)
  const payload = view.getUint32(at + 8, true)
  if (payload !== reader.end - reader.at) {
    throw reader.error(
      `the payload is not as long as announced [bytes=${reader.end - reader.at}, announced=${payload}]`,
    )
  }
  return { flags, tables: view.getUint16(at + 6, true) }
}

interface TableLimits {
  readonly rowsMax: number
}

/** Reads a table block: its definitions, and where the values are. */
export function readTable(reader: WireReader, flags: number, { rowsMax }: TableLimits): TableBlock {
  const name = reader.name()
  const rows = reader.varint()
  if (rows > rowsMax) {
    throw reader.error(`too many rows of a table [rows=${rows}, limit=${rowsMax}, setting=qwp.max.rows.per.table]`)
  }
  const count = reader.varint()
  if (count > tableColumnsMax) throw reader.error(`too many columns [columns=${count}, limit=${tableColumnsMax}]`)
  if (count === 0 && rows > 0) throw reader.error(`rows have no columns [table=${name}, rows=${rows}]`)
  const columns: WireColumn[] = []
  const names = new Set<string>()
  for (let index = 0; index < count; index++) {
    const column = readDefinition(reader)
    const lower = column.name.toLowerCase()
    if (names.has(lower)) throw reader.error(`a column comes twice [column=${column.name}]`)
    names.add(lower)
    columns.push(column)
  }
  for (const column of columns) readWireValues(reader, column, rows, flags)
  return { name, rows, columns }
}

function readDefinition(reader: WireReader): WireColumn {
  const name = reader.name()
  const code = reader.byte()
  const type = wireTypeOf(code)
  if (type === undefined) throw reader.error(`unknown column type [column=${name}, type=${code}]`)
  if (name === emptyText && type !== 'TIMESTAMP' && type !== 'TIMESTAMP_NANOS') {
    throw reader.error(`a column without a name is no timestamp [type=${type}]`)
  }
  return newWireColumn(name, type)
}

export function newWireColumn(name: string, type: WireType): WireColumn {
  return { name, type, values: 0, nulls: -1, at: 0, data: 0, parameter: 0, gorilla: false, entriesAt: -1, entries: 0 }
}

/** Notes where the values are, and checks that they are all there. */
export function readWireValues(reader: WireReader, column: WireColumn, rows: number, flags: number): void {
  readNulls(reader, column, rows)
  const { type, values } = column
  switch (type) {
    case 'BOOLEAN':
      column.at = reader.take(Math.ceil(values / 8))
      return
    case 'TIMESTAMP':
    case 'TIMESTAMP_NANOS':
      readTimestamps(reader, column, flags)
      return
    case 'VARCHAR':
    case 'BINARY':
      readStrings(reader, column)
      return
    case 'SYMBOL':
      readSymbols(reader, column, flags)
      return
    case 'GEOHASH':
      column.parameter = reader.varint()
      if (column.parameter < 1 || column.parameter > geohashBitsMax) {
        throw reader.error(`bits of a geohash are 1 to ${geohashBitsMax} [bits=${column.parameter}]`)
      }
      column.at = reader.take(values * Math.ceil(column.parameter / 8))
      return
    case 'DOUBLE_ARRAY':
    case 'LONG_ARRAY':
      readArrays(reader, column)
      return
    case 'DECIMAL64':
    case 'DECIMAL128':
    case 'DECIMAL256':
      column.parameter = reader.byte()
      if (column.parameter > decimalDigitsMax) {
        throw reader.error(`the scale of a decimal is 0 to ${decimalDigitsMax} [scale=${column.parameter}]`)
      }
      break
    default:
  }
  column.at = reader.take(values * (wireWidths[type] ?? 0))
}

function readNulls(reader: WireReader, column: WireColumn, rows: number): void {
  column.values = rows
  if (reader.byte() === 0) return
  const bytes = Math.ceil(rows / 8)
  column.nulls = reader.take(bytes)
  const { u8 } = reader
  for (let index = 0; index < bytes; index++) {
    let bits = u8[column.nulls + index]!
    // Bits after the last row mean nothing.
    if (index === bytes - 1 && rows % 8 !== 0) bits &= (1 << (rows % 8)) - 1
    for (; bits !== 0; bits &= bits - 1) column.values--
  }
}

function readTimestamps(reader: WireReader, column: WireColumn, flags: number): void {
  const encoding = (flags & messageFlags.gorilla) === 0 ? 0 : reader.byte()
  if (encoding > 1) throw reader.error(`unknown encoding of timestamps [encoding=${encoding}]`)
  column.gorilla = encoding === 1
  column.at = reader.at
  reader.take(column.gorilla ? Math.min(column.values, 2) * 8 : column.values * 8)
  if (!column.gorilla || column.values < 3) return
  const end = gorillaEnd(reader.u8, reader.at, reader.end, column.values - 2)
  if (end < 0) throw reader.error('the message ends within its timestamps')
  reader.at = end
}

function readStrings(reader: WireReader, column: WireColumn): void {
  const { values } = column
  column.at = reader.take((values + 1) * 4)
  const { view } = reader
  let last = view.getUint32(column.at, true)
  if (last !== 0) throw reader.error('the first offset of a column of strings is 0')
  for (let index = 1; index <= values; index++) {
    const offset = view.getUint32(column.at + index * 4, true)
    if (offset < last) throw reader.error('offsets of strings descend')
    last = offset
  }
  column.data = reader.take(last)
  if (column.type === 'VARCHAR') checkStrings(reader, column, last)
}

/** Checks all strings at once, and then that none of them begins within a character. */
function checkStrings(reader: WireReader, { at, data, values, name }: WireColumn, bytes: number): void {
  const { u8, view } = reader
  if (!isUtf8(u8.subarray(data, data + bytes))) throw reader.error(`a string is not UTF-8 [column=${name}]`)
  for (let index = 1; index < values; index++) {
    const offset = view.getUint32(at + index * 4, true)
    if (offset < bytes && (u8[data + offset]! & 0xc0) === 0x80) {
      throw reader.error(`a string is not UTF-8 [column=${name}]`)
    }
  }
}

function readSymbols(reader: WireReader, column: WireColumn, flags: number): void {
  if ((flags & messageFlags.deltaSymbols) === 0) {
    column.entries = reader.varint()
    if (column.entries > symbolEntriesMax) throw reader.error(tooManySymbols)
    column.entriesAt = reader.at
    for (let index = 0; index < column.entries; index++) skipText(reader)
  }
  column.at = reader.at
  const { u8, end } = reader
  let { at } = reader
  for (let index = 0; index < column.values; index++) {
    while (at < end && u8[at]! >= 0x80) at++
    at++
  }
  if (at > end) throw reader.error('the message ends within its symbols')
  reader.at = at
}

/** Entries of a connection's dictionary, or of one column's. */
export const symbolEntriesMax = 2_000_000
export const tooManySymbols = `too many symbols [limit=${symbolEntriesMax}]`

function skipText(reader: WireReader): void {
  const bytes = reader.varint()
  const at = reader.take(bytes)
  if (!isUtf8(reader.u8.subarray(at, at + bytes))) throw reader.error('a symbol is not UTF-8')
}

function readArrays(reader: WireReader, column: WireColumn): void {
  column.at = reader.at
  for (let index = 0; index < column.values; index++) {
    const dimensions = reader.byte()
    if (dimensions < 1 || dimensions > arrayDimensionsMax) {
      throw reader.error(`dimensions of an array are 1 to ${arrayDimensionsMax} [dimensions=${dimensions}]`)
    }
    if (index === 0) column.parameter = dimensions
    const lengths = reader.take(dimensions * 4)
    let elements = 1
    for (let dimension = 0; dimension < dimensions; dimension++) {
      const length = reader.view.getInt32(lengths + dimension * 4, true)
      if (length < 0) throw reader.error('a length of an array is negative')
      elements *= length
    }
    reader.take(elements * 8)
  }
}
