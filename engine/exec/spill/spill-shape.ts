// Describes how to partition the input of an operator that outgrows the memory: the inputs, the keys of each by which
// rows are partitioned, and the plan that computes the result of one partition. This plan is the same operator over the
// rows of the partition, or a grouping with the same result (DISTINCT, UNION, EXCEPT, INTERSECT). So no operator has a
// second implementation, and a partition that still outgrows the memory is partitioned again.
//
// Where the order of the result matters, each row carries its number in the input (rank): as an additional column, or,
// through an aggregation, as an additional min() aggregate. The result of each partition is ordered by it.

import type { Expression, Fill, Plan, SampleSpan, SortKey } from '../../sql/plan/plan.js'
import { isStable } from '../../sql/plan/volatile.js'
import { rewriteExpression } from '../../sql/typing/walk-expression.js'
import { type DataType, dataType } from '../../types/column-types.js'
import type { ExecContext } from '../batch/context.js'
import { isAscending, isUnordered, marksRight } from '../join/join-sides.js'
import { expressionKey } from '../window/window-rows.js'
import type { Ranking } from './partitioned-rows.js'
import { rankColumn, rankType } from './stored-rows.js'

type PlanOf<Kind extends Plan['kind']> = Extract<Plan, { kind: Kind }>

export interface SpillInput {
  readonly plan: Plan
  readonly keys: readonly Expression[]
  /** Types of the keys with which these are compared. */
  readonly comparedAs: readonly DataType[]
  readonly ranking: Ranking
  /** The plan whose buckets the rows make, if their span matters. */
  readonly sample?: PlanOf<'sample'>
}

export interface SpillShape {
  readonly inputs: readonly SpillInput[]
  /** The plan over one partition. `sources`: plans that read the partition of each input. `span`: of all rows. */
  readonly over: (sources: readonly Plan[], span?: SampleSpan) => Plan
  /** Order of the result by columns of that plan; null for any order. */
  readonly order: readonly SortKey[] | null
  /** The columns of that plan that are the result. */
  readonly output: readonly number[]
}

const booleanType = dataType('BOOLEAN')

/** null when the operator cannot be partitioned. */
export function spillShape(context: ExecContext, plan: Plan): SpillShape | null {
  switch (plan.kind) {
    case 'aggregate':
      return groupsShape(plan)
    case 'distinct':
      return groupsShape({ ...plan, kind: 'aggregate', keys: columnsOf(plan), aggregates: [] })
    case 'sample':
      return sampleShape(plan)
    case 'set':
      return setShape(plan)
    case 'window':
      return windowShape(plan)
    case 'latest':
      return latestShape(plan)
    case 'join':
      return joinShape(context, plan)
    default:
      return null
  }
}

function column(index: number, type: DataType): Expression {
  return { kind: 'column', index, type, position: 0 }
}

function columnsOf({ columns }: Pick<Plan, 'columns'>): Expression[] {
  return columns.map(({ type }, index) => column(index, type))
}

function pickColumns(plan: Plan, indexes: readonly number[]): Expression[] {
  const columns = columnsOf(plan)
  return indexes.flatMap((index) => columns[index] ?? [])
}

function typesOf(expressions: readonly Expression[]): DataType[] {
  return expressions.map(({ type }) => type)
}

function firstColumns(count: number): number[] {
  return Array.from({ length: count }, (_, index) => index)
}

function ascending(index: number): SortKey {
  return { index, descending: false, nullsFirst: false }
}

function oneInput(plan: Plan, keys: readonly Expression[]): SpillInput {
  return { plan, keys, comparedAs: typesOf(keys), ranking: 'rows' }
}

/** Groups come in the order of their first rows. */
function groupsShape(plan: PlanOf<'aggregate'>): SpillShape | null {
  const { columns, input, keys } = plan
  if (keys.length === 0 || !keys.every(isStable)) return null
  return {
    inputs: [oneInput(input, keys)],
    over: ([source]) => ({ ...plan, ...withFirstRanks(plan, source) }),
    order: [ascending(columns.length)],
    output: firstColumns(columns.length),
  }
}

/**
 * Buckets come in the order of time, with FILL all groups in each of them in the order of their first rows. Which buckets
 * there are depends on the span of all rows.
 */
