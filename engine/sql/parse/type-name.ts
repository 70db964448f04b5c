// Parses type names: `int`, `geohash(8c)`, `decimal(18, 3)`, `double precision`, `timestamp(6) without time zone`,
// `double[][]`, `pg_catalog.int4`. Binding decides which names exist.

import { SqlError } from '../../base/errors.js'
import { arrayDimensionsMax, decimalDigitsMax } from '../../base/limits.js'
import type { TypeName } from '../ast/ast.js'
import type { ColumnContext } from './column.js'
import { advance, at, type Cursor, moveTo, peekWord, tokenText } from './cursor.js'
import { atEnd, expect, lastTokenStart, parseName, parseWholeNumber, shownToken, take } from './expect.js'

/** The type of a cast. A GEOHASH without a size is reported at its name. */
export function parseCastType(cursor: Cursor, message: string, sizeMissing = geohashSize): TypeName {
  if (cursor.word === 'geohash' && peekWord(cursor) !== '(') throw new SqlError(sizeMissing, cursor.start)
  return parseTypeName(cursor, message, 'alter')
}

const geohashSize = "invalid GEOHASH size, must be number followed by 'C' or 'B' character"

export function parseColumnType(cursor: Cursor, context: ColumnContext): TypeName {
  if (cursor.kind === 'string' || cursor.kind === 'number')
    throw new SqlError(`unsupported column type: ${shownToken(cursor)}`, cursor.start)
  if (cursor.word === 'geohash' && context === 'alter') requirePrecision(cursor)
  return parseTypeName(cursor, 'column type expected', context)
}

/** ALTER TABLE has its own message for a missing size. */
function requirePrecision(cursor: Cursor): void {
  const { start, end } = cursor
  advance(cursor)
  const missing = 'missing GEOHASH precision'
  if (!at(cursor, '(')) throw new SqlError(missing, end)
  if (peekWord(cursor) === ')') throw new SqlError(missing, cursor.end)
  moveTo(cursor, start)
}

export function parseTypeName(
  cursor: Cursor,
  message = 'column type expected',
  context: ColumnContext = 'create',
): TypeName {
  const position = cursor.start
  let text = parseName(cursor, message).name
  while (cursor.word === '.') {
    advance(cursor)
    text = parseName(cursor, message).name
  }
  let name = text.toLowerCase()
  if (name === 'geohash') return parseGeohash(cursor, position, text, context)
  if (name === 'double') take(cursor, 'precision')
  if ((name === 'character' || name === 'char' || name === 'bit') && take(cursor, 'varying')) name = 'varchar'
  const parameters =
    cursor.word !== '('
      ? []
      : name === 'decimal'
        ? parseDecimal(cursor, context === 'alter' ? position : cursor.start)
        : parseParameters(cursor)
  // The standard's FLOAT(n) has n bits. FLOAT alone has 32 here.
  if (name === 'float' && (parameters[0] ?? 0) > 24) name = 'double'
  // CHAR is one character; a longer one is a string.
  if (name === 'char' || name === 'character') name = (parameters[0] ?? 1) > 1 ? 'bpchar' : 'char'
  const zoned = takesZone(name) && takeZone(cursor)
  return {
    position,
    name: zoned ? `${name}tz` : name,
    text,
    parameters,
    unit: null,
    dimensions: parseDimensions(cursor, position),
  }
}

/**
 * Checks the bits of `8c` or `40b`. A wrong number is reported at the parenthesis (CREATE TABLE) or after it (ALTER
 * TABLE).
 */
