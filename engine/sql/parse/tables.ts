// Parses DROP of tables, views, sequences, schemas and indexes, and RENAME, TRUNCATE, VACUUM, REINDEX, BACKUP,
// CHECKPOINT and CANCEL QUERY.

import { SqlError } from '../../base/errors.js'
import { sqlListMax } from '../../base/limits.js'
import type {
  Backup,
  CancelQuery,
  Checkpoint,
  NoOperation,
  Reindex,
  RenameTable,
  Statement,
  TruncateTable,
  Vacuum,
} from '../ast/ast.js'
import { advance, at, type Cursor, peekWord } from './cursor.js'
import { parseDropType } from './enumeration.js'
import {
  atEnd,
  expect,
  lastTokenStart,
  parseAnyTableName,
  parseList,
  parseName,
  parseNameOrString,
  parseString,
  parseTableName,
  take,
  unexpectedToken,
} from './expect.js'
import { parseExpression } from './expression.js'

export function takeIfExists(cursor: Cursor): boolean {
  if (cursor.word !== 'if' || peekWord(cursor) !== 'exists') return false
  advance(cursor)
  advance(cursor)
  return true
}

export function takeIfNotExists(cursor: Cursor): boolean {
  if (cursor.word !== 'if' || peekWord(cursor) !== 'not') return false
  advance(cursor)
  advance(cursor)
  expect(cursor, 'exists', cursor.kind === 'end' ? "'exists' expected" : "'if not exists' expected")
  return true
}

const dropExpected = "'table' or 'view' or 'materialized view' or 'all' expected"

export function parseDrop(cursor: Cursor): Statement {
  const position = cursor.start
  advance(cursor)
  const { start, word } = cursor
  if (word === 'index') return parseDropIndex(cursor, position)
  if (take(cursor, 'sequence')) return parseDropSequence(cursor, position)
  if (take(cursor, 'type')) return parseDropType(cursor, position)
  if (take(cursor, 'schema')) return parseDropSchema(cursor, position)
  const isLive = word === 'live' && peekWord(cursor) === 'view'
  if (word !== 'table' && word !== 'view' && word !== 'materialized' && word !== 'all' && !isLive)
    throw new SqlError(dropExpected, start)
  advance(cursor)
  if (isLive) advance(cursor)
  if (word === 'all') {
    if (!take(cursor, 'tables'))
      throw atEnd(cursor) ? new SqlError("'tables' expected", cursor.start) : unexpectedToken(cursor)
    return { kind: 'drop all tables', position }
  }
  if (word === 'materialized') expect(cursor, 'view', 'expected VIEW', atEnd(cursor) ? start : cursor.start)
  requireDropped(cursor, word)
  const ifExists = takeIfExists(cursor)
  if (word !== 'table') {
    const view = parseTableName(cursor, 'view name expected')
    const cascade = takeDropBehaviour(cursor)
    return {
      ...{ kind: 'drop view', position, materialized: word === 'materialized', ifExists, view, cascade },
      ...(isLive ? { live: true } : {}),
    }
  }
  const first = parseTableName(cursor)
  const listAt = cursor.word === ',' ? cursor.start : null
  const more = take(cursor, ',') ? parseList(cursor, (inner) => parseTableName(inner)) : []
  const cascade = takeDropBehaviour(cursor)
  return { kind: 'drop table', position, ifExists, tables: [first, ...more], cascade, listAt }
}

/** The cursor is after `drop schema`. */
function parseDropSchema(cursor: Cursor, position: number): Statement {
  const ifExists = takeIfExists(cursor)
  const schemas = parseList(cursor, (inner) => parseName(inner, 'schema name expected'))
  const cascade = cursor.word === 'cascade'
  takeDropBehaviour(cursor)
  return { kind: 'drop schema', position, ifExists, schemas, cascade }
}

/** The cursor is after `drop sequence`. */
function parseDropSequence(cursor: Cursor, position: number): Statement {
  const ifExists = takeIfExists(cursor)
  const sequences = parseList(cursor, (inner) => parseTableName(inner, 'sequence name expected'))
  takeDropBehaviour(cursor)
  return { kind: 'drop sequence', position, ifExists, sequences }
}

