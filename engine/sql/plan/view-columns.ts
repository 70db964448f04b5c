// Compares a query over a table with a materialized view of that table. Finds the columns of the view that contain the
// query's group keys and aggregates, and tells how the aggregates of several of the view's time buckets combine to one
// result. Expressions match only if they are certainly equal.

import { viewStateBytesMax } from '../../base/limits.js'
import { dataType, sameType } from '../../types/column-types.js'
import { formOf } from '../../types/value-states.js'
import { roomySum } from '../functions/aggregates/aggregates.js'
import { isOfMoments } from '../functions/aggregates/finished-moments.js'
import { castTo, constantOf, expressionKey } from '../typing/types.js'
import type { AggregateCall, Expression, Plan } from './plan.js'

type Sample = Extract<Plan, { kind: 'sample' }>
type Scan = Extract<Plan, { kind: 'scan' }>

/** The query of a view: a SAMPLE BY, whose columns it returns as they are or not. */
export interface SampleColumns {
  readonly sample: Sample
  /** The column of the view that is this column of the SAMPLE BY; -1 for none. */
  placeOf(column: number): number
}

/** The same over all rows of a table. */
export interface ViewColumns extends SampleColumns {
  readonly scan: Scan
}

export function sampleColumns(plan: Plan): SampleColumns | undefined {
  const sample = plan.kind === 'project' ? plan.input : plan
  if (sample.kind !== 'sample' || sample.align.kind !== 'calendar') return undefined
  const placeOf = (column: number): number => {
    if (plan.kind !== 'project') return column
    return plan.expressions.findIndex((item) => item.kind === 'column' && item.index === column)
  }
  return { sample, placeOf }
}

export function viewColumns(plan: Plan): ViewColumns | undefined {
  const view = sampleColumns(plan)
  if (view === undefined || view.sample.input.kind !== 'scan') return undefined
  const { input: scan } = view.sample
  if (scan.filter !== null || scan.ranges !== null || scan.viewSides !== undefined) return undefined
  return { ...view, scan }
}

/** The view's column with this expression of the base as a key; -1 for none. */
export function keyPlace({ sample, placeOf }: SampleColumns, key: Expression): number {
  const wanted = expressionKey(key)
  const index = sample.keys.findIndex((own) => expressionKey(own) === wanted)
  return index < 0 ? -1 : placeOf(1 + index)
}

/** An aggregate of the query as aggregates of the view's columns; a quotient has two. */
export type Combined =
  /** `isOfValues`: of states that a view does not keep if they are large. */
  | { readonly kind: 'one'; readonly call: AggregateCall; readonly isOfValues?: true }
  | { readonly kind: 'quotient'; readonly total: AggregateCall; readonly count: AggregateCall }

interface CombineOptions {
  /** No results that depend on the order in which floating-point numbers are added. */
  readonly exact: boolean
  /** The groups of the query are those of the view, over several buckets, in the order of time. */
  readonly ordered: boolean
}

/** Types of fixed size whose extremes, first and last values are values of several buckets together. */
export const ordinal: ReadonlySet<string> = new Set([
  'INT',
  'LONG',
  'FLOAT',
  'DOUBLE',
  'TIMESTAMP',
  'TIMESTAMP_NS',
  'DATE',
])
/** The same for any type. */
const extremal: ReadonlySet<string> = new Set([...ordinal, 'DECIMAL', 'STRING', 'VARCHAR', 'BOOLEAN', 'IPv4'])
const ends: ReadonlySet<string> = new Set([...ordinal, 'DECIMAL', 'STRING', 'VARCHAR', 'SYMBOL'])
/** Aggregates of aggregates of the same name. */
const folding: ReadonlySet<string> = new Set(['bool_and', 'every', 'bool_or', 'bit_and', 'bit_or', 'bit_xor'])
const counting: ReadonlySet<string> = new Set(['regr_count', 'count_if', 'countif'])

/** Of an aggregate whose result for several buckets follows from its results in each: the aggregate of these. */
export function foldOf({ name, args, type }: Pick<AggregateCall, 'name' | 'args' | 'type'>): string | undefined {
  if (name === 'count') return type.name === 'LONG' && args.length <= 1 ? 'sum' : undefined
  if (name === 'sum') return type.name === 'LONG' || type.name === 'DECIMAL' ? 'sum' : undefined
  if (name === 'min' || name === 'max') return extremal.has(type.name) ? name : undefined
  if (folding.has(name)) return name
  return counting.has(name) ? 'sum' : undefined
}

/** Whether the aggregate is the value of the first or last row, of a type that can be stored with its timestamp. */
export function isEnd({ name, type }: Pick<AggregateCall, 'name' | 'type'>): boolean {
  return (name === 'first' || name === 'last') && ends.has(type.name)
}

