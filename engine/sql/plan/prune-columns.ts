// Planner rule: removes columns that no node above reads, down to the columns of scans.

import { columnsOf, remapColumns } from '../typing/walk-expression.js'
import type { Expression, Plan, PlanColumn } from './plan.js'

/** The plan with its own output columns unchanged and without unread columns below. */
export function pruneColumns(plan: Plan): Plan {
  return prune(plan, new Set(plan.columns.keys())).plan
}

interface Pruned {
  readonly plan: Plan
  /** New index of each remaining column, by its old index. */
  readonly map: ReadonlyMap<number, number>
}

type Wanted = ReadonlySet<number>

function prune(plan: Plan, wanted: Wanted): Pruned {
  switch (plan.kind) {
    case 'scan':
      return pruneScan(plan, wanted)
    case 'values':
      return pruneValues(plan, wanted)
    case 'foreign': {
      const { indexes, map } = retained(plan.columns, wanted)
      return { plan: { ...plan, columns: pick(plan.columns, indexes), wanted: pick(plan.wanted, indexes) }, map }
    }
    case 'project':
      return pruneProject(plan, wanted)
    case 'filter': {
      const input = prune(plan.input, union(wanted, columnsOf(plan.predicate)))
      const predicate = moved(plan.predicate, input.map)
      return { plan: { ...plan, columns: input.plan.columns, input: input.plan, predicate }, map: input.map }
    }
    case 'sort':
      return pruneSort(plan, wanted)
    case 'limit': {
      const input = prune(plan.input, wanted)
      return { plan: { ...plan, columns: input.plan.columns, input: input.plan }, map: input.map }
    }
    case 'latest':
      return pruneLatest(plan, wanted)
    case 'aggregate':
    case 'sample':
      return pruneGroups(plan, wanted)
    case 'join':
      return pruneJoin(plan, wanted)
    case 'window':
      return pruneWindow(plan, wanted)
    case 'expand':
      return pruneExpand(plan, wanted)
    case 'set':
      return plan.operation === 'union' && plan.all ? pruneUnion(plan, wanted) : pruneWhole(plan)
    case 'sequence':
    case 'working':
    case 'distinct':
    case 'recursive':
      return pruneWhole(plan)
  }
}

// Helpers -----------------------------------------------------------------------------------------------------------

function union(...sets: readonly Iterable<number>[]): Set<number> {
  const all = new Set<number>()
  for (const set of sets) for (const column of set) all.add(column)
  return all
}

function identity(count: number): Map<number, number> {
  return new Map(Array.from({ length: count }, (_, index) => [index, index]))
}

function moved(expression: Expression, map: ReadonlyMap<number, number>): Expression {
  return remapColumns(expression, (index) => map.get(index) ?? 0)
}

/** The remaining columns in order, and their new indexes. */
function retained(
  columns: readonly PlanColumn[],
  wanted: Wanted,
): { readonly indexes: number[]; readonly map: Map<number, number> } {
  const indexes = [...columns.keys()].filter((index) => wanted.has(index))
  return { indexes, map: new Map(indexes.map((old, index) => [old, index])) }
}

function pick<Item>(items: readonly Item[], indexes: readonly number[]): Item[] {
  return indexes.map((index) => items[index] as Item)
}

// Nodes -------------------------------------------------------------------------------------------------------------

function pruneScan(plan: Extract<Plan, { kind: 'scan' }>, wanted: Wanted): Pruned {
  const all = plan.filter === null ? wanted : union(wanted, columnsOf(plan.filter))
  const { indexes, map } = retained(plan.columns, all)
  return {
    plan: {
      ...plan,
      columns: pick(plan.columns, indexes),
      columnIds: pick(plan.columnIds, indexes),
      filter: plan.filter === null ? null : moved(plan.filter, map),
    },
    map,
  }
}

function pruneValues(plan: Extract<Plan, { kind: 'values' }>, wanted: Wanted): Pruned {
  const { indexes, map } = retained(plan.columns, wanted)
  if (indexes.length === plan.columns.length) return { plan, map }
  return {
    plan: { ...plan, columns: pick(plan.columns, indexes), rows: plan.rows.map((row) => pick(row, indexes)) },
    map,
  }
}

