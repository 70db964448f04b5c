// Parses queries: DECLARE, WITH, set operations, ORDER BY, LIMIT, and the bodies SELECT, VALUES, SHOW and a bare table.
//
// Set operations, INTERSECT included, are left-associative with equal precedence. ORDER BY and LIMIT after the last
// branch apply to the whole; before another set operation they apply to the part before it.

import { SqlError } from '../../base/errors.js'
import { sqlCommonTablesMax, sqlListMax, sqlSetOperationsMax } from '../../base/limits.js'
import type {
  CommonChange,
  CommonTable,
  Declaration,
  Limit,
  NestedQuery,
  Query,
  QueryBody,
  Select,
  SetOperation,
  Values,
} from '../ast/ast.js'
import { limitedByKeys } from '../rewrite/limit-by.js'
import { advance, at, type Cursor, descend, moveTo, peekWord, tokenText } from './cursor.js'
import {
  expect,
  parseList,
  parseName,
  parseNamesInParentheses,
  startsLocking,
  take,
  takeCommas,
  takeTwo,
  tooFew,
} from './expect.js'
import { closingError, isConstantToken, parseExpression, parseExpression0 } from './expression.js'
import { refuseReserved } from './reserved.js'
import { parseImplicitSelect, parseSelect } from './select.js'
import { isDescribe, parseDescribe, parseShow } from './show.js'
import { parseOrderBy } from './window.js'

const queryExpected = "'select', 'with', 'declare' or table name expected expected"

/** Whether a query, rather than an expression, begins after an opening parenthesis. */
export function startsQuery(cursor: Cursor): boolean {
  const { word } = cursor
  if (word === 'select' || word === 'with' || word === 'declare') return true
  return word === 'values' && peekWord(cursor) === '('
}

/** `missing` is the error message if no query begins here. */
export function parseQuery(cursor: Cursor, missing = queryExpected): Query {
  descend(cursor)
  const position = cursor.start
  const declarations: Declaration[] = []
  const commonTables: CommonTable[] = []
  parsePrologue(cursor, declarations, commonTables)
  const begun = declarations.length > 0 || commonTables.length > 0
  const message = begun ? missingQueryMessage(commonTables.length) : missing
  const query = parseQueryBody(cursor, position, declarations, commonTables, message)
  cursor.depth--
  return query
}

/** The error message if no query follows DECLARE or WITH. `named`: number of names in WITH. */
export function missingQueryMessage(named: number): string {
  return named > 0
    ? "'select', 'update' or name expected expected"
    : "'select', 'with', or table name expected expected"
}

/** Parses a data change in WITH; the cursor is on its first word. `position`: that of its own WITH, if any. */
export type ChangeParser = (
  cursor: Cursor,
  position: number,
  declarations: readonly Declaration[],
  commonTables: readonly CommonTable[],
) => Query | CommonChange['statement']

/** DECLARE and WITH; also before INSERT and UPDATE. */
function parsePrologue(cursor: Cursor, declarations: Declaration[], commonTables: CommonTable[]): void {
  parseNames(cursor, declarations, (table) => commonTables.push(table), null)
}

/** The same at the start of a statement, where WITH may change data. */
export function parsePrologueOfStatement(
  cursor: Cursor,
  declarations: Declaration[],
  tables: (CommonTable | CommonChange)[],
  parseChange: ChangeParser,
): void {
  parseNames(cursor, declarations, (table) => tables.push(table), {
    parse: parseChange,
    add: (change) => tables.push(change),
  })
}

type AddTable = (table: CommonTable) => unknown
type Changes = { readonly parse: ChangeParser; readonly add: (change: CommonChange) => unknown } | null

function parseNames(cursor: Cursor, declarations: Declaration[], add: AddTable, changes: Changes): void {
  const known = new Set<string>()
  for (;;) {
    if (cursor.word === 'declare') parseDeclarations(cursor, declarations)
    else if (cursor.word === 'with') parseCommonTables(cursor, known, add, changes)
    else return
  }
}

function parseDeclarations(cursor: Cursor, declarations: Declaration[]): void {
  advance(cursor)
  do {
    declarations.push(parseDeclaration(cursor))
    if (declarations.length > sqlListMax) throw new SqlError(`list is too long [max=${sqlListMax}]`, cursor.start)
  } while (takeCommas(cursor) && (cursor.kind === 'variable' || cursor.word === 'overridable'))
}

