// The writer's use of the manifest: commits that survive a refusing disk. After a failed write the manifest is opened
// again, when something wants it next, and written anew, so that what it says is durable. The caller learns of the
// failure by FileError and puts its work off.
//
// Debts are records that follow from frames of the log (drop, truncate), or that take back what a failed commit may have
// left. They are paid before parts change again and before the log is trimmed; until then the frames say the same.

import { assert } from '../../base/assert.js'
import { type ErrorRecord, errorRecord, FileError, ResourceError } from '../../base/errors.js'
import { Manifest, type ManifestRecord } from '../manifest/manifest.js'
import type { PartDescriptor } from '../schema/schema.js'
import { withReserve } from './making-room.js'
import { manifestOptions, type WriterState } from './writer-state.js'
import type { WriterTable } from './writer-table.js'

const retryMs = 1000
/** The same trouble is told so often. */
const tellAgainMs = 60_000

/** Appends and syncs. Throws FileError; nothing is known of the records then: see outcomeOf(). */
export function commitManifest(state: WriterState, records: readonly ManifestRecord[]): void {
  const manifest = usable(state)
  try {
    manifest.commit(records)
  } catch (thrown) {
    state.manifestBroken = true
    throw thrown
  }
}

/** Part ids, durably reserved. Throws FileError. */
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

/** A commit of parts: `replaced` are those that it removes. */
export interface PartsCommit {
  readonly table: WriterTable
  readonly added: readonly PartDescriptor[]
  readonly replaced: readonly PartDescriptor[]
}

/**
 * What became of a commit that failed. 'done': the record is on the disk all the same. 'undone': it is not, and the files
 * may go. 'unknown': the manifest cannot be read now. The files must stay then, since the next start may find them named;
 * a debt takes the record back, and the next start removes the files.
 */
export function outcomeOf(state: WriterState, commit: PartsCommit): 'done' | 'undone' | 'unknown' {
  const { table } = commit
  try {
    return isDone(usable(state), commit) ? 'done' : 'undone'
  } catch (thrown) {
    if (!(thrown instanceof FileError)) throw thrown
    const { flushedTxn, settledSchema: schema } = table
    state.debts.push((manifest) => takeBack(manifest, commit, [{ kind: 'schema', schema }], flushedTxn))
    return 'unknown'
  }
}

/** A commit that adds nothing is done when what it removes is gone. */
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

/** Pays what is owed, each debt to what the ones before have left, and has the manifest usable. Throws FileError. */
export function payDebts(state: WriterState): void {
  const manifest = state.debts.length > 0 ? withReserve(state, () => usable(state)) : usable(state)
  const debts = [...state.startRecords, ...state.debts]
  try {
    let owed = false
    for (const debt of debts) {
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
  state.debts.length = 0
  for (const work of state.whenPaid.splice(0)) work()
}

/** Pays what is owed, before files go that the manifest may name; when the disk refuses, both happen later. */
export function whenPaid(state: WriterState, work: () => void): void {
  state.whenPaid.push(work)
  try {
    payDebts(state)
  } catch (thrown) {
    putOff(state, thrown)
  }
}

/** The disk refused something: it is tried again later. Other errors are ours and go on. */
export function putOff(state: WriterState, thrown: unknown): void {
  if (!(thrown instanceof FileError || thrown instanceof ResourceError)) throw thrown
  const error = errorRecord(thrown)
  const now = state.options.clock.monotonicMs()
  // A full disk refuses every second.
  const { putOffTold } = state
  if (putOffTold.text !== error.message || now >= putOffTold.untilMs) {
    state.options.log('E', 'writer', `flush is put off [error=${error.message}]`)
    state.putOffTold = { text: error.message, untilMs: now + tellAgainMs }
  }
  state.retryAtMs = now + retryMs
  refuseWaiters(state, error)
}

/** Who asked for a flush is told that it is put off; it happens later all the same. */
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