/** DROP INDEX. Any name is accepted, because CREATE INDEX creates no index. The cursor is on `index`. */
function parseDropIndex(cursor: Cursor, position: number): Statement {
  advance(cursor)
  take(cursor, 'concurrently')
  takeIfExists(cursor)
  parseList(cursor, (inner) => parseTableName(inner, 'index name expected'))
  takeDropBehaviour(cursor)
  return { kind: 'no operation', position, command: 'drop index' }
}

/** Whether CASCADE follows; RESTRICT is the default. Plain views refer to tables by name and stay in either case. */
export function takeDropBehaviour(cursor: Cursor): boolean {
  const cascade = take(cursor, 'cascade')
  if (!cascade) take(cursor, 'restrict')
  return cascade
}

const droppedNames: Readonly<Record<string, string>> = {
  table: 'table-name',
  view: 'view-name',
  materialized: 'mat-view-name',
  live: 'live-view-name',
}

/** Throws unless a name, or IF EXISTS and a name, follows. */
function requireDropped(cursor: Cursor, word: string): void {
  const name = droppedNames[word] ?? ''
  if (cursor.kind === 'end')
    throw new SqlError(`expected [IF EXISTS] ${name}`, word === 'view' ? cursor.start : lastTokenStart(cursor))
  requireExists(cursor, name, word === 'view')
}

/** Throws unless EXISTS follows IF. */
function requireExists(cursor: Cursor, name: string, after = false): void {
  if (cursor.word !== 'if' || peekWord(cursor) === 'exists') return
  const { start } = cursor
  advance(cursor)
  throw new SqlError(`expected EXISTS ${name}`, atEnd(cursor) && !after ? start : cursor.start)
}

export function parseRename(cursor: Cursor): RenameTable {
  const position = cursor.start
  advance(cursor)
  expect(cursor, 'table')
  const table = parseTableName(cursor, 'from table name expected')
  expect(cursor, 'to', atEnd(cursor) ? 'to expected' : "'to' expected")
  const newName = parseTableName(cursor, 'to table name expected')
  if (!atEnd(cursor)) throw new SqlError('debris?', cursor.start)
  return { kind: 'rename table', position, table, newName }
}

export function parseTruncate(cursor: Cursor): TruncateTable {
  const position = cursor.start
  advance(cursor)
  const { start } = cursor
  const isNamed = take(cursor, 'table')
  if (!isNamed && (atEnd(cursor) || cursor.kind === 'symbol')) expect(cursor, 'table', 'TABLE expected')
  requireExists(cursor, 'table-name')
  const ifExists = takeIfExists(cursor)
  take(cursor, 'only')
  const tables = parseList(cursor, parseAnyTableName, sqlListMax)
  // PostgreSQL's tools omit TABLE. They are recognised by quoted names or by the words after the names.
  const isOfTools = tables.some(({ quoted }) => quoted)
  if (!takeTruncateMode(cursor) && !isNamed && !isOfTools) throw new SqlError('TABLE expected', start)
  const keepSymbolMaps = take(cursor, 'keep')
  if (keepSymbolMaps) {
    for (const word of ['symbol', 'maps'])
      expect(cursor, word, `${word.toUpperCase()} expected`, atEnd(cursor) ? lastTokenStart(cursor) : cursor.start)
  } else if (cursor.kind === 'word') {
    throw new SqlError("',' or 'keep' expected", cursor.end)
  }
  return { kind: 'truncate', position, ifExists, tables, keepSymbolMaps }
}

function takeTruncateMode(cursor: Cursor): boolean {
  const identity = take(cursor, 'restart') || take(cursor, 'continue')
  if (identity) expect(cursor, 'identity')
  return take(cursor, 'cascade') || take(cursor, 'restrict') || identity
}

/** The options of PostgreSQL's VACUUM are skipped. */
export function parseVacuum(cursor: Cursor): Vacuum {
  const position = cursor.start
  advance(cursor)
  if (take(cursor, '(')) skipOptions(cursor)
  for (const word of ['full', 'freeze', 'verbose', 'analyze']) take(cursor, word)
  if ((take(cursor, 'table') || take(cursor, 'partitions')) && atEnd(cursor))
    throw new SqlError('table name expected', cursor.start)
  const table = atEnd(cursor) ? null : parseTableName(cursor)
  if (!atEnd(cursor)) throw new SqlError("end of line or ';' expected", cursor.start)
  return { kind: 'vacuum', position, table }
}

