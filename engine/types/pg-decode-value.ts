// Decodes parameters of the PostgreSQL wire protocol, in text or binary format, to values. Types that PostgreSQL
// lacks are text in both formats.

import { SqlError } from '../base/errors.js'
import { utf8Text } from '../base/utf8-text.js'
import { type DataType, dataType, isSpan } from './column-types.js'
import { convertValue } from './convert.js'
import { longMax, longMin } from './number.js'
import { byteaOf } from './pg-bytea.js'
import { epochMicros, wireForm } from './pg-encode-value.js'
import { decodeNumeric } from './pg-numeric.js'
import { oids, typeOfOid } from './pg-oids.js'
import { spanProblem } from './span.js'
import { textArray, textElements } from './text-lists.js'
import { timeOfDayText } from './time-of-day.js'
import type { ArrayValue, Value } from './value.js'

export interface TypedValue {
  readonly value: Value
  readonly type: DataType
}

/** `index` counts from 0. Throws SqlError without a position. */
export function decodeParameter(
  bytes: Buffer | null,
  binary: boolean,
  { oid, type }: { readonly oid: number; readonly type: DataType },
  index: number,
): TypedValue {
  if (bytes === null) return { value: null, type }
  const decoded = binary ? decodeBinary(bytes, oid, type) : decodeText(pgText(bytes), type, oid)
  if (decoded === null) {
    if (isSpan(type) && !binary) throw new SqlError(spanProblem(utf8Text(bytes)), 0)
    const shown = binary ? shownBinary(bytes, oid) : bytes.toString('utf8').slice(0, 100)
    throw new SqlError(`invalid value of a parameter [parameter=$${index + 1}, type=${type.name}, value=${shown}]`, 0)
  }
  return decoded
}

const timeOids: ReadonlySet<number> = new Set([oids.timestamp, oids.timestamptz, oids.date])

/** Converts special timestamps: drivers send the largest one that they know for infinity. */
function shownBinary(bytes: Buffer, oid: number): string {
  if (!timeOids.has(oid) || bytes.length !== (oid === oids.date ? 4 : 8)) return `${bytes.length} bytes`
  return bytes.readInt8(0) < 0 ? '-infinity' : 'infinity'
}

/** Rejects zero bytes, which PostgreSQL strings cannot contain. */
function pgText(bytes: Buffer, start = 0): string {
  if (bytes.includes(0, start)) throw new SqlError('invalid byte sequence for encoding "UTF8": 0x00', 0)
  return utf8Text(bytes, start)
}

// TEXT --------------------------------------------------------------------------------------------------------------

const textType = dataType('STRING')

function decodeText(text: string, type: DataType, oid: number): TypedValue | null {
  switch (type.name) {
    case 'STRING':
    case 'VARCHAR':
    case 'SYMBOL':
    case 'CHAR':
      return { value: listOids.has(oid) ? listOf(text) : text, type: textType }
    case 'BOOLEAN': {
      const value = booleanOf(text)
      return value === undefined ? null : { value, type }
    }
    case 'BINARY':
      return { value: byteaOf(text), type }
    case 'DECIMAL':
      return oid === oids.numeric || /[.eE]/.test(text) ? numericOf(text) : converted(text, type)
    case 'ARRAY':
      return arrayOrText(text, type)
    default:
      return converted(text, type)
  }
}

function converted(text: string, type: DataType): TypedValue | null {
  const value = convertValue(text.trim(), textType, type)
  return value === undefined ? null : { value, type }
}

/** A list of strings for ANY stays a string. */
function arrayOrText(text: string, type: DataType): TypedValue {
  return converted(text.replaceAll('"', ''), type) ?? { value: text, type: textType }
}

export function booleanOf(text: string): boolean | undefined {
  switch (text.trim().toLowerCase()) {
    case 't':
    case 'true':
    case 'y':
    case 'yes':
    case 'on':
    case '1':
      return true
    case 'f':
    case 'false':
    case 'n':
    case 'no':
    case 'off':
    case '0':
      return false
    default:
      return undefined
  }
}

/** A DECIMAL with the parameter's own precision and scale. */
function numericOf(text: string): TypedValue | null {
  if (/^\s*[+-]?(nan|inf|infinity)\s*$/i.test(text)) {
    const value = /nan/i.test(text) ? null : /-/.test(text) ? Number.NEGATIVE_INFINITY : Number.POSITIVE_INFINITY
    return { value, type: dataType('DOUBLE') }
  }
  const match = /^\s*[+-]?(\d*)(?:\.(\d*))?(?:[eE]([+-]?\d+))?\s*$/.exec(text)
  if (match === null) return null
  const shift = Number(match[3] ?? 0)
  const scale = Math.max(0, (match[2] ?? '').length - shift)
  const precision = Math.max(1, scale + Math.max(0, (match[1] ?? '').length + shift))
  if (precision > 76) return finite(converted(text, dataType('DOUBLE')))
  return converted(text, dataType('DECIMAL', precision, scale))
}