function sampleShape(plan: PlanOf<'sample'>): SpillShape | null {
  const { columns, input, keys, fills } = plan
  if (keys.length === 0 || !keys.every(isStable)) return null
  const isFilling = fills.some(({ kind }) => kind !== 'none')
  const rank: Fill = { kind: isFilling ? 'first' : 'none' }
  return {
    inputs: [{ ...oneInput(input, keys), sample: plan }],
    over: ([source], span) => ({
      ...plan,
      ...withFirstRanks(plan, source),
      fills: [...fills, rank],
      span: plan.span ?? span,
    }),
    order: [ascending(0), ascending(columns.length)],
    output: firstColumns(columns.length),
  }
}

/** Members of a plan of groups over a partition, with the rank of each group's first row as the last column. */
function withFirstRanks({ input, columns, aggregates }: PlanOf<'aggregate' | 'sample'>, source = input) {
  return { input: source, columns: [...columns, rankColumn], aggregates: [...aggregates, firstRank(input)] }
}

function firstRank({ columns }: Plan): PlanOf<'aggregate'>['aggregates'][number] {
  return { name: 'min', args: [column(columns.length, rankType)], type: rankType, position: 0 }
}

function setShape(plan: PlanOf<'set'>): SpillShape | null {
  const { operation, all, left, right, columns } = plan
  if (operation === 'union') {
    if (all) return null
    const rows: Plan = { ...plan, all: true }
    return groupsShape({ kind: 'aggregate', columns, input: rows, keys: columnsOf(plan), aggregates: [] })
  }
  // The left side may have the rank of an earlier level as well.
  const keys = { left: columnsOf(left).slice(0, right.columns.length), right: columnsOf(right) }
  const inputs: SpillInput[] = [
    { plan: left, keys: keys.left, comparedAs: typesOf(keys.right), ranking: 'rows' },
    { plan: right, keys: keys.right, comparedAs: typesOf(keys.left), ranking: all ? 'none' : 'null' },
  ]
  const order = [ascending(columns.length)]
  const output = firstColumns(columns.length)
  return {
    inputs,
    order,
    output,
    over: ([ranked = left, other = right]) =>
      all
        ? { ...plan, left: ranked, right: other, columns: [...columns, rankColumn] }
        : distinctMatches(plan, ranked, other),
  }
}

/**
 * EXCEPT and INTERSECT without duplicates: the rows of both sides are grouped together. Rows of the right side have no
 * rank, so the counts of ranks and rows tell on which sides a group occurs.
 */
function distinctMatches(plan: PlanOf<'set'>, left: Plan, right: Plan): Plan {
  const width = plan.columns.length
  const both: Plan = { ...plan, operation: 'union', all: true, left, right, columns: [...plan.columns, rankColumn] }
  const counted = (args: readonly Expression[]) => ({ name: 'count', args, type: rankType, position: 0 })
  const groups: Plan = {
    kind: 'aggregate',
    input: both,
    columns: [...plan.columns, rankColumn, { name: 'ranked', type: rankType }, { name: 'rows', type: rankType }],
    keys: columnsOf(plan),
    aggregates: [firstRank(plan), counted([column(width, rankType)]), counted([])],
  }
  const [ranked, rows] = [column(width + 1, rankType), column(width + 2, rankType)]
  const none: Expression = { kind: 'constant', value: 0n, type: rankType, position: 0 }
  const isLess = (a: Expression, b: Expression): Expression => call('<', [a, b])
  const predicate =
    plan.operation === 'intersect'
      ? call('and', [isLess(none, ranked), isLess(ranked, rows)])
      : call('=', [ranked, rows])
  return { kind: 'filter', input: groups, columns: groups.columns, predicate }
}

function call(name: string, args: readonly Expression[]): Expression {
  return { kind: 'call', name, args, type: booleanType, position: 0 }
}

/** The calls must have the same partitions. */
function windowShape(plan: PlanOf<'window'>): SpillShape | null {
  const { input, calls, columns } = plan
  const [first] = calls
  if (first === undefined || first.partitionBy.length === 0 || !first.partitionBy.every(isStable)) return null
  const key = expressionKey(first.partitionBy)
  if (calls.some(({ partitionBy }) => expressionKey(partitionBy) !== key)) return null
  const width = input.columns.length
  return {
    inputs: [oneInput(input, first.partitionBy)],
    over: ([source = input]) => ({
      ...plan,
      input: source,
      columns: [...columns.slice(0, width), rankColumn, ...columns.slice(width)],
    }),
    order: [ascending(width)],
    output: columns.map((_, index) => (index < width ? index : index + 1)),
  }
}

/** Rows come in the order of time, then in that of the input. */
function latestShape(plan: PlanOf<'latest'>): SpillShape {
  const { input, columns, keys, timestampIndex } = plan
  return {
    inputs: [oneInput(input, pickColumns(input, keys))],
    over: ([source = input]) => ({ ...plan, input: source, columns: [...columns, rankColumn] }),
    order: [{ index: timestampIndex, descending: false, nullsFirst: true }, ascending(columns.length)],
    output: firstColumns(columns.length),
  }
}

