// Binds scalar sub-queries and EXISTS within expressions. An uncorrelated sub-query runs once, before the query. A
// correlated one is turned into a left join, so that it need not run once per row. If its WHERE refers to the outer
// query only in equations, such as `el.oid = t.typelem`, it is grouped by their inner sides (`el.oid`) and joined with
// the outer sides. If other conditions or its value refer to the outer query, the outer rows are numbered, left-joined
// with all matching rows, and the result is grouped by the number. Other sub-queries are bound like LATERAL.

import { SqlError } from '../../base/errors.js'
import { sqlCorrelatedMax } from '../../base/limits.js'
import { dataType } from '../../types/column-types.js'
import type * as ast from '../ast/ast.js'
import { aggregatesNamed, conditionalVariant } from '../functions/registry/all.js'
import type { AggregateCall, Expression, Plan, PlanColumn, WindowCall } from '../plan/plan.js'
import { AggregateList } from '../scope/aggregate-list.js'
import type { BindContext } from '../scope/bind-context.js'
import type { Relation } from '../scope/scope.js'
import { declaredWithin, substituteDeclarations } from '../scope/substitute.js'
import { partsOf } from '../typing/deferred-values.js'
import { scalarCall } from '../typing/make-call.js'
import { constantOf } from '../typing/types.js'
import { markIndex, rewriteExpression } from '../typing/walk-expression.js'
import { orderedInput, withoutOrder } from './aggregate-order.js'
import {
  conditions,
  conditionsOf,
  holdsQuery,
  innerScope,
  isForeign,
  namesRows,
  pairOf,
  withOuterInWhere,
} from './correlated-conditions.js'
import { countedQuery } from './correlated-members.js'
import { withKeyColumns } from './correlated-tables.js'
import { aggregateMark, bindCondition, bindExpression, type ExpressionScope } from './expression.js'
import { bindSource, bindSources } from './from.js'
import { joinOn, leftJoin } from './join.js'
import { bindLateral, readsOuter } from './lateral.js'
import { columnExpression, dropExtra, positionOf, withExtra } from './order.js'
import { partName, splitAggregates } from './per-row.js'
import { bindQuery } from './query.js'
import { isLateralFunction, onlyIf, withFunction } from './set-returning-call.js'
import { bindSubquery } from './subquery.js'

/** The rows of the outer query. Joined sub-queries add columns on the right, so indexes of bound columns stay valid. */
export interface CorrelatedRows {
  relation: Relation
  /** Number of sub-queries joined so far. */
  joined?: number
}

interface Correlation {
  /** The inner sides of the equations, and the outer expressions that they must equal. */
  readonly inner: readonly ast.Expression[]
  readonly outer: readonly ast.Expression[]
  /** Other conditions that refer to the outer query. */
  readonly mixed: readonly ast.Expression[]
  readonly rest: ast.Expression | null
}

export function bindScalarQuery(query: ast.Query, scope: ExpressionScope): Expression {
  const alone = expressionAlone(query, scope)
  if (alone !== null) return bindExpression(alone, scope)
  return withTables(withKeyColumns(query, scope), scope.context, (inner) => bindScalar(inner, scope))
}

/**
 * `(select exists (..))`, `(select f(t.id))`: without FROM the sub-query is its expression, which may refer to the
 * outer query.
 */
function expressionAlone({ body, commonTables, limit }: ast.Query, scope: ExpressionScope): ast.Expression | null {
  if (body.kind !== 'select' || body.from !== null || body.where !== null) return null
  const [item, ...others] = body.items
  if (item === undefined || others.length > 0 || commonTables.length > 0 || limit !== null) return null
  const { expression } = item
  return expression.kind === 'exists' || isForeign(expression, [], scope) ? expression : null
}

/** Binds with the WITH tables and variables of the query in scope. */
function withTables(written: ast.Query, context: BindContext, bind: (query: ast.Query) => Expression): Expression {
  const query = substituteDeclarations(written)
  const before = context.commonTables.length
  const { declared } = context
  context.declared = declaredWithin(written, declared)
  context.commonTables.push(...query.commonTables)
  try {
    return bind({ ...query, commonTables: [] })
  } finally {
    context.commonTables.length = before
    context.declared = declared
  }
}

