// Segments as the log at run time knows them, and how it starts.

import { assert } from '../base/assert.js'
import type { ErrorRecord } from '../base/errors.js'
import type { File } from '../base/files.js'
import { aheadBytes, offsetOf, segmentHeaderBytes, zeroChunks } from './segment.js'
import type { Lsn } from './types.js'
import type { WaitingFrames } from './waiting.js'

/** A segment that is complete but for trimming. */
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
  /** The file has blocks of its own up to this offset. */
  filledBytes: number
}

/** Where recovery left the log: see open.ts. */
export interface WalStart {
  readonly logId: Uint8Array
  readonly old: readonly OldSegment[]
  readonly current: { readonly file: File; readonly startLsn: Lsn } | undefined
  /** Of the current segment, or of the last one. */
  readonly number: number
  /** Where the log ends, behind what is not known to be durable yet. */
  readonly waiting: WaitingFrames
  /** Why there is no current segment: the disk is full. */
  readonly failure: ErrorRecord | null
}

/** Behind a group of at most so many bytes zeros are written ahead: segment.ts says what it saves. */
const smallGroupBytes = 64 * 1024

/** Zeros to be written behind the group, so that the syncs of the next small ones need not store the file's size. */
export function zerosBehind(
  segment: CurrentSegment,
  written: Lsn,
  headLsn: Lsn,
  segmentBytes: number,
): readonly Uint8Array[] {
  assert(written <= headLsn, 'L1: what is written is no more than what was appended')
  const end = offsetOf(segment.startLsn, headLsn)
  if (end <= segment.filledBytes || headLsn - written > smallGroupBytes) return []
  const room = segmentHeaderBytes + segmentBytes - end
  const bytes = Math.max(0, Math.min(aheadBytes, segmentBytes / 8, room))
  segment.filledBytes = end + bytes
  return zeroChunks(bytes)
}
