// Rewrites expressions that use a whole row of a table or sub-query t, as clients of PostgreSQL write them:
// `row_to_json(t)`, `to_jsonb(t.*)`, `json_agg(t)`. This server has no row type, so the argument becomes a JSON object
// built from the names and values of the columns. The row may also come from a sub-query that only lists its columns,
// as Hasura writes it: `row_to_json((select r from (select a.x, b.y as z) as r))`. In a select list, `t` and
// `row(a, b)` become the text of the row. In a join, `count(t)` counts rows in which any column of t is not NULL.

import type * as ast from '../ast/ast.js'
import { callOf } from '../rewrite/make-query.js'
import { findInScope } from '../scope/scope.js'
import type { ExpressionScope } from './expression.js'

/**
 * What replaces a call with a row argument: the object itself, the call over the object, or the call without arguments.
 */
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

/** The rewritten call, or the call itself if its argument is no row. */
export function rewriteWholeRow(call: ast.Call, scope: ExpressionScope): ast.Call {
  const taken = rowTakers[call.name.toLowerCase()]
  const [row] = call.args
  if (taken === undefined || call.args.length !== 1 || row === undefined) return call
  if (taken === 'nothing' && call.distinct) {
    const text = rowText(row, scope)
    return text === null ? call : { ...call, args: [text] }
  }
  const members = row.kind === 'subquery' ? membersOfQuery(row) : membersOfSource(row, scope)
  if (members === null) return call
  if (taken === 'nothing') return countOfRows(call, row, members, scope)
  const { position } = row
  const args = members.flatMap(({ name, value }): ast.Expression[] => [
    { kind: 'string', position, value: name },
    value,
  ])
  const object = callOf('row_to_json', args, call.position)
  return taken === 'object' ? object : { ...call, args: [object] }
}

/** A select item that is a row, as text for clients of PostgreSQL: `select t from t`, `select row(a, b)`. */
export function rowAsText(item: ast.Expression, scope: ExpressionScope): ast.Expression {
  return rowText(item, scope) ?? item
}

/** Null if the item is no row. */
function rowText(row: ast.Expression, scope: ExpressionScope): ast.Expression | null {
  if (!scope.context.dialect.rowValues) return null
  if (row.kind === 'list') return textOf(row.elements, row.position)
  if (row.kind !== 'column' || scope.aliases?.has((row.path[0] ?? '').toLowerCase())) return null
  const members = membersOfSource(row, scope)
  if (members === null) return null
  const text = textOf(
    members.map(({ value }) => value),
    row.position,
  )
  return isAlone(scope) ? text : whereRowIs(members, text, row.position)
}

function textOf(args: readonly ast.Expression[], position: number): ast.Expression {
  return callOf('row_text', args, position)
}

/** The columns of `t` or `t.*`; null for anything else. */
function membersOfSource(row: ast.Expression, { columns, context }: ExpressionScope): Member[] | null {
  const source = nameOfRow(row)
  if (source === null) return null
  const members = columns.filter(
    (column) => column.source?.toLowerCase() === source.toLowerCase() && column.hidden !== true,
  )
  if (members.length === 0 || (row.kind === 'column' && findInScope(columns, row, context) !== undefined)) return null
  const { position } = row
  return members.map(({ name }) => ({
    name,
    value: { kind: 'column', position, path: [source, name], quoted: true },
  }))
}

/** The `t` of `t` or `t.*`; null for anything else. */
function nameOfRow(row: ast.Expression): string | null {
  if (row.kind === 'star') return row.exclude.length === 0 ? row.table : null
  return row.kind === 'column' && row.path.length === 1 ? (row.path[0] ?? null) : null
}

/** `(select r from (select a.x, b.y as z) as r)`: the items of the inner list, which refer to the outer rows. */
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

/** The select if it has only a list and FROM; else null. */
function plainSelect({ body, commonTables, declarations, limit }: ast.Query): ast.Select | null {
  if (body.kind !== 'select' || commonTables.length > 0 || declarations.length > 0 || limit !== null) return null
  if (body.joins.length > 0 || body.where !== null || body.groupBy.length > 0 || body.having !== null) return null
  if (body.distinct || body.distinctOn.length > 0 || body.pivot !== null) return null
  return body.sampleBy === null && body.latestOn === null ? body : null
}

/** `count(t)`: in a join the row of t may be missing. */
function countOfRows(
  call: ast.Call,
  { position }: ast.Expression,
  members: readonly Member[],
  scope: ExpressionScope,
): ast.Call {
  if (isAlone(scope)) return { ...call, args: [] }
  const one: ast.Expression = { kind: 'integer', position, text: '1', digits: '1', long: false }
  return { ...call, args: [whereRowIs(members, one, position)] }
}

function isAlone({ columns }: ExpressionScope): boolean {
  return new Set(columns.map(({ source }) => source)).size === 1
}

/** The result if the joined row exists, that is, if any of its columns is not NULL; else NULL. */
function whereRowIs(members: readonly Member[], result: ast.Expression, position: number): ast.Expression {
  const when = members
    .map(({ value }): ast.Expression => ({ kind: 'is null', operand: value, negated: true, position }))
    .reduce((left, right): ast.Expression => ({ kind: 'binary', operator: 'or', left, right, position }))
  return { kind: 'case', position, operand: null, branches: [{ when, result }], otherwise: null }
}
