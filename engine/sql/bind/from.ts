// Binds FROM clauses to relations: tables, views, WITH names, system relations, table functions, sub-queries, and their
// joins.

import type { VirtualRelation } from '../../api/statements.js'
import { SqlError } from '../../base/errors.js'
import { relationOfFiles } from '../../parquet/read-columns.js'
import type { MaterializedSchema } from '../../storage/schema/materialized.js'
import { type ColumnSchema, liveColumns, resultTypeOf, type TableVersion } from '../../storage/schema/schema.js'
import { type DataType, dataType, isDay } from '../../types/column-types.js'
import { isText, isTime } from '../../types/convert.js'
import type * as ast from '../ast/ast.js'
import { relationNames, type StoredView } from '../catalog.js'
import { type Dialect, nativeDialect } from '../dialect.js'
import { scalarsNamed } from '../functions/registry/all.js'
import { ownName } from '../parse/expect.js'
import { parseViewQuery } from '../parse/parse.js'
import type { Expression, Plan } from '../plan/plan.js'
import { inputsOf } from '../plan/walk-plan.js'
import { systemRelation } from '../relations/system-relations.js'
import { type BindContext, isReturned, nested, type ReturnedRows, tableIndex } from '../scope/bind-context.js'
import { nameColumns } from '../scope/catalog-names.js'
import { withStep } from '../scope/interval-shift.js'
import { startingFrom } from '../scope/live-rows.js'
import { bindRowFunction } from '../scope/row-functions.js'
import { type Relation, scopeOf, withLeftOut } from '../scope/scope.js'
import { chainOf, readView, storedAlone } from '../scope/stored-view.js'
import { overriddenBy } from '../scope/substitute.js'
import { scalarCall } from '../typing/make-call.js'
import { hasForm, noMatch } from '../typing/mismatch.js'
import { unknownFunction, withoutVoid } from './call.js'
import { bindCatalogCall } from './catalog-calls.js'
import { bindExpression, rowlessScope } from './expression.js'
import { bindHorizonJoins } from './horizon-join.js'
import { bindJoin } from './join.js'
import { bindLateral, isLateral } from './lateral.js'
import { columnExpression, sorted } from './order.js'
import { bindQuery, plainRelation } from './query.js'
import { bindRecursive } from './recursive.js'
import { functionRelation, isSetReturning } from './set-returning-call.js'
import { bindJoinedSource } from './timed-source.js'
import { bindWindowJoin } from './window-join.js'

/** FROM with its joins. Without FROM it is one row without columns. */
export function bindSources({ from, joins }: ast.Select, context: BindContext): Relation {
  if (from === null) {
    return { plan: { kind: 'values', columns: [], rows: [[]] }, columns: [], timestampIndex: -1, order: 'none' }
  }
  return withJoins(bindJoinedSource(from, joins[0], context), joins, context)
}

export function withJoins(relation: Relation, joins: readonly ast.Join[], context: BindContext): Relation {
  if (joins[0]?.kind === 'horizon') return bindHorizonJoins(relation, joins, context)
  return joins.reduce((left, join) => bindJoined(left, join, context), relation)
}

function bindJoined(left: Relation, join: ast.Join, context: BindContext): Relation {
  const { source } = join
  if (isLateral(source)) {
    const relation = nested(context, source.position, () => bindLateral(left, join, source, context))
    return source.columnAliases.length === 0 ? relation : lateralNames(relation, left, source.columnAliases)
  }
  return join.kind === 'window' ? bindWindowJoin(left, join, context) : bindJoin(left, join, context)
}

function lateralNames(relation: Relation, left: Relation, names: readonly ast.Name[]): Relation {
  const first = left.columns.length
  if (names.length > relation.columns.length - first)
    throw new SqlError('too many column aliases', names[0]?.position ?? 0)
  const columns = relation.columns.map((column, index) => ({
    ...column,
    name: names[index - first]?.name ?? column.name,
  }))
  return { ...relation, columns }
}

export function bindSource(source: ast.TableSource, context: BindContext): Relation {
  const relation = nested(context, source.position, () => sourceRelation(source, context))
  return withTimestamp(withAliases(relation, source), source.timestamp)
}

function sourceRelation(source: ast.TableSource, context: BindContext): Relation {
  switch (source.kind) {
    case 'table':
      return bindTable(source.table, source.alias?.name ?? ownName(source.table), context)
    case 'table function':
      return bindTableFunction(source, context)
    case 'query source':
      return joinedInside(source, context) ?? named(bindQuery(source.query, context), source.alias?.name ?? null)
    case 'variable source':
      throw new SqlError(`tried to use undeclared variable \`@${source.name}\``, source.position)
  }
}

