// Finds the base column of each output column of a plan: the table column whose values the output column returns
// unchanged, if there is one. The PostgreSQL protocol sends base columns with the description of a result; drivers
// derive from them the table, nullability and other properties of a result column.

import type { Expression, Plan } from './plan.js'

interface ColumnOrigin {
  /** Index into Query.tables. */
  readonly table: number
  readonly columnId: number
}

type BaseColumns = readonly (ColumnOrigin | null)[]

/** One origin for each output column; null if the column is computed or its origin unknown. */
export function baseColumnsOf(plan: Plan): BaseColumns {
  switch (plan.kind) {
    case 'scan':
      return plan.columnIds.map((columnId) => ({ table: plan.table, columnId }))
    case 'project':
      return ofExpressions(plan.expressions, baseColumnsOf(plan.input))
    case 'aggregate':
      return [...ofExpressions(plan.keys, baseColumnsOf(plan.input)), ...plan.aggregates.map(() => null)]
    case 'filter':
    case 'sort':
    case 'limit':
    case 'distinct':
    case 'latest':
      return baseColumnsOf(plan.input)
    case 'window':
      return [...baseColumnsOf(plan.input), ...plan.calls.map(() => null)]
    case 'join':
      return [...baseColumnsOf(plan.left), ...baseColumnsOf(plan.right)]
    default:
      return plan.columns.map(() => null)
  }
}

function ofExpressions(expressions: readonly Expression[], input: BaseColumns): BaseColumns {
  return expressions.map((expression) => (expression.kind === 'column' ? (input[expression.index] ?? null) : null))
}