function parseDeclaration(cursor: Cursor): Declaration {
  const overridable = take(cursor, 'overridable')
  const position = cursor.start
  const name = tokenText(cursor).slice(1)
  if (cursor.kind !== 'variable' || name === '') throw new SqlError('variable name expected', position)
  advance(cursor)
  const assignment = cursor.start
  if (!take(cursor, ':=')) throw noAssignment(cursor, position)
  if (lacksValue(cursor)) throw tooFew(':=', 1, 2, assignment)
  const value = parseExpression(cursor)
  if (isConstantToken(cursor)) throw new SqlError('dangling expression', cursor.start)
  if (cursor.kind === 'variable' && peekWord(cursor) === ':=') {
    // A comma is missing; the error is reported at the second assignment.
    advance(cursor)
    throw tooFew(':=', 1, 2, cursor.start)
  }
  return { position, name, value, assignment, overridable }
}

function lacksValue({ kind, word }: Cursor): boolean {
  return kind === 'end' || word === 'select' || word === ','
}

function noAssignment(cursor: Cursor, variable: number): SqlError {
  const shown = `unexpected token [${tokenText(cursor)}]`
  const position = cursor.kind === 'end' ? variable : cursor.start
  return new SqlError(`${shown} - expected variable assignment operator \`:=\``, position)
}

function parseCommonTables(cursor: Cursor, known: Set<string>, add: AddTable, changes: Changes): void {
  advance(cursor)
  const recursive = take(cursor, 'recursive')
  do {
    const table = parseCommonHead(cursor)
    const named = parseNamed(cursor, changes)
    if (known.has(table.key)) throw new SqlError('duplicate name', table.position)
    if (known.size === sqlCommonTablesMax)
      throw new SqlError(`too many queries in WITH [max=${sqlCommonTablesMax}]`, table.position)
    known.add(table.key)
    if (named.kind === 'query') add({ ...table, query: named, recursive })
    else changes?.add({ ...table, statement: named })
  } while (take(cursor, ','))
  requireQuery(cursor)
}

/** A bare table name is no query after WITH unless more follows. */
function requireQuery(cursor: Cursor): void {
  if (cursor.kind === 'word' && peekWord(cursor) === 'as')
    throw new SqlError("'select' | 'update' | 'insert' expected", cursor.start)
}

/** The name, its columns, and AS. */
function parseCommonHead(cursor: Cursor): Omit<CommonChange, 'statement'> {
  refuseReserved(cursor)
  const { position, name } = parseName(cursor, 'literal expected')
  if (cursor.word === '(' && peekWord(cursor) === 'select') throw new SqlError("'as' expected", cursor.start)
  const columns = cursor.word === '(' ? parseNamesInParentheses(cursor) : []
  expect(cursor, 'as', "'as' expected")
  if (take(cursor, 'not')) expect(cursor, 'materialized')
  else take(cursor, 'materialized')
  return { position, name, key: name.toLowerCase(), columns }
}

export const changeWords: ReadonlySet<string> = new Set(['insert', 'update', 'delete', 'merge'])

/** Whether a data change begins: `(delete from t ..)`. `(delete)` is a table. */
function startsChange(cursor: Cursor): boolean {
  const word = peekWord(cursor)
  if (cursor.word !== '(' || !changeWords.has(word)) return false
  const { start, previousEnd } = cursor
  advance(cursor)
  const next = peekWord(cursor)
  moveTo(cursor, start)
  cursor.previousEnd = previousEnd
  return word === 'merge' ? next === 'into' : next !== ')'
}

/** `(select ..)`, `(delete from t ..)`, `(with .. delete from t ..)`. */
function parseNamed(cursor: Cursor, changes: Changes): Query | CommonChange['statement'] {
  const isChange = startsChange(cursor)
  if (!isChange && !(changes !== null && cursor.word === '(' && peekWord(cursor) === 'with'))
    return parseQueryInParentheses(cursor)
  const open = cursor.start
  expect(cursor, '(')
  if (changes === null)
    throw new SqlError('WITH clause containing a data-modifying statement must be at the top level', cursor.start)
  descend(cursor)
  const { start: position } = cursor
  const declarations: Declaration[] = []
  const commonTables: CommonTable[] = []
  parsePrologue(cursor, declarations, commonTables)
  const statement = changeWords.has(cursor.word)
    ? changes.parse(cursor, position, declarations, commonTables)
    : parseQueryBody(cursor, position, declarations, commonTables, missingQueryMessage(commonTables.length))
  cursor.depth--
  if (!take(cursor, ')')) throw queryClosingError(cursor, open)
  return statement
}

