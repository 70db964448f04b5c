// Parses INSERT, UPDATE, DELETE and MERGE.

import { SqlError } from '../../base/errors.js'
import { sqlListMax } from '../../base/limits.js'
import type {
  Assignment,
  CommonTable,
  Conflict,
  Declaration,
  Delete,
  Expression,
  Insert,
  InsertRows,
  Interval,
  Merge,
  MergeAction,
  MergeClause,
  Name,
  Query,
  Select,
  TableName,
  Update,
  ValueRow,
} from '../ast/ast.js'
import { advance, at, type Cursor, moveTo, peekWord, shownTokenError, tokenText } from './cursor.js'
import {
  atEnd,
  expect,
  isNumberName,
  parseFreeName,
  parseList,
  parseName,
  parseNameOrString,
  parseTableName,
  requireDistinct,
  shownToken,
  take,
} from './expect.js'
import { parseExpression } from './expression.js'
import { parseQuery, startsQuery } from './query.js'
import { valuesOfRow } from './row-value.js'
import { parseItems, parseWhere } from './select.js'
import { parseFrom, parseTableAlias, parseTableSource } from './source.js'
import { parseInterval } from './window.js'

/** The cursor is on `insert`. `position` is that of a preceding WITH or DECLARE, if any. */
export function parseInsert(
  cursor: Cursor,
  position: number,
  declarations: readonly Declaration[],
  commonTables: readonly CommonTable[],
): Insert {
  advance(cursor)
  const atomic = take(cursor, 'atomic')
  const { batch, o3MaxLag } = parseBatch(cursor)
  if (cursor.kind === 'end') throw new SqlError(intoMissing(atomic, batch, o3MaxLag), cursor.start)
  expect(cursor, 'into')
  const table = parseTableName(cursor)
  const alias = take(cursor, 'as') ? parseFreeName(cursor, 'alias expected') : null
  const columns = cursor.word === '(' ? parseFreeNames(cursor) : []
  requireDistinct(columns)
  if (take(cursor, 'overriding')) {
    if (!take(cursor, 'system')) expect(cursor, 'user')
    expect(cursor, 'value')
  }
  const source = parseInsertSource(cursor, columns.length)
  if (atomic && source.kind === 'rows')
    throw new SqlError("'atomic' keyword can only be used in INSERT INTO SELECT statements.", source.position)
  const conflict = parseConflict(cursor)
  const returning = parseReturning(cursor, table, alias, { declarations, commonTables })
  return {
    ...{ kind: 'insert', position, declarations, commonTables, table, alias, columns, source, batch, o3MaxLag, atomic },
    ...{ conflict, returning },
  }
}

/** The RETURNING list, as a query of the table. */
function parseReturning(
  cursor: Cursor,
  table: TableName,
  alias: Name | null,
  named: Pick<Query, 'declarations' | 'commonTables'>,
): Query | null {
  const position = cursor.start
  if (!take(cursor, 'returning')) return null
  const items = parseItems(cursor, false)
  const from = { kind: 'table', position, columnAliases: [], timestamp: null, table, alias } as const
  const body: Select = {
    ...{ kind: 'select', position, implicit: false, distinct: false, distinctOn: [], items, from },
    ...{ joins: [], where: null, latestOn: null, sampleBy: null, groupBy: [], having: null, windows: [], pivot: null },
  }
  return { kind: 'query', position, end: cursor.start, ...named, body, orderBy: [], limit: null }
}

function intoMissing(atomic: boolean, batch: Expression | null, lag: Interval | null): string {
  if (batch !== null && lag === null) return 'into or o3MaxLag expected'
  return atomic || lag !== null ? 'into expected' : 'atomic or into or batch expected'
}

function parseFreeNames(cursor: Cursor): Name[] {
  expect(cursor, '(')
  if (at(cursor, ')')) throw shownTokenError(cursor, 'missing column name')
  const names = parseList(cursor, (inner) => {
    if (at(inner, ')')) throw shownTokenError(inner, 'missing column name')
    if (inner.kind === 'number' && !isNumberName(inner)) throw SqlError.columnMissing(shownToken(inner), inner.start)
    return parseFreeName(inner, 'column expected')
  })
  expect(cursor, ')', cursor.kind === 'end' ? "',' expected" : undefined)
  return names
}

