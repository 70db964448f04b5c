// Binds SELECT: FROM, WHERE and LATEST ON (the last row for each key), then the select list, evaluated for each row,
// group or time bucket, then window functions, QUALIFY, DISTINCT, and ORDER BY, which may refer to expressions that are
// not in the select list.

import { assert } from '../../base/assert.js'
import { SqlError } from '../../base/errors.js'
import { isTime } from '../../types/convert.js'
import type * as ast from '../ast/ast.js'
import { expressionText } from '../parse/text.js'
import { pgRelation } from '../pg-catalog/catalog.js'
import type { AggregateCall, Expression, Plan, PlanColumn, WindowCall } from '../plan/plan.js'
import { AggregateList } from '../scope/aggregate-list.js'
import { asCountCall } from '../scope/bare-count.js'
import type { BindContext } from '../scope/bind-context.js'
import { withGapfill } from '../scope/gapfill.js'
import { hasAggregate } from '../scope/map-syntax.js'
import { type NamedItem, type NamingRules, outputNames } from '../scope/output-names.js'
import { unpivoted, withLists } from '../scope/pivot.js'
import { timestampHint, wildcardInSamples } from '../scope/sample-errors.js'
import { type Relation, scopeOf } from '../scope/scope.js'
import { expressionKey } from '../typing/types.js'
import { markIndex, rewriteExpression } from '../typing/walk-expression.js'
import type { CorrelatedRows } from './correlated.js'
import { bindCondition, bindExpression, type ExpressionScope, windowMark } from './expression.js'
import { bindSources } from './from.js'
import { bindGroups, keysOf } from './group.js'
import { withNulls } from './grouping-sets.js'
import { columnExpression, dropExtra, positionOf, sorted, sortKey, withExtra } from './order.js'
import { bindSample } from './sample.js'
import { SelectListIndex } from './select-list-index.js'
import { replicateRows, setReturningCalls } from './set-returning-call.js'
import { plannedValues } from './subquery.js'
import { rowAsText } from './whole-row.js'
import { withWindowJoins } from './window-join.js'

/** A column of the select list. */
export interface SelectColumn extends NamedItem {
  readonly bound: Expression
  readonly position: number
}

/** The select list while it is being bound. */
export interface SelectList {
  /** The rows that the bound expressions read. */
  input: Relation
  columns: SelectColumn[]
  readonly aggregates: AggregateCall[]
  readonly windows: WindowCall[]
  /** ORDER BY expressions that are not columns of the list. */
  hidden: Expression[]
  having: Expression | null
}

interface OrderKey {
  readonly item: ast.OrderItem
  /** Index into the list, or after its end into `hidden`. */
  readonly index: number
}

interface SelectOptions {
  /** The rows of the sources, if they are bound already. */
  readonly from?: Relation
  /** Adds the designated timestamp as a last column, if the list does not select it. */
  readonly isTimed?: boolean
}

export function bindSelect(
  written: ast.Select,
  writtenOrder: readonly ast.OrderItem[],
  context: BindContext,
  options: SelectOptions = {},
): Relation {
  const { viewRead, ...plain } = written
  if (viewRead !== undefined)
    return readingViews(viewRead.read, context, () => bindSelect(plain, writtenOrder, context, options))
  if (written.pivot !== null) {
    const pivot = withLists(written, written.pivot, (query) => plannedValues(query, context))
    return bindSelect(unpivoted(written, pivot), writtenOrder, context, options)
  }
  const { select, orderBy } = withWindowJoins(withGapfill(written, context.parameters), writtenOrder)
  const grouped = select.groupAll === true ? groupedByAll(select) : select
  return bindList(grouped, orderBy, bindRows(grouped, context, options.from), options.isTimed === true, context)
}

/** Binds with the way to read materialized views that a hint asks for. */
function readingViews<Made>(read: BindContext['viewRead'], context: BindContext, bind: () => Made): Made {
  const before = context.viewRead
  context.viewRead = read
  try {
    return bind()
  } finally {
    context.viewRead = before
  }
}

/** GROUP BY ALL is what a list with aggregates does anyway; without aggregates it is DISTINCT. */
function groupedByAll(select: ast.Select): ast.Select {
  return hasAggregate(select.items) ? select : { ...select, distinct: true }
}