function bindScalar(written: ast.Query, scope: ExpressionScope): Expression {
  if (isOverOuterRows(written, scope)) return besideRows(written, scope)
  if (readsOuterRows(written, scope)) return collectedRows(written, scope)
  const query = withOuterInWhere(written, scope)
  const correlation = correlationOf(query, scope)
  if (correlation === null)
    return namesRows(query, scope) ? besideRows(query, scope) : bindSubquery(query, 'scalar', scope.context)
  const [item, ...more] = select(query).items
  if (item === undefined || more.length > 0 || item.expression.kind === 'star')
    throw new SqlError('sub-query must return exactly one column', query.position)
  checkLimit(query)
  const isPaired = correlation.mixed.length === 0 && !namesOuter(query, item.expression, scope)
  if (!isPaired && holdsQuery([correlation.mixed, correlation.outer, correlation.inner, item.expression]))
    return besideRows(query, scope)
  if (!isPaired) return matched({ ...query, orderBy: orderOf(query, item) }, correlation, item.expression, scope)
  return joined(query, correlation, soleValue(query, item.expression, orderOf(query, item)), scope)
}

/** Throws unless LIMIT keeps the first row, as a scalar sub-query has one value. */
function checkLimit({ limit }: ast.Query): void {
  if (limit === null || (limit.low === null && limit.offset === null)) return
  const { low, high, offset } = limit
  if (low?.kind !== 'integer' || Number(low.digits) < 1 || high !== null || offset !== null)
    throw new SqlError('LIMIT of a correlated sub-query must be a literal number of at least 1', limit.position)
}

export function bindExists({ query, position }: ast.Exists, scope: ExpressionScope): Expression {
  return withTables(withKeyColumns(query, scope), scope.context, (inner) => bindExisting(inner, position, scope))
}

function bindExisting(written: ast.Query, position: number, scope: ExpressionScope): Expression {
  const query = withOuterInWhere(written, scope)
  const correlation = correlationOf(query, scope)
  if (correlation === null && !namesRows(query, scope))
    return scalarCall('exists', [bindSubquery(query, 'exists', scope.context)], position, scope.context)
  const found = countOf(query, correlation, scope)
  return scalarCall('>', [found, constantOf(0n, dataType('LONG'), position)], position, scope.context)
}

/** The number of rows, for EXISTS. */
function countOf(query: ast.Query, correlation: Correlation | null, scope: ExpressionScope): Expression {
  const { position } = query
  if (correlation === null) return besideRows(countedQuery(query), scope)
  const count = call('count', [{ kind: 'star', position, table: null, exclude: [] }], position)
  const isPaired = correlation.mixed.length === 0
  if (!isPaired && holdsQuery([correlation.mixed, correlation.outer, correlation.inner])) {
    const body = { ...select(query), items: [{ position, expression: count, alias: null }], distinct: false }
    return besideRows({ ...query, body, orderBy: [], limit: null }, scope)
  }
  return isPaired ? joined(query, correlation, count, scope) : matched(query, correlation, null, scope)
}

function select(query: ast.Query): ast.Select {
  return query.body as ast.Select
}

/** ORDER BY of the value: `order by 1` and `order by y` in `(select f(x) y ..)` refer to the select item. */
function orderOf({ orderBy }: ast.Query, { expression, alias }: ast.SelectItem): ast.OrderItem[] {
  return orderBy.map((item) => {
    const [named, ...more] = item.expression.kind === 'column' ? item.expression.path : []
    const isAlias = more.length === 0 && named !== undefined && named.toLowerCase() === alias?.name.toLowerCase()
    return isAlias || positionOf(item.expression, 1) !== null ? { ...item, expression } : item
  })
}

/**
 * An aggregate for the value of a sub-query without aggregate: with LIMIT 1 the first value, else the only one, and an
 * error if there are several.
 */
function soleValue(query: ast.Query, expression: ast.Expression, orderBy: readonly ast.OrderItem[]): ast.Expression {
  if (isAggregate(expression)) return expression
  if (isCutToOne(query)) return { ...call('first', [expression], expression.position), orderBy }
  return call(select(query).distinct ? 'single_value' : 'single_row', [expression], expression.position)
}

/** Whether the query has LIMIT 1, so further rows are no error. */
function isCutToOne({ limit }: ast.Query): boolean {
  return (
    limit?.low?.kind === 'integer' && Number(limit.low.digits) === 1 && limit.high === null && limit.offset === null
  )
}

function isAggregate(expression: unknown): boolean {
  if (typeof expression !== 'object' || expression === null) return false
  if ('kind' in expression && expression.kind === 'call' && 'name' in expression)
    if (aggregatesNamed(String(expression.name)).length > 0) return true
  return partsOf(expression).some(isAggregate)
}

