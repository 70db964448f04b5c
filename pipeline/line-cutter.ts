// Cuts a byte stream into blocks of whole lines.
//
// Chunks are kept as they come and copied once, when a block is made; one chunk that ends with a line is passed on as it
// is. A block has at most `blockBytesMax` bytes, unless one line alone is longer.
//
// A line that stops within a quoted value waits for the quote that closes it, at most until it is longer than
// `lineBytesMax`: then the quote is a stray one, and the lines behind it are cut as usual (engine/lines/line-ends.ts).
//
// Invariants:
//   1. The kept bytes begin at a line's start and hold at most one line more than blockBytesMax.
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
  /** Whether a newline arrived that no cut has used. */
  #newlineSeen = false
  /** The kept bytes stop within a quoted value: no newline ends their line before a quote has come. */
  #quoted = false
  /** No more bytes come: quoted values that are not closed are malformed. */
  #final = false

  constructor(options: LineCutterOptions) {
    this.#options = options
  }

  /** Bytes that wait for more. */
  get pendingBytes(): number {
    return this.#bytes
  }

  /** Whether `cut` may find a line. */
  get lineWaits(): boolean {
    return this.#newlineSeen
  }

  /** Takes a chunk over; adds the blocks that became full by it, also when a line behind them is too long. */
  append(chunk: Buffer, blocks: LineBlock[]): void {
    const { blockBytesMax, lineBytesMax } = this.#options
    for (let from = 0; from < chunk.length; from += blockBytesMax) {
      const piece = chunk.subarray(from, from + blockBytesMax)
      if (this.#bytes + piece.length > blockBytesMax) this.#cutInto(blocks)
      this.#chunks.push(piece)
      this.#bytes += piece.length
      this.#newlineSeen ||= this.#quoted ? this.#bytes > lineBytesMax || mayClose(piece) : piece.includes(newline)
      while ((this.#bytes >= blockBytesMax || this.#bytes > lineBytesMax) && this.#newlineSeen) this.#cutInto(blocks)
      if (this.#bytes > lineBytesMax && !this.#newlineSeen) throw tooLong(lineBytesMax)
    }
  }

  /** No more bytes come: lines behind a quote that nothing closes can be cut. */
  finish(): void {
    this.#final = true
    this.#newlineSeen ||= this.#quoted
  }

  /** A block of the whole lines that wait, or null. Lines may go on waiting (`lineWaits`) behind one longer than a block. */
  cut(): LineBlock | null {
    if (!this.#newlineSeen) return null
    const { bytes, pooled } = this.#join()
    const end = this.#blockEnd(bytes)
    // Only when called by append: no more bytes wait than a block has when it returns.
    if (end > this.#options.lineBytesMax) throw tooLong(this.#options.lineBytesMax)
    const more = end > 0 && bytes.length > this.#options.blockBytesMax
    this.#newlineSeen = more && !this.#quoted && bytes.includes(newline, end)
    this.#keep(bytes.subarray(end), pooled !== null || end > 0)
    if (end > 0) return { bytes: bytes.subarray(0, end), release: this.#releaser(pooled) }
    this.#releaser(pooled)()
    return null
  }

  /** The end of the stream: what waits, with an unfinished last line; null when nothing does. */
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

  /** The tail of a block is copied: the block's buffer is the receiver's. */
  #keep(tail: Buffer, shared: boolean): void {
    this.#bytes = tail.length
    this.#chunks = tail.length === 0 ? [] : [shared ? Buffer.from(tail) : tail]
  }

  #releaser(pooled: Buffer | null): () => void {
    if (pooled === null) return nothingToRelease
    return () => this.#options.pool.give(pooled)
  }
}

/** Whether the bytes hold a quote that no backslash within them hides. */
function mayClose(bytes: Buffer): boolean {
  for (let at = bytes.indexOf(quoteMark); at >= 0; at = bytes.indexOf(quoteMark, at + 1)) {
    let from = at
    while (from > 0 && bytes[from - 1] === backslash) from--
    // A run that began in earlier bytes may be one longer.
    if (from === 0 || (at - from) % 2 === 0) return true
  }
  return false
}

function tooLong(lineBytesMax: number): NetworkError {
  return new NetworkError(`line is too long [bytesMax=${lineBytesMax}]`)
}
