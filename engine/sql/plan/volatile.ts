// Whether an expression or a plan may be computed elsewhere, or more than once, without changing the result.

import { scalarOf } from '../functions/registry/evaluate.js'
import { visitExpression } from '../typing/walk-expression.js'
import type { Expression, Plan } from './plan.js'
import { expressionsOf, inputsOf } from './walk-plan.js'

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
  if (plan.kind === 'recursive' || plan.kind === 'working') return false
  return expressionsOf(plan).every(isStable) && inputsOf(plan).every(isStablePlan)
}
