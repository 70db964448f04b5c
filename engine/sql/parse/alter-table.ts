// Parses ALTER statements: TABLE, VIEW, CONNECTOR and SCHEMA; other objects are passed on to their parsers.

import { SqlError } from '../../base/errors.js'
import { sqlColumnsMax, sqlListMax } from '../../base/limits.js'
import type {
  AlterAction,
  AlterConnector,
  ColumnDefinition,
  Expression,
  Name,
  PartitionList,
  Statement,
  TableName,
} from '../ast/ast.js'
import {
  parseAddedIndex,
  parseCapacity,
  parseChangedType,
  parseColumnAfterName,
  parseColumnStorage,
  parseDefault,
  parseIdentity,
  parseNewName,
  parseUsing,
  requireColumnName,
  takeIdentity,
} from './column.js'
import { parseTableConstraint } from './constraint.js'
import { parseAlterIndex } from './create-index.js'
import { parseDedup, parseViewQuery } from './create-table.js'
import { advance, at, type Cursor, moveTo, peekWord, tokenText } from './cursor.js'
import { parseAlterType } from './enumeration.js'
import {
  atEnd,
  expect,
  lastTokenStart,
  parseList,
  parseName,
  parseNameOrString,
  parseString,
  parseTableName,
  requireDistinct,
  shownToken,
  take,
  takeTwo,
} from './expect.js'
import { parseExpression } from './expression.js'
import { isLiveView, parseAlterLive } from './live-view.js'
import { parseAlterMaterialized } from './mat-view.js'
import { parseAlterSequence } from './sequence.js'
import { parsePolicyAction } from './storage-policy.js'
import { parseTableOption, parseTimeToLive, takeFormat } from './table-options.js'
import { takeIfExists, takeIfNotExists } from './tables.js'

/** The cursor is on `alter`. */
export function parseAlter(cursor: Cursor): Statement {
  const position = cursor.start
  advance(cursor)
  if (take(cursor, 'view')) {
    const view = parseTableName(cursor, 'view name expected')
    if (takeOwner(cursor)) return { kind: 'no operation', position, command: 'alter view' }
    expect(cursor, 'as')
    return { kind: 'alter view', position, view, ...parseViewQuery(cursor) }
  }
  if (take(cursor, 'materialized')) return parseAlterMaterialized(cursor, position, parseAction)
  if (take(cursor, 'sequence')) return parseAlterSequence(cursor, position)
  if (take(cursor, 'schema')) return parseAlterSchema(cursor, position)
  if (take(cursor, 'type')) return parseAlterType(cursor, position)
  if (take(cursor, 'index')) return parseAlterIndex(cursor, position)
  if (take(cursor, 'connector')) return parseAlterConnector(cursor, position)
  if (isLiveView(cursor)) return parseAlterLive(cursor, position, parseAction)
  if (!take(cursor, 'table')) throw new SqlError("'table' or 'materialized' or 'view' expected", cursor.start)
  const ifExists = takeIfExists(cursor)
  takeOnly(cursor)
  const table = parseTableName(cursor)
  const actions = parseActions(cursor).map((action) =>
    action.kind === 'rename' ? { ...action, newName: besideTable(action.newName, table) } : action,
  )
  return { kind: 'alter table', position, ifExists, table, actions }
}

/** The new name in `alter table a.t rename to u`: the table stays in its schema, as a.u. */
function besideTable(newName: TableName, { name, own }: TableName): TableName {
  if (own === undefined || newName.own !== undefined) return newName
  return { ...newName, name: `${name.slice(0, name.length - own.length)}${newName.name}`, own: newName.name }
}

/**
 * Skips ONLY of `alter table only t`, which dumps of PostgreSQL contain; there is no table inheritance. A table may
 * also be named `only`.
 */
function takeOnly(cursor: Cursor): void {
  const { start, previousEnd } = cursor
  if (!take(cursor, 'only')) return
  const isTable = cursor.kind === 'quoted' || (cursor.kind === 'word' && !actionWords.has(cursor.word))
  if (isTable) return
  moveTo(cursor, start)
  cursor.previousEnd = previousEnd
}

/** `alter column a type long, drop column b, add c int`: a list of column and constraint actions, as in PostgreSQL. */
function parseActions(cursor: Cursor): AlterAction[] {
  const actions = [parseAction(cursor)]
  while (listed.has(actions.at(-1)?.kind) && isBeforeAction(cursor)) {
    advance(cursor)
    if (actions.length === sqlColumnsMax) throw new SqlError(`list is too long [max=${sqlColumnsMax}]`, cursor.start)
    actions.push(parseAction(cursor))
  }
  return actions
}