function call(name: string, args: readonly ast.Expression[], position: number): ast.Call {
  return {
    kind: 'call',
    position,
    schema: null,
    name,
    args,
    distinct: false,
    orderBy: [],
    filter: null,
    ignoreNulls: false,
    over: null,
  }
}

// Finding the correlation -------------------------------------------------------------------------------------------

function correlationOf(query: ast.Query, scope: ExpressionScope): Correlation | null {
  const { body } = query
  if (scope.rows === undefined || body.kind !== 'select' || body.where === null || body.from === null) return null
  if (
    body.having !== null ||
    body.groupBy.length > 0 ||
    body.groupAll === true ||
    body.qualify !== undefined ||
    body.groupingSets !== undefined ||
    body.sampleBy !== null ||
    body.latestOn !== null
  )
    return null
  const inner = innerScope(body, scope.context)
  const own = conditions(body.where).map((condition) => ({
    condition,
    foreign: isForeign(condition, inner, scope),
  }))
  if (own.every(({ foreign }) => !foreign)) return null
  const foreign = own.filter((part) => part.foreign).map(({ condition }) => condition)
  const pairs = foreign.flatMap((condition) => {
    const pair = pairOf(condition, inner, scope)
    return pair === null ? [] : [pair]
  })
  const mixed = foreign.filter((condition) => pairOf(condition, inner, scope) === null)
  const rest = own.filter(({ foreign }) => !foreign).map(({ condition }) => condition)
  return {
    inner: pairs.map(([side]) => side),
    outer: pairs.map(([, side]) => side),
    mixed,
    rest: conditionsOf(rest),
  }
}

/** Whether the value refers to the outer query, as in `(select f(a, t.x) from s where s.id = t.id)`. */
function namesOuter(query: ast.Query, value: ast.Expression, scope: ExpressionScope): boolean {
  return isForeign(value, innerScope(select(query), scope.context), scope)
}

// Joining -----------------------------------------------------------------------------------------------------------

/** The outer rows, with one more sub-query counted against the limit. */
function rowsToJoin({ rows }: ExpressionScope, position: number): CorrelatedRows {
  if (rows === undefined) throw new SqlError('a sub-query is not allowed here', position)
  rows.joined = (rows.joined ?? 0) + 1
  if (rows.joined > sqlCorrelatedMax)
    throw new SqlError(`too many correlated sub-queries [max=${sqlCorrelatedMax}]`, position)
  return rows
}

function joined(
  query: ast.Query,
  { inner, outer, rest }: Correlation,
  value: ast.Expression,
  scope: ExpressionScope,
): Expression {
  const { context } = scope
  const rows = rowsToJoin(scope, query.position)
  const { calls, over } = splitAggregates(value)
  const items = [...inner, ...calls].map((expression, index) => ({
    position: expression.position,
    expression,
    alias: { name: `$${index}`, position: expression.position, quoted: true },
  }))
  const body: ast.Select = { ...select(query), items, where: rest, distinct: false, groupBy: inner }
  const grouped = bindQuery({ ...query, body, orderBy: [], limit: null }, context)
  const keys = outer.map((expression) => bindExpression(expression, { ...scope, columns: scope.columns }))
  const before = rows.relation
  rows.relation = joinOn(
    before,
    grouped,
    keys,
    inner.map((_, index) => index),
  )
  const found = rows.relation.plan.columns.slice(-calls.length)
  const width = rows.relation.plan.columns.length - calls.length
  const columns = found.map(({ type }, index) => ({ source: null, name: partName(index), type, index: width + index }))
  return bindExpression(over, { context, columns, aggregates: null, windows: null })
}

// FROM over outer rows ----------------------------------------------------------------------------------------------

/** Whether a table function in the sub-query's FROM reads columns, which must be those of the outer query. */
function readsOuterRows({ body }: ast.Query, { rows }: ExpressionScope): boolean {
  if (rows === undefined || body.kind !== 'select' || body.from === null) return false
  return isLateralFunction(body.from) && body.groupBy.length === 0
}

/**
 * `(select f(x) from unnest(t.list) x join ..)`: the outer rows are numbered and replicated by the function, joins add
 * their matches, and groups by row number give the value. Rows that exist only because of an outer join have a NULL
 * marker.
 */