function bindList(
  select: ast.Select,
  orderBy: readonly ast.OrderItem[],
  before: Relation,
  isTimed: boolean,
  context: BindContext,
): Relation {
  const expanding = setReturningCalls(select.items)
  const bare: ExpressionScope = { context, columns: before.columns, aggregates: null, windows: null }
  const expanded = expanding.length === 0 ? null : replicateRows(before, expanding, bare)
  const plain = expanded?.relation ?? before
  const source = select.groupingSets === undefined ? plain : withNulls(plain)
  const list: SelectList = { input: source, columns: [], aggregates: [], windows: [], hidden: [], having: null }
  const aliases = new Map<string, Expression>()
  const rows = { relation: source }
  const scope = selectScope(select, list, aliases, context, rows, expanded?.ordinal)
  bindItems(select, list, scope, aliases)
  const names = outputNames(list.columns, namingRules(select, context))
  const places = new SelectListIndex(names, list.columns, scope.columns)
  const order = orderBy.map((item) => bindOrderItem(item, places, list, scope))
  const distinctOn = select.distinctOn.map((expression) => {
    const item: ast.OrderItem = { position: expression.position, expression, descending: false, nulls: null }
    return bindOrderItem(item, places, list, scope).index
  })
  if (select.having !== null) list.having = bindCondition(select.having, scope)
  if (select.qualify !== undefined) list.hidden.push(bindCondition(select.qualify, scope))
  list.input = rows.relation
  if (list.aggregates.length > 0 && select.groupBy.length === 0) requireKeys(order, list, select.sampleBy)
  if (select.sampleBy !== null) bindSample(select.sampleBy, select, list, scope)
  else if (list.aggregates.length > 0 || select.groupBy.length > 0 || select.groupingSets !== undefined)
    bindGroups(select, list, scope, places)
  else if (list.having !== null) throw new SqlError('HAVING needs GROUP BY or aggregates', list.having.position)
  applyWindows(list)
  if (select.qualify !== undefined) applyQualify(list)
  if (distinctOn.length > 0) return firstRows(list, names, order, distinctOn)
  const { timestampIndex, order: timeOrder } = list.input
  const isKept = isTimed && !select.distinct && timestampIndex >= 0 && timeOrder === 'ascending'
  const isHidden = isKept && timestampOf(list) < 0
  return isHidden ? arrangeTimed(select, list, names, order) : arrange(select, list, names, order)
}

/** Adds the designated timestamp as a last column. */
function arrangeTimed(
  select: ast.Select,
  list: SelectList,
  names: readonly string[],
  order: readonly OrderKey[],
): Relation {
  const { plan, timestampIndex: index } = list.input
  const column = plan.columns[index]
  assert(column !== undefined, 'B2: the rows have a designated timestamp')
  const bound = columnExpression(column, index)
  const count = names.length
  list.columns.push({ alias: null, expression: null, name: timeName, bound, position: 0 })
  const isTime = (at: number): boolean => {
    const hidden = list.hidden[at]
    return hidden?.kind === 'column' && hidden.index === index
  }
  const moved = order.map((key) =>
    key.index < count ? key : { ...key, index: isTime(key.index - count) ? count : key.index + 1 },
  )
  return arrange(select, list, [...names, timeName], moved)
}

/** Name of the column that arrangeTimed() adds. */
export const timeName = '$time'

/** How result columns are named. Sub-queries use the native names, since the queries around them refer to these. */
function namingRules({ from, joins }: ast.Select, context: BindContext): NamingRules {
  const { sql, dialect, depth } = context
  const sources = [from, ...joins.map(({ source }) => source)]
  const ofCatalog = dialect.postgresNames && sources.some((source) => isOfCatalog(source, context))
  return { sql, dialect, outermost: depth === 0, ofCatalog }
}

function isOfCatalog(source: ast.TableSource | null, { catalog }: BindContext): boolean {
  if (source?.kind !== 'table') return false
  const { schema, name } = source.table
  const known = schema?.toLowerCase() ?? 'pg_catalog'
  if (known !== 'pg_catalog' && known !== 'information_schema') return false
  if (pgRelation(known, name.toLowerCase()) === undefined) return false
  return schema !== null || (catalog.table(name) === undefined && catalog.view(name) === undefined)
}

