// Entry point of the SQL front end: plans one statement. Takes the text or the syntax tree, and returns a
// PlannedStatement, plain data that the engine carries out.

import type { ParsedStatement } from '../../api/statements.js'
import { assert } from '../../base/assert.js'
import { SqlError } from '../../base/errors.js'
import {
  liveColumns,
  requireColumn,
  type TableSchema,
  type TableVersion,
  viewKind,
} from '../../storage/schema/schema.js'
import { dataType } from '../../types/column-types.js'
import type { Value } from '../../types/value.js'
import type * as ast from '../ast/ast.js'
import { bindExpression, rowlessScope } from '../bind/expression.js'
import { ownTable } from '../bind/from.js'
import { bindQuery, plainRelation } from '../bind/query.js'
import { kindOf, tableOf, writableTable } from '../bind/show.js'
import { relationNames } from '../catalog.js'
import { postgresDialect } from '../dialect.js'
import { parseScript, parseStatement } from '../parse/parse.js'
import { pgRelation } from '../pg-catalog/catalog.js'
import type { Query, TimeRange } from '../plan/plan.js'
import { planAlterIndex } from '../relations/keys.js'
import { namespaces } from '../relations/namespaces.js'
import type { RelationColumn } from '../relations/relation-columns.js'
import type { BindContext } from '../scope/bind-context.js'
import { isConstant } from '../typing/make-call.js'
import { convertTo } from '../typing/types.js'
import { type AffectedRows, planAffected } from './affected-rows.js'
import { planAlterTable, renameTable } from './alter-table.js'
import { planChanges, planWithin } from './changes-in-with.js'
import { planCopy } from './copy.js'
import { planCreateTable } from './create-table.js'
import { planAlterType, planCreateType, planDropType } from './enumerations.js'
import { planExplain } from './explain.js'
import { planInsert } from './insert.js'
import { withLosses } from './lost-values.js'
import {
  kindsOf,
  lateQueries,
  planAlterMaterialized,
  planCreateLive,
  planCreateMaterialized,
  planRefresh,
  storedPlaces,
  unkeptBuckets,
  viewsOver,
} from './materialized.js'
import { suggestStatement } from './misspelt.js'
import { type BindOptions, bindContext } from './new-context.js'
import type { PlannedStatement, Returning, UpsertQuery, UpsertSource } from './planned.js'
import { planRelation, queryOf } from './query-statement.js'
import { planNewRows, planReturned } from './returning.js'
import { planDelete, planUpdate } from './rewrite.js'
import { planAlterSequence, planCreateSequence, planDropSequence } from './sequences.js'
import { planSideEffects } from './side-effects.js'
import { fromStoredBuckets } from './stored-buckets.js'
import { targetOf, targetProjection } from './target.js'
import { planConflicts, planKeyUpdate, planMerge } from './upsert.js'
import { planAlterView, planCreateView, planDropView } from './views.js'

export type PlanOptions = Omit<BindOptions, 'sql'>

/** Parses, binds and plans a statement. Throws SqlError. Never blocks. */
export function planStatement(sql: string, options: PlanOptions): PlannedStatement {
  return planParsed(readStatement(sql), sql, options)
}

/** Parses a statement. Throws SqlError. */
export function readStatement(sql: string): ast.Statement {
  return readWith(parseStatement, sql)
}

/** Like readStatement, for any number of statements. */
export function readScript(sql: string): ast.ScriptStatement[] {
  return readWith(parseScript, sql)
}

function readWith<Read>(parse: (sql: string) => Read, sql: string): Read {
  try {
    return parse(sql)
  } catch (error) {
    throw withHint(error, sql, 0)
  }
}

/** Adds a hint to the error if the first word looks like a misspelt keyword. */
function withHint(error: unknown, sql: string, position: number): unknown {
  if (!(error instanceof SqlError) || error.hint !== '') return error
  const hint = suggestStatement(sql, position)
  return hint === null ? error : new SqlError(error.message, error.position, hint)
}

