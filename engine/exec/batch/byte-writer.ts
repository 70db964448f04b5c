// Bytes on their way out: blocks of shared memory that are posted when full. Rows are whole within a block, a header too.
//
// Invariant: reserve(n) is called before at most n bytes are put.

import type { SharedMemory } from '../../memory/shared-memory.js'

/** Whoever opens a block takes so many bytes more: together they are whole pages of the allocator. */
const paddingBytes = 64
/** The first block is small, for readers who wait; each later one twice as large, because blocks cost something, too. */
const blockBytesFirst = 16 * 1024
const blockBytesMax = 512 * 1024

export interface ByteSink {
  /** A new block of at least so many bytes. */
  open(bytes: number): number
  /** The block belongs to the reader from now on; `rows` end in it. */
  close(address: number, bytes: number, rows: number): void
  /** Gives an empty block back. */
  drop(address: number): void
  /** Bytes of a block now, unless a row needs more; blocks are never smaller than the first. */
  readonly blockBytesMax?: () => number
}

export class ByteWriter {
  /** Where the next byte goes, and the end of the block. */
  at = 0
  end = 0
  readonly #memory: SharedMemory
  readonly #sink: ByteSink
  #start = 0
  #rows = 0
  #blockBytes = blockBytesFirst

  constructor(memory: SharedMemory, sink: ByteSink) {
    this.#memory = memory
    this.#sink = sink
  }

  /** Room for so many bytes behind what is there, or in a new block. */
  reserve(bytes: number): void {
    if (this.at + bytes > this.end) this.renew(bytes)
  }

  /** Posts what there is and begins a new block of at least so many bytes. */
  renew(bytes: number): void {
    this.flush()
    const largest = Math.max(blockBytesFirst, Math.min(blockBytesMax, this.#sink.blockBytesMax?.() ?? blockBytesMax))
    const size = Math.max(bytes, Math.min(largest, this.#blockBytes) - paddingBytes)
    this.#blockBytes = Math.min(this.#blockBytes * 2, blockBytesMax)
    this.#start = this.#sink.open(size)
    this.end = this.#start + size
    this.at = this.#start
  }

  /** Somebody else wrote up to the address; so many rows ended. */
  advance(at: number, rows: number): void {
    this.at = at
    this.#rows += rows
  }

  text(text: string): void {
    const bytes = Buffer.from(text, 'utf8')
    if (bytes.length === 0) return
    this.reserve(bytes.length)
    this.#memory.u8.set(bytes, this.at)
    this.at += bytes.length
  }

  /** Bytes that may be cut anywhere. */
  bytes(chunk: Uint8Array): void {
    for (let from = 0; from < chunk.length; ) {
      this.reserve(1)
      const part = chunk.subarray(from, from + this.end - this.at)
      this.#memory.put(part, this.at)
      this.at += part.length
      from += part.length
    }
  }

  /** Posts what there is. */
  flush(): void {
    if (this.#start === 0) return
    const bytes = this.at - this.#start
    if (bytes > 0) this.#sink.close(this.#start, bytes, this.#rows)
    else this.#sink.drop(this.#start)
    this.#forget()
  }

  /** Gives the block under way back: the query has ended. */
  abandon(): void {
    if (this.#start !== 0) this.#sink.drop(this.#start)
    this.#forget()
  }

  #forget(): void {
    this.#start = 0
    this.end = 0
    this.at = 0
    this.#rows = 0
  }
}