/** `full, parallel 2, verbose false)` */
function skipOptions(cursor: Cursor): void {
  while (!atEnd(cursor) && !at(cursor, ')')) advance(cursor)
  expect(cursor, ')')
}

/** Objects of PostgreSQL's REINDEX that are accepted without effect: indexes are stored with the columns. */
const reindexed: ReadonlySet<string> = new Set(['database', 'system', 'schema', 'index'])

/**
 * `reindex table t column a, b partition '2024' lock exclusive`, and PostgreSQL's forms, which have no effect: `reindex
 * (verbose) database concurrently qdb`. PostgreSQL's form for a table is recognised by a schema or quotes.
 */
export function parseReindex(cursor: Cursor): Reindex | NoOperation {
  const position = cursor.start
  advance(cursor)
  if (take(cursor, '(')) skipOptions(cursor)
  if (reindexed.has(cursor.word)) {
    const { word } = cursor
    advance(cursor)
    take(cursor, 'concurrently')
    parseTableName(cursor, `${word} name expected`)
    if (!atEnd(cursor)) throw new SqlError("end of line or ';' expected", cursor.start)
    return { kind: 'no operation', position, command: 'reindex' }
  }
  expect(cursor, 'table', 'TABLE expected', cursor.kind === 'end' ? position : undefined)
  const concurrently = take(cursor, 'concurrently')
  const { start } = cursor
  const table = parseAnyTableName(cursor)
  const isOfTools = concurrently || table.position > start || table.quoted
  if (isOfTools && atEnd(cursor)) return { kind: 'reindex', position, table, columns: [], partitions: [] }
  const columns = take(cursor, 'column')
    ? parseList(cursor, (inner) => parseNameOrString(inner, 'column name expected'))
    : []
  const partitions = take(cursor, 'partition')
    ? parseList(cursor, (inner) => parseString(inner, 'partition name expected'))
    : []
  if (!take(cursor, 'lock') || !take(cursor, 'exclusive')) throw new SqlError('LOCK EXCLUSIVE expected', cursor.start)
  return { kind: 'reindex', position, table, columns, partitions }
}

export function parseCheckpoint(cursor: Cursor): Checkpoint {
  const position = cursor.start
  const snapshot = cursor.word === 'snapshot'
  advance(cursor)
  if (take(cursor, snapshot ? 'prepare' : 'create')) return { kind: 'checkpoint', position, action: 'create' }
  if (take(cursor, snapshot ? 'complete' : 'release')) return { kind: 'checkpoint', position, action: 'release' }
  if (!snapshot && atEnd(cursor)) return { kind: 'checkpoint', position, action: 'flush' }
  throw new SqlError(snapshot ? "'prepare' or 'complete' expected" : "'create' or 'release' expected", cursor.start)
}

/** `backup database`, `backup table t, u`, `backup abort`. */
export function parseBackup(cursor: Cursor): Backup {
  const position = cursor.start
  advance(cursor)
  if (take(cursor, 'database')) return { kind: 'backup', position, action: 'database', tables: [] }
  if (take(cursor, 'abort')) return { kind: 'backup', position, action: 'abort', tables: [] }
  expect(cursor, 'table', "'database', 'table' or 'abort' expected")
  return { kind: 'backup', position, action: 'tables', tables: parseList(cursor, parseAnyTableName, sqlListMax) }
}

export function parseCancel(cursor: Cursor): CancelQuery {
  const position = cursor.start
  advance(cursor)
  expect(cursor, 'query', "'QUERY' expected'", cursor.kind === 'end' ? position : undefined)
  const { start, previousEnd, kind } = cursor
  const missing = 'non-negative integer literal expected as query id'
  if (kind === 'end') throw new SqlError(missing, previousEnd - 'query'.length)
  if (kind !== 'number' && kind !== 'parameter') throw new SqlError(missing, start)
  return { kind: 'cancel query', position, id: parseExpression(cursor) }
}
