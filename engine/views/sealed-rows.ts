// Adds late rows to sealed buckets: rows that came to the base table after a bucket had outlived others. The bucket
// cannot be computed again, so the rows are combined with the stored ones, as in late-rows.ts; of rows with equal
// timestamps, the late one is the last. Until then, queries of the view combine them (scope/stored-view.ts).
//
//   1. Finds the parts (Parquet files) of the base with such rows, up to the last flushed transaction: rows in memtables
//      are of later ones.
//   2. Computes the rows of the view that change, over these parts alone.
//   3. Notes in the records of views over this view that their buckets with such rows are outdated: that these parts are
//      new to them would not show any more once they are gone (DROP or DETACH PARTITION, DELETE).
//   4. Replaces these rows, and notes the transaction in the view's record of stored buckets (StoredBuckets.addedTo), in
//      one record of the log. So after a crash, each row was added once or will be. The writer refuses that if the base
//      no longer has the parts: the next refresh tries again.
//
// Rows are left out, and counted (StoredBuckets.omitted), if the aggregates of the view do not combine or did not when
// buckets were sealed, if the base has DEDUP keys, whose rows may replace others, if the late rows alone have no result
// (a sum that is out of range), or if the view has too many values of the bucket to keep them (StoredBuckets.unkept).
// They wait while the view has other states than its query, or while a detached partition has such rows.

import type { ReadSnapshot } from '../api/session.js'
import { internalSession } from '../api/session.js'
import type { StopSignal } from '../api/statements.js'
import { ResourceError, SqlError } from '../base/errors.js'
import type { TimeRange } from '../sql/plan/plan.js'
import {
  addsToSealed,
  isLate,
  lateBounds,
  type StoredBuckets,
  sealedRanges,
  unkeptRanges,
} from '../storage/schema/materialized.js'
import { extentOf, type PartDescriptor } from '../storage/schema/schema.js'
import { quoteIdent } from '../types/identifier.js'
import { complement, intersect, normalise, unite } from '../types/interval.js'
import { isReplaced, joined, type LateSession, onlyAdded } from './late-rows.js'
import { addsLate, condition, listedUnkept, type RefreshOperations, seenBy } from './refresh-view.js'
import { inputsOfView, lateParts, rangesOfList, type SeenView, textOf } from './view-ranges.js'

/** Additions of one refresh. */
const additionsMax = 100
/** Ranges of changed buckets; nearer ones are joined. */
const rangesMax = 256

interface AddRequest {
  readonly viewId: number
  readonly signal: StopSignal | null
}

/** Whether rows were added or left out. Throws SqlError if the view's query does not bind any more. */
export async function addSealedRows(operations: RefreshOperations, { viewId, signal }: AddRequest): Promise<boolean> {
  let [isAdded, isFlushed] = [false, false]
  for (let count = 0; count < additionsMax; count++) {
    const snapshot = operations.holdSnapshot()
    try {
      const late = lateIn(operations, snapshot, viewId)
      const done = late === undefined ? null : await isSomeAdded(operations, late, signal)
      if (done === null || (!done && isFlushed)) break
      if (done) isAdded = true
      else {
        // Only rows of parts and of the open memtable can be replaced.
        await operations.flush(viewId)
        isFlushed = true
      }
    } finally {
      snapshot.release()
    }
  }
  // Without synced commits, only rows in parts are durable.
  if (isAdded && !operations.durable) await operations.flush(viewId)
  return isAdded
}

/** Leaves out the late rows of the view that are in parts. */
export async function omitSealedRows(operations: RefreshOperations, viewId: number, baseId: number): Promise<void> {
  const snapshot = operations.holdSnapshot()
  try {
    const [view, base] = [snapshot.snapshotOf(viewId), snapshot.snapshotOf(baseId)]
    const stored = view?.version.schema.stored
    if (view === undefined || base === undefined || stored === undefined) return
    const parts = lateParts({ view: view.version.schema, base: base.version })
    if (parts.length > 0) await omitted(operations, { seen: { snapshot, view, base }, stored, parts }, null)
  } finally {
    snapshot.release()
  }
}

interface LateView<Seen = SeenView> {
  readonly seen: Seen
  readonly stored: StoredBuckets
  /** Parts with late rows that can be added now. */
  readonly parts: readonly PartDescriptor[]
}

/** Undefined if there are no late rows in parts. */
function lateIn(operations: RefreshOperations, snapshot: ReadSnapshot, viewId: number): LateView | undefined {
  const view = snapshot.snapshotOf(viewId)?.version.schema
  if (view?.stored === undefined || view.materialized?.live !== undefined) return undefined
  const seen = seenBy(operations, snapshot, viewId)
  if (seen === undefined) return undefined
  const { version } = seen.base
  const bounds = lateBounds(version.schema, view)
  if (version.schema.detached?.some((part) => isLate(bounds, extentOf(part))) === true) return undefined
  // Rows in memtables are of transactions after the last one that was flushed.
  const flushed = version.memtables.length === 0 ? Number.POSITIVE_INFINITY : (version.flushedTxn ?? 0)
  const parts = lateParts({ view, base: version }).filter(({ maxTxn }) => maxTxn <= flushed)
  return parts.length === 0 ? undefined : { seen, stored: view.stored, parts }
}

/**
 * Adds the rows of the parts, or of those with the older half of transactions if there are too many. Null: not now;
 * false: the tables have changed meanwhile.
 */
