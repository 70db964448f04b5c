// One aggregation as several over the same rows, each of some of the aggregates: joined by the keys, which all of them have.

import { joinPlan } from './join-plan.js'
import type { AggregateCall, Expression, Plan, PlanColumn } from './plan.js'
import { mapInputs } from './walk-plan.js'

export type AggregatePlan = Extract<Plan, { kind: 'aggregate' }>

/** One row a group on each side: the first part gives the order. `made` says what becomes of a part. */
export function joinGroupings(
  plan: AggregatePlan,
  parts: readonly (readonly number[])[],
  made: (part: AggregatePlan) => Plan,
): Plan {
  const { keys, aggregates, columns } = plan
  const order = parts.flatMap((part, number) => [
    ...keys.map((_, key) => (number === 0 ? key : -1)),
    ...part.map((index) => keys.length + index),
  ])
  const pairs = keys.map((_, key) => [key, key] as const)
  const joined = parts
    .map((part) =>
      made({
        ...plan,
        // Nodes of a plan are told apart by what they are, not by where they stand.
        input: copied(plan.input),
        aggregates: part.map((index) => aggregates[index] as AggregateCall),
        columns: [...columns.slice(0, keys.length), ...part.map((index) => columns[keys.length + index] as PlanColumn)],
      }),
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
