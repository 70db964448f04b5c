// Whether an expression or a plan may be computed elsewhere, or more than once, without changing the result.

import { visitExpression } from '../bind/walk-expression.js'
import { scalarOf } from '../functions/evaluate.js'
import type { AggregateCall, Expression, Plan } from './plan.js'
import { inputsOf } from './walk-plan.js'

/** True when no call in it gives another value at every row (rnd_*, systimestamp). */
export function isStable(expression: Expression): boolean {
  let stable = true
  visitExpression(expression, (part) => {
    if (part.kind === 'call' && scalarOf(part)?.volatility === 'row') stable = false
  })
  return stable
}

/** Gives the same rows in the same order each time it is run within a query, whatever that costs. */
export function isStablePlan(plan: Plan): boolean {
  return expressionsOf(plan)?.every(isStable) === true && inputsOf(plan).every(isStablePlan)
}

/** Those of the node itself; null: it cannot be run twice. */
function expressionsOf(plan: Plan): readonly Expression[] | null {
  switch (plan.kind) {
    case 'scan':
      return plan.filter === null ? [] : [plan.filter]
    case 'filter':
      return [plan.predicate]
    case 'project':
      return plan.expressions
    case 'expand':
      return [plan.count]
    case 'join':
      return plan.residual === null ? [] : [plan.residual]
    case 'aggregate':
    case 'sample':
      return [...plan.keys, ...plan.aggregates.flatMap(({ args }: AggregateCall) => args)]
    case 'window':
      return plan.calls.flatMap(({ args, partitionBy, orderBy }) => [
        ...args,
        ...partitionBy,
        ...orderBy.map(({ expression }) => expression),
      ])
    case 'recursive':
    case 'working':
      return null
    default:
      return []
  }
}
