// The writer's use of the manifest: commits that survive a refusing disk. After a failed write the manifest is opened
// again, when something wants it next, and written anew, so that what it says is durable. The caller learns of the
// failure by FileError and puts its work off.
//
// Debts are records that follow from frames of the log (drop, truncate), or that take back what a failed commit may have
// left. They are paid before parts change again and before the log is trimmed; until then the frames say the same.

import { type ErrorRecord, errorRecord, FileError, ResourceError } from '../base/errors.js'
import { Manifest, type ManifestRecord } from './manifest.js'
import type { PartDescriptor } from './schema.js'
import { manifestOptions, type WriterState } from './writer-state.js'
import type { WriterTable } from './writer-table.js'

const retryMs = 1000

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
  const { table, added } = commit
  try {
    return namesAny(usable(state), table.id, added) ? 'done' : 'undone'
  } catch (thrown) {
    if (!(thrown instanceof FileError)) throw thrown
    const { flushedTxn, settledSchema: schema } = table
    state.debts.push((manifest) => takeBack(manifest, commit, [{ kind: 'schema', schema }], flushedTxn))
    return 'unknown'
  }
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
  if (!namesAny(manifest, table.id, added)) return []
  const removed = added.map(({ id }) => id)
  return [...schemas, { kind: 'parts', tableId: table.id, added: replaced, removed, flushedTxn }]
}

/** Pays what is owed, each debt to what the ones before have left, and has the manifest usable. Throws FileError. */
export function payDebts(state: WriterState): void {
  const manifest = usable(state)
  if (state.debts.length === 0) return
  try {
    let owed = false
    for (const debt of state.debts) {
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
  state.debts.length = 0
}

/** Pays what is owed, before files go that the manifest may name. False when the disk refuses: the next start removes them. */
export function settleDebts(state: WriterState): boolean {
  try {
    payDebts(state)
    return true
  } catch (thrown) {
    putOff(state, thrown)
    return false
  }
}

/** The disk refused something: it is tried again later. Other errors are ours and go on. */
export function putOff(state: WriterState, thrown: unknown): void {
  if (!(thrown instanceof FileError || thrown instanceof ResourceError)) throw thrown
  const error = errorRecord(thrown)
  state.options.log('E', 'writer', `flush is put off [error=${error.message}]`)
  state.retryAtMs = state.options.clock.monotonicMs() + retryMs
  refuseWaiters(state, error)
}

/** Who asked for a flush is told that it is put off; it happens later all the same. */
function refuseWaiters(state: WriterState, error: ErrorRecord): void {
  for (const waiter of [...state.waiters]) {
    if (waiter.refuse === null) continue
    state.waiters.splice(state.waiters.indexOf(waiter), 1)
    waiter.refuse(error)
  }
}

function usable(state: WriterState): Manifest {
  if (!state.manifestBroken) return state.manifest
  const opened = Manifest.open(manifestOptions(state.options, state.highWater))
  try {
    opened.checkpoint()
  } catch (thrown) {
    opened.close()
    throw thrown
  }
  state.manifest.close()
  state.manifest = opened
  state.manifestBroken = false
  return opened
}
