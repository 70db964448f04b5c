// Converts values between all types. There are three functions, which differ in what they do when a value cannot be
// converted: `castValue`, for CAST, returns NULL; `convertValue`, for INSERT, comparisons and arguments, fails;
// `narrowValue` is a cast to BYTE or SHORT that fails only for values out of range and strings that are not integers.
// Types without NULL (BOOLEAN, BYTE, SHORT, CHAR) use false, 0 and '' instead.

import { nonNull } from '../base/assert.js'
import { SqlError } from '../base/errors.js'
import { type ColumnType, type DataType, dataType, isDay, isSpan, typeText } from './column-types.js'
import { formatInterval, parseIntervalValue } from './interval.js'
import {
  formatDecimal,
  formatDouble,
  formatFloat,
  intMin,
  intOrNull,
  longMax,
  longMin,
  longOrNull,
  nearestFloat,
  parseDecimal,
  parseDouble,
  parseInteger,
  parseLong,
  scaleInteger,
} from './number.js'
import { byteaOf } from './pg-bytea.js'
import { formatSpan, microsOfSpan, spanProblem } from './span.js'
import {
  formatArray,
  formatGeohash,
  formatIpv4,
  formatLong256,
  formatUuid,
  parseArray,
  parseGeohash,
  parseIpv4,
  parseLong256,
  readUuid,
} from './text.js'
import { formatDate, formatTimestamp, parseDate, parseTimestamp } from './timestamp.js'
import { floorDivide, midnightOf, type TimestampUnit } from './timestamp-calendar.js'
import type { ArrayValue, IntervalValue, Value } from './value.js'

const uuidText = dataType('STRING')

type Present = Exclude<Value, null>
type Caster = (value: Present, from: DataType, to: DataType) => Value

export function nullOf(type: DataType): Value {
  switch (type.name) {
    case 'BOOLEAN':
      return false
    case 'BYTE':
    case 'SHORT':
      return 0
    case 'CHAR':
      return ''
    default:
      return null
  }
}

export function isText(type: DataType): boolean {
  return type.name === 'STRING' || type.name === 'VARCHAR' || type.name === 'SYMBOL' || type.name === 'CHAR'
}

/** A string that is not a symbol. */
export function isPlainText(type: DataType): boolean {
  return isText(type) && type.name !== 'SYMBOL'
}

const digitsOfIntegers: Readonly<Record<string, number>> = { BYTE: 3, SHORT: 5, INT: 10 }

/** DECIMAL type that holds all integers of a type; the widest for other types. */
export function integerDigits(type: DataType | undefined): number {
  return digitsOfIntegers[type?.name ?? ''] ?? 19
}

export function isIntOrLong({ name }: DataType): boolean {
  return name === 'INT' || name === 'LONG'
}

export function isTime(type: DataType): boolean {
  return type.name === 'TIMESTAMP' || type.name === 'TIMESTAMP_NS'
}

/** A value's string for `||`: a DATE is its milliseconds. */
export function valueText(value: Present, type: DataType): string {
  switch (type.name) {
    case 'DOUBLE':
      return formatDouble(Number(value))
    case 'FLOAT':
      return formatFloat(Number(value))
    case 'TIMESTAMP':
    case 'TIMESTAMP_NS':
      return formatTimestamp(value as bigint, type.name)
    case 'UUID':
      return formatUuid(value as bigint)
    case 'LONG256':
      return formatLong256(value as bigint)
    case 'IPv4':
      return formatIpv4(Number(value))
    case 'GEOHASH':
      return formatGeohash(value as bigint, type.a)
    case 'DECIMAL':
      return formatDecimal(value as bigint, type.b)
    case 'ARRAY':
      return formatArray(value as ArrayValue)
    case 'INTERVAL':
      return formatInterval(value as IntervalValue)
    case 'BINARY':
      return Buffer.from(value as Uint8Array).toString('utf8')
    default:
      return isSpan(type) ? formatSpan(BigInt(value as bigint)) : String(value)
  }
}

/** A value's string in results, messages and casts: like valueText, but a DATE as a date. */
export function displayText(value: Present, type: DataType): string {
  if (type.name !== 'DATE') return valueText(value, type)
  const text = formatDate(value as bigint)
  return isDay(type) ? nonNull(text.split('T', 1)[0]) : text
}

