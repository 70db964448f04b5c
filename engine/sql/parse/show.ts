// Parses SHOW and DESCRIBE. Words that are not SHOW statements of the native dialect (that of HTTP clients) are names
// of settings, as clients of PostgreSQL request them.

import { SqlError } from '../../base/errors.js'
import type { DatabaseObject, Show, TableName } from '../ast/ast.js'
import { advance, at, type Cursor, tokenText } from './cursor.js'
import {
  atEnd,
  expect,
  lastTokenStart,
  parseAnyTableName,
  parseList,
  parseNameOrString,
  take,
  unexpectedToken,
} from './expect.js'
import { isLiveView } from './live-view.js'
import { parseUserName } from './users.js'

const showExpected =
  "expected 'TABLES', 'COLUMNS FROM <tab>', 'PARTITIONS FROM <tab>', 'TRANSACTION ISOLATION LEVEL', 'transaction_isolation', " +
  "'max_identifier_length', 'standard_conforming_strings', 'parameters', 'server_version', 'server_version_num', " +
  "'search_path', 'datestyle', or 'time zone'"

/** The cursor is on `show`. */
export function parseShow(cursor: Cursor): Show {
  const position = cursor.start
  advance(cursor)
  const { word } = cursor
  switch (word) {
    case 'tables':
    case 'parameters':
    case 'all':
    case 'users':
      advance(cursor)
      return { kind: 'show', position, what: word }
    case 'user':
      advance(cursor)
      return { kind: 'show', position, what: word, user: endsShow(cursor) ? null : parseUserName(cursor) }
    case 'columns':
    case 'partitions':
      advance(cursor)
      if (!take(cursor, 'from') && !take(cursor, 'in'))
        throw new SqlError("expected 'from'", cursor.kind === 'end' ? cursor.previousEnd - word.length : cursor.start)
      return { kind: 'show', position, what: word, table: parseShownTable(cursor) }
    case 'create':
      return parseShowCreate(cursor, position)
    case 'table':
      advance(cursor)
      return { kind: 'show', position, what: 'columns', table: parseShownTable(cursor) }
    default:
      return parseShowOption(cursor, position)
  }
}

const describedTable = /^desc(?:ribe)?\s+(?:table\s+)?(?:"[^"]+"|[\w.$]+)\s*(?:[;)]|$)/i

/** Whether this is DESCRIBE of a table and nothing else. Otherwise the word is a table name: `describe limit 5`. */
export function isDescribe({ text, start }: Cursor): boolean {
  return describedTable.test(text.slice(start, start + describedCharactersMax))
}

const describedCharactersMax = 400

