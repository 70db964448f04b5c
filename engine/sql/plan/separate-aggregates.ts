// Planner rule: chooses a faster algorithm for certain aggregates. count_distinct(x), approx_count_distinct(x),
// sum_distinct(x), avg_distinct(x) and mode(x) are computed by an inner grouping by the keys and x. Such a grouping is
// vectorised and parallel; a set of values for each group would not be. first() and last() without GROUP BY are computed from rows at the ends of a table
// (first-last.ts). If a query mixes these with each other or with other aggregates, and its input can be read several
// times, it is split into one aggregation per algorithm, and their results are joined by the keys
// (join-aggregations.ts).

import { dataType } from '../../types/column-types.js'
import { firstLast } from './first-last.js'
import { type AggregatePlan, joinAggregations, type SamplePlan } from './join-aggregations.js'
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

/**
 * The same for an aggregation or a SAMPLE BY over stored rows, which can be read several times; null if no aggregate has
 * an algorithm of its own, or reading the rows again could give other groups.
 */
export function separatedAggregates(plan: AggregatePlan | SamplePlan): Plan | null {
  if (!plan.keys.every(isStable)) return null
  if (plan.kind === 'sample') return separatedSample(plan)
  if (!plan.aggregates.some(isOwn)) return null
  const parts = partsOf(plan, () => undefined)
  return parts.length < 2 ? ownGrouping(plan) : joinAggregations(plan, parts, made)
}

function separatedSample(plan: SamplePlan): Plan | null {
  const numbers = plan.aggregates.map((_, index) => index)
  const isDistinct = (index: number): boolean => plainNameOf(plan.aggregates[index] as AggregateCall) !== undefined
  const own = numbers.filter(isDistinct)
  const others = numbers.filter((index) => !isDistinct(index))
  if (own.length === 0 || (isFilling(plan) && plan.align.kind === 'calendar' && plan.align.zone !== null)) return null
  const parts = [others, ...own.map((index) => [index])].filter((part) => part.length > 0)
  return joinAggregations(plan, parts, (part, indexes) => {
    const filled = { ...part, fills: indexes.map((index) => plan.fills[index] ?? ({ kind: 'none' } as const)) }
    return indexes === others ? filled : sampleOfDistinct(filled)
  })
}

function isFilling({ fills }: SamplePlan): boolean {
  return fills.some(({ kind }) => kind !== 'none')
}

/**
 * Each distinct value of a group in each bucket, and the plain aggregate over those of each group and bucket. With FILL
 * this is a SAMPLE BY of the starts of the buckets. In a time zone that would be wrong, since the start of a bucket may
 * be in an earlier one where clocks change.
 */
function sampleOfDistinct(plan: SamplePlan): Plan {
  const [call] = plan.aggregates
  const [counted] = call?.args ?? []
  const time = plan.columns[0]
  if (call === undefined || counted === undefined || time === undefined) return plan
  const expressions = [...plan.keys, counted]
  const columns = [time, ...expressions.map(({ type }, index): PlanColumn => ({ name: `c${index}`, type }))]
  const values = expressions.map(
    ({ type, position }, index): Expression => ({
      ...{ kind: 'column', index: index + 1, type, position },
    }),
  )
  const input: Plan = { ...plan, columns, keys: expressions, aggregates: [], fills: [] }
  const plain = { ...call, name: plainNameOf(call) ?? call.name, args: values.slice(-1) }
  const keys = values.slice(0, -1)
  if (isFilling(plan)) return { ...plan, input, timestampIndex: 0, keys, aggregates: [plain] }
  const bucket: Expression = { kind: 'column', index: 0, type: time.type, position: 0 }
  return { kind: 'aggregate', columns: plan.columns, input, keys: [bucket, ...keys], aggregates: [plain] }
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
  return plainNameOf(call) !== undefined || isMode(call)
}

/** Rewrites an aggregation that has only this aggregate. */
function ownGrouping(plan: AggregatePlan): Plan {
  return plan.aggregates.every(isMode) ? modeOfCounts(plan) : overDistinct(plan)
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
 * Rewrites an aggregation whose only aggregate is over the distinct values of x: a DISTINCT of the group keys and x
 * below it, then the plain aggregate over the rows of each group.
 */
function overDistinct(plan: Extract<Plan, { kind: 'aggregate' }>): Plan {
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
  const plain = { ...call, name: plainNameOf(call) ?? call.name, args: [column(plan.keys.length)] }
  return { ...plan, input, keys: plan.keys.map((_, index) => column(index)), aggregates: [plain] }
}

/** approx_count_distinct() is counted exactly too; its precision argument is ignored. */
const plainNames: ReadonlyMap<string, string> = new Map([
  ['count_distinct', 'count'],
  ['approx_count_distinct', 'count'],
  ['sum_distinct', 'sum'],
  ['avg_distinct', 'avg'],
])

function plainNameOf({ name, args }: AggregateCall): string | undefined {
  return args.length === 1 || name === 'approx_count_distinct' ? plainNames.get(name) : undefined
}
