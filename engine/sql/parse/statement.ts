// Parses one statement by dispatching on its first word. If the first word begins no other statement, the text is a
// query, which may begin with SELECT or just a table name, such as `trades limit 2`. EXPLAIN, PREPARE and EXECUTE are
// parsed here, all others in files of their own.

import { SqlError } from '../../base/errors.js'
import type { ChangesInWith, CommonChange, CommonTable, Declaration, Explain, Statement } from '../ast/ast.js'
import { parseAlter } from './alter-table.js'
import { parseCopy } from './copy.js'
import { parseCreate } from './create-table.js'
import { advance, type Cursor, descend, moveTo, peekWord } from './cursor.js'
import { atEnd, expect, parseList, parseName, take } from './expect.js'
import { parseExpression0 } from './expression.js'
import { isOtherDropped, parseDo, parseDropOther } from './other-objects.js'
import { changeWords, missingQueryMessage, parsePrologueOfStatement, parseQuery, parseQueryBody } from './query.js'
import { keywordError } from './reserved.js'
import { parseDelete, parseInsert, parseMerge, parseUpdate } from './rows.js'
import { parseSession, parseTransaction, sessionWords } from './session.js'
import {
  parseBackup,
  parseCancel,
  parseCheckpoint,
  parseDrop,
  parseReindex,
  parseRename,
  parseTruncate,
  parseVacuum,
} from './tables.js'
import { parseTypeName } from './type-name.js'
import { isAboutUser, parseGrant, parseUser } from './users.js'

type StatementParser = (cursor: Cursor) => Statement

const parsers: ReadonlyMap<string, StatementParser> = new Map<string, StatementParser>([
  ['with', parseWithPrologue],
  ['declare', parseDeclare],
  ['explain', parseExplain],
  ['insert', (cursor) => parseInsert(cursor, cursor.start, [], [])],
  ['update', (cursor) => parseUpdate(cursor, cursor.start, [], [])],
  ['delete', (cursor) => parseDelete(cursor, cursor.start, [], [])],
  ['create', (cursor) => (isAboutUser(cursor) ? parseUser(cursor) : parseCreate(cursor))],
  ['alter', (cursor) => (isAboutUser(cursor) ? parseUser(cursor) : parseAlter(cursor))],
  ['drop', parseDropOfAny],
  ['do', parseDo],
  ['merge', (cursor) => parseMerge(cursor, cursor.start, [], [])],
  ['rename', parseRename],
  ['truncate', parseTruncate],
  ['vacuum', parseVacuum],
  ['reindex', parseReindex],
  ['checkpoint', parseCheckpoint],
  ['snapshot', parseCheckpoint],
  ['cancel', parseCancel],
  ['copy', parseCopy],
  ['table', parseTable],
  ['prepare', parsePrepare],
  ['execute', parseExecute],
  ['backup', parseBackup],
  ['grant', parseGrant],
  ['revoke', parseGrant],
])

/** First words of statements, in lower case; each has a place in the documents. */
export const statementWords: ReadonlySet<string> = new Set([...parsers.keys(), ...sessionWords])

export function parseOneStatement(cursor: Cursor): Statement {
  cursor.terms = 0
  if (cursor.kind === 'word' && !isTableOnly(cursor)) {
    const parser = parsers.get(cursor.word)
    if (parser !== undefined) return parser(cursor)
    if (sessionWords.has(cursor.word)) return parseSession(cursor)
  }
  return parseQuery(cursor, 'table name expected')
}

const queryTails: ReadonlySet<string> = new Set([
  'where',
  'limit',
  'latest',
  'sample',
  'order',
  'join',
  'asof',
  'union',
])

/** Keywords of other dialects' statements that are table names if nothing follows. */
const foreignWords: ReadonlySet<string> = new Set(['delete', 'prepare', 'execute', 'grant', 'revoke'])

/** Whether the keyword is a table name, as in `copy limit 5`. */
function isTableOnly(cursor: Cursor): boolean {
  if (foreignWords.has(cursor.word) && cursor.text.slice(cursor.end).trim() === '') return true
  return cursor.word !== 'with' && cursor.word !== 'explain' && queryTails.has(peekWord(cursor))
}

function parseDropOfAny(cursor: Cursor): Statement {
  if (isAboutUser(cursor)) return parseUser(cursor)
  return isOtherDropped(cursor) ? parseDropOther(cursor) : parseDrop(cursor)
}

function parseWithPrologue(cursor: Cursor): Statement {
  const position = cursor.start
  const declarations: Declaration[] = []
  const tables: (CommonTable | CommonChange)[] = []
  parsePrologueOfStatement(cursor, declarations, tables, (inner, start, own, commonTables) =>
    parseChange(inner, start, [...declarations, ...own], commonTables),
  )
  const queries = tables.filter((table) => 'query' in table)
  if (queries.length === tables.length) return parseAfterWith(cursor, position, declarations, queries, queries.length)
  const statement = parseAfterWith(cursor, position, declarations, [], tables.length)
  return { kind: 'with changes', position, tables, statement }
}

/** `named`: number of names in WITH. */
function parseAfterWith(
  cursor: Cursor,
  position: number,
  declarations: readonly Declaration[],
  commonTables: readonly CommonTable[],
  named: number,
): ChangesInWith['statement'] {
  const isTable = cursor.word === 'merge' && peekWord(cursor) !== 'into'
  if (changeWords.has(cursor.word) && !isTable) return parseChange(cursor, position, declarations, commonTables)
  if (named > 0 && parsers.has(cursor.word) && cursor.word !== 'table' && !isTable)
    throw new SqlError("'select' | 'update' | 'insert' expected", cursor.start)
  return parseQueryBody(cursor, position, declarations, commonTables, missingQueryMessage(named))
}

