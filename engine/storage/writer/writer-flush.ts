// Flush scheduling: decides which memtables are flushed to Parquet files (parts) and when, starts the jobs, and
// publishes their results. Also starts compactions, and removes log segments that are no longer needed. The steps of a
// flush of one memtable:
//
//   freeze    the memtable accepts no more rows; the next append starts another one
//   job       started when all its rows are visible; a query thread sorts them and writes parts
//   done      symbols are written and synced, then the manifest; a new version is published; memory and log are freed
//
// Invariants:
//   1. Memtables of a table are flushed in order, so `flushedTxn` covers all earlier transactions.
//   2. The log is trimmed only up to the oldest frame (log record) that memory, schemas or unwritten symbols still
//      need.
//   3. A failed write of the manifest loses nothing: the rows stay in memtable and log, and the flush is retried after
//      the manifest was opened again.

import { assert } from '../../base/assert.js'
import { errorRecord, ResourceError } from '../../base/errors.js'
import { budgets } from '../../memory/budgets.js'
import { addMetric, metricOf, writeRefusals } from '../../memory/metrics.js'
import { noteStorageWork } from '../../memory/storage-work.js'
import type { Lsn } from '../../wal/types.js'
import { chooseCompaction, compactedPartsMax, compactionSliceRows } from '../jobs/compaction.js'
import { partIdsPerFlush, smallFlushRows } from '../jobs/messages.js'
import type { ManifestRecord } from '../manifest/manifest.js'
import { mixesLate } from '../schema/materialized.js'
import { localFileOf, type PartDescriptor, rowsOf } from '../schema/schema.js'
import { withReserve } from './free-space.js'
import { commitManifest, outcomeOf, postponeFlushes, takePartIds, writePendingRecords } from './writer-manifest.js'
import { schemaRecords, schemaWritten, symbolCounts, symbolsNamed, writeSymbols } from './writer-records.js'
import { relocateMemtable } from './writer-relocate.js'
import { compactedParts, lateBoundsOf, noteCompaction } from './writer-seal.js'
import {
  enqueue,
  type Flushed,
  type FlushWaiter,
  type PostedJob,
  type RunningJob,
  type WriterState,
} from './writer-state.js'
import { evictSymbols } from './writer-symbols.js'
import type { MemtableEntry, WriterTable } from './writer-table.js'

/** Concurrent flush jobs, limited because query threads also run queries. */
const flushJobsMax = 2
/** Concurrent flush jobs with few rows. Threads sync their parts in groups. */
const smallJobsMax = 64
/** Maximum flushes per manifest record. */
const flushesPerCommit = 64
const mergeJobsMax = 2
/** Above this share of the budget the largest memtable is flushed, whatever its size. */
const memoryMark = 0.7

/** Freezes the table's open memtable; returns all memtables that will be flushed. */
export function flushTable(_state: WriterState, table: WriterTable): MemtableEntry[] {
  const { open } = table
  if (open !== undefined && open.memtable.rows > 0) open.state = 'frozen'
  return table.memtables.filter(({ state }) => state !== 'open')
}

/** Calls `done` when the memtables are flushed, or `refuse` if flushes are postponed because the disk refuses. */
export function whenFlushed(
  state: WriterState,
  memtables: readonly MemtableEntry[],
  done: () => void,
  refuse: FlushWaiter['refuse'] = null,
  patientUntilMs = 0,
): void {
  if (memtables.length === 0) done()
  else state.waiters.push({ memtables: new Set(memtables), done, refuse, patientUntilMs })
}

/** Freezes memtables that are due, starts jobs and trims the log. Returns whether a job was started. */
export function scheduleFlushes(state: WriterState): boolean {
  const now = state.options.clock.monotonicMs()
  if (now < state.retryAtMs) return false
  freezeDue(state, now)
  freezeForLog(state)
  let posted = false
  let jobs = flushJobs(state)
  for (const table of state.catalog.byId.values()) {
    const [oldest] = table.memtables
    if (oldest?.state !== 'frozen' || oldest.lastLsn > state.wal.acknowledgedLsn) continue
    if (pendingNames(state, oldest)) continue
    if (state.pin !== null && state.pin.cut !== null && !state.pin.cut.has(oldest)) continue
    const small = oldest.memtable.rows <= smallFlushRows
    if (jobs >= (small ? smallJobsMax : flushJobsMax)) continue
    jobs++
    posted = postFlush(state, table, oldest) || posted
  }
  return posted
}

