// A version of all tables that stays on the disk while somebody copies it: what CHECKPOINT CREATE and RELEASE do.
//
//   cut        everything that was taken before is frozen; what comes later is not flushed until the snapshot is written
//   snapshot   a manifest in backup/ names the parts that hold exactly the rows before the cut
//   pin        no file of it is removed until RELEASE, a restart, or checkpointMsMax
//
// Invariants:
//   1. The cut lies between two requests, so a transaction over several tables is in the snapshot whole or not at all.
//   2. What is removed while a version is pinned is removed when it is released; a restart removes it anyway.

import { type ErrorRecord, errorRecord, FileError, ResourceError } from '../../base/errors.js'
import { checkpointMsMax } from '../../base/limits.js'
import type { KafkaOrigin } from '../../wal/origin.js'
import { flushTable, whenFlushed, writeAllNames } from './writer-flush.js'
import { putOff } from './writer-manifest.js'
import { answerNow, enqueue, receiptOf, refusal, type WriterState } from './writer-state.js'

/** Answered when the snapshot is durable. A version that is pinned already is replaced by the one of now. */
export function pinVersion(state: WriterState, requestId: number): void {
  const earlier = state.pin
  const refuse = (error: ErrorRecord): void => {
    if (state.pin !== null) state.pin.cut = null
    // Nobody releases what was not made.
    if (earlier === null) releaseVersion(state)
    answerNow(state, refusal(requestId, error))
  }
  if (state.pin?.cut != null) {
    answerNow(state, refusal(requestId, errorRecord(new ResourceError('another checkpoint is being made'))))
    return
  }
  if (state.wal.state === 'poisoned') {
    refuse(errorRecord(new ResourceError('the log cannot be written now [state=poisoned]')))
    return
  }
  const generations = [...state.catalog.byId.values()].flatMap((table) => flushTable(state, table))
  const origins = state.origins.all
  const sinceMs = state.options.clock.monotonicMs()
  state.pin = { sinceMs, removals: state.pin?.removals ?? [], cut: new Set(generations) }
  // Behind what is acknowledged before: schemas that are on their way are in the snapshot, too.
  const done = (): void => enqueue(state, { after: () => writeSnapshot(state, requestId, origins, refuse) })
  whenFlushed(state, generations, done, refuse)
}

function writeSnapshot(
  state: WriterState,
  requestId: number,
  origins: readonly KafkaOrigin[],
  refuse: (error: ErrorRecord) => void,
): void {
  try {
    writeAllNames(state)
    state.manifest.snapshot(`${state.options.directory}/backup`, origins)
  } catch (thrown) {
    if (!(thrown instanceof FileError)) throw thrown
    putOff(state, thrown)
    refuse(errorRecord(thrown))
    return
  }
  if (state.pin !== null) state.pin.cut = null
  enqueue(state, { receipts: [receiptOf(requestId, {})] })
}

/** Removes what was put off. */
export function releaseVersion(state: WriterState): void {
  const { pin } = state
  if (pin === null || pin.cut !== null) return
  state.pin = null
  for (const remove of pin.removals) remove()
}

/** Runs now, or when nothing is pinned any more. */
export function whenUnpinned(state: WriterState, remove: () => void): void {
  if (state.pin === null) remove()
  else state.pin.removals.push(remove)
}

/** Called now and then. */
export function releaseForgotten(state: WriterState): void {
  const { pin } = state
  if (pin === null || state.options.clock.monotonicMs() - pin.sinceMs < checkpointMsMax) return
  state.options.log('W', 'writer', 'a checkpoint that nobody has released for a day is released')
  releaseVersion(state)
}
