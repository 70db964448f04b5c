// DECLARE: variables are replaced by their expressions in the syntax tree before anything is bound, so that names of
// result columns show the values.

import { SqlError } from '../../base/errors.js'
import type { Declaration, Expression, Query } from '../parse/ast.js'

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
  return Object.fromEntries(
    Object.entries(node).map(([key, value]) => [key, replaceVariables(value as unknown, values)]),
  ) as Node
}

function isVariable(node: object): node is { kind: 'variable'; name: string; position: number } {
  return 'kind' in node && node.kind === 'variable'
}
