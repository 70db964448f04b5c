// Layout of the chunk cache, the buffer pool for decoded pages, in shared memory: counters, and a hash table in shards
// with a lock each. Each cached page (chunk) has a slot. This file also creates the cache; chunk-cache.ts implements
// lookup, pinning, and eviction by a clock hand that visits the slots in turn.
//
// Structure (address from createChunkCache), u32 words:
//
//   header      0 slotsPerShard | 1 bucketMask | 2 clock hand | 3 hits | 4 misses | 5 evictions |
//               6 not 0: new chunks probably evict others | 7 address of the page checks (page-checks.ts) |
//               8 bytes requested so far while the cache was full, in 64 KiB: tells how long ago a page was requested |
//               16.. address of the pin counts of each thread; 0 if it has none yet
//   shard       (shardCount times) 0 lock (memory/thread-lock.ts) | 1 first free slot + 1 | 16.. buckets: slot + 1
//   slot        (16 words) 0 state | 1 pins | 2 lives left: passes of the clock hand that the page survives |
//               3 loading thread | 4, 5 id of the part (data file), low and high word | 6 column id | 7 page |
//               8 chunk address | 9 next slot + 1 | 10 slot + 1 of a chunk that this one refers to (a dictionary),
//               which stays pinned as long as this one is cached; 0: none | 11 lives that the page gets when it is
//               used again | 12 not 0: the chunk is in memory borrowed from the memtables
//   pin counts  an array for each thread, u16 per slot: how many of the slot's pins the thread holds
//
// A chunk in memory is a 64-byte header {slot u32} followed by the data. Users hold the address of the data.

import { type Allocator, budgets } from '../../memory/budgets.js'
import { threadsMax } from '../../memory/layout.js'
import type { SharedMemory } from '../../memory/shared-memory.js'
import { createPageChecks } from './page-checks.js'

export const shardCount = 64
const headerWords = 16 + threadsMax
export const shardHeaderWords = 16
const slotWords = 16
export const chunkHeaderBytes = 64
/** Bytes after the data that kernels may read. */
export const chunkSlackBytes = 128
const slotBytesExpected = 32 * 1024

export const slotStates = { free: 0, loading: 1, ready: 2 } as const
export const slotWord = {
  state: 0,
  pins: 1,
  lives: 2,
  loader: 3,
  partLow: 4,
  partHigh: 5,
  column: 6,
  page: 7,
  chunk: 8,
  next: 9,
  needs: 10,
  livesGiven: 11,
  borrowed: 12,
} as const
export const counts = { hits: 3, misses: 4, evictions: 5 } as const
export const fullWord = 6
export const checksWord = 7
export const timeWord = 8

/** Creates the structure for a cache of about `cacheBytes`. Call once and pass the address to every thread. */
export function createChunkCache(memory: SharedMemory, allocator: Allocator, cacheBytes: number): number {
  const wanted = Math.ceil(cacheBytes / slotBytesExpected / shardCount)
  const slotsPerShard = 2 ** Math.ceil(Math.log2(Math.min(2048, Math.max(32, wanted))))
  const words = headerWords + shardCount * (shardHeaderWords + slotsPerShard + slotsPerShard * slotWords)
  const address = allocator.allocateOrThrow(words * 4, budgets.cache)
  const base = address >>> 2
  memory.u32.fill(0, base, base + words)
  memory.u32[base] = slotsPerShard
  memory.u32[base + 1] = slotsPerShard - 1
  memory.u32[base + checksWord] = createPageChecks(memory, allocator, cacheBytes)
  for (let shard = 0; shard < shardCount; shard++) linkFreeSlots(memory.u32, base, shard, slotsPerShard)
  return address
}

export interface CacheCounts {
  readonly hits: number
  readonly misses: number
  readonly evictions: number
}

/** Counters since the start, modulo 2^32. */
export function cacheCounts({ u32 }: SharedMemory, address: number): CacheCounts {
  const base = address >>> 2
  const count = (at: number): number => Atomics.load(u32, base + at)
  return { hits: count(counts.hits), misses: count(counts.misses), evictions: count(counts.evictions) }
}

function linkFreeSlots(u32: Uint32Array, base: number, shard: number, slotsPerShard: number): void {
  const first = shard * slotsPerShard
  u32[shardAt(base, shard, slotsPerShard) + 1] = first + 1
  for (let i = 0; i < slotsPerShard; i++) {
    const slot = slotAt(base, first + i, slotsPerShard)
    u32[slot + slotWord.next] = i + 1 < slotsPerShard ? first + i + 2 : 0
  }
}

export function shardAt(base: number, shard: number, slotsPerShard: number): number {
  return base + headerWords + shard * (shardHeaderWords + slotsPerShard)
}

export function slotAt(base: number, slot: number, slotsPerShard: number): number {
  return base + headerWords + shardCount * (shardHeaderWords + slotsPerShard) + slot * slotWords
}