/** `((a join b on ..) join c on ..)`: parentheses around a join do not hide names. */
function joinedInside({ query, alias }: ast.QuerySource, context: BindContext): Relation | undefined {
  const { body, orderBy, limit, commonTables } = query
  if (alias !== null || body.kind !== 'select' || !body.implicit || body.from === null) return undefined
  const isNested = body.joins.length > 0 || (body.from.kind === 'query source' && body.from.alias === null)
  const isPlain = body.where === null && body.sampleBy === null && body.latestOn === null && body.pivot === null
  if (!isNested || !isPlain || orderBy.length > 0 || limit !== null || commonTables.length > 0) return undefined
  return bindSources(body, context)
}

/** The relation under a source name, which replaces the names within it. */
function named({ plan, timestampIndex, order }: Relation, name: string | null): Relation {
  return { plan, columns: scopeOf(plan, name), timestampIndex, order }
}

// Tables ------------------------------------------------------------------------------------------------------------

function bindTable(table: ast.TableName, alias: string, context: BindContext): Relation {
  if (isReturned(table, context.returned)) return returnedRelation(context.returned, alias)
  const common = table.schema === null ? commonTable(table, context) : undefined
  if (common !== undefined) return named(common, alias)
  if (table.schema === null) {
    const version = context.catalog.table(table.name)
    const { materialized } = version?.schema ?? {}
    if (version !== undefined && materialized !== undefined)
      return { ...materializedView(version, materialized, table.position, alias, context), ofTable: true }
    if (version !== undefined) return { ...ownTable(version, alias, context), ofTable: true }
    const view = context.catalog.view(table.name)
    if (view !== undefined) return named(inView(view, table.position, context), alias)
    const counter = counterRelation(table.name, context)
    if (counter !== undefined) return named(counter, alias)
  }
  const relation = systemSource({ ...table, args: [], called: false, alias }, context)
  if (relation === undefined) throw tableMissing(table, context)
  return relation
}

/** The error suggests a table, a view or a query of WITH. */
function tableMissing({ schema, name, position }: ast.TableName, context: BindContext): SqlError {
  if (schema !== null) return SqlError.tableMissing(`${schema}.${name}`, position)
  const common = context.commonTables.map(({ key }) => key)
  return SqlError.tableMissing(name, position, [...common, ...relationNames(context.catalog)])
}

/** In the native dialect a column declared as a day is a DATE like any other, in milliseconds. */
function shownType(column: ColumnSchema, { dialect }: BindContext): DataType {
  const type = resultTypeOf(column)
  return isDay(type) && !dialect.dateIsDay ? column.type : type
}

export function tableRelation(
  version: TableVersion,
  alias: string,
  context: BindContext,
  live: readonly ColumnSchema[] = liveColumns(version.schema),
): Relation {
  const { schema } = version
  const plan: Plan = {
    kind: 'scan',
    columns: live.map((column) => ({ name: column.name, type: shownType(column, context) })),
    table: tableIndex(context, version),
    columnIds: live.map(({ id }) => id),
    ranges: null,
    filter: null,
    order: 'ascending',
  }
  const timestampIndex = live.findIndex(({ id }) => id === schema.timestampId)
  const primary = new Set(schema.keys?.find((key) => key.primary)?.columnIds)
  const columns = scopeOf(plan, alias).map((column, index) =>
    primary.has(live[index]?.id ?? -1) ? { ...column, primary: true as const } : column,
  )
  return { plan, columns, timestampIndex, order: timestampIndex < 0 ? 'none' : 'ascending' }
}

/** The table as the session's transaction sees it. */
export function ownTable(version: TableVersion, alias: string, context: BindContext): Relation {
  return context.asChanged(version, alias, context, (stored) => tableRelation(stored, alias, context))
}

/** `select last_value from s`: the row of a sequence or column counter, which PostgreSQL presents as a table. */
function counterRelation(name: string, context: BindContext): Relation | undefined {
  const { catalog } = context
  const last = catalog.counters?.last(name)
  if (last === undefined) return undefined
  context.cacheable = false
  const columns = [
    { name: 'last_value', type: dataType('LONG') },
    { name: 'log_cnt', type: dataType('LONG') },
    { name: 'is_called', type: dataType('BOOLEAN') },
  ]
  const stored = catalog.sequence?.(name)?.sequence
  const isCalled = last !== 0n || (stored !== undefined && stored.given !== null)
  const rows = [[isCalled ? last : BigInt(stored?.start ?? 1), 0n, isCalled]]
  return plainRelation({ kind: 'values', columns, rows })
}

