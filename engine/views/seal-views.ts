// Lets buckets of materialized views outlive the rows of their base table. When DROP PARTITION, or the TTL of a table
// with views, is about to remove rows, the views store the buckets concerned, and these are sealed: from then on they
// are read as stored, and not computed.
//
//   1. The memtables of the base table are flushed, late rows are added to buckets that are sealed already
//      (sealed-rows.ts), and each view stores the buckets that would lose rows, in one snapshot.
//   2. The writer removes the partitions and seals the buckets in one record, if the rows on which the buckets depend are
//      the same as in the snapshot, and the partitions have no further parts; otherwise it repeats step 1, up to eight
//      times. Compactions and refreshes change no rows. Rows of the partitions that are in memory stay.
//
// The bucket of the newest row is not sealed. DROP PARTITION removes rows of this bucket, and the view then shows what
// is left; a TTL waits until the bucket has ended. Neither holds for live views (live-grid.ts), which seal all rows of a
// table, and of a materialized view all but those of its newest bucket. If rows keep arriving, the last four tries do not
// seal rows of a live view that the rows in memory reach, as if these had arrived after the removal.
//
// A view that cannot store anything, because its query no longer binds or the disk is full, does not stop the removal:
// the buckets that it has already stored are sealed, and it loses the others. Late rows that it cannot add are left out.
//
// The TTL of a view sets the time before which its buckets are expired (StoredBuckets.expired). If other views read
// this view, their buckets over the expired times are stored and sealed first.

import { setTimeout as sleep } from 'node:timers/promises'
import type { ReadSnapshot } from '../api/session.js'
import { FileError, ResourceError, SqlError } from '../base/errors.js'
import type { Log } from '../base/log.js'
import { metricOf, writeRefusals } from '../memory/metrics.js'
import type { TimeRange } from '../sql/plan/plan.js'
import type { Receipt, SchemaChange } from '../storage/jobs/messages.js'
import { isOlder, lifeOf, oldestKept } from '../storage/schema/age.js'
import { keptRange, type Sealing, sealedRanges } from '../storage/schema/materialized.js'
import { partitionFinder } from '../storage/schema/partition.js'
import type { TableSchema, TableSnapshot, TableVersion } from '../storage/schema/schema.js'
import { allOfTime, complement, intersect, normalise } from '../types/interval.js'
import { nullAt } from './late-rows.js'
import type { BucketGrid } from './live-grid.js'
import { type RefreshOperations, seenBy, storeRanges } from './refresh-view.js'
import { addSealedRows, omitSealedRows } from './sealed-rows.js'
import {
  cleanRanges,
  inputsOfView,
  memtableRanges,
  rightGrid,
  type SeenView,
  trustedRanges,
  viewGrid,
  withoutRows,
} from './view-ranges.js'

const triesMax = 8
const strictTries = 4
/** After so many tries, late rows that cannot be added to sealed buckets are left out. */
const addTriesMax = 3
const firstPauseMs = 5

export interface SealOperations extends RefreshOperations {
  readonly log: Log
  /** All tables and views. */
  readonly tables: () => readonly TableVersion[]
  readonly change: (change: PartitionChange) => Promise<Receipt>
}

export type PartitionChange = Extract<SchemaChange, { kind: 'partitions' }>

/** The materialized views that read the table itself. */
export function viewsOf({ tables }: Pick<SealOperations, 'tables'>, tableId: number): TableSchema[] {
  return tables()
    .map(({ schema }) => schema)
    .filter(({ materialized }) => materialized?.baseId === tableId)
}

/** DROP PARTITION of a table with views. */
export async function dropPartitions(operations: SealOperations, change: PartitionChange): Promise<void> {
  const names = new Set(change.partitions)
  await sealed(operations, change, (snapshot) => {
    const base = snapshot.snapshotOf(change.tableId)
    const gone = base?.version.parts.filter(({ partition }) => names.has(partition)) ?? []
    const ranges = gone.map(({ minTs, maxTs }) => ({ lo: minTs, hi: maxTs }))
    return viewsOf(operations, change.tableId).map(({ id }) => ({ viewId: id, ranges }))
  })
}

interface Leaving {
  readonly viewId: number
  /** Times whose rows the base, or the view that the view reads, is about to lose. */
  readonly ranges: readonly TimeRange[]
}