const listed: ReadonlySet<AlterAction['kind'] | undefined> = new Set([
  ...(['add columns', 'drop columns', 'change type', 'set default', 'set nullable'] as const),
  ...([
    'add key',
    'add constraint',
    'drop constraint',
    'add index',
    'drop index',
    'set cache',
    'set symbol capacity',
  ] as const),
])

/**
 * Whether the comma at the cursor is followed by another action. Columns may be named like actions, so the word after
 * it decides.
 */
function isBeforeAction(cursor: Cursor, inAdded = false): boolean {
  if (cursor.word !== ',') return false
  const { start, previousEnd } = cursor
  advance(cursor)
  const isAction = beginsAction(cursor, inAdded)
  moveTo(cursor, start)
  cursor.previousEnd = previousEnd
  return isAction
}

/** Moves the cursor; the caller restores it. */
function beginsAction(cursor: Cursor, inAdded: boolean): boolean {
  const { word } = cursor
  advance(cursor)
  if (word === 'alter') return cursor.word === 'column' || isAlteredColumn(cursor)
  if (word !== 'drop') return word === 'add'
  if (cursor.word === 'column' || cursor.word === 'constraint') return true
  // `add a int, drop int` adds two columns.
  const isName = cursor.kind === 'word' || cursor.kind === 'quoted'
  return !inAdded && isName && !['partition', 'cascade', 'restrict'].includes(cursor.word)
}

/** `alter schema a owner to b`, as dumps of PostgreSQL contain it. Has no effect. */
function parseAlterSchema(cursor: Cursor, position: number): Statement {
  parseName(cursor, 'schema name expected')
  if (!takeOwner(cursor)) throw new SqlError("'owner to' expected: a schema has no other properties", cursor.start)
  return { kind: 'no operation', position, command: 'alter schema' }
}

/** Skips `owner to b`, which has no effect. */
function takeOwner(cursor: Cursor): boolean {
  if (!takeTwo(cursor, 'owner', 'to')) return false
  parseName(cursor, 'name of a user expected')
  return true
}

function parseAlterConnector(cursor: Cursor, position: number): AlterConnector {
  const connector = parseNameOrString(cursor, 'connector name expected')
  if (take(cursor, 'pause')) return { kind: 'alter connector', position, connector, action: 'pause' }
  if (take(cursor, 'resume')) return { kind: 'alter connector', position, connector, action: 'resume' }
  throw new SqlError("'pause' or 'resume' expected", cursor.start)
}

function parseAction(cursor: Cursor): AlterAction {
  const policy = parsePolicyAction(cursor)
  if (policy !== null) return policy
  const position = cursor.start
  const { word } = cursor
  if (actionWords.has(word)) advance(cursor)
  switch (word) {
    case 'add':
      return parseAdd(cursor, position)
    case 'drop':
      return parseDrop(cursor, position)
    case 'force':
      expect(cursor, 'drop')
      return parsePartitions(cursor, position, 'force drop')
    case 'alter':
      return parseAlterColumn(cursor, position)
    case 'rename':
      return parseRename(cursor, position)
    case 'attach':
    case 'detach':
      return parsePartitions(cursor, position, word)
    case 'convert':
      return parseConvert(cursor, position)
    case 'squash':
      expect(cursor, 'partitions')
      return { kind: 'squash partitions', position }
    case 'set':
      return parseSet(cursor, position)
    case 'owner':
      expect(cursor, 'to')
      parseName(cursor, 'name of a user expected')
      requireEnd(cursor, 'trying to set the owner')
      return { kind: 'set owner', position }
    case 'dedup':
    case 'deduplicate':
      return parseDedupAction(cursor, position)
    case 'resume':
    case 'suspend':
      return parseWal(cursor, position, word)
    default:
      throw new SqlError(
        "'add', 'alter', 'attach', 'detach', 'drop', 'convert', 'resume', 'rename', 'set' or 'squash' expected",
        position,
      )
  }
}

const actionWords: ReadonlySet<string> = new Set([
  'add',
  'drop',
  'force',
  'alter',
  'rename',
  'attach',
  'detach',
  'convert',
  'squash',
  'set',
  'owner',
  'dedup',
  'deduplicate',
  'resume',
  'suspend',
])

