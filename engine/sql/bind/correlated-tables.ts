// Rewrites a scalar sub-query whose WITH clause contains a table that refers to the outer query, as in
//
//   (with recursive up(id) as (select parent from s where s.id = t.id union all ..) select max(id) from up)
//
// so that only the WHERE of the sub-query itself refers to it, which correlated.ts can turn into a join. The condition
// `s.id = t.id` is removed from the WITH table. Its inner side `s.id` becomes an additional column of the table, which
// the recursive branch passes on, and the sub-query gets a condition that this column equals `t.id`.

import type * as ast from '../ast/ast.js'
import { columnsIn, conditions, conditionsOf, innerScope, pairOf } from './correlated-conditions.js'
import type { ExpressionScope } from './expression.js'

export function withKeyColumns(query: ast.Query, scope: ExpressionScope): ast.Query {
  if (query.commonTables.length === 0 || query.body.kind !== 'select' || scope.rows === undefined) return query
  let rewritten = query
  for (const [index, table] of query.commonTables.entries()) {
    const found = keyed(table, index, scope)
    if (found === undefined) continue
    const source = sourceNamed(query.body, table.name)
    if (source === undefined) return query
    rewritten = compared(rewritten, index, found, source)
  }
  return rewritten
}

interface Keyed {
  readonly table: ast.CommonTable
  /** Name of the additional column, and the outer expression that it must equal. */
  readonly name: string
  readonly outer: ast.Expression
}

function keyed(table: ast.CommonTable, index: number, scope: ExpressionScope): Keyed | undefined {
  const { body } = table.query
  const isUnion = body.kind === 'set operation' && body.operation === 'union'
  const first = isUnion ? body.left : body
  if (first.kind !== 'select' || first.where === null || first.groupBy.length > 0) return undefined
  if (first.groupAll === true || first.qualify !== undefined) return undefined
  const inner = innerScope(first, scope.context)
  const parts = conditions(first.where)
  const pairs = parts.map((part) => pairOf(part, inner, scope))
  const place = pairs.findIndex((pair) => pair !== null)
  const pair = pairs[place]
  if (pair === null || pair === undefined || first.items.some(isStarItem)) return undefined
  const name = `$key${index}`
  const item = itemOf(pair[0], name)
  const where = conditionsOf(parts.filter((_, at) => at !== place))
  const keyedFirst: ast.Select = { ...first, where, items: [...first.items, item] }
  const next = isUnion ? carried(body.right, table.name, name) : null
  if (next === undefined) return undefined
  const whole: ast.QueryBody = isUnion && next !== null ? { ...body, left: keyedFirst, right: next } : keyedFirst
  const columns = table.columns.length === 0 ? [] : [...table.columns, nameOf(name, table.position)]
  return { table: { ...table, columns, query: { ...table.query, body: whole } }, name, outer: pair[1] }
}

/** The recursive branch with the additional column passed on; undefined if that is not possible. */
function carried(body: ast.QueryBody, table: string, name: string): ast.Select | undefined {
  if (body.kind !== 'select' || body.groupBy.length > 0 || body.items.some(isStarItem)) return undefined
  const source = sourceNamed(body, table)
  return source === undefined ? undefined : { ...body, items: [...body.items, itemOf(columnOf(source, name), name)] }
}

function compared(query: ast.Query, index: number, { table, name, outer }: Keyed, source: string): ast.Query {
  const body = query.body as ast.Select
  const left = columnOf(source, name)
  const equal: ast.Expression = { kind: 'binary', operator: '=', left, right: outer, position: outer.position }
  const where = conditionsOf(body.where === null ? [equal] : [...conditions(body.where), equal])
  return { ...query, commonTables: query.commonTables.with(index, table), body: { ...body, where } }
}

const isStarItem = ({ expression }: ast.SelectItem): boolean => expression.kind === 'star'

/** The name under which the select reads the table. */
function sourceNamed({ from, joins }: ast.Select, table: string): string | undefined {
  const sources = from === null ? [] : [from, ...joins.map(({ source }) => source)]
  const found = sources.find(
    (source) => source.kind === 'table' && source.table.name.toLowerCase() === table.toLowerCase(),
  )
  return found === undefined ? undefined : (found.alias?.name ?? table)
}

function itemOf(expression: ast.Expression, name: string): ast.SelectItem {
  const { position } = columnsIn(expression, null)[0] ?? expression
  return { position, expression, alias: nameOf(name, position) }
}

function columnOf(source: string, name: string): ast.ColumnName {
  return { kind: 'column', position: 0, path: [source, name], quoted: true }
}

function nameOf(name: string, position: number): ast.Name {
  return { name, position, quoted: true }
}
