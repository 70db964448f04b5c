// Writes the Bloom filters of exported Parquet files, by which readers skip row groups that do not contain a value.
// Format: split-block filters with XXH64 hashes.
//
// Hashes are collected while pages are encoded. The size of a filter is computed from the number of values and the
// requested false positive rate, and rounded up to a power of two. A block has 32 bytes; a value sets one bit in each
// of its eight words.

import { parquetThrift } from '../../storage/part/parquet-thrift.js'
import type { Scratch } from '../../storage/part/part-scratch.js'

const blockBytes = 32
const filterBytesMax = 16 * 1024 * 1024
const salts = [
  0x47b6_137b, 0x4497_4d91, 0x8824_ad5b, 0xa2b7_289d, 0x7054_95c7, 0x2df1_424b, 0x9efc_4947, 0x5c6b_fb31,
] as const

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
    const filter = new Uint32Array(filterBytes(Math.min(distinct ?? this.#count, this.#count), this.#falseShare) / 4)
    const blocks = filter.length / 8
    for (let at = 0; at < this.#count * 2; at += 2) {
      const low = this.#words[at]!
      const first = Math.floor((this.#words[at + 1]! * blocks) / 2 ** 32) * 8
      for (let word = 0; word < 8; word++) {
        const bit = Math.imul(low, salts[word] as number) >>> 27
        filter[first + word] = filter[first + word]! | (1 << bit)
      }
    }
    this.#count = 0
    return new Uint8Array(filter.buffer)
  }
}

function filterBytes(distinct: number, falseShare: number): number {
  const bits = (-8 * Math.max(1, distinct)) / Math.log(1 - falseShare ** (1 / 8))
  return Math.min(filterBytesMax, Math.max(blockBytes, 2 ** Math.ceil(Math.log2(bits / 8))))
}

/** The header of a filter with this many bytes. */
export function bloomHeader(numBytes: number): Buffer {
  const { types, serialize } = parquetThrift()
  return serialize(
    new types.BloomFilterHeader({
      numBytes,
      algorithm: new types.BloomFilterAlgorithm({ BLOCK: new types.SplitBlockAlgorithm() }),
      hash: new types.BloomFilterHash({ XXHASH: new types.XxHash() }),
      compression: new types.BloomFilterCompression({ UNCOMPRESSED: new types.Uncompressed() }),
    }),
  )
}