/** `batch 1000 o3MaxLag 10s`, also of CREATE TABLE AS. The lag may be quoted. */
export function parseBatch(cursor: Cursor): { batch: Expression | null; o3MaxLag: Interval | null } {
  const batch = take(cursor, 'batch') ? parseBatchSize(cursor) : null
  const o3MaxLag = take(cursor, 'o3maxlag') ? parseLag(cursor) : null
  return { batch, o3MaxLag }
}

function parseBatchSize(cursor: Cursor): Expression {
  if (take(cursor, '-')) throw new SqlError('batch size must be positive integer', cursor.start)
  if (/^0+$/.test(tokenText(cursor))) throw new SqlError('batch size must be positive integer', cursor.start)
  if (cursor.kind === 'number' || cursor.kind === 'parameter') return parseExpression(cursor)
  if (cursor.kind === 'end') throw new SqlError('long integer expected', cursor.start)
  throw shownTokenError(cursor, 'bad long integer')
}

function parseLag(cursor: Cursor): Interval {
  if (cursor.kind === 'end') throw new SqlError('lag value expected', cursor.start)
  const text = tokenText(cursor)
  if (/^'?\d+[a-z]+'?$/i.test(text)) return parseInterval(cursor)
  const mistake = /^\d*$/.test(text) ? 'expected interval qualifier in' : 'invalid interval qualifier'
  throw new SqlError(`${mistake} ${text}`, cursor.start + text.length)
}

/** `on conflict (a) do nothing`. Whether the table supports it is checked in statements/conflict.ts. */
function parseConflict(cursor: Cursor): Conflict | null {
  const position = cursor.start
  if (!take(cursor, 'on')) return null
  expect(cursor, 'conflict')
  const columns = cursor.word === '(' ? parseFreeNames(cursor) : []
  const constraint = columns.length === 0 ? parseConflictConstraint(cursor) : null
  if (cursor.word === 'where')
    throw new SqlError('ON CONFLICT with the condition of a partial index is not supported', cursor.start)
  expect(cursor, 'do')
  if (take(cursor, 'nothing')) return { position, columns, constraint, assignments: null, where: null }
  expect(cursor, 'update')
  expect(cursor, 'set')
  const assignments = parseSet(cursor)
  return { position, columns, constraint, assignments, where: parseWhere(cursor) }
}

/** The assignments of SET, each to another column. */
function parseSet(cursor: Cursor): Assignment[] {
  const assignments = parseList(cursor, parseAssignments).flat()
  requireDistinct(
    assignments.map(({ column }) => column),
    ' in SET clause',
  )
  return assignments
}

/** `on constraint t_pkey` */
function parseConflictConstraint(cursor: Cursor): Name | null {
  if (!take(cursor, 'on')) return null
  expect(cursor, 'constraint')
  return parseName(cursor, 'constraint name expected')
}

/** `width` is the number of named columns. */
function parseInsertSource(cursor: Cursor, width: number): Insert['source'] {
  const { word, start } = cursor
  const named = width > 0
  if (!named && word === 'default' && peekWord(cursor) === 'values') {
    advance(cursor)
    advance(cursor)
    return { kind: 'rows', position: start, rows: [{ position: start, values: [] }], allDefault: true }
  }
  if (word === 'values') return parseInsertRows(cursor, width)
  if (take(cursor, 'table') || ['select', '(', 'declare'].includes(word)) return parseQuery(cursor)
  if (cursor.kind === 'end')
    throw new SqlError(named ? "'select' or 'values' expected" : "'(' or 'select' expected", start)
  throw new SqlError(
    `found [tok='${shownToken(cursor)}', len=${tokenText(cursor).length}] 'select' or 'values' expected`,
    start,
  )
}

function parseInsertRows(cursor: Cursor, width: number): InsertRows {
  const position = cursor.start
  advance(cursor)
  let tuple = 0
  const rows = parseList(cursor, (inner) => parseInsertRow(inner, width, tuple++), sqlListMax)
  const isWithin = cursor.word === ')' && cursor.depth > 0
  if (!isWithin && cursor.kind !== 'end' && ![';', 'returning', 'on'].includes(cursor.word))
    throw new SqlError("',' expected", cursor.start)
  return { kind: 'rows', position, rows }
}