/** Performs the change, and seals in the same record the buckets that lose rows. Throws ResourceError. */
async function sealed(
  operations: SealOperations,
  change: PartitionChange,
  leaving: (snapshot: ReadSnapshot) => readonly Leaving[],
): Promise<void> {
  for (let tries = 1; ; tries++) {
    await operations.flush(change.tableId)
    const losing = await addLateRows(operations, change.tableId, tries > addTriesMax)
    const snapshot = operations.holdSnapshot()
    try {
      const sealing = await stored(operations, snapshot, change, leaving(snapshot), {
        ...{ isStrict: tries <= strictTries, losing },
      })
      const isSealed = snapshot.snapshotOf(change.tableId)?.version.schema.sealed !== undefined
      const isNone = sealing?.views.length === 0 && (!isSealed || change.partitions.length === 0)
      if (isNone && change.partitions.length === 0) return
      if (sealing !== undefined) {
        const receipt = await operations.change(isNone ? change : { ...change, sealing })
        if (receipt.isStale !== true) return
      }
    } finally {
      snapshot.release()
    }
    if (tries === triesMax)
      throw new ResourceError(
        'rows keep arriving or changing in buckets of materialized views that lose rows: try again',
      )
    await sleep(firstPauseMs * 2 ** tries)
  }
}

/**
 * Adds late rows to the sealed buckets of all views over the table. Returns the views that can neither add nor omit them
 * now. `omits`: what cannot be added is left out.
 */
export async function addLateRows(operations: SealOperations, tableId: number, omits: boolean): Promise<number[]> {
  const failed: number[] = []
  for (const { viewId } of operations.byId(tableId)?.schema.sealed ?? []) {
    if (operations.byId(viewId) === undefined) continue
    try {
      const isBroken = await nullAt([ResourceError, SqlError], addSealedRows(operations, { viewId, signal: null }))
      if (omits || isBroken === null) await omitSealedRows(operations, viewId, tableId)
    } catch (thrown) {
      if (!(thrown instanceof FileError || thrown instanceof ResourceError)) throw thrown
      failed.push(viewId)
      const note = 'a materialized view loses late rows of sealed buckets that it could not add before they are dropped'
      operations.log('W', 'view', `${note} [view=${operations.byId(viewId)?.schema.name}, reason=${thrown.message}]`)
    }
  }
  return failed
}

/** Stores the buckets; undefined if rows of these buckets are in memory. */
async function stored(
  operations: SealOperations,
  snapshot: ReadSnapshot,
  { tableId: baseId, partitions }: PartitionChange,
  leaving: readonly Leaving[],
  { isStrict, losing }: { readonly isStrict: boolean; readonly losing: readonly number[] },
): Promise<Sealing | undefined> {
  const base = snapshot.snapshotOf(baseId)
  if (base === undefined) throw new SqlError('the table was dropped', 0)
  const present = memtableRanges(base, operations.memory)
  const views: { viewId: number; ranges: TimeRange[] }[] = []
  for (const { viewId, ranges } of leaving) {
    const grid = lastGrid(operations, snapshot, viewId)
    if (grid === undefined || ranges.length === 0) continue
    const whole = normalise(ranges.map((range) => withoutRows(grid, range)))
    const over = intersect(whole, [{ lo: allOfTime.lo, hi: currentStart(base, operations, grid) - 1n }])
    const wanted = intersect(over, unsealed(snapshot, base, viewId))
    const reached = normalise(present.map((range) => grid.live?.reached(range, false) ?? grid.whole(range)))
    const isLate = intersect(reached, ranges).length > 0
    if (intersect(wanted, reached).length > 0 && (isStrict || isLate || grid.live === undefined)) return undefined
    const open = intersect(wanted, complement(reached))
    const done = open.length === 0 ? [] : await storedOf(operations, snapshot, viewId, open)
    if (done.length > 0) views.push({ viewId, ranges: done })
  }
  const needed = normalise(views.flatMap(({ viewId, ranges }) => neededBy(operations, snapshot, viewId, ranges)))
  const removed = new Map(base.version.removals?.map(([id, , count]) => [id, count] as const))
  const parts = base.version.parts.filter(
    ({ partition, minTs, maxTs }) =>
      partitions.includes(partition) || intersect(needed, [{ lo: minTs, hi: maxTs }]).length > 0,
  )
  return {
    views: views.map(({ viewId, ranges }) => ({ viewId, ranges: ranges.map(textOf) })),
    needed: needed.map(textOf),
    parts: parts.map(({ id }) => [id, removed.get(id) ?? 0]),
    version: base.version.version,
    losing,
  }
}