function returnedRelation({ version, rows }: ReturnedRows, alias: string): Relation {
  const columns = liveColumns(version.schema).map((column) => ({ name: column.name, type: resultTypeOf(column) }))
  return named(plainRelation({ kind: 'values', columns, rows }), alias)
}

/**
 * Binds a WITH name. Only earlier WITH names are visible in its query, so it may have the name of a table that it
 * reads.
 */
function commonTable({ name, position }: ast.TableName, context: BindContext): Relation | undefined {
  const wanted = name.toLowerCase()
  const index = context.commonTables.findLastIndex(({ key }) => key === wanted)
  const table = context.commonTables[index]
  if (table === undefined) return undefined
  if ('used' in table) {
    table.used = true
    const { columns, id } = table
    return plainRelation({ kind: 'working', columns, id })
  }
  if ('rows' in table) {
    const { columns, rows } = table
    if (columns === null) throw new SqlError(`WITH query "${name}" does not have a RETURNING clause`, position)
    return plainRelation({ kind: 'values', columns, rows })
  }
  const hidden = context.commonTables.splice(index)
  try {
    const recursive = bindRecursive(table, context)
    if (recursive !== undefined) return recursive
    return withColumnNames(bindQuery(table.query, context), table.columns)
  } finally {
    context.commonTables.push(...hidden)
  }
}

/**
 * A materialized view: its query, and where the statement may use them its stored buckets in place of those that would
 * be computed. The transaction's own changes are not in stored buckets.
 */
function materializedView(
  version: TableVersion,
  { sql, baseId, live }: MaterializedSchema,
  position: number,
  alias: string,
  context: BindContext,
): Relation {
  const stored = (): Relation => tableRelation(version, alias, context)
  const { viewRead, readsStored, refreshes } = context
  if (viewRead === 'stored' && readsStored && refreshes === null) return storedAlone(version, stored(), context)
  const query = (): Relation =>
    boundView(startingFrom(parseViewQuery(sql), live, baseId, context), sql, context, nativeDialect)
  const computed = named(atView(version.schema, position, query), alias)
  const chain = chainOf(baseId, computed.plan, context)
  return readView(computed, stored, version, chain, alias, context, {
    query: (inner) => viewRelation(sql, inner).plan,
    rows: (columns) => tableRelation(version, alias, context, columns).plan,
    call: (name, args) => scalarCall(name, args, 0, context),
  })
}

function inView(view: StoredView, position: number, context: BindContext): Relation {
  const query = atView(view, position, () => parseViewQuery(view.sql))
  const overridden = overriddenBy(context.declared, query)
  return atView(view, position, () => boundView(overridden, view.sql, context, context.dialect))
}

/** Reports an error in a view's text at the view's name, since its position is not one in the statement. */
function atView<Made>(view: Pick<StoredView, 'name'>, position: number, make: () => Made): Made {
  try {
    return make()
  } catch (thrown) {
    if (!(thrown instanceof SqlError)) throw thrown
    throw new SqlError(`${thrown.message} [view=${view.name}]`, position)
  }
}

/** Refreshes store what queries in the native dialect give, so all clients read that. */
export function viewRelation(sql: string, context: BindContext): Relation {
  return boundView(parseViewQuery(sql), sql, context, nativeDialect)
}

/**
 * Binds a view with its own text and without the WITH names around it. Its tables and sub-queries are added to the
 * statement's.
 */
function boundView(query: ast.Query, sql: string, context: BindContext, dialect: Dialect): Relation {
  const inner: BindContext = { ...context, sql, dialect, commonTables: [], returned: null, rowsNow: null }
  const relation = bindQuery(query, inner)
  context.cacheable = inner.cacheable
  return relation
}

// Relations and functions -------------------------------------------------------------------------------------------

interface SystemSource {
  readonly schema: string | null
  readonly name: string
  readonly args: readonly string[]
  /** Written as a function. */
  readonly called: boolean
  readonly position: number
  readonly alias: string
}

/**
 * A relation whose rows are computed while planning: registered by another layer, or one of
 * relations/system-relations.ts.
 */
