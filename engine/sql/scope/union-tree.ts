// A union of many plans as a tree without depth.

import type { Plan, PlanColumn } from '../plan/plan.js'

/** Of the plans `from` to `to`, which have the columns. Rows that come twice are dropped, if at all, once at the root. */
export function unionOf(plans: readonly Plan[], columns: readonly PlanColumn[], from = 0, to = plans.length): Plan {
  if (to - from === 1) return plans[from] as Plan
  const middle = (from + to + 1) >>> 1
  const [left, right] = [unionOf(plans, columns, from, middle), unionOf(plans, columns, middle, to)]
  return { kind: 'set', columns, operation: 'union', all: true, left, right }
}
