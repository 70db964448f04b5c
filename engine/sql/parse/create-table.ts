// Parses CREATE TABLE in all its forms, CREATE VIEW and CREATE SCHEMA; other CREATE statements are passed on to their
// parsers.

import { SqlError } from '../../base/errors.js'
import type {
  ColumnDefinition,
  CreateAs,
  CreateColumns,
  CreateLike,
  CreateTable,
  CreateView,
  Expression,
  IndexOption,
  Name,
  Statement,
  TableName,
} from '../ast/ast.js'
import { parseCastColumn, parseColumn, parseIndex } from './column.js'
import { parseTableConstraint, type TableConstraint } from './constraint.js'
import { parseCreateIndex } from './create-index.js'
import { advance, at, type Cursor, peekWord, shownTokenError } from './cursor.js'
import { parseCreateType } from './enumeration.js'
import {
  atEnd,
  expect,
  lastTokenStart,
  parseList,
  parseName,
  parseNameOrString,
  parseNamesInParentheses,
  parseString,
  parseTableName,
  requireDistinct,
  shownToken,
  take,
  unexpectedToken,
} from './expect.js'
import { isLiveView, parseCreateLive } from './live-view.js'
import { parseCreateMaterialized } from './mat-view.js'
import { parseCreateExtension, refuseOther } from './other-objects.js'
import { parseQuery, parseQueryInParentheses } from './query.js'
import { refuseReserved } from './reserved.js'
import { parseBatch } from './rows.js'
import { parseCreateSequence } from './sequence.js'
import { parseLake, parseStoragePolicy } from './storage-policy.js'
import { parseTableOption, parseTimeToLive, partitionUnitOf, takeFormat } from './table-options.js'
import { takeIfNotExists } from './tables.js'

/** The cursor is on `create`. */
export function parseCreate(cursor: Cursor): Statement {
  const position = cursor.start
  advance(cursor)
  const orReplace = cursor.word === 'or' && take(cursor, 'or')
  if (orReplace) expect(cursor, 'replace')
  if (cursor.word === 'view') return parseCreateView(cursor, position, orReplace)
  if (cursor.word === 'materialized') return parseCreateMaterialized(cursor, position, parseViewQuery)
  if (!orReplace && isLiveView(cursor)) return parseCreateLive(cursor, position, parseViewQuery)
  const atomic = take(cursor, 'atomic')
  const { batch } = parseBatch(cursor)
  if (atomic && cursor.word !== 'table') throw new SqlError("'table' expected", cursor.start)
  if (!orReplace && take(cursor, 'sequence')) return parseCreateSequence(cursor, position)
  if (!orReplace && take(cursor, 'type')) return parseCreateType(cursor, position)
  if (!orReplace) {
    for (const word of ['global', 'local', 'unlogged']) take(cursor, word)
    const temporary = take(cursor, 'temporary') || take(cursor, 'temp')
    const words = { atomic, batch, temporary }
    if (take(cursor, 'table')) {
      const statement = parseCreateTable(cursor, position, words)
      if (temporary) parseOnCommit(cursor)
      return temporary ? { ...statement, temporary } : statement
    }
  }
  if (cursor.word === 'temporary' || cursor.word === 'temp') advance(cursor)
  if (cursor.word === 'view') return parseCreateView(cursor, position, orReplace)
  if (!orReplace && (cursor.word === 'index' || cursor.word === 'unique')) return parseCreateIndex(cursor, position)
  if (!orReplace && take(cursor, 'schema')) return parseCreateSchema(cursor, position)
  const extension = orReplace ? null : parseCreateExtension(cursor, position)
  if (extension !== null) return extension
  refuseOther(cursor)
  if (orReplace) throw new SqlError("'view' expected", cursor.start)
  const more = cursor.kind === 'end' ? " or 'materialized' or 'view' or 'or replace'" : ''
  throw new SqlError(`'atomic' or 'table' or 'batch'${more} expected`, cursor.start)
}

/** `create schema if not exists a authorization b`: accepted without effect. */
function parseCreateSchema(cursor: Cursor, position: number): Statement {
  const ifNotExists = takeIfNotExists(cursor)
  const isNamed = cursor.word !== 'authorization'
  const name = isNamed ? parseName(cursor, 'schema name expected') : null
  if (take(cursor, 'authorization')) parseName(cursor, 'name of a user expected')
  if (name?.name.toLowerCase() === 'public' && !ifNotExists)
    throw new SqlError('schema already exists [schema=public]', name.position)
  return { kind: 'no operation', position, command: 'create schema' }
}

/** Words of CREATE .. AS that say how the rows are inserted. */
interface CopyWords {
  readonly atomic: boolean
  readonly batch: Expression | null
  readonly temporary: boolean
}

