// Which pages of parts were read with a right checksum, over all threads: the checksum costs about as much as reading the
// page from the file system's cache, so it is compared at the first reading and at one in 64 behind it.
//
// Structure (address from createPageChecks), u32 words: 0 mask of the sets | 16.. sets of 4 words | as many words of times.
// A page has a place in the set that its hash names:
//
//   word   0 = none, else readings since the checksum was compared (6 bits, from 1 on) | tag of the page (26 bits)
//   time   of the chunk cache, when the page was last wanted, 0 = not known
//
// Deliberately without locks, and inexact in a harmless way: when two threads write at once, one of them is forgotten and
// its page compared once more; a set that is full forgets one. A page that shares set and tag with another is taken for
// it, and so compared later: within 64 readings.
//
// Pages never change, and no part gets the id of another, so what is remembered of a part that is gone does no harm.

import { assert } from '../../base/assert.js'
import type { Allocator } from '../../memory/budgets.js'
import { budgets } from '../../memory/budgets.js'
import type { SharedMemory } from '../../memory/shared-memory.js'
import type { ChunkKey } from './chunk-key.js'

const headerWords = 16
const waysMax = 4
const countBits = 6
const countMask = 63
/** Bytes of the cache for which there is a page: one is rarely smaller, and this is eight thousandths of them. */
const cacheBytesPerWord = 1024
const wordsMin = 1024

/** Makes the structure, for a cache of so many bytes. Call once. */
export function createPageChecks(memory: SharedMemory, allocator: Allocator, cacheBytes: number): number {
  const words = 2 ** Math.floor(Math.log2(Math.max(wordsMin, cacheBytes / cacheBytesPerWord)))
  assert(words % waysMax === 0, 'K2: sets of pages are whole')
  const address = allocator.demand((headerWords + words * 2) * 4, budgets.cache)
  const base = address >>> 2
  memory.u32.fill(0, base, base + headerWords + words * 2)
  memory.u32[base] = words / waysMax - 1
  return address
}

/** As one thread uses it. */
export class PageChecks {
  private readonly u32: Uint32Array
  private readonly base: number

  constructor({ u32 }: SharedMemory, address: number) {
    this.u32 = u32
    this.base = address >>> 2
  }

  /** Counts a reading; true: its checksum is to be compared, and remember() called when it is right. */
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

  /** How much was wanted since the page was last wanted; Infinity when that is not known. `now` is what was wanted in all. */
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

  /** The page's checksum was right. */
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
    // Counts begin anywhere: pages that were first read by one query are not all compared again by another one.
    Atomics.store(u32, place, (tag << countBits) | (1 + (Math.imul(key.page, 37) % (countMask - 1))))
  }

  private setOf({ partLow, columnId, page }: ChunkKey): number {
    const hash = mixed(Math.imul(partLow, 0x9e37_79b1) ^ Math.imul(columnId + 1, 0x85eb_ca77) ^ (page + 1))
    return this.base + headerWords + (hash & this.u32[this.base]!) * waysMax
  }
}

/** Of another hash than the set. */
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
