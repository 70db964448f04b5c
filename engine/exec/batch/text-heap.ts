// Bytes that entries of text, BINARY and ARRAY vectors point at. A heap is reset by who owns the vectors; what was put
// before stays readable until then.

import type { QuerySpace } from './query-space.js'

const chunkBytesFirst = 4096
const chunkBytesMax = 1024 * 1024

export class TextHeap {
  readonly #space: QuerySpace
  #chunks: { readonly address: number; readonly bytes: number }[] = []
  #next = 0
  #end = 0

  constructor(space: QuerySpace) {
    this.#space = space
  }

  /** Room for so many bytes, aligned to 8. */
  reserve(bytes: number): number {
    const span = Math.ceil(bytes / 8) * 8
    if (this.#next + span > this.#end) this.#grow(span)
    const address = this.#next
    this.#next += span
    return address
  }

  /** Copies bytes that lie in shared memory; answers where. */
  copy(source: number, bytes: number): number {
    const address = this.reserve(bytes)
    this.#space.memory.u8.copyWithin(address, source, source + bytes)
    return address
  }

  put(bytes: Uint8Array): number {
    const address = this.reserve(bytes.length)
    this.#space.memory.u8.set(bytes, address)
    return address
  }

  /** Forgets all bytes; the largest chunk is kept. */
  reset(): void {
    if (this.#chunks.length > 1) {
      const kept = this.#chunks[this.#chunks.length - 1] as { address: number; bytes: number }
      for (const chunk of this.#chunks) if (chunk !== kept) this.#space.give(chunk.address)
      this.#chunks = [kept]
      this.#end = kept.address + kept.bytes
    }
    this.#next = this.#chunks[0]?.address ?? 0
  }

  /** What was taken of the space. */
  get bytes(): number {
    return this.#chunks.reduce((sum, { bytes }) => sum + bytes, 0)
  }

  /** Addresses of what was taken of the space. */
  get areas(): number[] {
    return this.#chunks.map(({ address }) => address)
  }

  free(): void {
    for (const { address } of this.#chunks) this.#space.give(address)
    this.#chunks = []
    this.#next = 0
    this.#end = 0
  }

  #grow(bytes: number): void {
    const size = Math.max(bytes, Math.min(chunkBytesMax, chunkBytesFirst << Math.min(8, this.#chunks.length)))
    const address = this.#space.take(size)
    this.#chunks.push({ address, bytes: size })
    this.#next = address
    this.#end = address + size
  }
}
