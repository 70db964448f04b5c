// Whole rows as JSON: `row_to_json(t)`, `to_jsonb(t.*)`, `json_agg(t)` of a table or sub-query t, as clients of PostgreSQL write them. There
// is no type for rows: they are taken apart into the names and values of their columns. So is the row of a sub-query that
// makes nothing but one of them: `row_to_json((select r from (select a.x, b.y as z) as r))`, as Hasura writes it.

import type * as ast from '../parse/ast.js'
import type { ExpressionScope } from './expression.js'
import { findInScope } from './scope.js'

/** What is left of a call whose argument is a row: the object, the call over the object, or the call over nothing. */
const rowTakers: Readonly<Record<string, 'object' | 'argument' | 'nothing'>> = {
  row_to_json: 'object',
  to_json: 'object',
  to_jsonb: 'argument',
  json_agg: 'argument',
  jsonb_agg: 'argument',
  count: 'nothing',
}

interface Member {
  readonly name: string
  readonly value: ast.Expression
}

/** The call as it is where its argument is no row. */
export function ofWholeRow(call: ast.Call, scope: ExpressionScope): ast.Call {
  const taken = rowTakers[call.name.toLowerCase()]
  const [row] = call.args
  if (taken === undefined || call.args.length !== 1 || row === undefined) return call
  if (taken === 'nothing' && call.distinct) return call
  const members = row.kind === 'subquery' ? membersOfQuery(row) : membersOfSource(row, scope)
  if (members === null) return call
  if (taken === 'nothing') return countOfRows(call, row, members, scope)
  const { position } = row
  const args = members.flatMap(({ name, value }): ast.Expression[] => [
    { kind: 'string', position, value: name },
    value,
  ])
  const plain = { distinct: false, orderBy: [], filter: null, ignoreNulls: false, over: null } as const
  const object: ast.Call = { ...call, ...plain, name: 'row_to_json', args }
  return taken === 'object' ? object : { ...call, args: [object] }
}

/** Columns of `t` or `t.*`; null for anything else. */
function membersOfSource(row: ast.Expression, { columns }: ExpressionScope): Member[] | null {
  const source = nameOfRow(row)
  if (source === null) return null
  const members = columns.filter(
    (column) => column.source?.toLowerCase() === source.toLowerCase() && column.hidden !== true,
  )
  if (members.length === 0 || (row.kind === 'column' && findInScope(columns, row) !== undefined)) return null
  const { position } = row
  return members.map(({ name }) => ({
    name,
    value: { kind: 'column', position, path: [source, name], quoted: true },
  }))
}

/** `t` or `t.*`; null for anything else. */
function nameOfRow(row: ast.Expression): string | null {
  if (row.kind === 'star') return row.exclude.length === 0 ? row.table : null
  return row.kind === 'column' && row.path.length === 1 ? (row.path[0] ?? null) : null
}

/** `(select r from (select a.x, b.y as z) as r)`: what the inner list names, all of it of the rows around. */
function membersOfQuery({ query }: ast.SubQuery): Member[] | null {
  const outer = plainSelect(query)
  const [item, ...more] = outer?.items ?? []
  const source = outer?.from
  if (item === undefined || more.length > 0 || source?.kind !== 'query source' || source.columnAliases.length > 0)
    return null
  const inner = plainSelect(source.query)
  const isRow = nameOfRow(item.expression)?.toLowerCase() === source.alias?.name.toLowerCase()
  if (!isRow || inner === null || inner.from !== null) return null
  const members = inner.items.map(({ expression, alias }) => ({
    name: alias?.name ?? (expression.kind === 'column' ? (expression.path.at(-1) ?? '') : ''),
    value: expression,
  }))
  return members.every(({ name, value }) => name !== '' && value.kind !== 'star') ? members : null
}

/** A list and its FROM, nothing else. */
function plainSelect({ body, commonTables, declarations, limit }: ast.Query): ast.Select | null {
  if (body.kind !== 'select' || commonTables.length > 0 || declarations.length > 0 || limit !== null) return null
  if (body.joins.length > 0 || body.where !== null || body.groupBy.length > 0 || body.having !== null) return null
  if (body.distinct || body.distinctOn.length > 0 || body.pivot !== null) return null
  return body.sampleBy === null && body.latestOn === null ? body : null
}

/** `count(t)`: beside other sources the rows of t may be missing, which all of their columns tell. */
function countOfRows(
  call: ast.Call,
  row: ast.Expression,
  members: readonly Member[],
  { columns }: ExpressionScope,
): ast.Call {
  const { position } = row
  const isAlone = new Set(columns.map(({ source }) => source)).size === 1
  if (isAlone) return { ...call, args: [] }
  const isThere = members
    .map(({ value }): ast.Expression => ({ kind: 'is null', operand: value, negated: true, position }))
    .reduce((left, right): ast.Expression => ({ kind: 'binary', operator: 'or', left, right, position }))
  const result: ast.Expression = { kind: 'integer', position, text: '1', digits: '1', long: false }
  const value: ast.Expression = {
    kind: 'case',
    position,
    operand: null,
    branches: [{ when: isThere, result }],
    otherwise: null,
  }
  return { ...call, args: [value] }
}
