// Bytes on their way out: blocks of shared memory that are posted when full. Rows may be cut between blocks; readers see
// one stream of bytes.
//
// Invariant: reserve(n) is called before at most n bytes are put.

import type { SharedMemory } from '../../memory/shared-memory.js'

const blockBytesFirst = 16 * 1024
const blockBytes = 128 * 1024

export interface ByteSink {
  /** A new block of at least so many bytes. */
  open(bytes: number): number
  /** The block belongs to the reader from now on; `rows` end in it. */
  close(address: number, bytes: number, rows: number): void
  /** Gives an empty block back. */
  drop(address: number): void
}

export class ByteWriter {
  readonly u8: Uint8Array
  /** Where the next byte goes. */
  at = 0
  readonly #sink: ByteSink
  #start = 0
  #end = 0
  #rows = 0
  #blocks = 0

  constructor(memory: SharedMemory, sink: ByteSink) {
    this.u8 = memory.u8
    this.#sink = sink
  }

  reserve(bytes: number): void {
    if (this.at + bytes <= this.#end) return
    this.flush()
    const size = Math.max(bytes, this.#blocks++ === 0 ? blockBytesFirst : blockBytes)
    this.#start = this.#sink.open(size)
    this.#end = this.#start + size
    this.at = this.#start
  }

  rowEnded(): void {
    this.#rows++
  }

  /** Posts what there is. */
  flush(): void {
    if (this.#start === 0) return
    const bytes = this.at - this.#start
    if (bytes > 0) this.#sink.close(this.#start, bytes, this.#rows)
    else this.#sink.drop(this.#start)
    this.#start = 0
    this.#end = 0
    this.at = 0
    this.#rows = 0
  }

  /** Gives the block under way back: the query has ended. */
  abandon(): void {
    if (this.#start !== 0) this.#sink.drop(this.#start)
    this.#start = 0
    this.#end = 0
    this.at = 0
  }

  /** Characters of ASCII; reserves for itself. */
  ascii(text: string): void {
    this.reserve(text.length)
    for (let index = 0; index < text.length; index++) this.u8[this.at++] = text.charCodeAt(index)
  }

  /** Bytes of shared memory as they are; reserves for itself. */
  bytes(address: number, count: number): void {
    this.reserve(count)
    this.u8.copyWithin(this.at, address, address + count)
    this.at += count
  }
}