function parseGeohash(cursor: Cursor, position: number, text: string, context: ColumnContext): TypeName {
  const open = context === 'alter' ? cursor.end : cursor.start
  expect(cursor, '(')
  if (cursor.kind === 'end' || at(cursor, ')')) throw new SqlError('literal expected', cursor.start)
  const match = /^(\d{1,9})([cb])$/i.exec(tokenText(cursor))
  if (match === null) {
    const units = "invalid GEOHASH size units, must be 'c', 'C' for chars, or 'b', 'B' for bits"
    throw new SqlError(/^\d+[a-z]$/i.test(tokenText(cursor)) ? units : geohashSize, open)
  }
  const size = Number(match[1])
  const unit = match[2]?.toLowerCase() === 'c' ? 'c' : 'b'
  const bits = unit === 'c' ? size * 5 : size
  if (bits < 1 || bits > 60) {
    throw new SqlError(`invalid GEOHASH type precision range, must be [1, 60] bits, provided=${bits}`, open)
  }
  advance(cursor)
  expect(cursor, ')')
  return { position, name: 'geohash', text, parameters: [size], unit, dimensions: parseDimensions(cursor, position) }
}

/**
 * `(18)`, `(18, 3)`. A value out of range is reported at the parenthesis of a column's type, but at the name in a cast.
 */
function parseDecimal(cursor: Cursor, place: number): number[] {
  const fail = (description: string, position = place): never => {
    throw new SqlError(`Invalid decimal type. ${description}`, position)
  }
  const digits = (what: string): number => {
    const before = cursor.start
    advance(cursor)
    if (atEnd(cursor) || at(cursor, ')')) fail(`The ${what} is missing`, cursor.kind === 'end' ? before : cursor.start)
    if (cursor.kind !== 'number' || !/^\d{1,9}$/.test(tokenText(cursor)))
      fail(`The ${what} ('${tokenText(cursor)}') must be a number`, cursor.start)
    return parseWholeNumber(cursor, 'number expected')
  }
  const precision = digits('precision')
  const scale = at(cursor, ',') ? digits('scale') : null
  if (precision === 0) fail('The precision (0) must be greater than zero')
  if (precision > decimalDigitsMax) fail(`The precision (${precision}) must be less than ${decimalDigitsMax}`)
  if (scale !== null && scale > precision)
    fail(`The precision (${precision}) must be greater than or equal to the scale (${scale})`)
  if (!take(cursor, ')')) fail("Missing ')'", cursor.kind === 'end' ? lastTokenStart(cursor) : cursor.start)
  return scale === null ? [precision] : [precision, scale]
}

function parseParameters(cursor: Cursor): number[] {
  advance(cursor)
  const parameters: number[] = []
  do {
    take(cursor, '-')
    parameters.push(parseWholeNumber(cursor, 'number expected'))
  } while (take(cursor, ','))
  expect(cursor, ')')
  return parameters
}

function takesZone(name: string): boolean {
  return name === 'timestamp' || name === 'time'
}

/** True for `with time zone`; false for `without time zone` or neither. */
function takeZone(cursor: Cursor): boolean {
  if (cursor.word !== 'with' && cursor.word !== 'without') return false
  const zoned = cursor.word === 'with'
  const { start } = cursor
  advance(cursor)
  if (!at(cursor, 'time')) {
    moveTo(cursor, start)
    return false
  }
  advance(cursor)
  expect(cursor, 'zone')
  return zoned
}

/** `start` is the beginning of the type. */
function parseDimensions(cursor: Cursor, start: number): number {
  // `float array` is the standard's spelling.
  let dimensions = take(cursor, 'array') ? 1 : 0
  while (cursor.word === '[') {
    const written = cursor.text.slice(start, cursor.end).toLowerCase()
    const bracket = cursor.start
    advance(cursor)
    if (cursor.kind === 'number') throw new SqlError('arrays do not have a fixed size, remove the number', cursor.start)
    if (!take(cursor, ']')) {
      const array = `${written.toUpperCase()}]`
      throw new SqlError(
        `syntax error at column type definition, expected array type: '${array}...', but found: '${written}'`,
        bracket,
      )
    }
    dimensions++
  }
  if (dimensions > arrayDimensionsMax) {
    const counts = `[nDims=${dimensions}, maxNDims=${arrayDimensionsMax}]`
    throw new SqlError(`too many array dimensions ${counts}`, start)
  }
  return dimensions
}
