// Parses SELECT and its short forms: the select list, then the clauses from FROM to PIVOT.

import { SqlError } from '../../base/errors.js'
import { sqlColumnsMax } from '../../base/limits.js'
import { suggestion } from '../../base/nearest.js'
import type { Expression, Name, Query, Select, SelectItem, TableSource } from '../ast/ast.js'
import { parseLatest, parsePivot, parseSampleBy } from './clauses.js'
import { advance, at, type Cursor, peekWord, tokenText } from './cursor.js'
import {
  atEnd,
  expect,
  parseFreeName,
  parseList,
  parseName,
  parseNameOrString,
  parseNamesInParentheses,
  shownToken,
  take,
  tooFew,
  unexpectedToken,
} from './expect.js'
import { isConstantToken, isInfix, parseExpression, parseExpression0 } from './expression.js'
import { parseGrouping } from './grouping.js'
import { tooFewArguments } from './operand.js'
import { keywordError } from './reserved.js'
import { parseJoins, parseQuerySource, parseTableSource } from './source.js'
import { parseUnpivot } from './unpivot.js'
import { parseNamedWindow } from './window.js'

const aliasReserved: ReadonlySet<string> = new Set([
  'from',
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
  'for',
  'fetch',
  'into',
  'pivot',
  'unpivot',
  'qualify',
  'returning',
])

const constants: ReadonlySet<string> = new Set(['null', 'true', 'false'])

export function parseSelect(cursor: Cursor): Select {
  const position = cursor.start
  advance(cursor)
  const viewRead = hintOf(cursor)
  const distinct = take(cursor, 'distinct')
  if (!distinct) take(cursor, 'all')
  const distinctOn = distinct && cursor.word === 'on' ? parseDistinctOn(cursor) : []
  const isBare = cursor.word === 'from' && cursor.bareSelect === position
  const items = isBare ? [anyValue(cursor.start)] : parseItems(cursor, distinct)
  const from = take(cursor, 'from') ? parseTableSource(cursor) : null
  const select = parseClauses(cursor, { position, implicit: false, distinct, distinctOn, items, from })
  return viewRead === null ? select : { ...select, viewRead }
}