function parseCreateTable(cursor: Cursor, position: number, words: CopyWords): CreateTable {
  const ifNotExists = takeIfNotExists(cursor)
  if (cursor.word === 'if') {
    advance(cursor)
    expect(cursor, 'not', cursor.kind === 'end' ? "'not' expected" : "'if not exists' expected")
    expect(cursor, 'exists')
  }
  if (take(cursor, '(')) throw missingSource(cursor)
  const table = parseTableName(
    cursor,
    atEnd(cursor) && !ifNotExists ? "table name or 'if' expected" : 'table name expected',
  )
  requireFileName(table)
  if (words.temporary) parseOnCommit(cursor)
  const source = parseSource(cursor, words)
  if (source.kind === 'like' && ownToLike.has(cursor.word)) throw unexpectedToken(cursor)
  const indexes = parseTrailing(cursor, source)
  const timestamp = parseTimestamp(cursor)
  const partitionBy = cursor.word === 'partition' ? parsePartitionBy(cursor, timestamp, source) : null
  return {
    kind: 'create table',
    position,
    ifNotExists,
    table,
    source,
    timestamp,
    partitionBy,
    indexes,
    ...parseTableTail(cursor, partitionBy),
  }
}

/** `on commit preserve rows` of a temporary table, which in fact stays until it is dropped. */
function parseOnCommit(cursor: Cursor): void {
  const position = cursor.start
  if (!take(cursor, 'on')) return
  expect(cursor, 'commit')
  if (take(cursor, 'preserve')) {
    expect(cursor, 'rows')
    return
  }
  const isDropped = take(cursor, 'drop')
  if (!isDropped) expect(cursor, 'delete', "'drop', 'delete' or 'preserve' expected")
  const written = isDropped ? 'DROP' : 'DELETE ROWS'
  throw new SqlError(`ON COMMIT ${written} is not supported: a temporary table stays until it is dropped`, position)
}

/** Tokens after LIKE with which clauses of the new table begin. */
const ownToLike: ReadonlySet<string> = new Set([',', 'timestamp', 'partition', 'dedup', 'deduplicate'])

/** Table names become parts of file paths. */
function requireFileName({ name, position }: TableName): void {
  const bad = name === '.' ? 0 : name.search(/[/\\]|\.\./)
  if (bad >= 0) throw new SqlError(`'${name[bad]}' is not allowed`, position + bad)
}

function parseSource(cursor: Cursor, { atomic, batch }: CopyWords): CreateTable['source'] {
  if (cursor.word === 'as') return parseAs(cursor, batch)
  if (cursor.word !== '(') throw missingSource(cursor)
  if (peekWord(cursor) === 'like') return parseLike(cursor)
  advance(cursor)
  if (at(cursor, ')')) throw shownTokenError(cursor, 'missing column definition')
  if (cursor.kind === 'end') throw new SqlError('like expected', cursor.start)
  const found: TableConstraint[] = []
  const columns = parseList(cursor, (inner) => parseEntry(inner, found)).filter((entry) => entry !== null)
  requireDistinct(columns)
  const { start } = cursor
  if (!take(cursor, ')')) {
    const message = "',' or ')' expected"
    throw atEnd(cursor) ? new SqlError(message, cursor.start) : shownTokenError(cursor, message)
  }
  if (atomic || batch !== null)
    throw new SqlError("'atomic' or 'batch' keywords can only be used in CREATE ... AS SELECT statements.", start)
  const keys = found.flatMap((constraint) => (constraint.kind === 'key' ? [constraint.key] : []))
  const constraints = found.flatMap(({ kind }) => (kind === 'key' ? [] : [kind]))
  return { kind: 'columns', columns, keys, constraints }
}

function parseEntry(cursor: Cursor, constraints: TableConstraint[]): ColumnDefinition | null {
  const constraint = parseTableConstraint(cursor)
  if (constraint !== null) {
    constraints.push(constraint)
    return null
  }
  refuseReserved(cursor)
  return parseColumn(cursor, 'create')
}

function missingSource(cursor: Cursor): SqlError {
  return cursor.kind === 'end'
    ? new SqlError("'(' or 'as' expected", cursor.start)
    : new SqlError(`unexpected token [${cursor.text.slice(cursor.start, cursor.end)}]`, cursor.start)
}

function parseLike(cursor: Cursor): CreateLike {
  advance(cursor)
  advance(cursor)
  if (at(cursor, ')')) throw new SqlError(') expected', cursor.end)
  const table = parseTableName(cursor)
  const keys = takeLikeOptions(cursor)
  if (!take(cursor, ')')) throw atEnd(cursor) ? new SqlError(') expected', cursor.start) : unexpectedToken(cursor)
  return { kind: 'like', table, keys }
}

