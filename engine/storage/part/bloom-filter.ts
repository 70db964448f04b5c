// Bloom filters of columns in Parquet files: whether a column may have a value, without reading its pages. Split-block
// filters with XXH64 hashes of PLAIN values, as the format defines them: a block has 32 bytes, and a value sets one bit
// in each of its eight words.

import { assert } from '../../base/assert.js'
import { parquetThrift } from './parquet-thrift.js'

const blockBytes = 32
const blockWords = blockBytes / 4
const filterBytesMax = 16 * 1024 * 1024
const salts = [
  0x47b6_137b, 0x4497_4d91, 0x8824_ad5b, 0xa2b7_289d, 0x7054_95c7, 0x2df1_424b, 0x9efc_4947, 0x5c6b_fb31,
] as const

/** The share of absent values that a part's filter does not rule out. */
export const falseShareUsual = 0.01

export class BloomFilter {
  readonly #words: Uint32Array

  /** `distinct`: upper bound of the number of distinct values. */
  constructor(distinct: number, falseShare: number) {
    this.#words = new Uint32Array(filterBytes(distinct, falseShare) / 4)
  }

  get bytes(): Uint8Array {
    return new Uint8Array(this.#words.buffer)
  }

  /** Adds hashes, each of which is two words of the array, the lower one first. */
  add(hashes: Uint32Array, count: number): void {
    assert(hashes.length >= count * 2, 'K2: a Bloom filter is given as many hashes as are counted')
    const blocks = this.#words.length / blockWords
    for (let at = 0; at < count * 2; at += 2) {
      const first = blockOf(hashes[at + 1]!, blocks)
      for (let word = 0; word < blockWords; word++)
        this.#words[first + word] = this.#words[first + word]! | bitOf(hashes[at]!, word)
    }
  }
}

/** False only if no value with the hash was added to the filter, whose words lie in the array from `start` on. */
export function mayContain(words: Uint32Array, start: number, bytes: number, hash: bigint): boolean {
  const low = Number(hash & 0xffff_ffffn)
  const first = start + blockOf(Number(hash >> 32n), bytes / blockBytes)
  for (let word = 0; word < blockWords; word++) {
    if ((words[first + word]! & bitOf(low, word)) === 0) return false
  }
  return true
}

function blockOf(high: number, blocks: number): number {
  return Math.floor((high * blocks) / 2 ** 32) * blockWords
}

function bitOf(low: number, word: number): number {
  return 1 << (Math.imul(low, salts[word] as number) >>> 27)
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
