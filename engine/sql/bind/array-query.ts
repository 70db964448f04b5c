// Rewrites `array(select a ..)` to a scalar sub-query that returns the values of all rows as one list, by the aggregate
// list_agg(). If the query is a plain select, its select list becomes `list_agg(a)`, so that its WHERE may still refer
// to the outer query. If it has DISTINCT, LIMIT, GROUP BY, UNION or VALUES, it becomes
// `select list_agg(a) from (the query)`.

import { SqlError } from '../../base/errors.js'
import type * as ast from '../ast/ast.js'
import { callOf, nameAt } from '../rewrite/make-query.js'
import { holdsRows, isPlain, selectOver, sourceOf } from './correlated-members.js'

/** The sub-query `(select coalesce(list_agg(a), '{}') ..)`. */
export function collected({ query }: ast.SubQuery, position: number): ast.SubQuery {
  const { body } = query
  const [item] = body.kind === 'select' ? body.items : []
  if (body.kind === 'select' && (item === undefined || body.items.length > 1 || item.expression.kind === 'star'))
    throw new SqlError('array() takes a query of one column', position)
  const isListed = isPlain(query) && item !== undefined && !query.body.distinct && !holdsRows(item.expression)
  return isListed ? listedRows(query, item, position) : listedResult(query, position)
}

function listedRows(
  query: ast.Query & { readonly body: ast.Select },
  item: ast.SelectItem,
  position: number,
): ast.SubQuery {
  const orderBy = query.orderBy.map((entry) =>
    entry.expression.kind === 'integer' ? { ...entry, expression: item.expression } : entry,
  )
  const items = [{ position, expression: listOf(item.expression, orderBy), alias: null }]
  return { kind: 'subquery', position, query: { ...query, orderBy: [], body: { ...query.body, items } } }
}

function listedResult(query: ast.Query, position: number): ast.SubQuery {
  const [named, name] = withName(query, position)
  const rows = sourceOf(named, position)
  const source = query.body.kind === 'select' ? rows : { ...rows, columnAliases: [name] }
  const path = [rows.alias?.name ?? '', name.name]
  const value: ast.Expression = { kind: 'column', position, path, quoted: true }
  const listed = selectOver(source, [{ position, expression: listOf(value, []), alias: null }], null)
  return { kind: 'subquery', position, query: listed }
}

/** The query with a named column, and that name. */
function withName(query: ast.Query, position: number): readonly [ast.Query, ast.Name] {
  const { body } = query
  const [item] = body.kind === 'select' ? body.items : []
  const name = item?.alias ?? nameAt('$1', position)
  if (body.kind !== 'select' || item === undefined) return [query, name]
  return [{ ...query, body: { ...body, items: [{ ...item, alias: name }] } }, name]
}

function listOf(value: ast.Expression, orderBy: readonly ast.OrderItem[]): ast.Expression {
  const { position } = value
  const none: ast.Expression = { kind: 'string', position, value: '{}' }
  return callOf('coalesce', [{ ...callOf('list_agg', [value], position), orderBy }, none], position)
}
