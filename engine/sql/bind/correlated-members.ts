// Rewrites comparisons with the rows of a sub-query, where a list of its values computed once does not suffice: a
// correlated IN (`a in (select b from t where t.c = o.c)`), IN with several columns (`(a, b) in (select ..)`),
// `a < any (select ..)` and `a < all (select ..)`. The result is a condition that a matching row exists, which can be
// bound as a join. `$row` is a generated alias:
//
//   sub-query                          condition
//   correlated, only FROM and WHERE    exists (select .. where .. and b = a), bound by correlated.ts
//   uncorrelated                       exists (select * from (..) $row where $row.$1 = a)
//   any other                          (select count() from (..) $row where $row.$1 = a) > 0, bound like LATERAL
//
// ALL becomes NOT of the condition that a row exists for which the comparison is not true.

import type * as ast from '../ast/ast.js'
import { aggregatesNamed } from '../functions/registry/all.js'
import { nameAt, selectBody } from '../rewrite/make-query.js'
import { findInScope, type Scope } from '../scope/scope.js'
import { partsOf } from '../typing/deferred-values.js'
import { columnsIn, conditionsOf, innerScope, isIn, namesRows } from './correlated-conditions.js'
import type { ExpressionScope } from './expression.js'

/** Null if the IN list is uncorrelated, so it is evaluated once. */
export function matchingRow(
  { operand, set, position }: ast.InExpression,
  scope: ExpressionScope,
): ast.Expression | null {
  if (!('kind' in set)) return null
  if (operand.kind === 'list') return foundRow(set, operand.elements, '=', position, scope)
  return namesRows(set, scope) ? foundRow(set, [operand], '=', position, scope) : null
}

/** `a < any (select ..)`, `a < all (select ..)`. */
export function comparedWithRows(
  { operator, quantifier, left, position }: ast.QuantifiedExpression,
  query: ast.Query,
  scope: ExpressionScope,
): ast.Expression | null {
  if (quantifier === 'any') return foundRow(query, [left], operator, position, scope)
  const other = foundRow(query, [left], operator, position, scope, true)
  return other === null ? null : { kind: 'unary', position, operator: 'not', operand: other }
}

/** A test for a row whose values compare so with the operands, or do not or are NULL if `negated`. */
function foundRow(
  query: ast.Query,
  operands: readonly ast.Expression[],
  operator: ast.BinaryOperator,
  position: number,
  scope: ExpressionScope,
  negated = false,
): ast.Expression | null {
  const condition = (sides: readonly ast.Expression[], values: readonly ast.Expression[]): ast.Expression => {
    const pairs = sides.map((left, index): ast.Expression => {
      return { kind: 'binary', operator, left, right: values[index] as ast.Expression, position }
    })
    const all = conditionsOf(pairs) as ast.Expression
    const right: ast.Expression = { kind: 'boolean', position, value: true }
    return negated ? { kind: 'binary', position, operator: '<>', left: all, right } : all
  }
  if (!namesRows(query, scope)) return besideAlone(query, operands, condition, position)
  const inner = withinQuery(query, operands, scope)
  if (inner === null) return besideEach(query, operands, condition, position)
  const { body, values, sides } = inner
  const where = conditionsOf([...(body.where === null ? [] : [body.where]), condition(sides, values)])
  return { kind: 'exists', position, query: { ...query, orderBy: [], body: { ...body, where } } }
}

type Condition = (left: readonly ast.Expression[], right: readonly ast.Expression[]) => ast.Expression

interface Within {
  readonly body: ast.Select
  readonly values: readonly ast.Expression[]
  /** The operands, with names that resolve to the outer query within the sub-query. */
  readonly sides: readonly ast.Expression[]
}

/** Null if the sub-query is more than plain rows of tables, or an operand cannot be named in it. */
function withinQuery(query: ast.Query, operands: readonly ast.Expression[], scope: ExpressionScope): Within | null {
  if (!isPlain(query) || query.body.items.length !== operands.length) return null
  const { body } = query
  const values = body.items.map(({ expression }) => expression)
  if (values.some(holdsRows)) return null
  const inner = innerScope(body, scope.context)
  const sides = operands.map((operand) => namedWithin(operand, inner, scope))
  return sides.every((side) => side !== null) ? { body, values, sides } : null
}

/** Qualifies a name that the sub-query has as well; null if the sub-query also has the qualified name. */
function namedWithin(operand: ast.Expression, inner: Scope, scope: ExpressionScope): ast.Expression | null {
  if (!columnsIn(operand, null).some((column) => isTaken(column, inner))) return operand
  if (operand.kind !== 'column' || operand.path.length > 1 || !isIn(scope.columns, operand, scope.context)) return null
  const source = findInScope(scope.columns, operand, scope.context)?.source ?? null
  if (source === null) return null
  const named = { ...operand, path: [source, ...operand.path] }
  return isTaken(named, inner) ? null : named
}

