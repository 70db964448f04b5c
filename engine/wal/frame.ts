// Frames of the write-ahead log: the format of the records in a segment, after its header. Most frames contain a
// transaction. Control frames describe the log itself: a group frame begins each write, an idle frame records after a
// pause how far the log is durable, a close frame ends the log at a clean shutdown, and a pad frame fills the rest of a
// block.
//
// Layout, little-endian. A frame begins at a multiple of 8 bytes, in the log and in its file:
//
//   header   magic "PWF1" u32 | payload length u32 | kind u16 | 0 u16 | payload crc u32 | lsn u64 |
//            header crc u32 | 0 u32                                                                    (32 bytes)
//   payload  length bytes, then zeros up to a multiple of 8
//
//   payload of group, idle and close frames: group lsn u64 | durable lsn u64                           (16 bytes)
//
// The header crc covers the 24 bytes before it and is seeded with the crc of the log's id. The header has its own
// checksum, so that its length is known even if the payload is damaged. The reader then finds the next frame, and can
// report which table the damage affects.
//
// Invariants:
//   1. lsn is the position of the frame in the log. Together with the log's id in the checksum it ensures that only a
//      frame of this log at this position is accepted, and not the old contents of a file, or a user's value with the
//      bytes of a frame.
//   2. length is at most walFrameBytesMax. A reader must not allocate a greater length.
//   3. Every gathered write begins with a group, idle or close frame; durable lsn <= group lsn = lsn of that frame.
//   4. A group that is synced is padded to a multiple of 4096 bytes by a pad frame. A block that is being written
//      during a power failure may be damaged as a whole, so no block with acknowledged bytes is ever written again.
//      This costs no disk writes, since the operating system writes whole pages, but a group of one small row takes
//      4 KiB of the log.

import { assert } from '../base/assert.js'
import { crc32 } from '../base/checksum.js'
import { walFrameBytesMax } from '../base/limits.js'
import { frameKinds, type Lsn } from './types.js'

export const frameMagic = 0x31465750
export const frameHeaderBytes = 32
export const frameAlignment = 8
/** Payload of group, idle and close frames. */
const groupPayloadBytes = 16
/** Size of a whole group, idle or close frame. */
export const groupFrameBytes = frameHeaderBytes + groupPayloadBytes
/** Unit that a disk may lose as a whole when power fails during a write. */
const blockBytes = 4096
/** Kinds from this one on belong to the log's users. */
export const firstUserKind = 16

const headerCrcOffset = 24
const twoTo32 = 0x1_0000_0000

export interface FrameHeader {
  readonly length: number
  readonly kind: number
  readonly payloadCrc: number
  readonly lsn: Lsn
}

/** Size of a frame in the log. */
export function frameBytes(payloadLength: number): number {
  return frameHeaderBytes + alignUp(payloadLength)
}

export function alignUp(bytes: number): number {
  return Math.ceil(bytes / frameAlignment) * frameAlignment
}

/** The seed of all header checksums of one log. */
export function saltOf(logId: Uint8Array): number {
  return crc32(logId)
}

/** Writes the header of a frame whose payload is already in place, and the zeros after the payload. */
export function sealFrame(frame: Uint8Array, kind: number, payloadLength: number, lsn: Lsn, salt: number): void {
  assert(frame.length === frameBytes(payloadLength), 'L2: a frame has its exact size')
  assert(payloadLength <= walFrameBytesMax, 'L3: a frame payload keeps its limit')
  assert(lsn % frameAlignment === 0, 'L2: a frame begins at a multiple of 8')
  const view = viewOf(frame)
  frame.fill(0, frameHeaderBytes + payloadLength)
  view.setUint32(0, frameMagic, true)
  view.setUint32(4, payloadLength, true)
  view.setUint32(8, kind, true)
  view.setUint32(12, crc32(frame.subarray(frameHeaderBytes, frameHeaderBytes + payloadLength)), true)
  setU64(view, 16, lsn)
  view.setUint32(headerCrcOffset, crc32(frame.subarray(0, headerCrcOffset), salt), true)
  view.setUint32(28, 0, true)
}

/** Writes a whole group, idle or close frame. */
export function sealGroupFrame(frame: Uint8Array, kind: number, lsn: Lsn, durableLsn: Lsn, salt: number): void {
  assert(durableLsn <= lsn, 'L1: a group does not claim its own durability')
  const view = viewOf(frame)
  setU64(view, frameHeaderBytes, lsn)
  setU64(view, frameHeaderBytes + 8, durableLsn)
  sealFrame(frame, kind, groupPayloadBytes, lsn, salt)
}

/** Size of the pad frame that must follow a group of that size; 0 if it fills its blocks. */
export function padBytes(bytes: number): number {
  const over = bytes % blockBytes
  if (over === 0) return 0
  assert(over % frameAlignment === 0, 'L2: frames end at multiples of 8')
  const room = blockBytes - over
  return room >= frameHeaderBytes ? room : room + blockBytes
}

export function sealPadFrame(frame: Uint8Array, lsn: Lsn, salt: number): void {
  frame.fill(0)
  sealFrame(frame, frameKinds.pad, frame.length - frameHeaderBytes, lsn, salt)
}

/** The header at the start of the bytes, if it was written for this position of this log. */
export function parseFrameHeader(bytes: Uint8Array, lsn: Lsn, salt: number): FrameHeader | undefined {
  if (bytes.length < frameHeaderBytes) return undefined
  const view = viewOf(bytes)
  if (view.getUint32(0, true) !== frameMagic || getU64(view, 16) !== lsn) return undefined
  if (view.getUint32(headerCrcOffset, true) !== crc32(bytes.subarray(0, headerCrcOffset), salt)) return undefined
  const length = view.getUint32(4, true)
  if (length > walFrameBytesMax) return undefined
  return { length, kind: view.getUint16(8, true), payloadCrc: view.getUint32(12, true), lsn }
}

/** The durable position in a group, idle or close frame; 0 for other kinds. */
export function durableLsnOf(kind: number, payload: Uint8Array): Lsn {
  if (!isControlKind(kind) || kind === frameKinds.pad || payload.length < groupPayloadBytes) return 0
  return getU64(viewOf(payload), 8)
}

/** Whether the frame belongs to the log itself, so that readers do not get it. */
export function isControlKind(kind: number): boolean {
  return kind < firstUserKind
}

export function viewOf(bytes: Uint8Array): DataView {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
}

/** Unlike a TextDecoder, this accepts shared memory. */
export function utf8(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('utf8')
}

/** Writes an integer below 2^53 as 8 bytes. */
export function setU64(view: DataView, offset: number, value: number): void {
  assert(Number.isSafeInteger(value), 'L2: a position is an exact integer')
  assert(value >= 0, 'L2: a position is not negative')
  view.setUint32(offset, value % twoTo32, true)
  view.setUint32(offset + 4, Math.floor(value / twoTo32), true)
}

/** Values above 2^53, which setU64 never writes, are rounded. */
export function getU64(view: DataView, offset: number): number {
  return view.getUint32(offset, true) + view.getUint32(offset + 4, true) * twoTo32
}