/** Like planStatement, for a statement that was already parsed from `sql`. */
export function planParsed(statement: ast.Statement, sql: string, options: PlanOptions): PlannedStatement {
  try {
    return plan(statement, bindContext({ sql, ...options }))
  } catch (error) {
    throw withHint(error, sql, statement.position)
  }
}

/** A query whose rows were computed elsewhere. */
export function planRows(
  columns: readonly RelationColumn[],
  rows: readonly (readonly Value[])[],
  options: PlanOptions,
): Extract<PlannedStatement, { kind: 'query' }> {
  const context = bindContext({ sql: '', ...options })
  context.cacheable = false
  return planRelation(plainRelation({ kind: 'values', columns, rows }), context)
}

/** Plans RETURNING over the rows of its statement. */
export function planReturning(
  returning: Returning,
  version: TableVersion,
  rows: readonly (readonly Value[])[],
  sql: string,
  options: PlanOptions,
): Extract<PlannedStatement, { kind: 'query' }> {
  return planReturned(returning, version, rows, bindContext({ sql, ...options }))
}

/** Plans ON CONFLICT DO NOTHING over the rows of its statement. */
export function planInsertNew(
  version: TableVersion,
  rows: readonly (readonly Value[])[],
  options: PlanOptions,
  keys: readonly (readonly number[])[] = [version.schema.dedupKeys],
): Extract<PlannedStatement, { kind: 'insertSelect' }> {
  return planNewRows(version, rows, keys, bindContext({ sql: '', ...options }))
}

/** A query for the places of a view's stored rows in these ranges, which a refresh replaces. */
export function planStoredPlaces(
  version: TableVersion,
  ranges: readonly TimeRange[],
  options: PlanOptions,
): Pick<UpsertQuery, 'query' | 'columns'> {
  return storedPlaces(version, ranges, bindContext({ sql: '', ...options }))
}

/** A query for the starts of buckets in these ranges that lack a state of values. Null: the view has none. */
export function planUnkept(version: TableVersion, ranges: readonly TimeRange[], options: PlanOptions): Query | null {
  return unkeptBuckets(version, ranges, bindContext({ sql: '', ...options }))
}

/** Plans how a refresh merges added rows into these ranges of a view. Null: it cannot. */
export function planLateRows(
  version: TableVersion,
  refreshes: Parameters<typeof lateQueries>[1],
  options: PlanOptions,
): ReturnType<typeof lateQueries> {
  return lateQueries(version, refreshes, () => bindContext({ sql: version.schema.materialized?.sql ?? '', ...options }))
}

/** Plans ON CONFLICT DO UPDATE over the rows of its statement. */
export function planConflicting(
  { statement, keys: [key = []] }: Extract<UpsertSource, { kind: 'rows' }>,
  version: TableVersion,
  rows: readonly (readonly Value[])[],
  sql: string,
  options: PlanOptions,
): UpsertQuery {
  return planConflicts(statement, key, version, rows, bindContext({ sql, ...options }))
}

/** Plans a statement of a WITH that changes data; `options` have the names before it. */
export function planOfWith(
  statement: ast.ChangesInWith['statement'],
  sql: string,
  options: PlanOptions,
): PlannedStatement {
  return planWithin(statement, bindContext({ sql, ...options }), plan)
}

/** A query for the rows that an UPDATE or DELETE of one table will change. */
export function planPreview({ statement, text }: ParsedStatement, options: PlanOptions): AffectedRows {
  assert(statement.kind === 'update' || statement.kind === 'delete', 'B4: a preview is of an UPDATE or DELETE')
  return planAffected(statement, bindContext({ sql: text, ...options }))
}

/** A query for all rows of a table as the session's transaction sees them, in storage types. */
export function planRebuilt(
  version: TableVersion,
  options: PlanOptions,
): Pick<PlannedInsertSelect, 'query' | 'columns'> {
  const context = bindContext({ sql: '', ...options })
  const columns = liveColumns(version.schema).map(targetOf)
  const relation = ownTable(version, version.schema.name, context)
  const places = columns.map(() => 0)
  return { query: queryOf(targetProjection(relation, columns, places, postgresDialect), -1, context), columns }
}

