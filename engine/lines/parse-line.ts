// General parser of line protocol: parses one line in any form of the protocol into a ParsedLine. The decoder has a
// WebAssembly kernel that is faster, but only parses lines with the same names and types as an earlier line (the
// template); all other lines come here. The kernel must give the same results as this parser.
//
// The parser does not look at tables. The texts of its errors must not change, because clients compare them.

import { assert } from '../base/assert.js'
import { lineBytesMax } from '../base/limits.js'
import { formatDecimal } from '../types/number.js'
import { addEntity, type LineEntity, type ParsedLine } from './line.js'
import { afterQuoted, closingQuote, lineEnd } from './line-ends.js'
import { parseFieldText, parseTimestampText } from './parse-value.js'
import { copyUnescaped, escapable, textOf } from './text.js'

const newline = 10
const carriageReturn = 13
const space = 32
const quote = 34
const hash = 35
const comma = 44
const equals = 61
const backslash = 92

/** Type bytes of binary values after `name==`. */
const binaryDouble = 16
const binaryArray = 14
const binaryDecimal = 23
const decimalScaleMax = 76
const decimalBytesMax = 32
const arrayOfDoubles = 10

export const messages = {
  noFields: 'No fields were provided',
  tableName: 'INVALID_TABLE_NAME',
  separator: 'INVALID_FIELD_SEPARATOR',
  tagMissing: (name: string) => `Could not parse entire line. Symbol value is missing: ${name}`,
  fieldMissing: (name: string) => `Could not parse entire line. Field value is missing: ${name}`,
  fieldInvalid: (name: string, value: string) =>
    `Could not parse entire line, field value is invalid. Field: ${name}; value: ${value}`,
  timestamp: (text: string) => `Could not parse timestamp: ${text}`,
} as const

interface Cursor {
  readonly bytes: Uint8Array
  /** Where the line starts. */
  readonly start: number
  readonly end: number
  at: number
}

/** Parses the line at `start`; `end` is the end of the bytes. */
export function parseLine(bytes: Uint8Array, start: number, end: number, line: ParsedLine): void {
  assert(start < end, 'P2: a line has bytes')
  assert(end <= bytes.length, 'P2: a line is within its block')
  const cursor: Cursor = { bytes, start, end, at: start }
  line.count = 0
  line.hasTimestamp = false
  line.error = ''
  line.open = false
  line.outcome = 'row'
  if (isLineEnd(cursor)) line.outcome = 'blank'
  else if (bytes[start] === hash) {
    line.outcome = 'blank'
    skipLine(cursor)
  } else {
    line.error = parseRow(cursor, line)
    if (line.error !== '') {
      line.outcome = 'error'
      skipLine(cursor)
    }
  }
  endLine(cursor, line)
}

/** Returns an error message, or an empty string. */
function parseRow(cursor: Cursor, line: ParsedLine): string {
  const { bytes, at: start } = cursor
  const nameEnd = scanText(cursor)
  line.table = textOf(bytes, start, nameEnd)
  line.nameEnd = nameEnd
  const separator = cursor.at < cursor.end ? bytes[cursor.at] : newline
  if (nameEnd === start || (separator !== comma && separator !== space)) return messages.noFields
  cursor.at++
  if (separator === comma) {
    const error = parseTags(cursor, line)
    if (error !== '') return error
    if (isLineEnd(cursor)) return line.count > 0 ? '' : messages.noFields
    cursor.at++
  }
  return parseFields(cursor, line)
}

/**
 * Parses tags from the first tag's name on; stops at the space before the fields or at the end of the line. Trailing
 * commas after the last tag and the last field are accepted, because some writers produce them.
 */
function parseTags(cursor: Cursor, line: ParsedLine): string {
  const { bytes } = cursor
  for (;;) {
    const start = cursor.at
    if (isValueEnd(cursor) && bytes[start] !== comma) return ''
    const nameEnd = scanText(cursor)
    const name = textOf(bytes, start, nameEnd)
    if (bytes[cursor.at] !== equals || cursor.at >= cursor.end || nameEnd === start) return messages.tagMissing(name)
    cursor.at++
    const entity = addEntity(line, name)
    entity.kind = 'tag'
    entity.start = cursor.at
    entity.end = scanText(cursor)
    if (isAt(cursor, equals)) return messages.separator
    entity.text = copyUnescaped(bytes, entity.start, entity.end, escapable.plain)
    if (isLineEnd(cursor) || bytes[cursor.at] === space) return ''
    cursor.at++
  }
}