/** `add column if not exists a int, column b long`, `add a int, add b long`, `add (a int, b long)` */
function parseAdd(cursor: Cursor, position: number): AlterAction {
  const constraint = parseTableConstraint(cursor)
  if (constraint?.kind === 'key') return { kind: 'add key', position, key: constraint.key }
  if (constraint !== null) return { kind: 'add constraint', position, constraint: constraint.kind }
  take(cursor, 'column')
  const ifNotExists = takeIfNotExists(cursor)
  const inParentheses = take(cursor, '(')
  const parseItem = (inner: Cursor) => parseAddedColumn(inner, ifNotExists)
  const columns = inParentheses ? parseList(cursor, parseItem) : parseColumns(cursor, parseItem, true)
  if (inParentheses) expect(cursor, ')')
  else requireListEnd(cursor)
  requireDistinct(columns)
  return { kind: 'add columns', position, columns }
}

/** A list of columns up to the next action. */
function parseColumns<Item>(cursor: Cursor, parseItem: (cursor: Cursor) => Item, added: boolean): Item[] {
  const items = [parseItem(cursor)]
  while (cursor.word === ',' && !isBeforeAction(cursor, added)) {
    advance(cursor)
    if (items.length === sqlColumnsMax) throw new SqlError(`list is too long [max=${sqlColumnsMax}]`, cursor.start)
    items.push(parseItem(cursor))
  }
  return items
}

function parseAddedColumn(cursor: Cursor, ifNotExists: boolean): ColumnDefinition & { ifNotExists: boolean } {
  take(cursor, 'column')
  const isGiven = takeIfNotExists(cursor)
  if (cursor.kind === 'end') throw new SqlError("'column' or column name expected", cursor.start)
  const mayExist = ifNotExists || isGiven
  const column = parseNewName(cursor)
  return { ...parseColumnAfterName(cursor, column, 'alter'), ifNotExists: mayExist }
}

/** A list must be followed by the end of the statement or the next action. */
function requireListEnd(cursor: Cursor): void {
  if (!atEnd(cursor) && !isBeforeAction(cursor)) throw new SqlError("',' expected", cursor.start)
}

function parseDrop(cursor: Cursor, position: number): AlterAction {
  if (cursor.word === 'partition') return parsePartitions(cursor, position, 'drop')
  if (cursor.word === 'constraint') return parseDropConstraint(cursor, position)
  // In PostgreSQL the word COLUMN is optional.
  if (!isDroppedColumn(cursor)) expect(cursor, 'column', "'column' or 'partition' expected")
  const ifExists = takeIfExists(cursor)
  const columns = parseColumns(cursor, (inner) => parseDroppedColumn(inner, ifExists), false)
  requireListEnd(cursor)
  return { kind: 'drop columns', position, columns }
}

/** A column name that is not the start of another action. */
function isDroppedColumn(cursor: Cursor): boolean {
  if (cursor.kind === 'quoted') return true
  return (
    cursor.kind === 'word' && cursor.word !== 'column' && ['', ',', 'cascade', 'restrict'].includes(peekWord(cursor))
  )
}

function parseDroppedColumn(cursor: Cursor, ifExists: boolean): Name & { ifExists: boolean } {
  if (cursor.word === 'column' && peekWord(cursor) !== ',' && peekWord(cursor) !== '') take(cursor, 'column')
  const isGiven = takeIfExists(cursor)
  const column = parseColumnName(cursor)
  // Object mappers append CASCADE or RESTRICT. Views that use the column stay in either case.
  if (!take(cursor, 'cascade')) take(cursor, 'restrict')
  return { ...column, ifExists: ifExists || isGiven }
}

function parseDropConstraint(cursor: Cursor, position: number): AlterAction {
  advance(cursor)
  takeIfExists(cursor)
  const name = parseName(cursor, 'constraint name expected')
  if (!take(cursor, 'cascade')) take(cursor, 'restrict')
  requireEnd(cursor, 'trying to drop a constraint')
  return { kind: 'drop constraint', position, name }
}

function parseColumnName(cursor: Cursor): Name {
  return parseNameOrString(cursor, 'column name expected')
}