function selectScope(
  select: ast.Select,
  list: SelectList,
  aliases: ReadonlyMap<string, Expression>,
  context: BindContext,
  rows: CorrelatedRows,
  ordinal: Expression | undefined,
): ExpressionScope {
  const namedWindows = new Map(select.windows.map(({ name, window }) => [name.name.toLowerCase(), window]))
  return {
    context,
    columns: list.input.columns,
    aliases,
    aggregates: new AggregateList(list.aggregates),
    windows: list.windows,
    namedWindows,
    ordinal,
    rows,
  }
}

/** FROM, joins and WHERE, then LATEST ON, which sees only rows that pass WHERE. */
function bindRows(select: ast.Select, context: BindContext, from: Relation | undefined): Relation {
  const source = from ?? bindSources(select, context)
  const { latestOn, where } = select
  const filtered = where === null ? source : filter(source, where, context)
  return latestOn === null ? filtered : bindLatest(filtered, latestOn, context)
}

function filter(relation: Relation, where: ast.Expression, context: BindContext): Relation {
  const rows = { relation }
  const scope = { context, columns: relation.columns, aggregates: null, windows: null, rows }
  const predicate = bindCondition(where, scope)
  if (predicate.kind === 'constant' && predicate.value === true) return relation
  const { plan } = rows.relation
  const filtered: Relation = { ...relation, plan: { kind: 'filter', columns: plan.columns, input: plan, predicate } }
  return dropExtra(filtered, relation.plan.columns.length)
}

// The list ----------------------------------------------------------------------------------------------------------

function bindItems(
  select: ast.Select,
  list: SelectList,
  scope: ExpressionScope,
  aliases: Map<string, Expression>,
): void {
  for (const written of select.items) {
    const item = asCountCall(written, scope, aliases)
    if (item.expression.kind === 'star') {
      if (select.sampleBy !== null) throw wildcardInSamples(item.expression.position)
      list.columns.push(...starColumns(item.expression, scope))
      continue
    }
    const bound = bindExpression(rowAsText(item.expression, scope), scope)
    if (item.alias !== null) aliases.set(item.alias.name.toLowerCase(), bound)
    list.columns.push({ alias: item.alias, expression: item.expression, name: '', bound, position: item.position })
  }
}

function starColumns({ table, exclude, position }: ast.Star, scope: ExpressionScope): SelectColumn[] {
  const wanted = table?.toLowerCase()
  const left = new Set(exclude.map(({ name }) => name.toLowerCase()))
  const columns = scope.columns.filter(
    ({ source, hidden, merged }) =>
      hidden !== true && (wanted === undefined ? merged !== true : source?.toLowerCase() === wanted),
  )
  if (wanted !== undefined && columns.length === 0) throw new SqlError('invalid table alias', position)
  if (columns.length === 0) throw new SqlError("'from' expected", position)
  for (const name of exclude) {
    if (!columns.some((column) => column.name.toLowerCase() === name.name.toLowerCase()))
      throw SqlError.columnMissing(name.name, name.position)
  }
  return columns
    .filter(({ name }) => !left.has(name.toLowerCase()))
    .map(({ name, index, type }) => ({
      alias: null,
      expression: null,
      name,
      bound: { kind: 'column', index, type, position },
      position,
    }))
}

// ORDER BY ----------------------------------------------------------------------------------------------------------

function bindOrderItem(
  item: ast.OrderItem,
  places: SelectListIndex,
  list: SelectList,
  scope: ExpressionScope,
): OrderKey {
  const { expression } = item
  if (expression.kind === 'string') throw SqlError.columnMissing(`'${expression.value}'`, expression.position)
  const position = positionOf(expression, places.count)
  const named = position ?? namedColumn(expression, places)
  if (named !== null) return { item, index: named }
  const bound = bindExpression(expression, scope)
  const shown = places.computed(expressionKey(bound))
  if (shown !== null) return { item, index: shown }
  return { item, index: places.count + list.hidden.push(bound) - 1 }
}

