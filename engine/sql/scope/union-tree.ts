// Builds a UNION ALL of many plans as a balanced tree, which keeps recursion over the plan shallow.

import type { Plan, PlanColumn } from '../plan/plan.js'

/**
 * The union of plans `from` (inclusive) to `to` (exclusive) of equal columns. If duplicates must be dropped, the caller
 * does it once at the root.
 */
export function unionOf(plans: readonly Plan[], columns: readonly PlanColumn[], from = 0, to = plans.length): Plan {
  if (to - from === 1) return plans[from] as Plan
  const middle = (from + to + 1) >>> 1
  const [left, right] = [unionOf(plans, columns, from, middle), unionOf(plans, columns, middle, to)]
  return { kind: 'set', columns, operation: 'union', all: true, left, right }
}