function collectedRows(query: ast.Query, scope: ExpressionScope): Expression {
  const { context } = scope
  const rows = rowsToJoin(scope, query.position)
  const { from, joins, where, items } = select(query)
  const [item, ...more] = items
  if (from === null || !isLateralFunction(from) || item === undefined || more.length > 0)
    throw new SqlError('sub-query must return exactly one column', query.position)
  const before = rows.relation
  const outer = scope.columns.map((column) => ({ ...column, outer: true as const }))
  let { relation, marker } = withFunction(withNumbers({ ...before, columns: outer }), from, true, context)
  for (const join of joins) {
    const right = withExtra(bindSource(join.source, context), [constantOf(1n, dataType('LONG'), join.position)])
    const { plan, columns, rightStart } = leftJoin(relation, right, join.on, context)
    const matched = columnExpression({ name: '', type: marker.type }, rightStart + right.plan.columns.length - 1)
    relation = { ...relation, plan, columns }
    marker = onlyIf(isPresent(matched, context), marker, context)
  }
  const inner: ExpressionScope = { context, columns: relation.columns, aggregates: null, windows: null }
  if (where !== null) marker = onlyIf(bindCondition(where, inner), marker, context)
  const aggregates = new AggregateList()
  checkLimit(query)
  const written =
    isCutToOne(query) && !isAggregate(item.expression)
      ? { ...call('first_not_null', [item.expression], query.position), orderBy: orderOf(query, item) }
      : soleValue(query, item.expression, [])
  const found = bindExpression(written, { ...inner, aggregates })
  const calls = aggregates.calls.map((aggregate) => ofPresent(aggregate, marker, context))
  rows.relation = regrouped(before, orderedInput(relation, calls).plan, found, calls)
  return { kind: 'column', index: before.plan.columns.length, type: found.type, position: query.position }
}

/** The aggregate over the rows whose marker is not NULL. */
function ofPresent(aggregate: AggregateCall, marker: Expression, context: BindContext): AggregateCall {
  const { name, args } = aggregate
  if (args.length === 0) return { ...aggregate, args: [marker] }
  const condition = isPresent(marker, context)
  const variant = conditionalVariant(name)
  if (variant !== null) return { ...aggregate, name: variant, args: [...args, condition] }
  return { ...aggregate, args: args.map((argument) => onlyIf(condition, argument, context)) }
}

function isPresent(marker: Expression, context: BindContext): Expression {
  return scalarCall('<>', [marker, constantOf(null, marker.type, marker.position)], marker.position, context)
}

/**
 * `(select json_agg(x) from (select .. where s.id = t.id) x)`: whether a sub-query in FROM refers to the outer query.
 */
function isOverOuterRows({ body }: ast.Query, { context, columns, rows }: ExpressionScope): boolean {
  return rows !== undefined && body.kind === 'select' && readsOuter(body, columns, context)
}

/** Binds the sub-query like LATERAL, with at most one row for each outer row. */
function besideRows(query: ast.Query, scope: ExpressionScope): Expression {
  const { context, columns } = scope
  const rows = rowsToJoin(scope, query.position)
  if (query.body.kind !== 'select') throw new SqlError('a SELECT is expected', query.position)
  const { items, position } = query.body
  const [item, ...more] = items
  if (item === undefined || more.length > 0 || item.expression.kind === 'star')
    throw new SqlError('sub-query must return exactly one column', query.position)
  const source = { query, alias: null, ...(isCutToOne(query) ? {} : { only: query.position }) }
  const join = { kind: 'left', on: null, position } as const
  // The value's index: after the outer columns and the row number.
  const index = rows.relation.plan.columns.length + 1
  rows.relation = { ...rows.relation, plan: bindLateral({ ...rows.relation, columns }, join, source, context).plan }
  const found = rows.relation.plan.columns
  return { kind: 'column', index, type: (found[index] as PlanColumn).type, position: query.position }
}

// Numbered rows -----------------------------------------------------------------------------------------------------

