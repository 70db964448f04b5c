// Reads the log at the start: passes every frame (log record) to recovery, once and in order, and decides whether a bad
// frame is a torn tail or damage.
//
// For that decision, D is the highest durable position that the high-water marks or any valid frame of the log contain,
// or else the start of the log.
//
//   bad frame at or after D   The log ends there. Neither this frame nor anything after it was ever acknowledged. Pages
//                             that were not synced reach the disk in any order, so a valid frame after a bad one must
//                             not be replayed: rows in between would be skipped.
//   bad frame before D        Damage, since the bytes were durable once. They are copied to a side file and reported,
//                             and the replay continues after them.
//   the log ends before D     Its end was lost: the file was truncated, emptied or removed. That is reported.
//
// The header of a segment counts, not its file name: files with exchanged names are read in the order of their headers.
// A segment of another log, or a copy of an existing one, is set aside.
//
// A log without bad frames is read in one pass. At the first bad frame the rest is scanned ahead once to determine D.
//
// Invariants:
//   1. `onFrame` gets the frames in the order of their positions, each at most once.
//   2. Replay modifies no segment, and the names of side files depend only on the position, so a crash during replay is
//      harmless.

import { assert } from '../base/assert.js'
import { CorruptionError } from '../base/errors.js'
import type { Files } from '../base/files.js'
import { durableLsnOf, frameAlignment, frameHeaderBytes, isControlKind, saltOf } from './frame.js'
import { describePayload } from './frame-rows.js'
import { markOfLog } from './high-water.js'
import { lastUsedByte, type SegmentExtent, SegmentReader } from './reader.js'
import {
  foreignVersion,
  offsetOf,
  parseSegmentHeader,
  type SegmentHeader,
  segmentHeaderBytes,
  segmentNumber,
  segmentPath,
  segmentVersion,
} from './segment.js'
import { quarantine, recordMissing } from './side-files.js'
import { frameKinds, type Lsn, type Marks, type QuarantinedRange, type ReplayReport, type WalFrame } from './types.js'

/** The segment files in the directory. */
export interface SegmentInventory {
  /** Undefined if no segment has a readable header. */
  readonly logId: Uint8Array | undefined
  /** In the order of their numbers, which is that of their positions. */
  readonly extents: readonly SegmentExtent[]
  /** Segments that are entirely superseded, because a later one begins before them. */
  readonly replaced: readonly SegmentExtent[]
  /** Files without a readable header and without contents: created, but never used. */
  readonly unused: readonly string[]
  /** Files with an incomplete header and no frames. */
  readonly torn: readonly string[]
  /** Files with contents that are not segments of this log. */
  readonly unreadable: readonly UnreadableSegment[]
  /** Segments whose file name has the number of another segment. */
  readonly misnamed: readonly string[]
  /** The highest segment number; 0 without segments. */
  readonly lastNumber: number
}

interface UnreadableSegment {
  readonly path: string
  readonly content: string
}

export interface ReplayResult extends ReplayReport {
  readonly inventory: SegmentInventory
}

/** What other files record about the log. */
export interface KnownOfLog {
  readonly marks?: Marks | undefined
  /** Start of the log. */
  readonly trimmedLsn?: Lsn | undefined
}

/** Replays the log of a directory. Writes nothing but side files. */
export function replayWal(
  files: Files,
  directory: string,
  onFrame: (frame: WalFrame) => void,
  { marks, trimmedLsn }: KnownOfLog = {},
): ReplayResult {
  const inventory = listSegments(files, directory, marks?.log.id)
  const markedLsn = markOfLog(marks, inventory.logId)
  return new Replay({ files, directory, inventory, onFrame, markedLsn, trimmedLsn }).run()
}

