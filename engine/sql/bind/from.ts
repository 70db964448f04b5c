// FROM: tables, views, WITH names, relations of the system, functions that make rows, sub-queries.

import { SqlError } from '../../base/errors.js'
import { liveColumns, type TableVersion } from '../../storage/schema.js'
import { isTime } from '../functions/convert.js'
import type * as ast from '../parse/ast.js'
import { parseStatement } from '../parse/parse.js'
import type { Plan } from '../plan/plan.js'
import { systemRelation } from '../statements/relations.js'
import { type BindContext, nested, tableIndex } from './bind-context.js'
import { unknownFunction } from './call.js'
import { bindExpression } from './expression.js'
import { bindJoin } from './join.js'
import { bindQuery } from './query.js'
import { bindRowFunction } from './row-functions.js'
import { type Relation, scopeOf } from './scope.js'

/** FROM with its joins; without FROM one row without columns. */
export function bindSources({ from, joins }: ast.Select, context: BindContext): Relation {
  if (from === null) {
    return { plan: { kind: 'values', columns: [], rows: [[]] }, columns: [], timestampIndex: -1, order: 'none' }
  }
  return joins.reduce((left, join) => bindJoin(left, join, context), bindSource(from, context))
}

export function bindSource(source: ast.TableSource, context: BindContext): Relation {
  const relation = nested(context, source.position, () => sourceRelation(source, context))
  return withTimestamp(withAliases(relation, source), source.timestamp)
}

function sourceRelation(source: ast.TableSource, context: BindContext): Relation {
  switch (source.kind) {
    case 'table':
      return bindTable(source.table, source.alias?.name ?? source.table.name, context)
    case 'table function':
      return bindTableFunction(source, context)
    case 'query source':
      if (source.lateral) throw new SqlError('LATERAL is not supported', source.position)
      return named(bindQuery(source.query, context), source.alias?.name ?? null)
  }
}

/** The relation under a name; names inside of it are gone. */
function named({ plan, timestampIndex, order }: Relation, name: string | null): Relation {
  return { plan, columns: scopeOf(plan, name), timestampIndex, order }
}

// Tables ------------------------------------------------------------------------------------------------------------

function bindTable(table: ast.TableName, alias: string, context: BindContext): Relation {
  const common = table.schema === null ? commonTable(table.name, context) : undefined
  if (common !== undefined) return named(common, alias)
  if (table.schema === null) {
    const version = context.catalog.table(table.name)
    if (version !== undefined) return tableRelation(version, alias, context)
    const view = context.catalog.view(table.name)
    if (view !== undefined) return named(viewRelation(view.sql, context), alias)
  }
  const plan = relationPlan(table.schema, table.name, [], table.position, context)
  if (plan === undefined)
    throw SqlError.tableMissing(table.schema === null ? table.name : `${table.schema}.${table.name}`, table.position)
  return named({ plan, columns: [], timestampIndex: -1, order: 'none' }, alias)
}

export function tableRelation(version: TableVersion, alias: string, context: BindContext): Relation {
  const { schema } = version
  const live = liveColumns(schema)
  const plan: Plan = {
    kind: 'scan',
    columns: live.map(({ name, type }) => ({ name, type })),
    table: tableIndex(context, version),
    columnIds: live.map(({ id }) => id),
    ranges: null,
    filter: null,
    order: 'ascending',
  }
  const timestampIndex = live.findIndex(({ id }) => id === schema.timestampId)
  return { plan, columns: scopeOf(plan, alias), timestampIndex, order: timestampIndex < 0 ? 'none' : 'ascending' }
}

/** A WITH name sees only the names before it, so that one may hide a table of its own name. */
function commonTable(name: string, context: BindContext): Relation | undefined {
  const index = context.commonTables.findLastIndex((table) => table.name.toLowerCase() === name.toLowerCase())
  const table = context.commonTables[index]
  if (table === undefined) return undefined
  const hidden = context.commonTables.splice(index)
  try {
    return withColumnNames(bindQuery(table.query, context), table.columns)
  } finally {
    context.commonTables.push(...hidden)
  }
}

function viewRelation(sql: string, context: BindContext): Relation {
  const statement = parseStatement(sql)
  if (statement.kind !== 'query') throw new SqlError('a view must be a query', 0)
  const outer = context.commonTables.splice(0)
  try {
    return bindQuery(statement, context)
  } finally {
    context.commonTables.push(...outer)
  }
}

// Relations and functions -------------------------------------------------------------------------------------------

/** Rows that are made at planning: relations of the layers above, and the system's own. */
function relationPlan(
  schema: string | null,
  name: string,
  args: readonly string[],
  position: number,
  context: BindContext,
): Plan | undefined {
  const registered = context.catalog.relation(schema === null ? name : `${schema}.${name}`)
  const relation = registered ?? systemRelation({ schema, name, args, position, context })
  if (relation === undefined) return undefined
  context.cacheable = false
  const columns = relation.columns.map((column) => ({
    name: column.name,
    type: typeof column.type === 'string' ? { name: column.type, a: 0, b: 0 } : column.type,
  }))
  return { kind: 'values', columns, rows: relation.rows() }
}

function bindTableFunction(source: ast.TableFunction, context: BindContext): Relation {
  const { call, schema } = source
  const args = call.args.map((argument) =>
    bindExpression(argument, { context, columns: [], aggregates: null, windows: null }),
  )
  const alias = source.alias?.name ?? call.name
  const rows = schema === null ? bindRowFunction(call, args, context) : undefined
  if (rows !== undefined) return named(rows, alias)
  const texts = args.map((argument) => {
    if (argument.kind !== 'constant' || argument.value === null) return undefined
    return String(argument.value)
  })
  if (!texts.includes(undefined)) {
    const plan = relationPlan(schema, call.name, texts as string[], call.args[0]?.position ?? call.position, context)
    if (plan !== undefined) return named({ plan, columns: [], timestampIndex: -1, order: 'none' }, alias)
  }
  throw unknownFunction(call, args)
}

// Aliases -----------------------------------------------------------------------------------------------------------

function withAliases(relation: Relation, { alias, columnAliases }: ast.TableSource): Relation {
  const columns =
    alias === null ? relation.columns : relation.columns.map((column) => ({ ...column, source: alias.name }))
  return withColumnNames({ ...relation, columns }, columnAliases)
}

function withColumnNames(relation: Relation, names: readonly ast.Name[]): Relation {
  if (names.length === 0) return relation
  if (names.length > relation.columns.length) throw new SqlError('too many column aliases', names[0]?.position ?? 0)
  const columns = relation.columns.map((column, index) => ({ ...column, name: names[index]?.name ?? column.name }))
  const renamed = relation.plan.columns.map((column, index) => ({ ...column, name: names[index]?.name ?? column.name }))
  return { ...relation, columns, plan: { ...relation.plan, columns: renamed } }
}

/** `(query) timestamp(ts)`: the rows must be in that order already. */
function withTimestamp(relation: Relation, timestamp: ast.Name | null): Relation {
  if (timestamp === null) return relation
  const index = relation.columns.findIndex(({ name }) => name.toLowerCase() === timestamp.name.toLowerCase())
  const column = relation.columns[index]
  if (column === undefined) throw SqlError.columnMissing(timestamp.name, timestamp.position)
  if (!isTime(column.type)) throw new SqlError('not a TIMESTAMP', timestamp.position)
  return {
    ...relation,
    timestampIndex: column.index,
    order: relation.order === 'descending' ? 'descending' : 'ascending',
  }
}
