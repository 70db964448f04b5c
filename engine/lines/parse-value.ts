// Parses the text of fields and timestamps of line protocol; the last byte determines the type.

import { int64Max, int64Min } from '../base/int64.js'
import type { LineEntity, ParsedLine } from './line.js'

const decoder = new TextDecoder('latin1')
/** Digits may be grouped: `1_000i`. */
const integerText = /^-?[0-9]+(_[0-9]+)*$/
const floatText = /^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$/
const long256Text = /^0x[0-9a-fA-F]{1,64}$/
const decimalText = /^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,3})?$/

/** Sets kind and value of an unquoted field from its `text`; false when it is invalid. */
export function parseFieldText(entity: LineEntity): boolean {
  if (entity.text.length === 0) {
    entity.kind = 'empty'
    return true
  }
  const text = decoder.decode(entity.text)
  switch (text.charAt(text.length - 1)) {
    case 'i':
      return long256Text.test(text.slice(0, -1)) ? keep(entity, 'long256') : parseInteger(entity, text, 'integer')
    case 'u':
      return text.charAt(0) !== '-' && parseInteger(entity, text, 'integer')
    case 't':
      return text.length === 1 ? boolean(entity, true) : parseInteger(entity, text, 'micros')
    case 'm':
      return parseInteger(entity, text, 'micros') && toMicros(entity)
    case 'n':
      return parseInteger(entity, text, 'nanos') || parseFloat64(entity, text)
    case 'd':
      return decimalText.test(text.slice(0, -1)) && keep(entity, 'decimal')
    default:
      return parseWord(entity, text) || parseFloat64(entity, text)
  }
}

/** Drops the suffix and sets the kind; the text stays the value. */
function keep(entity: LineEntity, kind: 'long256' | 'decimal'): boolean {
  entity.kind = kind
  entity.text = entity.text.subarray(0, -1)
  return true
}

function parseInteger(entity: LineEntity, text: string, kind: 'integer' | 'micros' | 'nanos'): boolean {
  const digits = text.slice(0, -1)
  if (!integerText.test(digits)) return false
  const value = ungrouped(digits)
  if (value < int64Min || value > int64Max) return false
  entity.kind = kind
  entity.integer = value
  entity.text = entity.text.subarray(0, -1)
  return true
}

function ungrouped(digits: string): bigint {
  return BigInt(digits.replaceAll('_', ''))
}

/** Parses a field in milliseconds: `1704067200000m`. */
function toMicros(entity: LineEntity): boolean {
  entity.integer *= 1000n
  return entity.integer >= int64Min && entity.integer <= int64Max
}

function parseWord(entity: LineEntity, text: string): boolean {
  const word = text.toLowerCase()
  if (word === 'true' || text === 'T') return boolean(entity, true)
  if (word === 'false' || word === 'f') return boolean(entity, false)
  return false
}

function boolean(entity: LineEntity, value: boolean): boolean {
  entity.kind = 'boolean'
  entity.number = value ? 1 : 0
  return true
}

/** Rejects overflow; `NaN` and `Infinity` must be written as such. */
function parseFloat64(entity: LineEntity, text: string): boolean {
  const named = namedFloats.get(text)
  const value = named ?? (floatText.test(text) ? Number(text) : Number.NaN)
  if (named === undefined && !Number.isFinite(value)) return false
  entity.kind = 'float'
  entity.number = value
  return true
}

const namedFloats = new Map([
  ['NaN', Number.NaN],
  ['Infinity', Number.POSITIVE_INFINITY],
  ['+Infinity', Number.POSITIVE_INFINITY],
  ['-Infinity', Number.NEGATIVE_INFINITY],
])

/** Sets the line's timestamp; false when the text is invalid. */
export function parseTimestampText(text: string, line: ParsedLine): boolean {
  const suffix = text.charAt(text.length - 1)
  const digits = suffix === 't' || suffix === 'n' || suffix === 'm' ? text.slice(0, -1) : text
  if (!integerText.test(digits)) return false
  const value = suffix === 'm' ? ungrouped(digits) * 1000n : ungrouped(digits)
  if (value < int64Min || value > int64Max) return false
  line.hasTimestamp = true
  line.timestamp = value
  line.timestampUnit = suffix === 'n' ? 'nanos' : digits === text ? 'request' : 'micros'
  return true
}
