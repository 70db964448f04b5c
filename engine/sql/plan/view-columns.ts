// Which columns of a materialized view have the keys and aggregates of a query over its base table, and how aggregates
// of the view's buckets combine. Only what is certain matches.

import { type DataType, sameType } from '../../types/column-types.js'
import { expressionKey } from '../typing/types.js'
import type { AggregateCall, Expression, Plan } from './plan.js'

type Sample = Extract<Plan, { kind: 'sample' }>
type Scan = Extract<Plan, { kind: 'scan' }>

/** The query of a view: a SAMPLE BY over all rows of a table, whose columns it returns as they are or not. */
export interface ViewColumns {
  readonly sample: Sample
  readonly scan: Scan
  /** The column of the view that is this column of the SAMPLE BY; -1 for none. */
  placeOf(column: number): number
}

export function viewColumns(plan: Plan): ViewColumns | undefined {
  const sample = plan.kind === 'project' ? plan.input : plan
  if (sample.kind !== 'sample' || sample.input.kind !== 'scan' || sample.align.kind !== 'calendar') return undefined
  const { input: scan } = sample
  if (scan.filter !== null || scan.ranges !== null || scan.viewSides !== undefined) return undefined
  const placeOf = (column: number): number => {
    if (plan.kind !== 'project') return column
    return plan.expressions.findIndex((item) => item.kind === 'column' && item.index === column)
  }
  return { sample, scan, placeOf }
}

/** The view's column with this expression of the base as a key; -1 for none. */
export function keyPlace({ sample, placeOf }: ViewColumns, key: Expression): number {
  const wanted = expressionKey(key)
  const index = sample.keys.findIndex((own) => expressionKey(own) === wanted)
  return index < 0 ? -1 : placeOf(1 + index)
}

/** An aggregate of the query as aggregates of the view's columns; a quotient has two. */
export type Combined =
  | { readonly kind: 'one'; readonly call: AggregateCall }
  | { readonly kind: 'quotient'; readonly total: AggregateCall; readonly count: AggregateCall }

interface CombineOptions {
  /** No results that depend on the order in which floating-point numbers are added. */
  readonly exact: boolean
  /** The groups of the query are those of the view, over several buckets, in the order of time. */
  readonly ordered: boolean
}

const ordinal: ReadonlySet<string> = new Set(['INT', 'LONG', 'FLOAT', 'DOUBLE', 'TIMESTAMP', 'TIMESTAMP_NS', 'DATE'])

export function combined(
  view: ViewColumns,
  { name, args, type, position, orderBy, fill }: AggregateCall,
  { exact, ordered }: CombineOptions,
): Combined | undefined {
  if (orderBy !== undefined || fill !== undefined) return undefined
  const over = (combining: string, from: string, of: DataType): AggregateCall | undefined => {
    const column = aggregatePlace(view, from, args, of)
    if (column < 0) return undefined
    return { name: combining, args: [{ kind: 'column', index: column, type: of, position }], type: of, position }
  }
  const one = (call: AggregateCall | undefined): Combined | undefined =>
    call === undefined ? undefined : { kind: 'one', call }
  switch (name) {
    case 'count':
      return type.name === 'LONG' && args.length <= 1 ? one(over('sum', 'count', type)) : undefined
    case 'sum':
      return type.name === 'LONG' || (type.name === 'DOUBLE' && !exact) ? one(over('sum', 'sum', type)) : undefined
    case 'min':
    case 'max':
      return ordinal.has(type.name) ? one(over(name, name, type)) : undefined
    case 'first':
    case 'last':
      return ordered && ordinal.has(type.name) ? one(over(name, name, type)) : undefined
    case 'avg': {
      if (exact || type.name !== 'DOUBLE' || args[0]?.type.name !== 'DOUBLE' || args.length !== 1) return undefined
      const [total, count] = [over('sum', 'sum', type), over('sum', 'count', { name: 'LONG', a: 0, b: 0 })]
      return total === undefined || count === undefined ? undefined : { kind: 'quotient', total, count }
    }
    default:
      return undefined
  }
}

function aggregatePlace(
  { sample, placeOf }: ViewColumns,
  name: string,
  args: readonly Expression[],
  type: DataType,
): number {
  const wanted = args.map((argument) => expressionKey(argument)).join()
  const index = sample.aggregates.findIndex(
    (own) =>
      own.name === name &&
      sameType(own.type, type) &&
      own.args.length === args.length &&
      own.args.map((argument) => expressionKey(argument)).join() === wanted,
  )
  return index < 0 ? -1 : placeOf(1 + sample.keys.length + index)
}
