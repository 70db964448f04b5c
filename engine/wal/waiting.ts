// Buffer in memory for the frames (log records) at the end of the log that are not durable yet. They are written to the
// log segment from here. If a sync fails, the same frames are written again to a new segment.
//
// Frames are copied into the buffer. So the writer can reuse its memory at once, small frames form one chunk of the
// gathered write, and the checksum runs over cached bytes. Views without copying would be slightly faster, but would
// keep every decoded batch until its sync.
//
// Owner: the log. The buffer consists of slabs of `slabBytes`. They are reused, because new memory costs more than the
// copy. A frame larger than that gets a slab of the next power of two.

import { assert } from '../base/assert.js'
import type { Lsn } from './types.js'

const slabBytes = 256 * 1024
const spareBytesMax = 16 * 1024 * 1024

interface Slab {
  readonly bytes: Uint8Array
  readonly startLsn: Lsn
  used: number
}

export class WaitingFrames {
  private readonly slabs: Slab[] = []
  private readonly spare: Uint8Array[] = []
  private spareBytes = 0
  /** Position of the first frame that was ever reserved. */
  readonly startLsn: Lsn
  private head: Lsn

  constructor(startLsn: Lsn) {
    this.startLsn = startLsn
    this.head = startLsn
  }

  get headLsn(): Lsn {
    return this.head
  }

  /** Contiguous space at the head of the log, which the caller fills before the next call. */
  reserve(bytes: number): Uint8Array {
    const slab = this.slabWithRoom(bytes)
    const room = slab.bytes.subarray(slab.used, slab.used + bytes)
    assert(room.length === bytes, 'L3: a frame is contiguous in its slab')
    slab.used += bytes
    this.head += bytes
    return room
  }

  /** The bytes between two positions, as chunks in order. */
  chunks(from: Lsn, to: Lsn): Uint8Array[] {
    assert(from <= to, 'L2: a range of the log does not end before its start')
    assert(to <= this.head, 'L1: only what was appended is written')
    assert(from >= (this.slabs[0]?.startLsn ?? from), 'L1: what is not durable still waits in memory')
    const chunks: Uint8Array[] = []
    for (const { bytes, startLsn, used } of this.slabs) {
      const begin = Math.max(0, from - startLsn)
      const end = Math.min(used, to - startLsn)
      if (begin < end) chunks.push(bytes.subarray(begin, end))
    }
    return chunks
  }

  /** Releases the bytes before the position. */
  release(lsn: Lsn): void {
    assert(lsn <= this.head, 'L1: only what was appended is released')
    while (this.slabs.length > 0) {
      const slab = this.slabs[0]
      if (slab === undefined || slab.startLsn + slab.used > lsn) return
      this.slabs.shift()
      this.keep(slab.bytes)
    }
  }

  private slabWithRoom(bytes: number): Slab {
    const last = this.slabs.at(-1)
    if (last !== undefined && last.used + bytes <= last.bytes.length) return last
    const slab = { bytes: this.memoryFor(bytes), startLsn: this.head, used: 0 }
    this.slabs.push(slab)
    return slab
  }

  private memoryFor(bytes: number): Uint8Array {
    const index = this.spare.findLastIndex((memory) => memory.length >= bytes)
    const [memory] = index < 0 ? [] : this.spare.splice(index, 1)
    if (memory === undefined) return new Uint8Array(Math.max(slabBytes, 2 ** Math.ceil(Math.log2(bytes))))
    this.spareBytes -= memory.length
    return memory
  }

  private keep(memory: Uint8Array): void {
    if (this.spareBytes + memory.length > spareBytesMax) return
    this.spare.push(memory)
    this.spareBytes += memory.length
  }
}