function textOf({ lo, hi }: TimeRange): readonly [string, string] {
  return [`${lo}`, `${hi}`]
}

/** The rows of the base on which the buckets depend: for a live view, also rows before them. */
function neededBy(
  operations: SealOperations,
  snapshot: ReadSnapshot,
  viewId: number,
  ranges: readonly TimeRange[],
): readonly TimeRange[] {
  const { live } = lastGrid(operations, snapshot, viewId) ?? {}
  return live === undefined ? ranges : ranges.map((range) => live.needed(range))
}

function unsealed(snapshot: ReadSnapshot, base: TableSnapshot, viewId: number): TimeRange[] {
  const view = snapshot.snapshotOf(viewId)
  const kept = view === undefined ? [] : [keptRange(view.version.schema)]
  return intersect(complement(sealedRanges(base.version.schema, viewId)), kept)
}

/** The start of the bucket of the newest row. All rows of a live view over a table are over. */
function currentStart(base: TableSnapshot, { memory }: SealOperations, grid: BucketGrid): bigint {
  const newest = newestOf(base, memory)
  if (newest === null) return allOfTime.lo + 1n
  return grid.live?.currentStart(newest) ?? grid.whole({ lo: newest, hi: newest }).lo
}

function newestOf(base: TableSnapshot, memory: SealOperations['memory']): bigint | null {
  const ends = [...base.version.parts.map(({ maxTs }) => maxTs), ...memtableRanges(base, memory).map(({ hi }) => hi)]
  return ends.reduce<bigint | null>((most, ts) => (most === null || ts > most ? ts : most), null)
}

/** The buckets of the view, or those of its last refresh if its query does not bind any more. */
function lastGrid(operations: SealOperations, snapshot: ReadSnapshot, viewId: number): BucketGrid | undefined {
  try {
    return seenBy(operations, snapshot, viewId)?.grid
  } catch (thrown) {
    if (!(thrown instanceof SqlError)) throw thrown
    const schema = snapshot.snapshotOf(viewId)?.version.schema
    const levels = schema?.stored?.grid?.map((level) => ({ ...level, offsetMicros: BigInt(level.offsetMicros) }))
    if (schema === undefined || levels === undefined) return undefined
    const grid = viewGrid(schema, levels, schema)
    const inputs = inputsOfView(schema, (id) => snapshot.snapshotOf(id)?.version)
    return inputs === undefined ? grid : rightGrid(grid, trustedRanges(inputs, grid))
  }
}

/** The ranges that are stored afterwards: all of them, if the view can store anything. */
async function storedOf(
  operations: SealOperations,
  snapshot: ReadSnapshot,
  viewId: number,
  ranges: readonly TimeRange[],
): Promise<TimeRange[]> {
  try {
    const seen = seenBy(operations, snapshot, viewId)
    if (seen === undefined) return []
    const clean = cleanRanges(seen.inputs, seen.grid)
    await storeRanges(operations, null, seen, intersect(ranges, complement(clean)))
    // Without synced commits, only rows in parts are durable.
    if (!operations.durable) await operations.flush(viewId)
    return [...ranges]
  } catch (thrown) {
    const refusal = metricOf(operations.memory, 'refusal')
    const isFull = refusal !== writeRefusals.none && refusal !== writeRefusals.memoryFull
    const isFinal = thrown instanceof SqlError || thrown instanceof FileError || isFull
    if (!isFinal || !(thrown instanceof Error)) throw thrown
    return storedBefore(operations, snapshot, viewId, ranges, thrown)
  }
}

function storedBefore(
  operations: SealOperations,
  snapshot: ReadSnapshot,
  viewId: number,
  ranges: readonly TimeRange[],
  reason: Error,
): TimeRange[] {
  const view = snapshot.snapshotOf(viewId)?.version.schema
  const grid = lastGrid(operations, snapshot, viewId)
  const inputs = view === undefined ? undefined : inputsOfView(view, (id) => snapshot.snapshotOf(id)?.version)
  if (view === undefined || inputs === undefined || grid === undefined) return []
  const trusted = trustedRanges(inputs, grid)
  const note = 'a materialized view loses the buckets that it could not store before their rows are dropped'
  if (intersect(ranges, complement(trusted)).length > 0)
    operations.log('W', 'view', `${note} [view=${view.name}, reason=${reason.message}]`)
  return intersect(ranges, trusted)
}

