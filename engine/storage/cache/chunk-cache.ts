// The chunk cache: a buffer pool in shared memory for decoded pages of Parquet files (chunks) and what is derived from
// them. All query threads share it. A chunk keeps its address while a thread pins it.
//
// Eviction uses the clock algorithm and resists scans. Each chunk has a small counter, its lives. When the clock hand
// meets an unpinned chunk, it decrements the counter or, if it is 0, evicts the chunk. A further use sets the counter,
// higher for chunks that are expensive to decode. A new chunk starts with 0, except one in eight, so a repeated scan of
// more data than fits still finds a part of it. While the cache is full, most pages that would be evicted before their
// next use are read without being cached (passes). chunk-slots.ts has the layout.
//
// Invariants:
//   1. A shard's lock guards its buckets, its free list, the keys of its slots and any change of a pin count from 0. It
//      is held for a lookup, never during file I/O. No thread holds two shard locks.
//   2. A slot in state 'loading' is pinned by the thread that loads it. Other threads wait on its state word.
//   3. Only a ready slot without pins is evicted. A chunk pins the chunk it depends on (a string dictionary).
//   4. When the cache's own budget is used up, chunks are placed in memory that the memtables do not use, before any
//      chunk is evicted. When the memtables need that memory, all unpinned chunks in it are evicted at once (giveBack).

import { assert } from '../../base/assert.js'
import { ResourceError } from '../../base/errors.js'
import { type Allocator, budgets } from '../../memory/budgets.js'
import { threadsMax } from '../../memory/layout.js'
import type { SharedMemory } from '../../memory/shared-memory.js'
import { breakLock, lock, tryLock, unlock } from '../../memory/thread-lock.js'
import { type ChunkKey, hashOf } from './chunk-key.js'
import {
  checksWord,
  chunkHeaderBytes,
  chunkSlackBytes,
  counts,
  fullWord,
  shardAt,
  shardCount,
  shardHeaderWords,
  slotAt,
  slotStates,
  slotWord,
  timeWord,
} from './chunk-slots.js'
import { PageChecks } from './page-checks.js'

/** Only chunks of at least this size tell whether the cache still has room: a small one fits into almost any gap. */
const largeBytes = 128 * 1024
/** Timeout in ms of a wait for another thread's load, because that thread may have died. */
const waitMs = 50
const timeStepBytes = 64 * 1024

/** Page number under which a column's dictionary is cached. */
export const dictionaryPage = 0x7fff_ffff

/** Page number under which the list of the newest row of each symbol is cached. */
export const newestPage = 0x7fff_fffe

/** Page number under which a column's Bloom filter is cached. */
export const bloomPage = 0x7fff_fffd

/** Added to the page number of a page's index of keys (part/page-keys.ts). */
export const keyPages = 0x1000_0000

/** Added to the page number of a page that is cached in its encoded form, as stored in the file. */
export const packedPages = 0x2000_0000

/** Added to the page number of a page of strings that is cached as dictionary codes. */
export const codePages = 0x4000_0000

/** Added to the page number of a page's inverted index by symbol (inverted-index.ts). */
export const rowPages = 0x6000_0000

/** Allocates memory for a chunk and fills it. `needs`: address of the pinned chunk that this one refers to, or 0. */
export interface ChunkLoader {
  load(room: (bytes: number) => number): { readonly needs: number; readonly cost: ChunkCost }
}

/** The part of the cache that readers of parts use. */
export type PageCache = Pick<
  ChunkCache,
  'pin' | 'pinReady' | 'wanted' | 'passes' | 'isFull' | 'has' | 'unpin' | 'reserve' | 'checks'
>

/** How a chunk is produced, which decides how many lives it gets. */
export type ChunkCost = keyof typeof costs

/** Lives that a chunk gets when it is used again. */
const costs = {
  /** Copied from the file unchanged. */
  read: 1,
  decode: 2,
  decompress: 4,
} as const
const livesMax = costs.decompress
/** One in this many new chunks starts with lives, so that a part of a repeated scan stays in the cache. */
const retainedFraction = 8
/**
 * While the cache is full, a missing page is admitted if less than this share of the cache has been requested since the
 * page was last requested: it would probably still be cached at its next use.
 */
