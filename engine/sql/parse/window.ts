// Parses OVER, named windows, window frames, ORDER BY lists, and intervals (`5m`, `10 minutes`).

import { SqlError } from '../../base/errors.js'
import { timeZone } from '../../types/timestamp-zone.js'
import type {
  Expression,
  FrameBound,
  Interval,
  Name,
  OrderItem,
  TimeUnit,
  WindowAnchor,
  WindowFrame,
  WindowSpecification,
} from '../ast/ast.js'
import { advance, type Cursor, peekWord, quotedValue, tokenText } from './cursor.js'
import { atEnd, expect, lastTokenStart, parseList, parseName, parseString, take, takeTwo } from './expect.js'
import { parseExpression } from './expression.js'
import { intervalOfText, timeUnitOf, wholeNumber } from './literal.js'
import { signPower } from './powers.js'
import { isReserved, refuseReserved } from './reserved.js'

/** `over (..)` or `over w`. The cursor is on `over`. */
export function parseOver(cursor: Cursor): WindowSpecification {
  advance(cursor)
  if (cursor.word === '(') return parseWindowSpecification(cursor)
  const position = cursor.start
  if (cursor.kind === 'end') throw new SqlError("'(' or window name expected after OVER", lastTokenStart(cursor))
  refuseReserved(cursor)
  const base = parseName(cursor, "'(' or window name expected")
  return { position, base, partitionBy: [], orderBy: [], frame: null }
}

/** A specification of the WINDOW clause, which may have ANCHOR. */
export function parseNamedWindow(cursor: Cursor): WindowSpecification {
  return parseWindowSpecification(cursor, true)
}

function parseWindowSpecification(cursor: Cursor, isNamed = false): WindowSpecification {
  const position = cursor.start
  expect(cursor, '(')
  const base = parseBaseWindow(cursor)
  const partitionBy = cursor.word === 'partition' ? parsePartitionBy(cursor) : []
  const orderBy = cursor.word === 'order' ? parseOrderBy(cursor, true) : []
  if (cursor.word === 'anchor') {
    if (!isNamed)
      throw new SqlError('ANCHOR is not supported in OVER (..): name the window in a WINDOW clause', cursor.start)
    if (base !== null) throw new SqlError('ANCHOR must be in the window that has PARTITION BY', cursor.start)
    return { position, base, partitionBy, orderBy, frame: null, anchor: parseAnchor(cursor, partitionBy, orderBy) }
  }
  const frame = frameModes.has(cursor.word) ? parseFrame(cursor) : null
  if (cursor.kind === 'end') throw unclosedWindow(cursor, partitionBy.length, orderBy.length)
  expect(cursor, ')', "'rows', 'range', 'groups', 'cumulative' or ')' expected")
  return { position, base, partitionBy, orderBy, frame }
}

/** The error about a text that ends within a window, at its last word. */
function unclosedWindow(cursor: Cursor, partitions: number, orders: number): SqlError {
  const position = lastTokenStart(cursor)
  if (orders > 0) return new SqlError("')' expected to close window specification", position)
  const expected = partitions > 0 ? "'order', ',' or ')'" : "')' or window specification"
  return new SqlError(`${expected} expected`, position)
}

const frameModes: ReadonlySet<string> = new Set(['rows', 'range', 'groups', 'cumulative'])

function parseBaseWindow(cursor: Cursor): Name | null {
  const { word } = cursor
  if (cursor.kind !== 'word' && cursor.kind !== 'quoted') return null
  if (isReserved(word) && word !== 'partition' && word !== 'order')
    throw new SqlError("'rows', 'range', 'groups', 'cumulative' or ')' expected", cursor.start)
  const isAnchor = word === 'anchor' && anchorKinds.has(peekWord(cursor))
  return word === 'partition' || word === 'order' || isAnchor || frameModes.has(word)
    ? null
    : parseName(cursor, 'window name expected')
}

const anchorKinds: ReadonlySet<string> = new Set(['daily', 'expression'])

