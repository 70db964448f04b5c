// Opens the log: replays the existing segments and starts a new segment after them. The entry point of engine/wal/.
//
// Frames from the durable position D on (see replay.ts) were read through the page cache, and may not be on disk: their
// sync may have failed before the process ended. So they are copied to the new segment, which begins at D and is
// synced. After that, everything replayed is durable. The new segment is built under another name and then renamed,
// because until it is complete only the old files contain these frames (log records). On a full disk they are kept in
// memory instead, until a segment can be created.
//
// Invariants:
//   1. No existing segment is modified. A crash at any point leaves either the old log or the new one.
//   2. Leftovers (unfinished and unused segments) are removed before the new segment is created.

import { randomBytes } from 'node:crypto'
import { assert } from '../base/assert.js'
import { type ErrorRecord, errorRecord, FileError } from '../base/errors.js'
import type { File, Files } from '../base/files.js'
import { padBytes, saltOf, sealPadFrame } from './frame.js'
import { SegmentReader } from './reader.js'
import { type ReplayResult, replayWal } from './replay.js'
import { isFull } from './reserve.js'
import { encodeSegmentHeader, logIdBytes, offsetOf, removeQuietly, segmentPath, unfinishedSuffix } from './segment.js'
import type { OldSegment } from './segments.js'
import { quarantine } from './side-files.js'
import type { Lsn, ReplayReport, Wal, WalOptions } from './types.js'
import { WaitingFrames } from './waiting.js'
import { SharedLog } from './wal.js'

export interface OpenedWal {
  readonly wal: Wal
  readonly replay: ReplayReport
}

/** Passes every frame to `options.onFrame`, then returns a log that accepts new frames. */
export function openWal(options: WalOptions): OpenedWal {
  const { files, directory } = options
  files.makeDirectory(directory)
  files.syncDirectory(parentOf(directory))
  removeUnfinished(files, directory)
  if (options.expected === true && !files.list(directory).some((name) => name.endsWith('.wal'))) {
    options.log(
      'W',
      'wal',
      `there is no log, as in a backup: rows that were not yet in parts are missing [path=${directory}]`,
    )
  }
  const replay = replayWal(files, directory, options.onFrame, {
    marks: options.highWater?.marks,
    trimmedLsn: options.trimmedLsn,
  })
  reportSetAside(options, replay)
  removeUnusable(files, directory, replay)
  const startLsn = replay.durableLsn
  assert(startLsn <= replay.endLsn, 'L1: a log is durable no further than it reaches')
  const number = replay.inventory.lastNumber + 1
  const logId = replay.inventory.logId ?? options.logId ?? randomBytes(logIdBytes)
  const old = oldSegments(replay, startLsn)
  const begun = begin(options, replay, { number, logId, startLsn })
  if (!('failure' in begun)) {
    const waiting = new WaitingFrames(replay.endLsn + padBytes(replay.endLsn - startLsn))
    const start = { logId, old, current: { file: begun, startLsn }, number, waiting, failure: null }
    return { wal: new SharedLog(options, start), replay }
  }
  const waiting = framesAfter(files, replay, { number, logId, startLsn })
  const last = { number: number - 1, current: undefined, failure: begun.failure }
  return { wal: new SharedLog(options, { logId, old, waiting, ...last }), replay }
}

/** Creates the new segment. On a full disk that is postponed, so that clients can read, and drop data to free space. */
function begin({ files, directory, log }: WalOptions, replay: ReplayResult, header: NewSegment): File | PutOff {
  try {
    return continueIn(files, directory, replay, header)
  } catch (thrown) {
    if (!(thrown instanceof FileError && isFull(thrown))) throw thrown
    log('E', 'wal', `the disk is full: the log accepts no frames now [error=${thrown.message}]`)
    // The last segment is synced instead. That does not help if an earlier sync of it has failed.
    for (const { path } of replay.inventory.extents.slice(-1)) syncFile(files, path)
    return { failure: errorRecord(thrown) }
  }
}

interface PutOff {
  readonly failure: ErrorRecord
}

function syncFile(files: Files, path: string): void {
  const file = files.open(path, 'read')
  try {
    file.sync()
  } finally {
    file.close()
  }
}

/** The frames that were replayed and may not be durable, in the form in which continueIn() would write them. */
function framesAfter(files: Files, replay: ReplayResult, header: NewSegment): WaitingFrames {
  const waiting = new WaitingFrames(header.startLsn)
  const take = (bytes: Uint8Array): void => waiting.reserve(bytes.length).set(bytes)
  copyFrames(files, replay, header, take)
  const pad = padBytes(replay.endLsn - header.startLsn)
  if (pad > 0) sealPadFrame(waiting.reserve(pad), replay.endLsn, saltOf(header.logId))
  return waiting
}