/** Lists the segments and the part of each that belongs to the log. `knownId`: id of the log, if it is recorded. */
export function listSegments(files: Files, directory: string, knownId?: Uint8Array): SegmentInventory {
  const unused: string[] = []
  const torn: string[] = []
  const unreadable: UnreadableSegment[] = []
  const found: FoundSegment[] = []
  let lastNumber = 0
  for (const name of files.list(directory)) {
    const number = segmentNumber(name)
    if (number === undefined) continue
    const path = segmentPath(directory, number)
    const { header, holds } = readHeader(files, path)
    lastNumber = Math.max(lastNumber, number, header?.number ?? 0)
    if (header !== undefined) found.push({ path, named: number, ...header })
    else if (holds === 'frames') unreadable.push({ path, content: 'a whole segment' })
    else (holds === 'header' ? torn : unused).push(path)
  }
  const logId = idOf(found, knownId)
  const own = new Map<number, FoundSegment>()
  for (const segment of found) {
    const { path, number } = segment
    const other = own.get(number)
    if (!sameId(segment, logId)) unreadable.push({ path, content: 'a segment of another log' })
    else if (other === undefined) own.set(number, segment)
    else {
      const [retained, spare] = segment.named === number ? [segment, other] : [other, segment]
      own.set(number, retained)
      unreadable.push({ path: spare.path, content: `a copy of segment ${number}` })
    }
  }
  const segments = [...own.values()].sort((x, y) => x.number - y.number)
  const misnamed = segments.filter(({ named, number }) => named !== number).map(({ path }) => path)
  return { logId, ...limitExtents(segments), unused, torn, unreadable, misnamed, lastNumber }
}

interface FoundSegment extends SegmentHeader {
  readonly path: string
  /** The number in the file name. */
  readonly named: number
}

/** The recorded id if a segment has it, else the id of most segments. */
function idOf(found: readonly FoundSegment[], knownId: Uint8Array | undefined): Uint8Array | undefined {
  if (knownId !== undefined && found.some((segment) => sameId(segment, knownId))) return knownId
  let best: { readonly id: Uint8Array; readonly count: number } | undefined
  for (const { logId: id } of found) {
    const count = found.filter((segment) => sameId(segment, id)).length
    if (count > (best?.count ?? 0)) best = { id, count }
  }
  return best?.id
}

function sameId({ logId }: FoundSegment, id: Uint8Array | undefined): boolean {
  return id !== undefined && Buffer.compare(logId, id) === 0
}

function readHeader(files: Files, path: string) {
  const file = files.open(path, 'read')
  try {
    const bytes = new Uint8Array(segmentHeaderBytes)
    const read = bytes.subarray(0, file.read(bytes, 0))
    const header = parseSegmentHeader(read)
    const foreign = header === undefined ? foreignVersion(read) : undefined
    if (foreign !== undefined) throw CorruptionError.ofFormat(foreign, segmentVersion, path, 4)
    if (header !== undefined || holdsFrames(file, file.size())) return { header, holds: 'frames' } as const
    return { header, holds: lastUsedByte(read) >= 0 ? 'header' : 'nothing' } as const
  } finally {
    file.close()
  }
}

function holdsFrames(file: { read(target: Uint8Array, position: number): number }, size: number): boolean {
  const bytes = new Uint8Array(64 * 1024)
  for (let at = segmentHeaderBytes; at < size; at += bytes.length) {
    if (lastUsedByte(bytes.subarray(0, file.read(bytes, at))) >= 0) return true
  }
  return false
}

function limitExtents(found: readonly FoundSegment[]) {
  const extents: SegmentExtent[] = []
  const replaced: SegmentExtent[] = []
  let limitLsn = Number.POSITIVE_INFINITY
  for (const segment of found.toReversed()) {
    const counts = segment.startLsn < limitLsn
    const target = counts ? extents : replaced
    const { path, number, startLsn } = segment
    target.unshift({ path, number, startLsn, limitLsn })
    if (counts) limitLsn = startLsn
  }
  return { extents, replaced }
}

interface ReplayTask {
  readonly files: Files
  readonly directory: string
  readonly inventory: SegmentInventory
  readonly onFrame: (frame: WalFrame) => void
  readonly markedLsn: Lsn
  readonly trimmedLsn: Lsn | undefined
}

/** The state of one replay. */
class Replay {
  private readonly files: Files
  private readonly directory: string
  private readonly inventory: SegmentInventory
  private readonly onFrame: (frame: WalFrame) => void
  private readonly salt: number
  private readonly setAside: QuarantinedRange[] = []
  private durableLsn: Lsn
  private readonly markedLsn: Lsn
  private readAhead = false
  private position: Lsn
  /** End of the last valid frame. The log continues there, so that later replays do not meet the damage at its end. */
  private goodEnd: Lsn
  private frames = 0
  private bytes = 0
  private clean = false