/** `anchor daily '09:30' 'America/New_York')`, `anchor expression timestamp_floor('1h', ts))` */
function parseAnchor(
  cursor: Cursor,
  partitionBy: readonly Expression[],
  [order, ...more]: readonly OrderItem[],
): WindowAnchor {
  const position = cursor.start
  advance(cursor)
  if (partitionBy.length === 0) throw new SqlError('ANCHOR requires PARTITION BY', position)
  if (order === undefined || more.length > 0 || order.descending)
    throw new SqlError('ANCHOR requires ORDER BY of the designated timestamp, ascending', position)
  const isDaily = take(cursor, 'daily')
  if (!isDaily && !take(cursor, 'expression'))
    throw new SqlError("'daily' or 'expression' expected after 'anchor'", cursor.start)
  const expression = isDaily ? parseDaily(cursor, order.expression) : parseInWindow(cursor, 'Expression expected')
  if (frameModes.has(cursor.word)) throw anchoredFrame(cursor.start)
  expect(cursor, ')')
  return { position, expression }
}

export function anchoredFrame(position: number): SqlError {
  return new SqlError('ANCHOR cannot be combined with a frame', position)
}

/** Start of the day that begins at this time of the day. */
function parseDaily(cursor: Cursor, order: Expression): Expression {
  const position = cursor.start
  const time = parseString(cursor, "time of the day expected, such as '09:30'")
  if (!/^([01]\d|2[0-3]):[0-5]\d$/.test(time.name))
    throw new SqlError(`time of the day expected, such as '09:30' [found=${time.name}]`, position)
  const zone = cursor.kind === 'string' ? parseString(cursor, 'TIME ZONE name expected') : null
  if (zone !== null && timeZone(zone.name) === null) throw new SqlError(`invalid timezone: ${zone.name}`, zone.position)
  const text = (value: string): Expression => ({ kind: 'string', position, value })
  const args: Expression[] = [text('1d'), order, { kind: 'null', position }, text(time.name), text(zone?.name ?? 'UTC')]
  return {
    ...{ kind: 'call', position, schema: null, name: 'timestamp_floor', distinct: false, orderBy: [], filter: null },
    ...{ args, ignoreNulls: false, over: null },
  }
}

function parsePartitionBy(cursor: Cursor): Expression[] {
  advance(cursor)
  expect(cursor, 'by', "'by' expected after 'partition'", placeOf(cursor))
  return parseList(cursor, (inner) => parseInWindow(inner, 'column name expected'))
}

/** Position of errors within a window: at the end of the text it is the last word. */
function placeOf(cursor: Cursor): number {
  return cursor.kind === 'end' ? lastTokenStart(cursor) : cursor.start
}

function parseInWindow(cursor: Cursor, missing: string): Expression {
  if (cursor.kind === 'end') throw new SqlError(missing, lastTokenStart(cursor))
  return parseExpression(cursor, 0, missing)
}

/** The cursor is on `order`. */
export function parseOrderBy(cursor: Cursor, inWindow = false): OrderItem[] {
  advance(cursor)
  if (inWindow) expect(cursor, 'by', "'by' expected after 'order'", placeOf(cursor))
  else expect(cursor, 'by')
  return parseList(cursor, (inner) => parseOrderItem(inner, inWindow))
}

function parseOrderItem(cursor: Cursor, inWindow: boolean): OrderItem {
  const position = cursor.start
  const missing = cursor.kind === 'end' ? 'literal expected' : 'literal or expression expected'
  const expression = inWindow ? parseInWindow(cursor, 'Expression expected') : parseExpression(cursor, 0, missing)
  const descending = take(cursor, 'desc')
  if (!descending) take(cursor, 'asc')
  const nulls = takeTwo(cursor, 'nulls', 'first') ? 'first' : takeTwo(cursor, 'nulls', 'last') ? 'last' : null
  return { position, expression, descending, nulls }
}