function joinShape(context: ExecContext, plan: PlanOf<'join'>): SpillShape | null {
  const { join, right, leftKeys, rightKeys, columns } = plan
  if (leftKeys.length === 0) return null
  if (join === 'splice') return spliceShape(plan)
  const left = probedInOrder(context, plan)
  const ranks = ranksOf(context, plan)
  const keys = { left: pickColumns(left, leftKeys), right: pickColumns(right, rightKeys) }
  const width = left.columns.length
  const shift = ranks.left ? 1 : 0
  const inputs: SpillInput[] = [
    { plan: left, keys: keys.left, comparedAs: typesOf(keys.right), ranking: ranks.left ? 'rows' : 'none' },
    { plan: right, keys: keys.right, comparedAs: typesOf(keys.left), ranking: ranks.right ? 'rows' : 'none' },
  ]
  const order = [...(ranks.left ? [ascending(width)] : []), ...(ranks.right ? [ascending(columns.length + shift)] : [])]
  return {
    inputs,
    over: ([ranked = left, other = right]) => {
      const joined: Plan = {
        ...plan,
        left: ranked,
        right: other,
        columns: [
          ...columns.slice(0, width),
          ...(ranks.left ? [rankColumn] : []),
          ...columns.slice(width),
          ...(ranks.right ? [rankColumn] : []),
        ],
        residual: plan.residual === null ? null : shifted(plan.residual, width, shift),
      }
      // Over a partition the rows come in the order of the right side.
      const isTurned = marksRight(context, plan)
      return isTurned ? { kind: 'sort', columns: joined.columns, input: joined, keys: order, limit: null } : joined
    },
    order: order.length === 0 ? null : order,
    output: columns.map((_, index) => (index < width ? index : index + shift)),
  }
}

/** Rows of both sides come in the order of time, at equal times those of the left side first. */
function spliceShape(plan: PlanOf<'join'>): SpillShape {
  const { left, right, leftKeys, rightKeys, columns, placed = 0 } = plan
  const keys = { left: pickColumns(left, leftKeys), right: pickColumns(right, rightKeys) }
  const inputs: SpillInput[] = [
    { plan: left, keys: keys.left, comparedAs: typesOf(keys.right), ranking: 'rows' },
    { plan: right, keys: keys.right, comparedAs: typesOf(keys.left), ranking: 'rows' },
  ]
  const width = left.columns.length
  const both = width + right.columns.length
  const place = Array.from({ length: placed + 3 }, () => rankColumn)
  // After both sides with their ranks: the time, the side, and ranks of earlier levels before that of this one.
  const [time, side, rank] = [both + 2, both + 3, both + 4 + placed]
  return {
    inputs,
    over: ([ranked = left, other = right]) => ({
      ...plan,
      left: ranked,
      right: other,
      placed: placed + 1,
      columns: [...columns.slice(0, width), rankColumn, ...columns.slice(width, both), rankColumn, ...place],
    }),
    order: [{ index: time, descending: false, nullsFirst: true }, ascending(side), ascending(rank)],
    output: columns.map((_, index) => (index < width ? index : index < both ? index + 1 : index + 2)),
  }
}

/** The left side. ASOF and LT JOIN return its rows in the order of time. */
function probedInOrder(context: ExecContext, { join, left, leftTimestamp: index }: PlanOf<'join'>): Plan {
  if ((join !== 'asof' && join !== 'lt') || isAscending(context, left, index)) return left
  const keys = [{ index, descending: false, nullsFirst: true }]
  return { kind: 'sort', columns: left.columns, input: left, keys, limit: null }
}

/** The sides whose order the result has. */
function ranksOf(context: ExecContext, plan: PlanOf<'join'>): { left: boolean; right: boolean } {
  const { join, left } = plan
  switch (join) {
    case 'right':
      // marksRight(): rows without a match come last, unless the join spills.
      return { left: marksRight(context, plan), right: true }
    case 'full':
      return { left: true, right: true }
    case 'inner':
      return { left: !isUnordered(context, left), right: false }
    default:
      return { left: true, right: false }
  }
}

function shifted(expression: Expression, from: number, by: number): Expression {
  if (by === 0) return expression
  return rewriteExpression(expression, (part) =>
    part.kind === 'column' && part.index >= from ? { ...part, index: part.index + by } : undefined,
  )
}