function parseChange(
  cursor: Cursor,
  position: number,
  declarations: readonly Declaration[],
  commonTables: readonly CommonTable[],
): ChangesInWith['statement'] {
  if (cursor.word === 'insert') return parseInsert(cursor, position, declarations, commonTables)
  if (cursor.word === 'update') return parseUpdate(cursor, position, declarations, commonTables)
  if (cursor.word === 'delete') return parseDelete(cursor, position, declarations, commonTables)
  return parseMerge(cursor, position, declarations, commonTables)
}

/** `declare @x := 1 select ..` or `declare c cursor for ..`. */
function parseDeclare(cursor: Cursor): Statement {
  const { start } = cursor
  advance(cursor)
  const isVariable = cursor.kind === 'variable' || cursor.word === 'overridable'
  moveTo(cursor, start)
  return isVariable ? parseWithPrologue(cursor) : parseSession(cursor)
}

const explainExpected = "'create', 'format', 'insert', 'update', 'select' or 'with' expected"

/** Statements that have no plan: after EXPLAIN these words are table names. */
const unplanned: ReadonlySet<string> = new Set(
  'truncate vacuum backup checkpoint copy reindex begin commit rollback grant revoke prepare execute'.split(' '),
)

function parseExplain(cursor: Cursor): Explain {
  const position = cursor.start
  advance(cursor)
  if (cursor.kind === 'end')
    throw new SqlError("'create', 'insert', 'update', 'select', 'with' or '(' expected", position + 7)
  const { start: first } = cursor
  const options = { analyze: take(cursor, 'analyze'), format: null as string | null }
  if (options.analyze && atEnd(cursor)) throw SqlError.tableMissing('analyze', first)
  take(cursor, 'verbose')
  if (cursor.word === '(') parseExplainOptions(cursor, options)
  const { start, word } = cursor
  if (['explain', 'rename', 'set'].includes(word)) throw keywordError(word, start)
  if (['drop', 'alter', 'refresh'].includes(word)) throw new SqlError(explainExpected, start)
  descend(cursor)
  const statement = unplanned.has(word) ? parseQuery(cursor) : parseOneStatement(cursor)
  cursor.depth--
  switch (statement.kind) {
    case 'query':
    case 'insert':
    case 'merge':
    case 'update':
    case 'delete':
    case 'create table':
      return { kind: 'explain', position, ...options, statement }
    case 'with changes':
      throw new SqlError('EXPLAIN of data changes in WITH is not supported: explain each statement alone', start)
    default:
      throw new SqlError(explainExpected, start)
  }
}

const explainOptions: ReadonlySet<string> = new Set([
  'format',
  'analyze',
  'verbose',
  'costs',
  'buffers',
  'timing',
  'summary',
  'settings',
  'wal',
])

/** `(format json, analyze)`. If the parenthesis holds a query, the cursor stays. */
function parseExplainOptions(cursor: Cursor, options: { analyze: boolean; format: string | null }): void {
  const { start, previousEnd } = cursor
  advance(cursor)
  if (cursor.kind === 'end') throw new SqlError("'format' expected", cursor.start)
  if (!explainOptions.has(cursor.word)) {
    moveTo(cursor, start)
    cursor.previousEnd = previousEnd
    return
  }
  do {
    const option = parseName(cursor, 'option expected').name.toLowerCase()
    if (!explainOptions.has(option)) throw new SqlError(`unexpected explain option [${option}]`, cursor.start)
    if (option === 'format' && atEnd(cursor)) throw new SqlError("'text' or 'json' expected", cursor.start)
    if (option === 'format' && cursor.word !== 'text' && cursor.word !== 'json')
      throw new SqlError('unexpected explain format found', cursor.start)
    const value = cursor.kind === 'word' ? parseName(cursor, 'value expected').name.toLowerCase() : ''
    if (option === 'format') options.format = value
    if (option === 'analyze') options.analyze = value !== 'false' && value !== 'off'
  } while (take(cursor, ','))
  expect(cursor, ')')
}

/** `table t limit 3`: a query without SELECT follows the word. */
function parseTable(cursor: Cursor): Statement {
  advance(cursor)
  return parseQuery(cursor, 'table name expected')
}

function parsePrepare(cursor: Cursor): Statement {
  const position = cursor.start
  advance(cursor)
  if (cursor.word === 'transaction' && peekWord(cursor) === '') return parseTransaction(cursor, position, 'prepare')
  const { name } = parseName(cursor, 'statement name expected')
  const types = take(cursor, '(') ? parseList(cursor, (inner) => parseTypeName(inner)) : []
  if (types.length > 0) expect(cursor, ')')
  expect(cursor, 'as')
  const { start } = cursor
  descend(cursor)
  const statement = parseOneStatement(cursor)
  cursor.depth--
  return {
    kind: 'prepare',
    position,
    name,
    types,
    statement,
    statementText: cursor.text.slice(start, cursor.previousEnd),
  }
}

function parseExecute(cursor: Cursor): Statement {
  const position = cursor.start
  advance(cursor)
  const { name } = parseName(cursor, 'statement name expected')
  const args = take(cursor, '(') ? parseList(cursor, parseExpression0) : []
  if (args.length > 0) expect(cursor, ')')
  return { kind: 'execute', position, name, args }
}
