// Checkpoints for backups (CHECKPOINT CREATE and RELEASE): keeps the files of all tables unchanged on disk, as of one
// moment, while a backup copies them.
//
//   cut        all memtables are frozen; rows that arrive later are not flushed until the snapshot is written
//   snapshot   a manifest in backup/ lists the Parquet files, which contain exactly the rows before the cut
//   pin        no file of the snapshot is removed until RELEASE, a restart, or the end of a day (checkpointMsMax)
//
// Invariants:
//   1. The writer commits each transaction as a whole, and makes the cut between two commits. So the snapshot contains
//      all rows of a transaction or none, even if the transaction changes several tables.
//   2. Removals of files are deferred until the release. A restart performs them too.

import { type ErrorRecord, errorRecord, FileError, ResourceError } from '../../base/errors.js'
import { checkpointMsMax } from '../../base/limits.js'
import type { KafkaPosition } from '../../wal/source-position.js'
import { flushTable, whenFlushed, writeAllNames } from './writer-flush.js'
import { postponeFlushes } from './writer-manifest.js'
import { enqueue, receiptOf, refusal, sendReceiptNow, type WriterState } from './writer-state.js'

/** Responds when the snapshot is durable. A version that is already pinned is replaced by the current one. */
export function pinVersion(state: WriterState, requestId: number): void {
  const earlier = state.pin
  const refuse = (error: ErrorRecord): void => {
    if (state.pin !== null) state.pin.cut = null
    // A failed checkpoint will not be released by anyone.
    if (earlier === null) releaseVersion(state)
    sendReceiptNow(state, refusal(requestId, error))
  }
  if (state.pin?.cut != null) {
    sendReceiptNow(state, refusal(requestId, errorRecord(new ResourceError('another checkpoint is being made'))))
    return
  }
  if (state.wal.state === 'poisoned') {
    refuse(errorRecord(new ResourceError('the log cannot be written now [state=poisoned]')))
    return
  }
  const memtables = [...state.catalog.byId.values()].flatMap((table) => flushTable(state, table))
  const sourcePositions = state.sourcePositions.all
  const sinceMs = state.options.clock.monotonicMs()
  state.pin = { sinceMs, removals: state.pin?.removals ?? [], cut: new Set(memtables) }
  // Runs after all earlier commits are acknowledged, so the snapshot includes schema changes in progress.
  const done = (): void => enqueue(state, { after: () => writeSnapshot(state, requestId, sourcePositions, refuse) })
  whenFlushed(state, memtables, done, refuse)
}

function writeSnapshot(
  state: WriterState,
  requestId: number,
  sourcePositions: readonly KafkaPosition[],
  refuse: (error: ErrorRecord) => void,
): void {
  try {
    writeAllNames(state)
    state.manifest.snapshot(`${state.options.directory}/backup`, sourcePositions)
  } catch (thrown) {
    if (!(thrown instanceof FileError)) throw thrown
    postponeFlushes(state, thrown)
    refuse(errorRecord(thrown))
    return
  }
  if (state.pin !== null) state.pin.cut = null
  enqueue(state, { receipts: [receiptOf(requestId, {})] })
}

/** Runs the deferred removals. */
export function releaseVersion(state: WriterState): void {
  const { pin } = state
  if (pin === null || pin.cut !== null) return
  state.pin = null
  for (const remove of pin.removals) remove()
}

/** Runs `remove` now, or when no version is pinned any more. */
export function whenUnpinned(state: WriterState, remove: () => void): void {
  if (state.pin === null) remove()
  else state.pin.removals.push(remove)
}

/** Releases a version that was pinned for too long. Called periodically. */
export function releaseExpired(state: WriterState): void {
  const { pin } = state
  if (pin === null || state.options.clock.monotonicMs() - pin.sinceMs < checkpointMsMax) return
  state.options.log('W', 'writer', 'a checkpoint that was not released for a day is released')
  releaseVersion(state)
}
