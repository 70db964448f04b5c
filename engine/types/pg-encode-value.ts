// Encodes single values in the text and binary formats of the PostgreSQL wire protocol: for result rows that no
// WebAssembly kernel encodes, and as the reference for those kernels.
//
// Timestamps are in UTC and show a zone only if the type has one. Types that PostgreSQL lacks (IPv4, GEOHASH, LONG256,
// INTERVAL) are sent with the OID of a string type, so they are text in both formats. An empty CHAR and numbers that
// are not finite are NULL.

import { nonNull } from '../base/assert.js'
import {
  arrayElementType,
  type ColumnType,
  type DataType,
  dataType,
  elementType,
  isDay,
  isJsonb,
  isList,
  isListOfValues,
  isSpan,
  isTimeOfDay,
  isVector,
  isZoned,
  pgOidOf,
  textKinds,
} from './column-types.js'
import { convertValue, valueText } from './convert.js'
import { formatInterval } from './interval.js'
import { formatDecimal, formatDouble, formatFloat } from './number.js'
import { encodeNumeric } from './pg-numeric.js'
import { daysOf, formatIsoSpan } from './span.js'
import { formatGeohash, formatIpv4, formatLong256, formatUuid } from './text.js'
import { elementsOf, textArray, textElements } from './text-lists.js'
import { microsOfTimeOfDay } from './time-of-day.js'
import { formatDate, formatTimestamp } from './timestamp.js'
import { floorDivide } from './timestamp-calendar.js'
import type { ArrayValue, Value, ValuesByType } from './value.js'

type Present = Exclude<Value, null>
/**
 * Encodes a value. Declared as a method, so that a form for certain types may declare the values that it gets: it is
 * only called with these.
 */
type Form<Taken, Result> = { form(value: Taken, type: DataType): Result }['form']
type TextForm = Form<Present, string | null>
type BinaryForm = Form<Present, Uint8Array | string | null>
type Forms<Result> = { readonly [Name in ColumnType]: Form<ValuesByType[Name], Result> }

/** Microseconds from the Unix epoch to that of PostgreSQL, 2000-01-01. */
export const epochMicros = 946_684_800_000_000n

const plain: TextForm = (value) => String(value)

/** `2024-01-02T03:04:05.678Z` without its letters. */
function withoutZone(text: string): string {
  return text.replace('T', ' ').slice(0, -1)
}

const textForms: Forms<string | null> = {
  BOOLEAN: (value) => (value === true ? 't' : 'f'),
  BYTE: plain,
  SHORT: plain,
  CHAR: (value) => (value === '' ? null : String(value)),
  INT: plain,
  LONG: plain,
  DATE: (value) => withoutZone(formatDate(value)),
  TIMESTAMP: (value) => withoutZone(formatTimestamp(value, 'TIMESTAMP')),
  TIMESTAMP_NS: (value) => nanosText(value),
  FLOAT: (value) => formatFloat(Number(value)),
  DOUBLE: (value) => formatDouble(Number(value)),
  STRING: plain,
  VARCHAR: plain,
  SYMBOL: plain,
  LONG256: (value) => formatLong256(value),
  UUID: (value) => formatUuid(value),
  IPv4: (value) => formatIpv4(Number(value)),
  GEOHASH: (value, type) => formatGeohash(value, type.a),
  BINARY: (value) => `\\x${Buffer.from(value).toString('hex')}`,
  ARRAY: (value, type) => arrayText(value, type),
  DECIMAL: (value, type) => formatDecimal(value, type.b),
  INTERVAL: (value) => formatInterval(value),
}

const zonedText: Form<bigint, string> = (value, type) => `${textForms.TIMESTAMP(value, type)}+00`

const dayText: Form<bigint, string> = (value) => nonNull(formatDate(value).split('T', 1)[0])

/** Days since 2000. */
const dayBytes: Form<bigint, Buffer> = (value) => {
  const days = floorDivide(value, 86_400_000n) - epochMicros / 86_400_000_000n
  return bytesOf(4, (bytes) => bytes.writeInt32BE(Number(days)))
}

