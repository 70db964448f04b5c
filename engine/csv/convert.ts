// Parses one CSV field as a value of a column type: fields that the WebAssembly kernel does not handle, and samples by
// which an import chooses the timestamp column. Returns undefined if the text is not a value of the type.

import { type DataType, isSpan } from '../types/column-types.js'
import { epochScale, parseFileTime } from '../types/file-time.js'
import { nearestFloat, parseDecimal, parseDouble, parseInteger, parseLong } from '../types/number.js'
import { byteaOf } from '../types/pg-bytea.js'
import { microsOfSpan } from '../types/span.js'
import { parseArray, parseGeohash, parseGeohashBits, parseIpv4, parseLong256, readUuid } from '../types/text.js'
import { floorDivide, type TimestampUnit } from '../types/timestamp-calendar.js'
import { parseByPattern } from '../types/timestamp-pattern.js'
import type { Value } from '../types/value.js'

export function parseField(text: string, type: DataType, pattern: string | null): Value | undefined {
  switch (type.name) {
    case 'BOOLEAN':
      return parseBoolean(text)
    case 'BYTE':
      return orUndefined(parseInteger(plainDigits(text), -128, 127))
    case 'SHORT':
      return orUndefined(parseInteger(plainDigits(text), -32_768, 32_767))
    case 'INT':
      return orUndefined(parseInteger(plainDigits(text), -(2 ** 31) + 1, 2 ** 31 - 1))
    case 'LONG':
      return orUndefined(isSpan(type) ? microsOfSpan(text) : parseLong(plainDigits(text)))
    case 'FLOAT':
      return readFloat(plainDigits(text))
    case 'DOUBLE':
      return parseDouble(plainDigits(text))
    case 'DATE':
    case 'TIMESTAMP':
    case 'TIMESTAMP_NS':
      return orUndefined(parseTime(text, type.name, pattern))
    case 'CHAR':
      return text.length === 1 ? text : undefined
    case 'UUID':
      return orUndefined(readUuid(text))
    case 'IPv4':
      return orUndefined(parseIpv4(text))
    case 'LONG256':
      return orUndefined(parseLong256(text))
    case 'GEOHASH':
      return orUndefined(parseGeohashText(text, type.a))
    case 'DECIMAL':
      return orUndefined(parseDecimal(text, type.a, type.b))
    case 'BINARY':
      return byteaOf(text)
    case 'ARRAY':
      return arrayOf(text, type.a)
    default:
      return undefined
  }
}

function orUndefined<T>(value: T | null): T | undefined {
  return value === null ? undefined : value
}

function parseBoolean(text: string): boolean | undefined {
  const word = text.toLowerCase()
  if (word === 'true' || word === 't' || word === '1') return true
  return word === 'false' || word === 'f' || word === '0' ? false : undefined
}

/** Rejects numbers that FLOAT cannot represent: they would become NULL or zero. */
function readFloat(text: string): number | undefined {
  const value = parseDouble(text)
  return value === undefined ? undefined : nearestFloat(value)
}

/** Whether the string has the form of a number, whatever its size. */
export function isNumber(text: string): boolean {
  return /^\s*[+-]?(?:\d[\d_]*\.?\d*|\.\d+)(?:[eE][+-]?\d+)?[dD]?\s*$/.test(text)
}

/** `null` in any case means NULL, except in text columns. */
export function isNullWord(text: string): boolean {
  return text.length === 4 && text.toLowerCase() === 'null'
}

/** Accepts `1_000` and `+1` like SQL literals. */
function plainDigits(text: string): string {
  const unsigned = text.startsWith('+') && /^\+[0-9.]/.test(text) ? text.slice(1) : text
  return /[0-9]_[0-9]/.test(unsigned) ? unsigned.replace(/(?<=[0-9])_(?=[0-9])/g, '') : unsigned
}

function parseTime(text: string, type: 'DATE' | TimestampUnit, pattern: string | null): bigint | null {
  const scale = pattern === null ? 'auto' : epochScale(pattern)
  const unit = type === 'DATE' ? 'TIMESTAMP' : type
  const ticks =
    pattern !== null && scale === null
      ? parseByPattern(text, unit, pattern)
      : (parseFileTime(text, unit, scale ?? 'auto')?.ticks ?? null)
  return ticks === null || type !== 'DATE' ? ticks : floorDivide(ticks, 1000n)
}

/**
 * A GEOHASH type with a size in bits, not characters, is written in bits; characters of another size are accepted,
 * too.
 */
function parseGeohashText(text: string, bits: number): bigint | null {
  const written = bits % 5 !== 0 && text.length === bits ? parseGeohashBits(text) : null
  return written ?? parseGeohash(text, bits)
}

function arrayOf(text: string, dimensions: number): Value | undefined {
  const value = parseArray(text)
  return value === null || value.shape.length !== dimensions ? undefined : value
}
