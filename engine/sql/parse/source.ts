// Parses the FROM clause: tables, table functions and sub-queries with their aliases, and joins.

import { SqlError } from '../../base/errors.js'
import { sqlJoinsMax } from '../../base/limits.js'
import type {
  Direction,
  Expression,
  Horizon,
  HorizonOffset,
  Interval,
  Join,
  JoinKind,
  Name,
  Query,
  TableName,
  TableSource,
  WindowJoinRange,
} from '../ast/ast.js'
import { callOf, crossJoin, nameAt, queryOf, querySource, selectBody, starItem } from '../rewrite/make-query.js'
import { parseCall } from './call.js'
import { advance, at, type Cursor, moveTo, peekWord, tokenText } from './cursor.js'
import {
  atEnd,
  expect,
  isNumberName,
  lastTokenStart,
  parseFreeName,
  parseName,
  parseNameOrString,
  parseNamesInParentheses,
  parseTableName,
  startsLocking,
  take,
  takeCommas,
} from './expect.js'
import { isInfix, parseExpression } from './expression.js'
import { timeUnitOf } from './literal.js'
import { parseQueryInParentheses } from './query.js'
import { isRecordFunction, parseRecordSource } from './record-functions.js'
import { refuseReserved } from './reserved.js'
import { parseCondition } from './select.js'
import { parseFrameBound, parseInterval } from './window.js'

const sourceExpected = 'table name or sub-query expected'

/** Words after a table that are not its alias. */
const aliasReserved: ReadonlySet<string> = new Set([
  'where',
  'group',
  'order',
  'having',
  'limit',
  'union',
  'except',
  'intersect',
  'latest',
  'sample',
  'offset',
  'window',
  'fetch',
  'join',
  'inner',
  'left',
  'right',
  'full',
  'cross',
  'asof',
  'lt',
  'splice',
  'natural',
  'outer',
  'on',
  'using',
  'tolerance',
  'range',
  'pivot',
  'qualify',
  'unpivot',
  'set',
  'from',
  'with',
  'tablesample',
  'returning',
])

/** Skips ONLY of `only s.t`, since there is no table inheritance. Otherwise `only` is a table name. */
function passOnly(cursor: Cursor): void {
  if (cursor.word !== 'only') return
  const { start, previousEnd } = cursor
  advance(cursor)
  if (peekWord(cursor) === '.') return
  moveTo(cursor, start)
  cursor.previousEnd = previousEnd
}

export function parseTableSource(cursor: Cursor, missing = sourceExpected): TableSource {
  const position = cursor.start
  const lateral = cursor.word === 'lateral' && peekWord(cursor) !== 'as' && take(cursor, 'lateral')
  passOnly(cursor)
  if (cursor.word === '(') return parseQuerySource(cursor, position, parseQueryInParentheses(cursor), lateral)
  if (cursor.kind === 'variable') {
    const name = tokenText(cursor).slice(1)
    advance(cursor)
    return { kind: 'variable source', position, name, ...parseSourceTail(cursor) }
  }
  if (cursor.kind === 'symbol' && missing === sourceExpected) missing = 'table name expected'
  const isNumber = cursor.kind === 'number' && !isNumberName(cursor)
  const table = isNumber ? numberAsTable(cursor) : parseTableName(cursor, missing)
  if (isInfix(cursor.word) || cursor.word === 'not') throw expressionError(cursor, position)
  if (isNumber) throw SqlError.tableMissing(table.name, position)
  if (table.name === '') throw new SqlError('come on, where is the table name?', position)
  if (cursor.word !== '(') {
    const source = { kind: 'table', position, table, ...parseSourceTail(cursor) } as const
    return cursor.word === 'tablesample' ? parseTableSample(cursor, source) : source
  }
  const call = parseCall(cursor, [table.name], position)
  if (isRecordFunction(call)) return parseRecordSource(cursor, position, call)
  const ordinality = at(cursor, 'with') && peekWord(cursor) === 'ordinality'
  if (ordinality) {
    advance(cursor)
    advance(cursor)
  }
  return { kind: 'table function', position, schema: table.schema, call, ordinality, ...parseSourceTail(cursor) }
}