function flushJobs(state: WriterState): number {
  let count = 0
  for (const { entry } of state.jobs.values()) if (entry !== undefined) count++
  return count
}

/** Whether rows of the memtable are acknowledged but not yet visible. */
function pendingNames(state: WriterState, { memtable }: MemtableEntry): boolean {
  return memtable.publishedRows < memtable.rows && state.pending.length > 0
}

/** Freezes memtables by size and age, and the largest one when memory is short. */
function freezeDue(state: WriterState, now: number): void {
  const { flushRows, flushBytes, flushAgeMs } = state.settings
  let largest: MemtableEntry | undefined
  let frozen = 0
  for (const { open, memtables } of state.catalog.byId.values()) {
    frozen += memtables.reduce((sum, { state: kind }) => sum + (kind === 'open' ? 0 : 1), 0)
    if (open === undefined || open.memtable.rows === 0) continue
    const { memtable, createdMs } = open
    if (memtable.rows >= flushRows || memtable.bytes >= flushBytes || now - createdMs >= flushAgeMs) {
      open.state = 'frozen'
      frozen++
    } else if (largest === undefined || memtable.bytes > largest.memtable.bytes) largest = open
  }
  const { allocator } = state.options
  const short = () => allocator.used(budgets.memtables) > memoryMark * allocator.limit(budgets.memtables)
  if (short() && evictSymbols(state) && !short()) return
  if (short() && frozen < flushJobsMax && largest !== undefined) largest.state = 'frozen'
}

/** When the log is too long, flushes what it is kept for, or relocates small memtables to its head. */
function freezeForLog(state: WriterState): void {
  const { flushLsn } = state.wal
  if (flushLsn === 0) return
  for (const table of state.catalog.byId.values()) {
    const { open } = table
    if (table.neededLsn >= flushLsn || open === undefined || open.firstLsn >= flushLsn) continue
    const small =
      open.memtable.bytes < state.settings.relocatedBytesMax &&
      table.memtables.length === 1 &&
      open.hasRemovals !== true
    if (small && open.relocatedLsn >= flushLsn) continue
    if (small && open.lastLsn <= state.wal.acknowledgedLsn) relocateMemtable(state, table, open)
    else open.state = 'frozen'
  }
  trimLog(state)
}

function postFlush(state: WriterState, table: WriterTable, entry: MemtableEntry): boolean {
  try {
    const take = () => takePartIds(state, partIdsPerFlush)
    const firstPartId = entry.leaving === undefined ? take() : withReserve(state, take)
    assert(entry.memtable.publishedRows === entry.memtable.rows, 'S1: only visible rows are flushed')
    entry.state = 'flushing'
    const version = {
      ...table.describeSettled(),
      memtables: [{ id: entry.memtable.id, address: entry.memtable.address }],
    }
    const { minTxn, maxTxn, memtable, leaving } = entry
    const job = {
      kind: 'flush',
      version,
      memtable: memtable.address,
      rows: memtable.rows,
      minTxn,
      maxTxn,
      firstPartId,
      ...(leaving === undefined ? {} : { leaving }),
    } as const
    postJob(state, { job, table, entry })
    return true
  } catch (thrown) {
    postponeFlushes(state, thrown)
    return false
  }
}

/** Sends the job to a query thread. Throws ResourceError if the memory for the table's symbols is exhausted. */
export function postJob(state: WriterState, running: RunningJob): void {
  running.table.restoreSymbols()
  running.table.jobs++
  const jobId = state.nextJobId++
  state.jobs.set(jobId, { ...running, postedMs: state.options.clock.monotonicMs() })
  state.options.post({ kind: 'job', jobId, job: running.job })
}

/** Publishes the parts of finished flushes; one manifest record names those that finished together. */
export function flushesDone(state: WriterState): void {
  const flushes = state.flushed.splice(0).filter((flush) => !isVoid(state, flush))
  for (let first = 0; first < flushes.length; first += flushesPerCommit) {
    const some = flushes.slice(first, first + flushesPerCommit)
    const makesRoom = some.some(({ entry }) => entry.leaving !== undefined)
    const named = makesRoom ? withReserve(state, () => nameParts(state, some)) : nameParts(state, some)
    for (const flush of named) settleFlush(state, flush)
    if (named.length === 0) continue
    enqueue(state, { versions: named.map(({ table }) => table.nextVersion()) })
    for (const { entry } of named) flushed(state, entry)
  }
  if (flushes.length === 0) return
  trimLog(state)
  for (const { table } of flushes) postMerge(state, table)
}

