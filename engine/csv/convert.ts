// Texts of fields that the kernel leaves open, one by one: undefined when a text is no value of the type.

import { byteaOf } from '../pg/bytea.js'
import { type DataType, isSpan } from '../types/column-types.js'
import { parseDecimal, parseDouble, parseInteger, parseLong } from '../types/number.js'
import { microsOfSpan } from '../types/span.js'
import { parseArray, parseGeohash, parseGeohashBits, parseIpv4, parseLong256, readUuid } from '../types/text.js'
import { parseFileDate, parseFileTimestamp } from '../types/timestamp.js'
import type { TimestampUnit } from '../types/timestamp-calendar.js'
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

/** Hexadecimal digits alone, as some drivers write them. */
function orUndefined<T>(value: T | null): T | undefined {
  return value === null ? undefined : value
}

function parseBoolean(text: string): boolean | undefined {
  const word = text.toLowerCase()
  if (word === 'true' || word === 't') return true
  return word === 'false' || word === 'f' ? false : undefined
}

/** `1_000` and `+1` as SQL's literals have them. */
function plainDigits(text: string): string {
  const unsigned = text.startsWith('+') && /^\+[0-9.]/.test(text) ? text.slice(1) : text
  return /[0-9]_[0-9]/.test(unsigned) ? unsigned.replace(/(?<=[0-9])_(?=[0-9])/g, '') : unsigned
}

/** Ticks since the epoch are times as well. */
function parseTime(text: string, type: 'DATE' | TimestampUnit, pattern: string | null): bigint | null {
  if (pattern !== null) {
    const ticks = parseByPattern(text, type === 'DATE' ? 'TIMESTAMP' : type, pattern)
    return ticks === null || type !== 'DATE' ? ticks : ticks / 1000n
  }
  if (/^-?[0-9]{5,19}$/.test(text)) return BigInt(text)
  return type === 'DATE' ? parseFileDate(text) : parseFileTimestamp(text, type)
}

/** A size that is no number of characters is written in bits, which are characters of other geohashes, too. */
function parseGeohashText(text: string, bits: number): bigint | null {
  const written = bits % 5 !== 0 && text.length === bits ? parseGeohashBits(text) : null
  return written ?? parseGeohash(text, bits)
}

function arrayOf(text: string, dimensions: number): Value | undefined {
  const value = parseArray(text)
  return value === null || value.shape.length !== dimensions ? undefined : value
}
