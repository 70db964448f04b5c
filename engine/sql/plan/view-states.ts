// States of aggregates: further columns that a materialized view stores and its readers do not see, so that buckets
// combine. A mean has a sum and a count; a variance the count, the mean and the squared deviations; a covariance or
// regression these of both variables and the products.
//
// Which columns there are follows from the query alone. A change of that needs a new format of the manifest, because
// views that exist would have to be created again.

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