/** Rejects numbers that DOUBLE cannot hold, which would become NULL. */
function finite(number: TypedValue | null): TypedValue | null {
  return number === null || number.value === null || !Number.isFinite(number.value) ? null : number
}

// BINARY ------------------------------------------------------------------------------------------------------------

function decodeBinary(bytes: Buffer, oid: number, type: DataType): TypedValue | null {
  switch (oid) {
    case oids.bool:
      return bytes.length === 1 ? { value: bytes[0] !== 0, type } : null
    case oids.int2:
      return bytes.length === 2 ? { value: bytes.readInt16BE(0), type } : null
    case oids.int4:
      return bytes.length === 4 ? { value: bytes.readInt32BE(0), type } : null
    case oids.oid:
      return bytes.length === 4 ? { value: BigInt(bytes.readUInt32BE(0)), type } : null
    case oids.int8:
      return bytes.length === 8 ? { value: longOf(bytes), type } : null
    case oids.float4:
      return bytes.length === 4 ? { value: nanAsNull(bytes.readFloatBE(0)), type } : null
    case oids.float8:
      return bytes.length === 8 ? { value: nanAsNull(bytes.readDoubleBE(0)), type } : null
    case oids.timestamp:
    case oids.timestamptz:
      return bytes.length === 8 ? timestampOf(bytes.readBigInt64BE(0), type) : null
    case oids.date:
      return bytes.length === 4 ? dayOf(bytes.readInt32BE(0)) : null
    default:
      return decodeOther(bytes, oid, type)
  }
}

function decodeOther(bytes: Buffer, oid: number, type: DataType): TypedValue | null {
  switch (oid) {
    case oids.bytea:
      return { value: new Uint8Array(bytes), type }
    case oids.uuid:
      return bytes.length === 16 ? { value: BigInt(`0x${bytes.toString('hex')}`), type } : null
    case oids.numeric: {
      const text = decodeNumeric(bytes)
      return text === null ? null : numericOf(text)
    }
    case oids.time:
      return bytes.length === 8 ? { value: timeOfDayText(bytes.readBigInt64BE(0)), type: textType } : null
    case oids.timetz:
      return bytes.length === 12 ? { value: zonedTimeOfDayText(bytes), type: textType } : null
    case oids.interval:
      return bytes.length === 16 ? { value: intervalText(bytes), type: textType } : null
    case oids.inet:
    case oids.cidr:
      return inetOf(bytes)
    case oids.jsonb:
      return bytes[0] === 1 ? { value: pgText(bytes, 1), type: textType } : null
    case oids.int2Array:
    case oids.int4Array:
    case oids.int8Array:
    case oids.float4Array:
    case oids.float8Array:
    case oids.boolArray:
    case oids.timestampArray:
    case oids.timestamptzArray:
    case oids.dateArray:
    case oids.numericArray:
    case oids.oidArray:
    case oids.bpcharArray:
    case oids.nameArray:
    case oids.uuidArray:
    case oids.intervalArray:
    case oids.textArray:
    case oids.varcharArray:
    case oids.byteaArray:
    case oids.jsonArray:
    case oids.jsonbArray:
    case oids.timeArray:
    case oids.timetzArray:
    case oids.inetArray:
    case oids.cidrArray:
      return arrayOf(bytes, type)
    default:
      return { value: pgText(bytes), type: textType }
  }
}

function longOf(bytes: Buffer): bigint | null {
  const value = bytes.readBigInt64BE(0)
  return value === longMin ? null : value
}

function nanAsNull(value: number): number | null {
  return Number.isNaN(value) ? null : value
}

/**
 * Decodes a timestamp in the unit of the parameter's type. `-infinity`, which asyncpg sends for the year 1, becomes
 * the smallest timestamp and is returned as such; `infinity` would sort before all others.
 */
function timestampOf(micros: bigint, type: DataType): TypedValue | null {
  if (micros > longMax - epochMicros) return null
  const value = micros + epochMicros
  if (type.name === 'TIMESTAMP_NS') return { value: value * 1000n, type }
  if (type.name === 'DATE') return { value: value / 1000n, type }
  return { value, type: dataType('TIMESTAMP') }
}

function dayOf(days: number): TypedValue | null {
  if (days === -(2 ** 31) || days === 2 ** 31 - 1) return null
  return { value: BigInt(days) * 86_400_000n + epochMicros / 1000n, type: dataType('DATE') }
}

