// Lets buckets of materialized views outlive the rows of their base table. When DROP PARTITION, or the TTL of a table
// with views, is about to remove rows, the views store the buckets concerned, and these are sealed: from then on they
// are read as stored, and not computed.
//
//   1. The memtables of the base table are flushed, late rows are added to buckets that are sealed already
//      (sealed-rows.ts), and each view stores the buckets that would lose rows, in one snapshot.
//   2. The writer removes the partitions and seals the buckets in one record, if the rows on which the buckets depend are
//      the same as in the snapshot, and the partitions have no further parts; otherwise step 1 is repeated. Compactions
//      and refreshes change no rows. Rows of the partitions that are in memory stay.
//
// If rows keep arriving, the last four of eight tries take those that came after the flush of step 1 as if they had come
// after the removal: the views store what the parts (Parquet files) of the snapshot have, and the writer removes these
// parts alone. So later rows are late rows of sealed buckets. A live view, which has no rows of these, is sealed up to
// the first of them, but always where it loses rows. Only UPDATE, DELETE or a compaction of both kinds of rows makes the
// writer refuse such a try.
//
// The bucket of the newest row is not sealed. DROP PARTITION removes rows of this bucket, and the view then shows what
// is left; a TTL waits until the bucket has ended. Neither holds for live views (live-grid.ts), which seal all rows of a
// table, and of a materialized view all but those of its newest bucket.
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
import { nullAt, onlyAdded } from './late-rows.js'
import type { BucketGrid } from './live-grid.js'
import { addsLate, type RefreshOperations, seenBy, storeRanges } from './refresh-view.js'
import { addSealedRows, omitSealedRows } from './sealed-rows.js'
import {
  cleanRanges,
  inputsOfView,
  lateParts,
  memtableRanges,
  rightGrid,
  textOf,
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
      const without = tries > strictTries ? withoutMemory(snapshot, change.tableId) : undefined
      const seen = without?.snapshot ?? snapshot
      const sealing = await stored(operations, seen, change, leaving(seen), {
        ...{ all: snapshot.snapshotOf(change.tableId), asOf: without?.asOf, losing },
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
async function addLateRows(operations: SealOperations, tableId: number, omits: boolean): Promise<number[]> {
  const failed: number[] = []
  for (const { viewId } of operations.byId(tableId)?.schema.sealed ?? []) {
    const view = operations.byId(viewId)?.schema
    if (view === undefined || !isAdding(view)) continue
    try {
      const isBound = await nullAt([SqlError], addedOrShort(operations, viewId))
      if (omits || isBound === null) await omitSealedRows(operations, viewId, tableId)
    } catch (thrown) {
      if (!(thrown instanceof FileError || thrown instanceof ResourceError)) throw thrown
      failed.push(viewId)
      const note = 'a materialized view could not add late rows to sealed buckets before they are changed or dropped'
      operations.log('W', 'view', `${note} [view=${view.name}, reason=${thrown.message}]`)
    }
  }
  return failed
}

/** A lack of memory or space may pass. */
async function addedOrShort(operations: SealOperations, viewId: number): Promise<boolean> {
  const isAdded = await nullAt([ResourceError, FileError], addSealedRows(operations, { viewId, signal: null }))
  return isAdded ?? false
}

/** Adds late rows of all parts; those that cannot be added now, such as beside a detached partition, are left out. */
export async function addAllLateRows(operations: SealOperations, tableId: number): Promise<void> {
  for (let tries = 1; tries <= addTriesMax; tries++) {
    await operations.flush(tableId)
    const transaction = Math.max(0, ...(operations.byId(tableId)?.parts ?? []).map(({ maxTxn }) => maxTxn))
    const failed = await addLateRows(operations, tableId, tries === addTriesMax)
    if (failed.length > 0)
      throw new ResourceError('late rows could not be added to materialized views before they are changed: try again')
    if (!hasLate(operations, tableId, transaction)) return
    await sleep(firstPauseMs * 2 ** tries)
  }
}

/** Whether sealed buckets lack rows of parts up to this transaction. */
function hasLate({ byId }: SealOperations, tableId: number, transaction: number): boolean {
  const base = byId(tableId)
  return (base?.schema.sealed ?? []).some(({ viewId }) => {
    const view = byId(viewId)?.schema
    if (base === undefined || view === undefined || !isAdding(view)) return false
    return lateParts({ view, base }).some(({ minTxn }) => minTxn <= transaction)
  })
}

/** Late rows of live views are not in their sealed rows. */
function isAdding({ materialized }: TableSchema): boolean {
  return materialized?.live === undefined
}

/** The snapshot without rows in memtables of the table, and the transaction up to which its parts have all rows. */
function withoutMemory(
  snapshot: ReadSnapshot,
  tableId: number,
): { readonly snapshot: ReadSnapshot; readonly asOf: number } | undefined {
  const base = snapshot.snapshotOf(tableId)
  if (base === undefined) return undefined
  const { parts, memtables, flushedTxn = 0 } = base.version
  const asOf = memtables.length > 0 ? flushedTxn : Math.max(flushedTxn, ...parts.map(({ maxTxn }) => maxTxn))
  return { snapshot: onlyAdded({ snapshot, base }, parts), asOf }
}

interface StoreOptions {
  /** The table with its rows in memory. */
  readonly all: TableSnapshot | undefined
  /** All rows of the snapshot are of transactions up to this one. Undefined: no later rows are accepted. */
  readonly asOf: number | undefined
  readonly losing: readonly number[]
}

/** Stores the buckets; undefined if rows of these buckets are in memory, or later than `asOf`. */
async function stored(
  operations: SealOperations,
  snapshot: ReadSnapshot,
  { tableId: baseId, partitions }: PartitionChange,
  leaving: readonly Leaving[],
  { all, asOf, losing }: StoreOptions,
): Promise<Sealing | undefined> {
  const base = snapshot.snapshotOf(baseId)
  if (base === undefined || all === undefined) throw new SqlError('the table was dropped', 0)
  const newest = newestOf(all, operations.memory)
  const present = memtableRanges(base, operations.memory)
  const views: { viewId: number; ranges: TimeRange[]; adds: boolean; least: bigint | null }[] = []
  for (const { viewId, ranges } of leaving) {
    const grid = lastGrid(operations, snapshot, viewId)
    if (grid === undefined || ranges.length === 0) continue
    const whole = normalise(ranges.map((range) => withoutRows(grid, range)))
    const over = intersect(whole, [{ lo: allOfTime.lo, hi: currentStart(newest, grid) - 1n }])
    const wanted = intersect(over, unsealed(snapshot, base, viewId))
    const reached = normalise(present.map((range) => grid.live?.reached(range, false) ?? grid.whole(range)))
    if (intersect(wanted, reached).length > 0) return undefined
    const least = grid.live === undefined ? null : (normalise(ranges).at(-1)?.hi ?? allOfTime.lo)
    const isOverTable = snapshot.snapshotOf(viewId)?.version.schema.materialized?.baseId === baseId
    const later = least === null ? [] : laterRows(all, operations, { least, isOverTable })
    const open = intersect(
      wanted,
      complement(normalise(later.map((range) => grid.live?.reached(range, false) ?? range))),
    )
    const done = open.length === 0 ? [] : await storedOf(operations, snapshot, viewId, open)
    if (done.length > 0) views.push({ viewId, ranges: done, adds: mayAdd(operations, snapshot, viewId), least })
  }
  const needed = normalise(views.flatMap(({ viewId, ranges }) => neededBy(operations, snapshot, viewId, ranges)))
  const removed = new Map(base.version.removals?.map(([id, , count]) => [id, count] as const))
  const parts = base.version.parts.filter(
    ({ partition, minTs, maxTs }) =>
      partitions.includes(partition) || intersect(needed, [{ lo: minTs, hi: maxTs }]).length > 0,
  )
  if (asOf !== undefined && parts.some(({ maxTxn }) => maxTxn > asOf)) return undefined
  return {
    views: views.map(({ viewId, ranges, adds, least }) => ({
      ...{ viewId, ranges: ranges.map(textOf), adds },
      ...(least === null ? {} : { least: `${least}` }),
    })),
    ...(asOf === undefined ? {} : { asOf }),
    needed: needed.map(textOf),
    parts: parts.map(({ id }) => [id, removed.get(id) ?? 0]),
    version: base.version.version,
    losing,
  }
}

/**
 * Where a live view is not sealed, since the base has rows in memory there: after the times at which it loses rows. The
 * writer looks again, at each row, which is not enough for buckets of a view that the live view reads.
 */
function laterRows(
  base: TableSnapshot,
  { memory }: SealOperations,
  { least, isOverTable }: { readonly least: bigint; readonly isOverTable: boolean },
): TimeRange[] {
  const after = { lo: least + 1n, hi: allOfTime.hi }
  const present = memtableRanges(base, memory).filter(({ lo }) => !isOverTable || lo > least)
  return intersect(normalise(present), [after])
}

/** Whether late rows can be added to sealed buckets of the view, perhaps after its query binds again. */
function mayAdd(operations: SealOperations, snapshot: ReadSnapshot, viewId: number): boolean {
  const version = snapshot.snapshotOf(viewId)?.version
  if (version === undefined || !isAdding(version.schema)) return false
  try {
    return addsLate(operations, version) !== false
  } catch (thrown) {
    if (thrown instanceof SqlError) return true
    throw thrown
  }
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
function currentStart(newest: bigint | null, grid: BucketGrid): bigint {
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
      grids.every((grid) => grid.live !== undefined || grid.whole(range).hi < currentStart(newest, grid))
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
    const newest = newestOf(base, operations.memory)
    if (newest === null) return
    cut = cutOf(operations, { newest, grid }, schema, ttl)
    const readers = viewsOf(operations, id).flatMap((view) => lastGrid(operations, snapshot, view.id) ?? [])
    // The newest bucket of a materialized view over this one waits until it is over.
    const last = { lo: cut - 1n, hi: cut - 1n }
    const isOver = (above: BucketGrid): boolean =>
      above.live !== undefined || above.whole(last).hi < currentStart(newest, above)
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
  { nowMicros }: SealOperations,
  { newest, grid }: { readonly newest: bigint; readonly grid: BucketGrid },
  schema: TableSchema,
  ttl: NonNullable<TableSchema['ttl']>,
): bigint {
  const start = grid.whole({ lo: newest, hi: newest }).lo
  const oldest = oldestKept(schema, start, BigInt(Math.floor(nowMicros())), ttl)
  const whole = grid.whole({ lo: oldest, hi: oldest })
  return whole.lo >= oldest ? whole.lo : whole.hi + 1n
}
