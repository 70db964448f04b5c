// The rules in their order.

import type { EvaluationContext } from '../functions/function-types.js'
import type { Plan, Query } from './plan.js'
import { limitSorts } from './rules/limit-sorts.js'
import { mergeProjects } from './rules/merge-projects.js'
import { narrowValues } from './rules/narrow-values.js'
import { ownGroupings } from './rules/own-groupings.js'
import { pruneColumns } from './rules/prune-columns.js'
import { pushFilters } from './rules/push-filters.js'
import { orderRows } from './rules/row-order.js'
import { extractRanges, type TablesOf } from './rules/time-ranges.js'

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
