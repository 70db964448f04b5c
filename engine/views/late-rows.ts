// Merges late rows into stored buckets: if the base table has only got further parts (Parquet files) since a bucket was
// stored, a refresh aggregates the rows of these parts alone and combines the results with the stored ones. So its cost
// depends on the number of late rows, not on that of all rows in their buckets. sql/plan/view-late.ts says for which
// queries this is possible. There is no merge for a base table with DEDUP keys, for more than 500,000 late rows, or if
// there are more than half as many late rows as other rows in these buckets: the buckets are then computed anew.
//
//   1. Finds the buckets that have rows of added parts, by a query of these parts.
//   2. Finds the rows of the view that change, and their new values.
//   3. Removes these buckets from the list of stored ones. All others in the list are right for the present parts.
//   4. Replaces the rows in one transaction of the view's table; the old rows are named by their row numbers.
//   5. Adds the buckets to the list.
//
// After a crash between steps 3 and 5 the buckets are computed from the base, so no row counts twice. Buckets are left
// to refresh-view.ts if they have rows in memtables, if they have lost rows, if an UPDATE or DELETE has touched them,
// or if the order of rows with equal timestamps decides their values.

import type { ReadSnapshot } from '../api/session.js'
import { internalSession, type Session } from '../api/session.js'
import type { StopSignal } from '../api/statements.js'
import { type FileError, ResourceError, SqlError } from '../base/errors.js'
import type { TimeRange } from '../sql/plan/plan.js'
import type { Receipt, TableReplacement } from '../storage/jobs/messages.js'
import { keptRange, sealedRanges } from '../storage/schema/materialized.js'
import { changedParts } from '../storage/schema/merged-parts.js'
import type { PartDescriptor, TableVersion } from '../storage/schema/schema.js'
import { allOfTime, complement, intersect, normalise, unite } from '../types/interval.js'
import {
  changedBetween,
  cleanRanges,
  listedRanges,
  markedRanges,
  memtableRanges,
  type SeenView,
  wholeWithin,
} from './view-ranges.js'

/** More added rows are not merged: their buckets are computed. */
const rowsMax = 500_000
/** Computing reads at least so many times the rows that merging reads. */
const gainMin = 2
/** Ranges of changed buckets; nearer ones are joined. */
const rangesMax = 1024
const unlistedMax = 250
/** No room for the changes, or no result for the late rows alone: a sum that is out of range. */
const expected = [ResourceError, SqlError]
const triesMax = 3

export interface LateOperations {
  readonly late: {
    buckets(view: TableVersion, session: LateSession, signal: StopSignal | null): Promise<bigint[] | null>
    changes(
      view: TableVersion,
      session: LateSession,
      signal: StopSignal | null,
    ): Promise<{
      readonly replaced: TableReplacement
      readonly unclear: readonly bigint[]
      readonly unkept: readonly bigint[]
    } | null>
    /** Replaces the rows of the view in the ranges of the session's refresh by those that are computed. */
    computed(view: TableVersion, session: LateSession, signal: StopSignal | null): Promise<TableReplacement>
    /** The starts of buckets in the ranges of the session's refresh of which a state of values is not kept. */
    unkept(view: TableVersion, session: LateSession, signal: StopSignal | null): Promise<readonly bigint[]>
    replace(tables: readonly TableReplacement[]): Promise<Receipt>
  }
  readonly byId: (tableId: number) => TableVersion | undefined
}

/** A session of a refresh with a snapshot. */
export type LateSession = Session & {
  readonly snapshot: ReadSnapshot
  readonly refreshes: NonNullable<Session['refreshes']>
}

interface LateRequest {
  readonly within: TimeRange
  readonly signal: StopSignal | null
  /** Makes a record of stored buckets durable; `unkept`: of which more buckets lack a state of values. */
  readonly record: (ranges: readonly TimeRange[], unkept?: readonly TimeRange[]) => Promise<unknown>
}

/** Whether buckets have changed. If not, the caller computes them. */
export async function mergeLateRows(
  operations: LateOperations & Parameters<typeof lateZone>[0],
  seen: SeenView,
  { within, signal, record }: LateRequest,
): Promise<boolean> {
  const { view, base, inputs, grid } = seen
  const { late, byId } = operations
  const zone = lateZone(operations, seen, within)
  if (zone === undefined) return false
  const { ranges, added } = zone
  const sessionOf = (over: readonly TimeRange[]): LateSession => ({
    ...internalSession('system'),
    ...{ refreshes: { viewId: view.version.schema.id, ranges: over, added: true }, snapshot: onlyAdded(seen, added) },
  })
  const changesIn = (over: readonly TimeRange[]): ReturnType<typeof late.changes> =>
    late.changes(view.version, sessionOf(over), signal)
  const starts = await nullAt(expected, late.buckets(view.version, sessionOf(ranges), signal))
  if (starts === null) return false
  const touched = joined(normalise(starts.map((start) => grid.whole({ lo: start, hi: start }))), rangesMax)
  let changed = intersect(touched, ranges)
  let changes = changed.length === 0 ? null : await nullAt(expected, changesIn(changed))
  if (changes !== null && changes.unclear.length > 0) {
    const unclear = normalise(changes.unclear.map((start) => grid.whole({ lo: start, hi: start })))
    changed = intersect(changed, complement(unclear))
    changes = changed.length === 0 ? null : await nullAt(expected, changesIn(changed))
  }
  if (changed.length > 0 && changes === null) return false
  const clean = cleanRanges(inputs, grid, markedRanges(base.version))
  const untouched = unite(clean, intersect(ranges, complement(touched)))
  await record(unite(clean, intersect(ranges, complement(joined(touched, unlistedMax)))))
  const isMerged = changes === null || (await isReplaced(late, byId(view.version.schema.id), changes.replaced))
  const unkept = normalise(changes?.unkept.map((start) => grid.whole({ lo: start, hi: start })) ?? [])
  await record(isMerged ? unite(untouched, changed) : untouched, unkept)
  return true
}

