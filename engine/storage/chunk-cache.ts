// The chunk cache: decoded pages of parts in shared memory, used by all query threads. A chunk is decoded once, stays
// where it is while anybody pins it, and goes when memory is needed and nobody asked for it lately: a clock whose hand takes
// lives. A chunk gets them when somebody asks for it again, more where it is dear to decode; of new ones only one in eight
// has any. So a scan of more than the cache holds finds most of what fits when it comes again, instead of nothing.
//
// Structure (address from createChunkCache), u32 words:
//
//   header      0 slotsPerShard | 1 bucketMask | 2 clock hand | 3 hits | 4 misses | 5 evictions |
//               6 not 0: new chunks evict others, as it seems | 7 address of the page checks (page-checks.ts) |
//               8 time: how much was wanted of a full cache, in steps of 64 KiB | 16.. address of each thread's pin counts (threadsMax)
//   shard       (shardCount times) 0 lock (0 free, else thread id + 1) | 1 first free slot + 1 | 16.. buckets: slot + 1
//   slot        (16 words) 0 state | 1 pins | 2 lives left | 3 loading thread | 4 part id low | 5 part id high |
//               6 column id | 7 page | 8 chunk address | 9 next slot + 1 | 10 slot of the chunk that this one needs + 1 |
//               11 lives that a request gives
//   pin counts  u16 a slot: how often that thread pins it
//
// A chunk is 64 bytes {slot u32} and the data behind them; who pins it holds the address of the data.
//
// Invariants:
//   1. A shard's lock guards its buckets, its free list, its slots' keys and the step of pins from 0. It is held for a
//      look-up, never while a file is read; no thread holds two.
//   2. A slot whose state is 'loading' is pinned by the thread that loads it. Others wait on the state word.
//   3. Only a ready slot without pins is evicted. A chunk that another needs (a dictionary of texts) is pinned by it.

import { assert } from '../base/assert.js'
import { ResourceError } from '../base/errors.js'
import { type Allocator, budgets } from '../memory/budgets.js'
import { threadsMax } from '../memory/layout.js'
import type { SharedMemory } from '../memory/shared-memory.js'
import { type ChunkKey, hashOf } from './chunk-key.js'
import { createPageChecks, PageChecks } from './page-checks.js'

const shardCount = 64
const headerWords = 16 + threadsMax
const shardHeaderWords = 16
const slotWords = 16
const chunkHeaderBytes = 64
/** What kernels may touch behind the data. */
const chunkSlackBytes = 128
const slotBytesExpected = 32 * 1024
/** Chunks below this may find room where others do not. */
const largeBytes = 128 * 1024
/** A waiter looks again after this long: the loading thread may have died. */
const waitMs = 50

const states = { free: 0, loading: 1, ready: 2 } as const
const word = { state: 0, pins: 1, lives: 2, loader: 3, partLow: 4, partHigh: 5, column: 6, page: 7, chunk: 8 } as const
const nextWord = 9
const counts = { hits: 3, misses: 4, evictions: 5 } as const
const fullWord = 6
const checksWord = 7
const timeWord = 8
const timeStepBytes = 64 * 1024
const needsWord = 10
const livesWord = 11

/** The page number under which a column's dictionary is cached. */
export const dictionaryPage = 0xffff_ffff

/** Added to the number of a page whose values are cached as they are packed in the file. */
export const packedPages = 0x8000_0000

/** Added to the number of a page whose texts are cached as numbers of their dictionary. */
export const codePages = 0x4000_0000

/** Gets room for a chunk's data and fills it; `needs`: data of a pinned chunk that this one points into, or 0. */
export interface ChunkLoader {
  load(room: (bytes: number) => number): { readonly needs: number; readonly cost: ChunkCost }
}

/** What making a chunk takes. */
export type ChunkCost = keyof typeof costs