function parseRename(cursor: Cursor, position: number): AlterAction {
  if (take(cursor, 'to')) return { kind: 'rename', position, newName: parseTableName(cursor) }
  if (cursor.word === 'constraint' && peekWord(cursor) !== 'to') return parseRenameConstraint(cursor, position)
  // In PostgreSQL the word COLUMN is optional.
  if (cursor.word === 'column' || peekWord(cursor) !== 'to') expect(cursor, 'column')
  const pairs = parseList(cursor, (inner) => {
    const column = parseNameOrString(inner, 'current column name expected')
    expect(inner, 'to', inner.kind === 'end' ? "'to' expected expected" : "'to' expected'")
    const newName = parseNameOrString(inner, 'new column name expected')
    if (newName.quoted) requireColumnName(newName.name, newName.position)
    return { column, newName }
  })
  return { kind: 'rename columns', position, pairs }
}

function parseRenameConstraint(cursor: Cursor, position: number): AlterAction {
  advance(cursor)
  const name = parseName(cursor, 'constraint name expected')
  expect(cursor, 'to')
  return { kind: 'rename constraint', position, name, newName: parseName(cursor, 'constraint name expected') }
}

const alterColumnExpected = "'add index' or 'drop index' or 'type' or 'cache' or 'nocache' or 'symbol' expected"

function parseAlterColumn(cursor: Cursor, position: number): AlterAction {
  // In PostgreSQL the word COLUMN is optional.
  if (!isAlteredColumn(cursor))
    expect(cursor, 'column', cursor.kind === 'end' ? undefined : "'column' or 'partition' expected")
  const column = parseColumnName(cursor)
  const { start, word } = cursor
  if (take(cursor, 'type')) return parseChangeType(cursor, column)
  if (take(cursor, 'set')) {
    if (take(cursor, 'default')) return { kind: 'set default', position, column, value: parseDefault(cursor) }
    if (take(cursor, 'not')) return parseNullable(cursor, position, column, true)
    if (take(cursor, 'parquet')) return { kind: 'set storage', position, column, storage: parseColumnStorage(cursor) }
    expect(cursor, 'data')
    expect(cursor, 'type')
    return parseChangeType(cursor, column)
  }
  if (take(cursor, 'add')) {
    if (take(cursor, 'generated')) return { kind: 'set default', position, column, value: parseIdentity(cursor) }
    expect(cursor, 'index')
    return { kind: 'add index', position, column, index: parseAddedIndex(cursor, start) }
  }
  if (take(cursor, 'drop')) {
    if (take(cursor, 'default') || takeIdentity(cursor)) return { kind: 'set default', position, column, value: null }
    if (take(cursor, 'not')) return parseNullable(cursor, position, column, false)
    expect(cursor, 'index')
    requireEnd(cursor, 'trying to drop index')
    return { kind: 'drop index', position, column }
  }
  if (take(cursor, 'cache') || take(cursor, 'nocache'))
    return { kind: 'set cache', position, column, cache: word === 'cache' }
  const isMissing = atEnd(cursor)
  expect(
    cursor,
    'symbol',
    isMissing
      ? alterColumnExpected
      : `'add', 'drop', 'set', 'symbol', 'cache' or 'nocache' expected found '${shownToken(cursor)}'`,
  )
  expect(cursor, 'capacity')
  if (atEnd(cursor)) throw new SqlError('numeric capacity expected', cursor.start)
  const capacity = parseCapacity(cursor, 'alter')
  return {
    kind: 'set symbol capacity',
    position,
    column,
    capacity: capacity.value,
    capacityPosition: capacity.position,
  }
}

function isAlteredColumn(cursor: Cursor): boolean {
  if (cursor.kind === 'quoted') return true
  return cursor.kind === 'word' && cursor.word !== 'column' && ['set', 'drop', 'type'].includes(peekWord(cursor))
}

function parseNullable(cursor: Cursor, position: number, column: Name, notNull: boolean): AlterAction {
  expect(cursor, 'null')
  return { kind: 'set nullable', position, column, notNull }
}

function parseChangeType(cursor: Cursor, column: Name): AlterAction {
  const definition = parseChangedType(cursor, column)
  const position = cursor.kind === 'word' && cursor.word === 'using' ? cursor.previousEnd : null
  const again = position !== null
  if (again) parseUsing(cursor, column)
  requireEnd(cursor, 'trying to change column type')
  return { kind: 'change type', position: position ?? lastTokenStart(cursor), column, definition, again }
}

function requireEnd(cursor: Cursor, doing: string): void {
  if (!atEnd(cursor) && !isBeforeAction(cursor))
    throw new SqlError(`unexpected token [${shownToken(cursor)}] while ${doing}`, cursor.start)
}

