// Plans how late rows are merged into the stored buckets of a materialized view. The view's query is computed over the
// rows that were added to the base table, and each group of the result is combined with the stored row of this group,
// using the states of both (view-states.ts). The rows of all other groups stay as they are.
//
// This is possible if every aggregate of the view's query can be combined. Even then, the bucket of a group is computed
// again in these cases:
//
//   first, last    The stored and the added row have equal timestamps. Then the order of the rows in the table decides,
//                  which the states do not contain.
//   min, max       The result is missing on one side. It may be infinite there, which is stored as NULL.
//   any aggregate  Several stored rows belong to the group.
//   distinct,      The view does not keep the values of the stored rows, since they are many. Where it does not keep those
//   percentiles    of the result, the action says so.
//
// A sealed bucket cannot be computed again. There, an infinite minimum or maximum counts as none, and of rows with equal
// timestamps the added one is the later one. Buckets without the values of stored rows are not read. lateRead() combines the rows for a query; the stored rows of groups
// without added rows stay as they are.
//
// If the query reads another view, late rows may belong to a bucket of that view which is already part of the stored
// result. Sums of sums and counts, minima of minima and the like can be combined then. Counts and means cannot, nor can
// sums, minima and maxima of floating-point numbers, because a result of that view may be infinite.

import { dataType } from '../../types/column-types.js'
import { nullOf } from '../../types/convert.js'
import { castTo, constantOf, expressionKey } from '../typing/types.js'
import { remapColumns } from '../typing/walk-expression.js'
import type { AggregateCall, Expression, Plan, PlanColumn } from './plan.js'
import {
  aggregatePlace,
  type Combined,
  combined,
  isValuesState,
  mergedState,
  type SampleColumns,
  sampleColumns,
  statesOf,
} from './view-columns.js'
import { timeOf, withWholeStates } from './view-states.js'
import { inputsOf } from './walk-plan.js'

interface LateOptions {
  /** The view's query without states. */
  readonly own: Plan
  /** The view's query with states, over the added rows. */
  readonly added: Plan
  /** The view's rows, with their places as the first column. */
  readonly stored: Plan
  /** The rows are those of sealed buckets. */
  readonly isSealed: boolean
  readonly call: (name: string, args: readonly Expression[]) => Expression
}

/**
 * What is to be done with a group of added rows, in the first column of the plan. `unkept`: insert or update, and a state
 * of values of the result is not kept.
 */
export const lateActions = { insert: 1, update: 2, compute: 3, unkept: 4 } as const

const long = dataType('LONG')
const int = dataType('INT')
/** Columns before those of the view. */
const ahead = 2

/**
 * A row for each group of added rows: the action, the place of the stored row (NULL if there is none), and the view's
 * columns for both together. Undefined if they cannot be combined.
 */
export function lateRows(options: LateOptions): Plan | undefined {
  const { added, isSealed, call } = options
  const groups = groupsOf(options)
  if (groups === undefined) return undefined
  const { input, place, late, count, ties, missing, lacking, unkept } = groups
  const predicate = call('=', [late, constantOf(1, int, 0)])
  const found: Plan = { kind: 'filter', columns: input.columns, input, predicate }
  const unclear = isSealed ? null : [...ties, ...missing, ...lacking]
  const action = actionOf({ place, count, unclear, unkept }, call)
  return finished(added, found, groups, [action, place])
}

/** The rows of both in sealed buckets, with the columns of the view's query. Undefined if they cannot be combined. */
export function lateRead(options: Omit<LateOptions, 'isSealed'>): Plan | undefined {
  const groups = groupsOf({ ...options, isSealed: true })
  if (groups === undefined) return undefined
  const all = finished(options.added, groups.input, groups, [])
  const { columns } = options.own
  const expressions = columns.map((_, index) => columnOf(all.columns, index))
  return { kind: 'project', columns: all.columns.slice(0, columns.length), input: all, expressions }
}