type PlannedInsertSelect = Extract<PlannedStatement, { kind: 'insertSelect' }>

type Plans<Kind extends ast.Statement['kind']> = (
  statement: Extract<ast.Statement, { kind: Kind }>,
  context: BindContext,
) => PlannedStatement

/** The planner of each kind of statement. A kind that is missing cannot be executed on its own. */
const planners: { readonly [Kind in ast.Statement['kind']]?: Plans<Kind> } = {
  empty: () => {
    throw new SqlError('empty query', 0)
  },
  query: (statement, context) =>
    planSideEffects(statement, context) ??
    planRelation(fromStoredBuckets(bindQuery(statement, context), context), context),
  explain: (statement, context) => planExplain(statement, context, plan),
  copy: planCopy,

  // Rows.
  insert: planInsert,
  merge: planMerge,
  update: (statement, context) => planKeyUpdate(statement, context) ?? planUpdate(statement, context),
  delete: planDelete,
  'with changes': (statement, context) => planChanges(statement, context, plan),
  truncate: planTruncate,

  // Entries of the catalog.
  'create table': planCreateTable,
  'alter table': (statement, context) => withLosses(planAlterTable(statement, context), statement, context),
  'rename table': planRename,
  'drop table': planDrop,
  'drop all tables': (_, context) =>
    dropped(context.catalog.tables().flatMap(({ schema: { id, name } }) => (isDroppable(name, context) ? [id] : []))),
  'drop schema': planDropSchema,
  'create view': planCreateView,
  'alter view': planAlterView,
  'drop view': planDropView,
  'create materialized view': planCreateMaterialized,
  'create live view': planCreateLive,
  'alter materialized view': planAlterMaterialized,
  'refresh materialized view': planRefresh,
  'create sequence': planCreateSequence,
  'alter sequence': planAlterSequence,
  'drop sequence': planDropSequence,
  'create type': planCreateType,
  'alter type': planAlterType,
  'drop type': planDropType,
  comment: planComment,
  'alter index': planAlterIndex,
  'create index': (statement, context) => {
    tableOf(statement.table, context)
    return { kind: 'none', tag: 'CREATE INDEX' }
  },

  // The server.
  checkpoint: ({ action }) => ({ kind: 'checkpoint', action, tag: 'CHECKPOINT' }),
  backup: planBackup,
  'alter connector': ({ connector: { name, position }, action }) => ({
    ...{ kind: 'connector', name, position, action },
    tag: 'ALTER CONNECTOR',
  }),
  'cancel query': ({ id }, context) => ({
    ...{ kind: 'cancelQuery', queryId: queryId(id, context), position: id.position },
    tag: 'CANCEL QUERY',
  }),
  user: (statement) => ({ kind: 'user', users: statement.users, change: statement.change, tag: userTag(statement) }),
  vacuum: ({ table }, context) => {
    if (table !== null && !isOfCatalog(table)) tableOf(table, context)
    return { kind: 'none', tag: 'VACUUM' }
  },
  reindex: ({ table }, context) => {
    tableOf(table, context)
    return { kind: 'none', tag: 'REINDEX' }
  },

  // The session. The PostgreSQL gateway handles most of these itself; elsewhere they have no effect.
  set: ({ name, values }) => ({ kind: 'set', name, values, tag: 'SET' }),
  reset: () => ({ kind: 'none', tag: 'RESET' }),
  transaction: ({ action, position }) => {
    if (twoPhase.has(action)) throw new SqlError('prepared transactions are disabled', position)
    return { kind: 'none', tag: action === 'rollback to' ? 'ROLLBACK' : action.toUpperCase() }
  },
  deallocate: () => ({ kind: 'none', tag: 'DEALLOCATE' }),
  discard: () => ({ kind: 'none', tag: 'DISCARD' }),
  channel: ({ action, position }) => {
    if (action === 'unlisten') return { kind: 'none', tag: 'UNLISTEN' }
    throw new SqlError('notifications need a session of the PostgreSQL wire protocol', position)
  },
  close: ({ name, position }) => {
    // Clients that reset a connection close all cursors; over HTTP there are none.
    if (name !== null) throw new SqlError(`cursor "${name}" does not exist`, position)
    return { kind: 'none', tag: 'CLOSE CURSOR ALL' }
  },
  'no operation': ({ tables, command }, context) => {
    for (const table of tables ?? []) requireRelation(table, context)
    return { kind: 'none', tag: command.toUpperCase() }
  },
}

