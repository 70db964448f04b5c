// `a in (select b from t where t.c = o.c)` that names the query around it: whether t has such a row whose b is a, which
// correlated.ts knows how to join.

import { aggregatesNamed } from '../functions/all.js'
import type * as ast from '../parse/ast.js'
import { columnsIn, conditionsOf, innerScope, isForeign, isIn } from './correlated-conditions.js'
import type { ExpressionScope } from './expression.js'

/** Null: the list is one of its own, or not of a kind that can be asked for a row. */
export function matchingRow({ operand, set, position }: ast.InExpression, scope: ExpressionScope): ast.Exists | null {
  if (!('kind' in set) || scope.rows === undefined || !isPlain(set)) return null
  const { body } = set
  const [item, ...others] = body.items
  if (item === undefined || others.length > 0 || body.where === null || holdsRows(item.expression)) return null
  const { context, columns } = scope
  if (!columnsIn(body.where, null).some((column) => isIn(columns, column))) return null
  const inner = innerScope(body, context)
  if (!isForeign(body.where, inner, scope)) return null
  // Within the sub-query the name would be another one's.
  if (columnsIn(operand, null).some((column) => isIn(inner, column))) return null
  const same = { kind: 'binary', operator: '=', left: item.expression, right: operand, position } as const
  const where = conditionsOf([body.where, same])
  return { kind: 'exists', position, query: { ...set, orderBy: [], body: { ...body, where } } }
}

/** `(a, b) in (select c, d ..)`: whether there is a row of both; null for anything else. */
export function rowOfPairs({ operand, set, position }: ast.InExpression): ast.Exists | null {
  if (operand.kind !== 'list' || !('kind' in set)) return null
  const names = operand.elements.map((_, index) => `$${index + 1}`)
  const named = (name: string): ast.Name => ({ name, position, quoted: true })
  const same = operand.elements.map((left, index): ast.Expression => {
    const right: ast.Expression = { kind: 'column', position, path: ['$row', names[index] as string], quoted: true }
    return { kind: 'binary', operator: '=', left, right, position }
  })
  const common = { position, alias: named('$row'), columnAliases: names.map(named), timestamp: null }
  const from: ast.QuerySource = { kind: 'query source', ...common, query: set, lateral: false }
  const items: ast.SelectItem[] = [
    { position, expression: { kind: 'star', position, table: null, exclude: [] }, alias: null },
  ]
  const body: ast.Select = {
    ...{ kind: 'select', position, implicit: false, distinct: false, distinctOn: [], items, from, lackOfFrom: null },
    ...{ joins: [], where: conditionsOf(same), latestOn: null, sampleBy: null, groupBy: [], having: null, windows: [] },
    pivot: null,
  }
  const plain = { declarations: [], commonTables: [], orderBy: [], limit: null } as const
  return { kind: 'exists', position, query: { kind: 'query', position, end: set.end, ...plain, body } }
}

type PlainQuery = ast.Query & { readonly body: ast.Select }

/** Rows of tables under conditions, all of them. */
function isPlain(query: ast.Query): query is PlainQuery {
  const { body, commonTables, limit } = query
  if (body.kind !== 'select' || body.from === null || commonTables.length > 0 || limit !== null) return false
  if (body.groupBy.length > 0 || body.having !== null || body.distinctOn.length > 0 || body.pivot !== null) return false
  return body.sampleBy === null && body.latestOn === null
}

/** A star, an aggregate or a window: one value of several rows or none. */
function holdsRows(expression: unknown): boolean {
  if (typeof expression !== 'object' || expression === null) return false
  if ('kind' in expression && expression.kind === 'star') return true
  if ('kind' in expression && expression.kind === 'call' && 'name' in expression)
    if (('over' in expression && expression.over !== null) || aggregatesNamed(String(expression.name)).length > 0)
      return true
  return Object.values(expression).some(holdsRows)
}