// TTL ---------------------------------------------------------------------------------------------------------------

/** Drops the expired partitions of a table with views whose buckets are over. */
export async function expireTable(operations: SealOperations, { schema }: TableVersion): Promise<void> {
  const age = lifeOf(schema)
  if (age === null || schema.timestampId < 0) return
  const snapshot = operations.holdSnapshot()
  let names: string[] = []
  try {
    const base = snapshot.snapshotOf(schema.id)
    const newest = base === undefined ? null : newestOf(base, operations.memory)
    if (base === undefined || newest === null) return
    const isExpired = isOlder(schema, newest, BigInt(Math.floor(operations.nowMicros())), age)
    if (memtableRanges(base, operations.memory).some(({ lo }) => isExpired(lo))) await operations.flush(schema.id)
    const grids = viewsOf(operations, schema.id).flatMap(({ id }) => lastGrid(operations, snapshot, id) ?? [])
    const isOver = (range: TimeRange): boolean =>
      grids.every((grid) => grid.live !== undefined || grid.whole(range).hi < currentStart(base, operations, grid))
    const gone = base.version.parts.filter(({ minTs, maxTs }) => isExpired(maxTs) && isOver({ lo: minTs, hi: maxTs }))
    names = [...new Set(gone.map(({ partition }) => partition))]
  } finally {
    snapshot.release()
  }
  if (names.length === 0) return
  await dropPartitions(operations, { kind: 'partitions', tableId: schema.id, operation: 'drop', partitions: names })
}

/** Applies the TTL of a view. */
export async function expireView(operations: SealOperations, { schema, parts }: TableVersion): Promise<void> {
  const { ttl, stored: record, id } = schema
  if (ttl === null || record === undefined) return
  const snapshot = operations.holdSnapshot()
  let [cut, baseId] = [allOfTime.lo, -1]
  try {
    const inputs = inputsOfView(schema, (tableId) => snapshot.snapshotOf(tableId)?.version)
    const base = snapshot.snapshotOf(inputs?.base.schema.id ?? -1)
    const grid = lastGrid(operations, snapshot, id)
    if (base === undefined || grid === undefined) return
    baseId = base.version.schema.id
    cut = cutOf(operations, { base, grid }, schema, ttl)
    const readers = viewsOf(operations, id).flatMap((view) => lastGrid(operations, snapshot, view.id) ?? [])
    // The newest bucket of a materialized view over this one waits until it is over.
    const last = { lo: cut - 1n, hi: cut - 1n }
    const isOver = (above: BucketGrid): boolean =>
      above.live !== undefined || above.whole(last).hi < currentStart(base, operations, above)
    if (!readers.every(isOver)) return
  } finally {
    snapshot.release()
  }
  if (cut <= keptRange(schema).lo) return
  const leaving = viewsOf(operations, id).map((view) => ({
    ...{ viewId: view.id, ranges: [{ lo: keptRange(schema).lo, hi: cut - 1n }] },
  }))
  await sealed(operations, { kind: 'partitions', tableId: baseId, operation: 'drop', partitions: [] }, () => leaving)
  const { stored: now } = operations.byId(id)?.schema ?? {}
  if (now === undefined) return
  await operations.record(id, { ...now, changes: now.changes + 1, expired: `${cut}` })
  const find = partitionFinder(schema)
  const gone = parts.filter(({ minTs }) => find(minTs).to <= cut).map(({ partition }) => partition)
  if (gone.length > 0)
    await operations.change({ kind: 'partitions', tableId: id, operation: 'drop', partitions: [...new Set(gone)] })
}

/** The first bucket boundary at or after the start of the oldest partition that the TTL keeps. */
function cutOf(
  { memory, nowMicros }: SealOperations,
  { base, grid }: Pick<SeenView, 'base' | 'grid'>,
  schema: TableSchema,
  ttl: NonNullable<TableSchema['ttl']>,
): bigint {
  const newest = newestOf(base, memory)
  if (newest === null) return allOfTime.lo
  const start = grid.whole({ lo: newest, hi: newest }).lo
  const oldest = oldestKept(schema, start, BigInt(Math.floor(nowMicros())), ttl)
  const whole = grid.whole({ lo: oldest, hi: oldest })
  return whole.lo >= oldest ? whole.lo : whole.hi + 1n
}
