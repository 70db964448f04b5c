// Rewrites an aggregation that computes count_distinct(x) or approx_count_distinct(x): a DISTINCT of the group keys and
// x below it, then a plain count of the rows of each group. Unlike a set of values for each group, the DISTINCT runs in
// parallel. own-groupings.ts decides when to apply it.

import type { AggregateCall, Expression, Plan, PlanColumn } from './plan.js'

/** Rewrites an aggregation whose only aggregate is such a count. */
export function countOfDistinct(plan: Extract<Plan, { kind: 'aggregate' }>): Plan {
  const [call] = plan.aggregates
  const [counted] = call?.args ?? []
  if (call === undefined || counted === undefined) return plan
  const expressions = [...plan.keys, counted]
  const columns: PlanColumn[] = expressions.map(({ type }, index) => ({ name: `c${index}`, type }))
  const column = (index: number): Expression => {
    const { type, position } = expressions[index] as Expression
    return { kind: 'column', index, type, position }
  }
  const input: Plan = {
    kind: 'distinct',
    columns,
    input: { kind: 'project', columns, input: plan.input, expressions },
  }
  const count = { ...call, name: 'count', args: [column(plan.keys.length)] }
  return { ...plan, input, keys: plan.keys.map((_, index) => column(index)), aggregates: [count] }
}

/** approx_count_distinct() is counted exactly too; its precision argument is ignored. */
export function isDistinctCount({ name, args }: AggregateCall): boolean {
  return name === 'approx_count_distinct' || (name === 'count_distinct' && args.length === 1)
}