export function parseQueryInParentheses(cursor: Cursor): Query {
  const open = cursor.start
  expect(cursor, '(')
  const query = parseQuery(cursor)
  if (!take(cursor, ')')) throw queryClosingError(cursor, open)
  return query
}

function queryClosingError(cursor: Cursor, open: number): SqlError {
  return cursor.kind === 'end' ? new SqlError("')' expected", cursor.start) : closingErrorOfQuery(cursor, open)
}

function closingErrorOfQuery(cursor: Cursor, open: number): SqlError {
  return cursor.word === ';' ? closingError(cursor, open) : new SqlError("')' expected", cursor.start)
}

/** Everything after DECLARE and WITH. */
export function parseQueryBody(
  cursor: Cursor,
  position: number,
  declarations: readonly Declaration[],
  commonTables: readonly CommonTable[],
  missing: string,
): Query {
  return continueQuery(cursor, parseBranch(cursor, missing), position, declarations, commonTables)
}

const setWords: ReadonlySet<string> = new Set(['union', 'except', 'intersect'])

/** Set operations, ORDER BY and LIMIT after a body that is already parsed. */
export function continueQuery(
  cursor: Cursor,
  first: QueryBody,
  position: number,
  declarations: readonly Declaration[] = [],
  commonTables: readonly CommonTable[] = [],
): Query {
  let body = first
  for (let links = 0; ; links++) {
    if (links > sqlSetOperationsMax)
      throw new SqlError(`too many set operations [max=${sqlSetOperationsMax}]`, cursor.start)
    if (setWords.has(cursor.word)) {
      body = parseSetOperation(cursor, body)
      continue
    }
    const orderBy = cursor.word === 'order' ? parseOrderBy(cursor) : []
    // The text of the query excludes FOR UPDATE at its end.
    let unlimitedEnd = cursor.previousEnd
    skipLocking(cursor)
    let limit = parseLimit(cursor)
    while (limit !== null && take(cursor, 'by')) {
      body = limitedByKeys(body, limit, parseList(cursor, parseExpression0), orderBy)
      unlimitedEnd = cursor.previousEnd
      limit = parseLimit(cursor)
    }
    const end = limit === null ? unlimitedEnd : cursor.previousEnd
    skipLocking(cursor)
    if (!setWords.has(cursor.word))
      return { kind: 'query', position, end, declarations, commonTables, body, orderBy, limit }
    const query: Query = { kind: 'query', position, end, declarations: [], commonTables: [], body, orderBy, limit }
    body = { kind: 'nested', position, query }
  }
}

/** Skips `for update of t nowait`, before or after LIMIT. Rows are not locked. */
function skipLocking(cursor: Cursor): void {
  while (startsLocking(cursor)) {
    advance(cursor)
    // `for read only` of standard cursors.
    if (takeTwo(cursor, 'read', 'only')) continue
    if (take(cursor, 'no')) expect(cursor, 'key')
    else take(cursor, 'key')
    if (!take(cursor, 'share')) expect(cursor, 'update')
    if (take(cursor, 'of')) {
      do parseName(cursor, 'table name expected')
      while (take(cursor, ','))
    }
    if (take(cursor, 'skip')) expect(cursor, 'locked')
    else take(cursor, 'nowait')
  }
}

/** Whether a query in parentheses continues, as in `(select 1) union (select 2)`. */
export function continuesQuery(cursor: Cursor): boolean {
  return setWords.has(cursor.word) || cursor.word === 'order' || cursor.word === 'limit'
}

