// Whether an expression may be computed elsewhere, or more than once, without changing the result.

import { visitExpression } from '../bind/walk-expression.js'
import { scalarOf } from '../functions/evaluate.js'
import type { Expression } from './plan.js'

/** True when no call in it gives another value at every row (rnd_*, systimestamp). */
export function isStable(expression: Expression): boolean {
  let stable = true
  visitExpression(expression, (part) => {
    if (part.kind === 'call' && scalarOf(part)?.volatility === 'row') stable = false
  })
  return stable
}
