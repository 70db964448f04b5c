// Cells of a column as text: one writer per column type, for JSON and for CSV. The forms of values are the same in both;
// quotes, escapes and NULL differ.

import type { SharedMemory } from '../../memory/shared-memory.js'
import { dictionaryEntry } from '../../storage/layout.js'
import { type ColumnType, columnTypes } from '../../types/column-types.js'
import { intMin } from '../../types/number.js'
import type { Value } from '../../types/value.js'
import { displayText } from '../functions/convert.js'
import type { ByteWriter } from './byte-writer.js'
import { numberBytesMax, putDouble, putFloat, putInteger, putLong, TimestampText } from './encode-numbers.js'
import type { SymbolTexts } from './symbols.js'
import { valueReader } from './values.js'
import type { Vector } from './vector.js'

export interface CellForm {
  readonly kind: 'json' | 'csv'
  /** JSON: LONG values in quotes. */
  readonly quoteLongs: boolean
  /** CSV: byte between fields. */
  readonly delimiter: number
}

export interface CellContext {
  readonly memory: SharedMemory
  readonly writer: ByteWriter
  readonly texts: SymbolTexts
  readonly form: CellForm
}

export type CellWriter = (row: number) => void

export function cellWriter(context: CellContext, vector: Vector): CellWriter {
  return writers[vector.type.name](context, vector)
}

const quote = 34
const backslash = 92
const intHighMin = -0x8000_0000

function putNull({ writer, form }: CellContext): void {
  if (form.kind === 'json') writer.ascii('null')
}

type WriterOf = (context: CellContext, vector: Vector) => CellWriter

const integer16: WriterOf =
  ({ memory, writer }, { address }) =>
  (row) => {
    writer.reserve(numberBytesMax)
    putInteger(writer, memory.i16[(address >>> 1) + row] as number)
  }

const integer32: WriterOf = (context, { address }) => {
  const { memory, writer } = context
  return (row) => {
    const value = memory.i32[(address >>> 2) + row] as number
    if (value === intMin) return putNull(context)
    writer.reserve(numberBytesMax)
    putInteger(writer, value)
  }
}

const integer64: WriterOf = (context, { address }) => {
  const { memory, writer, form } = context
  const quoted = form.kind === 'json' && form.quoteLongs
  return (row) => {
    const word = (address >>> 2) + row * 2
    const low = memory.u32[word] as number
    const high = memory.i32[word + 1] as number
    if (high === intHighMin && low === 0) return putNull(context)
    writer.reserve(numberBytesMax)
    if (quoted) writer.u8[writer.at++] = quote
    putLong(writer, low, high)
    if (quoted) writer.u8[writer.at++] = quote
  }
}

const timestampMicros: WriterOf = (context, { address }) => {
  const { memory, writer } = context
  const text = new TimestampText()
  return (row) => {
    const word = (address >>> 2) + row * 2
    const low = memory.u32[word] as number
    const high = memory.i32[word + 1] as number
    if (high === intHighMin && low === 0) return putNull(context)
    writer.reserve(numberBytesMax)
    writer.u8[writer.at++] = quote
    text.put(writer, low, high)
    writer.u8[writer.at++] = quote
  }
}

const double: WriterOf = (context, { address }) => {
  const { memory, writer } = context
  return (row) => {
    const value = memory.f64[(address >>> 3) + row] as number
    if (!Number.isFinite(value)) return putNull(context)
    writer.reserve(numberBytesMax)
    putDouble(writer, value)
  }
}

const float: WriterOf = (context, { address }) => {
  const { memory, writer } = context
  return (row) => {
    const value = memory.f32[(address >>> 2) + row] as number
    if (!Number.isFinite(value)) return putNull(context)
    putFloat(writer, value)
  }
}

const text: WriterOf = (context, { address }) => {
  const { memory } = context
  return (row) => {
    const word = (address >>> 2) + row * 2
    const bytes = memory.i32[word + 1] as number
    if (bytes < 0) putNull(context)
    else putText(context, memory.u32[word] as number, bytes)
  }
}

const symbol: WriterOf = (context, { address, dictionary }) => {
  const { memory } = context
  return (row) => {
    const id = memory.i32[(address >>> 2) + row] as number
    if (id < 0) return putNull(context)
    const entry = dictionaryEntry(memory, dictionary, id) >>> 2
    putText(context, memory.u32[entry] as number, memory.u32[entry + 1] as number)
  }
}