export function combined(
  view: SampleColumns,
  { name, args, type, position, orderBy, fill }: AggregateCall,
  { exact, ordered }: CombineOptions,
): Combined | undefined {
  if (orderBy !== undefined || fill !== undefined) return undefined
  const call = { name, args, type, position }
  const fold = foldOf(call) ?? (isEnd(call) && ordered ? name : undefined)
  if (fold !== undefined) {
    const column = aggregatePlace(view, call)
    if (column < 0) return undefined
    return { kind: 'one', call: { ...call, name: fold, args: [{ kind: 'column', index: column, type, position }] } }
  }
  return exact && !isExact(call) ? undefined : ofStates(view, call)
}

/** The aggregate over the states of the view's buckets. */
function ofStates(view: SampleColumns, call: AggregateCall): Combined | undefined {
  const { name, type, position } = call
  const states = statesOf(call)
  const places = states?.calls.map((state) => aggregatePlace(view, state)) ?? []
  if (states === undefined || places.some((place) => place < 0)) return undefined
  const columns = states.calls.map(
    (state, index): Expression => ({
      ...{ kind: 'column', index: places[index] ?? -1, type: state.type, position },
    }),
  )
  const [first, second] = columns
  if (states.kind === 'values') return ofValues(call, columns)
  if (states.kind === 'exact mean' || states.kind === 'decimal mean')
    return { kind: 'one', call: { name: 'merged_mean', args: columns, type, position } }
  if (states.kind !== 'moments' && first !== undefined && second !== undefined) {
    // A sum that is not finite is stored as NULL, like the sum of no values: the count tells which it is.
    const total: AggregateCall = { name: 'merged_sum', args: [castTo(second, double), first], type, position }
    if (states.kind === 'sum') return { kind: 'one', call: total }
    return { kind: 'quotient', total, count: { name: 'sum', args: [second], type: second.type, position } }
  }
  const args = [constantOf(name, dataType('STRING'), position), ...columns]
  return { kind: 'one', call: { name: 'merged_moments', args, type, position } }
}

/** The view's column with this aggregate of a bucket; -1 for none. */
export function aggregatePlace({ sample, placeOf }: SampleColumns, call: AggregateCall): number {
  const places = sample.aggregates.map((own, index) =>
    isSameCall(own, call) ? placeOf(1 + sample.keys.length + index) : -1,
  )
  return places.find((place) => place >= 0) ?? -1
}

export function isSameCall(one: AggregateCall, other: AggregateCall): boolean {
  const keyOf = ({ args }: AggregateCall): string => args.map((argument) => expressionKey(argument)).join()
  return (
    one.name === other.name &&
    sameType(one.type, other.type) &&
    one.args.length === other.args.length &&
    keyOf(one) === keyOf(other)
  )
}

// States ------------------------------------------------------------------------------------------------------------

const double = dataType('DOUBLE')
const averaged: ReadonlySet<string> = new Set(['SHORT', 'INT', 'DOUBLE'])

/** Whether the result does not depend on the order in which floating-point numbers are added. */
function isExact({ name, args }: AggregateCall): boolean {
  return isExactMean(name, args) || isDecimalMean(name, args) || valuesNames.has(name)
}

/** The sum of up to 38 digits is in range of DECIMAL for any number of rows that there can be. */
function isDecimalMean(name: string, [value]: AggregateCall['args']): boolean {
  return name === 'avg' && value?.type.name === 'DECIMAL' && value.type.a <= 38
}

/** The mean of LONG divides the exact sum, which neither LONG nor DOUBLE can hold. */
function isExactMean(name: string, args: AggregateCall['args']): boolean {
  return name === 'avg' && args.length === 1 && args[0]?.type.name === 'LONG'
}

/** x / 2^32 or x % 2^32, rounded towards 0: their sums are in range for any number of rows that there can be. */
function half(operator: '/' | '%', value: Expression): Expression {
  const { type, position } = value
  return { kind: 'call', name: operator, args: [value, constantOf(2n ** 32n, type, position)], type, position }
}

export interface AggregateStates {
  readonly kind: 'sum' | 'mean' | 'exact mean' | 'decimal mean' | 'moments' | 'values'
  /** Aggregates of a bucket. */
  readonly calls: readonly AggregateCall[]
}

