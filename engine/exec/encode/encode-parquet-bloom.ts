// Writes the Bloom filters of exported Parquet files, by which readers skip row groups that do not contain a value.
//
// Hashes are collected while pages are encoded. The size of a filter is computed from the number of values and the
// requested false positive rate, and rounded up to a power of two.

import { BloomFilter } from '../../storage/part/bloom-filter.js'
import type { Scratch } from '../../storage/part/part-scratch.js'

export class BloomHashes {
  readonly #falseShare: number
  #words = new Uint32Array(2048)
  #count = 0

  constructor(falseShare: number) {
    this.#falseShare = falseShare
  }

  /** Adds hashes that a kernel has written. */
  add({ memory }: Scratch, address: number, count: number): void {
    this.#reserve(count)
    this.#words.set(memory.u32.subarray(address >>> 2, (address >>> 2) + count * 2), this.#count * 2)
    this.#count += count
  }

  addOne(hash: bigint): void {
    this.#reserve(1)
    this.#words[this.#count * 2] = Number(hash & 0xffff_ffffn)
    this.#words[this.#count * 2 + 1] = Number(hash >> 32n)
    this.#count++
  }

  #reserve(count: number): void {
    const wanted = (this.#count + count) * 2
    if (wanted <= this.#words.length) return
    const grown = new Uint32Array(Math.max(wanted, this.#words.length * 2))
    grown.set(this.#words.subarray(0, this.#count * 2))
    this.#words = grown
  }

  /**
   * Returns the filter of the added hashes, and removes them. `distinct`: upper bound of the distinct values, if known.
   */
  filter(distinct: number | null): Uint8Array {
    const filter = new BloomFilter(Math.min(distinct ?? this.#count, this.#count), this.#falseShare)
    filter.add(this.#words, this.#count)
    this.#count = 0
    return filter.bytes
  }
}