/** `describe t`, `desc t`, `describe table t`: SHOW COLUMNS FROM t. */
export function parseDescribe(cursor: Cursor): Show {
  const position = cursor.start
  advance(cursor)
  // The table itself may be named `table`.
  if (/^table\s+["\w]/i.test(cursor.text.slice(cursor.start, cursor.start + describedCharactersMax))) advance(cursor)
  return { kind: 'show', position, what: 'columns', table: parseShownTable(cursor) }
}

function parseShowOption(cursor: Cursor, position: number): Show {
  const option = parseOptionName(cursor, showExpected)
  if (cursor.kind === 'end' && option.name === 'transaction') throw new SqlError("expected 'isolation'", cursor.start)
  if (cursor.kind === 'end' && option.name === 'transaction isolation')
    throw new SqlError("expected 'level'", cursor.start)
  if (option.name.startsWith('transaction isolation ') && option.name !== 'transaction isolation level')
    throw new SqlError("expected 'level'", lastTokenStart(cursor))
  const isOpen = cursor.kind === 'word' && !atEnd(cursor) && !showTails.has(cursor.word)
  if (isOpen && !wholeOptions.has(option.name)) throw new SqlError(showExpected, cursor.start)
  return { kind: 'show', position, what: 'option', option }
}

/** Names of settings that consist of these words alone. */
const wholeOptions: ReadonlySet<string> = new Set([
  'transaction_isolation',
  'transaction isolation level',
  'max_identifier_length',
  'standard_conforming_strings',
  'search_path',
  'datestyle',
  'time zone',
  'server_version',
  'server_version_num',
])

/** Words that may follow SHOW, which may be a sub-query. */
const showTails: ReadonlySet<string> = new Set(['where', 'limit', 'order', 'like', 'union', 'except', 'intersect'])

function endsShow(cursor: Cursor): boolean {
  return atEnd(cursor) || cursor.word === ')' || (cursor.kind === 'word' && showTails.has(cursor.word))
}

function parseShowCreate(cursor: Cursor, position: number): Show {
  const createPosition = cursor.start
  advance(cursor)
  if (take(cursor, 'table')) return { kind: 'show', position, what: 'create table', table: parseShownTable(cursor) }
  if (take(cursor, 'view')) return { kind: 'show', position, what: 'create view', table: parseShownTable(cursor) }
  if (take(cursor, 'materialized')) {
    expect(cursor, 'view')
    return { kind: 'show', position, what: 'create materialized view', table: parseShownTable(cursor) }
  }
  if (take(cursor, 'database'))
    return { kind: 'show', position, what: 'create database', objects: parseDatabaseObjects(cursor) }
  if (isLiveView(cursor)) {
    advance(cursor)
    advance(cursor)
    return { kind: 'show', position, what: 'create live view', table: parseShownTable(cursor) }
  }
  const position2 = cursor.kind === 'end' ? createPosition : cursor.start
  throw new SqlError("expected 'TABLE' or 'VIEW' or 'MATERIALIZED VIEW'", position2)
}

const databaseObjects: readonly DatabaseObject[] = ['tables', 'views', 'materialized_views', 'live_views']

/** What `include (..)` and `exclude (..)` name. Users and their rights are not in a database's statements. */
const objectCategories: Readonly<Record<string, readonly DatabaseObject[]>> = {
  ...{ tables: ['tables'], views: ['views'], materialized_views: ['materialized_views'] },
  live_views: ['live_views'],
  ...{ schema: databaseObjects, all: databaseObjects },
  ...{ acl: [], users: [], groups: [], service_accounts: [], permissions: [] },
}

/** `include all`, `include (tables, views)`, `exclude (materialized_views)`; all objects without a clause. */
function parseDatabaseObjects(cursor: Cursor): ReadonlySet<DatabaseObject> {
  const isExcluding = cursor.word === 'exclude'
  if (!take(cursor, 'include') && !take(cursor, 'exclude')) return new Set(databaseObjects)
  const categories = at(cursor, '(') ? parseCategories(cursor) : parseAllObjects(cursor)
  const named = new Set(categories.flat())
  return isExcluding ? new Set(databaseObjects.filter((kind) => !named.has(kind))) : named
}

function parseCategories(cursor: Cursor): (readonly DatabaseObject[])[] {
  expect(cursor, '(')
  const categories = parseList(cursor, parseCategory)
  expect(cursor, ')')
  return categories
}

function parseAllObjects(cursor: Cursor): (readonly DatabaseObject[])[] {
  expect(cursor, 'all', "'all' or '(' expected")
  return [databaseObjects]
}

function parseCategory(cursor: Cursor): readonly DatabaseObject[] {
  const category = cursor.kind === 'word' ? objectCategories[cursor.word] : undefined
  if (category === undefined)
    throw new SqlError(`one of ${Object.keys(objectCategories).join(', ').toUpperCase()} expected`, cursor.start)
  advance(cursor)
  return category
}

/** A table name. A symbol in its place is an error. */
function parseShownTable(cursor: Cursor): TableName {
  const { kind, start } = cursor
  if (kind !== 'symbol') return parseAnyTableName(cursor, 'expected a table name expected')
  const symbol = tokenText(cursor)
  advance(cursor)
  throw symbol === '(' && cursor.kind !== 'end' ? unexpectedToken(cursor) : SqlError.tableMissing(symbol, start)
}

/** Words up to the end of the statement, such as `time zone` or `query.trace`: in lower case, joined by one blank. */
export function parseOptionName(cursor: Cursor, missing: string): { position: number; name: string; quoted: boolean } {
  const position = cursor.start
  const quoted = cursor.kind === 'quoted'
  let name = parseNameOrString(cursor, missing).name.toLowerCase()
  for (;;) {
    if (take(cursor, '.')) name += `.${parseNameOrString(cursor, missing).name.toLowerCase()}`
    else if (cursor.kind === 'word' && !atEnd(cursor) && cursor.word !== 'to' && !quoted && isLongName(name)) {
      name += ` ${tokenText(cursor).toLowerCase()}`
      advance(cursor)
    } else return { position, name, quoted }
  }
}

const longNames = ['time zone', 'transaction isolation level', 'session characteristics', 'session authorization']

/** Whether this is the beginning of a setting's name of several words. */
function isLongName(name: string): boolean {
  return longNames.some((long) => long.startsWith(`${name} `))
}
