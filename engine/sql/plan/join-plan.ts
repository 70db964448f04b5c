// Builds the plan node of an inner, left or cross join from its two inputs and the pairs of key columns.

import type { Plan } from './plan.js'

type Join = Extract<Plan, { kind: 'join' }>

/** A join on equal pairs of columns. The output has the left columns, then the right ones. */
export function joinPlan(
  join: 'inner' | 'left' | 'cross',
  left: Plan,
  right: Plan,
  pairs: readonly (readonly [number, number])[],
): Join {
  return {
    kind: 'join',
    columns: [...left.columns, ...right.columns],
    join,
    left,
    right,
    leftKeys: pairs.map(([index]) => index),
    rightKeys: pairs.map(([, index]) => index),
    residual: null,
    leftTimestamp: -1,
    rightTimestamp: -1,
    tolerance: null,
  }
}
