// StringHeap: allocates, in the query's memory, the bytes of strings, BINARY and ARRAY values. Vectors hold only the
// address and length of each value. The bytes stay valid until the owner of the vectors resets or frees the heap.

import type { QueryArena } from './query-arena.js'

const chunkBytesFirst = 4096
const chunkBytesMax = 1024 * 1024

export class StringHeap {
  readonly #arena: QueryArena
  #chunks: { readonly address: number; readonly bytes: number }[] = []
  #next = 0
  #end = 0

  constructor(arena: QueryArena) {
    this.#arena = arena
  }

  /** Allocates room for this many bytes, aligned to 8. */
  reserve(bytes: number): number {
    const span = Math.ceil(bytes / 8) * 8
    if (this.#next + span > this.#end) this.#grow(span)
    const address = this.#next
    this.#next += span
    return address
  }

  /** Copies bytes within shared memory; returns their new address. */
  copy(source: number, bytes: number): number {
    const address = this.reserve(bytes)
    this.#arena.memory.u8.copyWithin(address, source, source + bytes)
    return address
  }

  put(bytes: Uint8Array): number {
    const address = this.reserve(bytes.length)
    this.#arena.memory.u8.set(bytes, address)
    return address
  }

  /** Discards all bytes, and keeps the largest chunk for reuse. */
  reset(): void {
    if (this.#chunks.length > 1) {
      const retained = this.#chunks[this.#chunks.length - 1] as { address: number; bytes: number }
      for (const chunk of this.#chunks) if (chunk !== retained) this.#arena.give(chunk.address)
      this.#chunks = [retained]
      this.#end = retained.address + retained.bytes
    }
    this.#next = this.#chunks[0]?.address ?? 0
  }

  /** Bytes allocated from the arena. */
  get bytes(): number {
    return this.#chunks.reduce((sum, { bytes }) => sum + bytes, 0)
  }

  /** Addresses of the chunks. */
  get areas(): number[] {
    return this.#chunks.map(({ address }) => address)
  }

  free(): void {
    for (const { address } of this.#chunks) this.#arena.give(address)
    this.#chunks = []
    this.#next = 0
    this.#end = 0
  }

  #grow(bytes: number): void {
    const size = Math.max(bytes, Math.min(chunkBytesMax, chunkBytesFirst << Math.min(8, this.#chunks.length)))
    const address = this.#arena.take(size)
    this.#chunks.push({ address, bytes: size })
    this.#next = address
    this.#end = address + size
  }
}
