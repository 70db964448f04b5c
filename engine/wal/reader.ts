// Reads frames of one segment through a window, so that memory stays bounded however long the log is.
//
// Deliberately not here: what a bad frame means. That needs the whole log: replay.ts.

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

/** A segment as far as it counts: from startLsn to the smallest start of a later one. */
export interface SegmentExtent {
  readonly path: string
  readonly number: number
  readonly startLsn: Lsn
  /** Infinity for the last segment. */
  readonly limitLsn: Lsn
}

export type FrameAt =
  | { readonly kind: 'frame'; readonly frame: WalFrame }
  /** The header is good and the payload is not: the next frame's place is known. */
  | { readonly kind: 'badPayload'; readonly header: FrameHeader; readonly payload: Uint8Array; readonly endLsn: Lsn }
  | { readonly kind: 'bad' }

export class SegmentReader {
  readonly extent: SegmentExtent
  /** Where the bytes of the file end, or the part that counts. */
  readonly endLsn: Lsn
  private readonly file: File
  private readonly salt: number
  private window: Uint8Array
  private windowStart = 0
  private windowLength = 0

  constructor(files: Files, extent: SegmentExtent, salt: number) {
    assert(extent.startLsn < extent.limitLsn, 'L2: a segment ends behind its start')
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

  /** The frame at the position. A view of the window: valid until the next call. */
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

  /** The first position after this one where a frame header is good; undefined when there is none. */
  nextHeader(after: Lsn): Lsn | undefined {
    for (let lsn = after + frameAlignment; lsn + frameHeaderBytes <= this.endLsn; ) {
      const bytes = this.bytesAt(lsn, windowBytes)
      const found = this.headerWithin(bytes, lsn)
      if (found !== undefined) return found
      // The last bytes of this window are looked at again: a header may begin there.
      lsn += Math.max(frameAlignment, alignUp(bytes.length - frameHeaderBytes + 1))
    }
    return undefined
  }

  /** Where the last byte that is not zero ends, at or behind the position; the position itself when all are zero. */
  usedEnd(from: Lsn): Lsn {
    let end = from
    for (let lsn = from; lsn < this.endLsn; lsn += windowBytes) {
      const bytes = this.bytesAt(lsn, windowBytes)
      const last = lastUsedByte(bytes)
      if (last >= 0) end = lsn + last + 1
    }
    return end
  }

  /** Hands the bytes between two positions on, in pieces that are valid during the call. */
  copy(from: Lsn, to: Lsn, take: (bytes: Uint8Array, lsn: Lsn) => void): void {
    assert(from <= to, 'L2: a range of the log ends behind its start')
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

  /** So many bytes from the position on, fewer at the end. */
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

/** Index of the last byte that is not zero; -1 when all are. Compares whole blocks: most are zero. */
export function lastUsedByte(bytes: Uint8Array): number {
  if (bytes.length <= zeros.length && Buffer.compare(bytes, zeros.subarray(0, bytes.length)) === 0) return -1
  return bytes.findLastIndex((byte) => byte !== 0)
}
