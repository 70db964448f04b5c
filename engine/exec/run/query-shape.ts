// The shape of a query: a key that is equal for queries that differ in their constants only, as dashboards send them.
// Inline execution keeps its record of earlier attempts by shape.

import type { Expression, Query } from '../../sql/plan/plan.js'
import { expressionsOf, plansOf } from '../../sql/plan/walk-plan.js'
import { visitExpression } from '../../sql/typing/walk-expression.js'

/** Of longer queries only the beginning is compared. */
const partsMax = 256

/** The same text for queries of the same form, and rarely for others. */
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
