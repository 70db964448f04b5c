// Cuts a byte stream into blocks of whole lines.
//
// Chunks are held as they arrive and copied once, when a block is built; a single chunk that ends with a line end is
// passed on without a copy. A block has at most `blockBytesMax` bytes unless a single line is longer.
//
// A line break within a quoted value does not end the line, so the cutter waits for the closing quote. If the line
// then exceeds `lineBytesMax`, the opening quote is taken for an ordinary character: the line ends at its first line
// break, and cutting resumes after it by the same rules (engine/lines/line-ends.ts).
//
// Invariants:
//   1. The held bytes begin at the start of a line and exceed blockBytesMax by at most one line.
//   2. A block belongs to its receiver until `release`; the cutter keeps copies of what it still needs.

import { NetworkError } from '../engine/base/errors.js'
import { blockEnd, lastLineEnd } from '../engine/engine.js'
import type { BlockPool } from './block-pool.js'

/** Whole lines. The receiver calls `release` once, when it no longer reads the bytes. */
export interface LineBlock {
  readonly bytes: Uint8Array
  readonly release: () => void
}

export interface LineCutterOptions {
  readonly blockBytesMax: number
  readonly lineBytesMax: number
  readonly pool: BlockPool
}

const newline = 0x0a
const quoteMark = 0x22
const backslash = 0x5c
const nothingToRelease = (): void => {}

export class LineCutter {
  readonly #options: LineCutterOptions
  #chunks: Buffer[] = []
  #bytes = 0
  /** Whether a newline has arrived since the last cut. */
  #newlineSeen = false
  /** The kept bytes end within a quoted value, so no newline ends the line before a closing quote. */
  #quoted = false
  /** The input has ended, so unclosed quoted values are malformed. */
  #final = false

  constructor(options: LineCutterOptions) {
    this.#options = options
  }

  /** Bytes not yet part of a block. */
  get pendingBytes(): number {
    return this.#bytes
  }

  /** Whether `cut` may find a line. */
  get lineWaits(): boolean {
    return this.#newlineSeen
  }

  /** Takes ownership of a chunk and adds the blocks that it completes, even if a line after them is too long. */
  append(chunk: Buffer, blocks: LineBlock[]): void {
    const { blockBytesMax, lineBytesMax } = this.#options
    for (let from = 0; from < chunk.length; from += blockBytesMax) {
      const slice = chunk.subarray(from, from + blockBytesMax)
      if (this.#bytes + slice.length > blockBytesMax) this.#cutInto(blocks)
      this.#chunks.push(slice)
      this.#bytes += slice.length
      this.#newlineSeen ||= this.#quoted ? this.#bytes > lineBytesMax || mayClose(slice) : slice.includes(newline)
      while ((this.#bytes >= blockBytesMax || this.#bytes > lineBytesMax) && this.#newlineSeen) this.#cutInto(blocks)
      if (this.#bytes > lineBytesMax && !this.#newlineSeen) throw tooLong(lineBytesMax)
    }
  }

  /** Call when the input ends: lines after an unclosed quote can then be cut. */
  finish(): void {
    this.#final = true
    this.#newlineSeen ||= this.#quoted
  }

  /**
   * Returns a block of the pending whole lines, or null. More lines may be pending (`lineWaits`) after a long line.
   */
  cut(): LineBlock | null {
    if (!this.#newlineSeen) return null
    const { bytes, pooled } = this.#join()
    const end = this.#blockEnd(bytes)
    // Only reached from append(): when it returns, no more than a block of bytes is pending.
    if (end > this.#options.lineBytesMax) throw tooLong(this.#options.lineBytesMax)
    const more = end > 0 && bytes.length > this.#options.blockBytesMax
    this.#newlineSeen = more && !this.#quoted && bytes.includes(newline, end)
    this.#keep(bytes.subarray(end), pooled !== null || end > 0)
    if (end > 0) return { bytes: bytes.subarray(0, end), release: this.#releaser(pooled) }
    this.#releaser(pooled)()
    return null
  }

  /**
   * Returns the remaining bytes at the end of the stream, including an unfinished last line; null when there are
   * none.
   */
  rest(): LineBlock | null {
    if (this.#bytes === 0) return null
    const { bytes, pooled } = this.#join()
    this.#keep(bytes.subarray(bytes.length), false)
    return { bytes, release: this.#releaser(pooled) }
  }

  #cutInto(blocks: LineBlock[]): void {
    const block = this.cut()
    if (block !== null) blocks.push(block)
  }

  #blockEnd(bytes: Buffer): number {
    const { blockBytesMax, lineBytesMax } = this.#options
    const limits = { lineBytesMax, final: this.#final }
    const fits = bytes.length <= blockBytesMax
    const { end, quoted } = fits ? lastLineEnd(bytes, limits) : blockEnd(bytes, blockBytesMax, limits)
    this.#quoted = quoted
    return end
  }

  #join(): { bytes: Buffer; pooled: Buffer | null } {
    const [first] = this.#chunks
    if (first !== undefined && this.#chunks.length === 1) return { bytes: first, pooled: null }
    if (this.#bytes > this.#options.blockBytesMax)
      return { bytes: Buffer.concat(this.#chunks, this.#bytes), pooled: null }
    const pooled = this.#options.pool.take()
    let at = 0
    for (const chunk of this.#chunks) at += chunk.copy(pooled, at)
    return { bytes: pooled.subarray(0, at), pooled }
  }

  /** Copies the tail of a block, whose buffer belongs to the receiver. */
  #keep(tail: Buffer, shared: boolean): void {
    this.#bytes = tail.length
    this.#chunks = tail.length === 0 ? [] : [shared ? Buffer.from(tail) : tail]
  }

  #releaser(pooled: Buffer | null): () => void {
    if (pooled === null) return nothingToRelease
    return () => this.#options.pool.give(pooled)
  }
}

/** Whether the bytes contain a quote that is not escaped within them. */
function mayClose(bytes: Buffer): boolean {
  for (let at = bytes.indexOf(quoteMark); at >= 0; at = bytes.indexOf(quoteMark, at + 1)) {
    let from = at
    while (from > 0 && bytes[from - 1] === backslash) from--
    // A run of backslashes from the start may continue earlier bytes and so have one more.
    if (from === 0 || (at - from) % 2 === 0) return true
  }
  return false
}

function tooLong(lineBytesMax: number): NetworkError {
  return new NetworkError(`line is too long [bytesMax=${lineBytesMax}]`)
}
