// Types of the running log's segment files: complete ones, and the current one, to which frames (log records) are
// appended; and of what opening the log returns about them (open.ts). Also makes the zeros that are written ahead after
// small groups of frames (segment.ts).

import { assert } from '../base/assert.js'
import type { ErrorRecord } from '../base/errors.js'
import type { File } from '../base/files.js'
import { offsetOf, preallocatedBytes, segmentHeaderBytes, zeroChunks } from './segment.js'
import type { Lsn } from './types.js'
import type { WaitingFrames } from './waiting.js'

/** A segment that accepts no more frames and waits to be trimmed. */
export interface OldSegment {
  readonly path: string
  readonly startLsn: Lsn
  readonly endLsn: Lsn
}

export interface CurrentSegment {
  readonly file: File
  readonly number: number
  readonly startLsn: Lsn
  readonly startedMs: number
  lastSequence: number
  /** The file has allocated blocks up to this offset. */
  filledBytes: number
}

/** The state of the log after recovery: see open.ts. */
export interface WalStart {
  readonly logId: Uint8Array
  readonly old: readonly OldSegment[]
  readonly current: { readonly file: File; readonly startLsn: Lsn } | undefined
  /** Number of the current segment, or else of the last one. */
  readonly number: number
  /** The replayed frames that may not be durable; the log ends after them. */
  readonly waiting: WaitingFrames
  /** Set if there is no current segment, because the disk is full. */
  readonly failure: ErrorRecord | null
}

/** Zeros are written ahead after groups of at most this size: see segment.ts. */
const smallGroupBytes = 64 * 1024

/** Zeros to write after the group, so that the syncs of the next small ones need not update the file's size. */
export function zerosAfter(
  segment: CurrentSegment,
  written: Lsn,
  headLsn: Lsn,
  segmentBytes: number,
): readonly Uint8Array[] {
  assert(written <= headLsn, 'L1: what is written is no more than what was appended')
  const end = offsetOf(segment.startLsn, headLsn)
  if (end <= segment.filledBytes || headLsn - written > smallGroupBytes) return []
  const room = segmentHeaderBytes + segmentBytes - end
  const bytes = Math.max(0, Math.min(preallocatedBytes, segmentBytes / 8, room))
  segment.filledBytes = end + bytes
  return zeroChunks(bytes)
}
