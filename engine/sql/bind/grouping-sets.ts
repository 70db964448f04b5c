// Plans GROUP BY ROLLUP, CUBE and GROUPING SETS as a UNION ALL with one aggregation of the same input for each set.
// Keys that a set omits are NULL in its rows; grouping() is a constant in each branch.

import { SqlError } from '../../base/errors.js'
import { type DataType, dataType } from '../../types/column-types.js'
import { nullOf } from '../../types/convert.js'
import type { AggregateCall, Expression, Plan, PlanColumn } from '../plan/plan.js'
import type { Relation } from '../scope/scope.js'
import { unionOf } from '../scope/union-tree.js'
import { castTo, constantOf, expressionKey } from '../typing/types.js'
import { columnExpression } from './order.js'

/** Name of grouping() among the aggregates of a list. */
export const groupingName = 'grouping'
const argumentsMax = 31

const intType = dataType('INT')
const rowCount: AggregateCall = { name: 'count', args: [], type: dataType('LONG'), position: 0 }

export function groupingCall(args: readonly Expression[], position: number): AggregateCall {
  if (args.length === 0) throw new SqlError('grouping() takes keys of GROUP BY', position)
  if (args.length > argumentsMax) throw new SqlError('grouping() takes fewer than 32 arguments', position)
  return { name: groupingName, args, type: intType, position }
}

export function isGrouping({ name }: AggregateCall): boolean {
  return name === groupingName
}

export interface SetGroups {
  readonly input: Plan
  readonly keys: readonly Expression[]
  /** Indexes into the keys. */
  readonly sets: readonly (readonly number[])[]
  readonly aggregates: readonly AggregateCall[]
  /** The keys, then the aggregates. */
  readonly columns: readonly PlanColumn[]
}

export function groupsOfSets(groups: SetGroups): Plan {
  const { sets, columns } = groups
  // The branches of a union share no symbol dictionary, so symbols become strings.
  const plain = columns.map((column) => (isSymbol(column) ? { ...column, type: dataType('STRING') } : column))
  const united = unionOf(
    sets.map((set) => groupsOfSet(groups, new Set(set), plain)),
    plain,
  )
  if (!columns.some(isSymbol)) return united
  return { kind: 'project', columns, input: united, expressions: columns.map(castOf(plain)) }
}

function isSymbol({ type }: PlanColumn): boolean {
  return type.name === 'SYMBOL'
}

function castOf(from: readonly PlanColumn[]) {
  return ({ type }: PlanColumn, index: number): Expression => {
    const column = columnExpression(from[index] as PlanColumn, index)
    return type.name === column.type.name ? column : castTo(column, type)
  }
}

function groupsOfSet(
  { input, keys, aggregates }: SetGroups,
  set: ReadonlySet<number>,
  columns: readonly PlanColumn[],
): Plan {
  const own = [...set].map((index) => keys[index] as Expression)
  const computed = aggregates.filter((aggregate) => !isGrouping(aggregate))
  // A batch without columns would have no rows, so count rows.
  const calls = own.length + computed.length === 0 ? [rowCount] : computed
  const inner = [...own, ...calls].map(({ type }, index) => ({ name: `c${index}`, type }))
  const groups: Plan = { kind: 'aggregate', columns: inner, input, keys: own, aggregates: calls }
  const read = (index: number, type: DataType): Expression => {
    const column = columnExpression(inner[index] as PlanColumn, index)
    return column.type.name === type.name ? column : castTo(column, type)
  }
  const places = new Map([...set].map((key, index) => [key, index]))
  let next = own.length
  const expressions = columns.map(({ type }, index): Expression => {
    if (index < keys.length) {
      const place = places.get(index)
      return place === undefined ? constantOf(nullOf(type), type, 0) : read(place, type)
    }
    const aggregate = aggregates[index - keys.length] as AggregateCall
    return isGrouping(aggregate) ? levelOf(aggregate, keys, set) : read(next++, type)
  })
  return { kind: 'project', columns, input: groups, expressions }
}

/** The bit mask of grouping(): one bit per argument, the last one lowest, set if the set does not group by it. */
function levelOf({ args }: AggregateCall, keys: readonly Expression[], set: ReadonlySet<number>): Expression {
  const places = new Map(keys.map((key, index) => [expressionKey(key), index]))
  let level = 0
  for (const argument of args) {
    const key = places.get(expressionKey(argument))
    if (key === undefined) throw new SqlError('arguments of grouping() must be keys of GROUP BY', argument.position)
    level = level * 2 + (set.has(key) ? 0 : 1)
  }
  return constantOf(level, intType, 0)
}

const nullable: Readonly<Record<string, DataType>> = { BYTE: intType, SHORT: intType, CHAR: dataType('STRING') }

/** The relation with types that lack NULL replaced by wider ones. */
export function withNulls(relation: Relation): Relation {
  const { plan, columns } = relation
  const widened = plan.columns.map(({ name, type }) => ({ name, type: nullable[type.name] ?? type }))
  if (widened.every(({ type }, index) => type === plan.columns[index]?.type)) return relation
  return {
    ...relation,
    plan: { kind: 'project', columns: widened, input: plan, expressions: widened.map(castOf(plan.columns)) },
    columns: columns.map((column) => ({ ...column, type: nullable[column.type.name] ?? column.type })),
  }
}