/** The groups of stored and added rows. */
interface Groups {
  readonly input: Plan
  readonly keys: number
  readonly values: readonly Expression[]
  readonly place: Expression
  /** 1 if there are added rows. */
  readonly late: Expression
  /** Of stored rows. */
  readonly count: Expression
  /** Whether the timestamps of first or last rows are equal, and whether a minimum or maximum may be infinite. */
  readonly ties: readonly Expression[]
  readonly missing: readonly Expression[]
  /** Whether stored rows lack a state of values, and whether the result does. */
  readonly lacking: readonly Expression[]
  readonly unkept: readonly Expression[]
}

function groupsOf({ own, added, stored, isSealed, call }: LateOptions): Groups | undefined {
  const view = sampleColumns(added)
  const original = sampleColumns(own)
  if (view === undefined || original === undefined || !isDividable(original.sample)) return undefined
  const { sample, placeOf } = view
  const keys = [0, ...sample.keys.map((_, index) => 1 + index)].map(placeOf)
  const merged = sample.aggregates.map((one) => mergedCall(view, one))
  const known = merged.flatMap((one) => one ?? [])
  if (keys.some((place) => place < 0) || known.length < merged.length) return undefined
  const input = bothRows(stored, withWholeStates(added))
  const column = (index: number): Expression => columnOf(input.columns, index)
  const viewColumn = (index: number): Expression => column(index + ahead)
  const calls = known.flatMap((one) => (one.kind === 'one' ? [one.call] : [one.total, one.count]))
  const times = [...new Set(sample.aggregates.flatMap((one) => timePlace(view, one) ?? []))]
  const extremes = sample.aggregates.flatMap((one) => extremeOf(view, one) ?? [])
  const states = sample.aggregates.flatMap((one, at) =>
    isValuesState(one) ? { at, place: aggregatePlace(view, one) } : [],
  )
  const ordered = isSealed ? sample.aggregates.flatMap((one, index) => orderedOf(view, one, index) ?? []) : []
  const all = [
    ...calls.map((one) => ({ ...one, args: one.args.map((argument) => remapColumns(argument, (at) => at + ahead)) })),
    ...[over('max', column(0), long), over('max', column(1), int), over('count', column(0), long)],
    ...times.flatMap((place) => ['min', 'max'].map((name) => over(name, viewColumn(place)))),
    ...extremes.flatMap((one) => extremeCalls(one, viewColumn)),
    ...ordered.flatMap(({ place }) =>
      [0, 1].map((side) => over('max', ofSide(column(1), side, viewColumn(place), call))),
    ),
    ...states.map(({ place }) => over('count', viewColumn(place), long)),
    over('count', column(1), long),
  ]
  const groups: Plan = {
    ...{ kind: 'aggregate', input, keys: keys.map(viewColumn), aggregates: all },
    columns: [
      ...keys.map((place) => input.columns[place + ahead] ?? { name: '', type: long }),
      ...all.map(({ name, type }) => ({ name, type })),
    ],
  }
  const result = (index: number): Expression => columnOf(groups.columns, keys.length + index)
  const firstTime = calls.length + 3
  const firstExtreme = firstTime + times.length * 2
  const firstOrdered = firstExtreme + extremes.length * 2
  const firstState = firstOrdered + ordered.length * 2
  const rows = result(firstState + states.length)
  const lacking = states.map((_, index) => call('<', [result(firstState + index), rows]))
  const ties = times.map((_, index) => {
    const first = firstTime + index * 2
    return call('=', [result(first), result(first + 1)])
  })
  const missing = extremes.map((_, index) => {
    const first = firstExtreme + index * 2
    return mayBeInfinite(result(first), result(first + 1), call)
  })
  const [place, late, count] = [result(calls.length), result(calls.length + 1), result(calls.length + 2)]
  const values = valuesOf(known, groups.columns, keys.length, call)
  for (const [index, { at, time, isFirst }] of ordered.entries()) {
    const tie = ties[times.indexOf(time)]
    const plain = values[at]
    if (tie === undefined || plain === undefined) continue
    const older = isFirst
      ? call('>', [count, constantOf(0n, long, 0)])
      : call('not', [call('=', [late, constantOf(1, int, 0)])])
    const [before, after] = [0, 1].map((side) => castTo(result(firstOrdered + index * 2 + side), plain.type))
    values[at] = chosen([tie, chosen([older, before ?? plain], after ?? plain)], plain)
  }
  const unkept = states.flatMap(({ at }) => isNull(values[at], call) ?? [])
  return { input: groups, keys: keys.length, values, place, late, count, ties, missing, lacking, unkept }
}

