// The rules in their order.

import type { EvaluationContext } from '../functions/function-types.js'
import { mergeProjects } from './merge-projects.js'
import { narrowValues } from './narrow-values.js'
import { ownGroupings } from './own-groupings.js'
import type { Plan, Query } from './plan.js'
import { pruneColumns } from './prune-columns.js'
import { pushFilters } from './push-filters.js'
import { orderRows } from './row-order.js'
import { extractRanges, type TablesOf } from './time-ranges.js'
import { mapInputs } from './walk-plan.js'

function optimisePlan(plan: Plan, tables: TablesOf, evaluation: EvaluationContext): Plan {
  const filtered = mergeProjects(pushFilters(mergeProjects(ownGroupings(plan, tables))))
  const pushed = extractRanges(narrowValues(filtered, evaluation), tables)
  return mergeProjects(pruneColumns(orderRows(limitSorts(pushed), tables)))
}

/** `evaluation`: of the statement, for what is computed while it is planned. */
export function optimiseQuery(query: Query, tables: TablesOf, evaluation: EvaluationContext): Query {
  const optimised = (plan: Plan): Plan => optimisePlan(plan, tables, evaluation)
  return {
    ...query,
    plan: optimised(query.plan),
    subqueries: query.subqueries.map((subquery) => ({ ...subquery, plan: optimised(subquery.plan) })),
  }
}

// Rule: a sort below a limit needs only the first rows.

function limitSorts(plan: Plan): Plan {
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