/**
 * The select item of that alias or name, of the same text, or of an aggregate's name (`order by count`, the last
 * `sum`).
 */
function namedColumn(expression: ast.Expression, places: SelectListIndex): number | null {
  if (expression.kind === 'column' && expression.path.length === 1) {
    const wanted = (expression.path[0] ?? '').toLowerCase()
    return places.named(wanted) ?? places.lastCall(wanted, places.isColumn(wanted))
  }
  if (expression.kind !== 'call' || expression.over !== null) return null
  return places.written(expressionText(expression).toLowerCase())
}

/** Throws if ORDER BY refers to columns that are neither group keys nor, with SAMPLE BY, the timestamp. */
function requireKeys(order: readonly OrderKey[], list: SelectList, sampleBy: ast.SampleBy | null): void {
  if (order.length === 0) return
  const keys = new Set(list.columns.flatMap(({ bound }) => keysOf(bound)).map((key) => expressionKey(key)))
  const timeIndex = sampleBy === null ? -1 : list.input.timestampIndex
  for (const { item, index } of order) {
    const hidden = list.hidden[index - list.columns.length]
    if (hidden?.kind !== 'column' || hidden.index === timeIndex || keys.has(expressionKey(hidden))) continue
    throw orderedOutside(item)
  }
}

// Windows -----------------------------------------------------------------------------------------------------------

function applyWindows(list: SelectList): void {
  if (list.windows.length === 0) return
  const { input } = list
  const width = input.plan.columns.length
  const added = list.windows.map(({ name, type }): PlanColumn => ({ name, type }))
  const plan: Plan = {
    kind: 'window',
    columns: [...input.plan.columns, ...added],
    input: input.plan,
    calls: [...list.windows],
  }
  list.input = { ...input, plan }
  const lift = (expression: Expression): Expression =>
    rewriteExpression(expression, (part) =>
      part.kind === 'call' && part.name === windowMark
        ? { kind: 'column', index: width + markIndex(part), type: part.type, position: part.position }
        : undefined,
    )
  list.columns = list.columns.map((column) => ({ ...column, bound: lift(column.bound) }))
  list.hidden = list.hidden.map(lift)
}

/** Keeps the rows that satisfy QUALIFY, whose condition is the last hidden expression. */
function applyQualify(list: SelectList): void {
  const predicate = list.hidden.pop()
  if (predicate === undefined) return
  const { input } = list
  list.input = { ...input, plan: { kind: 'filter', columns: input.plan.columns, input: input.plan, predicate } }
}

// Putting it together -----------------------------------------------------------------------------------------------

function arrange(select: ast.Select, list: SelectList, names: readonly string[], order: readonly OrderKey[]): Relation {
  const width = names.length
  const projected = project(list, names)
  if (!select.distinct)
    return dropExtra(
      sorted(
        projected,
        order.map((key) => keyOf(key, projected)),
      ),
      width,
    )
  const outside = order.find(({ index }) => index >= width)
  if (outside !== undefined) throw orderedOutside(outside.item)
  const { plan } = projected
  const distinct: Relation = {
    ...projected,
    plan: { kind: 'distinct', columns: plan.columns, input: plan },
    timestampIndex: -1,
    order: 'none',
  }
  return sorted(
    distinct,
    order.map((key) => keyOf(key, distinct)),
  )
}

/** DISTINCT ON: the first row of each key in the order of ORDER BY. */
function firstRows(
  list: SelectList,
  names: readonly string[],
  order: readonly OrderKey[],
  keys: readonly number[],
): Relation {
  const rows = project(list, names)
  const { plan: input } = sorted(
    rows,
    order.map((key) => keyOf(key, rows)),
  )
  const shown = input.columns.slice(0, names.length)
  const groups: Plan = {
    kind: 'aggregate',
    columns: [...keys.map((index) => input.columns[index] as PlanColumn), ...shown],
    input,
    keys: keys.map((index) => columnExpression(input.columns[index] as PlanColumn, index)),
    aggregates: shown.map((column, index) => ({
      name: 'first',
      args: [columnExpression(column, index)],
      type: column.type,
      position: 0,
    })),
  }
  const values = shown.map((column, index) => columnExpression(column, keys.length + index))
  const plan = projectPlan(groups, shown, values)
  return { plan, columns: scopeOf(plan, null), timestampIndex: -1, order: 'none' }
}

