// Splits an aggregation into several over the same input, each of which computes some of the aggregates, and joins
// their results by the group keys; for SAMPLE BY, the start of the bucket is one of them. The rule
// separate-aggregates.ts does so for queries whose aggregates need different algorithms, such as sum(a) and
// count_distinct(b). All of these aggregations have the same groups, so an inner join loses none.

import { joinPlan } from './join-plan.js'
import type { AggregateCall, Expression, Plan, PlanColumn } from './plan.js'
import { mapInputs } from './walk-plan.js'

export type AggregatePlan = Extract<Plan, { kind: 'aggregate' }>
export type SamplePlan = Extract<Plan, { kind: 'sample' }>

/**
 * The join of the parts, with the columns of `plan`. Each element of `parts` lists indexes of aggregates; `made`
 * rewrites the aggregation of a part. The first part determines the order of rows.
 */
export function joinAggregations<Groups extends AggregatePlan | SamplePlan>(
  plan: Groups,
  parts: readonly (readonly number[])[],
  made: (part: Groups, indexes: readonly number[]) => Plan,
): Plan {
  const { aggregates, columns } = plan
  const keys = columns.slice(0, columns.length - aggregates.length)
  const order = parts.flatMap((part, number) => [
    ...keys.map((_, key) => (number === 0 ? key : -1)),
    ...part.map((index) => keys.length + index),
  ])
  const pairs = keys.map((_, key) => [key, key] as const)
  const joined = parts
    .map((part) =>
      made(
        {
          ...plan,
          // Copied, because nodes of a plan are told apart by object identity.
          input: copied(plan.input),
          aggregates: part.map((index) => aggregates[index] as AggregateCall),
          columns: [...keys, ...part.map((index) => columns[keys.length + index] as PlanColumn)],
        },
        part,
      ),
    )
    .reduce((left, right) => joinPlan(keys.length === 0 ? 'cross' : 'inner', left, right, pairs))
  const expressions = columns.map((_, index): Expression => {
    const at = order.indexOf(index)
    return { kind: 'column', index: at, type: (joined.columns[at] as PlanColumn).type, position: 0 }
  })
  return { kind: 'project', columns, input: joined, expressions }
}

function copied(plan: Plan): Plan {
  return { ...mapInputs(plan, copied) }
}