export function isFraction({ name }: DataType): boolean {
  return name === 'DOUBLE' || name === 'FLOAT'
}

/** A CHAR yields its digit; other strings are parsed. */
function numberOfText(text: string, from: DataType): string | null {
  return from.name === 'CHAR' && !/^\d$/.test(text) ? null : text
}

/** Integers wrap around, also those in strings; a fraction out of range is 0. */
function toSmallInteger(bits: 8 | 16): Caster {
  const [min, max] = [-(2 ** (bits - 1)), 2 ** (bits - 1) - 1]
  return (value, from) => {
    if (typeof value === 'string') {
      const integer = parseInteger(numberOfText(value, from) ?? '', intMin + 1, -intMin - 1) ?? 0
      return Number(BigInt.asIntN(bits, BigInt(integer)))
    }
    if (typeof value === 'number' && isFraction(from) && (value < min || value > max)) return 0
    const whole = wholeOf(value, from)
    return whole === null ? 0 : Number(BigInt.asIntN(bits, whole))
  }
}

/** The integer that a value represents; null: none. */
function wholeOf(value: Present, from: DataType): bigint | null {
  if (typeof value === 'boolean') return value ? 1n : 0n
  if (typeof value === 'number') return Number.isFinite(value) ? BigInt(Math.trunc(value)) : null
  if (typeof value !== 'bigint') return null
  return from.name === 'DECIMAL' ? value / 10n ** BigInt(from.b) : value
}

const toInt: Caster = (value, from) => {
  if (typeof value === 'string') return parseInteger(numberOfText(value, from) ?? '', intMin + 1, -intMin - 1)
  const whole = wholeOf(value, from)
  return whole === null ? null : intOrNull(Number(whole))
}

const toLong: Caster = (value, from, to) => {
  if (typeof value === 'string' && isSpan(to)) return microsOfSpan(value)
  if (typeof value === 'string') return parseLong(numberOfText(value, from) ?? '')
  const whole = wholeOf(value, from)
  return whole === null ? null : longOrNull(whole)
}

const toDouble: Caster = (value, from) => {
  if (typeof value === 'string') {
    const number = parseDouble(numberOfText(value, from) ?? '')
    return number === undefined || Number.isNaN(number) ? null : number
  }
  if (typeof value === 'boolean') return value ? 1 : 0
  if (typeof value === 'number') return value
  if (typeof value !== 'bigint') return null
  return from.name === 'DECIMAL' ? Number(formatDecimal(value, from.b)) : Number(value)
}

const largestFloat = 3.4028234663852886e38

/** Out-of-range values become NULL, not infinite; a string may end with F, as one of a DOUBLE may end with D. */
const toFloat: Caster = (value, from, to) => {
  if (typeof value === 'string' && /\d[dD]\s*$/.test(value)) return null
  const number = toDouble(typeof value === 'string' ? value.replace(/(?<=[\d.])[fF](?=\s*$)/, '') : value, from, to)
  if (typeof value === 'string' && Math.fround(Number(number)) === 0 && number !== 0) return null
  return typeof number === 'number' && Math.abs(number) <= largestFloat ? Math.fround(number) : null
}

/** In this dialect a SYMBOL converts to a timestamp by its number. */
const toText: Caster = (value, from, to) =>
  to.name === 'SYMBOL' && (isTime(from) || from.name === 'DATE') ? String(value) : displayText(value, from)

/** The integer part of a fraction, clamped to the bounds; null for NULL. */
function saturated(value: number, bits: 32 | 64): bigint | null {
  if (!Number.isFinite(value)) return null
  const [whole, limit] = [BigInt(Math.trunc(value)), 1n << BigInt(bits - 1)]
  return whole >= limit ? limit - 1n : whole < -limit ? -limit : whole
}

const toChar: Caster = (value, from) => {
  // A character of two UTF-16 units is not a CHAR.
  if (typeof value === 'string') return /^[\ud800-\udbff]/.test(value) ? '' : value.slice(0, 1)
  if (typeof value === 'boolean') return value ? 'T' : 'F'
  const whole = isFraction(from) ? saturated(Number(value), 32) : wholeOf(value, from)
  return whole === null ? '' : String.fromCharCode(Number(BigInt.asUintN(16, whole))).replace('\0', '')
}