function isNull(state: Expression | undefined, call: LateOptions['call']): Expression | undefined {
  return state && call('<', [call('length', [state]), constantOf(0n, long, 0)])
}

/** A first() or last() of the view's query: its index, and the columns with its value and its timestamp. */
interface Ordered {
  readonly at: number
  readonly place: number
  readonly time: number
  readonly isFirst: boolean
}

function orderedOf(view: SampleColumns, call: AggregateCall, at: number): Ordered | undefined {
  const time = timePlace(view, call)
  if (time === undefined) return undefined
  return { at, place: aggregatePlace(view, call), time, isFirst: call.name === 'first' }
}

/** The value if the row is stored (0) or added (1), else NULL. */
function ofSide(late: Expression, side: number, value: Expression, call: LateOptions['call']): Expression {
  return chosen([call('=', [late, constantOf(side, int, 0)]), value], constantOf(nullOf(value.type), value.type, 0))
}

function chosen([condition, then]: readonly [Expression, Expression], otherwise: Expression): Expression {
  return { kind: 'call', name: 'case', type: otherwise.type, args: [condition, then, otherwise], position: 0 }
}

function over(name: string, argument: Expression, type = argument.type): AggregateCall {
  return { name, args: [argument], type, position: 0 }
}

function columnOf(columns: readonly PlanColumn[], index: number): Expression {
  return { kind: 'column', index, type: columns[index]?.type ?? long, position: 0 }
}

/** The rows of both, with the place, and 1 for added rows, before the view's columns. */
function bothRows(stored: Plan, added: Plan): Extract<Plan, { kind: 'set' }> {
  const columns: PlanColumn[] = [{ name: 'place', type: long }, { name: 'late', type: int }, ...added.columns]
  const read = (from: readonly PlanColumn[], first: number): Expression[] =>
    added.columns.map((_, index) => columnOf(from, first + index))
  const left: Plan = {
    ...{ kind: 'project', columns, input: stored },
    expressions: [columnOf(stored.columns, 0), constantOf(0, int, 0), ...read(stored.columns, 1)],
  }
  const right: Plan = {
    ...{ kind: 'project', columns, input: added },
    expressions: [constantOf(nullOf(long), long, 0), constantOf(1, int, 0), ...read(added.columns, 0)],
  }
  return { kind: 'set', columns, operation: 'union', all: true, left, right }
}

/** Several stored rows of a group cannot be told apart. `unclear`: null in sealed buckets, which have one. */
function actionOf(
  {
    place,
    count,
    unclear,
    unkept,
  }: Pick<Groups, 'place' | 'count' | 'unkept'> & { readonly unclear: readonly Expression[] | null },
  call: LateOptions['call'],
): Expression {
  const number = (value: number): Expression => constantOf(value, int, 0)
  const anyOf = (conditions: readonly Expression[]): Expression =>
    conditions.reduce((one, other) => call('or', [one, other]))
  const isNew = call('=', [count, constantOf(0n, long, 0)])
  const isOne = call('=', [count, constantOf(1n, long, 0)])
  const isUnkept = unkept.length === 0 ? undefined : anyOf(unkept)
  const then = (condition: Expression | undefined, action: number): Expression[] =>
    condition === undefined ? [] : [condition, number(action)]
  const args = [
    ...then(isUnkept && call('and', [isNew, isUnkept]), lateActions.unkept),
    ...then(isNew, lateActions.insert),
    ...then(unclear === null ? undefined : anyOf([call('not', [isOne]), ...unclear]), lateActions.compute),
    ...then(isUnkept, lateActions.unkept),
    number(lateActions.update),
  ]
  return { kind: 'call', name: 'case', type: int, position: place.position, args }
}

