// Rule: count_distinct(x) and mode(x) are made of a grouping by the keys and x (count-distinct.ts, modeOfCounts), which hash tables
// make batch by batch and threads share, instead of keeping the values of each group. Beside other aggregates each is a
// grouping of its own over the same rows; the groupings are joined by the keys. All of them have the same groups. First and last
// values of all rows of a table, which are found without reading the others (end-values.ts), are one beside the rest, too.

import { dataType } from '../../types/column-types.js'
import { countOfDistinct, isDistinctCount } from './count-distinct.js'
import { endValue } from './end-values.js'
import { type AggregatePlan, joinGroupings } from './join-groupings.js'
import type { AggregateCall, Expression, Plan, PlanColumn } from './plan.js'
import type { TablesOf } from './time-ranges.js'
import { isStable } from './volatile.js'
import { mapInputs } from './walk-plan.js'

export function ownGroupings(plan: Plan, tables: TablesOf): Plan {
  const below = mapInputs(plan, (input) => ownGroupings(input, tables))
  if (below.kind !== 'aggregate') return below
  const parts = partsOf(below, tables)
  if (parts.length < 2) return below.aggregates.some(isOwn) ? ownGrouping(below) : below
  return isRepeatable(below.input) && below.keys.every(isStable) ? joinGroupings(below, parts, made) : below
}

function made(part: AggregatePlan): Plan {
  return part.aggregates.some(isOwn) ? ownGrouping(part) : part
}

/** Numbers of the aggregates that are made together. */
function partsOf({ keys, aggregates, input }: AggregatePlan, tables: TablesOf): number[][] {
  const numbers = aggregates.map((_, index) => index)
  const call = (index: number): AggregateCall => aggregates[index] as AggregateCall
  const own = numbers.filter((index) => isOwn(call(index)))
  const walks = keys.length === 0 && isTimed(input, tables)
  const ends = walks ? numbers.filter((index) => endValue(call(index)) !== undefined) : []
  const others = numbers.filter((index) => !own.includes(index) && !ends.includes(index))
  return [others, ends, ...own.map((index) => [index])].filter((part) => part.length > 0)
}

/** Rows of one table with a designated timestamp. */
function isTimed(plan: Plan, tables: TablesOf): boolean {
  if (plan.kind === 'filter' || plan.kind === 'project') return isTimed(plan.input, tables)
  return plan.kind === 'scan' && (tables(plan.table)?.schema.timestampId ?? -1) >= 0
}

function isOwn(call: AggregateCall): boolean {
  return isDistinctCount(call) || isMode(call)
}

/** Of an aggregation with nothing else. */
function ownGrouping(plan: AggregatePlan): Plan {
  return plan.aggregates.every(isMode) ? modeOfCounts(plan) : countOfDistinct(plan)
}

/** Rows of tables that are the same, in the same order, each time they are read, for little. */
function isRepeatable(plan: Plan): boolean {
  switch (plan.kind) {
    case 'scan':
      return plan.filter === null || isStable(plan.filter)
    case 'filter':
      return isStable(plan.predicate) && isRepeatable(plan.input)
    case 'project':
      return plan.expressions.every(isStable) && isRepeatable(plan.input)
    case 'join':
      return (plan.residual === null || isStable(plan.residual)) && isRepeatable(plan.left) && isRepeatable(plan.right)
    default:
      return false
  }
}

// mode(x) is the x with the most rows among the counted pairs of the keys and x. Pairs come in the order of
// their first rows, so that the first of several values that are as frequent is found.

/** Of an aggregation with nothing but such a call. */
function modeOfCounts(plan: Extract<Plan, { kind: 'aggregate' }>): Plan {
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
function isMode({ name, args }: AggregateCall): boolean {
  const [asked, ...more] = args
  return name === 'mode' && asked !== undefined && more.length === 0 && !others.has(asked.type.name)
}

const others: ReadonlySet<string> = new Set(['ARRAY', 'BINARY', 'CHAR', 'INTERVAL'])