/** Prints up to six fractional digits, as PostgreSQL does; drivers misread others. */
function nanosText(nanos: bigint): string {
  return withoutZone(formatTimestamp(nanos, 'TIMESTAMP_NS')).slice(0, -3)
}

function arrayText({ shape, data }: ArrayValue, type: DataType): string {
  const format = type.b === 0 ? formatDouble : (element: number): string => String(BigInt(element))
  let next = 0
  const print = (depth: number): string => {
    if (depth === shape.length) {
      const value = data[next++] ?? Number.NaN
      return Number.isFinite(value) ? format(value) : 'NULL'
    }
    return `{${Array.from({ length: shape[depth] ?? 0 }, () => print(depth + 1)).join(',')}}`
  }
  return data.length === 0 ? '{}' : print(0)
}

const binaryForms: Partial<Forms<Uint8Array | string | null>> = {
  BOOLEAN: (value) => Uint8Array.of(value === true ? 1 : 0),
  BYTE: (value) => bytesOf(2, (bytes) => bytes.writeInt16BE(Number(value))),
  SHORT: (value) => bytesOf(2, (bytes) => bytes.writeInt16BE(Number(value))),
  INT: (value) => bytesOf(4, (bytes) => bytes.writeInt32BE(Number(value))),
  LONG: (value) => bytesOf(8, (bytes) => bytes.writeBigInt64BE(BigInt(value))),
  DATE: (value) => microsBytes(value * 1000n),
  TIMESTAMP: (value) => microsBytes(value),
  TIMESTAMP_NS: (value) => microsBytes(floorDivide(value, 1000n)),
  FLOAT: (value) => bytesOf(4, (bytes) => bytes.writeFloatBE(Number(value))),
  DOUBLE: (value) => bytesOf(8, (bytes) => bytes.writeDoubleBE(Number(value))),
  UUID: (value) => Buffer.from(value.toString(16).padStart(32, '0'), 'hex'),
  BINARY: (value) => value,
  ARRAY: (value, type) => arrayBytes(value, type),
  DECIMAL: (value, type) => encodeNumeric(value, type.b),
}

function bytesOf(length: number, write: (bytes: Buffer) => void): Buffer {
  const bytes = Buffer.allocUnsafe(length)
  write(bytes)
  return bytes
}

function microsBytes(micros: bigint): Buffer {
  return bytesOf(8, (bytes) => bytes.writeBigInt64BE(BigInt.asIntN(64, micros - epochMicros)))
}

/** TIME => microseconds of the day i64; an invalid string is NULL. */
const timeOfDayBytes: BinaryForm = (value) => {
  const micros = microsOfTimeOfDay(String(value))
  return micros === null ? null : bytesOf(8, (bytes) => bytes.writeBigInt64BE(micros))
}

/** INTERVAL => microseconds i64 | days i32 | months i32 */
const spanBytes: Form<bigint, Buffer> = (value) => {
  const { days, rest } = daysOf(value)
  return bytesOf(16, (bytes) => {
    bytes.writeBigInt64BE(rest, 0)
    bytes.writeInt32BE(Number(days), 8)
    bytes.writeInt32BE(0, 12)
  })
}

type ElementWriter = readonly [bytes: number, write: (buffer: Buffer, at: number, value: number) => void]

const elementWriters: Readonly<Record<'DOUBLE' | 'INT' | 'LONG', ElementWriter>> = {
  DOUBLE: [8, (buffer, at, value) => buffer.writeDoubleBE(value, at)],
  INT: [4, (buffer, at, value) => buffer.writeInt32BE(value, at)],
  LONG: [8, (buffer, at, value) => buffer.writeBigInt64BE(BigInt(value), at)],
}

