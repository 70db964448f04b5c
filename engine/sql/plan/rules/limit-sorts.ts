// Rule: a sort below a limit needs only the first rows.

import type { Plan } from '../plan.js'
import { mapInputs } from '../walk-plan.js'

export function limitSorts(plan: Plan): Plan {
  const below = mapInputs(plan, limitSorts)
  if (below.kind !== 'limit' || below.lo < 0 || below.hi === null || below.hi < 0) return below
  return { ...below, input: bounded(below.input, below.hi) }
}

/** Rows keep their number and order through projections. */
function bounded(plan: Plan, rows: number): Plan {
  if (plan.kind === 'project') return { ...plan, input: bounded(plan.input, rows) }
  if (plan.kind !== 'sort') return plan
  return { ...plan, limit: plan.limit === null ? rows : Math.min(plan.limit, rows) }
}