const reuseShare = 0.75
/**
 * Of all other pages one in this many is admitted, because evicting chunks costs more than reading the page uncached.
 */
const comingShare = 64
/** The cache counts as full until this many large chunks were placed without an eviction. */
const fullUntil = 32

/** One thread's handle to the cache. */
export class ChunkCache {
  readonly checks: PageChecks
  private readonly u32: Uint32Array
  private readonly i32: Int32Array
  private readonly u16: Uint16Array
  private readonly allocator: Allocator
  private readonly threadId: number
  private readonly base: number
  private readonly slotsPerShard: number
  /** Index into u16 of this thread's table of pin counts. */
  private readonly pinCounts: number

  constructor(memory: SharedMemory, allocator: Allocator, address: number, threadId: number) {
    assert(threadId >= 0 && threadId < threadsMax, 'S4: a thread of the cache has an id')
    this.u32 = memory.u32
    this.i32 = memory.i32
    this.u16 = memory.u16
    this.allocator = allocator
    this.threadId = threadId
    this.base = address >>> 2
    this.slotsPerShard = this.u32[this.base]!
    this.pinCounts = this.attach() >>> 1
    this.checks = new PageChecks(memory, this.u32[this.base + checksWord]!)
  }

  /**
   * Pins a chunk and returns the address of its data; loads it on a miss. Throws the loader's errors and ResourceError.
   */
  pin(key: ChunkKey, loader: ChunkLoader): number {
    const shard = shardOf(key)
    for (;;) {
      this.lock(shard)
      const found = this.find(shard, key)
      const ready = found >= 0 && this.get(found, slotWord.state) === slotStates.ready
      const claimed = found < 0 ? this.takeSlot(shard) : -1
      if (claimed >= 0) this.claim(shard, claimed, key)
      if (ready || claimed >= 0) this.countPin(ready ? found : claimed, ready)
      this.unlock(shard)
      if (ready || claimed >= 0) Atomics.add(this.u32, this.base + (ready ? counts.hits : counts.misses), 1)
      if (ready) return this.dataOf(found)
      if (claimed >= 0) return this.load(shard, claimed, loader)
      if (found >= 0) this.awaitLoad(found)
      else this.makeSlot(shard)
    }
  }

  /** Like pin, but never waits: returns 0 when the chunk is not cached or its shard is locked. */
  pinReady(key: ChunkKey): number {
    const shard = shardOf(key)
    if (!tryLock(this.i32, this.lockOf(shard), this.threadId)) return 0
    const found = this.find(shard, key)
    const ready = found >= 0 && this.get(found, slotWord.state) === slotStates.ready
    if (ready) this.countPin(found, true)
    this.unlock(shard)
    if (!ready) return 0
    Atomics.add(this.u32, this.base + counts.hits, 1)
    return this.dataOf(found)
  }

  /** Whether new chunks are currently placed by evicting others (a heuristic). */
  get isFull(): boolean {
    return Atomics.load(this.u32, this.base + fullWord) !== 0
  }

  /** Records a request of that many bytes that found its page in the full cache; see `passes`. */
  wanted(bytes: number): void {
    Atomics.add(this.u32, this.base + timeWord, Math.ceil(bytes / timeStepBytes))
  }

  /** Whether to read a missing page without caching it, because it would be evicted before its next use. */
  passes(key: ChunkKey, bytes: number): boolean {
    this.wanted(bytes)
    const since = this.checks.wantedSince(key, Atomics.load(this.u32, this.base + timeWord))
    const holds = this.allocator.limit(budgets.cache) + this.allocator.limit(budgets.lent)
    if (since * timeStepBytes < holds * reuseShare) return false
    if ((Atomics.load(this.u32, this.base + counts.misses) + 1) % comingShare === 0) return false
    Atomics.add(this.u32, this.base + counts.misses, 1)
    return true
  }

  /** Whether the chunk is cached and ready; it may be evicted at any time. */
  has(key: ChunkKey): boolean {
    const shard = shardOf(key)
    this.lock(shard)
    const found = this.find(shard, key)
    const ready = found >= 0 && this.get(found, slotWord.state) === slotStates.ready
    this.unlock(shard)
    return ready
  }

  /** Releases a pin. `data` is the address that pin returned. */
  unpin(data: number): void {
    this.uncountPin(this.slotOf(data))
  }

