// Reads the log at open: hands every frame on, once and in order, and decides what a bad frame means.
//
// The rule of the torn tail. D is the highest durable position that any good frame of the log names,
// or where the log begins.
//
//   bad frame at or after D   the log ends there. It and all behind it, good or not, was never acknowledged: pages that
//                             no sync covered reach the disk in any order, and a good frame behind a bad one must not
//                             be replayed, it would skip rows.
//   bad frame before D        damage: its bytes were durable once. It is put into a side file and reported, and the
//                             replay goes on behind it. Nobody has to resume anything.
//
// One pass in the good case. At the first bad frame the rest of the log is read ahead once, to know D.
//
// Invariants:
//   1. Frames reach `onFrame` in the order of their positions, each at most once.
//   2. Replaying changes no segment; side files have names that depend on the place only. A crash within it is harmless.

import { CorruptionError } from '../base/errors.js'
import type { Files } from '../base/files.js'
import { durableLsnOf, frameHeaderBytes, isControlKind, saltOf } from './frame.js'
import { describePayload } from './frame-rows.js'
import { lastUsedByte, type SegmentExtent, SegmentReader } from './reader.js'
import {
  foreignVersion,
  offsetOf,
  parseSegmentHeader,
  segmentHeaderBytes,
  segmentNumber,
  segmentPath,
  segmentVersion,
} from './segment.js'
import { saveAside } from './side-files.js'
import { frameKinds, type Lsn, type ReplayReport, type SetAside, type WalFrame } from './types.js'

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
  /** Files without a readable header that hold something. */
  readonly unreadable: readonly { readonly path: string; readonly number: number }[]
  /** The highest number of any segment file; 0 without one. */
  readonly lastNumber: number
}

export interface ReplayResult extends ReplayReport {
  readonly inventory: SegmentInventory
}

/** Replays the log of a directory. Reads only, but for side files. */
export function replayWal(files: Files, directory: string, onFrame: (frame: WalFrame) => void): ReplayResult {
  const inventory = listSegments(files, directory)
  return new Replay(files, directory, inventory, onFrame).run()
}

/** Finds the segments and what counts of each. */
export function listSegments(files: Files, directory: string): SegmentInventory {
  const unused: string[] = []
  const unreadable: { path: string; number: number }[] = []
  const found: { path: string; number: number; startLsn: Lsn }[] = []
  let logId: Uint8Array | undefined
  let lastNumber = 0
  for (const name of files.list(directory)) {
    const number = segmentNumber(name)
    if (number === undefined) continue
    lastNumber = Math.max(lastNumber, number)
    const path = segmentPath(directory, number)
    const { header, used } = readHeader(files, path)
    if (header !== undefined && header.number === number) {
      logId = header.logId
      found.push({ path, number, startLsn: header.startLsn })
    } else if (used) unreadable.push({ path, number })
    else unused.push(path)
  }
  return { logId, ...limitExtents(found), unused, unreadable, lastNumber }
}

function readHeader(files: Files, path: string) {
  const file = files.open(path, 'read')
  try {
    const bytes = new Uint8Array(segmentHeaderBytes)
    const read = bytes.subarray(0, file.read(bytes, 0))
    const header = parseSegmentHeader(read)
    const foreign = header === undefined ? foreignVersion(read) : undefined
    if (foreign !== undefined) throw CorruptionError.ofFormat(foreign, segmentVersion, path, 4)
    return { header, used: header === undefined && holdsFrames(file, file.size()) }
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

function limitExtents(found: readonly { path: string; number: number; startLsn: Lsn }[]) {
  const extents: SegmentExtent[] = []
  const replaced: SegmentExtent[] = []
  let limitLsn = Number.POSITIVE_INFINITY
  for (const segment of found.toReversed()) {
    const counts = segment.startLsn < limitLsn
    const target = counts ? extents : replaced
    target.unshift({ ...segment, limitLsn })
    if (counts) limitLsn = segment.startLsn
  }
  return { extents, replaced }
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
  private readAhead = false
  private position: Lsn
  private frames = 0
  private bytes = 0
  private clean = false

  constructor(files: Files, directory: string, inventory: SegmentInventory, onFrame: (frame: WalFrame) => void) {
    this.files = files
    this.directory = directory
    this.inventory = inventory
    this.onFrame = onFrame
    this.salt = inventory.logId === undefined ? 0 : saltOf(inventory.logId)
    this.position = inventory.extents[0]?.startLsn ?? 0
    // What came before the first segment was trimmed, and so was durable.
    this.durableLsn = this.position
  }

  run(): ReplayResult {
    const { inventory } = this
    const startLsn = this.position
    this.reportUnreadable()
    for (const [index, extent] of inventory.extents.entries()) {
      this.reportGap(extent)
      if (this.readSegment(extent, index) === 'end') break
    }
    return {
      frames: this.frames,
      bytes: this.bytes,
      startLsn,
      endLsn: this.position,
      durableLsn: Math.min(this.durableLsn, this.position),
      clean: this.clean && this.setAside.length === 0,
      setAside: this.setAside,
      inventory,
    }
  }

  /** A segment whose header is lost holds frames whose positions nobody knows any more. */
  private reportUnreadable(): void {
    for (const { path } of this.inventory.unreadable) {
      const bytes = this.files.size(path)
      const sideFile = saveAside(this.files, this.directory, path, 0, bytes, 'damage')
      this.setAside.push({
        reason: 'damage',
        file: path,
        offset: 0,
        bytes,
        lsn: -1,
        sideFile,
        content: 'a whole segment',
      })
    }
  }

  private reportGap(extent: SegmentExtent): void {
    const missing = extent.startLsn - this.position
    if (missing <= 0) return
    const place = { file: extent.path, offset: 0, bytes: missing, lsn: this.position }
    this.setAside.push({ reason: 'damage', ...place, sideFile: undefined, content: 'the segment before is missing' })
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
        if (extent.limitLsn === Number.POSITIVE_INFINITY && this.position >= reader.endLsn) return 'end'
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
    this.durableLsn = Math.max(this.durableLsn, durableLsnOf(frame.kind, frame.payload))
    this.clean = frame.kind === frameKinds.close
    this.position = frame.endLsn
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
    const end = next ?? (limitLsn === Number.POSITIVE_INFINITY ? reader.endLsn : limitLsn)
    this.report('damage', reader, from, Math.min(end, reader.endLsn), content)
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
    if (bytes === 0 && reason === 'tail') return
    const sideFile = saveAside(this.files, this.directory, path, offset, bytes, reason)
    this.setAside.push({ reason, file: path, offset, bytes, lsn: from, sideFile, content })
  }
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