/** Everything rare: through the value's text. */
const general: WriterOf = (context, vector) => {
  const { memory, texts, form, writer } = context
  const read = valueReader(memory, texts, vector)
  const { csvQuotes } = columnTypes[vector.type.name]
  const json = columnTypes[vector.type.name].json
  const quoted = form.kind === 'json' ? json === 'string' : csvQuotes === 'always'
  return (row) => {
    const value: Value = read(row)
    if (value === null) {
      if (form.kind === 'json') writer.ascii(vector.type.name === 'LONG256' ? '""' : 'null')
      return
    }
    const shown = displayText(value, vector.type)
    writer.ascii(quoted ? `"${shown}"` : shown)
  }
}

const char: WriterOf = (context, { address }) => {
  const { memory, writer, form } = context
  return (row) => {
    const unit = memory.u16[(address >>> 1) + row] as number
    const shown = unit === 0 ? '' : String.fromCharCode(unit)
    const needed = shown !== '' && (unit === form.delimiter || '"\r\n'.includes(shown))
    const written = form.kind === 'json' ? JSON.stringify(shown) : needed ? `"${shown === '"' ? '""' : shown}"` : shown
    putUtf8(writer, written)
  }
}

export function putUtf8(writer: ByteWriter, written: string): void {
  const bytes = Buffer.from(written, 'utf8')
  writer.reserve(bytes.length)
  writer.u8.set(bytes, writer.at)
  writer.at += bytes.length
}

const writers: Record<ColumnType, WriterOf> = {
  BOOLEAN:
    ({ memory, writer }, { address }) =>
    (row) =>
      writer.ascii(memory.u8[address + row] === 0 ? 'false' : 'true'),
  BYTE:
    ({ memory, writer }, { address }) =>
    (row) => {
      writer.reserve(numberBytesMax)
      putInteger(writer, memory.i8[address + row] as number)
    },
  SHORT: integer16,
  CHAR: char,
  INT: integer32,
  LONG: integer64,
  DATE: general,
  TIMESTAMP: timestampMicros,
  TIMESTAMP_NS: general,
  FLOAT: float,
  DOUBLE: double,
  STRING: text,
  VARCHAR: text,
  SYMBOL: symbol,
  LONG256: general,
  UUID: general,
  IPv4: general,
  GEOHASH: general,
  BINARY: (context) => () => putNull(context),
  ARRAY: general,
  DECIMAL: general,
  INTERVAL: general,
}

function putText(context: CellContext, address: number, bytes: number): void {
  if (context.form.kind === 'json') putJsonText(context.writer, address, bytes)
  else putCsvText(context.writer, address, bytes)
}

/** Long texts go in pieces, so that no block has to hold six times their size. */
const pieceBytes = 8192

function putJsonText(writer: ByteWriter, address: number, bytes: number): void {
  writer.reserve(1)
  writer.u8[writer.at++] = quote
  for (let from = 0; from < bytes; from += pieceBytes) {
    const count = Math.min(pieceBytes, bytes - from)
    writer.reserve(count * 6)
    putEscaped(writer, address + from, count)
  }
  writer.reserve(1)
  writer.u8[writer.at++] = quote
}

function putEscaped(writer: ByteWriter, address: number, bytes: number): void {
  const { u8 } = writer
  let at = writer.at
  for (let from = address; from < address + bytes; from++) {
    const byte = u8[from] as number
    if (byte >= 32 && byte !== quote && byte !== backslash) u8[at++] = byte
    else at = putEscape(u8, at, byte)
  }
  writer.at = at
}

const hex = '0123456789abcdef'
const shortEscapes = new Map([
  [quote, '\\"'],
  [backslash, '\\\\'],
  [8, '\\b'],
  [9, '\\t'],
  [10, '\\n'],
  [12, '\\f'],
  [13, '\\r'],
])

function putEscape(u8: Uint8Array, start: number, byte: number): number {
  const written = shortEscapes.get(byte) ?? `\\u00${hex[byte >>> 4]}${hex[byte & 15]}`
  let at = start
  for (let index = 0; index < written.length; index++) u8[at++] = written.charCodeAt(index)
  return at
}

function putCsvText(writer: ByteWriter, address: number, bytes: number): void {
  const { u8 } = writer
  writer.reserve(1)
  u8[writer.at++] = quote
  for (let from = 0; from < bytes; from += pieceBytes) {
    const count = Math.min(pieceBytes, bytes - from)
    writer.reserve(count * 2)
    for (let index = 0; index < count; index++) {
      const byte = u8[address + from + index] as number
      if (byte === quote) u8[writer.at++] = quote
      u8[writer.at++] = byte
    }
  }
  writer.reserve(1)
  u8[writer.at++] = quote
}