  /** Allocates memory from the cache's budget for something else, evicting chunks as needed. The caller frees it. */
  reserve(bytes: number): number {
    for (;;) {
      const address = this.allocator.allocate(bytes, budgets.cache)
      if (address !== 0) return address
      this.requireEviction(bytes)
    }
  }

  /** Returns borrowed memory to the memtables. False if there is none, or all of it is pinned. */
  giveBack(): boolean {
    if (this.allocator.used(budgets.lent) === 0) return false
    let any = false
    for (let slot = 0; slot < shardCount * this.slotsPerShard; slot++) {
      if (this.get(slot, slotWord.borrowed) !== 0 && this.isIdle(slot) && this.evict(slot)) any = true
    }
    return any
  }

  /** Cleans up after a terminated thread what other threads wait for: its locks and its unfinished loads. */
  endThread(threadId: number): void {
    for (let shard = 0; shard < shardCount; shard++) breakLock(this.i32, this.lockOf(shard), threadId)
    this.unpinThread(threadId, true)
  }

  /** Releases all pins of a terminated thread, once nothing reads the results it made from these pages. */
  unpinThread(threadId: number, onlyLoads = false): void {
    const counts = this.u32[this.base + 16 + threadId]!
    if (counts === 0) return
    for (let slot = 0; slot < shardCount * this.slotsPerShard; slot++) {
      const loading =
        this.get(slot, slotWord.state) === slotStates.loading && this.get(slot, slotWord.loader) === threadId
      if (onlyLoads && !loading) continue
      const pins = this.u16[(counts >>> 1) + slot]!
      this.u16[(counts >>> 1) + slot] = 0
      if (pins > 0) Atomics.sub(this.u32, this.at(slot) + slotWord.pins, pins)
      if (loading) this.giveUp(Math.floor(slot / this.slotsPerShard), slot)
    }
  }

  private attach(): number {
    const directory = this.base + 16 + this.threadId
    const known = this.u32[directory]!
    if (known !== 0) return known
    const bytes = shardCount * this.slotsPerShard * 2
    const counts = this.reserve(bytes)
    this.u16.fill(0, counts >>> 1, (counts + bytes) >>> 1)
    this.u32[directory] = counts
    return counts
  }

  private load(shard: number, slot: number, loader: ChunkLoader): number {
    try {
      const { needs, cost } = loader.load((bytes) => this.roomFor(slot, bytes))
      assert(this.get(slot, slotWord.chunk) !== 0, 'S4: a loader asks for room')
      if (needs !== 0) this.giveAway(needs, slot)
      const isRetained = Atomics.load(this.u32, this.base + counts.misses) % retainedFraction === 0
      this.put(slot, slotWord.lives, isRetained ? costs[cost] : 0)
      this.put(slot, slotWord.livesGiven, costs[cost])
    } catch (error) {
      this.uncountPin(slot)
      this.giveUp(shard, slot)
      throw error
    }
    this.setState(slot, slotStates.ready)
    return this.dataOf(slot)
  }

  private roomFor(slot: number, bytes: number): number {
    assert(this.get(slot, slotWord.chunk) === 0, 'S4: a chunk has one room')
    const evictions = Atomics.load(this.u32, this.base + counts.evictions)
    const chunk = this.reserveChunk(slot, chunkHeaderBytes + bytes + chunkSlackBytes)
    const isFull = Atomics.load(this.u32, this.base + counts.evictions) !== evictions
    const left = Atomics.load(this.u32, this.base + fullWord)
    if (isFull) Atomics.store(this.u32, this.base + fullWord, fullUntil)
    else if (bytes >= largeBytes && left > 0) Atomics.store(this.u32, this.base + fullWord, left - 1)
    this.u32[chunk >>> 2] = slot
    this.put(slot, slotWord.chunk, chunk)
    return chunk + chunkHeaderBytes
  }

  private reserveChunk(slot: number, bytes: number): number {
    for (;;) {
      const own = this.allocator.allocate(bytes, budgets.cache)
      const address = own === 0 ? this.allocator.allocate(bytes, budgets.lent) : own
      if (address !== 0) {
        this.put(slot, slotWord.borrowed, own === 0 ? 1 : 0)
        return address
      }
      this.requireEviction(bytes)
    }
  }

