// Whole rows as JSON: `row_to_json(t)`, `json_agg(t)` of a table or sub-query t, as clients of PostgreSQL write them. There
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
  if (taken === undefined || call.args.length !== 1 || row?.kind !== 'column' || row.path.length !== 1) return call
  const source = row.path[0]?.toLowerCase()
  const members = columns.filter((column) => column.source?.toLowerCase() === source && column.hidden !== true)
  if (members.length === 0 || findInScope(columns, row) !== undefined) return call
  const { position } = row
  const args = members.flatMap((column): ast.Expression[] => [
    { kind: 'string', position, value: column.name },
    { kind: 'column', position, path: [...row.path, column.name], quoted: true },
  ])
  const plain = { distinct: false, orderBy: [], filter: null, ignoreNulls: false, over: null } as const
  const object: ast.Call = { ...call, ...plain, name: 'row_to_json', args }
  return taken === 'object' ? object : { ...call, args: [object] }
}
