// One WAL segment: an append-only file of frames (log records), written by exactly one writer.
//
// Layout, little-endian. The header has two copies in separate blocks, so that one bad block does not make the segment
// unreadable. Frames follow until zeros or the end of the file:
//
//   header   magic "PSWL" u32 | format version u32 | segment number u32 | 0 u32 | log id 8 bytes |
//            start lsn u64 | header crc u32                                        (36 bytes, at 0 and at 4096)
//   frames   from 8192 on; the frame with lsn p (its byte position in the log) is at 8192 + p - start lsn
//
// The start lsn is the end of the previous segment. Contents of the previous file at or after that position are ignored
// (the rest of a segment whose sync failed, or a torn tail). So no file is ever truncated or overwritten.
//
// Invariants:
//   1. The name of the file and its header are durable before the first frame is written: a segment with a bad header
//      and nothing but zeros after it was never used.
//   2. Numbers increase with time. A segment ends at the smallest start lsn of all segments with higher numbers.
//   3. Segments are removed oldest first, each durably, so the remaining ones have no gaps.
//
// A segment is zero-filled before use, because a sync of a growing file also commits file-system metadata, and because
// the file's pages are then already in the page cache. This pays if the groups of frames that are written together are
// small or rare. It doubles the bytes written, so it is skipped if the last segment was used up faster than
// `fillAboveMs` (wal.ts). A segment that was not filled in advance, as the first one after a start, is filled
// gradually: a small group that extends the file also writes 256 KiB of zeros.

import { assert } from '../base/assert.js'
import { crc32 } from '../base/checksum.js'
import { FileError } from '../base/errors.js'
import type { File, Files } from '../base/files.js'
import { getU64, setU64, viewOf } from './frame.js'
import type { Lsn } from './types.js'

const segmentMagic = 0x4c575350
export const segmentVersion = 1
export const segmentHeaderBytes = 8192
export const logIdBytes = 8

/** Zeros that a small group writes in addition. */
export const preallocatedBytes = 256 * 1024
/** A small buffer, written repeatedly, stays in the processor's cache. */
const zeros = new Uint8Array(64 * 1024)

const headerCopyBytes = 4096
const headerCrcOffset = 32
const headerUsedBytes = 36
const nameSuffix = '.wal'
/** Suffix of files that are not complete yet, which opening the log removes. */
export const unfinishedSuffix = '.new'
const nameDigits = 10

export interface SegmentHeader {
  readonly number: number
  readonly logId: Uint8Array
  readonly startLsn: Lsn
}

export function segmentPath(directory: string, number: number): string {
  return `${directory}/${String(number).padStart(nameDigits, '0')}${nameSuffix}`
}

/** The number in a file name; undefined if the file is not a segment. */
export function segmentNumber(name: string): number | undefined {
  if (name.length !== nameDigits + nameSuffix.length || !name.endsWith(nameSuffix)) return undefined
  const number = Number(name.slice(0, nameDigits))
  return Number.isInteger(number) ? number : undefined
}

/** Encodes both copies of the header. */
export function encodeSegmentHeader({ number, logId, startLsn }: SegmentHeader): Uint8Array {
  assert(logId.length === logIdBytes, 'L2: a log id has 8 bytes')
  const bytes = new Uint8Array(segmentHeaderBytes)
  const view = viewOf(bytes)
  view.setUint32(0, segmentMagic, true)
  view.setUint32(4, segmentVersion, true)
  view.setUint32(8, number, true)
  bytes.set(logId, 16)
  setU64(view, 24, startLsn)
  view.setUint32(headerCrcOffset, crc32(bytes.subarray(0, headerCrcOffset)), true)
  bytes.copyWithin(headerCopyBytes, 0, headerUsedBytes)
  return bytes
}

/** The header from the first bytes of a segment; undefined if both copies are bad or of another version. */
export function parseSegmentHeader(bytes: Uint8Array): SegmentHeader | undefined {
  return parseCopy(bytes) ?? parseCopy(bytes.subarray(headerCopyBytes))
}

function parseCopy(bytes: Uint8Array): SegmentHeader | undefined {
  if (bytes.length < headerUsedBytes) return undefined
  const view = viewOf(bytes)
  if (view.getUint32(0, true) !== segmentMagic || view.getUint32(4, true) !== segmentVersion) return undefined
  if (view.getUint32(headerCrcOffset, true) !== crc32(bytes.subarray(0, headerCrcOffset))) return undefined
  return { number: view.getUint32(8, true), logId: bytes.slice(16, 24), startLsn: getU64(view, 24) }
}

/** The version in a valid header of another format; undefined if there is none. */
export function foreignVersion(bytes: Uint8Array): number | undefined {
  for (const copy of [bytes, bytes.subarray(headerCopyBytes)]) {
    if (copy.length < headerUsedBytes) continue
    const view = viewOf(copy)
    if (view.getUint32(0, true) !== segmentMagic || view.getUint32(4, true) === segmentVersion) continue
    // Other versions may have another layout, but these three words stay.
    if (view.getUint32(headerCrcOffset, true) === crc32(copy.subarray(0, headerCrcOffset)))
      return view.getUint32(4, true)
  }
  return undefined
}

/** File offset of a position in the log. */
export function offsetOf(startLsn: Lsn, lsn: Lsn): number {
  assert(lsn >= startLsn, 'L2: a position is after the start of its segment')
  return segmentHeaderBytes + lsn - startLsn
}

/** That many zeros, as chunks for one write. */
export function zeroChunks(bytes: number): Uint8Array[] {
  assert(bytes >= 0, 'L3: a run of zeros has a size')
  const chunks: Uint8Array[] = []
  for (let left = bytes; left > 0; left -= zeros.length) chunks.push(zeros.subarray(0, Math.min(left, zeros.length)))
  return chunks
}

/** Creates a segment, or uses a prepared one, and syncs its name and header. May leave a file if it fails. */
export function startSegment(files: Files, directory: string, header: SegmentHeader, prepared: boolean): File {
  const path = segmentPath(directory, header.number)
  const file = files.open(path, prepared ? 'write' : 'create')
  try {
    file.write([encodeSegmentHeader(header)], 0)
    file.sync()
    if (!prepared) files.syncDirectory(directory)
    return file
  } catch (error) {
    file.close()
    throw error
  }
}

/**
 * Writes a segment with frames under another name, and renames it when it is durable. `reserved`: an open file with
 * that other name and enough space. Leaves no file if it fails.
 */
export function buildSegment(
  files: Files,
  directory: string,
  header: SegmentHeader,
  frames: readonly Uint8Array[],
  reserved?: File,
): File {
  const path = segmentPath(directory, header.number)
  const unfinished = path + unfinishedSuffix
  const file = reserved ?? files.open(unfinished, 'create')
  try {
    file.write([encodeSegmentHeader(header), ...frames], 0)
    file.sync()
    files.rename(unfinished, path)
    files.syncDirectory(directory)
    return file
  } catch (error) {
    file.close()
    for (const left of [unfinished, path]) removeQuietly(files, left)
    throw error
  }
}

/** Ignores failures, since the next start removes the file. */
export function removeQuietly(files: Files, path: string): void {
  try {
    if (files.exists(path)) files.remove(path)
  } catch (error) {
    if (!(error instanceof FileError)) throw error
  }
}