/** Whether the table was truncated or dropped during the flush; frees or keeps the memtable for its readers then. */
function isVoid(state: WriterState, { table, entry, parts }: Flushed): boolean {
  if (table.memtables.includes(entry)) return false
  if (entry.state === 'gone') entry.memtable.free()
  else entry.state = 'frozen'
  discardParts(state, parts)
  return true
}

/** Adds the parts to the manifest; returns the flushes that it contains. */
function nameParts(state: WriterState, flushes: readonly Flushed[]): readonly Flushed[] {
  try {
    writeSymbols(
      state.options,
      flushes.map(({ table }) => table),
    )
    writePendingRecords(state)
    commitManifest(state, [
      ...flushes.flatMap((flush) => flushRecords(state, flush)),
      { kind: 'ids', table: state.catalog.nextTableId },
    ])
    return flushes
  } catch (thrown) {
    postponeFlushes(state, thrown)
    return flushes.filter(({ table, entry, parts }) => {
      const outcome = outcomeOf(state, [{ table, added: parts, replaced: partsLeaving(table, entry) }])
      if (outcome === 'done') return true
      entry.state = 'frozen'
      if (outcome === 'undone') discardParts(state, parts)
      return false
    })
  }
}

function settleFlush(state: WriterState, { table, entry, parts }: Flushed): void {
  const left = partsLeaving(table, entry)
  table.redescribe(table.describedMarks(entry.maxTxn), entry.maxTxn)
  const rows = countParts(state, 'flushes', 'flushedRows', parts)
  assert(rows <= entry.memtable.rows, 'S2: a flush writes every row once')
  assert(entry === table.memtables[0], 'T2: memtables are flushed in their order')
  assert(entry.maxTxn >= table.flushedTxn, 'T2: memtables are flushed in their order')
  noteStorageWork(state.options.memory, table.id, { kind: 'flush', rows, seconds: 0 })
  if (entry.dedup !== undefined && entry.leaving === undefined) table.repeats += entry.memtable.rows - rows
  schemaWritten(table, state.settledLsn)
  symbolsNamed(table)
  table.parts = [...table.parts.filter((part) => !left.includes(part)), ...parts].sort(byTransaction)
  table.retireParts(left, (part) => discardParts(state, [part]))
  table.flushedTxn = entry.maxTxn
  table.memtables = table.memtables.filter((other) => other !== entry)
  table.retire(() => freeMemtable(state, entry), entry)
}

/** Parts of the partitions that are dropped together with this flush. */
function partsLeaving({ parts }: WriterTable, { leaving }: MemtableEntry): readonly PartDescriptor[] {
  return leaving === undefined ? [] : parts.filter(({ partition }) => leaving.has(partition))
}

/** Updates metrics; returns the number of rows. */
function countParts(
  { options: { memory } }: WriterState,
  times: 'flushes' | 'merges',
  rows: 'flushedRows' | 'mergedRows',
  parts: readonly PartDescriptor[],
): number {
  const count = rowsOf(parts)
  addMetric(memory, times, 1)
  addMetric(memory, rows, count)
  for (const part of parts) addMetric(memory, 'partBytes', part.bytes)
  return count
}

function byTransaction(x: PartDescriptor, y: PartDescriptor): number {
  return x.minTxn - y.minTxn || x.id - y.id
}

function flushRecords(state: WriterState, { table, entry, parts }: Flushed): ManifestRecord[] {
  const dictionaries = symbolCounts(table)
  const removed = partsLeaving(table, entry).map(({ id }) => id)
  return [
    ...schemaRecords(state.manifest, table),
    ...markRecords(table, entry.maxTxn, removed),
    { kind: 'parts', tableId: table.id, added: parts, removed, flushedTxn: entry.maxTxn, dictionaries },
  ]
}

/** Stores the removed rows of parts, which so far only the log has, in their descriptors. */
function markRecords(table: WriterTable, upTo: number, leaving: readonly number[]): ManifestRecord[] {
  const added = table.describedMarks(upTo).filter(({ id }) => !leaving.includes(id))
  return added.length === 0 ? [] : [{ kind: 'parts', tableId: table.id, added, removed: added.map(({ id }) => id) }]
}

