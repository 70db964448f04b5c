// What queries have in common that differ in their constants: dashboards send the same one again and again, with other
// times and names in it.

import type { Expression, Query } from '../../sql/plan/plan.js'
import { expressionsOf, plansOf } from '../../sql/plan/walk-plan.js'
import { visitExpression } from '../../sql/typing/walk-expression.js'

/** Longer ones are told apart by their beginnings. */
const partsMax = 256

/** The same text for queries of one form, and hardly for others. */
export function shapeOf(query: Query): string {
  const parts: (string | number)[] = [...query.tables]
  for (const node of plansOf(query)) {
    parts.push(node.kind, node.columns.length)
    if (node.kind === 'aggregate' || node.kind === 'sample') parts.push(...node.aggregates.map(({ name }) => name))
    for (const expression of expressionsOf(node)) {
      if (parts.length > partsMax) break
      visitExpression(expression, (part) => {
        if (parts.length <= partsMax) parts.push(nameOf(part))
      })
    }
  }
  return parts.slice(0, partsMax).join()
}

function nameOf(part: Expression): string | number {
  if (part.kind === 'call') return part.name
  return part.kind === 'column' ? part.index : part.kind
}
