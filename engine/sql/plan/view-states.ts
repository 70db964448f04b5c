// States of aggregates: hidden columns that a materialized view stores in addition to the results of its query. The
// planner needs them to combine several time buckets to a larger one: the mean of a day, for example, does not follow
// from the means of its hours, but it follows from their sums and counts.
//
//   sum, mean               sum and count
//   variance                count, mean, sum of squared deviations
//   covariance, regression  count; of both variables mean and sum of squared deviations; sum of products of deviations
//
// The view's query and the types of the table's columns determine which hidden columns there are. If they are others than
// those of the view, because a type has changed, refreshes store NULL in them, and nobody reads them. A change of the
// rule needs a new format number of the manifest (the file that lists the parts of all tables), because existing views
// would have to be created again.

import type { AggregateCall, Expression, Plan, PlanColumn } from './plan.js'
import { aggregatePlace, isSameCall, statesOf, viewColumns } from './view-columns.js'

/** The view's query with the states of its aggregates as last columns, apart from those that it returns anyway. */
export function withStates(query: Plan): Plan {
  const view = viewColumns(query)
  if (view === undefined) return query
  const { sample } = view
  const calls: AggregateCall[] = []
  for (const call of sample.aggregates.flatMap((own) => statesOf(own)?.calls ?? [])) {
    if (aggregatePlace(view, call) < 0 && !calls.some((other) => isSameCall(other, call))) calls.push(call)
  }
  if (calls.length === 0) return query
  const added = calls.map(({ name, type }, index): PlanColumn => ({ name: `~${index}_${name}`, type }))
  const stated: Plan = {
    ...sample,
    columns: [...sample.columns, ...added],
    aggregates: [...sample.aggregates, ...calls],
    fills: [...sample.fills, ...calls.map(() => ({ kind: 'none' }) as const)],
  }
  if (query.kind !== 'project') return stated
  const first = sample.columns.length
  const read = added.map(({ type }, index): Expression => ({ kind: 'column', index: first + index, type, position: 0 }))
  return {
    ...query,
    columns: [...query.columns, ...added],
    input: stated,
    expressions: [...query.expressions, ...read],
  }
}