function parseInsertRow(cursor: Cursor, width: number, tuple: number): ValueRow {
  const position = cursor.start
  expect(cursor, '(')
  const values = parseList(cursor, parseValue)
  if (cursor.word !== ')') throw new SqlError(atEnd(cursor) ? "',' expected" : "')' expected", cursor.start)
  if (width > 0 && values.length !== width) throw rowWidthError(values.length, width, tuple, cursor.start)
  advance(cursor)
  return { position, values }
}

/** The error about a row with too few or too many values, at its closing parenthesis. `tuple` counts from 0. */
export function rowWidthError(actual: number, expected: number, tuple: number, position: number): SqlError {
  const counts = `[expected=${expected}, actual=${actual}, tuple=${tuple + 1}]`
  return new SqlError(`row value count does not match column count ${counts}`, position)
}

function parseValue(cursor: Cursor): Expression {
  const { start } = cursor
  if (cursor.word === 'default' && [',', ')'].includes(peekWord(cursor))) {
    advance(cursor)
    return { kind: 'null', position: start, byDefault: true }
  }
  if (startsQuery(cursor)) throw new SqlError('query is not allowed here', cursor.start)
  return parseExpression(cursor)
}

export function parseUpdate(
  cursor: Cursor,
  position: number,
  declarations: readonly Declaration[],
  commonTables: readonly CommonTable[],
): Update {
  advance(cursor)
  takeOnly(cursor)
  const table = parseTableName(cursor, cursor.kind === 'end' ? 'table name or alias expected' : undefined)
  const isNamed = take(cursor, 'as')
  if (isNamed && atEnd(cursor)) throw new SqlError('table alias expected expected', cursor.start)
  const alias = isNamed ? parseFreeName(cursor, 'alias expected') : parseTableAlias(cursor)
  expect(
    cursor,
    'set',
    cursor.kind !== 'end'
      ? 'SET expected'
      : alias === null
        ? 'AS, SET or table alias expected expected'
        : 'SET expected expected',
  )
  const assignments = parseSet(cursor)
  const { from, joins } = parseFrom(cursor, 'from')
  const where = parseWhere(cursor)
  const returning = parseReturning(cursor, table, alias, { declarations, commonTables })
  const isEnd = cursor.kind === 'end' || cursor.word === ';' || (cursor.word === ')' && cursor.depth > 0)
  if (where === null && returning === null && !isEnd && joins.length === 0)
    throw new SqlError('FROM, WHERE or EOF expected', cursor.start)
  return {
    kind: 'update',
    position,
    declarations,
    commonTables,
    table,
    alias,
    assignments,
    from,
    joins,
    where,
    returning,
  }
}

/** `a = 1`, `(a, b) = (1, 2)`, `(a, b) = (select c, d ..)`, split into one assignment per column. */
function parseAssignments(cursor: Cursor): Assignment[] {
  if (cursor.word !== '(') return [parseAssignment(cursor)]
  const columns = parseFreeNames(cursor)
  expect(cursor, '=')
  const { start } = cursor
  const row = parseExpression(cursor)
  const values = columns.length === 1 && row.kind !== 'list' ? [row] : valuesOfRow(row)
  if (values === null) throw new SqlError('a list of columns must be set to a list of values or to a SELECT', start)
  if (values.length !== columns.length) throw new SqlError('number of columns does not match number of values', start)
  return columns.map((column, index) => ({ column, value: values[index] as Expression }))
}

function parseAssignment(cursor: Cursor): Assignment {
  if (cursor.kind === 'symbol' && !atEnd(cursor)) {
    advance(cursor)
    throw new SqlError("'=' expected", cursor.start)
  }
  const column = parseNameOrString(cursor, 'column name expected')
  expect(cursor, '=')
  const { start } = cursor
  if (cursor.word === 'default' && endsValue.has(peekWord(cursor))) {
    advance(cursor)
    return { column, value: { kind: 'null', position: start, byDefault: true } }
  }
  return { column, value: parseExpression(cursor) }
}