/** `including all excluding indexes`: all properties are copied, keys unless they are excluded. */
function takeLikeOptions(cursor: Cursor): boolean {
  let keys = true
  while (cursor.word === 'including' || cursor.word === 'excluding') {
    const option = peekWord(cursor)
    if (option === 'all' || option === 'indexes') keys = cursor.word === 'including'
    advance(cursor)
    if (!likeOptions.has(option)) throw unexpectedToken(cursor)
    advance(cursor)
  }
  return keys
}

const likeOptions: ReadonlySet<string> = new Set(
  'all comments compression constraints defaults generated identity indexes statistics storage'.split(' '),
)

function parseAs(cursor: Cursor, batch: Expression | null): CreateAs {
  advance(cursor)
  if (atEnd(cursor)) throw new SqlError("'(' expected", cursor.start)
  const query = cursor.word === '(' ? parseQueryInParentheses(cursor) : parseQuery(cursor)
  return { kind: 'as', query, casts: [], batch }
}

interface Indexed {
  readonly column: Name
  readonly index: IndexOption
}

/** `, index(s capacity 128)` and `, cast(a as int)` after the columns or the query. */
function parseTrailing(cursor: Cursor, source: CreateColumns | CreateLike | CreateAs): Indexed[] {
  const indexes: Indexed[] = []
  while (cursor.word === ',') {
    advance(cursor)
    if (take(cursor, 'index')) indexes.push(parseTableIndex(cursor, indexes, source))
    else if (at(cursor, 'cast') && source.kind === 'as') pushCast(cursor, source)
    else throw atEnd(cursor) ? new SqlError("'index' or 'cast' expected", cursor.start) : unexpectedToken(cursor)
  }
  return indexes
}

function parseTableIndex(cursor: Cursor, before: readonly Indexed[], source: CreateTable['source']): Indexed {
  expect(cursor, '(')
  const column = parseNameOrString(cursor, 'literal expected')
  const isColumn = ({ name }: Name): boolean => name.toLowerCase() === column.name.toLowerCase()
  const indexed = source.kind === 'columns' ? source.columns.filter(({ index }) => index !== null) : []
  if (before.some((other) => isColumn(other.column)) || indexed.some(isColumn))
    throw new SqlError('duplicate index clause', column.position)
  const index = parseIndex(cursor, column.position, 'create')
  const [included] = index.included
  if (included !== undefined)
    throw new SqlError('INCLUDE goes with the INDEX of a column definition', included.position)
  expect(cursor, ')')
  return { column, index }
}

function pushCast(cursor: Cursor, source: CreateAs): void {
  advance(cursor)
  expect(cursor, '(')
  const cast = parseCastColumn(cursor)
  expect(cursor, ')')
  const casts = source.casts as CreateAs['casts'][number][]
  if (casts.some(({ name }) => name.toLowerCase() === cast.name.toLowerCase()))
    throw new SqlError('duplicate cast', cast.position)
  casts.push(cast)
}

function parseTimestamp(cursor: Cursor): Name | null {
  if (!take(cursor, 'timestamp')) return null
  expect(cursor, '(')
  const name = parseNameOrString(cursor, 'literal expected')
  expect(cursor, ')')
  return name
}

function parsePartitionBy(
  cursor: Cursor,
  timestamp: Name | null,
  source: CreateTable['source'],
): CreateTable['partitionBy'] {
  advance(cursor)
  expect(cursor, 'by')
  const position = cursor.start
  const unit = partitionUnitOf(cursor.word)
  if (cursor.kind === 'end') throw new SqlError('literal expected', position)
  if (unit === null) throw new SqlError("'NONE', 'HOUR', 'DAY', 'WEEK', 'MONTH' or 'YEAR' expected", position)
  // The query may have a designated timestamp.
  if (timestamp === null && source.kind !== 'as') {
    throw new SqlError('partitioning is possible only on tables with designated timestamps', position)
  }
  advance(cursor)
  return { position, unit }
}

type TailClause = 'wal' | 'ttl' | 'policy' | 'lake' | 'dedupKeys' | 'dedupSkips' | 'options' | 'volume'
type TableTail = { -readonly [Key in TailClause]: CreateTable[Key] }