function pruneProject(plan: Extract<Plan, { kind: 'project' }>, wanted: Wanted): Pruned {
  const { indexes, map } = retained(plan.columns, wanted)
  const expressions = pick(plan.expressions, indexes)
  const input = prune(plan.input, union(...expressions.map(columnsOf)))
  return {
    plan: {
      ...plan,
      columns: pick(plan.columns, indexes),
      input: input.plan,
      expressions: expressions.map((expression) => moved(expression, input.map)),
    },
    map,
  }
}

function pruneSort(plan: Extract<Plan, { kind: 'sort' }>, wanted: Wanted): Pruned {
  const input = prune(
    plan.input,
    union(
      wanted,
      plan.keys.map(({ index }) => index),
    ),
  )
  const keys = plan.keys.map((key) => ({ ...key, index: input.map.get(key.index) ?? 0 }))
  return { plan: { ...plan, columns: input.plan.columns, input: input.plan, keys }, map: input.map }
}

function pruneLatest(plan: Extract<Plan, { kind: 'latest' }>, wanted: Wanted): Pruned {
  const input = prune(plan.input, union(wanted, plan.keys, [plan.timestampIndex]))
  const at = (index: number): number => input.map.get(index) ?? 0
  return {
    plan: {
      ...plan,
      columns: input.plan.columns,
      input: input.plan,
      timestampIndex: at(plan.timestampIndex),
      keys: plan.keys.map(at),
    },
    map: input.map,
  }
}

function pruneGroups(whole: Extract<Plan, { kind: 'aggregate' | 'sample' }>, wanted: Wanted): Pruned {
  const { plan, map } = whole.kind === 'aggregate' ? withoutUnread(whole, wanted) : { plan: whole, map: null }
  const read = [...plan.keys.map(columnsOf), ...plan.aggregates.flatMap(({ args }) => args.map(columnsOf))]
  const input = prune(plan.input, plan.kind === 'sample' ? union(...read, [plan.timestampIndex]) : union(...read))
  const move = (expression: Expression): Expression => moved(expression, input.map)
  const keys = plan.keys.map(move)
  const aggregates = plan.aggregates.map((call) => ({ ...call, args: call.args.map(move) }))
  if (plan.kind === 'aggregate')
    return { plan: { ...plan, input: input.plan, keys, aggregates }, map: map ?? identity(plan.columns.length) }
  return {
    plan: { ...plan, input: input.plan, keys, aggregates, timestampIndex: input.map.get(plan.timestampIndex) ?? 0 },
    map: identity(plan.columns.length),
  }
}

/** Removes unread aggregates. Keys define the groups and stay; one aggregate stays if there would be no column left. */
function withoutUnread(
  plan: Extract<Plan, { kind: 'aggregate' }>,
  wanted: Wanted,
): { readonly plan: Extract<Plan, { kind: 'aggregate' }>; readonly map: ReadonlyMap<number, number> } {
  const count = plan.keys.length
  const needed = [...plan.columns.keys()].filter((index) => index < count || wanted.has(index))
  const indexes = needed.length === 0 ? [0] : needed
  const aggregates = indexes.filter((index) => index >= count).map((index) => index - count)
  return {
    plan: { ...plan, columns: pick(plan.columns, indexes), aggregates: pick(plan.aggregates, aggregates) },
    map: new Map(indexes.map((old, index) => [old, index])),
  }
}

function pruneJoin(plan: Extract<Plan, { kind: 'join' }>, wanted: Wanted): Pruned {
  const width = plan.left.columns.length
  const needed = plan.residual === null ? wanted : union(wanted, columnsOf(plan.residual))
  const own = [...needed].filter((index) => index < width)
  const other = [...needed].filter((index) => index >= width).map((index) => index - width)
  const times = (index: number): number[] =>
    plan.join === 'asof' || plan.join === 'lt' || plan.join === 'splice' ? [index] : []
  const left = prune(plan.left, union(own, plan.leftKeys, times(plan.leftTimestamp)))
  const right = prune(plan.right, union(other, plan.rightKeys, times(plan.rightTimestamp)))
  const newWidth = left.plan.columns.length
  const map = new Map([...left.map, ...[...right.map].map(([old, index]) => [old + width, index + newWidth] as const)])
  return {
    plan: {
      ...plan,
      columns: [...left.plan.columns, ...right.plan.columns],
      left: left.plan,
      right: right.plan,
      leftKeys: plan.leftKeys.map((index) => left.map.get(index) ?? 0),
      rightKeys: plan.rightKeys.map((index) => right.map.get(index) ?? 0),
      residual: plan.residual === null ? null : moved(plan.residual, map),
      leftTimestamp: left.map.get(plan.leftTimestamp) ?? -1,
      rightTimestamp: right.map.get(plan.rightTimestamp) ?? -1,
    },
    map,
  }
}

