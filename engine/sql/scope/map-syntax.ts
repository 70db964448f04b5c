// Helpers that search a syntax tree for nodes and replace nodes in it. They do not descend into sub-queries of
// expressions.

import type * as ast from '../ast/ast.js'
import { aggregatesNamed } from '../functions/registry/all.js'
import { partsOf } from '../typing/deferred-values.js'

/**
 * A copy of the tree in which `replace` has exchanged nodes. For `undefined`, the node stays and its members are
 * searched.
 */
export function mapNodes<Node>(node: Node, replace: (part: object) => unknown): Node {
  if (typeof node !== 'object' || node === null) return node
  if (Array.isArray(node)) return node.map((element: unknown) => mapNodes(element, replace)) as Node
  const replaced = isSubQuery(node) ? node : replace(node)
  if (replaced !== undefined) return replaced as Node
  return Object.fromEntries(Object.entries(node).map(([key, value]) => [key, mapNodes(value, replace)])) as Node
}

export function hasNode(tree: unknown, isWanted: (part: object) => boolean): boolean {
  if (typeof tree !== 'object' || tree === null || isSubQuery(tree)) return false
  return isWanted(tree) || partsOf(tree).some((member) => hasNode(member, isWanted))
}

/** Replaces aggregate calls that are not window calls. */
export function mapAggregates<Node>(node: Node, map: (call: ast.Call) => unknown): Node {
  return mapNodes(node, (part) => (isAggregateCall(part) ? map(part) : undefined))
}

export function hasAggregate(tree: unknown): boolean {
  return hasNode(tree, isAggregateCall)
}

function isAggregateCall(node: object): node is ast.Call {
  if (!('kind' in node) || node.kind !== 'call') return false
  const call = node as ast.Call
  return call.over === null && aggregatesNamed(call.name).length > 0
}

function isSubQuery(node: object): boolean {
  return 'kind' in node && (node.kind === 'subquery' || node.kind === 'exists')
}
