// DECLARE: variables are replaced by their expressions in the syntax tree before anything is bound, so that names of
// result columns show the values.

import { SqlError } from '../../base/errors.js'
import type { Declaration, Expression, Query, TableSource, VariableSource } from '../parse/ast.js'

export function substituteDeclarations(query: Query): Query {
  if (query.declarations.length === 0) return query
  const values = declaredValues(query.declarations)
  return replaceVariables({ ...query, declarations: [] }, values)
}

/** Later declarations may use earlier ones. */
export function declaredValues(declarations: readonly Declaration[]): Map<string, Expression> {
  const values = new Map<string, Expression>()
  for (const { name, value } of declarations) values.set(name.toLowerCase(), replaceVariables(value, values))
  return values
}

export function replaceVariables<Node>(node: Node, values: ReadonlyMap<string, Expression>): Node {
  if (typeof node !== 'object' || node === null) return node
  if (Array.isArray(node)) return node.map((element: unknown) => replaceVariables(element, values)) as Node
  if (isVariable(node)) {
    const value = values.get(node.name.toLowerCase())
    if (value === undefined) throw new SqlError(`tried to use undeclared variable \`@${node.name}\``, node.position)
    return { ...value, position: node.position } as Node
  }
  if (isVariableSource(node)) return sourceOf(node, values) as Node
  return Object.fromEntries(
    Object.entries(node).map(([key, value]) => [key, replaceVariables(value as unknown, values)]),
  ) as Node
}

function isVariable(node: object): node is { kind: 'variable'; name: string; position: number } {
  return 'kind' in node && node.kind === 'variable'
}

function isVariableSource(node: object): node is VariableSource {
  return 'kind' in node && node.kind === 'variable source'
}

/** A sub-query, or the table of that name. */
function sourceOf({ name, ...common }: VariableSource, values: ReadonlyMap<string, Expression>): TableSource {
  const { position } = common
  const value = values.get(name.toLowerCase())
  if (value === undefined) throw new SqlError(`tried to use undeclared variable \`@${name}\``, position)
  if (value.kind === 'subquery') return { ...common, kind: 'query source', query: value.query, lateral: false }
  const [first = '', second] = value.kind === 'column' ? value.path : []
  if (first === '') throw new SqlError(`a table or sub-query is expected in \`@${name}\``, position)
  const table = { position, schema: second === undefined ? null : first, name: second ?? first, quoted: true }
  return { ...common, kind: 'table', table }
}