const toBoolean: Caster = (value, from) => {
  if (typeof value === 'string') return (from.name === 'CHAR' ? /^[t1]$/i : /^true$/i).test(value)
  if (typeof value === 'boolean') return value
  return typeof value === 'number' ? value !== 0 : typeof value === 'bigint' ? value !== 0n : false
}

const millisOf: Caster = (value, from, to) => {
  if (typeof value === 'string') return parseDate(value)
  if (from.name === 'TIMESTAMP') return floorDivide(value as bigint, 1000n)
  if (from.name === 'TIMESTAMP_NS') return floorDivide(value as bigint, 1_000_000n)
  return toLong(value, from, to)
}

const toDate: Caster = (value, from, to) => {
  const millis = millisOf(value, from, to)
  return typeof millis === 'bigint' && isDay(to) ? midnightOf(millis) : millis
}

function toTime(unit: TimestampUnit): Caster {
  return (value, from, to) => {
    if (typeof value === 'string') return parseTimestamp(value, unit)
    const perMilli = unit === 'TIMESTAMP' ? 1000n : 1_000_000n
    if (from.name === 'DATE') return longOrNull((value as bigint) * perMilli)
    if (from.name === 'TIMESTAMP' && unit === 'TIMESTAMP_NS') return longOrNull((value as bigint) * 1000n)
    if (from.name === 'TIMESTAMP_NS' && unit === 'TIMESTAMP') return floorDivide(value as bigint, 1000n)
    return toLong(value, from, to)
  }
}

const wholeNames: readonly ColumnType[] = ['BYTE', 'SHORT', 'INT']

const toGeohash: Caster = (value, from, to) => {
  if (typeof value === 'string') return parseGeohash(value, to.a)
  if (wholeNames.includes(from.name)) return geohashOf(BigInt(value as number), to.a)
  if (typeof value !== 'bigint') return null
  if (from.name === 'GEOHASH') return from.a >= to.a ? value >> BigInt(from.a - to.a) : null
  return geohashOf(value, to.a)
}

/** The lowest bits of a number; NULL if they are -1 in the bytes that this dialect uses for such a geohash. */
function geohashOf(whole: bigint, bits: number): bigint | null {
  const width = bits < 8 ? 8 : bits < 16 ? 16 : bits < 32 ? 32 : 64
  return BigInt.asIntN(width, whole) === -1n ? null : BigInt.asUintN(bits, whole)
}

const toLong256: Caster = (value, from) => {
  if (typeof value === 'string') {
    if (from.name === 'CHAR') return BigInt(value.charCodeAt(0))
    return /^0x/i.test(value) ? parseLong256(value) : null
  }
  const whole = isFraction(from) ? saturated(Number(value), 64) : wholeOf(value, from)
  // Negative numbers keep their 64 bits instead of being extended to 256.
  return whole === null ? null : BigInt.asUintN(64, whole)
}

const toDecimal: Caster = (value, from, to) => {
  if (typeof value === 'string') return parseDecimal(value, to.a, to.b)
  if (typeof value === 'number') return parseDecimal(String(value), to.a, to.b)
  if (typeof value !== 'bigint') return null
  const scaled = scaleInteger(value, to.b - (from.name === 'DECIMAL' ? from.b : 0))
  const limit = 10n ** BigInt(to.a)
  return scaled < limit && scaled > -limit ? scaled : null
}

const toArray: Caster = (value, from, to) => {
  const isWhole = from.name === 'LONG' || from.name === 'DATE' || isTime(from)
  const array =
    typeof value === 'string'
      ? parseArray(value)
      : typeof value === 'number' || isWhole
        ? scalarArray(Number(value), to.a)
        : value
  if (typeof array !== 'object' || array === null || !('shape' in array)) return null
  if (array.shape.length === to.a) return array
  // Wraps a number into arrays of one element; a string determines its own depth.
  if (from.name !== 'ARRAY' || array.shape.length > to.a) return null
  return { ...array, shape: [...new Array<number>(to.a - array.shape.length).fill(1), ...array.shape] }
}

function scalarArray(value: number, dimensions: number): ArrayValue {
  return { shape: new Array<number>(dimensions).fill(1), data: Float64Array.of(value) }
}

/** An INT is used as 32 bits; a LONG that exceeds 32 bits is not an address. */
const toIpv4: Caster = (value) => {
  if (typeof value === 'string') return parseIpv4(value) || null
  if (typeof value === 'bigint' && (value < BigInt(intMin) || value >= 1n << 32n)) return null
  return typeof value === 'number' || typeof value === 'bigint' ? Number(value) >>> 0 || null : null
}

