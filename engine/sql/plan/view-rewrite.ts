// Planner rule: a SAMPLE BY or GROUP BY over a table is computed from the stored buckets of a materialized view of that
// table, where possible. It is computed from rows of the table for buckets that are not stored, that the time range of
// the query cuts, or that are sealed (the table has lost some of their rows).
//
// The rule applies only if each bucket of the query consists of whole buckets of the view, the keys and conditions of
// the query use only keys of the view and the time, and each aggregate of the query can be computed from aggregates of
// several buckets. The view must read all rows of the table.

import type { TableSchema, TableVersion } from '../../storage/schema/schema.js'
import { allOfTime } from '../../types/interval.js'
import { isOfParameters } from '../typing/deferred-values.js'
import { castTo } from '../typing/types.js'
import { allOf, columnsOf, conjuncts, remapColumns, visitExpression } from '../typing/walk-expression.js'
import { bucketsOfCall, isBucketCall } from './bucket-call.js'
import { isNested } from './nested-buckets.js'
import type { AggregateCall, Expression, Plan, PlanColumn, TimeRange, ViewBuckets, ViewSide } from './plan.js'
import { extractRanges, rangesWith, type TablesOf } from './time-ranges.js'
import { type Combined, combined, keyPlace, type ViewColumns, viewColumns } from './view-columns.js'
import { withWholeStates } from './view-states.js'
import { isStable } from './volatile.js'
import { mapInputs } from './walk-plan.js'

type Scan = Extract<Plan, { kind: 'scan' }>
type Grouping = Extract<Plan, { kind: 'sample' | 'aggregate' }>

/** A view with stored buckets. */
export interface RewriteView {
  readonly version: TableVersion
  /** The plan of its query. */
  readonly query: Plan
  /** The scan of its rows, which adds it to the tables of the statement. */
  readonly stored: () => Scan
}

interface RewriteOptions {
  readonly tables: TablesOf
  readonly exact: boolean
  /** Views of this table, those with the longest buckets first. */
  readonly viewsOf: (table: TableSchema) => readonly RewriteView[]
  readonly quotient: (total: Expression, count: Expression) => Expression
}

export function withStoredBuckets(plan: Plan, options: RewriteOptions): Plan {
  const below = mapInputs(plan, (input) => withStoredBuckets(input, options))
  if (below.kind !== 'sample' && below.kind !== 'aggregate') return below
  const rows = rowsOf(below, options)
  if (rows === undefined) return below
  for (const view of options.viewsOf(rows.schema)) {
    const made = answered(below, rows, view, options)
    if (made !== undefined) return made
  }
  return below
}

/** What a grouping reads of its table. */
interface Rows {
  readonly scan: Scan
  readonly schema: TableSchema
  /** Null for all of time. Only a query that a view answers needs them: they may depend on deferred constants. */
  readonly ranges: () => readonly TimeRange[] | null
  readonly conditions: readonly Expression[]
}

function rowsOf(grouping: Grouping, { tables }: RewriteOptions): Rows | undefined {
  const found: Expression[] = []
  let { input } = grouping
  for (; input.kind === 'filter'; input = input.input) found.push(...conjuncts(input.predicate))
  const schema = input.kind === 'scan' ? tables(input.table)?.schema : undefined
  if (input.kind !== 'scan' || schema === undefined || schema.materialized !== undefined) return undefined
  if (input.filter !== null || input.ranges !== null || input.viewSides !== undefined) return undefined
  const scan = extractRanges({ ...input, filter: allOf(found) }, tables)
  if (scan.kind !== 'scan' || scan.deferredRanges?.conditions.some(readsParameters)) return undefined
  const conditions = scan.filter === null ? [] : conjuncts(scan.filter)
  if (!conditions.every(isPlain)) return undefined
  const { ranges, deferredRanges } = scan
  const known = (): ReturnType<Rows['ranges']> =>
    deferredRanges === undefined ? ranges : rangesWith(ranges, deferredRanges)
  return { scan: input, schema, conditions, ranges: known }
}

function readsParameters(condition: Expression): boolean {
  let reads = false
  visitExpression(condition, (part) => {
    if (isOfParameters(part)) reads = true
  })
  return reads
}