/**
 * Statements whose queries run by the engine's own snapshot. UPDATE and DELETE read their table as the writer has it.
 */
const readingStored: ReadonlySet<ast.Statement['kind']> = new Set(['query', 'insert', 'create table', 'copy'])

function plan(statement: ast.Statement, context: BindContext): PlannedStatement {
  context.readsStored = readingStored.has(statement.kind)
  const planner = planners[statement.kind] as Plans<ast.Statement['kind']> | undefined
  if (planner === undefined)
    throw new SqlError(`${statement.kind.toUpperCase()} is not supported yet`, statement.position)
  return planner(statement, context)
}

const twoPhase: ReadonlySet<string> = new Set(['prepare', 'commit prepared', 'rollback prepared'])

function userTag({ change }: ast.UserStatement): string {
  switch (change.kind) {
    case 'create':
      return 'CREATE ROLE'
    case 'drop':
      return 'DROP ROLE'
    case 'rights':
      return change.given ? 'GRANT' : 'REVOKE'
    default:
      return 'ALTER ROLE'
  }
}

function queryId(expression: ast.Expression, context: BindContext): bigint {
  const value = convertTo(bindExpression(expression, rowlessScope(context)), dataType('LONG'))
  if (!isConstant(value) || typeof value.value !== 'bigint')
    throw new SqlError('a query id is expected', expression.position)
  return value.value
}

// DROP, RENAME, TRUNCATE --------------------------------------------------------------------------------------------

/** Whether DROP ALL TABLES drops the table: the server's own tables stay. */
function isDroppable(name: string, { catalog }: BindContext): boolean {
  return catalog.droppable?.(name) ?? true
}

function dropped(tableIds: readonly number[]): PlannedStatement {
  return { kind: 'change', changes: tableIds.map((tableId) => ({ kind: 'dropTable', tableId })), tag: 'DROP TABLE' }
}

/** Lists are accepted in the dialect of PostgreSQL only. */
function planDrop({ tables, ifExists, cascade, listAt }: ast.DropTable, context: BindContext): PlannedStatement {
  if (listAt !== null && !context.dialect.repeatedDeclarations) throw new SqlError('unexpected token [,]', listAt)
  const ids = tables.flatMap((table) => {
    const kind = kindOf(table.name, context)
    if (kind !== undefined && kind !== 'table') {
      const found = kind === 'live view' ? kind : 'view or materialized view'
      throw new SqlError(`table name expected, got ${found} name`, table.position)
    }
    if (ifExists && kind === undefined) return []
    const { id } = tableOf(table, context).schema
    const views = viewsOver(id, context)
    const [view] = views
    if (view !== undefined && !cascade)
      throw new SqlError(
        `table has ${kindsOf(views)}, CASCADE drops them, too [table=${table.name}, view=${view.name}]`,
        table.position,
      )
    return [...views.map((dependent) => dependent.id), id]
  })
  return dropped([...new Set(ids)])
}

/** Throws unless the name is a table, a view, or a relation of PostgreSQL's catalog. */
function requireRelation(table: ast.TableName, { catalog }: BindContext): void {
  const isOwn = table.schema === null && (catalog.table(table.name) ?? catalog.view(table.name)) !== undefined
  if (!isOwn && !isOfCatalog(table)) throw SqlError.tableMissing(table.name, table.position, relationNames(catalog))
}

/** Clean-up scripts also name relations of the catalog. */
function isOfCatalog({ schema, name }: ast.TableName): boolean {
  return (schema === 'pg_catalog' || schema === 'information_schema') && pgRelation(schema, name) !== undefined
}