const casters: Record<ColumnType, Caster> = {
  BOOLEAN: toBoolean,
  BYTE: toSmallInteger(8),
  SHORT: toSmallInteger(16),
  CHAR: toChar,
  INT: toInt,
  LONG: toLong,
  DATE: toDate,
  TIMESTAMP: toTime('TIMESTAMP'),
  TIMESTAMP_NS: toTime('TIMESTAMP_NS'),
  FLOAT: toFloat,
  DOUBLE: toDouble,
  STRING: toText,
  VARCHAR: toText,
  SYMBOL: toText,
  LONG256: toLong256,
  UUID: (value) => (typeof value === 'string' ? readUuid(value) : null),
  IPv4: toIpv4,
  GEOHASH: toGeohash,
  BINARY: (value) => (typeof value === 'string' ? byteaOf(value) : null),
  ARRAY: toArray,
  DECIMAL: toDecimal,
  INTERVAL: (value) => (typeof value === 'string' ? parseIntervalValue(value) : null),
}

/** Explicit cast. Never throws. */
export function castValue(value: Value, from: DataType, to: DataType): Value {
  // In this dialect a NULL geohash converts to no character.
  if (value === null) return from.name === 'GEOHASH' && isPlainText(to) ? '' : nullOf(to)
  if (from.name === to.name && from.a === to.a && from.b === to.b) return value
  if (from.name === 'CHAR' && value === '') return to.name === 'LONG256' ? 0n : nullOf(to)
  // A UUID converts by its string only, not as a number.
  if (from.name === 'UUID' && (!isText(to) || to.name === 'CHAR'))
    return casters[to.name](formatUuid(value as bigint), uuidText, to)
  return casters[to.name](value, from, to)
}

/** A lossless cast to BYTE or SHORT; undefined when the value does not fit. */
export function narrowValue(value: Value, from: DataType, to: DataType): Value | undefined {
  if (value === null || value === '') return nullOf(to)
  const whole =
    typeof value === 'string'
      ? parseInteger(numberOfText(value.trim(), from) ?? '', Number.MIN_SAFE_INTEGER, Number.MAX_SAFE_INTEGER)
      : (wholeOf(value, from) ?? 0)
  const [least, most] = integerBounds[to.name] ?? [longMin, longMax]
  return whole === null || whole < least || whole > most ? undefined : Number(whole)
}

/** For a type without NULL: out-of-range values are an error. */
export function requireSmall(value: number, name: 'BYTE' | 'SHORT' | 'INT'): number | null {
  if (name === 'INT') return intOrNull(value)
  const [least, most] = name === 'BYTE' ? [-128, 127] : [-32_768, 32_767]
  if (value >= least && value <= most) return value
  throw new SqlError(inconvertibleText(value, dataType('INT'), dataType(name)), 0)
}

/** Implicit narrowing checks the bounds of integers and of codes of characters. */
const integerBounds: Partial<Record<ColumnType, readonly [bigint, bigint]>> = {
  BYTE: [-128n, 127n],
  SHORT: [-32_768n, 32_767n],
  INT: [BigInt(intMin) + 1n, BigInt(-intMin) - 1n],
  LONG: [longMin + 1n, longMax],
  CHAR: [0n, 0xffffn],
}

/** A timestamp in another unit, for comparisons: beyond the range of the unit, the end of the range. */
export function nearestTime(value: Value, from: DataType, to: DataType): Value {
  if (typeof value !== 'bigint') return null
  return castValue(value, from, to) ?? (value < 0n ? longMin + 1n : longMax)
}

/** Implicit conversion; undefined when the value does not convert. */
export function convertValue(value: Value, from: DataType, to: DataType): Value | undefined {
  if (value === null) return nullOf(to)
  if (typeof value === 'string' && isText(from) && !isText(to)) return convertText(value, from, to)
  const bounds = integerBounds[to.name]
  if (from.name === 'DECIMAL' && bounds !== undefined && typeof value === 'bigint')
    return convertValue(roundedQuotient(value, from.b), dataType('LONG'), to)
  const whole = bounds === undefined || typeof value === 'string' ? null : wholeOf(value, from)
  if (bounds !== undefined && whole !== null && (whole < bounds[0] || whole > bounds[1])) return undefined
  if (to.name === 'CHAR' && typeof value === 'string' && value.length > 1) return undefined
  if (to.name === 'SYMBOL') return displayText(value, from)
  if (to.name === 'FLOAT' && typeof value === 'number' && Number.isFinite(value)) return nearestFloat(value)
  const result = castValue(value, from, to)
  return result === null && !(typeof value === 'number' && Number.isNaN(value)) ? undefined : result
}