function parseSetOperation(cursor: Cursor, left: QueryBody): SetOperation {
  const position = cursor.start
  const operation = cursor.word as SetOperation['operation']
  advance(cursor)
  const all = take(cursor, 'all')
  if (!all) take(cursor, 'distinct')
  if (cursor.kind === 'end') throw new SqlError(all ? queryExpected : 'all or select expected', cursor.start)
  return { kind: 'set operation', position, operation, all, left, right: parseBranch(cursor, queryExpected) }
}

function parseBranch(cursor: Cursor, missing: string): QueryBody {
  switch (cursor.word) {
    case 'select':
      return parseSelect(cursor)
    case 'values':
      return parseValues(cursor)
    case 'show':
      return parseShow(cursor)
    case 'describe':
    case 'desc':
      return isDescribe(cursor) ? parseDescribe(cursor) : parseImplicitSelect(cursor, missing)
    case '(':
      return parseBranchInParentheses(cursor)
    case 'with':
    case 'declare':
      return { kind: 'nested', position: cursor.start, query: parseQuery(cursor) }
    default:
      return parseImplicitSelect(cursor, missing)
  }
}

function parseValues(cursor: Cursor): Values {
  const position = cursor.start
  advance(cursor)
  return { kind: 'values', position, rows: parseList(cursor, parseValueRow, sqlListMax) }
}

function parseValueRow(cursor: Cursor): { position: number; values: ReturnType<typeof parseExpression>[] } {
  const position = cursor.start
  expect(cursor, '(')
  const values = parseList(cursor, parseExpression0)
  expect(cursor, ')')
  return { position, values }
}

/** `(select ..)` alone, or as the source of an implicit select: `(select ..) where ..`. */
function parseBranchInParentheses(cursor: Cursor): NestedQuery | Select {
  const position = cursor.start
  const query = parseQueryInParentheses(cursor)
  if (endsBranch(cursor)) return { kind: 'nested', position, query }
  return parseImplicitSelect(cursor, queryExpected, { position, query })
}

function endsBranch(cursor: Cursor): boolean {
  const { word } = cursor
  if (cursor.kind === 'end' || setWords.has(word)) return true
  return word === ')' || word === ';' || word === 'order' || word === 'limit' || word === 'offset' || word === 'fetch'
}

/** LIMIT without a number means no limit in this dialect. */
function parseLimit(cursor: Cursor): Limit | null {
  const position = cursor.start
  if (cursor.word === 'offset') {
    const offset = parseOffset(cursor)
    if (at(cursor, 'fetch')) return { position, low: parseFetch(cursor), high: null, offset }
    const limited = take(cursor, 'limit') && !take(cursor, 'all')
    return { position, low: limited ? parseExpression(cursor) : null, high: null, offset }
  }
  if (cursor.word === 'fetch') return { position, low: parseFetch(cursor), high: null, offset: null }
  if (!take(cursor, 'limit')) return null
  if (cursor.kind === 'end' || cursor.word === ')' || cursor.word === ';') return null
  const low = take(cursor, 'all') || at(cursor, ',') ? null : parseExpression(cursor)
  const isRange = take(cursor, ',')
  // If a number is missing before or after the comma, the comma is ignored.
  const high = isRange && !(low !== null && endsBranch(cursor)) ? parseExpression(cursor) : null
  const offset = cursor.word === 'offset' ? parseOffset(cursor) : null
  return low === null && high === null && offset === null ? null : { position, low, high, offset }
}

/** `fetch first 10 rows only`: the standard's LIMIT. */
function parseFetch(cursor: Cursor): ReturnType<typeof parseExpression> {
  const position = cursor.start
  advance(cursor)
  if (!take(cursor, 'first')) expect(cursor, 'next', "'first' or 'next' expected")
  const single = cursor.word === 'row' || cursor.word === 'rows'
  const count: ReturnType<typeof parseExpression> = single
    ? { kind: 'integer', position, text: '1', digits: '1', long: false }
    : parseExpression(cursor)
  if (!take(cursor, 'rows')) expect(cursor, 'row', "'rows' expected")
  if (cursor.word === 'with') throw new SqlError('WITH TIES is not supported', cursor.start)
  expect(cursor, 'only', "'only' expected")
  return count
}

function parseOffset(cursor: Cursor): ReturnType<typeof parseExpression> {
  advance(cursor)
  const offset = parseExpression(cursor)
  if (!take(cursor, 'rows')) take(cursor, 'row')
  return offset
}
