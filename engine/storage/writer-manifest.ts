// The writer's use of the manifest: commits that survive a refusing disk. After a failed write the manifest is opened
// again, when something wants it next, and written anew, so that what it says is durable. The caller learns of the
// failure by FileError and puts its work off.
//
// Debts are records that follow from frames of the log (drop, truncate). They are paid before the log is trimmed; until
// then the frames say the same.

import { errorRecord, FileError, ResourceError } from '../base/errors.js'
import { Manifest, type ManifestRecord } from './manifest.js'
import { manifestOptions, type WriterState } from './writer-state.js'

const retryMs = 1000

/** Appends and syncs. Throws FileError; nothing is known of the records then: see names(). */
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

/** Whether the manifest names the part, after a commit that failed. False when the manifest cannot be read now. */
export function namesPart(state: WriterState, tableId: number, partId: number): boolean {
  try {
    return (
      usable(state)
        .tables.get(tableId)
        ?.parts.some(({ id }) => id === partId) ?? false
    )
  } catch (thrown) {
    if (thrown instanceof FileError) return false
    throw thrown
  }
}

/** Pays what is owed. Throws FileError. */
export function payDebts(state: WriterState): void {
  if (state.debts.length === 0) return
  const records = state.debts.flatMap((debt) => debt(usable(state)))
  if (records.length > 0) commitManifest(state, records)
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
  state.options.log('E', 'writer', `flush is put off [error=${errorRecord(thrown).message}]`)
  state.retryAtMs = state.options.clock.monotonicMs() + retryMs
}

function usable(state: WriterState): Manifest {
  if (!state.manifestBroken) return state.manifest
  const opened = Manifest.open(manifestOptions(state.options))
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