/**
 * Parses `tablesample bernoulli (10)`, which takes each row with a probability of 10 %: a sub-query with
 * `where rnd_double() < 0.1`. SYSTEM, which may take blocks of rows, does the same.
 */
function parseTableSample(cursor: Cursor, source: Extract<TableSource, { kind: 'table' }>): TableSource {
  const { start: position } = cursor
  advance(cursor)
  if (!take(cursor, 'bernoulli')) expect(cursor, 'system', "'bernoulli' or 'system' expected")
  expect(cursor, '(')
  const { start } = cursor
  const percent = Number(tokenText(cursor))
  if (cursor.kind !== 'number' || !(percent >= 0 && percent <= 100))
    throw new SqlError('a percentage between 0 and 100 is expected', start)
  advance(cursor)
  expect(cursor, ')')
  if (cursor.word === 'repeatable') throw new SqlError('REPEATABLE is not supported', cursor.start)
  const probability = percent / 100
  const right: Expression = {
    ...{ kind: 'float', position: start, text: String(probability), digits: String(probability) },
    ...{ value: probability, single: false },
  }
  const where: Expression = { kind: 'binary', operator: '<', left: callOf('rnd_double', [], position), right, position }
  const body = selectBody(source, [starItem(position)], where, source.position)
  return querySource(queryOf(body), source.alias ?? nameAt(source.table.name, source.position))
}

function numberAsTable(cursor: Cursor): TableName {
  const table = { position: cursor.start, schema: null, name: tokenText(cursor), quoted: false }
  advance(cursor)
  return table
}

/** The error for an expression in place of a table, which begins at `start`. */
function expressionError(cursor: Cursor, start: number): SqlError {
  moveTo(cursor, start)
  const expression = parseExpression(cursor)
  const position = expression.kind === 'column' ? cursor.start : expression.position
  return new SqlError('function, literal or constant is expected', position)
}

/** A sub-query that is already parsed, followed by its alias and designated timestamp. */
export function parseQuerySource(cursor: Cursor, position: number, query: Query, lateral = false): TableSource {
  return { kind: 'query source', position, query, lateral, ...parseSourceTail(cursor) }
}

const constants: ReadonlySet<string> = new Set(['null', 'true', 'false'])

interface SourceTail {
  readonly alias: Name | null
  readonly columnAliases: readonly Name[]
  readonly timestamp: Name | null
}

/** `timestamp(ts)` may precede or follow the alias. */
function parseSourceTail(cursor: Cursor): SourceTail {
  const before = parseTimestamp(cursor)
  if (cursor.word === 'set') refuseReserved(cursor)
  if (constants.has(cursor.word)) throw new SqlError('dangling expression', cursor.start)
  const alias = parseTableAlias(cursor)
  const columnAliases = alias !== null && cursor.word === '(' ? parseColumnAliases(cursor) : []
  return { alias, columnAliases, timestamp: before ?? parseTimestamp(cursor) }
}

function parseTimestamp(cursor: Cursor): Name | null {
  if (cursor.word !== 'timestamp' || peekWord(cursor) !== '(') return null
  advance(cursor)
  advance(cursor)
  const name = parseNameOrString(cursor, 'column name expected')
  expect(cursor, ')')
  return name
}

export function parseTableAlias(cursor: Cursor): Name | null {
  if (take(cursor, 'as')) return parseFreeName(cursor, 'alias expected')
  if (cursor.kind === 'quoted' || cursor.kind === 'string') return parseNameOrString(cursor, 'alias expected')
  const { word } = cursor
  if (word === 'horizon' && peekWord(cursor) === 'join') return null
  refuseSemiJoin(cursor)
  if (isNumberName(cursor)) return parseName(cursor, 'alias expected')
  if (cursor.kind !== 'word' || aliasReserved.has(word) || isInfix(word) || startsLocking(cursor)) return null
  if (startsDirection(cursor)) return null
  return parseFreeName(cursor, 'alias expected')
}