function parseFrame(cursor: Cursor): WindowFrame {
  const position = cursor.start
  const mode = cursor.word as WindowFrame['mode']
  advance(cursor)
  const here: FrameBound = { kind: 'current row', position, value: null, unit: null }
  if (mode === 'cumulative')
    return { position, mode, start: { ...here, kind: 'unbounded preceding' }, end: here, exclude: null }
  if (cursor.kind === 'end') throw new SqlError(`'between', ${boundExpected}`, lastTokenStart(cursor))
  const between = take(cursor, 'between')
  const start = parseFrameBound(cursor)
  if (!between && start.kind === 'following') {
    const message = 'single-bound frame specification requires PRECEDING, use BETWEEN for FOLLOWING'
    throw new SqlError(message, cursor.previousEnd - 'following'.length)
  }
  if (start.kind === 'unbounded following') {
    throw new SqlError(
      'frame start cannot be UNBOUNDED FOLLOWING, use UNBOUNDED PRECEDING',
      cursor.previousEnd - 'following'.length,
    )
  }
  if (between) expect(cursor, 'and', "'and' expected", placeOf(cursor))
  const end = between ? parseFrameBound(cursor) : here
  if (end.kind === 'unbounded preceding') {
    throw new SqlError(
      'frame end cannot be UNBOUNDED PRECEDING, use UNBOUNDED FOLLOWING',
      cursor.previousEnd - 'preceding'.length,
    )
  }
  if (between && frameOrder[start.kind] > frameOrder[end.kind])
    throw frameError(start, cursor.previousEnd - 'preceding'.length)
  return { position, mode, start, end, exclude: take(cursor, 'exclude') ? parseExclude(cursor) : null }
}

/** Order of frame bounds. Two bounds with equal rank are accepted in any order, and their offsets decide. */
const frameOrder: Record<FrameBound['kind'], number> = {
  'unbounded preceding': 0,
  preceding: 0,
  'current row': 1,
  following: 2,
  'unbounded following': 2,
}

function frameError(start: FrameBound, position: number): SqlError {
  const message =
    start.kind === 'following'
      ? 'frame starting from FOLLOWING must end with FOLLOWING'
      : 'frame starting from CURRENT ROW must end with CURRENT ROW or FOLLOWING'
  return new SqlError(message, position)
}

function parseExclude(cursor: Cursor): NonNullable<WindowFrame['exclude']> {
  if (takeBoth(cursor, 'no', 'others')) return 'no others'
  if (takeBoth(cursor, 'current', 'row')) return 'current row'
  if (take(cursor, 'group')) return 'group'
  if (take(cursor, 'ties')) return 'ties'
  throw new SqlError("'current row', 'group', 'ties' or 'no others' expected after 'exclude'", cursor.start)
}

function takeBoth(cursor: Cursor, first: string, second: string): boolean {
  if (!take(cursor, first)) return false
  if (take(cursor, second)) return true
  throw new SqlError(`'${second}' expected after '${first}'`, cursor.start)
}

const boundExpected = "'unbounded', 'current' or expression expected"

/** `unbounded preceding`, `current row`, `5 preceding`, `'2' hour following`. */
export function parseFrameBound(cursor: Cursor): FrameBound {
  const position = cursor.start
  if (takeTwo(cursor, 'unbounded', 'preceding'))
    return { kind: 'unbounded preceding', position, value: null, unit: null }
  if (takeTwo(cursor, 'unbounded', 'following'))
    return { kind: 'unbounded following', position, value: null, unit: null }
  if (takeTwo(cursor, 'current', 'row')) return { kind: 'current row', position, value: null, unit: null }
  if (cursor.word === 'unbounded')
    throw new SqlError("'preceding' or 'following' expected after 'unbounded'", cursor.start + 9)
  if (cursor.word === 'current') {
    advance(cursor)
    throw new SqlError("'row' expected after 'current'", placeOf(cursor))
  }
  const { value, unit } = parseDistance(cursor)
  if (take(cursor, 'preceding')) return { kind: 'preceding', position, value, unit }
  if (take(cursor, 'following')) return { kind: 'following', position, value, unit }
  throw new SqlError("'preceding' or 'following' expected", placeOf(cursor))
}