/** Ends the waiting for a flush of the memtable: it is flushed, or its rows are removed. */
export function flushed(state: WriterState, entry: MemtableEntry): void {
  for (const waiter of [...state.waiters]) {
    if (!waiter.memtables.delete(entry) || waiter.memtables.size > 0) continue
    state.waiters.splice(state.waiters.indexOf(waiter), 1)
    waiter.done()
  }
}

/** Frees a memtable without readers, or leaves that to a job that still reads it. */
export function freeMemtable(state: WriterState, entry: MemtableEntry): void {
  flushed(state, entry)
  if (entry.state === 'flushing' && [...state.jobs.values()].some((job) => job.entry === entry)) {
    entry.state = 'gone'
  } else entry.memtable.free()
}

/** Writes schemas that only the log contains to the manifest, durably. Throws FileError. */
function writeSchemas(state: WriterState, beforeLsn: Lsn): void {
  const dirty = [...state.catalog.byId.values()].filter(({ dirtyLsn }) => dirtyLsn < beforeLsn)
  if (dirty.length === 0) return
  commitManifest(state, [
    ...dirty.map(({ settledSchema }) => ({ kind: 'schema', schema: settledSchema }) as const),
    { kind: 'ids', table: state.catalog.nextTableId },
  ])
  for (const table of dirty) schemaWritten(table, state.settledLsn)
}

/** Writes symbols that only old frames contain. Their rows may be gone already (TRUNCATE). Throws FileError. */
function writeSymbolsBefore(state: WriterState, beforeLsn: Lsn): void {
  const tables = [...state.catalog.byId.values()].filter(({ symbolsLsn }) => symbolsLsn < beforeLsn)
  if (tables.length === 0) return
  writeSymbols(state.options, tables)
  const record = (table: WriterTable) =>
    ({ kind: 'parts', tableId: table.id, added: [], removed: [], dictionaries: symbolCounts(table) }) as const
  commitManifest(
    state,
    tables.flatMap((table): ManifestRecord[] => [...schemaRecords(state.manifest, table), record(table)]),
  )
  for (const table of tables) {
    schemaWritten(table, state.settledLsn)
    symbolsNamed(table)
  }
}

/**
 * Records used table ids: the id of a short-lived table is only in the log, and must not be reused. Throws FileError.
 */
function writeTableIds(state: WriterState): void {
  const { nextTableId } = state.catalog
  if (state.manifestBroken || state.manifest.ids.table >= nextTableId) return
  commitManifest(state, [{ kind: 'ids', table: nextTableId }])
}

/** Writes source positions that only old frames contain to the manifest. Throws FileError. */
function writeSourcePositions(state: WriterState, beforeLsn: Lsn): void {
  const records = state.sourcePositions.due(beforeLsn)
  if (records.length === 0) return
  commitManifest(state, records)
  state.sourcePositions.named(beforeLsn)
}

/** Writes everything that acknowledged frames contain and the manifest lacks, except rows. Throws FileError. */
export function writeAllNames(state: WriterState): void {
  writePendingRecords(state)
  writeSchemas(state, Number.POSITIVE_INFINITY)
  writeTableIds(state)
  writeSymbolsBefore(state, Number.POSITIVE_INFINITY)
}

/** Trims the log up to the oldest frame that is still needed. */
export function trimLog(state: WriterState): void {
  const { wal, catalog } = state
  state.removals = state.removals.filter(({ endLsn }) => endLsn > wal.durableLsn)
  const retained = state.removals.reduce((lsn, { retainedLsn }) => Math.min(lsn, retainedLsn), wal.durableLsn)
  const oldest = [...catalog.byId.values()].reduce(
    (lsn, { memtables }) => memtables.reduce((min, { firstLsn }) => Math.min(min, firstLsn), lsn),
    Math.min(retained, state.settledLsn),
  )
  try {
    writePendingRecords(state)
    writeSchemas(state, oldest)
    writeTableIds(state)
    writeSymbolsBefore(state, oldest)
    writeSourcePositions(state, oldest)
    const needed = [...catalog.byId.values()].reduce((lsn, { dirtyLsn }) => Math.min(lsn, dirtyLsn), oldest)
    assert(needed <= wal.durableLsn, 'L1: only what is durable is trimmed')
    if (needed > 0) wal.trim(needed, (lsn) => commitManifest(state, [{ kind: 'trimmed', lsn }]))
  } catch (thrown) {
    postponeFlushes(state, thrown)
  }
}