/** The results of the view's aggregates, from columns after the keys. */
function valuesOf(
  known: readonly Combined[],
  columns: readonly PlanColumn[],
  keys: number,
  call: LateOptions['call'],
): Expression[] {
  let next = keys
  return known.map((one): Expression => {
    const first = columnOf(columns, next++)
    if (one.kind === 'one') return first
    return call('/', [first, castTo(columnOf(columns, next++), first.type)])
  })
}

/** The `ends`, then the view's columns from the results of its SAMPLE BY. */
function finished(query: Plan, input: Plan, { values, keys }: Groups, ends: readonly Expression[]): Plan {
  const sample = query.kind === 'project' ? query.input : query
  const typed = values.map((value, index) => {
    const type = sample.columns[keys + index]?.type ?? value.type
    return value.type.name === type.name ? value : castTo(value, type)
  })
  const read = Array.from({ length: keys }, (_, index) => columnOf(input.columns, index))
  const endColumns = ['action', 'place']
    .slice(0, ends.length)
    .map((name, at) => ({ name, type: ends[at]?.type ?? int }))
  const sampled: Plan = {
    ...{ kind: 'project', input, expressions: [...read, ...typed, ...ends] },
    columns: [...sample.columns, ...endColumns],
  }
  const ended = ends.map((_, at) => columnOf(sampled.columns, sample.columns.length + at))
  const own = query.kind === 'project' ? query.expressions : query.columns.map((_, at) => columnOf(query.columns, at))
  return {
    kind: 'project',
    columns: [...endColumns, ...query.columns],
    input: sampled,
    expressions: [...ended, ...own],
  }
}

// Aggregates --------------------------------------------------------------------------------------------------------

/** The view's column with the timestamp of the first or last row. */
function timePlace(view: SampleColumns, call: AggregateCall): number | undefined {
  const time = timeOf(call, view.sample)
  return time === undefined ? undefined : aggregatePlace(view, time)
}

/** Types whose values may be infinite. An infinite result is stored as NULL. */
const floating: ReadonlySet<string> = new Set(['FLOAT', 'DOUBLE'])
const double = dataType('DOUBLE')

/** The view's columns with a minimum or maximum and, -1 for none, the number of its values. */
interface Extreme {
  readonly place: number
  readonly values: number
}

function extremeOf(view: SampleColumns, { name, args, type, position }: AggregateCall): Extreme | undefined {
  if ((name !== 'min' && name !== 'max') || !floating.has(type.name)) return undefined
  const place = aggregatePlace(view, { name, args, type, position })
  return { place, values: aggregatePlace(view, { name: 'count', args, type: long, position }) }
}

/** In how many of the two rows it is there, and a number that is NULL if it is missing in one with values. */
function extremeCalls({ place, values }: Extreme, column: (at: number) => Expression): AggregateCall[] {
  const extreme = column(place)
  const counted: Expression = values < 0 ? constantOf(1, double, 0) : castTo(column(values), double)
  const args = [counted, castTo(extreme, double)]
  return [over('count', extreme, long), { name: 'merged_sum', args, type: double, position: 0 }]
}

/** If it is missing in both rows, so it is in the result. */
function mayBeInfinite(there: Expression, known: Expression, call: LateOptions['call']): Expression {
  const isThereOnce = call('=', [there, constantOf(1n, long, 0)])
  return call('and', [isThereOnce, call('=', [known, constantOf(nullOf(double), double, 0)])])
}

