// The optimiser: applies the planner rules to the plan of a query and of its sub-queries, in a fixed order.

import type { EvaluationContext } from '../functions/function-types.js'
import { mergeProjects } from './merge-projects.js'
import type { Plan, Query } from './plan.js'
import { pruneColumns } from './prune-columns.js'
import { pruneConstantRows } from './prune-constant-rows.js'
import { pushFilters } from './push-filters.js'
import { orderRows } from './row-order.js'
import { separateAggregates } from './separate-aggregates.js'
import { extractRanges, type TablesOf } from './time-ranges.js'
import { mapInputs } from './walk-plan.js'

function optimisePlan(plan: Plan, tables: TablesOf, evaluation: EvaluationContext): Plan {
  const filtered = mergeProjects(pushFilters(mergeProjects(separateAggregates(plan, tables))))
  const pushed = extractRanges(pruneConstantRows(filtered, evaluation), tables)
  return mergeProjects(pruneColumns(orderRows(limitSorts(pushed), tables)))
}

/** The optimised query. `evaluation` is the statement's context for expressions that rules compute while planning. */
export function optimiseQuery(query: Query, tables: TablesOf, evaluation: EvaluationContext): Query {
  const optimised = (plan: Plan): Plan => optimisePlan(plan, tables, evaluation)
  return {
    ...query,
    plan: optimised(query.plan),
    subqueries: query.subqueries.map((subquery) => ({ ...subquery, plan: optimised(subquery.plan) })),
  }
}

// Planner rule: a sort below a LIMIT only keeps the first rows (top-N).

function limitSorts(plan: Plan): Plan {
  const below = mapInputs(plan, limitSorts)
  if (below.kind !== 'limit' || below.lo < 0 || below.hi === null || below.hi < 0) return below
  return { ...below, input: bounded(below.input, below.hi) }
}

/** Pushes the bound through projections, which keep the number and order of rows. */
function bounded(plan: Plan, rows: number): Plan {
  if (plan.kind === 'project') return { ...plan, input: bounded(plan.input, rows) }
  if (plan.kind !== 'sort') return plan
  return { ...plan, limit: plan.limit === null ? rows : Math.min(plan.limit, rows) }
}
