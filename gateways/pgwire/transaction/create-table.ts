// Adapts statements of tools and migrations written for other databases: CREATE and ALTER of tables and sequences, and
// CREATE INDEX. Notices report what has no effect: keys that are not enforced, foreign keys, CHECK, indexes, owners,
// and defaults that this server cannot evaluate. By setting, the first NOT NULL TIMESTAMP column becomes the designated
// timestamp (the column by which rows are ordered and partitioned) of a table that names none.

import { SqlError } from '../../../engine/base/errors.js'
import { isOwnCounter, type ParsedStatement } from '../../../engine/engine.js'
import type { PgSession } from '../context.js'
import { noticeResponse } from '../protocol/messages.js'

type CreateTable = Extract<ParsedStatement['statement'], { kind: 'create table' }>
type CreateColumns = Extract<CreateTable['source'], { kind: 'columns' }>
type Column = CreateColumns['columns'][number]
type AlterSequence = Extract<ParsedStatement['statement'], { kind: 'alter sequence' }>
type AlterAction = Extract<ParsedStatement['statement'], { kind: 'alter table' }>['actions'][number]

const timestampTypes: ReadonlySet<string> = new Set(['timestamp', 'timestamptz', 'timestamp_ns'])

const keysNotEnforced =
  'keys are shown to clients and not enforced: rows are not unique; DEDUP UPSERT KEYS makes them so'
const ignored = {
  key: keysNotEnforced,
  'foreign key': 'foreign keys are ignored: nothing sees to the rows that they name',
  check: 'CHECK constraints are ignored: values are not checked',
} as const
const nothingToDrop = 'no key has that name, and other constraints are not kept: there is none to drop'
const uniqueIgnored = 'unique indexes are ignored: rows are not unique; DEDUP UPSERT KEYS makes them so'
const indexesIgnored = 'indexes are not needed, none is made: pages of parts keep their bounds'
const ownersIgnored = 'owners are ignored: rights of users are about all tables'
const temporaryStays = 'a temporary table is one like others: all sessions see it, and it stays until it is dropped'
const sequencesFree = 'sequences have no owner and belong to no column: one stays when the table goes'

/** Returns the statement that the engine runs. */
export function adaptedStatement(pg: PgSession, parsed: ParsedStatement): ParsedStatement {
  const { statement } = parsed
  if (statement.kind === 'create index') notice(pg, statement.unique ? uniqueIgnored : indexesIgnored)
  else if (statement.kind === 'alter sequence' && changesOwner(statement)) notice(pg, sequencesFree)
  else if (statement.kind === 'create sequence' && statement.options.owned) notice(pg, sequencesFree)
  else if (statement.kind === 'create table' && statement.temporary === true) notice(pg, temporaryStays)
  noticeSkipped(pg, statement)
  if (statement.kind === 'alter table') {
    const actions = statement.actions.map((action) => adaptedAction(pg, action, statement.table.name))
    return { ...parsed, statement: { ...statement, actions } }
  }
  if (statement.kind !== 'create table' || statement.source.kind !== 'columns') return parsed
  const { source } = statement
  noticeConstraints(pg, source.columns, [...ignoredKeys(source.keys), ...source.constraints])
  const columns = knownDefaults(pg, source.columns, statement.table.name)
  const adapted = { ...statement, source: { ...source, columns }, options: knownOptions(pg, statement.options) }
  return { ...parsed, statement: pg.options.firstTimestamp ? withTimestamp(pg, adapted, columns) : adapted }
}

function changesOwner({ restart, newName }: AlterSequence): boolean {
  return restart === undefined && newName === undefined
}

/** Sends the notices of IF EXISTS and IF NOT EXISTS. */
function noticeSkipped(pg: PgSession, statement: ParsedStatement['statement']): void {
  if (statement.kind === 'create table' && statement.ifNotExists) {
    const { name } = statement.table
    if (pg.engine.table(name, pg.session) !== undefined)
      notice(pg, `relation "${name}" already exists, skipping`, '42P07')
  }
  if (statement.kind !== 'drop table' || !statement.ifExists) return
  for (const { name } of statement.tables)
    if (pg.engine.table(name, pg.session) === undefined) notice(pg, `table "${name}" does not exist, skipping`)
}

function adaptedAction(pg: PgSession, action: AlterAction, table: string): AlterAction {
  if (action.kind === 'add key') notice(pg, ignored.key)
  else if (action.kind === 'add constraint') notice(pg, ignored[action.constraint])
  else if (action.kind === 'drop constraint' && !hasKey(pg, table, action.name.name)) notice(pg, nothingToDrop)
  else if (action.kind === 'set owner') notice(pg, ownersIgnored)
  if (action.kind !== 'add columns') return action
  noticeConstraints(pg, action.columns, [])
  return { ...action, columns: knownDefaults(pg, action.columns, table) }
}

function hasKey(pg: PgSession, table: string, name: string): boolean {
  const keys = pg.engine.table(table, pg.session)?.keys ?? []
  return keys.some((key) => key.toLowerCase() === name.toLowerCase())
}

function ignoredKeys(keys: readonly { readonly enforced: boolean }[]): 'key'[] {
  return keys.flatMap(({ enforced }) => (enforced ? [] : ['key']))
}

/** Sends one notice per kind of constraint. */
function noticeConstraints(
  pg: PgSession,
  columns: readonly Column[],
  ofTable: readonly (keyof typeof ignored)[],
): void {
  const ofColumns = columns.flatMap(({ keys, constraints }) => [...ignoredKeys(keys), ...constraints])
  for (const kind of new Set([...ofTable, ...ofColumns])) notice(pg, ignored[kind])
}

/** Drops defaults that this server cannot evaluate, with a notice, so that migrations can continue. */
function knownDefaults<Defined extends Column>(pg: PgSession, columns: readonly Defined[], table: string): Defined[] {
  return columns.map((column) => {
    const { name, defaultValue } = column
    const counted = column.counted || (defaultValue !== null && isOwnCounter(defaultValue.text, table, name))
    if (counted)
      notice(pg, `"${name}" is numbered by INSERT and COPY; lines and files leave it NULL, and no key keeps it unique`)
    if (counted || defaultValue === null) return column
    try {
      pg.engine.validate(`select ${defaultValue.text}`, pg.session)
      return column
    } catch (error) {
      if (!(error instanceof SqlError)) throw error
      notice(pg, `the default of "${name}" is ignored, rows without a value have NULL: ${error.message}`)
      return { ...column, defaultValue: null }
    }
  })
}

function knownOptions(pg: PgSession, options: CreateTable['options']): CreateTable['options'] {
  const known = options.filter(({ name }) => name.toLowerCase() !== 'fillfactor')
  if (known.length < options.length) notice(pg, 'fillfactor is ignored: parts are written full and never changed')
  return known
}

function withTimestamp(pg: PgSession, statement: CreateTable, columns: readonly Column[]): CreateTable {
  if (statement.timestamp !== null) return statement
  const found = columns.find(({ notNull, type }) => notNull && timestampTypes.has(type.name))
  if (found === undefined) return statement
  notice(pg, `the designated timestamp is "${found.name}"`)
  const { name, quoted, position } = found
  const partitionBy = statement.partitionBy ?? { position, unit: 'day' as const }
  return { ...statement, timestamp: { name, quoted, position }, partitionBy }
}

function notice(pg: PgSession, message: string, code = '00000'): void {
  pg.out.put(noticeResponse({ severity: 'NOTICE', code, message, position: 0 }))
}