/** Null at an error of these classes. */
export async function nullAt<Result>(
  classes: readonly (typeof FileError | typeof ResourceError | typeof SqlError)[],
  pending: Promise<Result>,
): Promise<Result | null> {
  try {
    return await pending
  } catch (error) {
    if (classes.some((one) => error instanceof one)) return null
    throw error
  }
}

/** Of the view's table, which has another schema since the last record. False as well if there is no memory for it. */
export async function isReplaced(
  late: LateOperations['late'],
  view: TableVersion | undefined,
  { input, removal, late: addition }: TableReplacement,
): Promise<boolean> {
  if (view === undefined || removal === null) return false
  if (input.rows === 0) return true
  const own = { input, removal: { ...removal, schemaVersion: view.schema.version } }
  const current = addition === undefined ? own : { ...own, late: addition }
  // The first removal of a part's rows is refused until readers know of removals.
  for (let tries = 0; tries < triesMax; tries++) {
    const receipt = await nullAt([ResourceError], late.replace([current]))
    if (receipt?.isStale !== true) return receipt !== null
  }
  return false
}

interface LateZone {
  /** Listed buckets that only added parts overlap. */
  readonly ranges: readonly TimeRange[]
  readonly added: readonly PartDescriptor[]
}

/** Undefined if there is nothing to merge, or if computing the buckets is as cheap. */
function lateZone(
  { memory }: { readonly memory: Parameters<typeof memtableRanges>[1] },
  { inputs, grid, base, view }: SeenView,
  within: TimeRange,
): LateZone | undefined {
  const { stored } = view.version.schema
  const { schema, parts } = base.version
  if (stored === undefined || schema.dedupKeys.length > 0) return undefined
  const { added, addedRanges, other } = changedParts(stored.parts, parts)
  if (added.length === 0) return undefined
  const whole = (ranges: readonly TimeRange[]): TimeRange[] => normalise(ranges.map((range) => grid.whole(range)))
  const finer = inputs.between.flatMap((between) => [
    ...sealedRanges(schema, between.id),
    ...complement([keptRange(between)]),
  ])
  const changed = [
    ...[...other, ...markedRanges(base.version), ...memtableRanges(base, memory)],
    ...[...finer, ...changedBetween(stored, inputs.between, schema)],
    ...sealedRanges(schema, view.version.schema.id),
  ]
  const ranges = [
    ...[complement(whole(changed)), whole(addedRanges), [keptRange(inputs.view)], [wholeWithin(grid, within)]],
  ].reduce(intersect, listedRanges(inputs))
  const rows = rowsWithin(added, ranges)
  const isAdded = new Set(added.map(({ id }) => id))
  const others = parts.filter(({ id }) => !isAdded.has(id))
  if (ranges.length === 0 || rows > rowsMax || rows * gainMin > rowsWithin(others, ranges)) return undefined
  return { ranges, added }
}

/** The rows that parts have in the ranges, if they are evenly distributed. */
export function rowsWithin(parts: readonly PartDescriptor[], ranges: readonly TimeRange[]): number {
  let rows = 0
  for (const part of parts) {
    const all = Number(part.maxTs - part.minTs) + 1
    const shared = intersect(ranges, [{ lo: part.minTs, hi: part.maxTs }])
    rows += part.rows * shared.reduce((sum, { lo, hi }) => sum + (Number(hi - lo) + 1) / all, 0)
  }
  return rows
}

/** The snapshot with the rows of these parts alone in the base. */
export function onlyAdded(
  { snapshot, base }: Pick<SeenView, 'snapshot' | 'base'>,
  parts: readonly PartDescriptor[],
): ReadSnapshot {
  const { id } = base.version.schema
  const own = { version: { ...base.version, parts, memtables: [] }, visibleRows: [] }
  const added = base.transaction === undefined ? own : { ...own, transaction: base.transaction }
  return { snapshotOf: (tableId) => (tableId === id ? added : snapshot.snapshotOf(tableId)), release: () => {} }
}

/** At most so many ranges: those with the smallest gaps become one. */
export function joined(ranges: readonly TimeRange[], max: number): TimeRange[] {
  if (ranges.length <= max) return [...ranges]
  const gaps = ranges.slice(1).map(({ lo }, index) => lo - (ranges[index]?.hi ?? allOfTime.lo))
  const widest = [...gaps.keys()].sort((x, y) => ((gaps[x] ?? 0n) > (gaps[y] ?? 0n) ? -1 : 1)).slice(0, max - 1)
  const cuts = new Set(widest)
  const result: TimeRange[] = []
  let [first] = ranges
  for (const [index, range] of ranges.entries()) {
    if (first !== undefined && (cuts.has(index) || index === ranges.length - 1)) {
      result.push({ lo: first.lo, hi: range.hi })
      first = ranges[index + 1]
    }
  }
  return result
}
