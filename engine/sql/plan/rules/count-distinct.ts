// Rule: count_distinct(x), or approx_count_distinct(x), as the only aggregate counts the rows of a distinct list of the keys and x, which hash tables
// make batch by batch, instead of keeping a set of values per group.

import type { AggregateCall, Expression, Plan, PlanColumn } from '../plan.js'
import { mapInputs } from '../walk-plan.js'

export function countDistinct(plan: Plan): Plan {
  const below = mapInputs(plan, countDistinct)
  if (below.kind !== 'aggregate' || below.aggregates.length !== 1) return below
  const [call] = below.aggregates
  const [counted] = call?.args ?? []
  if (call === undefined || !isCount(call) || counted === undefined) return below
  const expressions = [...below.keys, counted]
  const columns: PlanColumn[] = expressions.map(({ type }, index) => ({ name: `c${index}`, type }))
  const column = (index: number): Expression => {
    const { type, position } = expressions[index] as Expression
    return { kind: 'column', index, type, position }
  }
  const input: Plan = {
    kind: 'distinct',
    columns,
    input: { kind: 'project', columns, input: below.input, expressions },
  }
  const count = { ...call, name: 'count', args: [column(below.keys.length)] }
  return { ...below, input, keys: below.keys.map((_, index) => column(index)), aggregates: [count] }
}

/** What may be estimated is counted as well: its precision says nothing then. */
function isCount({ name, args }: AggregateCall): boolean {
  return name === 'approx_count_distinct' || (name === 'count_distinct' && args.length === 1)
}
