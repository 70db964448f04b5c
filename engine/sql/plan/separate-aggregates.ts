// Planner rule: chooses a faster algorithm for certain aggregates. count_distinct(x), approx_count_distinct(x) and
// mode(x) are computed by an inner grouping by the keys and x. Such a grouping is vectorised and parallel; a set of
// values for each group would not be. first() and last() without GROUP BY are computed from rows at the ends of a table
// (first-last.ts). If a query mixes these with each other or with other aggregates, and its input can be read several
// times, it is split into one aggregation per algorithm, and their results are joined by the keys
// (join-aggregations.ts).

import { dataType } from '../../types/column-types.js'
import { firstLast } from './first-last.js'
import { type AggregatePlan, joinAggregations } from './join-aggregations.js'
import type { AggregateCall, Expression, Plan, PlanColumn } from './plan.js'
import type { TablesOf } from './time-ranges.js'
import { isStable } from './volatile.js'
import { mapInputs } from './walk-plan.js'

export function separateAggregates(plan: Plan, tables: TablesOf): Plan {
  const below = mapInputs(plan, (input) => separateAggregates(input, tables))
  if (below.kind !== 'aggregate') return below
  const parts = partsOf(below, tables)
  if (parts.length < 2) return below.aggregates.some(isOwn) ? ownGrouping(below) : below
  return isRepeatable(below.input) && below.keys.every(isStable) ? joinAggregations(below, parts, made) : below
}

function made(part: AggregatePlan): Plan {
  return part.aggregates.some(isOwn) ? ownGrouping(part) : part
}

/** Indexes of the aggregates that are computed together. */
function partsOf({ keys, aggregates, input }: AggregatePlan, tables: TablesOf): number[][] {
  const numbers = aggregates.map((_, index) => index)
  const call = (index: number): AggregateCall => aggregates[index] as AggregateCall
  const own = numbers.filter((index) => isOwn(call(index)))
  const walks = keys.length === 0 && isTimed(input, tables)
  const ends = walks ? numbers.filter((index) => firstLast(call(index)) !== undefined) : []
  const others = numbers.filter((index) => !own.includes(index) && !ends.includes(index))
  return [others, ends, ...own.map((index) => [index])].filter((part) => part.length > 0)
}

/** Whether the rows come from one table with a designated timestamp. */
function isTimed(plan: Plan, tables: TablesOf): boolean {
  if (plan.kind === 'filter' || plan.kind === 'project') return isTimed(plan.input, tables)
  return plan.kind === 'scan' && (tables(plan.table)?.schema.timestampId ?? -1) >= 0
}

function isOwn(call: AggregateCall): boolean {
  return isDistinctCount(call) || isMode(call)
}

/** Rewrites an aggregation that has only this aggregate. */
function ownGrouping(plan: AggregatePlan): Plan {
  return plan.aggregates.every(isMode) ? modeOfCounts(plan) : countOfDistinct(plan)
}

/** Whether the input can be read several times at little cost, with the same rows in the same order. */
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

// mode(x) is the value with the highest count among the (keys, x) groups. The groups come in the order of their first
// rows, so of several equally frequent values the first one wins.

/** Rewrites an aggregation whose only aggregate is mode(). */
function modeOfCounts(plan: Extract<Plan, { kind: 'aggregate' }>): Plan {
  const [call] = plan.aggregates
  const [requested] = call?.args ?? []
  if (call === undefined || requested === undefined) return plan
  const type = dataType('LONG')
  const counted: AggregateCall = { name: 'count', args: [], type, position: call.position }
  const pairs = [...plan.keys, requested]
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

/** Whether the argument's type can be a group key and has a NULL. */
function isMode({ name, args }: AggregateCall): boolean {
  const [requested, ...more] = args
  return name === 'mode' && requested !== undefined && more.length === 0 && !others.has(requested.type.name)
}

const others: ReadonlySet<string> = new Set(['ARRAY', 'BINARY', 'CHAR', 'INTERVAL'])

/**
 * Rewrites an aggregation whose only aggregate is count_distinct(x) or approx_count_distinct(x): a DISTINCT of the
 * group keys and x below it, then a plain count of the rows of each group.
 */
function countOfDistinct(plan: Extract<Plan, { kind: 'aggregate' }>): Plan {
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
function isDistinctCount({ name, args }: AggregateCall): boolean {
  return name === 'approx_count_distinct' || (name === 'count_distinct' && args.length === 1)
}
