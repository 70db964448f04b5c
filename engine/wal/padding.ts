// Checks the bytes of a log segment that a replay does not need: the second copy of the header, and the padding between
// frames (log records). If they differ from what was written, the disk has changed them, and may have changed frames,
// too. `penstock check` reports that.

import type { Files } from '../base/files.js'
import { nonZeroAt } from '../base/padding.js'
import { frameHeaderBytes, saltOf } from './frame.js'
import { type SegmentExtent, SegmentReader } from './reader.js'
import type { SegmentInventory } from './replay.js'
import { encodeSegmentHeader, offsetOf, parseSegmentHeader, segmentHeaderBytes } from './segment.js'
import type { Lsn } from './types.js'

export interface ChangedByte {
  readonly file: string
  readonly offset: number
}

/** The first changed byte of each segment, in the durable part of the log. */
export function changedPadding(files: Files, { extents, logId }: SegmentInventory, durableLsn: Lsn): ChangedByte[] {
  const salt = logId === undefined ? 0 : saltOf(logId)
  return extents.flatMap((extent) => {
    const offset = changedHeader(files, extent) ?? changedFrames(files, extent, salt, durableLsn)
    return offset === undefined ? [] : [{ file: extent.path, offset }]
  })
}

function changedHeader(files: Files, { path }: SegmentExtent): number | undefined {
  const file = files.open(path, 'read')
  try {
    const bytes = new Uint8Array(segmentHeaderBytes)
    file.read(bytes, 0)
    const header = parseSegmentHeader(bytes)
    if (header === undefined) return undefined
    const wanted = encodeSegmentHeader(header)
    const at = bytes.findIndex((byte, index) => byte !== wanted[index])
    return at < 0 ? undefined : at
  } finally {
    file.close()
  }
}

function changedFrames(files: Files, extent: SegmentExtent, salt: number, durableLsn: Lsn): number | undefined {
  const reader = new SegmentReader(files, extent, salt)
  try {
    const end = Math.min(durableLsn, reader.endLsn)
    for (let lsn = extent.startLsn; lsn < end; ) {
      const at = reader.frameAt(lsn)
      // Damaged frames are reported by the replay.
      if (at.kind !== 'frame') return undefined
      const { endLsn, payload } = at.frame
      const used = frameHeaderBytes + payload.length
      const changed = nonZero(reader, lsn + frameHeaderBytes - 4, 4) ?? nonZero(reader, lsn + used, endLsn - lsn - used)
      if (changed !== undefined) return offsetOf(extent.startLsn, changed)
      lsn = endLsn
    }
    return undefined
  } finally {
    reader.close()
  }
}

function nonZero(reader: SegmentReader, lsn: Lsn, bytes: number): Lsn | undefined {
  let found: Lsn | undefined
  reader.copy(lsn, lsn + bytes, (chunk, at) => {
    const index = nonZeroAt(chunk, 0, chunk.length)
    if (index !== undefined) found ??= at + index
  })
  return found
}