/** As an alias, SEMI or ANTI would turn the join into an inner join without notice. */
function refuseSemiJoin(cursor: Cursor): void {
  const { word, start } = cursor
  if ((word !== 'semi' && word !== 'anti') || peekWord(cursor) !== 'join') return
  const condition = word === 'semi' ? 'EXISTS' : 'NOT EXISTS'
  throw new SqlError(`${word.toUpperCase()} JOIN is not supported, use WHERE ${condition} (..)`, start)
}

/** `t (a, b)`. If the parenthesis holds no name, the cursor stays. */
function parseColumnAliases(cursor: Cursor): Name[] {
  const { start, previousEnd } = cursor
  advance(cursor)
  const named = cursor.kind === 'word' || cursor.kind === 'quoted'
  moveTo(cursor, start)
  cursor.previousEnd = previousEnd
  return named ? parseNamesInParentheses(cursor) : []
}

const plainJoins: Readonly<Record<string, JoinKind>> = {
  inner: 'inner',
  cross: 'cross',
  asof: 'asof',
  lt: 'lt',
  splice: 'splice',
  window: 'window',
  horizon: 'horizon',
}

export function parseJoins(cursor: Cursor): Join[] {
  const joins: Join[] = []
  for (;;) {
    const position = cursor.start
    if (joins.length > sqlJoinsMax) throw new SqlError(`too many joins [max=${sqlJoinsMax}]`, position)
    if (takeCommas(cursor)) {
      // A trailing comma after the last table is tolerated.
      if (atEnd(cursor)) return joins
      joins.push(crossJoin(parseTableSource(cursor), position))
      continue
    }
    const natural = cursor.word === 'natural' && take(cursor, 'natural')
    const kind = parseJoinKind(cursor)
    if (kind === null) return withHorizon(joins)
    if (joins.length > 0 && (kind === 'horizon') !== (joins[0]?.kind === 'horizon'))
      throw new SqlError('horizon join cannot be combined with other joins', position)
    if (joins.at(-1)?.horizon)
      throw new SqlError('LIST or RANGE is allowed behind the last HORIZON JOIN alone', position)
    joins.push(parseJoin(cursor, position, kind, natural))
  }
}

/** The offsets are written behind the last of several HORIZON JOINs, and belong to the first in the syntax tree. */
function withHorizon(joins: Join[]): Join[] {
  const [first, ...others] = joins
  if (first?.kind !== 'horizon' || others.length === 0) return joins
  return [{ ...first, horizon: others.at(-1)?.horizon ?? null }, ...others.map((join) => ({ ...join, horizon: null }))]
}

/** Moves past `left outer join` and the like. Null, without moving, if no join begins here. */
function parseJoinKind(cursor: Cursor): JoinKind | null {
  refuseSemiJoin(cursor)
  const { word, start } = cursor
  if (word === 'join') {
    advance(cursor)
    return 'inner'
  }
  if (word === 'left' || word === 'right' || word === 'full') {
    advance(cursor)
    take(cursor, 'outer')
    requireJoin(cursor, start)
    return word
  }
  const kind = Object.hasOwn(plainJoins, word) ? plainJoins[word] : undefined
  if (kind === undefined || (kind === 'window' && peekWord(cursor) !== 'join')) return null
  advance(cursor)
  requireJoin(cursor, start)
  return kind
}

/** `before` is the start of the word before JOIN. */
function requireJoin(cursor: Cursor, before: number): void {
  if (cursor.kind === 'end') throw new SqlError('join expected', cursor.start)
  expect(cursor, 'join', "'join' expected", before)
}

