// Publishes the writer's metrics at every tick, and decides whether writes are refused: because the disk is full or
// nearly full, the log cannot be written, or flushes fail while memory is full. The main thread reads the metric
// `refusal` and refuses new writes. Requests that were already accepted wait, and continue when there is space. Also
// restores missing files of the space reserve (wal/reserve.ts), and counts the losses of the log that are reported.

import { FileError } from '../../base/errors.js'
import type { Files } from '../../base/files.js'
import { budgets } from '../../memory/budgets.js'
import { metricOf, setMetric, writeRefusals } from '../../memory/metrics.js'
import { isFull } from '../../wal/reserve.js'
import { listLosses } from '../../wal/side-files.js'
import type { WriterState } from './writer-state.js'

/** Writes are accepted again above this multiple of the limit, so that a refusal does not flap. */
const freeAgainFactor = 1.25
/** Share of the memtables' budget above which writes are refused when flushes fail. */
const memoryFull = 0.9

/** Restores missing files of the space reserve when there is room. */
export function watchReserve({ options: { memory }, reserve, manifest, catalog }: WriterState): void {
  if (catalog.byId.size === 0) return
  reserve.tick(
    metricOf(memory, 'freeBytes'),
    metricOf(memory, 'freeBytesMin') * freeAgainFactor,
    manifest.checkpointBytes,
  )
}

export function watch(state: WriterState): void {
  const { options, wal, pending, catalog } = state
  const { memory } = options
  setMetric(memory, 'walBytes', wal.bytes)
  setMetric(memory, 'walSegments', wal.segments)
  setMetric(memory, 'walWaitingBytes', wal.waitingBytes)
  setMetric(memory, 'oldestCommitMs', pending.find(({ taken }) => taken !== undefined)?.taken?.ms ?? 0)
  let written = 0
  for (const { memtables } of catalog.byId.values()) if (memtables.length > 0) written++
  setMetric(memory, 'tablesWritten', written)
  const free = freeBytes(state)
  setMetric(memory, 'freeBytes', free)
  refuse(state, refusalNow(state, free))
}

/** Updates the number of lost log ranges, which falls when an operator removes side files (wal/side-files.ts). */
export function watchLosses({ options: { files, directory, memory }, unnotedLosses }: WriterState): void {
  if (metricOf(memory, 'logLosses') > 0) setMetric(memory, 'logLosses', countLosses(files, directory) + unnotedLosses)
}

export function countLosses(files: Files, directory: string): number {
  try {
    return listLosses(files, `${directory}/wal`).length
  } catch (thrown) {
    if (!(thrown instanceof FileError)) throw thrown
    return 0
  }
}

function freeBytes({ options: { files, directory } }: WriterState): number {
  try {
    return files.freeBytes(directory)
  } catch (thrown) {
    if (!(thrown instanceof FileError)) throw thrown
    return Number.POSITIVE_INFINITY
  }
}

function refusalNow(state: WriterState, free: number): number {
  const { memory, allocator, clock } = state.options
  const { wal } = state
  if (wal.state === 'poisoned') {
    return wal.failure !== null && isFull(wal.failure) ? writeRefusals.diskFull : writeRefusals.logFailed
  }
  if (!wal.takesRows) return writeRefusals.diskFull
  const refused = metricOf(memory, 'refusal') === writeRefusals.diskLow
  const least = metricOf(memory, 'freeBytesMin') * (refused ? freeAgainFactor : 1)
  if (free < least) return writeRefusals.diskLow
  const failing = clock.monotonicMs() < state.retryAtMs
  const full = allocator.used(budgets.memtables) > memoryFull * allocator.limit(budgets.memtables)
  return failing && full ? writeRefusals.memoryFull : writeRefusals.none
}

const words: Record<number, string> = {
  [writeRefusals.diskLow]: 'the disk is nearly full',
  [writeRefusals.diskFull]: 'the disk is full',
  [writeRefusals.logFailed]: 'the log cannot be written',
  [writeRefusals.memoryFull]: 'the memory is full and the disk accepts no data',
}

function refuse({ options: { memory, log, post }, wal }: WriterState, reason: number): void {
  const before = metricOf(memory, 'refusal')
  if (before === reason) return
  setMetric(memory, 'refusal', reason)
  if (wal.state === 'poisoned' && wal.failure !== null) post({ kind: 'logFailed', error: wal.failure })
  if (reason === writeRefusals.none) log('W', 'writer', 'writes are accepted again')
  else log('E', 'writer', `writes are refused: ${words[reason]} [freeBytes=${metricOf(memory, 'freeBytes')}]`)
}