function parseDistance(cursor: Cursor): { value: Expression; unit: TimeUnit | null } {
  const single = cursor.kind === 'number' ? intervalOfText(tokenText(cursor)) : null
  if (single !== null) {
    if (isNoDistance(single.unit)) throw new SqlError('integer expression expected', cursor.start)
    const value = wholeNumber(cursor.start, single.digits)
    advance(cursor)
    return { value, unit: single.unit }
  }
  if (cursor.word === ')') throw new SqlError("'preceding' or 'following' expected", cursor.start)
  const value = parseInWindow(cursor, boundExpected)
  const unit = cursor.kind === 'word' ? timeUnitOf(tokenText(cursor)) : undefined
  if (unit === undefined || isNoDistance(unit)) return { value, unit: null }
  advance(cursor)
  return { value, unit }
}

/** Months and years have no fixed length. */
function isNoDistance(unit: TimeUnit): boolean {
  return unit === 'M' || unit === 'y'
}

/** `5m`, `h` (one hour), `10 minutes`, `:n m`, `(a + b) m`, `@x`. */
export function parseInterval(cursor: Cursor): Interval {
  const position = cursor.start
  if (cursor.kind === 'number') return parseNumberInterval(cursor)
  const single = cursor.kind === 'word' ? timeUnitOf(tokenText(cursor)) : undefined
  if (single !== undefined) {
    advance(cursor)
    return { position, count: wholeNumber(position, '1'), unit: single }
  }
  const quoted = cursor.kind === 'string' ? quotedInterval(cursor) : null
  if (quoted !== null) return quoted
  if (cursor.kind === 'string' || wordConstants.has(cursor.word))
    throw new SqlError(`Invalid unit: ${tokenText(cursor)}`, position)
  const variable = cursor.kind === 'variable'
  const count = parseExpression(cursor, signPower, 'time interval expected')
  const unit = cursor.kind === 'word' ? timeUnitOf(tokenText(cursor)) : undefined
  if (unit !== undefined) advance(cursor)
  else if (!variable) throw new SqlError(unitExpected(cursor), cursor.start)
  return { position, count, unit: unit ?? null }
}

/** `'1h'`, `'15 minutes'`: intervals as clients of PostgreSQL write them. */
function quotedInterval(cursor: Cursor): Interval | null {
  const { start: position } = cursor
  const [, digits, word = ''] = /^\s*(\d+)\s*([a-zA-Z]+)\s*$/.exec(quotedValue(cursor)) ?? []
  const unit = timeUnitOf(word)
  if (digits === undefined || unit === undefined) return null
  if (/^0+$/.test(digits)) throw new SqlError(`positive number expected: ${digits}${word}`, position)
  advance(cursor)
  return { position, count: wholeNumber(position, digits), unit }
}

const wordConstants: ReadonlySet<string> = new Set(['null', 'true', 'false'])

function unitExpected(cursor: Cursor): string {
  return atEnd(cursor) ? 'time interval unit expected' : 'one letter sample by period unit expected'
}

/** `100ms`, `10us`: two letters for the units `T`, `U` and `n`. */
const subSecond = /(?<=^\d+)[mun]s$/
const subSecondUnits: Readonly<Record<string, string>> = { m: 'T', u: 'U', n: 'n' }

function parseNumberInterval(cursor: Cursor): Interval {
  const position = cursor.start
  const text = tokenText(cursor)
  const single = intervalOfText(text.replace(subSecond, ([unit = '']) => subSecondUnits[unit] ?? unit))
  advance(cursor)
  if (single !== null) {
    if (/^0+$/.test(single.digits)) throw new SqlError(`positive number expected: ${text}`, position)
    return { position, count: wholeNumber(position, single.digits), unit: single.unit }
  }
  const unit = cursor.kind === 'word' ? timeUnitOf(tokenText(cursor)) : undefined
  if (unit === undefined || !/^\d+$/.test(text)) throw new SqlError(`Invalid unit: ${text}`, position)
  if (/^0+$/.test(text)) throw new SqlError(`positive number expected: ${text}`, position)
  advance(cursor)
  return { position, count: wholeNumber(position, text), unit }
}