type PartitionOperation = Extract<AlterAction, { kind: 'partitions' }>['operation']

function parsePartitions(cursor: Cursor, position: number, operation: PartitionOperation): AlterAction {
  const { start } = cursor
  expect(cursor, 'partition')
  if (operation === 'attach' && cursor.word === 'where') {
    const others = 'DROP PARTITION, DETACH PARTITION or CONVERT PARTITION'
    throw new SqlError(`WHERE clause can only be used with command ${others}`, start)
  }
  return { kind: 'partitions', position, operation, partitions: parsePartitionList(cursor) }
}

function parsePartitionList(cursor: Cursor): PartitionList {
  const { start } = cursor
  if (take(cursor, 'where')) {
    if (atEnd(cursor)) throw new SqlError('boolean expression expected', start)
    return { list: [], where: parseExpression(cursor) }
  }
  expect(cursor, 'list', "'list' or 'where' expected")
  const list = parseList(cursor, parsePartitionName, sqlListMax)
  requireListEnd(cursor)
  return { list, where: null }
}

/** An unquoted name is accepted here; no partition will match it. */
function parsePartitionName(cursor: Cursor): { position: number; name: string } {
  if (cursor.kind === 'string' || atEnd(cursor)) return parseString(cursor, 'partition name expected')
  const partition = { position: cursor.start, name: tokenText(cursor) }
  while (!atEnd(cursor)) advance(cursor)
  return partition
}

function parseConvert(cursor: Cursor, position: number): AlterAction {
  if (!take(cursor, 'partitions')) expect(cursor, 'partition')
  expect(cursor, 'to')
  const toParquet = take(cursor, 'parquet')
  if (!toParquet) expect(cursor, 'native', "'parquet' or 'native' expected")
  const operation = toParquet ? 'convert to parquet' : 'convert to native'
  return { kind: 'partitions', position, operation, partitions: parsePartitionList(cursor) }
}

function parseSet(cursor: Cursor, position: number): AlterAction {
  if (take(cursor, 'ttl')) return { kind: 'set ttl', position, ttl: parseTimeToLive(cursor) }
  if (take(cursor, 'param'))
    return { kind: 'set parameter', position, option: parseTableOption(cursor, 'param name expected') }
  const format = takeFormat(cursor)
  if (format !== null) return { kind: 'set format', position, format }
  expect(cursor, 'type', atEnd(cursor) ? "'param', 'ttl' or 'type' expected" : "'param' or 'type' expected")
  const bypass = take(cursor, 'bypass')
  expect(cursor, 'wal', bypass ? "'wal' expected" : "'bypass' or 'wal' expected")
  return { kind: 'set type', position, wal: !bypass }
}

function parseDedupAction(cursor: Cursor, position: number): AlterAction {
  if (take(cursor, 'disable')) return { kind: 'dedup disable', position }
  if (cursor.kind === 'end') throw new SqlError("'dedup columns' expected", cursor.start)
  if (!at(cursor, 'enable')) throw new SqlError("expected 'upsert'", cursor.start)
  const skips = peekWord(cursor) === 'skip'
  return { kind: 'dedup enable', position, keys: parseDedup(cursor, 'deduplicate key column list expected'), skips }
}

/** `resume wal from txn 5`, `suspend wal with 24, 'disk full'` */
function parseWal(cursor: Cursor, position: number, word: 'resume' | 'suspend'): AlterAction {
  expect(cursor, 'wal')
  if (word === 'suspend') return { kind: 'suspend wal', position, ...parseSuspendReason(cursor) }
  if (atEnd(cursor)) return { kind: 'resume wal', position, fromTransaction: null }
  expect(cursor, 'from')
  if (!take(cursor, 'txn')) expect(cursor, 'transaction', "'transaction' or 'txn' expected")
  if (atEnd(cursor)) throw new SqlError('transaction value expected', cursor.start)
  if (cursor.kind !== 'number') throw new SqlError(`invalid value [value=${shownToken(cursor)}]`, cursor.start)
  return { kind: 'resume wal', position, fromTransaction: parseExpression(cursor) }
}

function parseSuspendReason(cursor: Cursor): { code: Expression | null; message: Expression | null } {
  if (!take(cursor, 'with')) return { code: null, message: null }
  const code = parseExpression(cursor)
  expect(cursor, ',')
  return { code, message: parseExpression(cursor) }
}