/** Whether the sub-query has a column of that name, possibly several. */
function isTaken({ path }: ast.ColumnName, inner: Scope): boolean {
  const [name, source] = path.toReversed().map((word) => word.toLowerCase())
  return inner.some((column) =>
    source === undefined ? column.name.toLowerCase() === name : column.source?.toLowerCase() === source,
  )
}

/** The test over an uncorrelated sub-query, whose columns are numbered by aliases. */
function besideAlone(
  query: ast.Query,
  operands: readonly ast.Expression[],
  condition: Condition,
  position: number,
): ast.Exists {
  const source = {
    ...sourceOf(query, position),
    columnAliases: rowNames(operands).map((name) => nameAt(name, position)),
  }
  const items: ast.SelectItem[] = [{ position, expression: star(position), alias: null }]
  return {
    kind: 'exists',
    position,
    query: selectOver(source, items, condition(operands, rowValues(operands, position))),
  }
}

/** The test over a correlated sub-query, whose columns are named within it. */
function besideEach(
  query: ast.Query,
  operands: readonly ast.Expression[],
  condition: Condition,
  position: number,
): ast.Expression | null {
  const { body } = query
  if (body.kind !== 'select' || body.items.length !== operands.length) return null
  if (body.items.some(({ expression }) => expression.kind === 'star')) return null
  const names = rowNames(operands)
  const items = body.items.map((item, index) => ({ ...item, alias: nameAt(names[index] as string, position) }))
  const source = sourceOf({ ...query, body: { ...body, items } }, position)
  const counted = counting(source, condition(operands, rowValues(operands, position)))
  const none: ast.Expression = { kind: 'integer', position, text: '0', digits: '0', long: false }
  const left: ast.Expression = { kind: 'subquery', position, query: counted }
  return { kind: 'binary', operator: '>', left, right: none, position }
}

/** A query for the number of rows of a sub-query, or of its groups. */
export function countedQuery(query: ast.Query): ast.Query {
  return counting(sourceOf(query, query.position), null)
}

function counting(source: ast.QuerySource, where: ast.Expression | null): ast.Query {
  const { position } = source
  const expression: ast.Call = {
    ...{ kind: 'call', position, schema: null, name: 'count', args: [star(position)], distinct: false, orderBy: [] },
    ...{ filter: null, ignoreNulls: false, over: null },
  }
  return selectOver(source, [{ position, expression, alias: null }], where)
}

const rowSource = '$row'

function rowNames(operands: readonly ast.Expression[]): string[] {
  return operands.map((_, index) => `$${index + 1}`)
}

function rowValues(operands: readonly ast.Expression[], position: number): ast.Expression[] {
  return rowNames(operands).map((name) => ({ kind: 'column', position, path: [rowSource, name], quoted: true }))
}

function star(position: number): ast.Star {
  return { kind: 'star', position, table: null, exclude: [] }
}

/** The query as a source named `$row`. */
export function sourceOf(query: ast.Query, position: number): ast.QuerySource {
  const alias = nameAt(rowSource, position)
  return { kind: 'query source', position, alias, columnAliases: [], timestamp: null, query, lateral: false }
}

/** A query with only this source, list and condition. */
export function selectOver(
  from: ast.QuerySource,
  items: readonly ast.SelectItem[],
  where: ast.Expression | null,
): ast.Query {
  const { position, query } = from
  const body = selectBody(from, items, where, position)
  return { kind: 'query', position, end: query.end, declarations: [], commonTables: [], orderBy: [], limit: null, body }
}

type PlainQuery = ast.Query & { readonly body: ast.Select }

/** Whether the query is a filtered join of sources, without grouping, LIMIT or the like. */
export function isPlain(query: ast.Query): query is PlainQuery {
  const { body, commonTables, limit } = query
  if (body.kind !== 'select' || body.from === null || commonTables.length > 0 || limit !== null) return false
  if (body.groupBy.length > 0 || body.groupingSets !== undefined || body.having !== null) return false
  if (body.qualify !== undefined || body.groupAll === true) return false
  return body.distinctOn.length === 0 && body.pivot === null && body.sampleBy === null && body.latestOn === null
}

/** Whether the expression contains a star, an aggregate or a window call, which depend on several rows. */
export function holdsRows(expression: unknown): boolean {
  if (typeof expression !== 'object' || expression === null) return false
  if ('kind' in expression && expression.kind === 'star') return true
  if ('kind' in expression && expression.kind === 'call' && 'name' in expression)
    if (('over' in expression && expression.over !== null) || aggregatesNamed(String(expression.name)).length > 0)
      return true
  return partsOf(expression).some(holdsRows)
}
