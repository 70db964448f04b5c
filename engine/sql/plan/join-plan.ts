// Joins that rules and the binder make themselves.

import type { Plan } from './plan.js'

type Join = Extract<Plan, { kind: 'join' }>

/** Joins by pairs of columns; the right side's columns come behind the left's. */
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