function parentOf(directory: string): string {
  const slash = directory.lastIndexOf('/')
  if (slash < 0) return '.'
  return slash === 0 ? '/' : directory.slice(0, slash)
}

function removeUnfinished(files: Files, directory: string): void {
  for (const name of files.list(directory)) {
    if (name.endsWith(unfinishedSuffix)) files.remove(`${directory}/${name}`)
  }
}

const setAsideWords = {
  damage: 'damaged log frame was skipped',
  missing: 'a range of the log is missing: acknowledged rows are lost',
  tail: 'unfinished end of the log was set aside',
} as const

function reportSetAside({ log }: WalOptions, { setAside, inventory }: ReplayResult): void {
  for (const path of inventory.misnamed) log('W', 'wal', `a segment has the wrong name [file=${path}]`)
  for (const { reason, file, offset, bytes, lsn, sideFile, content } of setAside) {
    const where = `file=${file}, offset=${offset}, bytes=${bytes}, lsn=${lsn}, copy=${sideFile ?? 'none'}`
    log(reason === 'tail' ? 'W' : 'C', 'wal', `${setAsideWords[reason]} [${where}, content=${content}]`)
  }
}

/** Removes files without a readable header: empty ones, and those that were copied to a side file. */
function removeUnusable(files: Files, directory: string, { inventory, setAside }: ReplayResult): void {
  const saved = inventory.unreadable.filter(({ path }) =>
    setAside.some(({ file, sideFile }) => file === path && sideFile !== undefined),
  )
  for (const path of inventory.torn) quarantine(files, directory, path, 0, files.size(path), 'tail')
  const gone = [...inventory.unused, ...inventory.torn, ...saved.map(({ path }) => path)]
  for (const path of gone) files.remove(path)
  if (gone.length > 0) files.syncDirectory(directory)
}

interface NewSegment {
  readonly number: number
  readonly logId: Uint8Array
  readonly startLsn: Lsn
}

/** Creates the new segment with a copy of the replayed frames that may not be durable. */
function continueIn(files: Files, directory: string, replay: ReplayResult, header: NewSegment): File {
  const path = segmentPath(directory, header.number)
  const unfinished = files.open(path + unfinishedSuffix, 'create')
  let complete = false
  try {
    unfinished.write([encodeSegmentHeader(header)], 0)
    copyFrames(files, replay, header, (bytes, lsn) => unfinished.write([bytes], offsetOf(header.startLsn, lsn)))
    padFrames(unfinished, replay.endLsn, header)
    unfinished.sync()
    complete = true
  } finally {
    unfinished.close()
    if (!complete) removeQuietly(files, path + unfinishedSuffix)
  }
  files.rename(path + unfinishedSuffix, path)
  files.syncDirectory(directory)
  return files.open(path, 'write')
}

type TakeFrames = (bytes: Uint8Array, lsn: Lsn) => void

function copyFrames(files: Files, replay: ReplayResult, header: NewSegment, take: TakeFrames): void {
  for (const extent of replay.inventory.extents) {
    const from = Math.max(header.startLsn, extent.startLsn)
    const to = Math.min(replay.endLsn, extent.limitLsn)
    if (from >= to) continue
    const reader = new SegmentReader(files, extent, saltOf(header.logId))
    try {
      reader.copy(from, to, take)
    } finally {
      reader.close()
    }
  }
}

/** Pads the last group to a whole block, so that new frames begin in a block of their own. */
function padFrames(target: File, lsn: Lsn, { logId, startLsn }: NewSegment): void {
  const pad = new Uint8Array(padBytes(lsn - startLsn))
  if (pad.length === 0) return
  sealPadFrame(pad, lsn, saltOf(logId))
  target.write([pad], offsetOf(startLsn, lsn))
}

/** In the order of their numbers, in which they may be removed. */
function oldSegments({ inventory }: ReplayResult, startLsn: Lsn): OldSegment[] {
  return [...inventory.extents, ...inventory.replaced]
    .sort((a, b) => a.number - b.number)
    .map(({ path, startLsn: begin, limitLsn }) => {
      const endLsn = Math.min(limitLsn, startLsn)
      return { path, startLsn: Math.min(begin, endLsn), endLsn }
    })
}
