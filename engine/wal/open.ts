// Opens the log: replays what is there, then starts a new segment behind it. The door of engine/wal/.
//
// Frames at or after D (see replay.ts) were replayed from what the kernel shows, which need not be on the disk: a sync of
// theirs may have failed before the process ended. So they are copied to the new segment, which begins at D, and that
// one is synced: after the open everything that was replayed is durable. The new segment is built under another name
// and renamed, because until it is whole the old files are the only place of these frames.
//
// Invariants:
//   1. No existing segment is changed. A crash at any point leaves either the old log or the new one.
//   2. Leftovers (unfinished segments, segments that were never used) are gone before the new segment exists.

import { randomBytes } from 'node:crypto'
import type { File, Files } from '../base/files.js'
import { padBytes, saltOf, sealPadFrame } from './frame.js'
import { unfinishedSuffix } from './log-role.js'
import { SegmentReader } from './reader.js'
import { type ReplayResult, replayWal } from './replay.js'
import { encodeSegmentHeader, logIdBytes, offsetOf, segmentPath } from './segment.js'
import { saveAside } from './side-files.js'
import type { Lsn, ReplayReport, Wal, WalOptions } from './types.js'
import { type OldSegment, SharedLog } from './wal.js'

export interface OpenedWal {
  readonly wal: Wal
  readonly replay: ReplayReport
}

/** Replays every frame into `options.onFrame`, then returns a log that takes new ones. */
export function openWal(options: WalOptions): OpenedWal {
  const { files, directory } = options
  files.makeDirectory(directory)
  files.syncDirectory(parentOf(directory))
  removeUnfinished(files, directory)
  if (options.expected === true && !files.list(directory).some((name) => name.endsWith('.wal'))) {
    options.log('W', 'wal', `there is no log, as in a copy: rows that were in no part are not here [path=${directory}]`)
  }
  const replay = replayWal(files, directory, options.onFrame, {
    marks: options.highWater?.marks,
    trimmedLsn: options.trimmedLsn,
  })
  reportSetAside(options, replay)
  removeUnusable(files, directory, replay)
  const startLsn = replay.durableLsn
  const number = replay.inventory.lastNumber + 1
  const logId = replay.inventory.logId ?? options.logId ?? randomBytes(logIdBytes)
  const file = continueIn(files, directory, replay, { number, logId, startLsn })
  const current = { file, number, startLsn }
  const headLsn = replay.endLsn + padBytes(replay.endLsn - startLsn)
  const wal = new SharedLog(options, { logId, old: oldSegments(replay, startLsn), current, headLsn })
  return { wal, replay }
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
  missing: 'a piece of the log is missing: rows that were acknowledged are lost',
  tail: 'unfinished end of the log was set aside',
} as const

function reportSetAside({ log }: WalOptions, { setAside, inventory }: ReplayResult): void {
  for (const path of inventory.misnamed) log('W', 'wal', `a segment has the name of another one [file=${path}]`)
  for (const { reason, file, offset, bytes, lsn, sideFile, content } of setAside) {
    const where = `file=${file}, offset=${offset}, bytes=${bytes}, lsn=${lsn}, copy=${sideFile ?? 'none'}`
    log(reason === 'tail' ? 'W' : 'C', 'wal', `${setAsideWords[reason]} [${where}, content=${content}]`)
  }
}

/** Segments without a readable header: the empty ones, and those of which a copy exists now. */
function removeUnusable(files: Files, directory: string, { inventory, setAside }: ReplayResult): void {
  const saved = inventory.unreadable.filter(({ path }) =>
    setAside.some(({ file, sideFile }) => file === path && sideFile !== undefined),
  )
  for (const path of inventory.torn) saveAside(files, directory, path, 0, files.size(path), 'tail')
  const gone = [...inventory.unused, ...inventory.torn, ...saved.map(({ path }) => path)]
  for (const path of gone) files.remove(path)
  if (gone.length > 0) files.syncDirectory(directory)
}

interface NewSegment {
  readonly number: number
  readonly logId: Uint8Array
  readonly startLsn: Lsn
}

/** The new segment, with a copy of what was replayed and not yet known to be durable. */
function continueIn(files: Files, directory: string, replay: ReplayResult, header: NewSegment): File {
  const path = segmentPath(directory, header.number)
  const unfinished = files.open(path + unfinishedSuffix, 'create')
  try {
    unfinished.write([encodeSegmentHeader(header)], 0)
    copyFrames(files, replay, header, unfinished)
    padFrames(unfinished, replay.endLsn, header)
    unfinished.sync()
  } finally {
    unfinished.close()
  }
  files.rename(path + unfinishedSuffix, path)
  files.syncDirectory(directory)
  return files.open(path, 'write')
}

function copyFrames(files: Files, replay: ReplayResult, header: NewSegment, target: File): void {
  for (const extent of replay.inventory.extents) {
    const from = Math.max(header.startLsn, extent.startLsn)
    const to = Math.min(replay.endLsn, extent.limitLsn)
    if (from >= to) continue
    const reader = new SegmentReader(files, extent, saltOf(header.logId))
    try {
      reader.copy(from, to, (bytes, lsn) => target.write([bytes], offsetOf(header.startLsn, lsn)))
    } finally {
      reader.close()
    }
  }
}

/** The log may have ended within a group: what follows begins in a block of its own. */
function padFrames(target: File, lsn: Lsn, { logId, startLsn }: NewSegment): void {
  const pad = new Uint8Array(padBytes(lsn - startLsn))
  if (pad.length === 0) return
  sealPadFrame(pad, lsn, saltOf(logId))
  target.write([pad], offsetOf(startLsn, lsn))
}

/** In the order of their numbers, which is the order in which they may be removed. */
function oldSegments({ inventory }: ReplayResult, startLsn: Lsn): OldSegment[] {
  return [...inventory.extents, ...inventory.replaced]
    .sort((a, b) => a.number - b.number)
    .map(({ path, startLsn: begin, limitLsn }) => {
      const endLsn = Math.min(limitLsn, startLsn)
      return { path, startLsn: Math.min(begin, endLsn), endLsn }
    })
}