  constructor(task: ReplayTask) {
    const { inventory, markedLsn, trimmedLsn } = task
    this.files = task.files
    this.directory = task.directory
    this.inventory = inventory
    this.onFrame = task.onFrame
    this.salt = inventory.logId === undefined ? 0 : saltOf(inventory.logId)
    const firstLsn = inventory.extents[0]?.startLsn ?? trimmedLsn ?? 0
    this.position = Math.min(firstLsn, trimmedLsn ?? firstLsn)
    this.goodEnd = firstLsn
    // Everything before the first segment was durable.
    this.durableLsn = Math.max(firstLsn, markedLsn)
    this.markedLsn = markedLsn
  }

  run(): ReplayResult {
    const { inventory } = this
    const startLsn = inventory.extents[0]?.startLsn ?? this.position
    this.reportUnreadable()
    for (const [index, extent] of inventory.extents.entries()) {
      this.reportGap(extent)
      if (this.readSegment(extent, index) === 'end') break
    }
    this.reportLostEnd()
    return {
      frames: this.frames,
      bytes: this.bytes,
      startLsn,
      endLsn: this.goodEnd,
      durableLsn: Math.min(this.durableLsn, this.goodEnd),
      clean: this.clean && this.setAside.length === 0,
      setAside: this.setAside,
      inventory,
    }
  }

  /** Sets aside segments with an unreadable header, since the positions of their frames are unknown. */
  private reportUnreadable(): void {
    for (const { path, content } of this.inventory.unreadable) {
      const bytes = this.files.size(path)
      const sideFile = quarantine(this.files, this.directory, path, 0, bytes, 'damage')
      this.setAside.push({ reason: 'damage', file: path, offset: 0, bytes, lsn: -1, sideFile, content })
    }
  }

  private reportLostEnd(): void {
    const bytes = this.markedLsn - this.position
    if (bytes <= 0) return
    const last = this.inventory.extents.at(-1)
    const file = last?.path ?? this.directory
    const offset = last === undefined ? 0 : offsetOf(last.startLsn, this.position)
    this.clean = false
    this.reportMissing({ file, offset, bytes, lsn: this.position, content: 'the end of the log is missing' })
  }

  private reportMissing(place: Omit<QuarantinedRange, 'reason' | 'sideFile'>): void {
    const missing = { reason: 'missing', ...place } as const
    this.setAside.push({ ...missing, sideFile: recordMissing(this.files, this.directory, missing) })
  }

  private reportGap(extent: SegmentExtent): void {
    const missing = extent.startLsn - this.position
    if (missing <= 0) return
    const content = 'the preceding segment is missing'
    this.reportMissing({ file: extent.path, offset: 0, bytes: missing, lsn: this.position, content })
    this.position = extent.startLsn
  }

  private readSegment(extent: SegmentExtent, index: number): 'on' | 'end' {
    const reader = new SegmentReader(this.files, extent, this.salt)
    try {
      while (this.position < extent.limitLsn) {
        if (this.readFrame(reader)) continue
        if (this.isPlainEnd(reader)) return 'end'
        if (!this.readAhead) this.lookAhead(index)
        if (this.position >= this.durableLsn) return this.endLog(reader, index)
        this.skipDamage(reader)
        if (extent.limitLsn === Number.POSITIVE_INFINITY && this.position >= wholeEnd(reader)) return 'end'
      }
      return 'on'
    } finally {
      reader.close()
    }
  }

  private readFrame(reader: SegmentReader): boolean {
    const at = reader.frameAt(this.position)
    if (at.kind !== 'frame') return false
    const { frame } = at
    assert(frame.endLsn > this.position, 'P1: every frame moves the replay forward')
    this.durableLsn = Math.max(this.durableLsn, durableLsnOf(frame.kind, frame.payload))
    this.clean = frame.kind === frameKinds.close
    this.position = frame.endLsn
    this.goodEnd = frame.endLsn
    if (isControlKind(frame.kind)) return true
    this.frames++
    this.bytes += frame.payload.length
    this.onFrame(frame)
    return true
  }