/** TIMETZ => microseconds of the day i64 | seconds west of UTC i32 */
function zonedTimeOfDayText(bytes: Buffer): string {
  const after = bytes.readInt32BE(8)
  const size = Math.abs(after)
  const two = (value: number): string => String(value).padStart(2, '0')
  const rest = size % 60 === 0 ? '' : `:${two(size % 60)}`
  const zone = `${two(Math.floor(size / 3600))}:${two(Math.floor(size / 60) % 60)}${rest}`
  return `${timeOfDayText(bytes.readBigInt64BE(0))}${after > 0 ? '-' : '+'}${zone.replace(/:00$/, '')}`
}

/** INTERVAL => microseconds i64 | days i32 | months i32; returned as text that casts can parse */
function intervalText(bytes: Buffer): string {
  const micros = bytes.readBigInt64BE(0)
  const [days, months] = [bytes.readInt32BE(8), bytes.readInt32BE(12)]
  return `${months} months ${days} days ${micros / 1_000_000n} seconds ${micros % 1_000_000n} us`
}

/** INET, CIDR => family u8 (2 = IPv4, 3 = IPv6) | bits u8 | is cidr u8 | bytes u8 | address */
function inetOf(bytes: Buffer): TypedValue | null {
  const [family, bits, isCidr] = bytes
  const address = bytes.subarray(4)
  if (family !== (address.length === 4 ? 2 : 3) || (address.length !== 4 && address.length !== 16)) return null
  const text = address.length === 4 ? address.join('.') : ipv6Text(address)
  return { value: bits === address.length * 8 && isCidr === 0 ? text : `${text}/${bits}`, type: textType }
}

/** Omits the longest run of zeros, as PostgreSQL does. */
function ipv6Text(address: Buffer): string {
  const groups = Array.from({ length: 8 }, (_, index) => address.readUInt16BE(index * 2).toString(16))
  const runs = groups.join(':').match(/(?<![^:])0(?::0)+(?![^:])/g) ?? []
  const longest = runs.reduce((best, run) => (run.length > best.length ? run : best), '')
  const text = groups.join(':')
  if (longest === '') return text
  const at = text.search(new RegExp(`(?<![^:])${longest}(?![^:])`))
  return `${text.slice(0, at).replace(/:$/, '')}::${text.slice(at + longest.length).replace(/^:/, '')}`
}

// ARRAYS ------------------------------------------------------------------------------------------------------------

interface ArrayHeader {
  readonly element: number
  readonly shape: readonly number[]
  readonly count: number
  readonly at: number
}

function headerOf(bytes: Buffer): ArrayHeader | null {
  if (bytes.length < 12) return null
  const dimensions = bytes.readInt32BE(0)
  if (dimensions < 0 || dimensions > 32 || bytes.length < 12 + dimensions * 8) return null
  const shape = Array.from({ length: dimensions }, (_, index) => bytes.readInt32BE(12 + index * 8))
  if (shape.some((length) => length < 0)) return null
  const count = dimensions === 0 ? 0 : shape.reduce((product, length) => product * length, 1)
  // Every element has at least its length.
  if (count * 4 > bytes.length) return null
  return { element: bytes.readInt32BE(8), shape: dimensions === 0 ? [0] : shape, count, at: 12 + dimensions * 8 }
}

function arrayOf(bytes: Buffer, type: DataType): TypedValue | null {
  const header = headerOf(bytes)
  if (header === null) return null
  const elements: (string | null)[] = []
  let { at } = header
  for (let index = 0; index < header.count; index++) {
    if (at + 4 > bytes.length) return null
    const length = bytes.readInt32BE(at)
    at += 4
    if (length < 0) {
      elements.push(null)
      continue
    }
    if (at + length > bytes.length) return null
    const elementType = typeOfOid(header.element) ?? textType
    if (elementType.name === 'ARRAY') return null
    const element = decodeBinary(bytes.subarray(at, at + length), header.element, elementType)
    if (element === null) return null
    const text = wireForm(element.type, false)(element.value)
    elements.push(text === null ? null : String(text))
    at += length
  }
  if (type.name !== 'ARRAY') return { value: textArray(elements), type: textType }
  const data = Float64Array.from(elements, (element) => (element === null ? Number.NaN : Number(element)))
  const value: ArrayValue = { shape: header.shape, data }
  return { value, type: dataType('ARRAY', header.shape.length) }
}

const listOids: ReadonlySet<number> = new Set([
  ...[oids.textArray, oids.varcharArray, oids.int4Array, oids.int8Array, oids.numericArray],
])

/** Normalises lists, so that equal lists are equal strings; nested lists stay as written. */
function listOf(text: string): string {
  if (text.startsWith('{{')) return text
  const elements = textElements(text.trim())
  if (elements === null) throw new SqlError(`malformed array literal: "${text.slice(0, 100)}"`, 0)
  return textArray(elements)
}
