// The rules in their order.

import type { Plan, Query } from './plan.js'
import { limitSorts } from './rules/limit-sorts.js'
import { mergeProjects } from './rules/merge-projects.js'
import { ownGroupings } from './rules/own-groupings.js'
import { pruneColumns } from './rules/prune-columns.js'
import { pushFilters } from './rules/push-filters.js'
import { orderRows } from './rules/row-order.js'
import { extractRanges, type TablesOf } from './rules/time-ranges.js'

export function optimisePlan(plan: Plan, tables: TablesOf): Plan {
  const pushed = extractRanges(mergeProjects(pushFilters(mergeProjects(ownGroupings(plan, tables)))), tables)
  return mergeProjects(pruneColumns(orderRows(limitSorts(pushed), tables)))
}

export function optimiseQuery(query: Query, tables: TablesOf): Query {
  return {
    ...query,
    plan: optimisePlan(query.plan, tables),
    subqueries: query.subqueries.map((subquery) => ({ ...subquery, plan: optimisePlan(subquery.plan, tables) })),
  }
}