/** The value of the match, or the number of matches if `value` is null, by numbering the outer rows. */
function matched(
  query: ast.Query,
  { inner, outer, mixed, rest }: Correlation,
  value: ast.Expression | null,
  scope: ExpressionScope,
): Expression {
  const { context } = scope
  const rows = rowsToJoin(scope, query.position)
  const before = rows.relation
  const numbered = withNumbers({
    ...before,
    columns: scope.columns.map((column) => ({ ...column, outer: true as const })),
  })
  const source = bindSources(select(query), context)
  const marker = constantOf(1n, dataType('LONG'), query.position)
  const right = withExtra(filtered(source, rest, context), [marker])
  const equations = inner.map(
    (left, index): ast.Expression => ({
      kind: 'binary',
      operator: '=',
      left,
      right: outer[index] as ast.Expression,
      position: left.position,
    }),
  )
  const on = conditionsOf([...equations, ...mixed])
  const { plan, columns, rightStart } = leftJoin(numbered, right, on, context)
  const counted: Expression = {
    kind: 'column',
    index: rightStart + right.plan.columns.length - 1,
    type: marker.type,
    position: query.position,
  }
  const count: AggregateCall = { name: 'count', args: [counted], type: dataType('LONG'), position: query.position }
  const aggregates = new AggregateList()
  const written = value === null ? null : soleValue(query, value, query.orderBy)
  const found =
    written === null
      ? marked(aggregates.place(count), count)
      : bindExpression(written, { context, columns, aggregates, windows: null })
  // An outer row without a match occurs once, with a NULL marker. It is not counted, and no argument is evaluated for
  // it.
  const present = isPresent(counted, context)
  const given = (argument: Expression): Expression =>
    argument.kind === 'column' && argument.index >= rightStart ? argument : onlyIf(present, argument, context)
  const calls = aggregates.calls.map((aggregate) => {
    if (aggregate.args.length === 0) return { ...aggregate, ...count }
    // An aggregate that does not ignore NULL would include that row.
    if (conditionalVariant(aggregate.name) !== null) return ofPresent(aggregate, counted, context)
    return { ...aggregate, args: aggregate.args.map(given) }
  })
  const ordered = orderedInput({ ...numbered, plan }, calls)
  rows.relation = regrouped(before, ordered.plan, found, calls)
  return { kind: 'column', index: before.plan.columns.length, type: found.type, position: query.position }
}

function marked(index: number, { type, position }: AggregateCall): Expression {
  const args = [constantOf(index, dataType('INT'), position)]
  return { kind: 'call', name: aggregateMark, args, type, position }
}

function filtered(relation: Relation, where: ast.Expression | null, context: BindContext): Relation {
  if (where === null) return relation
  const rows = { relation }
  const predicate = bindCondition(where, { context, columns: relation.columns, aggregates: null, windows: null, rows })
  const { plan } = rows.relation
  const retained: Relation = { ...relation, plan: { kind: 'filter', columns: plan.columns, input: plan, predicate } }
  return dropExtra(retained, relation.plan.columns.length)
}

/** Appends a row number to the columns. */
function withNumbers(relation: Relation): Relation {
  const { plan } = relation
  const number: WindowCall = {
    name: 'row_number',
    args: [],
    type: dataType('LONG'),
    partitionBy: [],
    orderBy: [],
    frame: { unit: 'range', lo: null, hi: null, exclude: 'none' },
    ignoreNulls: false,
    position: 0,
  }
  const columns = [...plan.columns, { name: '$row', type: number.type }]
  return { ...relation, plan: { kind: 'window', columns, input: plan, calls: [number] } }
}

/** Groups by row number: one row per outer row, with its columns and the value. */
function regrouped(before: Relation, plan: Plan, found: Expression, calls: readonly AggregateCall[]): Relation {
  const width = before.plan.columns.length
  const own = before.plan.columns
  const columnAt = (index: number): Expression => columnExpression(plan.columns[index] as PlanColumn, index)
  const firsts = own.map(
    (column, index): AggregateCall => ({ ...firstCall, args: [columnAt(index)], type: column.type }),
  )
  const value: PlanColumn = { name: '$value', type: found.type }
  const groups: Plan = {
    kind: 'aggregate',
    columns: [plan.columns[width] as PlanColumn, ...own, ...calls.map(({ name, type }) => ({ name, type }))],
    input: plan,
    keys: [columnAt(width)],
    aggregates: [...firsts, ...calls.map(withoutOrder)],
  }
  const lifted = rewriteExpression(found, (part) => {
    if (part.kind === 'column' && part.index > width)
      throw new SqlError('column must appear in GROUP BY clause or aggregate function', part.position)
    // Columns follow the row number.
    if (part.kind === 'column') return { ...part, index: part.index + 1 }
    return part.kind === 'call' && part.name === aggregateMark
      ? { kind: 'column', index: 1 + width + markIndex(part), type: part.type, position: part.position }
      : undefined
  })
  const expressions = [...own.map((column, index) => columnExpression(column, index + 1)), lifted]
  return { ...before, plan: { kind: 'project', columns: [...own, value], input: groups, expressions } }
}

const firstCall = { name: 'first', position: 0 }
