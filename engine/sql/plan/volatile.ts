// Tells whether an expression or plan is free of functions that return a new value at each call, such as rnd_int().
// Only then may planner rules move it to another node or evaluate it more than once.

import { scalarOf } from '../functions/registry/evaluate.js'
import { visitExpression } from '../typing/walk-expression.js'
import type { Expression, Plan } from './plan.js'
import { expressionsOf, inputsOf } from './walk-plan.js'

/** True if no call returns a new value for each row, as rnd_* and systimestamp do. */
export function isStable(expression: Expression): boolean {
  let stable = true
  visitExpression(expression, (part) => {
    if (part.kind === 'call' && scalarOf(part)?.volatility === 'row') stable = false
  })
  return stable
}

/** Whether the plan returns the same rows in the same order each time it runs within a query, at whatever cost. */
export function isStablePlan(plan: Plan): boolean {
  if (plan.kind === 'recursive' || (plan.kind === 'working' && plan.id >= 0)) return false
  return expressionsOf(plan).every(isStable) && inputsOf(plan).every(isStablePlan)
}
