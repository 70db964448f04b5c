// Which column of which table each output column of a plan is, unchanged: drivers look names, NOT NULL and the like up by it.

import type { Expression, Plan } from './plan.js'

interface ColumnOrigin {
  /** Index into Query.tables. */
  readonly table: number
  readonly columnId: number
}

type Origins = readonly (ColumnOrigin | null)[]

/** One for each output column; null where it is computed, or nobody can say. */
export function originsOf(plan: Plan): Origins {
  switch (plan.kind) {
    case 'scan':
      return plan.columnIds.map((columnId) => ({ table: plan.table, columnId }))
    case 'project':
      return ofExpressions(plan.expressions, originsOf(plan.input))
    case 'aggregate':
      return [...ofExpressions(plan.keys, originsOf(plan.input)), ...plan.aggregates.map(() => null)]
    case 'filter':
    case 'sort':
    case 'limit':
    case 'distinct':
    case 'latest':
      return originsOf(plan.input)
    case 'window':
      return [...originsOf(plan.input), ...plan.calls.map(() => null)]
    case 'join':
      return [...originsOf(plan.left), ...originsOf(plan.right)]
    default:
      return plan.columns.map(() => null)
  }
}

function ofExpressions(expressions: readonly Expression[], input: Origins): Origins {
  return expressions.map((expression) => (expression.kind === 'column' ? (input[expression.index] ?? null) : null))
}
