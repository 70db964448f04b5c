// Builds the payload of a log frame (record) as a list of byte arrays, which the log copies in this order into its
// buffer (waiting.ts). Small pieces are copied here, into a common array. Large ones, such as columns, stay in the
// caller's memory until the log copies them.

import { assert } from '../base/assert.js'
import { frameAlignment, viewOf } from './frame.js'

const scratchBytes = 4096
const scratchBytesMax = 64 * 1024
/** Below this size, copying costs less than another chunk in the list. */
const copyBytesMax = 256
/** Below this size, copying byte by byte costs less than a call. */
const byteByByteMax = 32

export class ChunkWriter {
  private readonly chunks: Uint8Array[] = []
  private scratch = new Uint8Array(scratchBytes)
  private scratchView = viewOf(this.scratch)
  private scratchStart = 0
  private scratchEnd = 0
  private length = 0

  /** Appends that many zeros, which the caller fills before the next call; returns their offset in `view`. */
  reserve(bytes: number): number {
    if (this.scratchEnd + bytes > this.scratch.length) this.newScratch(bytes)
    const at = this.scratchEnd
    this.scratchEnd += bytes
    this.length += bytes
    return at
  }

  /** Of what reserve() appended last. */
  get view(): DataView {
    return this.scratchView
  }

  add(bytes: Uint8Array): void {
    if (bytes.length === 0) return
    if (bytes.length <= copyBytesMax) {
      const at = this.reserve(bytes.length)
      this.scratch.set(bytes, at)
      return
    }
    this.flush()
    this.chunks.push(bytes)
    this.length += bytes.length
  }

  /** Appends bytes of the memory, which stay until the log has copied them. */
  addFrom(memory: Uint8Array, start: number, end: number): void {
    const bytes = end - start
    if (bytes > copyBytesMax) {
      this.add(memory.subarray(start, end))
      return
    }
    const at = this.reserve(bytes)
    const { scratch } = this
    if (bytes > byteByByteMax) scratch.set(memory.subarray(start, end), at)
    else for (let from = start, to = at; from < end; from++, to++) scratch[to] = memory[from]!
  }

  /** Appends zeros up to the next multiple of 8. */
  pad(): void {
    const over = this.length % frameAlignment
    if (over > 0) this.reserve(frameAlignment - over)
  }

  finish(): Uint8Array[] {
    this.flush()
    assert(
      this.chunks.reduce((sum, { length }) => sum + length, 0) === this.length,
      'L2: the chunks of a payload hold all of it',
    )
    return this.chunks
  }

  private flush(): void {
    if (this.scratchEnd > this.scratchStart) this.chunks.push(this.scratch.subarray(this.scratchStart, this.scratchEnd))
    this.scratchStart = this.scratchEnd
  }

  private newScratch(bytes: number): void {
    this.flush()
    // Twice as large, so that a frame over many small columns has few chunks.
    this.scratch = new Uint8Array(Math.max(Math.min(this.scratch.length * 2, scratchBytesMax), bytes))
    this.scratchView = viewOf(this.scratch)
    this.scratchStart = 0
    this.scratchEnd = 0
  }
}