/** ARRAY => dimensions i32 | any NULL i32 | element type i32 | (length i32, lower bound i32)* | (bytes i32, f64, i32 or i64)* */
function arrayBytes({ shape, data }: ArrayValue, type: DataType): Buffer {
  const elementOid = pgOidOf(arrayElementType(type))
  if (data.length === 0) {
    return bytesOf(12, (bytes) => {
      bytes.writeInt32BE(0, 0)
      bytes.writeInt32BE(0, 4)
      bytes.writeInt32BE(elementOid, 8)
    })
  }
  const [width, write] = elementWriters[arrayElementType(type).name]
  const missing = data.reduce((count, value) => (Number.isFinite(value) ? count : count + 1), 0)
  return bytesOf(12 + shape.length * 8 + data.length * (4 + width) - missing * width, (bytes) => {
    bytes.writeInt32BE(shape.length, 0)
    bytes.writeInt32BE(missing > 0 ? 1 : 0, 4)
    let at = bytes.writeInt32BE(elementOid, 8)
    for (const length of shape) at = bytes.writeInt32BE(1, bytes.writeInt32BE(length, at))
    for (const value of data) {
      at = bytes.writeInt32BE(Number.isFinite(value) ? width : -1, at)
      if (!Number.isFinite(value)) continue
      write(bytes, at, value)
      at += width
    }
  })
}

/** `{t,"2024-01-01 00:00:00"}` */
const listText: TextForm = (value, type) => {
  const element = elementType(type)
  const form = textForm(element)
  const strings = textElements(String(value))
  if (strings === null) return String(value)
  return textArray(
    strings.map((text) => {
      const found = listValue(text, element)
      return found === null || found === undefined ? null : form(found, element)
    }),
  )
}

function listValue(text: string | null, element: DataType): Value | undefined {
  return text === null ? null : convertValue(text, dataType('STRING'), element)
}

/** JSONB => version u8 (1) | text */
const jsonbBytes: BinaryForm = (value) => `\u0001${String(value)}`

/** Elements in the input form of `arrayBytes`; an invalid element is NULL. */
const listBytes: BinaryForm = (value, type) => {
  // SHORT has no NULL; it is an element type on the wire only.
  const element = type.a === textKinds.places ? dataType('SHORT') : elementType(type)
  const form = binaryForm(element) ?? ((text) => Buffer.from(String(text), 'utf8'))
  const strings = isVector(type) ? elementsOf(value) : (textElements(String(value)) ?? [String(value)])
  const elements = strings.map((text): Uint8Array | null => {
    const found = listValue(text, element)
    return found === null || found === undefined ? null : (form(found, element) as Uint8Array)
  })
  const bytes = elements.reduce((sum, found) => sum + 4 + (found?.length ?? 0), elements.length === 0 ? 12 : 20)
  return bytesOf(bytes, (buffer) => {
    buffer.writeInt32BE(elements.length === 0 ? 0 : 1, 0)
    buffer.writeInt32BE(elements.includes(null) ? 1 : 0, 4)
    let at = buffer.writeInt32BE(element.name === 'STRING' && element.a === 0 ? textOid : pgOidOf(element), 8)
    if (elements.length > 0) at = buffer.writeInt32BE(isVector(type) ? 0 : 1, buffer.writeInt32BE(elements.length, at))
    for (const found of elements) {
      at = buffer.writeInt32BE(found?.length ?? -1, at)
      if (found !== null) buffer.set(found, at)
      at += found?.length ?? 0
    }
  })
}

const textOid = 25

function binaryForm(type: DataType): BinaryForm | undefined {
  if (isList(type) || isVector(type)) return listBytes
  if (isTimeOfDay(type)) return timeOfDayBytes
  if (isDay(type)) return dayBytes
  if (isSpan(type)) return spanBytes
  return isJsonb(type) ? jsonbBytes : binaryForms[type.name]
}

const isoSpan: Form<bigint, string> = (value) => formatIsoSpan(value)

function textForm(type: DataType): TextForm {
  if (isListOfValues(type)) return listText
  if (isZoned(type)) return zonedText
  if (isDay(type)) return dayText
  return isSpan(type) ? valueText : textForms[type.name]
}

/** Returns the encoder of a type; it returns null for NULL. */
export function wireForm(
  type: DataType,
  binary: boolean,
  isoSpans = false,
): (value: Value) => Uint8Array | string | null {
  const text = isoSpans && isSpan(type) ? isoSpan : textForm(type)
  const form = (binary ? binaryForm(type) : undefined) ?? text
  // Numbers that are not finite are NULL in every protocol.
  return (value) =>
    value === null || (typeof value === 'number' && !Number.isFinite(value)) ? null : form(value, type)
}