/** Removes unread window functions, and the node if none is left. */
function pruneWindow(plan: Extract<Plan, { kind: 'window' }>, wanted: Wanted): Pruned {
  const width = plan.input.columns.length
  const own = [...wanted].filter((index) => index < width)
  const places = [...plan.calls.keys()].filter((index) => wanted.has(width + index))
  if (places.length === 0) return prune(plan.input, new Set(own))
  const read = pick(plan.calls, places).flatMap(({ args, partitionBy, orderBy }) => [
    ...args,
    ...partitionBy,
    ...orderBy.map(({ expression }) => expression),
  ])
  const input = prune(plan.input, union(own, ...read.map(columnsOf)))
  const move = (expression: Expression): Expression => moved(expression, input.map)
  const calls = pick(plan.calls, places).map((call) => ({
    ...call,
    args: call.args.map(move),
    partitionBy: call.partitionBy.map(move),
    orderBy: call.orderBy.map((item) => ({ ...item, expression: move(item.expression) })),
  }))
  const newWidth = input.plan.columns.length
  const added = places.map((place, index) => [width + place, newWidth + index] as const)
  const columns = places.map((place) => plan.columns[width + place] as PlanColumn)
  return {
    plan: { ...plan, columns: [...input.plan.columns, ...columns], input: input.plan, calls },
    map: new Map([...input.map, ...added]),
  }
}

/** UNION ALL passes all rows, so unread columns can be removed on both sides. */
function pruneUnion(plan: Extract<Plan, { kind: 'set' }>, wanted: Wanted): Pruned {
  const { indexes, map } = retained(plan.columns, wanted)
  const [left, right] = [only(plan.left, indexes), only(plan.right, indexes)]
  return { plan: { ...plan, columns: pick(plan.columns, indexes), left, right }, map }
}

function pruneExpand(plan: Extract<Plan, { kind: 'expand' }>, wanted: Wanted): Pruned {
  const width = plan.input.columns.length
  const own = [...wanted].filter((index) => index < width)
  const input = prune(plan.input, union(own, columnsOf(plan.count)))
  const newWidth = input.plan.columns.length
  const columns = [...input.plan.columns, ...plan.columns.slice(width)]
  return {
    plan: { ...plan, columns, input: input.plan, count: moved(plan.count, input.map) },
    map: new Map([...input.map, [width, newWidth]]),
  }
}

/** Nodes whose rows depend on every column, so none may be removed. */
function pruneWhole(plan: Extract<Plan, { kind: 'sequence' | 'working' | 'distinct' | 'set' | 'recursive' }>): Pruned {
  const map = identity(plan.columns.length)
  if (plan.kind === 'sequence' || plan.kind === 'working') return { plan, map }
  if (plan.kind === 'distinct') return { plan: { ...plan, input: exact(plan.input) }, map }
  return { plan: { ...plan, left: exact(plan.left), right: exact(plan.right) }, map }
}

/** Exactly the columns of the plan: columns that a filter or sort below needs are projected away. */
function exact(plan: Plan): Plan {
  return pruneColumns(plan)
}

/** Exactly these columns. */
function only(plan: Plan, indexes: readonly number[]): Plan {
  const input = prune(plan, new Set(indexes))
  if (input.plan.columns.length === indexes.length) return input.plan
  const columns = pick(plan.columns, indexes)
  const expressions = columns.map(({ type }, at): Expression => {
    return { kind: 'column', index: input.map.get(indexes[at] as number) ?? 0, type, position: 0 }
  })
  return { kind: 'project', columns, input: input.plan, expressions }
}
