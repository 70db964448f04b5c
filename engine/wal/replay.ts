// Reads the log at open: hands every frame on, once and in order, and decides what a bad frame means.
//
// The rule of the torn tail. D is the highest durable position that the high-water marks or any good frame of the log
// name, or where the log begins.
//
//   bad frame at or after D   the log ends there. It and all behind it, good or not, was never acknowledged: pages that
//                             no sync covered reach the disk in any order, and a good frame behind a bad one must not
//                             be replayed, it would skip rows.
//   bad frame before D        damage: its bytes were durable once. It is put into a side file and reported, and the
//                             replay goes on behind it. Nobody has to resume anything.
//   the log ends before D     its end is missing: it was cut, emptied or removed. That is reported.
//
// A segment is what its header says: files whose names were exchanged are read in the order of their headers, one of
// another log, or the copy of one that is there, is set aside.
//
// One pass in the good case. At the first bad frame the rest of the log is read ahead once, to know D.
//
// Invariants:
//   1. Frames reach `onFrame` in the order of their positions, each at most once.
//   2. Replaying changes no segment; side files have names that depend on the place only. A crash within it is harmless.

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
import { noteMissing, saveAside } from './side-files.js'
import { frameKinds, type Lsn, type Marks, type ReplayReport, type SetAside, type WalFrame } from './types.js'

/** What the directory holds. */
export interface SegmentInventory {
  /** Undefined when there is no segment with a readable header. */
  readonly logId: Uint8Array | undefined
  /** In the order of their numbers, and so of their positions. */
  readonly extents: readonly SegmentExtent[]
  /** Those of which nothing counts: a later one begins before them. */
  readonly replaced: readonly SegmentExtent[]
  /** Files without a readable header that hold nothing: created, never used. */
  readonly unused: readonly string[]
  /** Those whose header was being written. What else is so short is nobody's. */
  readonly torn: readonly string[]
  /** Files that hold something and are no segments of this log. */
  readonly unreadable: readonly UnreadableSegment[]
  /** Segments under the names of others. */
  readonly misnamed: readonly string[]
  /** The highest number of any segment file; 0 without one. */
  readonly lastNumber: number
}

interface UnreadableSegment {
  readonly path: string
  readonly content: string
}

export interface ReplayResult extends ReplayReport {
  readonly inventory: SegmentInventory
}

/** What others know of the log. */
export interface KnownOfLog {
  readonly marks?: Marks | undefined
  /** Where it begins. */
  readonly trimmedLsn?: Lsn | undefined
}

/** Replays the log of a directory. Reads only, but for side files. */
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

/** Finds the segments and what counts of each. `knownId`: of the log, when something tells it. */
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
      const [kept, spare] = segment.named === number ? [segment, other] : [other, segment]
      own.set(number, kept)
      unreadable.push({ path: spare.path, content: `a copy of segment ${number}` })
    }
  }
  const segments = [...own.values()].sort((x, y) => x.number - y.number)
  const misnamed = segments.filter(({ named, number }) => named !== number).map(({ path }) => path)
  return { logId, ...limitExtents(segments), unused, torn, unreadable, misnamed, lastNumber }
}

interface FoundSegment extends SegmentHeader {
  readonly path: string
  /** The number in the name of the file. */
  readonly named: number
}

/** Of the log that is known, else of most of the segments. */
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
  private readonly setAside: SetAside[] = []
  private durableLsn: Lsn
  private readonly markedLsn: Lsn
  private readAhead = false
  private position: Lsn
  /** Behind the last good frame: the log goes on there, so that damage at its end is in no later replay's way. */
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
    // What came before the first segment was durable.
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

  /** A segment whose header is lost holds frames whose positions nobody knows any more. */
  private reportUnreadable(): void {
    for (const { path, content } of this.inventory.unreadable) {
      const bytes = this.files.size(path)
      const sideFile = saveAside(this.files, this.directory, path, 0, bytes, 'damage')
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

  private reportMissing(place: Omit<SetAside, 'reason' | 'sideFile'>): void {
    const missing = { reason: 'missing', ...place } as const
    this.setAside.push({ ...missing, sideFile: noteMissing(this.files, this.directory, missing) })
  }

  private reportGap(extent: SegmentExtent): void {
    const missing = extent.startLsn - this.position
    if (missing <= 0) return
    const content = 'the segment before is missing'
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

  /** The last segment may end in zeros or with the file; nothing is behind it. */
  private isPlainEnd(reader: SegmentReader): boolean {
    return reader.extent.limitLsn === Number.POSITIVE_INFINITY && reader.usedEnd(this.position) === this.position
  }

  /** Finds the highest durable position that any good frame behind the current position names. */
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
    // Without another header nothing is known of what follows, but that it ends the log where it was not durable.
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

  /** Nothing from here on was acknowledged. */
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
    const sideFile = saveAside(this.files, this.directory, path, offset, bytes, reason)
    this.setAside.push({ reason, file: path, offset, bytes, lsn: from, sideFile, content })
  }
}

/** Where the last whole unit of the file ends. */
function wholeEnd({ endLsn }: SegmentReader): Lsn {
  return endLsn - (endLsn % frameAlignment)
}

/** Calls back for every good frame from the position on, whatever lies between them. */
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