function parseFields(cursor: Cursor, line: ParsedLine): string {
  const { bytes } = cursor
  const tags = line.count
  for (let previous = ''; ; ) {
    const start = cursor.at
    const nameEnd = scanText(cursor)
    if (cursor.at >= cursor.end || bytes[cursor.at] !== equals || nameEnd === start) {
      return fieldsEnd(cursor, line, tags, start, previous)
    }
    const name = textOf(bytes, start, nameEnd)
    cursor.at++
    const error = parseField(cursor, addEntity(line, name))
    if (error !== '') return error
    previous = name
    if (bytes[cursor.at] === comma && cursor.at < cursor.end) cursor.at++
    if (isLineEnd(cursor)) return ''
    if (bytes[cursor.at] === space) return parseTimestamp(cursor, line)
  }
}

/** Handles text where a field should start but none does: a timestamp after tags alone, nothing, or an error. */
function fieldsEnd(cursor: Cursor, line: ParsedLine, tags: number, start: number, previous: string): string {
  const text = textOf(cursor.bytes, start, cursor.at)
  const atEnd = isLineEnd(cursor)
  if (line.count === tags && atEnd) {
    if (text === '') return tags > 0 ? '' : messages.noFields
    cursor.at = start - 1
    if (tags > 0) return parseTimestamp(cursor, line)
  }
  if (text === '' && line.count === tags && cursor.bytes[cursor.at] === space) return messages.separator
  return messages.fieldMissing(text === '' ? previous : text)
}

function parseField(cursor: Cursor, entity: LineEntity): string {
  const { bytes } = cursor
  entity.start = cursor.at
  const first = cursor.at < cursor.end ? bytes[cursor.at] : newline
  if (first === quote) return parseQuoted(cursor, entity)
  if (first === equals) return parseBinary(cursor, entity)
  entity.end = scanText(cursor)
  if (isAt(cursor, equals)) return messages.separator
  entity.text = copyUnescaped(bytes, entity.start, entity.end, escapable.plain)
  return parseFieldText(entity) ? '' : messages.fieldInvalid(entity.name, textOf(bytes, entity.start, entity.end))
}

/** Parses a quoted value, which may contain newlines. Only what line-ends.ts allows may follow it. */
function parseQuoted(cursor: Cursor, entity: LineEntity): string {
  const { bytes, start, end, at } = cursor
  const after = afterQuoted(bytes, at, Math.min(end, start + lineBytesMax), true)
  if (after <= 0) return messages.fieldInvalid(entity.name, malformedText(cursor))
  cursor.at = after
  entity.kind = 'string'
  entity.text = copyUnescaped(bytes, at + 1, after - 1, escapable.quoted)
  entity.end = after
  return ''
}

/** The text of a malformed quoted value for the error message; empty when its line does not close it. */
function malformedText(cursor: Cursor): string {
  const { bytes, end, at } = cursor
  const lineBreak = bytes.subarray(at, end).indexOf(newline)
  const closing = closingQuote(bytes, at, lineBreak < 0 ? end : at + lineBreak)
  if (closing < 0) return ''
  cursor.at = closing + 1
  return textOf(bytes, at, scanText(cursor))
}

/**
 * Parses `=` type byte value: an IEEE double, an array {element type u8, dimensions u8, lengths u32.., doubles}, or a
 * decimal {scale u8, bytes u8, unscaled number, big-endian}.
 */
function parseBinary(cursor: Cursor, entity: LineEntity): string {
  const { bytes, end } = cursor
  const view = new DataView(bytes.buffer, bytes.byteOffset)
  const at = cursor.at + 2
  const type = at <= end ? bytes[cursor.at + 1] : 0
  let valueEnd = 0
  if (type === binaryDouble && at + 8 <= end) {
    entity.kind = 'float'
    entity.number = view.getFloat64(at, true)
    entity.text = new TextEncoder().encode(String(entity.number))
    valueEnd = at + 8
  } else if (type === binaryArray && at + 2 <= end && bytes[at] === arrayOfDoubles) {
    valueEnd = arrayAt(view, at + 1, end, entity)
  } else if (type === binaryDecimal && at + 2 <= end) {
    valueEnd = decimalAt(bytes, at, end, entity)
  }
  cursor.at = valueEnd
  if (valueEnd === 0 || !isValueEnd(cursor)) {
    cursor.at = entity.start
    return messages.fieldInvalid(entity.name, '')
  }
  entity.end = valueEnd
  return ''
}