/** TTL, STORAGE POLICY, LAKE, WAL, WITH, IN VOLUME and DEDUP. */
function parseTableTail(cursor: Cursor, partitionBy: CreateTable['partitionBy']): TableTail {
  const formatPosition = cursor.start
  const format = partitionBy === null ? null : takeFormat(cursor)
  if (format === 'parquet' && partitionBy?.unit === 'none')
    throw new SqlError('FORMAT PARQUET is only supported on partitioned WAL tables', formatPosition)
  const ttl = partitionBy !== null && take(cursor, 'ttl') ? parseTimeToLive(cursor) : null
  const policy = partitionBy === null ? null : parseStoragePolicy(cursor)
  const lakeBefore = parseLake(cursor)
  const wal = partitionBy === null ? null : parseWalType(cursor)
  const lake = lakeBefore ?? parseLake(cursor)
  const options = cursor.word === 'with' && peekWord(cursor) !== '' ? parseOptions(cursor) : []
  const volume = at(cursor, 'in') ? parseVolume(cursor) : null
  const isDedup = cursor.word === 'dedup' || cursor.word === 'deduplicate'
  if (isDedup && (partitionBy === null || partitionBy.unit === 'none' || wal?.enabled === false)) {
    advance(cursor)
    throw new SqlError('deduplication is possible only on WAL tables', cursor.start)
  }
  const dedupSkips = isDedup && peekWord(cursor) === 'skip'
  const dedupKeys = isDedup ? requireOnce(parseDedup(cursor)) : null
  return { ttl, policy, wal, options, volume, dedupKeys, dedupSkips, lake: lake ?? parseLake(cursor) }
}

function parseWalType(cursor: Cursor): CreateTable['wal'] {
  const position = cursor.start
  if (take(cursor, 'wal')) return { position, enabled: true }
  if (!take(cursor, 'bypass')) return null
  const found = cursor.kind === 'end' ? '' : shownToken(cursor)
  expect(cursor, 'wal', ` invalid syntax, should be BYPASS WAL but was BYPASS ${found}`)
  return { position, enabled: false }
}

/** `with maxUncommittedRows = 1000, o3MaxLag = 1s`. A comma may precede IN VOLUME. */
function parseOptions(cursor: Cursor): CreateTable['options'] {
  const options: CreateTable['options'][number][] = []
  do {
    advance(cursor)
    if (options.length > 0 && at(cursor, 'in')) break
    if (options.length === 0 && at(cursor, '(')) return parseStorageOptions(cursor)
    options.push(parseTableOption(cursor, undefined, true))
  } while (at(cursor, ','))
  return options
}

/** `(fillfactor = 70)`, PostgreSQL's storage parameters. */
function parseStorageOptions(cursor: Cursor): CreateTable['options'] {
  expect(cursor, '(')
  const options = parseList(cursor, (inner) => parseTableOption(inner, undefined, true))
  expect(cursor, ')')
  return options
}

/** `dedup upsert keys (a, b)`, `dedup skip keys (a, b)`: the columns. */
export function parseDedup(cursor: Cursor, missing = 'column list expected'): Name[] {
  advance(cursor)
  const skips = take(cursor, 'skip')
  for (const word of skips ? ['keys'] : ['upsert', 'keys'])
    if (!take(cursor, word))
      throw new SqlError(`expected '${word}'`, cursor.kind === 'end' ? lastTokenStart(cursor) : cursor.start)
  if (!at(cursor, '(')) throw new SqlError(missing, atEnd(cursor) ? cursor.start : cursor.end)
  if (peekWord(cursor) === ')') {
    advance(cursor)
    throw new SqlError('deduplicate key list must include dedicated timestamp column', cursor.start)
  }
  return parseNamesInParentheses(cursor)
}

/** CREATE TABLE refuses a repeated key, which ALTER TABLE accepts. */
function requireOnce(keys: readonly Name[]): readonly Name[] {
  const twice = keys.find(
    ({ name }, index) => keys.findIndex((key) => key.name.toLowerCase() === name.toLowerCase()) < index,
  )
  if (twice !== undefined) throw new SqlError(`duplicate dedup column [column=${twice.name}]`, twice.position)
  return keys
}

function parseVolume(cursor: Cursor): NonNullable<CreateTable['volume']> {
  advance(cursor)
  expect(cursor, 'volume')
  return cursor.kind === 'string'
    ? parseString(cursor, 'path for volume expected')
    : parseNameOrString(cursor, 'path for volume expected')
}

function parseCreateView(cursor: Cursor, position: number, orReplace: boolean): CreateView {
  advance(cursor)
  const ifNotExists = takeIfNotExists(cursor)
  const view = parseTableName(cursor, atEnd(cursor) ? "view name or 'if' expected" : 'view name expected')
  const columns = cursor.word === '(' ? parseNamesInParentheses(cursor) : []
  requireDistinct(columns)
  expect(cursor, 'as')
  return { kind: 'create view', position, orReplace, ifNotExists, view, columns, ...parseViewQuery(cursor) }
}

/** The query of a view, with or without parentheses, and its text without them. */
export function parseViewQuery(cursor: Cursor): Pick<CreateView, 'query' | 'queryText'> {
  if (atEnd(cursor)) throw new SqlError("'(' or 'with' or 'select' expected", cursor.start)
  const query = cursor.word === '(' ? parseQueryInParentheses(cursor) : parseQuery(cursor)
  return { query, queryText: cursor.text.slice(query.position, query.end) }
}
