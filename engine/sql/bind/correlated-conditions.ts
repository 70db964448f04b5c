// Helpers that analyse correlated sub-queries: they tell which conditions of a sub-query refer to columns of the outer
// query, and split an equation such as `t.c = o.c` into the side of the sub-query and the side of the outer query. The
// other correlated*.ts files use them to turn such sub-queries into joins.

import { SqlError } from '../../base/errors.js'
import type * as ast from '../ast/ast.js'
import { type BindContext, nested, trialOf } from '../scope/bind-context.js'
import { findInScope, type Scope } from '../scope/scope.js'
import { partsOf } from '../typing/deferred-values.js'
import type { ExpressionScope } from './expression.js'
import { bindSources } from './from.js'

/** The columns of the sub-query's own sources. Only for analysis: the sources are bound again with the rest. */
export function innerScope(body: ast.Select, context: BindContext): Scope {
  return nested(context, body.position, () => bindSources(body, trialOf(context))).columns
}

/** Moves ON conditions of inner joins that refer to the outer query to WHERE, where they mean the same. */
export function withOuterInWhere(query: ast.Query, { context, columns, rows }: ExpressionScope): ast.Query {
  const { body } = query
  if (rows === undefined || body.kind !== 'select' || body.from === null) return query
  if (!body.joins.some(({ kind, on }) => kind === 'inner' && on !== null)) return query
  const bare = body.joins.map((join) => (join.kind === 'inner' ? { ...join, on: null } : join))
  const inner = innerScope({ ...body, joins: bare }, context)
  const parts = body.joins.map((join) => {
    const all = join.kind === 'inner' && join.on !== null ? conditions(join.on) : []
    return { foreign: all.filter((part) => isForeign(part, inner, { context, columns })), all }
  })
  const moved = parts.flatMap(({ foreign }) => foreign)
  if (moved.length === 0) return query
  const joins = body.joins.map((join, index): ast.Join => {
    const { foreign, all } = parts[index] as (typeof parts)[number]
    return foreign.length === 0 ? join : { ...join, on: conditionsOf(all.filter((part) => !foreign.includes(part))) }
  })
  const where = conditionsOf(body.where === null ? moved : [...conditions(body.where), ...moved])
  return { ...query, body: { ...body, joins, where } }
}

export function conditions(where: ast.Expression): ast.Expression[] {
  if (where.kind !== 'binary' || where.operator !== 'and') return [where]
  return [...conditions(where.left), ...conditions(where.right)]
}

export function conditionsOf(parts: readonly ast.Expression[]): ast.Expression | null {
  const [first, ...rest] = parts
  if (first === undefined) return null
  return rest.reduce<ast.Expression>(
    (left, right) => ({ kind: 'binary', operator: 'and', left, right, position: right.position }),
    first,
  )
}

/** The outer query. */
type Around = Pick<ExpressionScope, 'context' | 'columns'>

/** Whether the node refers to a column that the sub-query lacks and the outer query has. */
export function isForeign(node: unknown, inner: Scope, outer: Around): boolean {
  return columnsIn(node, outer.context).some(
    (column) => !isIn(inner, column, outer.context) && isIn(outer.columns, column, outer.context),
  )
}

/** Whether the query refers to columns of the outer rows. */
export function namesRows(query: ast.Query, { rows, columns, context }: ExpressionScope): boolean {
  if (rows === undefined || !columnsIn(query, null).some((column) => isIn(columns, column, context))) return false
  return isForeign(query, [], { columns, context })
}

export function holdsQuery(node: unknown): boolean {
  if (typeof node !== 'object' || node === null) return false
  if ('kind' in node && node.kind === 'query') return true
  return partsOf(node).some(holdsQuery)
}

/**
 * The columns that the node refers to, without those that its sub-queries resolve themselves; with a null context, all
 * of them.
 */
export function columnsIn(node: unknown, context: BindContext | null): ast.ColumnName[] {
  if (typeof node !== 'object' || node === null) return []
  if ('kind' in node && node.kind === 'column' && 'path' in node) return [node as ast.ColumnName]
  const named = partsOf(node).flatMap((part) => columnsIn(part, context))
  if (context === null || !('kind' in node) || node.kind !== 'select' || named.length === 0) return named
  const own = ownScope(node as ast.Select, context)
  return own === null ? named : named.filter((column) => !isIn(own, column, context))
}

/** The sub-query's own columns; null if its sources cannot be bound without the outer query. */
function ownScope(body: ast.Select, context: BindContext): Scope | null {
  try {
    return body.from === null ? null : innerScope(body, context)
  } catch (thrown) {
    if (thrown instanceof SqlError) return null
    throw thrown
  }
}

export function isIn(scope: Scope, column: ast.ColumnName, context: BindContext): boolean {
  try {
    return findInScope(scope, column, context) !== undefined
  } catch (thrown) {
    if (thrown instanceof SqlError) return false
    throw thrown
  }
}

/** The sides of an equation between the sub-query (first) and the outer query; null for any other condition. */
export function pairOf(
  condition: ast.Expression,
  inner: Scope,
  outer: Around,
): readonly [ast.Expression, ast.Expression] | null {
  if (condition.kind === 'binary' && condition.operator === '=') {
    const { left, right } = condition
    const [leftForeign, rightForeign] = [left, right].map((side) => isForeign(side, inner, outer))
    const leftOnly =
      leftForeign && columnsIn(left, outer.context).every((column) => !isIn(inner, column, outer.context))
    const rightOnly =
      rightForeign && columnsIn(right, outer.context).every((column) => !isIn(inner, column, outer.context))
    if (rightOnly && !leftForeign) return [left, right]
    if (leftOnly && !rightForeign) return [right, left]
  }
  return null
}
