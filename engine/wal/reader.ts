// Reads the frames (log records) of one segment through a sliding window, so that memory is bounded whatever the size
// of the segment.
//
// Deliberately not here: the interpretation of a bad frame, which depends on the whole log: replay.ts.

import { assert } from '../base/assert.js'
import { crc32 } from '../base/checksum.js'
import type { File, Files } from '../base/files.js'
import {
  alignUp,
  type FrameHeader,
  frameAlignment,
  frameBytes,
  frameHeaderBytes,
  frameMagic,
  parseFrameHeader,
  viewOf,
} from './frame.js'
import { segmentHeaderBytes } from './segment.js'
import type { Lsn, WalFrame } from './types.js'

const windowBytes = 1024 * 1024

/** The part of a segment that belongs to the log: from startLsn to the smallest start of a later segment. */
export interface SegmentExtent {
  readonly path: string
  readonly number: number
  readonly startLsn: Lsn
  /** Infinity for the last segment. */
  readonly limitLsn: Lsn
}

export type FrameAt =
  | { readonly kind: 'frame'; readonly frame: WalFrame }
  /** The header is valid and the payload is not, so the position of the next frame is known. */
  | { readonly kind: 'badPayload'; readonly header: FrameHeader; readonly payload: Uint8Array; readonly endLsn: Lsn }
  | { readonly kind: 'bad' }

export class SegmentReader {
  readonly extent: SegmentExtent
  /** End of the file, or of the part that belongs to the log. */
  readonly endLsn: Lsn
  private readonly file: File
  private readonly salt: number
  private window: Uint8Array
  private windowStart = 0
  private windowLength = 0

  constructor(files: Files, extent: SegmentExtent, salt: number) {
    assert(extent.startLsn < extent.limitLsn, 'L2: a segment does not end before its start')
    this.extent = extent
    this.salt = salt
    this.file = files.open(extent.path, 'read')
    const frames = Math.max(0, this.file.size() - segmentHeaderBytes)
    this.endLsn = Math.min(extent.limitLsn, extent.startLsn + frames)
    this.window = new Uint8Array(Math.min(windowBytes, alignUp(this.endLsn - extent.startLsn)))
  }

  close(): void {
    this.file.close()
  }

  /** The frame at the position, as a view of the window: valid until the next call. */
  frameAt(lsn: Lsn): FrameAt {
    assert(lsn >= this.extent.startLsn, 'L2: a frame is read from the segment that holds its position')
    const header = parseFrameHeader(this.bytesAt(lsn, frameHeaderBytes), lsn, this.salt)
    if (header === undefined) return { kind: 'bad' }
    const endLsn = lsn + frameBytes(header.length)
    const payload = this.bytesAt(lsn, frameHeaderBytes + header.length).subarray(frameHeaderBytes)
    if (payload.length < header.length || endLsn > alignUp(this.endLsn)) return { kind: 'bad' }
    if (crc32(payload) !== header.payloadCrc) return { kind: 'badPayload', header, payload, endLsn }
    return { kind: 'frame', frame: { lsn, endLsn, kind: header.kind, payload } }
  }

  /** The first position after this one with a valid frame header; undefined if there is none. */
  nextHeader(after: Lsn): Lsn | undefined {
    for (let lsn = after + frameAlignment; lsn + frameHeaderBytes <= this.endLsn; ) {
      const bytes = this.bytesAt(lsn, windowBytes)
      const found = this.headerWithin(bytes, lsn)
      if (found !== undefined) return found
      // Windows overlap, because a header may cross their boundary.
      lsn += Math.max(frameAlignment, alignUp(bytes.length - frameHeaderBytes + 1))
    }
    return undefined
  }

  /** End of the last non-zero byte from the position on; the position itself if all bytes are zero. */
  usedEnd(from: Lsn): Lsn {
    let end = from
    for (let lsn = from; lsn < this.endLsn; lsn += windowBytes) {
      const bytes = this.bytesAt(lsn, windowBytes)
      const last = lastUsedByte(bytes)
      if (last >= 0) end = lsn + last + 1
    }
    return end
  }

  /** Passes the bytes between two positions to `take`, in parts that are valid during the call. */
  copy(from: Lsn, to: Lsn, take: (bytes: Uint8Array, lsn: Lsn) => void): void {
    assert(from <= to, 'L2: a range of the log does not end before its start')
    for (let lsn = from; lsn < to; ) {
      const bytes = this.bytesAt(lsn, Math.min(windowBytes, to - lsn))
      if (bytes.length === 0) return
      take(bytes, lsn)
      lsn += bytes.length
    }
  }

  private headerWithin(bytes: Uint8Array, lsn: Lsn): Lsn | undefined {
    const view = viewOf(bytes)
    for (let at = 0; at + frameHeaderBytes <= bytes.length; at += frameAlignment) {
      if (view.getUint32(at, true) !== frameMagic) continue
      if (parseFrameHeader(bytes.subarray(at), lsn + at, this.salt) !== undefined) return lsn + at
    }
    return undefined
  }

  /** `count` bytes from the position on, or fewer at the end. */
  private bytesAt(lsn: Lsn, count: number): Uint8Array {
    const wanted = Math.max(0, Math.min(count, this.endLsn - lsn))
    const held = this.windowStart + this.windowLength
    if (lsn < this.windowStart || lsn + wanted > held) this.fill(lsn, wanted)
    const at = lsn - this.windowStart
    return this.window.subarray(at, Math.min(at + wanted, this.windowLength))
  }

  private fill(lsn: Lsn, wanted: number): void {
    if (wanted > this.window.length) this.window = new Uint8Array(alignUp(wanted))
    const room = Math.min(this.window.length, Math.max(wanted, windowBytes), Math.max(0, this.endLsn - lsn))
    this.windowStart = lsn
    this.windowLength = this.file.read(this.window.subarray(0, room), segmentHeaderBytes + lsn - this.extent.startLsn)
  }
}

const zeros = new Uint8Array(windowBytes)

/**
 * Index of the last non-zero byte; -1 if there is none. Compares with a block of zeros first, because most blocks are
 * zero.
 */
export function lastUsedByte(bytes: Uint8Array): number {
  if (bytes.length <= zeros.length && Buffer.compare(bytes, zeros.subarray(0, bytes.length)) === 0) return -1
  return bytes.findLastIndex((byte) => byte !== 0)
}