function systemSource({ alias, ...request }: SystemSource, context: BindContext): Relation | undefined {
  const { schema, name } = request
  const registered = context.catalog.relation(schema === null ? name : `${schema}.${name}`)
  if (registered?.takesText === true && !request.called) return undefined
  if (registered !== undefined && request.args.length !== (registered.takesText ? 1 : 0))
    throw new SqlError(
      registered.takesText ? `${name}() takes one text` : `${name}() takes no arguments`,
      request.position,
    )
  const relation = registered ?? systemRelation({ ...request, context })
  if (relation === undefined) return undefined
  if (!('lasting' in relation)) context.cacheable = false
  const columns = relation.columns.map((column) => ({
    name: column.name,
    type: typeof column.type === 'string' ? { name: column.type, a: 0, b: 0 } : column.type,
  }))
  const index = 'index' in relation ? relation.index?.() : undefined
  const plan: Plan = { kind: 'values', columns, rows: index?.rows ?? relation.rows(request.args[0]), index }
  const isCatalog = schema === 'information_schema' || /^pg_/i.test(name)
  const scope = scopeOf(plan, alias).map((column, index) => {
    const written = relation.columns[index]
    if (written !== undefined && 'hidden' in written) return { ...column, hidden: true as const }
    return isCatalog && nameColumns.has(column.name) ? { ...column, ofNames: true as const } : column
  })
  return { plan, columns: scope, timestampIndex: -1, order: 'none' }
}

function bindTableFunction(source: ast.TableFunction, context: BindContext): Relation {
  const { schema } = source
  const relation = schema === null ? context.catalog.relation(source.call.name) : undefined
  if (relation?.files !== undefined) return filesSource(source, relation.files, context)
  if (relation?.table !== undefined) return foreignTableSource(source, relation.table, context)
  const call = withStep(withoutVoid(source.call, context), context.parameters)
  const args = call.args.map((argument) => bindExpression(argument, rowlessScope(context)))
  const alias = source.alias?.name ?? call.name
  if (expands(source, args)) return functionRelation(source, context)
  const rows = schema === null || schema === 'pg_catalog' ? bindRowFunction(call, args, context) : undefined
  if (rows !== undefined) {
    // As in PostgreSQL, the alias also names the column of an array's elements.
    const isArray = call.name.toLowerCase() === 'unnest' && source.alias !== null
    return ofFunction(isArray ? withColumnNames(named(rows, alias), [source.alias]) : named(rows, alias))
  }
  const strings = args.map((argument) => {
    if (argument.kind !== 'constant' || argument.value === null || !isText(argument.type)) return undefined
    return String(argument.value)
  })
  if (!strings.includes(undefined)) {
    const position = call.args[0]?.position ?? call.position
    const relation = systemSource(
      { schema, name: call.name, args: strings as string[], called: true, position, alias },
      context,
    )
    if (relation !== undefined) return relation
  }
  if (!isScalarSource(source, context)) throw notSource(call, args)
  return scalarSource(call, args, alias, context)
}

/** Rows of external files. The plan is not cached, because it depends on the files' contents. */
function filesSource(
  { call, alias }: ast.TableFunction,
  files: NonNullable<VirtualRelation['files']>,
  context: BindContext,
): Relation {
  const [first, second, ...more] = call.args
  const isKnown = second === undefined || (second.kind === 'string' && second.value.toLowerCase() === 'exact')
  if (first?.kind !== 'string' || !isKnown || more.length > 0)
    throw new SqlError(
      `${call.name}() takes the name of a file, or a pattern, as one literal text, and 'exact' as its only option`,
      first?.position ?? call.position,
    )
  context.requireWrite()
  context.cacheable = false
  const sources = files(first.value, first.position)
  const { columns, rows, leftOut } = relationOfFiles(sources, second !== undefined)
  const wanted = columns.map(({ name, type }, index) => ({ index, name, type }))
  const plan: Plan = {
    kind: 'foreign',
    exact: second !== undefined,
    columns: wanted.map(({ name, type }) => ({ name, type })),
    files: sources,
    find: null,
    wanted,
    conditions: [],
    rows,
  }
  const scope = withLeftOut(scopeOf(plan, alias?.name ?? call.name), leftOut)
  return { plan, columns: scope, timestampIndex: -1, order: 'none' }
}

