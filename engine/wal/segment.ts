// One WAL segment: an append-only file of frames, written by exactly one writer.
//
// Layout, little-endian. Two copies of the header in blocks of their own, so that one bad block does not cost the
// segment; then frames until zeros or the end of the file:
//
//   header   magic "PSWL" u32 | format version u32 | segment number u32 | 0 u32 | log id 8 bytes |
//            start lsn u64 | header crc u32                                        (36 bytes, at 0 and at 4096)
//   frames   from 8192 on; the frame with position p lies at 8192 + p - start lsn
//
// The start lsn says where the previous segment ends: what the previous file holds at or behind that position does not
// count (the rest of a segment whose sync failed, or a torn tail). So no file is ever cut or written twice.
//
// Invariants:
//   1. The name of the file and its header are durable before the first frame is written: a segment with a bad header
//      and nothing but zeros behind it was never used.
//   2. Numbers grow with time. A segment ends at the smallest start lsn of all segments with higher numbers.
//   3. Segments are removed oldest first, each durably, so that what is left has no gaps.
//
// Zero-filling ahead of use, measured with fdatasync on ext4 (2 cores, virtual disk), per group, median:
//
//                           grows    zero-filled
//   64 KiB, disk idle       0.27 ms  0.17 ms
//   1 MiB, disk idle        0.85 ms  0.82 ms
//   64 KiB, while parts     0.38 ms  0.20 ms   (growing needs a journal commit, which waits for the other
//   1 MiB,  are written     2.3 ms   0.68 ms   files' new blocks)
//
// It also takes the kernel's new pages off the writer: a write of 1 MiB takes 0.16 ms where the pages are there, and 0.2
// to 2.6 ms where the kernel must find them first. Filling 64 MiB costs 38-50 ms and as many bytes again as the log itself. So it pays when groups are small or few,
// and would halve the ingest rate where the disk's bandwidth is the limit: a segment is filled ahead unless the last one
// was used up faster than `fillAboveMs` (wal.ts). A segment that was not filled ahead, as the first one after a start, is
// filled bit by bit: a small group that would make the file longer takes 256 KiB of zeros along. Mean of 300 groups on a
// busy disk, grows / filled whole / filled bit by bit: 4 KiB 1.65 / 1.22 / 1.30 ms, 64 KiB 2.09 / 1.31 / 1.41 ms.

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

/** What a small group takes along. */
export const aheadBytes = 256 * 1024
/** The same small memory again and again stays in the processor's cache. */
const zeros = new Uint8Array(64 * 1024)

const headerCopyBytes = 4096
const headerCrcOffset = 32
const headerUsedBytes = 36
const nameSuffix = '.wal'
/** Of files that are not complete yet; whoever opens the log removes them. */
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

/** The number that a file name holds; undefined when the file is no segment. */
export function segmentNumber(name: string): number | undefined {
  if (name.length !== nameDigits + nameSuffix.length || !name.endsWith(nameSuffix)) return undefined
  const number = Number(name.slice(0, nameDigits))
  return Number.isInteger(number) ? number : undefined
}

/** Both copies of the header. */
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

/** The header in the first bytes of a segment; undefined when both copies are bad or of another version. */
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

/** The version that a whole header of another format names; undefined when there is none. */
export function foreignVersion(bytes: Uint8Array): number | undefined {
  for (const copy of [bytes, bytes.subarray(headerCopyBytes)]) {
    if (copy.length < headerUsedBytes) continue
    const view = viewOf(copy)
    if (view.getUint32(0, true) !== segmentMagic || view.getUint32(4, true) === segmentVersion) continue
    // A later format may lay out the rest differently, but not these three words.
    if (view.getUint32(headerCrcOffset, true) === crc32(copy.subarray(0, headerCrcOffset)))
      return view.getUint32(4, true)
  }
  return undefined
}

/** Offset in the file of a position in the log. */
export function offsetOf(startLsn: Lsn, lsn: Lsn): number {
  assert(lsn >= startLsn, 'L2: a position is behind the start of its segment')
  return segmentHeaderBytes + lsn - startLsn
}

/** So many zeros for one write. */
export function zeroChunks(bytes: number): Uint8Array[] {
  assert(bytes >= 0, 'L3: a run of zeros has a size')
  const chunks: Uint8Array[] = []
  for (let left = bytes; left > 0; left -= zeros.length) chunks.push(zeros.subarray(0, Math.min(left, zeros.length)))
  return chunks
}

/** Creates a segment, or takes a prepared one, and makes its name and header durable. It may leave a file when it fails. */
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
 * Makes a segment with frames under another name, and gives it its own when it is durable. `reserved`: the file of that
 * other name, which is there and has room. Leaves no file when it fails.
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

/** What stays is removed by the next start. */
export function removeQuietly(files: Files, path: string): void {
  try {
    if (files.exists(path)) files.remove(path)
  } catch (error) {
    if (!(error instanceof FileError)) throw error
  }
}