/** Lives when somebody asks for the chunk again. */
const costs = {
  /** As it is in the file. */
  read: 1,
  decode: 2,
  decompress: 4,
} as const
const livesMax = costs.decompress
/** One new chunk in so many has these lives at once: what stays of a scan that comes again and again. */
const keptShare = 8
/**
 * A page that is read past a full cache comes in when less than this share of the cache was wanted since it was last
 * wanted: then it would be there when it is wanted again.
 */
const reuseShare = 0.75
/** Of the others one in so many comes in: looking for room costs more than reading the page. */
const comingShare = 64
/** The cache is full until so many large chunks have found room without evicting others. */
const fullUntil = 32

/** Makes the structure, for a cache of about so many bytes. Call once; hand the address to every thread. */
export function createChunkCache(memory: SharedMemory, allocator: Allocator, cacheBytes: number): number {
  const wanted = Math.ceil(cacheBytes / slotBytesExpected / shardCount)
  const slotsPerShard = 2 ** Math.ceil(Math.log2(Math.min(2048, Math.max(32, wanted))))
  const words = headerWords + shardCount * (shardHeaderWords + slotsPerShard + slotsPerShard * slotWords)
  const address = allocator.demand(words * 4, budgets.cache)
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

/** Counted since the start, modulo 2^32. */
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
    u32[slot + nextWord] = i + 1 < slotsPerShard ? first + i + 2 : 0
  }
}

function shardAt(base: number, shard: number, slotsPerShard: number): number {
  return base + headerWords + shard * (shardHeaderWords + slotsPerShard)
}

function slotAt(base: number, slot: number, slotsPerShard: number): number {
  return base + headerWords + shardCount * (shardHeaderWords + slotsPerShard) + slot * slotWords
}

/** The cache as one thread uses it. */
export class ChunkCache {
  readonly checks: PageChecks
  private readonly u32: Uint32Array
  private readonly i32: Int32Array
  private readonly u16: Uint16Array
  private readonly allocator: Allocator
  private readonly threadId: number
  private readonly base: number
  private readonly slotsPerShard: number
  /** Index into u16 of this thread's pin counts. */
  private readonly pinCounts: number

  constructor(memory: SharedMemory, allocator: Allocator, address: number, threadId: number) {
    assert(threadId >= 0 && threadId < threadsMax, 'a thread of the cache has an id')
    this.u32 = memory.u32
    this.i32 = memory.i32
    this.u16 = memory.u16
    this.allocator = allocator
    this.threadId = threadId
    this.base = address >>> 2
    this.slotsPerShard = this.u32[this.base] as number
    this.pinCounts = this.attach() >>> 1
    this.checks = new PageChecks(memory, this.u32[this.base + checksWord] as number)
  }