/** The nearest whole number, as PostgreSQL assigns decimals: halves go away from zero. */
export function roundedQuotient(value: bigint, scale: number): bigint {
  const unit = 10n ** BigInt(scale)
  const half = value < 0n ? -unit / 2n : unit / 2n
  return (value + half) / unit
}

/** In an assignment, a number in a string may have blanks around it and a plus sign. */
function convertText(given: string, from: DataType, to: DataType): Value | undefined {
  const text = isNumber(to) ? given.trim().replace(/^\+(?=\d)/, '') : given
  switch (to.name) {
    case 'BOOLEAN':
      // PostgreSQL accepts this, and some clients send '1'.
      return /^(?:true|t|yes|y|on|1)$/i.test(text) || (/^(?:false|f|no|n|off|0)$/i.test(text) ? false : undefined)
    case 'BYTE':
      return parseInteger(numberOfText(text, from) ?? '', -128, 127) ?? undefined
    case 'SHORT':
      return parseInteger(numberOfText(text, from) ?? '', -32_768, 32_767) ?? undefined
    case 'FLOAT':
    case 'DOUBLE': {
      const number = parseDouble(numberOfText(text, from) ?? '')
      if (number === undefined) return undefined
      return Number.isNaN(number) ? null : to.name === 'FLOAT' ? nearestFloat(number) : number
    }
    case 'UUID':
    case 'LONG256':
      return text === '' ? null : (castValue(text, from, to) ?? undefined)
    case 'IPv4':
      return text === '' || parseIpv4(text) === 0 ? null : (parseIpv4(text) ?? undefined)
    default:
      return castValue(text, from, to) ?? undefined
  }
}

/** Error for a value that does not convert. */
export function inconvertibleText(value: Value, from: DataType, to: DataType): string {
  const shown = value === null ? 'null' : displayText(value, from)
  if (to.name === 'IPv4' && isText(from)) return `invalid IPv4 format: ${shown}`
  if (isSpan(to) && isText(from)) return spanProblem(shown)
  const quoted = from.name === 'STRING' || from.name === 'VARCHAR' || from.name === 'SYMBOL' ? `\`${shown}\`` : shown
  return `inconvertible value: ${quoted} [${from.name} -> ${typeText(to)}]`
}

/** Error for a string that is not a label of an enumeration. */
export function noLabel(text: string, name: string): string {
  return `invalid input value for enum ${name}: "${text.slice(0, 100)}"`
}

const numberNames: readonly ColumnType[] = ['BYTE', 'SHORT', 'INT', 'LONG', 'FLOAT', 'DOUBLE', 'DECIMAL']

export function isNumber(type: DataType): boolean {
  return numberNames.includes(type.name)
}

const textSources: readonly ColumnType[] = [
  ...(['UUID', 'IPv4', 'TIMESTAMP', 'TIMESTAMP_NS', 'DATE', 'BOOLEAN', 'GEOHASH', 'INTERVAL'] as const),
]

/** Whether INSERT and UPDATE accept values of one type for a column of another type. */
export function isAssignable(from: DataType, to: DataType): boolean {
  if (from.name === to.name) return from.name !== 'GEOHASH' || from.a >= to.a
  if (isText(from)) return to.name !== 'INTERVAL'
  if (isText(to)) return textSources.includes(from.name) || (isNumber(from) && to.name !== 'CHAR')
  if (isNumber(from) && isNumber(to)) return true
  if (from.name === 'INT' || from.name === 'LONG' || from.name === 'SHORT' || from.name === 'BYTE') {
    return (
      isTime(to) ||
      to.name === 'DATE' ||
      (to.name === 'LONG256' && from.name === 'LONG') ||
      (to.name === 'IPv4' && from.name === 'INT')
    )
  }
  if (isTime(from) || from.name === 'DATE') return isTime(to) || to.name === 'DATE' || to.name === 'LONG'
  return false
}
