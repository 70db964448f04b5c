// DECLARE: variables are replaced by their expressions in the syntax tree before anything is bound, so that names of
// result columns show the values.

import { SqlError } from '../../base/errors.js'
import { sqlPartsMax } from '../../base/limits.js'
import type { Declaration, Expression, Interval, Query, TableSource, VariableSource } from '../parse/ast.js'
import { intervalOfText, wholeNumber } from '../parse/literal.js'

export function substituteDeclarations(query: Query): Query {
  if (query.declarations.length === 0) return query
  sizeOf({ ...query, declarations: [] }, declaredSizes(query.declarations), query.position)
  const values = declaredValues(query.declarations)
  return replaceVariables({ ...query, declarations: [] }, values)
}

function declaredSizes(declarations: readonly Declaration[]): Map<string, number> {
  const sizes = new Map<string, number>()
  for (const { name, value, position } of declarations) sizes.set(name.toLowerCase(), sizeOf(value, sizes, position))
  return sizes
}

/** Parts of a tree with its variables written out: each may hold the one before it twice. */
function sizeOf(node: unknown, sizes: ReadonlyMap<string, number>, position: number): number {
  if (typeof node !== 'object' || node === null) return 0
  if (isVariable(node)) return sizes.get(node.name.toLowerCase()) ?? 1
  let size = 1
  for (const part of Object.values(node)) size += sizeOf(part, sizes, position)
  if (size > sqlPartsMax) throw new SqlError(`variables make the statement too long [max=${sqlPartsMax}]`, position)
  return size
}

/** Later declarations may use earlier ones. */
export function declaredValues(declarations: readonly Declaration[]): Map<string, Expression> {
  const values = new Map<string, Expression>()
  declaredSizes(declarations)
  for (const { name, value } of declarations) values.set(name.toLowerCase(), replaceVariables(value, values))
  return values
}

export function replaceVariables<Node>(node: Node, values: ReadonlyMap<string, Expression>): Node {
  if (typeof node !== 'object' || node === null) return node
  if (Array.isArray(node)) return node.map((element: unknown) => replaceVariables(element, values)) as Node
  if (isVariable(node)) {
    const value = values.get(node.name.toLowerCase())
    if (value === undefined) throw new SqlError(`tried to use undeclared variable \`@${node.name}\``, node.position)
    return value as Node
  }
  if (isVariableSource(node)) return sourceOf(node, values) as Node
  if (isVariableInterval(node)) return intervalOf(node, values) as Node
  const inner = isDeclaring(node) ? innerValues(node, values) : values
  const replaced = Object.entries(node).map(([key, value]) => [key, replaceVariables(value as unknown, inner)])
  return { ...Object.fromEntries(replaced), ...(inner === values ? {} : { declarations: [] }) } as Node
}

function isDeclaring(node: object): node is Query {
  return 'kind' in node && node.kind === 'query' && (node as Query).declarations.length > 0
}

/** A query's own variables hide those around it that have their names. */
function innerValues({ declarations }: Query, values: ReadonlyMap<string, Expression>): Map<string, Expression> {
  const inner = new Map(values)
  for (const { name, value } of declarations) inner.set(name.toLowerCase(), replaceVariables(value, inner))
  return inner
}

function isVariableInterval(node: object): node is Interval {
  return 'unit' in node && node.unit === null && 'count' in node && isVariable(node.count as object)
}

/** `sample by @p`: of `1d` and `1m` the literal alone is a number. */
function intervalOf(interval: Interval, values: ReadonlyMap<string, Expression>): Interval {
  const { position } = interval
  const count = replaceVariables(interval.count, values)
  const written = 'text' in count && count.text !== undefined ? intervalOfText(count.text) : null
  if (written === null) return { position, count, unit: null }
  return { position, count: wholeNumber(position, written.digits), unit: written.unit }
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