  private giveUp(shard: number, slot: number): void {
    this.lock(shard)
    const chunk = this.get(slot, slotWord.chunk)
    this.unlink(shard, slot)
    this.unlock(shard)
    if (chunk !== 0) this.allocator.free(chunk)
    Atomics.notify(this.i32, this.at(slot) + slotWord.state)
  }

  private awaitLoad(slot: number): void {
    Atomics.wait(this.i32, this.at(slot) + slotWord.state, slotStates.loading, waitMs)
  }

  private setState(slot: number, state: number): void {
    assert(this.get(slot, slotWord.state) === slotStates.loading, 'S4: a chunk is loaded once')
    Atomics.store(this.u32, this.at(slot) + slotWord.state, state)
    Atomics.notify(this.i32, this.at(slot) + slotWord.state)
  }

  // ---- slots of a shard; the caller holds its lock ----

  private find(shard: number, key: ChunkKey): number {
    let next = this.u32[this.bucketOf(shard, key)]!
    while (next !== 0) {
      if (this.holds(next - 1, key)) return next - 1
      next = this.get(next - 1, slotWord.next)
    }
    return -1
  }

  private holds(slot: number, key: ChunkKey): boolean {
    const at = this.at(slot)
    const { u32 } = this
    return (
      u32[at + slotWord.page] === key.page &&
      u32[at + slotWord.column] === key.columnId &&
      u32[at + slotWord.partLow] === key.partLow >>> 0 &&
      u32[at + slotWord.partHigh] === key.partHigh
    )
  }

  private takeSlot(shard: number): number {
    const at = shardAt(this.base, shard, this.slotsPerShard) + 1
    const slot = this.u32[at]! - 1
    if (slot >= 0) this.u32[at] = this.get(slot, slotWord.next)
    return slot
  }

  private claim(shard: number, slot: number, key: ChunkKey): void {
    const bucket = this.bucketOf(shard, key)
    assert(this.get(slot, slotWord.pins) === 0, 'S4: a free slot has no pins')
    this.put(slot, slotWord.state, slotStates.loading)
    this.put(slot, slotWord.lives, 0)
    this.put(slot, slotWord.loader, this.threadId)
    this.put(slot, slotWord.partLow, key.partLow)
    this.put(slot, slotWord.partHigh, key.partHigh)
    this.put(slot, slotWord.column, key.columnId)
    this.put(slot, slotWord.page, key.page)
    this.put(slot, slotWord.chunk, 0)
    this.put(slot, slotWord.needs, 0)
    this.put(slot, slotWord.next, this.u32[bucket]!)
    this.u32[bucket] = slot + 1
  }

  private unlink(shard: number, slot: number): void {
    let at = this.bucketOf(shard, this.keyOf(slot))
    while (this.u32[at] !== slot + 1) at = this.at(this.u32[at]! - 1) + slotWord.next
    this.u32[at] = this.get(slot, slotWord.next)
    const free = shardAt(this.base, shard, this.slotsPerShard) + 1
    this.put(slot, slotWord.next, this.u32[free]!)
    this.u32[free] = slot + 1
    Atomics.store(this.u32, this.at(slot) + slotWord.state, slotStates.free)
  }

  private keyOf(slot: number): ChunkKey {
    return {
      partLow: this.get(slot, slotWord.partLow) | 0,
      partHigh: this.get(slot, slotWord.partHigh),
      columnId: this.get(slot, slotWord.column),
      page: this.get(slot, slotWord.page),
    }
  }

  private bucketOf(shard: number, key: ChunkKey): number {
    const bucket = (hashOf(key) >>> 6) & this.u32[this.base + 1]!
    return shardAt(this.base, shard, this.slotsPerShard) + shardHeaderWords + bucket
  }

  // ---- eviction ----

  /** Frees a slot in a shard that has no free one, by evicting a chunk. */
  private makeSlot(shard: number): void {
    const first = shard * this.slotsPerShard
    for (let round = 0; round <= livesMax; round++) {
      for (let i = 0; i < this.slotsPerShard; i++) if (this.tryEvict(first + i)) return
    }
    throw new ResourceError('the chunk cache is full of pinned pages', 'memory')
  }