/** The aggregates of each bucket from which the call can be computed over several; undefined if there are none. */
export function statesOf(call: AggregateCall): AggregateStates | undefined {
  const { name, args, type, position } = call
  const [first, second] = args
  if (valuesNames.has(name)) {
    const values = valuesState(call)
    return values === undefined ? undefined : { kind: 'values', calls: [values] }
  }
  if (first === undefined || args.length > 2) return undefined
  if (isDecimalMean(name, args)) {
    const total = { name: 'sum', args: [first], type: roomySum(first.type), position }
    return { kind: 'decimal mean', calls: [total, { ...total, name: 'count', type: dataType('LONG') }] }
  }
  if (type.name !== 'DOUBLE') return undefined
  const state = (of: string, ...over: Expression[]): AggregateCall => ({ name: of, args: over, type: double, position })
  const count = (of: string, ...over: Expression[]): AggregateCall => ({
    ...{ name: of, args: over, type: dataType('LONG'), position },
  })
  if (isExactMean(name, args)) {
    const sums = (['/', '%'] as const).map((operator) => ({ ...state('sum', half(operator, first)), type: first.type }))
    return { kind: 'exact mean', calls: [...sums, count('count', first)] }
  }
  if (name === 'sum' && args.length === 1 && first.type.name === 'DOUBLE')
    return { kind: 'sum', calls: [state('sum', first), count('count', uncast(first))] }
  if (name === 'avg' && args.length === 1 && averaged.has(first.type.name)) {
    const number = first.type.name === 'DOUBLE' ? first : castTo(first, double)
    return { kind: 'mean', calls: [state('sum', number), count('count', uncast(first))] }
  }
  if (args.some((argument) => argument.type.name !== 'DOUBLE') || !isOfMoments(name, args.length)) return undefined
  if (second === undefined)
    return {
      kind: 'moments',
      calls: [count('count', uncast(first)), state('regr_avgx', first, first), state('regr_sxx', first, first)],
    }
  const both = ['regr_avgy', 'regr_avgx', 'regr_syy', 'regr_sxx', 'regr_sxy'].map((of) => state(of, first, second))
  return { kind: 'moments', calls: [count('regr_count', first, second), ...both] }
}

// Sets of values ----------------------------------------------------------------------------------------------------

const distinctCounts: ReadonlySet<string> = new Set(['count_distinct', 'approx_count_distinct'])

/** All of them are exact. Where the share is a second argument, it is undefined here. */
const percentiles: ReadonlyMap<string, readonly [merged: string, share: number | undefined]> = new Map([
  ['percentile_disc', ['merged_percentile_disc', undefined]],
  ['percentile_cont', ['merged_percentile_cont', undefined]],
  ['approx_percentile', ['merged_percentile_disc', undefined]],
  ['approx_median', ['merged_percentile_disc', 0.5]],
  ['median', ['merged_percentile_cont', 0.5]],
])
const valuesNames: ReadonlySet<string> = new Set([...distinctCounts, ...percentiles.keys()])
const binary = dataType('BINARY')

/** The aggregate with the distinct values of a bucket, or with its numbers; NULL in the view if they are many. */
function valuesState({ name, args: [value], position }: AggregateCall): AggregateCall | undefined {
  const isDistinct = distinctCounts.has(name)
  if (value === undefined || (isDistinct && formOf(value.type) === undefined)) return undefined
  const limit = constantOf(viewStateBytesMax, dataType('INT'), position)
  return { name: isDistinct ? 'distinct_values' : 'sorted_numbers', args: [value, limit], type: binary, position }
}

function ofValues({ name, args, type, position }: AggregateCall, states: readonly Expression[]): Combined {
  const [merged, share] = percentiles.get(name) ?? []
  const shares = share === undefined ? args.slice(1, 2) : [constantOf(share, double, position)]
  const call =
    merged === undefined
      ? { name: 'merged_count_distinct', args: states, type, position }
      : { name: merged, args: [...states, ...shares], type, position }
  return { kind: 'one', isOfValues: true, call }
}

/** Whether the call is the state of another aggregate, as a view keeps it. */
export function isValuesState({ name, type, args: [, limit] }: AggregateCall): boolean {
  const isState = name === 'distinct_values' || name === 'sorted_numbers'
  return isState && type.name === 'BINARY' && limit?.kind === 'constant' && limit.value === viewStateBytesMax
}

/** The state of the rows of several groups, from a column with the state of each. */
export function mergedState({ name, args, type, position }: AggregateCall, column: number): AggregateCall {
  const state: Expression = { kind: 'column', index: column, type, position }
  return { name: `merged_${name}`, args: [state, ...args.slice(1)], type, position }
}

const widened: ReadonlySet<string> = new Set(['BYTE', 'SHORT', 'INT', 'LONG', 'FLOAT'])

/**
 * The operand of a cast to DOUBLE that preserves NULL. Which states a query has must not depend on such casts: they come
 * and go with the types of the table's columns.
 */
function uncast(number: Expression): Expression {
  const [operand] = number.kind === 'call' && number.name === 'cast' ? number.args : []
  const isWidening = operand !== undefined && number.type.name === 'DOUBLE' && widened.has(operand.type.name)
  return isWidening ? operand : number
}