/** Tokens that may follow the keyword DEFAULT. Before others, `default` is a column name. */
const endsValue: ReadonlySet<string> = new Set([',', 'from', 'where', 'when', 'returning', ';', ''])

export function parseDelete(
  cursor: Cursor,
  position: number,
  declarations: readonly Declaration[],
  commonTables: readonly CommonTable[],
): Delete {
  advance(cursor)
  expect(cursor, 'from')
  takeOnly(cursor)
  const table = parseTableName(cursor)
  const alias = parseTableAlias(cursor)
  const { from, joins } = parseFrom(cursor, 'using')
  const where = parseWhere(cursor)
  const returning = parseReturning(cursor, table, alias, { declarations, commonTables })
  return { kind: 'delete', position, declarations, commonTables, table, alias, from, joins, where, returning }
}

/** Skips ONLY of `only t`, since there is no table inheritance. A table may be named `only`. */
function takeOnly(cursor: Cursor): void {
  const { start, previousEnd } = cursor
  if (!take(cursor, 'only')) return
  if (cursor.kind === 'quoted' || (cursor.kind === 'word' && !wordsAfterTable.has(cursor.word))) return
  moveTo(cursor, start)
  cursor.previousEnd = previousEnd
}

const wordsAfterTable: ReadonlySet<string> = new Set(['as', 'set', 'where', 'using', 'returning'])

// MERGE -------------------------------------------------------------------------------------------------------------

/** The cursor is on `merge`. Without INTO, it is a table name. */
export function parseMerge(
  cursor: Cursor,
  position: number,
  declarations: readonly Declaration[],
  commonTables: readonly CommonTable[],
): Merge | Query {
  if (peekWord(cursor) !== 'into') return parseQuery(cursor, 'table name expected')
  advance(cursor)
  expect(cursor, 'into')
  takeOnly(cursor)
  const table = parseTableName(cursor)
  const alias = cursor.word === 'using' ? null : parseTableAlias(cursor)
  expect(cursor, 'using')
  const source = parseTableSource(cursor)
  expect(cursor, 'on')
  const on = parseExpression(cursor)
  const clauses: MergeClause[] = []
  if (cursor.word !== 'when') throw new SqlError("'when' expected", cursor.start)
  while (cursor.word === 'when') clauses.push(parseMergeClause(cursor))
  const returning = parseReturning(cursor, table, alias, { declarations, commonTables })
  return { kind: 'merge', position, declarations, commonTables, table, alias, source, on, clauses, returning }
}

function parseMergeClause(cursor: Cursor): MergeClause {
  const position = cursor.start
  advance(cursor)
  const matched = !take(cursor, 'not')
  expect(cursor, 'matched')
  if (!matched && take(cursor, 'by')) {
    if (cursor.word === 'source') throw new SqlError('WHEN NOT MATCHED BY SOURCE is not supported', position)
    expect(cursor, 'target')
  }
  const condition = take(cursor, 'and') ? parseExpression(cursor) : null
  expect(cursor, 'then')
  return { position, matched, condition, action: parseMergeAction(cursor, matched) }
}

function parseMergeAction(cursor: Cursor, matched: boolean): MergeAction {
  if (take(cursor, 'do')) {
    expect(cursor, 'nothing')
    return { kind: 'nothing' }
  }
  if (matched && take(cursor, 'delete')) return { kind: 'delete' }
  if (matched && take(cursor, 'update')) {
    expect(cursor, 'set')
    return { kind: 'update', assignments: parseSet(cursor) }
  }
  if (matched) throw new SqlError("'update', 'delete' or 'do nothing' expected", cursor.start)
  expect(cursor, 'insert', "'insert' or 'do nothing' expected")
  const columns = cursor.word === '(' ? parseFreeNames(cursor) : []
  requireDistinct(columns)
  if (take(cursor, 'default')) {
    expect(cursor, 'values')
    return { kind: 'insert', columns, row: null }
  }
  expect(cursor, 'values')
  return { kind: 'insert', columns, row: parseInsertRow(cursor, columns.length, 0) }
}
