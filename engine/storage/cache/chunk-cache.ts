// The chunk cache: decoded pages of parts in shared memory, used by all query threads. A chunk is decoded once, stays
// where it is while anybody pins it, and goes when memory is needed and nobody asked for it lately: a clock whose hand takes
// lives. A chunk gets them when somebody asks for it again, more where it is dear to decode; of new ones only one in eight
// has any. So a scan of more than the cache holds finds most of what fits when it comes again, instead of nothing.
// The structure is in chunk-slots.ts.
//
// Invariants:
//   1. A shard's lock guards its buckets, its free list, its slots' keys and the step of pins from 0. It is held for a
//      look-up, never while a file is read; no thread holds two.
//   2. A slot whose state is 'loading' is pinned by the thread that loads it. Others wait on the state word.
//   3. Only a ready slot without pins is evicted. A chunk that another needs (a dictionary of texts) is pinned by it.
//   4. Chunks come into memory that the memtables do not use when there is no other without evicting. When the memtables
//      find no room, those of them that nobody pins go at once (giveBack): that memory is no place for what stays.

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

/** Chunks below this may find room where others do not. */
const largeBytes = 128 * 1024
/** A waiter looks again after this long: the loading thread may have died. */
const waitMs = 50
const timeStepBytes = 64 * 1024

/** The page number under which a column's dictionary is cached. */
export const dictionaryPage = 0x7fff_ffff

/** Added to the number of a page whose values are cached as they are packed in the file. */
export const packedPages = 0x2000_0000

/** Added to the number of a page whose texts are cached as numbers of their dictionary. */
export const codePages = 0x4000_0000

/** Added to the number of a page whose rows are listed by symbol (symbol-lists.ts). */
export const rowPages = 0x6000_0000

/** Gets room for a chunk's data and fills it; `needs`: data of a pinned chunk that this one points into, or 0. */
export interface ChunkLoader {
  load(room: (bytes: number) => number): { readonly needs: number; readonly cost: ChunkCost }
}

/** What parts want of the chunk cache. */
export type PageCache = Pick<
  ChunkCache,
  'pin' | 'pinReady' | 'wanted' | 'passes' | 'isFull' | 'has' | 'unpin' | 'reserve' | 'checks'
>

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

  /** Address of the chunk's data, loaded if nobody has it. Throws what the loader throws, and ResourceError. */
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

  /** Like pin, without ever waiting: 0 when the chunk is not there, or its shard is locked just now. */
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

  /** Whether a new chunk drives out others, as it seems. */
  get isFull(): boolean {
    return Atomics.load(this.u32, this.base + fullWord) !== 0
  }

  /** Somebody wants so much of a full cache that is there. */
  wanted(bytes: number): void {
    Atomics.add(this.u32, this.base + timeWord, Math.ceil(bytes / timeStepBytes))
  }

  /** Whether a page that is not there need not come in, which is dear: it would be gone before it is wanted again. */
  passes(key: ChunkKey, bytes: number): boolean {
    this.wanted(bytes)
    const since = this.checks.wantedSince(key, Atomics.load(this.u32, this.base + timeWord))
    const holds = this.allocator.limit(budgets.cache) + this.allocator.limit(budgets.lent)
    if (since * timeStepBytes < holds * reuseShare) return false
    if ((Atomics.load(this.u32, this.base + counts.misses) + 1) % comingShare === 0) return false
    Atomics.add(this.u32, this.base + counts.misses, 1)
    return true
  }

  /** Whether the chunk is there and ready; it may go at any time. */
  has(key: ChunkKey): boolean {
    const shard = shardOf(key)
    this.lock(shard)
    const found = this.find(shard, key)
    const ready = found >= 0 && this.get(found, slotWord.state) === slotStates.ready
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
      this.demandEviction(bytes)
    }
  }

  /** Gives the memtables back what they lent. False: there was nothing, or all of it is pinned. */
  giveBack(): boolean {
    if (this.allocator.used(budgets.lent) === 0) return false
    let any = false
    for (let slot = 0; slot < shardCount * this.slotsPerShard; slot++) {
      if (this.get(slot, slotWord.lent) !== 0 && this.isIdle(slot) && this.evict(slot)) any = true
    }
    return any
  }

  /** Undoes what a thread that has ended left behind and others wait for: its locks and its unfinished loads. */
  endThread(threadId: number): void {
    for (let shard = 0; shard < shardCount; shard++) breakLock(this.i32, this.lockOf(shard), threadId)
    this.unpinThread(threadId, true)
  }

  /** Gives back the pins of a thread that has ended, when nobody reads what it made of the pages any more. */
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
      const isKept = Atomics.load(this.u32, this.base + counts.misses) % keptShare === 0
      this.put(slot, slotWord.lives, isKept ? costs[cost] : 0)
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
        this.put(slot, slotWord.lent, own === 0 ? 1 : 0)
        return address
      }
      this.demandEviction(bytes)
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

  /** Makes room in a shard without a free slot. */
  private makeSlot(shard: number): void {
    const first = shard * this.slotsPerShard
    for (let round = 0; round <= livesMax; round++) {
      for (let i = 0; i < this.slotsPerShard; i++) if (this.tryEvict(first + i)) return
    }
    throw new ResourceError('the chunk cache is full of pinned pages', 'memory')
  }

  private demandEviction(bytes: number): void {
    if (!this.evictOne()) throw new ResourceError(`the chunk cache is full of pinned pages [bytes=${bytes}]`, 'memory')
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

  /** False: somebody was faster. */
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

  /** `again`: somebody had asked for it before. */
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

  /** Hands this thread's pin over to the chunk that needs the pinned one: eviction of that chunk ends it. */
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
