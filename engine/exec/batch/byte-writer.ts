// ByteWriter: writes the encoded bytes of a result to blocks of shared memory, and passes each full block to a
// ByteSink, which sends or collects it. An encoded row is never split between blocks; only bytes(), for long byte
// sequences, splits its input.
//
// Invariant: reserve(n) is called before up to n bytes are written.

import type { SharedMemory } from '../../memory/shared-memory.js'

/** ByteSink.open adds this padding; a block with its padding fills whole pages of the allocator. */
const paddingBytes = 64
/**
 * The first block is small, so that a waiting client gets rows early. Each further block is twice as large, since every
 * block has a fixed cost.
 */
const blockBytesFirst = 16 * 1024
const blockBytesMax = 512 * 1024

export interface ByteSink {
  /** Allocates a block of at least this size. */
  open(bytes: number): number
  /** Passes the block on; the reader owns it from now on. `rows` is the number of rows that end in it. */
  close(address: number, bytes: number, rows: number): void
  /** Frees a block without contents. */
  drop(address: number): void
  /** The present limit for the size of a block. A longer row exceeds it, and no block is smaller than the first one. */
  readonly blockBytesMax?: () => number
}

export class ByteWriter {
  /** Address of the next byte, and end of the block. */
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

  /** Ensures room for this many bytes: in the current block, or else in a new one. */
  reserve(bytes: number): void {
    if (this.at + bytes > this.end) this.renew(bytes)
  }

  /** Closes the current block and opens a new one of at least this size. */
  renew(bytes: number): void {
    this.flush()
    const largest = Math.max(blockBytesFirst, Math.min(blockBytesMax, this.#sink.blockBytesMax?.() ?? blockBytesMax))
    const size = Math.max(bytes, Math.min(largest, this.#blockBytes) - paddingBytes)
    this.#blockBytes = Math.min(this.#blockBytes * 2, blockBytesMax)
    this.#start = this.#sink.open(size)
    this.end = this.#start + size
    this.at = this.#start
  }

  /** Takes over bytes that the caller wrote directly, up to address `at`; `rows` rows ended in them. */
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

  /** Writes bytes that may be split between blocks anywhere. */
  bytes(chunk: Uint8Array): void {
    for (let from = 0; from < chunk.length; ) {
      this.reserve(1)
      const part = chunk.subarray(from, from + this.end - this.at)
      this.#memory.put(part, this.at)
      this.at += part.length
      from += part.length
    }
  }

  /** Closes the current block. */
  flush(): void {
    if (this.#start === 0) return
    const bytes = this.at - this.#start
    if (bytes > 0) this.#sink.close(this.#start, bytes, this.#rows)
    else this.#sink.drop(this.#start)
    this.#forget()
  }

  /** Frees the current block: the query has ended. */
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