  private requireEviction(bytes: number): void {
    if (!this.evictOne()) throw new ResourceError(`the chunk cache is full of pinned pages [bytes=${bytes}]`, 'memory')
  }

  private evictOne(): boolean {
    const slots = shardCount * this.slotsPerShard
    for (let i = 0; i < (livesMax + 1) * slots; i++) {
      if (this.tryEvict(Atomics.add(this.u32, this.base + 2, 1) % slots)) return true
    }
    return false
  }

  /** One step of the clock hand: takes a life from the chunk, or evicts it. */
  private tryEvict(slot: number): boolean {
    if (!this.isIdle(slot)) return false
    const at = this.at(slot)
    const lives = Atomics.load(this.u32, at + slotWord.lives)
    if (lives !== 0) {
      Atomics.compareExchange(this.u32, at + slotWord.lives, lives, lives - 1)
      return false
    }
    return this.evict(slot)
  }

  private isIdle(slot: number): boolean {
    return this.get(slot, slotWord.state) === slotStates.ready && this.get(slot, slotWord.pins) === 0
  }

  /** Returns false if another thread pinned or evicted the chunk first. */
  private evict(slot: number): boolean {
    const shard = Math.floor(slot / this.slotsPerShard)
    this.lock(shard)
    const evictable = this.isIdle(slot)
    const [chunk, needs] = [this.get(slot, slotWord.chunk), this.get(slot, slotWord.needs)]
    if (evictable) this.unlink(shard, slot)
    this.unlock(shard)
    if (!evictable) return false
    Atomics.add(this.u32, this.base + counts.evictions, 1)
    this.allocator.free(chunk)
    if (needs === 0) return true
    const pins = Atomics.sub(this.u32, this.at(needs - 1) + slotWord.pins, 1)
    assert(pins > 0, 'S4: a chunk that another needs is pinned by it')
    return true
  }

  // ---- pins and locks ----

  /** `again`: the chunk was already cached, so it gets its lives. */
  private countPin(slot: number, again: boolean): void {
    Atomics.add(this.u32, this.at(slot) + slotWord.pins, 1)
    if (again) Atomics.store(this.u32, this.at(slot) + slotWord.lives, this.get(slot, slotWord.livesGiven))
    this.u16[this.pinCounts + slot] = this.ownPins(slot) + 1
  }

  private uncountPin(slot: number): void {
    assert(this.ownPins(slot) > 0, 'S4: a chunk is unpinned by the thread that pinned it')
    this.u16[this.pinCounts + slot] = this.ownPins(slot) - 1
    Atomics.sub(this.u32, this.at(slot) + slotWord.pins, 1)
  }

  /** Transfers this thread's pin to the chunk that depends on the pinned one; evicting that chunk releases it. */
  private giveAway(data: number, needing: number): void {
    const slot = this.slotOf(data)
    assert(this.ownPins(slot) > 0, 'S4: a pin that is given away is there')
    this.u16[this.pinCounts + slot] = this.ownPins(slot) - 1
    assert(this.get(slot, slotWord.state) === slotStates.ready, 'S4: a chunk needs one that is loaded')
    this.put(needing, slotWord.needs, slot + 1)
  }

  private slotOf(data: number): number {
    return this.u32[(data - chunkHeaderBytes) >>> 2]!
  }

  private ownPins(slot: number): number {
    return this.u16[this.pinCounts + slot]!
  }

  private dataOf(slot: number): number {
    return this.get(slot, slotWord.chunk) + chunkHeaderBytes
  }

  private at(slot: number): number {
    return slotAt(this.base, slot, this.slotsPerShard)
  }

  private get(slot: number, name: number): number {
    return Atomics.load(this.u32, this.at(slot) + name)
  }

  private put(slot: number, name: number, value: number): void {
    Atomics.store(this.u32, this.at(slot) + name, value)
  }

  private lockOf(shard: number): number {
    return shardAt(this.base, shard, this.slotsPerShard)
  }

  private lock(shard: number): void {
    lock(this.i32, this.lockOf(shard), this.threadId)
  }

  private unlock(shard: number): void {
    unlock(this.i32, this.lockOf(shard))
  }
}

function shardOf(key: ChunkKey): number {
  return hashOf(key) & (shardCount - 1)
}
