// Sub-queries as values of an expression. One that stands alone runs once, before the query. One whose WHERE compares its
// columns with those of the query around it (`where el.oid = t.typelem`) becomes a left join: the sub-query is grouped
// by its side of the comparisons and joined on them. Comparisons other than `=` with the outer query are refused.

import { SqlError } from '../../base/errors.js'
import { dataType } from '../../types/column-types.js'
import type * as ast from '../parse/ast.js'
import type { Expression, Plan } from '../plan/plan.js'
import { type BindContext, nested } from './bind-context.js'
import { bindExpression, type ExpressionScope } from './expression.js'
import { bindSources } from './from.js'
import { joinOn } from './join.js'
import { scalarCall } from './make-call.js'
import { bindQuery } from './query.js'
import { findInScope, type Relation, type Scope } from './scope.js'
import { bindSubquery } from './subquery.js'
import { constantOf } from './types.js'

/** Grows to the right as sub-queries are joined; columns that were bound keep their places. */
export interface CorrelatedRows {
  relation: Relation
}

interface Correlation {
  /** Expressions over the sub-query's own columns, and what each must equal. */
  readonly inner: readonly ast.Expression[]
  readonly outer: readonly ast.Expression[]
  readonly rest: ast.Expression | null
}

export function bindScalarQuery(query: ast.Query, scope: ExpressionScope): Expression {
  const correlation = correlationOf(query, scope)
  if (correlation === null) return bindSubquery(query, 'scalar', scope.context)
  const [item, ...more] = select(query).items
  if (item === undefined || more.length > 0 || item.expression.kind === 'star')
    throw new SqlError('sub-query must return exactly one column', query.position)
  return joined(query, correlation, firstOf(item.expression), scope)
}

export function bindExists({ query, position }: ast.Exists, scope: ExpressionScope): Expression {
  const correlation = correlationOf(query, scope)
  if (correlation === null)
    return scalarCall('exists', [bindSubquery(query, 'exists', scope.context)], position, scope.context)
  const count = call('count', [{ kind: 'star', position, table: null, exclude: [] }], position)
  const found = joined(query, correlation, count, scope)
  return scalarCall('>', [found, constantOf(0n, dataType('LONG'), position)], position, scope.context)
}

function select(query: ast.Query): ast.Select {
  return query.body as ast.Select
}

/** Sub-queries without aggregate give their first row's value: more than one is the author's mistake. */
function firstOf(expression: ast.Expression): ast.Expression {
  return isAggregate(expression) ? expression : call('first', [expression], expression.position)
}

const aggregating = new Set(['count', 'sum', 'min', 'max', 'avg', 'first', 'last', 'string_agg'])

function isAggregate(expression: unknown): boolean {
  if (typeof expression !== 'object' || expression === null) return false
  if ('kind' in expression && expression.kind === 'call' && 'name' in expression)
    if (aggregating.has(String(expression.name).toLowerCase())) return true
  return Object.values(expression).some(isAggregate)
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
  if (body.groupBy.length > 0 || body.sampleBy !== null || body.latestOn !== null) return null
  const inner = innerScope(body, scope.context)
  const own = conditions(body.where).map((condition) => ({
    condition,
    foreign: isForeign(condition, inner, scope.columns),
  }))
  if (own.every(({ foreign }) => !foreign)) return null
  const pairs = own.filter(({ foreign }) => foreign).map(({ condition }) => pairOf(condition, inner, scope.columns))
  const rest = own.filter(({ foreign }) => !foreign).map(({ condition }) => condition)
  return { inner: pairs.map(([side]) => side), outer: pairs.map(([, side]) => side), rest: allConditions(rest) }
}

/** The sub-query's own columns; its sources are bound again with the rest of it. */
function innerScope(body: ast.Select, context: BindContext): Scope {
  const trial: BindContext = { ...context, tables: [], subqueries: [], commonTables: [...context.commonTables] }
  return nested(context, body.position, () => bindSources(body, trial)).columns
}

function conditions(where: ast.Expression): ast.Expression[] {
  if (where.kind !== 'binary' || where.operator !== 'and') return [where]
  return [...conditions(where.left), ...conditions(where.right)]
}

function allConditions(parts: readonly ast.Expression[]): ast.Expression | null {
  const [first, ...rest] = parts
  if (first === undefined) return null
  return rest.reduce<ast.Expression>(
    (left, right) => ({ kind: 'binary', operator: 'and', left, right, position: right.position }),
    first,
  )
}

/** Names a column that the sub-query lacks and the outer query has. */
function isForeign(node: unknown, inner: Scope, outer: Scope): boolean {
  return columnsIn(node).some((column) => !isIn(inner, column) && isIn(outer, column))
}

function columnsIn(node: unknown): ast.ColumnName[] {
  if (typeof node !== 'object' || node === null) return []
  if ('kind' in node && node.kind === 'column' && 'path' in node) return [node as ast.ColumnName]
  return Object.values(node).flatMap(columnsIn)
}

function isIn(scope: Scope, column: ast.ColumnName): boolean {
  try {
    return findInScope(scope, column) !== undefined
  } catch (thrown) {
    if (thrown instanceof SqlError) return false
    throw thrown
  }
}

/** The side of the sub-query first. */
function pairOf(condition: ast.Expression, inner: Scope, outer: Scope): readonly [ast.Expression, ast.Expression] {
  if (condition.kind === 'binary' && condition.operator === '=') {
    const { left, right } = condition
    const [leftForeign, rightForeign] = [left, right].map((side) => isForeign(side, inner, outer))
    const leftOnly = leftForeign && columnsIn(left).every((column) => !isIn(inner, column))
    const rightOnly = rightForeign && columnsIn(right).every((column) => !isIn(inner, column))
    if (rightOnly && !leftForeign) return [left, right]
    if (leftOnly && !rightForeign) return [right, left]
  }
  throw new SqlError('a sub-query may compare with columns of the outer query by = only', condition.position)
}

// Joining -----------------------------------------------------------------------------------------------------------

function joined(
  query: ast.Query,
  { inner, outer, rest }: Correlation,
  value: ast.Expression,
  scope: ExpressionScope,
): Expression {
  const { context, rows } = scope
  if (rows === undefined) throw new SqlError('a sub-query is not allowed here', query.position)
  const items = [...inner, value].map((expression, index) => ({
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
  const index = rows.relation.plan.columns.length - 1
  return { kind: 'column', index, type: lastType(grouped.plan), position: query.position }
}

function lastType({ columns }: Plan): Expression['type'] {
  return columns[columns.length - 1]?.type ?? dataType('STRING')
}