function postMerge(state: WriterState, table: WriterTable): void {
  // A compaction needs disk space before it frees some.
  if (metricOf(state.options.memory, 'refusal') !== writeRefusals.none) return
  const compactions = [...state.jobs.values()].flatMap(({ job }) => (job.kind === 'merge' ? [job] : []))
  if (table.dropped || state.rewriting.has(table) || compactions.length >= mergeJobsMax) return
  // The job leaves out all removed rows, so their removals must be durable. Upserts of its parts wait for its end.
  if (table.removal.endLsn > state.settledLsn) return
  const busy = new Set(compactions.flatMap((merge) => merge.parts.map(({ id }) => id)))
  const version = table.describeSettled()
  const choose = state.options.chooseCompaction ?? chooseCompaction
  const parts = choose(version, busy, state.settings, lateBoundsOf(state, table))
  if (parts === undefined || parts.length === 0) return
  const { clock, allocator } = state.options
  if (clock.monotonicMs() < state.mergeRetryAtMs) return
  try {
    const { compactionRowsMax } = state.settings
    const sliceRows = compactionSliceRows(
      version.schema,
      compactionRowsMax,
      allocator.limit(budgets.queries),
      parts.length,
    )
    const firstPartId = takePartIds(state, compactedPartsMax(parts, sliceRows))
    postJob(state, { job: { kind: 'merge', version, parts, firstPartId, sliceRows }, table })
  } catch (thrown) {
    // The next flush of the table tries again, with the table's symbols in memory.
    if (!(thrown instanceof ResourceError)) postponeFlushes(state, thrown)
  }
}

/** Publishes the parts of a finished compaction. */
export function mergeDone(
  state: WriterState,
  { job, table, postedMs }: PostedJob,
  written: readonly PartDescriptor[],
): void {
  if (job.kind !== 'merge') return
  const replaced = new Set(job.parts.map(({ id }) => id))
  const present = table.parts.filter(({ id }) => replaced.has(id))
  const isStale = table.dropped || state.rewriting.has(table) || present.length !== replaced.size
  // Rows of some of the parts may have been added to sealed buckets meanwhile.
  if (isStale || mixesLate(lateBoundsOf(state, table), present)) {
    discardParts(state, written)
    return
  }
  const parts = compactedParts(state, table, job.version.schema, written, present)
  try {
    writePendingRecords(state)
    commitManifest(state, [{ kind: 'parts', tableId: table.id, added: parts, removed: [...replaced] }])
  } catch (thrown) {
    postponeFlushes(state, thrown)
    const outcome = outcomeOf(state, [{ table, added: parts, replaced: present }])
    if (outcome !== 'done') {
      if (outcome === 'undone') discardParts(state, parts)
      return
    }
  }
  const rows = countParts(state, 'merges', 'mergedRows', parts)
  const removedRows = present.reduce((sum, { id }) => sum + (table.marks.get(id)?.count ?? 0), 0)
  const liveRows = rowsOf(present) - removedRows
  assert(
    rows === liveRows || (job.version.schema.dedupKeys.length > 0 && rows < liveRows),
    'S2: a compaction keeps every row',
  )
  const { memory, clock } = state.options
  noteStorageWork(memory, table.id, { kind: 'merge', rows, seconds: (clock.monotonicMs() - postedMs) / 1000 })
  if (table.schema.dedupKeys.length > 0) table.repeats += rowsOf(present) - rows
  table.parts = [...table.parts.filter(({ id }) => !replaced.has(id)), ...parts].sort(byTransaction)
  noteCompaction(table, present, parts)
  table.retireParts(present, (part) => discardParts(state, [part]))
  enqueue(state, { versions: [table.nextVersion()] })
  postMerge(state, table)
}

/** Removes part files that no version and no manifest references. If that fails, the next start removes them. */
export function discardParts(state: WriterState, parts: readonly PartDescriptor[]): void {
  if (state.pin !== null && parts.length > 0) {
    state.pin.removals.push(() => discardParts(state, parts))
    return
  }
  for (const part of parts) {
    const file = localFileOf(part)
    const path = `${state.options.directory}/${file}`
    try {
      if (state.options.files.exists(path)) state.options.files.remove(path)
    } catch (thrown) {
      state.options.log(
        'W',
        'writer',
        `a part file was not removed [file=${file}, error=${errorRecord(thrown).message}]`,
      )
    }
  }
}