/** Offset after the array whose dimension count is at `at`; 0 when it is inconsistent. */
function arrayAt(view: DataView, at: number, end: number, entity: LineEntity): number {
  const dimensions = view.getUint8(at)
  const values = at + 1 + dimensions * 4
  if (dimensions < 1 || dimensions > 32 || values > end) return 0
  entity.shape.length = 0
  let count = 1
  for (let index = 0; index < dimensions; index++) {
    const length = view.getUint32(at + 1 + index * 4, true)
    entity.shape.push(length)
    count *= length
  }
  if (values + count * 8 > end) return 0
  entity.kind = 'array'
  entity.text = new Uint8Array(view.buffer, view.byteOffset + values, count * 8)
  return values + count * 8
}

/** Offset after the decimal whose scale is at `at`; 0 when it is inconsistent. One without bytes is NULL. */
function decimalAt(bytes: Uint8Array, at: number, end: number, entity: LineEntity): number {
  const scale = bytes[at]!
  const length = bytes[at + 1]!
  const valueEnd = at + 2 + length
  if (scale > decimalScaleMax || length > decimalBytesMax || valueEnd > end) return 0
  entity.kind = length === 0 ? 'empty' : 'decimal'
  let value = 0n
  for (let index = at + 2; index < valueEnd; index++) value = (value << 8n) | BigInt(bytes[index]!)
  entity.text = new TextEncoder().encode(formatDecimal(BigInt.asIntN(length * 8, value), scale))
  return valueEnd
}

/** The cursor is at the space before the timestamp. */
function parseTimestamp(cursor: Cursor, line: ParsedLine): string {
  cursor.at++
  if (isLineEnd(cursor)) return ''
  const { bytes, end, at: start } = cursor
  if (bytes[start] === space) return messages.separator
  let at = start
  while (at < end && bytes[at] !== newline && bytes[at] !== carriageReturn && bytes[at] !== space) at++
  cursor.at = at
  const text = textOf(bytes, start, at)
  if (/[,="]/.test(text)) return messages.separator
  if (!parseTimestampText(text, line)) return messages.timestamp(text)
  return isLineEnd(cursor) ? '' : messages.separator
}

/** Stops at the first unescaped separator and returns its position. Within values `=` must be escaped. */
function scanText(cursor: Cursor): number {
  const { bytes, end } = cursor
  let at = cursor.at
  for (; at < end; at++) {
    const byte = bytes[at]
    if (byte === backslash) at++
    else if (byte === comma || byte === space || byte === equals || byte === newline) break
    else if (byte === carriageReturn && bytes[at + 1] === newline) break
  }
  cursor.at = Math.min(at, end)
  return cursor.at
}

function isAt({ bytes, end, at }: Cursor, byte: number): boolean {
  return at < end && bytes[at] === byte
}

function isLineEnd({ bytes, end, at }: Cursor): boolean {
  if (at >= end || bytes[at] === newline) return true
  return bytes[at] === carriageReturn && (at + 1 >= end || bytes[at + 1] === newline)
}

function isValueEnd(cursor: Cursor): boolean {
  const byte = cursor.bytes[cursor.at]
  return isLineEnd(cursor) || byte === comma || byte === space
}

/** Skips to the newline that ends the line; values before it may contain other newlines. */
function skipLine(cursor: Cursor): void {
  const { bytes, start, end } = cursor
  const next = lineEnd(bytes, start, end, lineBytesMax)
  cursor.at = next > start && bytes[next - 1] === newline ? next - 1 : next
}

function endLine(cursor: Cursor, line: ParsedLine): void {
  const { bytes, end } = cursor
  if (cursor.at < end && bytes[cursor.at] === carriageReturn) cursor.at++
  line.open = cursor.at >= end
  line.next = Math.min(cursor.at + 1, end)
}
