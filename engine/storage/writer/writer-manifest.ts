// The writer's use of the manifest, with handling of disk errors. After a failed write the manifest is opened again
// when it is next needed, which rewrites it, so that its contents are known to be durable. Callers get a FileError and
// retry later.
//
// Debts are manifest records that are still to be written: they follow from log frames (drop, truncate), or revert what
// a failed commit may have left. They are written before the list of parts (Parquet files) changes again and before the
// log is trimmed; until then the log frames have the same effect.

import { assert } from '../../base/assert.js'
import { type ErrorRecord, errorRecord, FileError, ResourceError } from '../../base/errors.js'
import { Manifest, type ManifestRecord } from '../manifest/manifest.js'
import { formats } from '../manifest/manifest-format.js'
import { formatOfSchema } from '../manifest/needed-format.js'
import type { PartDescriptor } from '../schema/schema.js'
import { withReserve } from './free-space.js'
import { manifestOptions, type WriterState } from './writer-state.js'
import type { WriterTable } from './writer-table.js'

const retryMs = 1000
/** Interval in ms at which the same error is logged again. */
const reportAgainMs = 60_000

/** Appends and syncs records. After a FileError it is unknown whether they are in the manifest: see outcomeOf(). */
export function commitManifest(state: WriterState, records: readonly ManifestRecord[]): void {
  const manifest = usable(state)
  try {
    manifest.commit(records)
  } catch (thrown) {
    state.manifestBroken = true
    throw thrown
  }
}

/**
 * Makes sure that the manifest durably has this format, so that servers that do not know it refuse the root. Throws
 * ResourceError if the disk refuses that.
 */
export function requireFormat(state: WriterState, format: number): void {
  try {
    usable(state).requireFormat(format)
  } catch (thrown) {
    state.manifestBroken = true
    if (!(thrown instanceof FileError)) throw thrown
    throw new ResourceError(`the manifest cannot be written [error=${thrown.message}]`)
  }
}

/** The same for the format that a table with this schema needs. */
export function requireFormatOf(state: WriterState, schema: Parameters<typeof formatOfSchema>[0]): void {
  const isView = (id: number): boolean => state.catalog.byId.get(id)?.schema.materialized !== undefined
  const format = formatOfSchema(schema, isView)
  if (format > formats.plain) requireFormat(state, format)
}

/** Durably reserved part ids; returns the first. Throws FileError. */
export function takePartIds(state: WriterState, count: number): number {
  if (state.nextPartId + count > state.partIdsEnd) {
    const end = state.nextPartId + count * 16
    commitManifest(state, [{ kind: 'ids', part: end }])
    state.partIdsEnd = end
  }
  const first = state.nextPartId
  state.nextPartId += count
  assert(state.nextPartId <= state.partIdsEnd, 'S3: part ids are reserved before they are used')
  return first
}

/** A manifest record that adds parts and removes the `replaced` ones. */
export interface PartsCommit {
  readonly table: WriterTable
  readonly added: readonly PartDescriptor[]
  readonly replaced: readonly PartDescriptor[]
}

/**
 * Outcome of failed commits that were written together. 'done': the records were written nevertheless. 'undone': they
 * were not, so the files of the parts may be removed. 'unknown': the manifest is unreadable at present. Then the files
 * must stay, since the next start may find them in the manifest. A debt reverts the records together, and the next start
 * removes the files.
 */
export function outcomeOf(state: WriterState, commits: readonly PartsCommit[]): 'done' | 'undone' | 'unknown' {
  try {
    const manifest = usable(state)
    return commits.some((commit) => isDone(manifest, commit)) ? 'done' : 'undone'
  } catch (thrown) {
    if (!(thrown instanceof FileError)) throw thrown
    const before = commits.map((commit) => {
      const { flushedTxn, settledSchema } = commit.table
      return { commit, flushedTxn, settledSchema }
    })
    state.pendingRecords.push((manifest) =>
      before.flatMap(({ commit, flushedTxn, settledSchema: schema }) =>
        takeBack(manifest, commit, [{ kind: 'schema', schema }], flushedTxn),
      ),
    )
    return 'unknown'
  }
}