/**
 * Schemas are not stored, so a schema without tables may have been created by CREATE SCHEMA, and dropping it is no
 * error.
 */
function planDropSchema({ schemas, cascade }: ast.DropSchema, context: BindContext): PlannedStatement {
  const { catalog } = context
  const known = [...catalog.tables().map(({ schema }) => schema), ...catalog.views(), ...(catalog.sequences?.() ?? [])]
  const changes = schemas.flatMap(({ name, position }) => {
    if (Object.hasOwn(namespaces, name.toLowerCase()))
      throw new SqlError(`schema cannot be dropped [schema=${name}]`, position)
    const inside = known.filter((entry) => entry.name.toLowerCase().startsWith(`${name.toLowerCase()}.`))
    const within = [...new Set([...inside.flatMap(({ id }) => viewsOver(id, context)), ...inside])]
    if (within.length > 0 && !cascade)
      throw new SqlError(`schema is not empty, CASCADE drops its tables [schema=${name}]`, position)
    return within.map(({ id }) => ({ kind: 'dropTable', tableId: id }) as const)
  })
  return { kind: 'change', changes, tag: 'DROP SCHEMA' }
}

function planRename({ table, newName }: ast.RenameTable, context: BindContext): PlannedStatement {
  return { kind: 'change', changes: renameTable(writableTable(table, context), newName, context), tag: 'RENAME TABLE' }
}

function planTruncate({ tables, ifExists }: ast.TruncateTable, context: BindContext): PlannedStatement {
  const known = tables.filter((table) => !ifExists || context.catalog.table(table.name) !== undefined)
  const changes = known.map(
    (table) => ({ kind: 'truncateTable', tableId: writableTable(table, context).schema.id }) as const,
  )
  return { kind: 'change', changes, tag: 'TRUNCATE TABLE' }
}

// COMMENT ON TABLE and COLUMN: stored in the table's definition, for clients of PostgreSQL.

type Changes = Extract<PlannedStatement, { kind: 'change' }>['changes']

const tag = 'COMMENT'

/** Comments on views and on relations of the catalog are not stored. */
function planComment({ table, column, text }: ast.Comment, { catalog }: BindContext): PlannedStatement {
  const schema = catalog.table(table.name)?.schema
  if (schema !== undefined) return { kind: 'change', changes: changesOf(schema, column, text), tag }
  if (table.schema === null && catalog.view(table.name) === undefined)
    throw SqlError.tableMissing(table.name, table.position, relationNames(catalog))
  return { kind: 'none', tag }
}

/** An empty comment removes it. */
function changesOf(schema: TableSchema, name: ast.Name | null, text: string): Changes {
  const { id: tableId } = schema
  if (name === null) return [{ kind: 'alterTable', tableId, changes: { comment: text } }]
  const column = requireColumn(schema, name)
  const { comment: _, ...declared } = column.declared ?? {}
  const retained = text === '' ? declared : { ...declared, comment: text }
  return [{ kind: 'alterColumn', tableId, columnId: column.id, declared: retained }]
}

const startedColumns = [{ name: 'backup_timestamp', type: dataType('TIMESTAMP') }]
const abortedColumns = [
  { name: 'status', type: dataType('VARCHAR') },
  { name: 'backup_id', type: dataType('TIMESTAMP') },
]

/** Plans BACKUP as a request to the BackupService (engine/api/statements.ts), which knows where backups are stored. */
function planBackup({ action, tables }: ast.Backup, context: BindContext): PlannedStatement {
  const columns = action === 'abort' ? abortedColumns : startedColumns
  const chosen = tables.map((table) => {
    const { schema } = tableOf(table, context)
    const { id, name, materialized } = schema
    if (materialized !== undefined)
      throw new SqlError(`a ${viewKind(materialized)} is part of BACKUP DATABASE only [view=${name}]`, table.position)
    return { id, name }
  })
  return { kind: 'backup', action, tables: chosen, columns, tag: 'BACKUP' }
}