// The hint follows SELECT: /*+ view_stored */. Other hints are for other optimizers, and are ignored.
function hintOf({ text, previousEnd, start }: Cursor): NonNullable<Select['viewRead']> | null {
  if (start - previousEnd < 4) return null
  const blank = text.slice(previousEnd, start)
  const comment = /^\s*\/\*\+(.*?)\*\//s.exec(blank)
  const [hint, name = '', rest] = /\bview_(stored|fresh)\b\s*(\(?)/i.exec(comment?.[1] ?? '') ?? []
  if (hint === undefined) return null
  const position = previousEnd + blank.indexOf(hint)
  if (rest !== '') throw new SqlError(`the hint view_${name.toLowerCase()} has no parameters`, position)
  return { position, read: name.toLowerCase() === 'stored' ? 'stored' : 'fresh' }
}

/** The item of a select without list, as in `exists (select from t)`. */
function anyValue(position: number): SelectItem {
  return { position, expression: { kind: 'null', position }, alias: null }
}

function parseDistinctOn(cursor: Cursor): Expression[] {
  advance(cursor)
  expect(cursor, '(')
  const expressions = parseList(cursor, parseExpression0)
  expect(cursor, ')')
  return expressions
}

/** The select list, up to the next clause. */
export function parseItems(cursor: Cursor, distinct: boolean): SelectItem[] {
  const isClosed = cursor.word === ')'
  if (cursor.kind === 'end' || isClosed)
    throw new SqlError(
      distinct ? 'column expected' : '[distinct] column expected',
      isClosed ? cursor.previousEnd + 1 : cursor.start,
    )
  if (distinct && cursor.word === 'distinct') throw keywordError('distinct', cursor.start)
  if (cursor.word === 'from') throw new SqlError('column expression expected', cursor.start)
  const items = [parseItem(cursor)]
  while (take(cursor, ',')) {
    // A comma before FROM is tolerated.
    if (cursor.word === 'from') break
    if (items.length === sqlColumnsMax) throw new SqlError(`list is too long [max=${sqlColumnsMax}]`, cursor.start)
    items.push(parseItem(cursor))
  }
  return items
}

function parseItem(cursor: Cursor): SelectItem {
  const position = cursor.start
  if (cursor.word === '*') {
    const expression = parseStar(cursor)
    refuseStarAlias(cursor)
    return { position, expression, alias: null }
  }
  if (cursor.kind === 'end') throw new SqlError('column expected', position)
  if (cursor.word === 'end') throw keywordError('end', position)
  if (cursor.word === 'select') throw new SqlError('reserved name', Math.min(cursor.end + 1, cursor.text.length))
  const expression = parseExpression(cursor, 0, 'missing expression')
  if (expression.kind === 'star') {
    const exclude = parseExclude(cursor)
    refuseStarAlias(cursor)
    return { position, expression: { ...expression, exclude }, alias: null }
  }
  if (cursor.word === '(') throw new SqlError('not a function call', cursor.start)
  const alias = parseItemAlias(cursor)
  if ((startsOperand(cursor) && !endsItems(cursor)) || (alias !== null && goesOn(cursor)))
    throw itemError(cursor, alias)
  return { position, expression, alias }
}

/** Throws if `*` has an alias: only a clause or the next item may follow. */
function refuseStarAlias(cursor: Cursor): void {
  if (take(cursor, 'as') || cursor.kind === 'string' || isAliasWord(cursor))
    throw new SqlError('wildcard cannot have alias', cursor.start, suggestion(cursor.word, ['FROM']))
  requireIdentifier(cursor)
}

function isAliasWord(cursor: Cursor): boolean {
  return cursor.kind === 'quoted' || (cursor.kind === 'word' && !endsItems(cursor))
}

/** Whether a clause begins here. `insert into t select 3 on conflict do nothing` continues after the query. */
function endsItems(cursor: Cursor): boolean {
  const { kind, word } = cursor
  return kind === 'word' && (aliasReserved.has(word) || (word === 'on' && peekWord(cursor) === 'conflict'))
}

/** Throws if the token after an item can be neither an alias nor the end of the item. */
function requireIdentifier(cursor: Cursor): void {
  const { kind, word } = cursor
  const isEnd = kind === 'symbol' && itemEnds.has(word)
  if (kind === 'number' || kind === 'geohash' || (kind === 'symbol' && !isEnd))
    throw new SqlError("identifier should start with a letter or '_'", cursor.start)
}

const itemEnds: ReadonlySet<string> = new Set([',', ')', ';', ']', '.', ':=', ':'])

function parseStar(cursor: Cursor): Expression {
  const position = cursor.start
  advance(cursor)
  if (at(cursor, '.')) throw new SqlError("'.' is not allowed here", cursor.start)
  return { kind: 'star', position, table: null, exclude: parseExclude(cursor) }
}

function parseExclude(cursor: Cursor): Name[] {
  if (cursor.word !== 'exclude') return []
  advance(cursor)
  return at(cursor, '(') ? parseNamesInParentheses(cursor) : [parseName(cursor, 'column name expected')]
}

/** `as x`, `x`, `"x"`, `'x'`; null without an alias. */
function parseItemAlias(cursor: Cursor): Name | null {
  if (take(cursor, 'as')) return parseWrittenAlias(cursor)
  requireIdentifier(cursor)
  if (constants.has(cursor.word)) throw new SqlError('dangling expression', cursor.start)
  if (cursor.kind === 'word' ? endsItems(cursor) : cursor.kind !== 'quoted' && cursor.kind !== 'string') return null
  return parseFreeName(cursor, 'alias expected')
}

/**
 * The name after AS. Any word is allowed, since tools for PostgreSQL write `as table`; FROM only if another FROM
 * follows.
 */
function parseWrittenAlias(cursor: Cursor): Name {
  if (cursor.kind === 'end') throw new SqlError('alias expected', cursor.start)
  if (cursor.kind === 'number' || cursor.kind === 'symbol')
    throw new SqlError("identifier should start with a letter or '_'", cursor.start)
  const { kind, start, word } = cursor
  const alias = parseNameOrString(cursor, 'alias expected')
  if (kind === 'word' && aliasStops.has(word) && startsOperand(cursor) && cursor.word !== 'from')
    throw keywordError(word, start)
  if (at(cursor, '.')) throw itemError(cursor, alias)
  return alias
}

const aliasStops: ReadonlySet<string> = new Set(['from', 'as'])

function startsOperand(cursor: Cursor): boolean {
  const { kind } = cursor
  return kind !== 'end' && kind !== 'symbol' && !isInfix(cursor.word)
}

/** Whether an operator or opening bracket follows an alias, where the expression has already ended. */
function goesOn({ kind, word }: Cursor): boolean {
  return isInfix(word) || (kind === 'symbol' && word !== ',' && word !== ')' && word !== ';')
}

function itemError(cursor: Cursor, alias: Name | null): SqlError {
  if (alias === null) return new SqlError("',' or 'from' expected", cursor.start)
  const token = shownToken(cursor)
  return new SqlError(
    `found [tok='${token}', len=${tokenText(cursor).length}] ',', 'from' or 'over' expected`,
    cursor.start,
  )
}

/** `trades limit 2`, `from trades`, or `(select ..) where ..`, whose source is already parsed. */
export function parseImplicitSelect(
  cursor: Cursor,
  missing: string,
  source?: { readonly position: number; readonly query: Query },
): Select {
  const { start } = cursor
  const position = source?.position ?? start
  if (source === undefined && !take(cursor, 'from')) requireTable(cursor, missing)
  const from =
    source === undefined ? parseTableSource(cursor, missing) : parseQuerySource(cursor, source.position, source.query)
  // `a, b from t` lacks SELECT and is not a list of tables.
  if (from.alias === null && take(cursor, ',') && !atEnd(cursor)) throw unexpectedToken(cursor)
  const items: SelectItem[] = [
    { position, expression: { kind: 'star', position, table: null, exclude: [] }, alias: null },
  ]
  return parseClauses(cursor, { position, implicit: true, distinct: false, distinctOn: [], items, from })
}

/** The error for a statement that begins with neither a keyword nor a table. */
function requireTable(cursor: Cursor, missing: string): void {
  const { kind, start, word } = cursor
  if (kind === 'quoted' || kind === 'string') return
  if (kind === 'word' && word !== 'upsert') return
  if (kind === 'word') throw keywordError(word, start)
  if (kind === 'number') return
  if (kind === 'parameter') throw SqlError.tableMissing(shownToken(cursor), start)
  if (word === '-' || word === '~') throw tooFew(word, 0, 1, start)
  if (isInfix(word)) throw tooFewArguments(cursor)
  if (kind === 'end' || word === ')' || word === ',' || word === '.') throw new SqlError(missing, start)
  throw SqlError.tableMissing(shownToken(cursor), start)
}

type SelectHead = Pick<Select, 'position' | 'implicit' | 'distinct' | 'distinctOn' | 'items'> & {
  readonly from: TableSource | null
}

function parseClauses(cursor: Cursor, head: SelectHead): Select {
  const written = head.from === null ? [] : parseJoins(cursor)
  const isUnpivot = head.from !== null && cursor.word === 'unpivot'
  const from = head.from !== null && isUnpivot ? parseUnpivot(cursor, head.from, written) : head.from
  const joins = isUnpivot ? parseJoins(cursor) : written
  const early = cursor.word === 'pivot' ? parsePivot(cursor) : null
  const before = cursor.word === 'latest' ? parseLatest(cursor) : null
  const where = parseWhere(cursor)
  const latestOn = before === null && cursor.word === 'latest' ? parseLatest(cursor) : before
  const firstSample = cursor.word === 'sample' ? parseSampleBy(cursor) : null
  const grouping = cursor.word === 'group' ? parseGrouping(cursor) : { groupBy: [] }
  if (grouping.groupBy.length > 0 && cursor.word === 'sample') throw unexpectedToken(cursor)
  const sampleBy = firstSample
  const having = cursor.word === 'having' ? parseCondition(cursor) : null
  const windows = cursor.word === 'window' ? parseWindows(cursor) : []
  const qualify = cursor.word === 'qualify' ? { qualify: parseCondition(cursor) } : {}
  if (windows.length === 0 && cursor.word === 'window') windows.push(...parseWindows(cursor))
  const pivot = early === null && cursor.word === 'pivot' ? parsePivot(cursor) : early
  return {
    kind: 'select',
    ...head,
    from,
    joins,
    where,
    latestOn,
    sampleBy,
    ...grouping,
    having,
    ...qualify,
    windows,
    pivot,
  }
}

const emptyWhere = 'empty where clause'

export function parseWhere(cursor: Cursor): Expression | null {
  if (cursor.word !== 'where') return null
  const where = parseCondition(cursor, emptyWhere)
  if (isConstantToken(cursor))
    throw isOperation(where) ? new SqlError('dangling expression', cursor.start) : unexpectedToken(cursor)
  return where
}

function isOperation({ kind }: Expression): boolean {
  return kind === 'binary' || kind === 'unary' || kind === 'in' || kind === 'between' || kind === 'is null'
}

/** The expression after WHERE, HAVING or ON. If it is missing, the error is reported at the keyword. */
export function parseCondition(cursor: Cursor, missing = 'Expression expected'): Expression {
  const { start } = cursor
  advance(cursor)
  if (cursor.kind === 'end') throw new SqlError(missing, endsInBlank(cursor) ? cursor.start - 1 : start)
  if (cursor.word === ')' || cursor.word === ';')
    throw new SqlError(missing, missing === emptyWhere ? cursor.start : start)
  return parseExpression(cursor, 0, missing)
}

/** Existing clients expect errors at the end of the text to count a trailing blank as a token. */
function endsInBlank({ previousEnd, text }: Cursor): boolean {
  return previousEnd < text.length
}

/** GROUP BY of PIVOT. */
export function parseGroupBy(cursor: Cursor): Expression[] {
  advance(cursor)
  expect(cursor, 'by')
  return parseList(cursor, (inner) => parseExpression(inner, 0, 'literal expected'), sqlColumnsMax)
}

/** `window w as (..), v as (..)` */
function parseWindows(cursor: Cursor): Select['windows'][number][] {
  if (peekWord(cursor) === 'join') return []
  const position = cursor.start
  advance(cursor)
  if (cursor.kind === 'end') throw new SqlError('join expected', cursor.start)
  return parseList(cursor, (inner) => {
    const name = parseName(inner, 'window name expected')
    if (inner.kind === 'end') throw new SqlError("'join' expected", position)
    const { start: as } = inner
    expect(inner, 'as')
    if (atEnd(inner)) throw new SqlError("'(' expected after 'as'", as)
    return { name, window: parseNamedWindow(inner) }
  })
}