/** A commit that adds nothing is done if the parts that it removes are gone. */
function isDone(manifest: Manifest, { table, added, replaced }: PartsCommit): boolean {
  if (added.length > 0) return namesAny(manifest, table.id, added)
  return replaced.length > 0 && !namesAny(manifest, table.id, replaced)
}

function namesAny({ tables }: Manifest, tableId: number, parts: readonly PartDescriptor[]): boolean {
  const known = tables.get(tableId)?.parts ?? []
  return parts.some(({ id }) => known.some((part) => part.id === id))
}

function takeBack(
  manifest: Manifest,
  { table, added, replaced }: PartsCommit,
  schemas: readonly ManifestRecord[],
  flushedTxn: number,
): ManifestRecord[] {
  if (!isDone(manifest, { table, added, replaced }) || !manifest.tables.has(table.id)) return []
  const removed = added.map(({ id }) => id)
  return [...schemas, { kind: 'parts', tableId: table.id, added: replaced, removed, flushedTxn }]
}

/**
 * Writes all debts in order, each based on the state after the previous ones; opens the manifest if needed. Throws
 * FileError.
 */
export function writePendingRecords(state: WriterState): void {
  const manifest = state.pendingRecords.length > 0 ? withReserve(state, () => usable(state)) : usable(state)
  const pendingRecords = [...state.startRecords, ...state.pendingRecords]
  try {
    let owed = false
    for (const debt of pendingRecords) {
      const records = debt(manifest)
      if (records.length === 0) continue
      manifest.append(records)
      owed = true
    }
    if (owed) manifest.sync()
  } catch (thrown) {
    state.manifestBroken = true
    throw thrown
  }
  state.startRecords.length = 0
  state.pendingRecords.length = 0
  for (const work of state.whenPaid.splice(0)) work()
}

/** Calls `work`, which removes files, after all debts are written: until then the manifest may reference them. */
export function afterPendingRecords(state: WriterState, work: () => void): void {
  state.whenPaid.push(work)
  try {
    writePendingRecords(state)
  } catch (thrown) {
    postponeFlushes(state, thrown)
  }
}

/** Postpones flushes after the disk refused something. Other errors are bugs and are thrown again. */
export function postponeFlushes(state: WriterState, thrown: unknown): void {
  if (!(thrown instanceof FileError || thrown instanceof ResourceError)) throw thrown
  const error = errorRecord(thrown)
  const now = state.options.clock.monotonicMs()
  // A full disk causes the same error every second.
  const { reportedDelay } = state
  if (reportedDelay.text !== error.message || now >= reportedDelay.untilMs) {
    state.options.log('E', 'writer', `flushes are postponed [error=${error.message}]`)
    state.reportedDelay = { text: error.message, untilMs: now + reportAgainMs }
  }
  state.retryAtMs = now + retryMs
  refuseWaiters(state, error)
}

/** Reports to those who wait for a flush that it is postponed. It is retried later nevertheless. */
export function refuseWaiters(state: WriterState, error: ErrorRecord): void {
  for (const waiter of [...state.waiters]) {
    if (waiter.refuse === null || state.options.clock.monotonicMs() < waiter.patientUntilMs) continue
    state.waiters.splice(state.waiters.indexOf(waiter), 1)
    waiter.refuse(error)
  }
}

function usable(state: WriterState): Manifest {
  if (!state.manifestBroken) return state.manifest
  const { usesReserve, reserve } = state
  const options = manifestOptions(state.options, state.highWater)
  const opened = Manifest.open(usesReserve ? { ...options, reserve } : options)
  state.manifest.close()
  state.manifest = opened
  state.manifestBroken = false
  return opened
}
