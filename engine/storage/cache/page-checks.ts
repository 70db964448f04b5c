// Remembers in shared memory which pages of Parquet files were found to have a valid checksum, so that not every read
// verifies it: verification costs about as much as a read from the file system's cache. The first read of a page
// verifies its checksum, later ones about one time in 64. Also remembers when a page was last requested, by which the
// full chunk cache (chunk-cache.ts) decides whether to cache it.
//
// Structure (address from createPageChecks), a set-associative hash table of u32 words: 0 mask of the sets | from 16 on
// the entries, four for each set | then one time for each entry. A page hashes to a set:
//
//   word   0 = empty, else reads since the last verification (6 bits, from 1) | tag of the page (26 bits)
//   time   of the last request, on the chunk cache's clock of requests; 0 = unknown
//
// There are deliberately no locks, because a lost update does no harm: the page is only verified once more, and so is a
// page that a full set drops. Two pages with the same set and tag share an entry, so the second is first verified after
// at most 64 reads.
//
// Pages are immutable and ids of files (parts) are not reused, so entries of removed files are harmless.

import { assert } from '../../base/assert.js'
import type { Allocator } from '../../memory/budgets.js'
import { budgets } from '../../memory/budgets.js'
import type { SharedMemory } from '../../memory/shared-memory.js'
import type { ChunkKey } from './chunk-key.js'

const headerWords = 16
const waysMax = 4
const countBits = 6
const countMask = 63
/** Bytes of cache per entry. Pages are rarely smaller; the table takes 8 bytes for each, 0.8 % of the cache. */
const cacheBytesPerWord = 1024
const wordsMin = 1024

/** Creates the structure for a cache of that many bytes. Call once. */
export function createPageChecks(memory: SharedMemory, allocator: Allocator, cacheBytes: number): number {
  const words = 2 ** Math.floor(Math.log2(Math.max(wordsMin, cacheBytes / cacheBytesPerWord)))
  assert(words % waysMax === 0, 'K2: sets of pages are whole')
  const address = allocator.allocateOrThrow((headerWords + words * 2) * 4, budgets.cache)
  const base = address >>> 2
  memory.u32.fill(0, base, base + headerWords + words * 2)
  memory.u32[base] = words / waysMax - 1
  return address
}

/** One thread's handle to the table. */
export class PageChecks {
  private readonly u32: Uint32Array
  private readonly base: number

  constructor({ u32 }: SharedMemory, address: number) {
    this.u32 = u32
    this.base = address >>> 2
  }

  /** Counts a read. True: the caller verifies the checksum and calls remember() if it is right. */
  isDue(key: ChunkKey): boolean {
    const { u32 } = this
    const tag = tagOf(key)
    const set = this.setOf(key)
    for (let at = set; at < set + waysMax; at++) {
      const word = Atomics.load(u32, at)
      if (word >>> countBits !== tag || word === 0) continue
      if ((word & countMask) === countMask) return true
      Atomics.store(u32, at, word + 1)
      return false
    }
    return true
  }

  /** Requests since the page was last requested, or Infinity if unknown. `now` is the current clock of requests. */
  wantedSince(key: ChunkKey, now: number): number {
    const { u32 } = this
    const tag = tagOf(key)
    const set = this.setOf(key)
    const times = (u32[this.base]! + 1) * waysMax
    for (let at = set; at < set + waysMax; at++) {
      const word = Atomics.load(u32, at)
      if (word >>> countBits !== tag || word === 0) continue
      const before = Atomics.exchange(u32, at + times, now)
      return before === 0 ? Number.POSITIVE_INFINITY : (now - before) >>> 0
    }
    return Number.POSITIVE_INFINITY
  }

  /** Records that the page's checksum was right. */
  remember(key: ChunkKey): void {
    const { u32 } = this
    const tag = tagOf(key)
    const set = this.setOf(key)
    let place = set + (tag & (waysMax - 1))
    for (let at = set + waysMax - 1; at >= set; at--) {
      const word = Atomics.load(u32, at)
      if (word === 0) place = at
      if (word === 0 || word >>> countBits !== tag) continue
      Atomics.store(u32, at, (tag << countBits) | 1)
      return
    }
    // The counts start at different values, so that pages first read together do not all come due together.
    Atomics.store(u32, place, (tag << countBits) | (1 + (Math.imul(key.page, 37) % (countMask - 1))))
  }

  private setOf({ partLow, columnId, page }: ChunkKey): number {
    const hash = mixed(Math.imul(partLow, 0x9e37_79b1) ^ Math.imul(columnId + 1, 0x85eb_ca77) ^ (page + 1))
    return this.base + headerWords + (hash & this.u32[this.base]!) * waysMax
  }
}

/** From a different hash than the set. */
function tagOf({ partLow, partHigh, columnId, page }: ChunkKey): number {
  return (
    mixed(
      Math.imul(partLow + partHigh, 0x27d4_eb2f) ^ Math.imul(columnId + 7, 0x1656_67b1) ^ Math.imul(page, 0xc2b2_ae3d),
    ) >>> countBits
  )
}

function mixed(value: number): number {
  let hash = value ^ (value >>> 15)
  hash = Math.imul(hash, 0x2c1b_3c6d)
  hash ^= hash >>> 12
  hash = Math.imul(hash, 0x297a_2d39)
  return (hash ^ (hash >>> 15)) >>> 0
}