/** Without sub-queries, and the same for equal keys. */
function isPlain(condition: Expression): boolean {
  let isPlainCall = isStable(condition)
  visitExpression(condition, (part) => {
    if (part.kind === 'subquery') isPlainCall = false
  })
  return isPlainCall
}

/** Calendars and time zones are defined for such bounds. */
function isUsual({ lo, hi }: TimeRange): boolean {
  const isBound = (ts: bigint): boolean => ts > -30_000_000_000_000_000n && ts < 8_000_000_000_000_000_000n
  return (lo <= allOfTime.lo || isBound(lo)) && (hi >= allOfTime.hi || isBound(hi))
}

// One view -------------------------------------------------------------------------------------------------------

interface Match {
  readonly view: ViewColumns
  readonly buckets: ViewBuckets
  /** The view's column of the bucket. */
  readonly time: number
  readonly keys: readonly Expression[]
  readonly aggregates: readonly Combined[]
  /** The conditions on the view's columns. */
  readonly conditions: readonly Expression[]
  /** States of values are needed: buckets without them are computed. */
  readonly isOfValues: boolean
}

function answered(
  grouping: Grouping,
  rows: Rows,
  { version, query, stored }: RewriteView,
  options: RewriteOptions,
): Plan | undefined {
  const view = viewColumns(query)
  if (view === undefined || view.scan.table !== rows.scan.table) return undefined
  if (view.scan.columnIds.join() !== rows.scan.columnIds.join()) return undefined
  const match = matched(grouping, rows, view, options.exact)
  if (match === undefined) return undefined
  const ranges = rows.ranges() ?? [allOfTime]
  if (!ranges.every(isUsual)) return undefined
  const scan = stored()
  if (scan.columnIds[match.time] !== version.schema.timestampId) return undefined
  return grouped(grouping, match, bothSides({ ...rows, ranges }, match, scan, query), options)
}

function matched(grouping: Grouping, rows: Rows, view: ViewColumns, exact: boolean): Match | undefined {
  const { interval, align, timestampIndex } = view.sample
  if (align.kind !== 'calendar') return undefined
  const buckets: ViewBuckets = { interval, zone: align.zone, offsetMicros: align.offsetMicros }
  const [time, isTime] = [view.placeOf(0), rows.scan.columnIds[timestampIndex] === rows.schema.timestampId]
  const keys = keysOf(grouping, view, buckets, time, timestampIndex)
  if (!isTime || time < 0 || keys === undefined) return undefined
  const isWhole = grouping.kind === 'sample' && new Set(keys.map(columnAt)).size === view.sample.keys.length
  const ordered = isWhole && align.zone === null
  const aggregates = grouping.aggregates.flatMap((call) => combined(view, call, { exact, ordered }) ?? [])
  if (aggregates.length !== grouping.aggregates.length) return undefined
  const isFilled = grouping.kind === 'sample' && grouping.fills.some(({ kind }) => kind !== 'none')
  if (isFilled && aggregates.some(({ kind }) => kind !== 'one')) return undefined
  const conditions = rows.conditions.flatMap((condition) => moved(condition, rows.scan, view) ?? [])
  if (conditions.length !== rows.conditions.length) return undefined
  const isOfValues = aggregates.some((one) => one.kind === 'one' && one.isOfValues === true)
  return { view, buckets, time, keys, aggregates, conditions, isOfValues }
}

function columnAt(key: Expression): number {
  return key.kind === 'column' ? key.index : -1
}

/** The keys over the view's columns. */
function keysOf(
  grouping: Grouping,
  view: ViewColumns,
  buckets: ViewBuckets,
  time: number,
  timestampIndex: number,
): Expression[] | undefined {
  if (grouping.kind === 'sample') {
    const { align, interval, from, to } = grouping
    if (align.kind !== 'calendar' || from !== null || to !== null) return undefined
    const own: ViewBuckets = { interval, zone: align.zone, offsetMicros: align.offsetMicros }
    if (grouping.timestampIndex !== timestampIndex || !isNested(own, buckets)) return undefined
  } else if (grouping.ordered === true || grouping.keys.length === 0) return undefined
  const keys = grouping.keys.flatMap((key): Expression[] => {
    if (grouping.kind === 'aggregate' && isBucketCall(key, timestampIndex)) {
      const own = bucketsOfCall(key)
      return typeof own !== 'string' && isNested(own, buckets) ? [remapColumns(key, () => time)] : []
    }
    const index = keyPlace(view, key)
    return index < 0 ? [] : [{ kind: 'column', index, type: key.type, position: key.position }]
  })
  return keys.length === grouping.keys.length ? keys : undefined
}