  /** Whether the last segment ends here, with the file or with zeros only. */
  private isPlainEnd(reader: SegmentReader): boolean {
    return reader.extent.limitLsn === Number.POSITIVE_INFINITY && reader.usedEnd(this.position) === this.position
  }

  /** Finds the highest durable position in valid frames after the current position. */
  private lookAhead(index: number): void {
    this.readAhead = true
    for (const extent of this.inventory.extents.slice(index)) {
      const reader = new SegmentReader(this.files, extent, this.salt)
      try {
        eachGoodFrame(reader, Math.max(this.position, extent.startLsn), (frame) => {
          this.durableLsn = Math.max(this.durableLsn, durableLsnOf(frame.kind, frame.payload))
        })
      } finally {
        reader.close()
      }
    }
  }

  private skipDamage(reader: SegmentReader): void {
    const from = this.position
    const at = reader.frameAt(from)
    const content = at.kind === 'badPayload' ? describePayload(at.header.kind, at.payload) : 'unreadable frame'
    const next = at.kind === 'badPayload' ? at.endLsn : reader.nextHeader(from)
    const { limitLsn } = reader.extent
    // Without another header, everything up to the durable position counts as damaged.
    const last = Math.min(this.durableLsn, wholeEnd(reader))
    const end = next ?? (limitLsn === Number.POSITIVE_INFINITY ? last : limitLsn)
    this.report('damage', reader, from, Math.min(end, reader.endLsn), content)
    const missingFrom = Math.max(from, reader.endLsn)
    if (end > missingFrom) {
      const { path, startLsn } = reader.extent
      const place = { file: path, offset: offsetOf(startLsn, missingFrom), bytes: end - missingFrom, lsn: missingFrom }
      this.reportMissing({ ...place, content: 'the segment is cut off' })
    }
    this.position = end
  }

  /** Ends the log here: nothing from this position on was acknowledged. */
  private endLog(reader: SegmentReader, index: number): 'end' {
    this.clean = false
    this.report('tail', reader, this.position, reader.usedEnd(this.position), describeTail(reader, this.position))
    for (const extent of this.inventory.extents.slice(index + 1)) {
      const later = new SegmentReader(this.files, extent, this.salt)
      try {
        const content = describeTail(later, extent.startLsn)
        this.report('tail', later, extent.startLsn, later.usedEnd(extent.startLsn), content)
      } finally {
        later.close()
      }
    }
    return 'end'
  }

  private report(reason: 'damage' | 'tail', reader: SegmentReader, from: Lsn, to: Lsn, content: string): void {
    const { path, startLsn } = reader.extent
    const offset = offsetOf(startLsn, from)
    const bytes = Math.max(0, to - from)
    if (bytes === 0) return
    const sideFile = quarantine(this.files, this.directory, path, offset, bytes, reason)
    this.setAside.push({ reason, file: path, offset, bytes, lsn: from, sideFile, content })
  }
}

/** End of the file, rounded down to the alignment of frames. */
function wholeEnd({ endLsn }: SegmentReader): Lsn {
  return endLsn - (endLsn % frameAlignment)
}

/** Visits every valid frame from the position on, skipping everything else. */
function eachGoodFrame(reader: SegmentReader, from: Lsn, visit: (frame: WalFrame) => void): void {
  for (let lsn: Lsn | undefined = from; lsn !== undefined && lsn + frameHeaderBytes <= reader.endLsn; ) {
    const at = reader.frameAt(lsn)
    if (at.kind === 'frame') visit(at.frame)
    lsn = at.kind === 'bad' ? reader.nextHeader(lsn) : at.kind === 'frame' ? at.frame.endLsn : at.endLsn
  }
}

const describedMax = 16

function describeTail(reader: SegmentReader, from: Lsn): string {
  const lines: string[] = []
  eachGoodFrame(reader, from, (frame) => {
    if (!isControlKind(frame.kind) && lines.length < describedMax)
      lines.push(describePayload(frame.kind, frame.payload))
  })
  return lines.length === 0 ? 'unreadable frame' : lines.join('; ')
}
