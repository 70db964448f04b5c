// What the writer tells about itself at every tick, and whether writes are refused: because the disk is nearly full,
// because the log cannot be written, or because flushes fail and the memory is full. The doors of the main thread read
// the figure and refuse new writes; what is taken already waits, and everything goes on by itself when there is room.

import { FileError } from '../../base/errors.js'
import type { Files } from '../../base/files.js'
import { budgets } from '../../memory/budgets.js'
import { figureOf, setFigure, writeRefusals } from '../../memory/figures.js'
import { isFull } from '../../wal/reserve.js'
import { listLosses } from '../../wal/side-files.js'
import type { WriterState } from './writer-state.js'

/** Writes are taken again when so much more than the least is free: a refusal does not come and go. */
const freeAgainFactor = 1.25
/** Share of the memtables' budget above which failing flushes refuse writes. */
const memoryFull = 0.9

/** Makes what is missing of the reserve, where there is room. */
export function watchReserve({ options: { memory }, reserve, manifest, catalog }: WriterState): void {
  if (catalog.byId.size === 0) return
  reserve.tick(
    figureOf(memory, 'freeBytes'),
    figureOf(memory, 'freeBytesMin') * freeAgainFactor,
    manifest.checkpointBytes,
  )
}

export function watch(state: WriterState): void {
  const { options, wal, pending, catalog } = state
  const { memory } = options
  setFigure(memory, 'walBytes', wal.bytes)
  setFigure(memory, 'walSegments', wal.segments)
  setFigure(memory, 'walWaitingBytes', wal.waitingBytes)
  setFigure(memory, 'oldestCommitMs', pending.find(({ taken }) => taken !== undefined)?.taken?.ms ?? 0)
  let written = 0
  for (const { generations } of catalog.byId.values()) if (generations.length > 0) written++
  setFigure(memory, 'tablesWritten', written)
  const free = freeBytes(state)
  setFigure(memory, 'freeBytes', free)
  refuse(state, refusalNow(state, free))
}

/** Lost pieces of the log, until somebody takes away what tells of them (wal/side-files.ts). None comes while this runs. */
export function watchLosses({ options: { files, directory, memory }, unnotedLosses }: WriterState): void {
  if (figureOf(memory, 'logLosses') > 0) setFigure(memory, 'logLosses', countLosses(files, directory) + unnotedLosses)
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
  const refused = figureOf(memory, 'refusal') === writeRefusals.diskLow
  const least = figureOf(memory, 'freeBytesMin') * (refused ? freeAgainFactor : 1)
  if (free < least) return writeRefusals.diskLow
  const failing = clock.monotonicMs() < state.retryAtMs
  const full = allocator.used(budgets.memtables) > memoryFull * allocator.limit(budgets.memtables)
  return failing && full ? writeRefusals.memoryFull : writeRefusals.none
}

const words: Record<number, string> = {
  [writeRefusals.diskLow]: 'the disk is nearly full',
  [writeRefusals.diskFull]: 'the disk is full',
  [writeRefusals.logFailed]: 'the log cannot be written',
  [writeRefusals.memoryFull]: 'the memory is full and the disk takes nothing',
}

function refuse({ options: { memory, log, post }, wal }: WriterState, reason: number): void {
  const before = figureOf(memory, 'refusal')
  if (before === reason) return
  setFigure(memory, 'refusal', reason)
  if (wal.state === 'poisoned' && wal.failure !== null) post({ kind: 'logFailed', error: wal.failure })
  if (reason === writeRefusals.none) log('W', 'writer', 'writes are taken again')
  else log('E', 'writer', `writes are refused: ${words[reason]} [freeBytes=${figureOf(memory, 'freeBytes')}]`)
}
