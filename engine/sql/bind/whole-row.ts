// Whole rows as JSON: `row_to_json(t)`, `to_jsonb(t.*)`, `json_agg(t)` of a table or sub-query t, as clients of PostgreSQL write them. There
// is no type for rows: they are taken apart into the names and values of their columns.

import type * as ast from '../parse/ast.js'
import type { ExpressionScope } from './expression.js'
import { findInScope } from './scope.js'

/** What is left of a call whose argument is a row: of the aggregates the call, whose argument is the object. */
const rowTakers: Readonly<Record<string, 'object' | 'argument'>> = {
  row_to_json: 'object',
  to_json: 'object',
  to_jsonb: 'object',
  json_agg: 'argument',
  jsonb_agg: 'argument',
}

/** The call as it is where its argument is no row. */
export function ofWholeRow(call: ast.Call, { columns }: ExpressionScope): ast.Call {
  const taken = rowTakers[call.name.toLowerCase()]
  const [row] = call.args
  if (taken === undefined || call.args.length !== 1 || row === undefined) return call
  const name = nameOfRow(row)
  if (name === null) return call
  const members = columns.filter(
    (column) => column.source?.toLowerCase() === name.toLowerCase() && column.hidden !== true,
  )
  if (members.length === 0 || (row.kind === 'column' && findInScope(columns, row) !== undefined)) return call
  const { position } = row
  const args = members.flatMap((column): ast.Expression[] => [
    { kind: 'string', position, value: column.name },
    { kind: 'column', position, path: [name, column.name], quoted: true },
  ])
  const plain = { distinct: false, orderBy: [], filter: null, ignoreNulls: false, over: null } as const
  const object: ast.Call = { ...call, ...plain, name: 'row_to_json', args }
  return taken === 'object' ? object : { ...call, args: [object] }
}

/** `t` or `t.*`; null for anything else. */
function nameOfRow(row: ast.Expression): string | null {
  if (row.kind === 'star') return row.exclude.length === 0 ? row.table : null
  return row.kind === 'column' && row.path.length === 1 ? (row.path[0] ?? null) : null
}