/** Rows of a table that other programs wrote. The plan is not cached, because it depends on the table's contents. */
function foreignTableSource(
  { call, alias }: ast.TableFunction,
  table: NonNullable<VirtualRelation['table']>,
  context: BindContext,
): Relation {
  const [first, ...more] = call.args
  if (first?.kind !== 'string' || more.length > 0)
    throw new SqlError(
      `${call.name}() takes the name of the table's metadata, or of its folder, as one literal text`,
      first?.position ?? call.position,
    )
  context.requireWrite()
  context.cacheable = false
  const { columns, rows, find, leftOut } = table(first.value, first.position)
  const plan: Plan = {
    kind: 'foreign',
    exact: false,
    columns: columns.map(({ name, type }) => ({ name, type })),
    files: [],
    find,
    wanted: columns.map((column, index) => ({ index, ...column })),
    conditions: [],
    rows,
  }
  const scope = withLeftOut(scopeOf(plan, alias?.name ?? call.name), leftOut)
  return { plan, columns: scope, timestampIndex: -1, order: 'none' }
}

/**
 * Whether the function is bound by replicate.ts. Constant arrays and series are bound as a whole in
 * scope/row-functions.ts instead.
 */
function expands({ call, schema, ordinality }: ast.TableFunction, [first]: readonly Expression[]): boolean {
  const isOwn = schema === null || schema === 'pg_catalog' || schema === 'information_schema'
  if (!isOwn || !isSetReturning(call.name)) return false
  const isArray = call.name.toLowerCase() === 'unnest' && call.args.length === 1 && first?.type.name === 'ARRAY'
  return ordinality || call.jsonColumns !== undefined || !(isArray || call.name.toLowerCase() === 'generate_series')
}

function ofFunction(relation: Relation): Relation {
  return { ...relation, columns: relation.columns.map((column) => ({ ...column, fromFunction: true as const })) }
}

/** `from current_schema()`: one row with the value of a scalar function. */
function scalarSource(call: ast.Call, args: readonly Expression[], alias: string, context: BindContext): Relation {
  const value = bindCatalogCall(call, rowlessScope(context)) ?? scalarCall(call.name, args, call.position, context)
  const input: Plan = { kind: 'values', columns: [], rows: [[]] }
  const columns = [{ name: alias, type: value.type }]
  const plan: Plan = { kind: 'project', columns, input, expressions: [value] }
  return ofFunction({ plan, columns: scopeOf(plan, alias), timestampIndex: -1, order: 'none' })
}

/** Whether a scalar function may be a source. PostgreSQL's drivers use any: `select * from upper($1) as result`. */
function isScalarSource({ call }: ast.TableFunction, { dialect }: BindContext): boolean {
  const isCalled = sourceFunctions.has(call.name.toLowerCase()) || dialect.anyFunctionInFrom
  return isCalled && scalarsNamed(call.name).length > 0
}

function notSource(call: ast.Call, args: readonly Expression[]): SqlError {
  if (scalarsNamed(call.name).length > 0) return new SqlError('function must return CURSOR', call.position)
  return hasForm(call.name) ? noMatch(call.name, args, call.position) : unknownFunction(call, args)
}

/** Functions that are row sources in every dialect. */
const sourceFunctions: ReadonlySet<string> = new Set([
  ...['string_to_array', 'current_schemas', 'current_schema', 'current_database', 'version'],
])

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

// `(query) timestamp(ts)`: declares the designated timestamp. Rows that are not known to be in its order are sorted,
// and a NULL in it is an error.

function withTimestamp(relation: Relation, timestamp: ast.Name | null): Relation {
  if (timestamp === null) return relation
  const found = relation.columns.find(({ name }) => name.toLowerCase() === timestamp.name.toLowerCase())
  if (found === undefined) throw SqlError.columnMissing(timestamp.name, timestamp.position)
  if (!isTime(found.type)) throw new SqlError('not a TIMESTAMP', timestamp.position)
  const { index } = found
  const isInOrder = relation.timestampIndex === index && relation.order !== 'none'
  // Without a sort the order is that of a table, whose timestamps are never NULL.
  if (isInOrder && !hasSort(relation.plan)) return relation
  const present = withoutNull(relation, index, timestamp.position)
  return isInOrder ? present : sorted(present, [{ index, descending: false, nullsFirst: true }])
}

function hasSort(plan: Plan): boolean {
  return plan.kind === 'sort' || inputsOf(plan).some(hasSort)
}

function withoutNull(relation: Relation, index: number, position: number): Relation {
  const { columns } = relation.plan
  const expressions = columns.map((column, at): Expression => {
    const value = columnExpression(column, at)
    return at === index ? { kind: 'call', name: 'present_time', args: [value], type: column.type, position } : value
  })
  return { ...relation, plan: { kind: 'project', columns, input: relation.plan, expressions } }
}
