// `lateral (values (a, 1), (b, 2))`: a SELECT over the numbers of the rows, each of whose columns chooses by the number.

import { SqlError } from '../../base/errors.js'
import type * as ast from '../parse/ast.js'
import { nameAt, selectBody } from './correlated-members.js'

const numberName = '$values'

export function valuesAsSelect({ rows, position }: ast.Values): ast.Select {
  const [first] = rows
  const width = first?.values.length ?? 0
  const odd = rows.find(({ values }) => values.length !== width)
  if (odd !== undefined) throw new SqlError('VALUES lists must all be the same length', odd.position)
  const items = Array.from({ length: width }, (_, index): ast.SelectItem => {
    const values = rows.flatMap((row) => row.values.slice(index, index + 1))
    return { position, expression: chosen(values, position), alias: nameAt(`column${index + 1}`, position) }
  })
  return selectBody(rows.length === 1 ? null : numbers(rows.length, position), items, null, position)
}

/** The n-th of the values by the number of the row. */
function chosen(values: readonly ast.Expression[], position: number): ast.Expression {
  const [only] = values
  if (only !== undefined && values.length === 1) return only
  const operand: ast.Expression = { kind: 'column', position, path: [numberName, numberName], quoted: true }
  const branches = values.map((result, index) => ({ when: integer(index + 1, position), result }))
  return { kind: 'case', position, operand, branches, otherwise: null }
}

function numbers(count: number, position: number): ast.TableFunction {
  const plain = { distinct: false, orderBy: [], filter: null, ignoreNulls: false, over: null } as const
  const args = [integer(1, position), integer(count, position)]
  const call: ast.Call = { kind: 'call', position, schema: null, name: 'generate_series', args, ...plain }
  const name = nameAt(numberName, position)
  const source = { position, alias: name, columnAliases: [name], timestamp: null } as const
  return { kind: 'table function', schema: null, call, ordinality: false, ...source }
}

function integer(value: number, position: number): ast.Expression {
  return { kind: 'integer', position, text: String(value), digits: String(value), long: false }
}
