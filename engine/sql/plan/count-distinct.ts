// count_distinct(x), or approx_count_distinct(x), counts the rows of a distinct list of the keys and x (own-groupings.ts).

import type { AggregateCall, Expression, Plan, PlanColumn } from './plan.js'

/** Of an aggregation with nothing but such a count. */
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

/** What may be estimated is counted as well: its precision says nothing then. */
export function isDistinctCount({ name, args }: AggregateCall): boolean {
  return name === 'approx_count_distinct' || (name === 'count_distinct' && args.length === 1)
}