function orderedOutside({ expression, position }: ast.OrderItem): SqlError {
  const detail = expression.kind === 'column' ? `. Invalid column: ${expressionText(expression)}` : ''
  return new SqlError(`ORDER BY expressions must appear in select list${detail}`, position)
}

function keyOf({ item, index }: OrderKey, { plan }: Relation): ReturnType<typeof sortKey> {
  return sortKey(index, (plan.columns[index] as PlanColumn).type, item)
}

function project(list: SelectList, names: readonly string[]): Relation {
  const { input } = list
  const expressions = [...list.columns.map(({ bound }) => bound), ...list.hidden]
  const columns = expressions.map(({ type }, index): PlanColumn => ({ name: names[index] ?? `$${index}`, type }))
  const timestampIndex = timestampOf(list)
  const plan = isIdentity(expressions, input.plan)
    ? renamed(input.plan, columns)
    : projectPlan(input.plan, columns, expressions)
  return { plan, columns: scopeOf(plan, null), timestampIndex, order: timestampIndex < 0 ? 'none' : input.order }
}

/** Index of the result's designated timestamp. With SAMPLE BY it is the last unmodified one; a cast does not count. */
function timestampOf({ columns, input: { plan, timestampIndex } }: SelectList): number {
  if (plan.kind === 'sample')
    return columns.findLastIndex(({ bound }) => bound.kind === 'column' && bound.index === timestampIndex)
  return columns.findIndex(({ bound, expression }) => expression?.kind !== 'cast' && isTimestamp(bound, timestampIndex))
}

/**
 * Whether the expression is the designated timestamp, possibly shifted by a fixed span. Shifting by months does not
 * preserve order at month ends.
 */
function isTimestamp(bound: Expression, timestampIndex: number): boolean {
  if (bound.kind === 'column') return bound.index === timestampIndex
  if (bound.kind !== 'call' || bound.name !== 'dateadd' || bound.args.length !== 3) return false
  const [unit, stride, ts] = bound.args
  if (unit?.kind !== 'constant' || stride?.kind !== 'constant' || ts === undefined) return false
  return unit.value !== 'M' && unit.value !== 'y' && isTimestamp(ts, timestampIndex)
}

function isIdentity(expressions: readonly Expression[], { columns }: Plan): boolean {
  return (
    expressions.length === columns.length &&
    expressions.every((expression, index) => expression.kind === 'column' && expression.index === index)
  )
}

function renamed(plan: Plan, columns: readonly PlanColumn[]): Plan {
  if (columns.every(({ name }, index) => name === plan.columns[index]?.name)) return plan
  return projectPlan(plan, columns, columns.map(columnExpression))
}

function projectPlan(input: Plan, columns: readonly PlanColumn[], expressions: readonly Expression[]): Plan {
  return { kind: 'project', columns, input, expressions }
}

// LATEST ON: the newest row of each key.

function bindLatest(relation: Relation, latest: ast.LatestOn, context: BindContext): Relation {
  const scope = { context, columns: relation.columns, aggregates: null, windows: null }
  const timestampIndex =
    latest.timestamp === null ? relation.timestampIndex : latestTimestamp(bindExpression(latest.timestamp, scope))
  if (timestampIndex < 0)
    throw new SqlError('latest by query does not provide dedicated TIMESTAMP column', latest.position, timestampHint)
  const width = relation.plan.columns.length
  const extra: Expression[] = []
  const keys = latest.partitionBy.map((expression) => {
    const bound = bindExpression(expression, scope)
    return bound.kind === 'column' ? bound.index : width + extra.push(bound) - 1
  })
  const input = withExtra(relation, extra)
  const plan: Plan = { kind: 'latest', columns: input.plan.columns, input: input.plan, timestampIndex, keys }
  return dropExtra({ ...input, plan, timestampIndex, order: 'ascending' }, width)
}

function latestTimestamp(expression: Expression): number {
  if (expression.kind !== 'column' || !isTime(expression.type))
    throw new SqlError('not a TIMESTAMP', expression.position)
  return expression.index
}