  /** Address of the chunk's data, loaded if nobody has it. Throws what the loader throws, and ResourceError. */
  pin(key: ChunkKey, loader: ChunkLoader): number {
    const shard = shardOf(key)
    for (;;) {
      this.lock(shard)
      const found = this.find(shard, key)
      const ready = found >= 0 && this.get(found, word.state) === states.ready
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

  /** Like pin, without ever waiting: 0 when the chunk is not there, or its shard is locked just now. */
  pinReady(key: ChunkKey): number {
    const shard = shardOf(key)
    const lock = shardAt(this.base, shard, this.slotsPerShard)
    if (Atomics.compareExchange(this.i32, lock, 0, this.threadId + 1) !== 0) return 0
    const found = this.find(shard, key)
    const ready = found >= 0 && this.get(found, word.state) === states.ready
    if (ready) this.countPin(found, true)
    this.unlock(shard)
    if (!ready) return 0
    Atomics.add(this.u32, this.base + counts.hits, 1)
    return this.dataOf(found)
  }

  /** Whether a new chunk drives out others, as it seems. */
  get isFull(): boolean {
    return Atomics.load(this.u32, this.base + fullWord) !== 0
  }

  /** Somebody wants so much of a full cache that is there. */
  wanted(bytes: number): void {
    Atomics.add(this.u32, this.base + timeWord, Math.ceil(bytes / timeStepBytes))
  }

  /** Whether a page that is not there need not come in, which is dear: it would be gone before it is wanted again. */
  passes({ partId, columnId, page }: ChunkKey, bytes: number): boolean {
    this.wanted(bytes)
    const since = this.checks.wantedSince(partId, columnId, page, Atomics.load(this.u32, this.base + timeWord))
    if (since * timeStepBytes < this.allocator.limit(budgets.cache) * reuseShare) return false
    if ((Atomics.load(this.u32, this.base + counts.misses) + 1) % comingShare === 0) return false
    Atomics.add(this.u32, this.base + counts.misses, 1)
    return true
  }

  /** Whether the chunk is there and ready; it may go at any time. */
  has(key: ChunkKey): boolean {
    const shard = shardOf(key)
    this.lock(shard)
    const found = this.find(shard, key)
    const ready = found >= 0 && this.get(found, word.state) === states.ready
    this.unlock(shard)
    return ready
  }

  /** Takes the address of a chunk's data. */
  unpin(data: number): void {
    this.uncountPin(this.slotOf(data))
  }

  /** Memory of the cache's budget that is not a chunk; evicts as needed. The caller frees it. Throws ResourceError. */
  reserve(bytes: number): number {
    for (;;) {
      const address = this.allocator.allocate(bytes, budgets.cache)
      if (address !== 0) return address
      if (!this.evictOne())
        throw new ResourceError(`the chunk cache is full of pinned pages [bytes=${bytes}]`, 'memory')
    }
  }

  /** Undoes what a thread that has ended left behind and others wait for: its locks and its unfinished loads. */
  endThread(threadId: number): void {
    for (let shard = 0; shard < shardCount; shard++) {
      const lock = shardAt(this.base, shard, this.slotsPerShard)
      if (Atomics.compareExchange(this.i32, lock, threadId + 1, 0) === threadId + 1) Atomics.notify(this.i32, lock)
    }
    this.unpinThread(threadId, true)
  }

  /** Gives back the pins of a thread that has ended, when nobody reads what it made of the pages any more. */
  unpinThread(threadId: number, onlyLoads = false): void {
    const counts = this.u32[this.base + 16 + threadId] as number
    if (counts === 0) return
    for (let slot = 0; slot < shardCount * this.slotsPerShard; slot++) {
      const loading = this.get(slot, word.state) === states.loading && this.get(slot, word.loader) === threadId
      if (onlyLoads && !loading) continue
      const pins = this.u16[(counts >>> 1) + slot] as number
      this.u16[(counts >>> 1) + slot] = 0
      if (pins > 0) Atomics.sub(this.u32, this.at(slot) + word.pins, pins)
      if (loading) this.giveUp(Math.floor(slot / this.slotsPerShard), slot)
    }
  }

  private attach(): number {
    const directory = this.base + 16 + this.threadId
    const known = this.u32[directory] as number
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
      assert(this.get(slot, word.chunk) !== 0, 'a loader asks for room')
      if (needs !== 0) this.giveAway(needs, slot)
      const isKept = Atomics.load(this.u32, this.base + counts.misses) % keptShare === 0
      this.put(slot, word.lives, isKept ? costs[cost] : 0)
      this.put(slot, livesWord, costs[cost])
    } catch (error) {
      this.uncountPin(slot)
      this.giveUp(shard, slot)
      throw error
    }
    this.setState(slot, states.ready)
    return this.dataOf(slot)
  }

  private roomFor(slot: number, bytes: number): number {
    assert(this.get(slot, word.chunk) === 0, 'a chunk has one room')
    const evictions = Atomics.load(this.u32, this.base + counts.evictions)
    const chunk = this.reserve(chunkHeaderBytes + bytes + chunkSlackBytes)
    const isFull = Atomics.load(this.u32, this.base + counts.evictions) !== evictions
    const left = Atomics.load(this.u32, this.base + fullWord)
    if (isFull) Atomics.store(this.u32, this.base + fullWord, fullUntil)
    else if (bytes >= largeBytes && left > 0) Atomics.store(this.u32, this.base + fullWord, left - 1)
    this.u32[chunk >>> 2] = slot
    this.put(slot, word.chunk, chunk)
    return chunk + chunkHeaderBytes
  }

  private giveUp(shard: number, slot: number): void {
    this.lock(shard)
    const chunk = this.get(slot, word.chunk)
    this.unlink(shard, slot)
    this.unlock(shard)
    if (chunk !== 0) this.allocator.free(chunk)
    Atomics.notify(this.i32, this.at(slot) + word.state)
  }

  private awaitLoad(slot: number): void {
    Atomics.wait(this.i32, this.at(slot) + word.state, states.loading, waitMs)
  }

  private setState(slot: number, state: number): void {
    Atomics.store(this.u32, this.at(slot) + word.state, state)
    Atomics.notify(this.i32, this.at(slot) + word.state)
  }

  // ---- slots of a shard; the caller holds its lock ----

  private find(shard: number, key: ChunkKey): number {
    let next = this.u32[this.bucketOf(shard, key)] as number
    while (next !== 0) {
      if (this.holds(next - 1, key)) return next - 1
      next = this.get(next - 1, nextWord)
    }
    return -1
  }

  private holds(slot: number, key: ChunkKey): boolean {
    const at = this.at(slot)
    const { u32 } = this
    return (
      u32[at + word.page] === key.page &&
      u32[at + word.column] === key.columnId &&
      u32[at + word.partLow] === key.partId >>> 0 &&
      u32[at + word.partHigh] === Math.floor(key.partId / 2 ** 32)
    )
  }

  private takeSlot(shard: number): number {
    const at = shardAt(this.base, shard, this.slotsPerShard) + 1
    const slot = (this.u32[at] as number) - 1
    if (slot >= 0) this.u32[at] = this.get(slot, nextWord)
    return slot
  }

  private claim(shard: number, slot: number, key: ChunkKey): void {
    const bucket = this.bucketOf(shard, key)
    this.put(slot, word.state, states.loading)
    this.put(slot, word.lives, 0)
    this.put(slot, word.loader, this.threadId)
    this.put(slot, word.partLow, key.partId >>> 0)
    this.put(slot, word.partHigh, Math.floor(key.partId / 2 ** 32))
    this.put(slot, word.column, key.columnId)
    this.put(slot, word.page, key.page)
    this.put(slot, word.chunk, 0)
    this.put(slot, needsWord, 0)
    this.put(slot, nextWord, this.u32[bucket] as number)
    this.u32[bucket] = slot + 1
  }

  private unlink(shard: number, slot: number): void {
    let at = this.bucketOf(shard, this.keyOf(slot))
    while (this.u32[at] !== slot + 1) at = this.at((this.u32[at] as number) - 1) + nextWord
    this.u32[at] = this.get(slot, nextWord)
    const free = shardAt(this.base, shard, this.slotsPerShard) + 1
    this.put(slot, nextWord, this.u32[free] as number)
    this.u32[free] = slot + 1
    Atomics.store(this.u32, this.at(slot) + word.state, states.free)
  }

  private keyOf(slot: number): ChunkKey {
    const partId = this.get(slot, word.partHigh) * 2 ** 32 + this.get(slot, word.partLow)
    return { partId, columnId: this.get(slot, word.column), page: this.get(slot, word.page) }
  }

  private bucketOf(shard: number, key: ChunkKey): number {
    const bucket = (hashOf(key) >>> 6) & (this.u32[this.base + 1] as number)
    return shardAt(this.base, shard, this.slotsPerShard) + shardHeaderWords + bucket
  }

  // ---- eviction ----

  /** Makes room in a shard without a free slot. */
  private makeSlot(shard: number): void {
    const first = shard * this.slotsPerShard
    for (let round = 0; round <= livesMax; round++) {
      for (let i = 0; i < this.slotsPerShard; i++) if (this.tryEvict(first + i)) return
    }
    throw new ResourceError('the chunk cache is full of pinned pages', 'memory')
  }

  private evictOne(): boolean {
    const slots = shardCount * this.slotsPerShard
    for (let i = 0; i < (livesMax + 1) * slots; i++) {
      if (this.tryEvict(Atomics.add(this.u32, this.base + 2, 1) % slots)) return true
    }
    return false
  }

  /** One touch of the clock's hand: takes a life, or the chunk. */
  private tryEvict(slot: number): boolean {
    const at = this.at(slot)
    if (Atomics.load(this.u32, at + word.state) !== states.ready) return false
    if (Atomics.load(this.u32, at + word.pins) !== 0) return false
    const lives = Atomics.load(this.u32, at + word.lives)
    if (lives !== 0) {
      Atomics.compareExchange(this.u32, at + word.lives, lives, lives - 1)
      return false
    }
    const shard = Math.floor(slot / this.slotsPerShard)
    this.lock(shard)
    const evictable = this.get(slot, word.state) === states.ready && Atomics.load(this.u32, at + word.pins) === 0
    const [chunk, needs] = [this.get(slot, word.chunk), this.get(slot, needsWord)]
    if (evictable) this.unlink(shard, slot)
    this.unlock(shard)
    if (!evictable) return false
    Atomics.add(this.u32, this.base + counts.evictions, 1)
    this.allocator.free(chunk)
    if (needs !== 0) Atomics.sub(this.u32, this.at(needs - 1) + word.pins, 1)
    return true
  }

  // ---- pins and locks ----

  /** `again`: somebody had asked for it before. */
  private countPin(slot: number, again: boolean): void {
    Atomics.add(this.u32, this.at(slot) + word.pins, 1)
    if (again) Atomics.store(this.u32, this.at(slot) + word.lives, this.get(slot, livesWord))
    this.u16[this.pinCounts + slot] = this.ownPins(slot) + 1
  }

  private uncountPin(slot: number): void {
    assert(this.ownPins(slot) > 0, 'a chunk is unpinned by the thread that pinned it')
    this.u16[this.pinCounts + slot] = this.ownPins(slot) - 1
    Atomics.sub(this.u32, this.at(slot) + word.pins, 1)
  }

  /** Hands this thread's pin over to the chunk that needs the pinned one: eviction of that chunk ends it. */
  private giveAway(data: number, needing: number): void {
    const slot = this.slotOf(data)
    assert(this.ownPins(slot) > 0, 'a pin that is given away is there')
    this.u16[this.pinCounts + slot] = this.ownPins(slot) - 1
    this.put(needing, needsWord, slot + 1)
  }

  private slotOf(data: number): number {
    return this.u32[(data - chunkHeaderBytes) >>> 2] as number
  }

  private ownPins(slot: number): number {
    return this.u16[this.pinCounts + slot] as number
  }

  private dataOf(slot: number): number {
    return this.get(slot, word.chunk) + chunkHeaderBytes
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

  private lock(shard: number): void {
    const at = shardAt(this.base, shard, this.slotsPerShard)
    for (;;) {
      const holder = Atomics.compareExchange(this.i32, at, 0, this.threadId + 1)
      if (holder === 0) return
      assert(holder !== this.threadId + 1, 'a thread locks a shard once')
      Atomics.wait(this.i32, at, holder, 1)
    }
  }

  private unlock(shard: number): void {
    const at = shardAt(this.base, shard, this.slotsPerShard)
    Atomics.store(this.i32, at, 0)
    Atomics.notify(this.i32, at, 1)
  }
}

function shardOf(key: ChunkKey): number {
  return hashOf(key) & (shardCount - 1)
}