/** The condition over the view's columns; undefined if it is not about keys alone. */
function moved(condition: Expression, { columns }: Scan, view: ViewColumns): Expression | undefined {
  const places = new Map<number, number>()
  for (const index of columnsOf(condition)) {
    const type = columns[index]?.type
    const place = type === undefined ? -1 : keyPlace(view, { kind: 'column', index, type, position: 0 })
    if (place < 0) return undefined
    places.set(index, place)
  }
  return places.size === 0 ? undefined : remapColumns(condition, (index) => places.get(index) ?? -1)
}

// The plan -------------------------------------------------------------------------------------------------------

/** Stored rows of the view and the view's query over the other rows, in the order of time. */
function bothSides(
  { scan, ranges, conditions }: Pick<Rows, 'scan' | 'conditions'> & { readonly ranges: readonly TimeRange[] },
  match: Match,
  stored: Scan,
  query: Plan,
): Plan {
  const side = (kind: ViewSide['side']): ViewSide => ({
    ...{ side: kind, view: stored.table, base: scan.table, buckets: [match.buckets] },
    rows: ranges,
    ...(match.isOfValues ? { unkept: true } : {}),
  })
  const left = filtered({ ...stored, ranges: [allOfTime], viewSides: [side('stored')] }, match.conditions)
  const computed = filtered({ ...scan, ranges, viewSides: [side('computed')] }, conditions)
  const right = overRows(match.isOfValues ? withWholeStates(query) : query, computed)
  const { columns } = left
  const input: Plan = { kind: 'set', columns, operation: 'union', all: true, left, right }
  const keys = [{ index: match.time, descending: false, nullsFirst: true }]
  return { kind: 'sort', columns, input, keys, limit: null, implied: true }
}

function filtered(input: Plan, conditions: readonly Expression[]): Plan {
  const predicate = allOf(conditions)
  return predicate === null ? input : { kind: 'filter', columns: input.columns, input, predicate }
}

/** The view's query over these rows instead of all rows of the table. */
function overRows(query: Plan, rows: Plan): Plan {
  return query.kind === 'scan' ? rows : mapInputs(query, (input) => overRows(input, rows))
}

/** The grouping over the rows of both sides. */
function grouped(grouping: Grouping, match: Match, input: Plan, { quotient }: RewriteOptions): Plan {
  const calls = match.aggregates.flatMap((one) => (one.kind === 'one' ? [one.call] : [one.total, one.count]))
  const width = grouping.columns.length - grouping.aggregates.length
  const before = grouping.columns.slice(0, width)
  const columns: PlanColumn[] = [...before, ...calls.map(({ name, type }) => ({ name, type }))]
  const parts = { columns, input, keys: match.keys, aggregates: calls }
  const plan: Plan =
    grouping.kind === 'sample'
      ? { ...grouping, ...parts, timestampIndex: match.time, fills: fillsOf(grouping.fills, calls) }
      : { kind: 'aggregate', ...parts }
  if (match.aggregates.every(({ kind }) => kind === 'one')) return { ...plan, columns: grouping.columns }
  let next = width
  const read = ({ type }: { readonly type: AggregateCall['type'] }, index: number): Expression => ({
    ...{ kind: 'column', index, type, position: 0 },
  })
  const values = match.aggregates.map((one): Expression => {
    if (one.kind === 'one') return read(one.call, next++)
    const [total, count] = [read(one.total, next++), read(one.count, next++)]
    return quotient(total, castTo(count, total.type))
  })
  const expressions = [...before.map(read), ...values]
  return { kind: 'project', columns: grouping.columns, input: plan, expressions }
}

/** A filled aggregate is one of the view's, so the numbers of both lists agree. */
function fillsOf(
  fills: Extract<Plan, { kind: 'sample' }>['fills'],
  calls: readonly AggregateCall[],
): Extract<Plan, { kind: 'sample' }>['fills'] {
  return fills.length === calls.length ? fills : calls.map(() => ({ kind: 'none' }))
}
