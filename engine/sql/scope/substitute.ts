// Implements DECLARE, which defines variables for a query: replaces each variable in the syntax tree by its expression.
// This happens before binding, so that names of result columns show the expression. Variables that a view declares as
// OVERRIDABLE take the value that the query around the view declares.

import { SqlError } from '../../base/errors.js'
import { sqlLevelsMax, sqlPartsMax } from '../../base/limits.js'
import type { Declaration, Expression, Interval, Query, TableSource, VariableSource } from '../ast/ast.js'
import { intervalOfText, wholeNumber } from '../parse/literal.js'

export function substituteDeclarations(query: Query): Query {
  if (query.declarations.length === 0) return query
  extentOf({ ...query, declarations: [] }, declaredExtents(query.declarations), query.position)
  return replaceVariables({ ...query, declarations: [] }, writtenOut(query.declarations))
}

/** Declarations by lower-case name, with the variables in their values substituted. */
export type Declared = ReadonlyMap<string, Declaration>

/** The variables in scope within a query: its own hide those of enclosing queries. */
export function declaredWithin({ declarations }: Pick<Query, 'declarations'>, around: Declared): Declared {
  if (declarations.length === 0) return around
  const values = writtenOut(declarations)
  const own = declarations.map((declaration) => {
    const key = declaration.name.toLowerCase()
    return [key, { ...declaration, value: values.get(key) ?? declaration.value }] as const
  })
  return new Map([...around, ...own])
}

/** The query of a view with values overridden by the enclosing query. Throws if a variable is not overridable. */
export function overriddenBy(declared: Declared, query: Query): Query {
  const declarations = [...declaredWithin(query, new Map()).values()].map((own) => {
    const other = declared.get(own.name.toLowerCase())
    if (other === undefined) return own
    if (!own.overridable) throw new SqlError(`variable is not overridable: @${own.name}`, other.assignment)
    return { ...own, value: other.value }
  })
  return { ...query, declarations }
}

/**
 * Size of a tree with its variables substituted. It is checked first, because declarations that use each other twice
 * grow exponentially.
 */
interface Extent {
  readonly parts: number
  /** Depth of the tree. */
  readonly levels: number
}

const nothing: Extent = { parts: 0, levels: 0 }

function declaredExtents(declarations: readonly Declaration[]): Map<string, Extent> {
  const extents = new Map<string, Extent>()
  for (const { name, value, position } of declarations)
    extents.set(name.toLowerCase(), extentOf(value, extents, position))
  return extents
}

function extentOf(node: unknown, extents: ReadonlyMap<string, Extent>, position: number): Extent {
  if (typeof node !== 'object' || node === null) return nothing
  if (isVariable(node)) return extents.get(node.name.toLowerCase()) ?? { parts: 1, levels: 1 }
  let parts = 1
  let below = 0
  for (const value of Object.values(node)) {
    const extent = extentOf(value, extents, position)
    parts += extent.parts
    below = Math.max(below, extent.levels)
  }
  const levels = below + ('kind' in node ? 1 : 0)
  if (parts > sqlPartsMax) throw new SqlError(`variables make the statement too long [max=${sqlPartsMax}]`, position)
  if (levels > sqlLevelsMax) throw new SqlError(`variables are nested too deeply [max=${sqlLevelsMax}]`, position)
  return { parts, levels }
}

export function declaredValues(declarations: readonly Declaration[]): Map<string, Expression> {
  declaredExtents(declarations)
  return writtenOut(declarations)
}

/** Substitutes earlier declarations in later ones. */
function writtenOut(declarations: readonly Declaration[]): Map<string, Expression> {
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
    return value as Node
  }
  if (isVariableSource(node)) return sourceOf(node, values) as Node
  if (isVariableInterval(node)) return intervalOf(node, values) as Node
  if (isDeclaring(node)) return replaceWithin(node, values) as Node
  const replaced = Object.entries(node).map(([key, value]) => [key, replaceVariables(value as unknown, values)])
  return Object.fromEntries(replaced) as Node
}

/** Substitutes within a sub-query. Its declarations stay, for the views that it reads. */
function replaceWithin(query: Query, values: ReadonlyMap<string, Expression>): Query {
  const inner = innerValues(query, values)
  const declarations = query.declarations.map((declaration) => {
    const value = inner.get(declaration.name.toLowerCase()) ?? declaration.value
    return { ...declaration, value }
  })
  return { ...replaceVariables({ ...query, declarations: [] }, inner), declarations }
}

function isDeclaring(node: object): node is Query {
  return 'kind' in node && node.kind === 'query' && (node as Query).declarations.length > 0
}

/** A query's own variables hide those of enclosing queries. */
function innerValues({ declarations }: Query, values: ReadonlyMap<string, Expression>): Map<string, Expression> {
  const inner = new Map(values)
  for (const { name, value } of declarations) inner.set(name.toLowerCase(), replaceVariables(value, inner))
  return inner
}

function isVariableInterval(node: object): node is Interval {
  return 'unit' in node && node.unit === null && 'count' in node && isVariable(node.count as object)
}

/** `sample by @p`: a literal such as `1d` or `1m` is split into number and unit. */
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

/** A sub-query, or the table that the variable names. */
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