/** The aggregate of two rows of a group, over the view's columns. */
function mergedCall(view: SampleColumns, call: AggregateCall): Combined | undefined {
  if (isValuesState(call)) {
    const place = aggregatePlace(view, call)
    return place < 0 ? undefined : { kind: 'one', call: mergedState(call, place) }
  }
  const time = timeOf(call, view.sample)
  if (time === undefined) return ofOneVariable(view, call) ?? combined(view, call, { exact: false, ordered: false })
  const calls = [call, time]
  const places = calls.map((one) => aggregatePlace(view, one))
  if (places.some((place) => place < 0)) return undefined
  const type = call.type.name === 'INT' ? long : call.type
  const name = call.name === 'first' ? 'arg_min' : 'arg_max'
  return { kind: 'one', call: { name, args: columnsAt(places, calls), type, position: call.position } }
}

function columnsAt(places: readonly number[], calls: readonly AggregateCall[]): Expression[] {
  return calls.map(({ type }, at): Expression => ({ kind: 'column', index: places[at] ?? -1, type, position: 0 }))
}

/** Of the moments of one variable, which are stored as those of two equal ones. */
function ofOneVariable(view: SampleColumns, { name, args, type, position }: AggregateCall): Combined | undefined {
  const [first, second] = args
  if (first === undefined || second === undefined || expressionKey(first) !== expressionKey(second)) return undefined
  if (name !== 'regr_avgx' && name !== 'regr_sxx') return undefined
  const calls = statesOf({ name: 'variance', args: [first], type, position })?.calls ?? []
  const places = calls.map((state) => aggregatePlace(view, state))
  if (calls.length === 0 || places.some((place) => place < 0)) return undefined
  const merged = [constantOf(name, dataType('STRING'), position), ...columnsAt(places, calls)]
  return { kind: 'one', call: { name: 'merged_moments', args: merged, type, position } }
}

// Views over views --------------------------------------------------------------------------------------------------

type Sample = Extract<Plan, { kind: 'sample' }>

/** Whether the buckets of the rows that are there and of those that are added can be combined. */
function isDividable({ input, keys, aggregates }: Sample): boolean {
  if (!hasSample(input)) return isOfRows(input)
  const finer = sampleColumns(input)
  if (finer === undefined || !isDividable(finer.sample)) return false
  const { sample } = finer
  /** The columns of the SAMPLE BY below: keys, whose rows are there once or twice, and aggregates. */
  const below = (column: Expression): number => {
    if (column.kind !== 'column') return -1
    const item = input.kind === 'project' ? input.expressions[column.index] : column
    return item?.kind === 'column' ? item.index : -1
  }
  const isKey = (column: Expression): boolean => below(column) >= 0 && below(column) <= sample.keys.length
  const isDivided = ({ name, args, type }: AggregateCall): boolean => {
    const [only] = args
    if (only === undefined || args.length > 1) return false
    if (isKey(only)) return ofKeys.has(name)
    const under = sample.aggregates[below(only) - 1 - sample.keys.length]
    if (under === undefined || !dividable.has(`${name} of ${under.name}`)) return false
    // Late rows may be in a finer bucket whose result is infinite, which the coarser one leaves out.
    return !floating.has(type.name) || name === 'first' || name === 'last'
  }
  return keys.every(isKey) && aggregates.every(isDivided)
}

/** What keys give whose rows are there once or twice. */
const ofKeys: ReadonlySet<string> = new Set(['min', 'max', 'first', 'last', 'count_distinct', 'approx_count_distinct'])

const dividable: ReadonlySet<string> = new Set([
  ...['sum of sum', 'sum of count', 'sum of regr_count', 'min of min', 'max of max', 'first of first', 'last of last'],
])

function hasSample(plan: Plan): boolean {
  return plan.kind === 'sample' || inputsOf(plan).some(hasSample)
}

/** Each row of the input is made of one row of the base. */
function isOfRows(plan: Plan): boolean {
  if (plan.kind === 'scan') return true
  return (plan.kind === 'filter' || plan.kind === 'project') && isOfRows(plan.input)
}
