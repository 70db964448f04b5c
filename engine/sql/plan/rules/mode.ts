// mode(x) is the x with the most rows among the counted pairs of the keys and x (own-groupings.ts). Pairs come in the order of
// their first rows, so that the first of several values that are as frequent is found.

import { dataType } from '../../../types/column-types.js'
import type { AggregateCall, Expression, Plan, PlanColumn } from '../plan.js'

/** Of an aggregation with nothing but such a call. */
export function modeOfCounts(plan: Extract<Plan, { kind: 'aggregate' }>): Plan {
  const [call] = plan.aggregates
  const [asked] = call?.args ?? []
  if (call === undefined || asked === undefined) return plan
  const type = dataType('LONG')
  const counted: AggregateCall = { name: 'count', args: [], type, position: call.position }
  const pairs = [...plan.keys, asked]
  const columns = [...pairs, counted].map((of, index): PlanColumn => ({ name: `c${index}`, type: of.type }))
  const column = (index: number): Expression => ({
    kind: 'column',
    index,
    type: (columns[index] as PlanColumn).type,
    position: call.position,
  })
  const input: Plan = {
    kind: 'aggregate',
    columns,
    input: plan.input,
    keys: pairs,
    aggregates: [counted],
    ordered: true,
  }
  const { length } = plan.keys
  const most = { ...call, name: 'most_frequent', args: [column(length), column(length + 1)] }
  return { ...plan, input, keys: plan.keys.map((_, index) => column(index)), aggregates: [most] }
}

/** Of values that can be keys, and are NULL as such. */
export function isMode({ name, args }: AggregateCall): boolean {
  const [asked, ...more] = args
  return name === 'mode' && asked !== undefined && more.length === 0 && !others.has(asked.type.name)
}

const others: ReadonlySet<string> = new Set(['ARRAY', 'BINARY', 'CHAR', 'INTERVAL'])