function parseJoin(cursor: Cursor, position: number, kind: JoinKind, natural: boolean): Join {
  const source = parseTableSource(cursor)
  let on: Expression | null = null
  let using: readonly Name[] = []
  if (kind === 'cross' && cursor.word === 'on') throw new SqlError('Cross joins cannot have join clauses', cursor.start)
  const merges = natural || cursor.word === 'using'
  if (cursor.word === 'using') {
    const { start } = cursor
    advance(cursor)
    if (cursor.kind === 'end') throw new SqlError("'on' expected", start)
    using = parseNamesInParentheses(cursor)
  } else if (cursor.word === 'on') {
    using = parseOnColumns(cursor)
    if (using.length === 0) on = parseCondition(cursor)
    if (on?.kind === 'column' && on.path.length === 1) {
      using = [{ name: on.path[0] ?? '', position: on.position, quoted: on.quoted }]
      on = null
    }
  }
  const towards = startsDirection(cursor) ? { direction: parseDirection(cursor, kind) } : null
  const tolerance = cursor.word === 'tolerance' ? parseTolerance(cursor, kind) : null
  const direction = towards ?? (startsDirection(cursor) ? { direction: parseDirection(cursor, kind) } : {})
  const window = kind === 'window' ? parseWindowJoinRange(cursor, source) : null
  const isLast = !(cursor.word === 'horizon' && peekWord(cursor) === 'join')
  const horizon = kind === 'horizon' && isLast ? parseHorizon(cursor) : null
  return { position, kind, natural, source, on, using, merges, tolerance, ...direction, window, horizon }
}

/** An error reported after the value, or at the value itself if the statement ends there. */
function afterValue(cursor: Cursor, message: string): SqlError {
  const { start } = cursor
  advance(cursor)
  return new SqlError(message, atEnd(cursor) ? start : cursor.start)
}

const toleranceMax = 2_147_483_647

function checkTolerance(cursor: Cursor): void {
  const { start } = cursor
  const text = tokenText(cursor)
  const [, digits = '', unit] = /^(\d+)([a-z]*)$/i.exec(text) ?? []
  if (unit === '' && timeUnitOf(peekWord(cursor)) === undefined)
    throw new SqlError('expected interval qualifier', cursor.end)
  if (unit === undefined || unit.length > 1)
    throw new SqlError('expected single letter qualifier', start + text.search(/\D|$/))
  if (/^0+[a-z]$/i.test(text)) throw new SqlError('zero is not a valid tolerance value', start)
  if (unit !== '' && timeUnitOf(unit) === undefined)
    throw new SqlError(`unsupported TOLERANCE unit [unit=${unit}]`, start)
  if (Number(digits) > toleranceMax)
    throw new SqlError(`invalid tolerance value [value=${text}, maximum=${toleranceMax}${unit}]`, start)
}

function parseTolerance(cursor: Cursor, kind: JoinKind): Interval {
  const { start: word } = cursor
  if (kind !== 'asof' && kind !== 'lt') throw new SqlError('TOLERANCE is only supported for ASOF and LT joins', word)
  const join = `${kind.toUpperCase()} JOIN TOLERANCE`
  advance(cursor)
  if (cursor.kind === 'end') throw new SqlError(`${join} period expected`, word)
  refuseReserved(cursor)
  if (take(cursor, '-')) throw afterValue(cursor, 'ASOF JOIN TOLERANCE must be positive')
  if (cursor.kind === 'word' || cursor.kind === 'string') throw afterValue(cursor, `${join} must be a constant`)
  if (cursor.kind === 'number') checkTolerance(cursor)
  return parseInterval(cursor)
}

const directions: readonly Direction[] = ['backward', 'forward', 'nearest']

/** `direction` is a name unless one of its values follows. */
function startsDirection(cursor: Cursor): boolean {
  return cursor.word === 'direction' && directions.some((name) => name === peekWord(cursor))
}

function parseDirection(cursor: Cursor, kind: JoinKind): { position: number; towards: Direction } {
  const { start: position } = cursor
  if (kind !== 'asof' && kind !== 'lt')
    throw new SqlError('DIRECTION is only supported for ASOF and LT joins', position)
  advance(cursor)
  const towards = directions.find((name) => name === cursor.word) ?? 'backward'
  advance(cursor)
  return { position, towards }
}

/** `on (a, b)`: names in parentheses without an operator after them. Empty, without moving, for a condition. */
function parseOnColumns(cursor: Cursor): Name[] {
  const { start, previousEnd } = cursor
  const names = readOnColumns(cursor)
  if (names.length === 0) {
    moveTo(cursor, start)
    cursor.previousEnd = previousEnd
  }
  return names
}

