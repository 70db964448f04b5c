// Builds the payload of a log frame (record) as a list of byte arrays, which the log copies in this order into its
// buffer (waiting.ts). Small pieces are copied here, into a common array. Large ones, such as columns, stay in the
// caller's memory until the log copies them. The strings of a column that is given as entries (address, length) are
// first copied to one array (copyEntries).

import { assert } from '../base/assert.js'
import { frameAlignment, viewOf } from './frame.js'

const scratchBytes = 4096
const scratchBytesMax = 64 * 1024
/** Below this size, copying costs less than another chunk in the list. */
const copyBytesMax = 256

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

/** Size of all values that the entries {address u32, length i32} point to. */
export function entriesBytes(chunks: readonly Uint8Array[]): number {
  let sum = 0
  for (const chunk of chunks) {
    const words = wordsOf(chunk)
    for (let at = 1; at < words.length; at += 2) sum += Math.max(0, words[at]!)
  }
  return sum
}

/**
 * Writes the lengths of all entries to the start of the target, and their bytes from `bytesAt` on. Values that are
 * contiguous in memory are copied at once; short ones byte by byte, because a call costs more.
 */
export function copyEntries(
  chunks: readonly Uint8Array[],
  memory: Uint8Array,
  target: Uint8Array,
  bytesAt: number,
): void {
  let row = 0
  let at = bytesAt
  const lengths = viewOf(target)
  for (const chunk of chunks) {
    const words = wordsOf(chunk)
    let runStart = 0
    let runEnd = 0
    for (let word = 0; word < words.length; word += 2) {
      const length = words[word + 1]!
      lengths.setInt32(row * 4, length, true)
      row++
      if (length <= 0) continue
      const address = words[word]! >>> 0
      if (address !== runEnd) {
        at = copyRun(memory, runStart, runEnd, target, at)
        runStart = address
      }
      runEnd = address + length
    }
    at = copyRun(memory, runStart, runEnd, target, at)
  }
  assert(row * 4 <= bytesAt, 'R1: every row of a frame has a length')
  assert(at === target.length, 'R3: packed strings fill their column')
}

const byteByByteMax = 32

function copyRun(memory: Uint8Array, start: number, end: number, target: Uint8Array, at: number): number {
  if (end - start > byteByByteMax) target.set(memory.subarray(start, end), at)
  else for (let from = start, to = at; from < end; from++, to++) target[to] = memory[from]!
  return at + end - start
}

/** Entries as i32 words; a copy when they are not aligned. */
function wordsOf(chunk: Uint8Array): Int32Array {
  const bytes = chunk.byteOffset % 4 === 0 ? chunk : chunk.slice()
  return new Int32Array(bytes.buffer, bytes.byteOffset, bytes.length / 4)
}
