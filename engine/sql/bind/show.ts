// Binds SHOW, such as SHOW TABLES, to a plan of constant rows, which are read from the catalog and the session while
// planning. Also finds the table or view that a statement names, for SHOW and for statements that change it.

import { SqlError } from '../../base/errors.js'
import { requireTable, type TableVersion, viewKind } from '../../storage/schema/schema.js'
import { dataType } from '../../types/column-types.js'
import type { Name, Show, TableName } from '../ast/ast.js'
import { relationNames } from '../catalog.js'
import { allOptions, sessionOption } from '../pg-catalog/session-options.js'
import type { Plan } from '../plan/plan.js'
import type { SystemRelation } from '../relations/relation-columns.js'
import { columnList } from '../relations/relation-columns.js'
import { createLiveText, createMaterializedText, createTableText, createViewText } from '../relations/show-create.js'
import { databaseRelation } from '../relations/show-create-database.js'
import { columnsRelation, partitionsRelation } from '../relations/table-relations.js'
import { tableNamesRelation } from '../relations/tables-relations.js'
import { userRelation, usersRelation } from '../relations/user-relations.js'
import { viewAsTable } from '../relations/view-table.js'
import { parametersRelation } from '../relations/word-relations.js'
import type { BindContext } from '../scope/bind-context.js'

export function bindShow(show: Show, context: BindContext): Plan {
  context.cacheable = false
  const { columns, rows } = showRelation(show, context)
  return { kind: 'values', columns, rows: rows() }
}

function showRelation(show: Show, context: BindContext): SystemRelation {
  switch (show.what) {
    case 'tables':
      return tableNamesRelation(context)
    case 'parameters':
      return parametersRelation(context)
    case 'all':
      return everyOption(context)
    case 'users':
      return usersRelation(context)
    case 'user':
      return userRelation(show.user, context)
    case 'columns':
      return columnsRelation(shownTable(show.table, context), context)
    case 'partitions':
      return partitionsRelation(tableOf(show.table, context), context)
    case 'create table':
      return single('ddl', 'VARCHAR', createTableText(shownTable(show.table, context).schema))
    case 'create view':
      return createView(show.table, context)
    case 'create live view':
      return single('ddl', 'VARCHAR', createLiveText(liveOf(show.table, context).schema))
    case 'create materialized view':
      return single('ddl', 'VARCHAR', createMaterializedText(materializedOf(show.table, context, 'table').schema))
    case 'create database':
      return databaseRelation(show.objects, context)
    case 'option':
      return namedTable(show.option, context) ?? option(show.option, context)
  }
}

export function tableOf(table: TableName, { catalog }: Pick<BindContext, 'catalog'>): TableVersion {
  const version = table.schema === null ? catalog.table(table.name) : undefined
  if (version === undefined && table.schema === null && catalog.view(table.name) !== undefined)
    throw new SqlError(`cannot modify view [view=${table.name}]`, table.position)
  if (version === undefined) throw SqlError.tableMissing(table.name, table.position, relationNames(catalog))
  return version
}

/** The table, to change it or its rows. Only a refresh changes a materialized view. */
export function writableTable(
  table: TableName,
  context: Pick<BindContext, 'catalog'> & Partial<Pick<BindContext, 'refreshes'>>,
): TableVersion {
  const version = tableOf(table, context)
  if (context.refreshes?.viewId !== version.schema.id) requireTable(version.schema, table.position)
  return version
}

/** The table, or a view presented as a table with its columns. */
function shownTable(table: TableName, context: BindContext): TableVersion {
  const view = table.schema === null ? context.catalog.view(table.name) : undefined
  return view === undefined ? tableOf(table, context) : viewAsTable(view, context)
}

function createView(table: TableName, { catalog }: BindContext): SystemRelation {
  const view = catalog.view(table.name)
  if (view !== undefined) return single('ddl', 'VARCHAR', createViewText(view))
  const kind = kindOf(table.name, { catalog })
  throw kind === undefined
    ? new SqlError(`view does not exist [view=${table.name}]`, table.position)
    : new SqlError(`view name expected, got ${kind} name`, table.position)
}

/** What has the name, for errors. */
export function kindOf(
  name: string,
  { catalog }: Pick<BindContext, 'catalog'>,
): 'table' | 'view' | ReturnType<typeof viewKind> | undefined {
  const schema = catalog.table(name)?.schema
  if (schema === undefined) return catalog.view(name) === undefined ? undefined : 'view'
  return schema.materialized === undefined ? 'table' : viewKind(schema.materialized)
}

/** The live view of that name. */
export function liveOf({ name, position, schema }: TableName, { catalog }: Pick<BindContext, 'catalog'>): TableVersion {
  const version = schema === null ? catalog.table(name) : undefined
  if (version?.schema.materialized?.live !== undefined) return version
  const kind = kindOf(name, { catalog })
  throw kind === undefined
    ? new SqlError(`live view does not exist [view=${name}]`, position)
    : new SqlError(`live view name expected, got ${kind} name`, position)
}

/** The materialized view of that name. `others`: what the name may mean instead, for the error. */
export function materializedOf(
  { name, position, schema }: TableName,
  { catalog }: Pick<BindContext, 'catalog'>,
  others = 'table or view',
): TableVersion {
  const version = schema === null ? catalog.table(name) : undefined
  const { materialized } = version?.schema ?? {}
  if (version !== undefined && materialized !== undefined && materialized.live === undefined) return version
  throw version === undefined && catalog.view(name) === undefined
    ? new SqlError(`materialized view does not exist [view=${name}]`, position)
    : new SqlError(
        `materialized view name expected, got ${materialized === undefined ? others : 'live view'} name`,
        position,
      )
}

function single(name: string, type: 'STRING' | 'VARCHAR' | 'INT', value: string | number): SystemRelation {
  return { columns: [{ name, type: dataType(type) }], rows: () => [[value]] }
}

/** `show t`: the columns of a table, unless a setting has that name. */
function namedTable(
  { name, position, quoted }: Extract<Show, { what: 'option' }>['option'],
  context: BindContext,
): SystemRelation | null {
  const isOption =
    name.toLowerCase() === 'max_identifier_length' || sessionOption(name, context.evaluation) !== undefined
  const isTable = context.catalog.table(name) !== undefined || context.catalog.view(name) !== undefined
  if (isOption || !isTable) return null
  return columnsRelation(shownTable({ name, position, quoted, schema: null }, context), context)
}

/** Errors about an unknown name have the position after it. */
function option({ name, position }: Name, { sql, evaluation }: BindContext): SystemRelation {
  if (name.toLowerCase() === 'max_identifier_length') return single('max_identifier_length', 'INT', 63)
  const known = sessionOption(name, evaluation)
  if (known === undefined) {
    throw new SqlError(
      "expected 'TABLES', 'COLUMNS FROM <tab>', 'PARTITIONS FROM <tab>', 'TRANSACTION ISOLATION LEVEL', 'transaction_isolation', 'max_identifier_length', 'standard_conforming_strings', 'parameters', 'server_version', 'server_version_num', 'search_path', 'datestyle', or 'time zone'",
      sql.length - sql.slice(position + name.length).trimStart().length,
    )
  }
  return single(known.name, 'STRING', known.value)
}

function everyOption({ evaluation }: BindContext): SystemRelation {
  return {
    columns: columnList('name STRING, setting STRING, description STRING'),
    rows: () => allOptions(evaluation).map(({ name, value, description }) => [name, value, description]),
  }
}