function readOnColumns(cursor: Cursor): Name[] {
  advance(cursor)
  if (!take(cursor, '(')) return []
  const names: Name[] = []
  do {
    if ((cursor.kind !== 'word' && cursor.kind !== 'quoted') || constants.has(cursor.word)) return []
    names.push(parseName(cursor, 'column name expected'))
  } while (take(cursor, ','))
  if (!take(cursor, ')')) return []
  return isInfix(cursor.word) || cursor.word === 'not' || cursor.word === '[' || cursor.word === '.' ? [] : names
}

/** A missing range at the end of the text is reported at the last word before it. */
function parseWindowJoinRange(cursor: Cursor, source: TableSource): WindowJoinRange {
  const position = cursor.start
  if (cursor.kind === 'end') throw new SqlError("'range' expected", source.alias?.position ?? source.position)
  expect(cursor, 'range')
  if (atEnd(cursor)) throw new SqlError("'between' expected", position)
  expect(cursor, 'between')
  const start = parseFrameBound(cursor)
  expect(cursor, 'and', "'and' expected", atEnd(cursor) ? lastTokenStart(cursor) : undefined)
  const end = parseFrameBound(cursor)
  const excluded = take(cursor, 'exclude')
  if (excluded || take(cursor, 'include')) expect(cursor, 'prevailing')
  return { position, start, end, prevailing: !excluded, aggregates: [] }
}

/** FROM and joins of UPDATE, USING of DELETE. */
export function parseFrom(
  cursor: Cursor,
  word: 'from' | 'using',
): { from: TableSource | null; joins: readonly Join[] } {
  if (!take(cursor, word)) return { from: null, joins: [] }
  return { from: parseTableSource(cursor), joins: parseJoins(cursor) }
}

/** The offsets of HORIZON JOIN: `range from -1h to 1h step 30m as h`, `list (0, 1m, 5m) as h`. */
function parseHorizon(cursor: Cursor): Horizon {
  const range = take(cursor, 'range') ? parseRange(cursor) : null
  if (range === null) expect(cursor, 'list', "'range' or 'list' expected")
  const list = range === null ? parseOffsets(cursor) : []
  expect(cursor, 'as')
  return { range, list, alias: parseFreeName(cursor, 'alias expected') }
}

function parseRange(cursor: Cursor): Horizon['range'] {
  expect(cursor, 'from')
  const from = parseOffset(cursor)
  expect(cursor, 'to')
  const to = parseOffset(cursor)
  expect(cursor, 'step')
  return { from, to, step: parseOffset(cursor) }
}

function parseOffsets(cursor: Cursor): HorizonOffset[] {
  expect(cursor, '(')
  if (cursor.word === ')') throw new SqlError('at least one offset expression expected', cursor.start)
  const offsets = [parseOffset(cursor)]
  while (take(cursor, ',')) offsets.push(parseOffset(cursor))
  expect(cursor, ')', "',' or ')' expected")
  return offsets
}

/** `-90s`. Zero needs no unit. Months and years are refused, because they have no fixed length. */
function parseOffset(cursor: Cursor): HorizonOffset {
  const position = cursor.start
  const negative = take(cursor, '-')
  const [, digits, suffix = ''] = /^(\d+)([a-z]*)$/i.exec(tokenText(cursor)) ?? []
  if (digits === undefined) throw new SqlError('expected numeric value', position)
  const unit = timeUnitOf(suffix) ?? null
  if (suffix !== '' && (unit === null || unit === 'M' || unit === 'y'))
    throw new SqlError(`unsupported HORIZON time unit [unit=${suffix}]`, position)
  if (suffix === '' && !/^0+$/.test(digits)) throw new SqlError('expected interval qualifier', cursor.end)
  const count = Number(digits)
  if (!Number.isSafeInteger(count)) throw new SqlError('HORIZON JOIN offset is too large', position)
  advance(cursor)
  return { position, count: negative ? -count : count, unit }
}