async function isSomeAdded(
  operations: RefreshOperations,
  late: LateView,
  signal: StopSignal | null,
): Promise<boolean | null> {
  const { seen, parts } = late
  const adds = addsLate(operations, seen.view.version)
  if (adds === null) return null
  const { schema } = seen.base.version
  const isAdding = adds && addsToSealed(schema, seen.view.version.schema.id) && schema.dedupKeys.length === 0
  if (!isAdding) return omitted(operations, late, signal)
  try {
    return await added(operations, late, signal)
  } catch (thrown) {
    if (thrown instanceof SqlError) return omitted(operations, late, signal)
    if (!(thrown instanceof ResourceError)) throw thrown
    const older = olderHalf(parts)
    return older.length === 0 ? null : isSomeAdded(operations, { ...late, parts: older }, signal)
  }
}

/** The sealed buckets with rows of the parts. */
function rangesOf({ view, base, grid }: SeenView, parts: readonly PartDescriptor[]): TimeRange[] {
  const touched = normalise(parts.map(({ minTs, maxTs }) => grid.whole({ lo: minTs, hi: maxTs })))
  return intersect(joined(touched, rangesMax), sealedRanges(base.version.schema, view.version.schema.id))
}

async function added(
  operations: RefreshOperations,
  late: LateView,
  signal: StopSignal | null,
): Promise<boolean | null> {
  const { seen, parts } = late
  const view = seen.view.version
  const [ranges, unkept] = [rangesOf(seen, parts), unkeptRanges(late.stored)]
  const session: LateSession = {
    ...internalSession('system'),
    refreshes: { viewId: view.schema.id, ranges: intersect(ranges, complement(unkept)), added: true, sealed: true },
    snapshot: onlyAdded(seen, parts),
  }
  const changes = await operations.late.changes(view, session, signal)
  if (changes === null) return null
  await outdateAbove(operations, late)
  const left = await rowsIn(operations, late, intersect(ranges, unkept), signal)
  const more = normalise(changes.unkept.map((start) => seen.grid.whole({ lo: start, hi: start })))
  const stored = recordOf(operations, late, left, more)
  // The conditions of the view's query leave out all rows.
  if (changes.replaced.input.rows === 0) return isRecorded(operations, view.schema.id, stored)
  const addition = { baseId: seen.base.version.schema.id, parts: parts.map(({ id }) => id), stored }
  return isReplaced(operations.late, operations.byId(view.schema.id), { ...changes.replaced, late: addition })
}

async function isRecorded(operations: RefreshOperations, viewId: number, stored: StoredBuckets): Promise<boolean> {
  await operations.record(viewId, stored)
  return true
}

function recordOf(
  { nowMicros }: RefreshOperations,
  { stored, parts }: Pick<LateView, 'stored' | 'parts'>,
  omittedRows: number,
  moreUnkept: readonly TimeRange[] = [],
): StoredBuckets {
  const unkept = unite(unkeptRanges(stored), moreUnkept)
  const addedTo = Math.max(...parts.map(({ maxTxn }) => maxTxn))
  const omits = (stored.omitted ?? 0) + omittedRows
  return {
    ...{ ...stored, changes: stored.changes + 1, finishMicros: nowMicros(), addedTo },
    ...(omits === 0 ? {} : { omitted: omits }),
    ...(unkept.length === 0 ? {} : { unkept: listedUnkept(unkept) }),
  }
}

type LateParts = LateView<Pick<SeenView, 'snapshot' | 'view' | 'base'>>

/** Makes durable that views over this one have outdated buckets, where its sealed buckets get rows of the parts. */
async function outdateAbove(
  { catalog, byId, record }: RefreshOperations,
  { seen: { view, base }, parts }: LateParts,
): Promise<void> {
  const { id } = view.version.schema
  const extents = normalise(parts.map(({ minTs, maxTs }) => ({ lo: minTs, hi: maxTs })))
  const changing = intersect(extents, sealedRanges(base.version.schema, id))
  for (const { schema } of catalog.tables()) {
    const { stored } = schema
    const isAbove = inputsOfView(schema, byId)?.between.some((between) => between.id === id)
    if (stored === undefined || isAbove !== true) continue
    const outdated = joined(unite(rangesOfList(stored.outdated), changing), rangesMax)
    if (intersect(rangesOfList(stored.ranges), outdated).length === 0) continue
    await record(schema.id, { ...stored, changes: stored.changes + 1, outdated: outdated.map(textOf) })
  }
}

/** Counts all rows as left out. */
async function omitted(operations: RefreshOperations, late: LateParts, signal: StopSignal | null): Promise<boolean> {
  const { base, view } = late.seen
  const { id } = view.version.schema
  // Until now, queries of the view may have added the rows.
  await outdateAbove(operations, late)
  const rows = await rowsIn(operations, late, sealedRanges(base.version.schema, id), signal)
  return isRecorded(operations, id, recordOf(operations, late, rows))
}

/** The number of late rows in these ranges. */
async function rowsIn(
  operations: RefreshOperations,
  { seen, parts }: LateParts,
  ranges: readonly TimeRange[],
  signal: StopSignal | null,
): Promise<number> {
  if (ranges.length === 0) return 0
  const { schema } = seen.base.version
  const session = { ...internalSession('system'), snapshot: onlyAdded(seen, parts) }
  const sql = `select count() from ${quoteIdent(schema.name)}${condition(schema, ranges)}`
  const [[count] = []] = await operations.rows(sql, session, signal)
  return Number(count ?? 0)
}

/** Without the parts of the newer half of transactions; none if all are of one transaction. */
function olderHalf(parts: readonly PartDescriptor[]): readonly PartDescriptor[] {
  const ends = [...new Set(parts.map(({ maxTxn }) => maxTxn))].sort((x, y) => x - y)
  const cut = ends[Math.floor(ends.length / 2) - 1]
  return cut === undefined ? [] : parts.filter(({ maxTxn }) => maxTxn <= cut)
}
