// Goal: the chunk cache (buffer pool for decoded pages of data files) loads a page once while it stays, keeps the
// address of pinned pages, releases the pins of a dead thread, keeps a page while another one depends on it, and gives
// memory that the memtables lend back when they need it. Several threads are represented by several ChunkCache objects
// on one memory.

import { describe, expect, test } from 'vitest'
import { ResourceError } from '../../../../engine/base/errors.js'
import { createAllocator, initializeHeap } from '../../../../engine/memory/allocator.js'
import { budgets } from '../../../../engine/memory/budgets.js'
import { createSharedMemory } from '../../../../engine/memory/shared-memory.js'
import { ChunkCache, type ChunkLoader, dictionaryPage } from '../../../../engine/storage/cache/chunk-cache.js'
import { chunkKey } from '../../../../engine/storage/cache/chunk-key.js'
import { createChunkCache } from '../../../../engine/storage/cache/chunk-slots.js'
import { reclaiming } from '../../../../engine/storage/memtable/reclaimed-memory.js'
import { random } from '../part-support.js'

const MIB = 1024 * 1024

function threads(count: number, cacheMiB = 4) {
  const memory = createSharedMemory(32 * MIB)
  initializeHeap(memory, { limits: [0, 0, cacheMiB * MIB, 0, 0] })
  const address = createChunkCache(memory, createAllocator(memory, 0), cacheMiB * MIB)
  const caches = Array.from(
    { length: count },
    (_, id) => new ChunkCache(memory, createAllocator(memory, id), address, id),
  )
  return { memory, caches, used: () => createAllocator(memory, 0).used(budgets.cache) }
}

/** Fills the chunk with its number and counts the loads. */
function loaderOf(
  memory: ReturnType<typeof threads>['memory'],
  bytes: number,
  value: number,
  loads: number[],
): ChunkLoader {
  return {
    load: (room) => {
      loads.push(value)
      const data = room(bytes)
      memory.u32.fill(value, data >>> 2, (data + bytes) >>> 2)
      return { needs: 0, cost: 'read' }
    },
  }
}

test.each([2 ** 31 - 1, 2 ** 31, 2 ** 32 - 1, 2 ** 32, 2 ** 40 + 2 ** 31, 2 ** 52 + 2 ** 32 - 1])(
  'pages of the part %i are found',
  (partId) => {
    const { memory, caches } = threads(1)
    const [cache] = caches
    const loads: number[] = []
    const key = chunkKey(partId, 3, 5)
    for (let round = 0; round < 3; round++) cache?.unpin(cache.pin(key, loaderOf(memory, 8192, 9, loads)))
    expect(loads).toEqual([9])
  },
)

test('any sequence of pins by several threads: one load while it stays, right content, within the budget', () => {
  const seed = 20_240_314
  const next = random(seed)
  const { memory, caches, used } = threads(3)
  const held: { thread: number; data: number; value: number }[] = []
  const loads: number[] = []
  for (let step = 0; step < 20_000; step++) {
    const thread = Math.floor(next() * 3)
    if (held.length > 30 || (held.length > 0 && next() < 0.5)) {
      const [entry] = held.splice(Math.floor(next() * held.length), 1)
      if (entry === undefined) continue
      expect([memory.u32[entry.data >>> 2], memory.u32[(entry.data + 8188) >>> 2]], `seed ${seed}`).toEqual([
        ...[entry.value, entry.value],
      ])
      caches[entry.thread]?.unpin(entry.data)
    } else {
      const value = Math.floor(next() * 600)
      const key = chunkKey(2 ** 40 + (value % 7), value % 11, value)
      const before = loads.length
      const data = caches[thread]?.pin(key, loaderOf(memory, 8192, value, loads)) as number
      if (held.some((other) => other.value === value)) expect(loads.length).toBe(before)
      held.push({ thread, data, value })
    }
    expect(used()).toBeLessThanOrEqual(4 * MIB)
  }
  expect(loads.length).toBeLessThan(10_000)
})

test('a failed load leaves nothing behind; the next one tries again', () => {
  const { memory, caches } = threads(1)
  const cache = caches[0] as ChunkCache
  const key = chunkKey(1, 2, 3)
  const failing: ChunkLoader = {
    load: (room) => {
      room(1000)
      throw new ResourceError('no')
    },
  }
  for (let i = 0; i < 5000; i++) expect(() => cache.pin(key, failing)).toThrow(ResourceError)
  const data = cache.pin(key, loaderOf(memory, 64, 9, []))
  expect(memory.u32[data >>> 2]).toBe(9)
})

test('pins, loads and locks of a dead thread are given back', () => {
  const { memory, caches } = threads(2, 1)
  const [dead, alive] = caches as [ChunkCache, ChunkCache]
  const loads: number[] = []
  const key = (page: number) => chunkKey(1, 1, page)
  const pinned: number[] = []
  const fill = () => {
    for (let page = 0; page < 100; page++) pinned.push(dead.pin(key(page), loaderOf(memory, 30_000, page, loads)))
  }
  expect(fill).toThrow(ResourceError)
  expect(() => alive.pin(key(500), loaderOf(memory, 30_000, 500, loads))).toThrow(ResourceError)
  // Dies in the middle of a load: an error that never reaches pin() stands for the end of the thread.
  let interrupted = false
  const stuck: ChunkLoader = {
    load: () => {
      interrupted = true
      alive.endThread(0)
      alive.unpinThread(0)
      const data = alive.pin(key(700), loaderOf(memory, 64, 700, loads))
      expect(memory.u32[data >>> 2]).toBe(700)
      alive.unpin(data)
      throw new Error('dead')
    },
  }
  for (const data of pinned.splice(0, 2)) dead.unpin(data)
  expect(() => dead.pin(key(700), stuck)).toThrow()
  expect(interrupted).toBe(true)
  const data = alive.pin(key(500), loaderOf(memory, 30_000, 500, loads))
  expect(memory.u32[data >>> 2]).toBe(500)
})

test('a chunk that another needs stays until that one is evicted', () => {
  const { memory, caches } = threads(1, 1)
  const cache = caches[0] as ChunkCache
  const loads: number[] = []
  const dictionary = chunkKey(1, 1, dictionaryPage)
  const needed = 424_242
  const page = chunkKey(1, 1, 0)
  const data = cache.pin(page, {
    load: (room) => {
      const inner = cache.pin(dictionary, loaderOf(memory, 1024, needed, loads))
      const own = room(64)
      memory.u32[own >>> 2] = inner
      return { needs: inner, cost: 'read' }
    },
  })
  const churn = (from: number) => {
    for (let i = from; i < from + 200; i++) {
      cache.unpin(cache.pin(chunkKey(2, 1, i), loaderOf(memory, 30_000, i, loads)))
    }
  }
  churn(0)
  expect(memory.u32[memory.u32[data >>> 2]! >>> 2]).toBe(needed)
  expect(loads.filter((value) => value === needed)).toHaveLength(1)
  cache.unpin(data)
  churn(1000)
  churn(2000)
  cache.unpin(cache.pin(dictionary, loaderOf(memory, 1024, needed, loads)))
  expect(loads.filter((value) => value === needed)).toHaveLength(2)
})

test('a full cache takes pages that will be there when they are wanted again, and few of others', () => {
  const { memory, caches } = threads(1)
  const cache = caches[0] as ChunkCache
  const bytes = 128 * 1024
  /** As a scan does it that may read pages past the cache. */
  const scan = (partId: number, pages: number): string[] =>
    Array.from({ length: pages }, (_, page) => {
      const key = chunkKey(partId, 1, page)
      const known = cache.pinReady(key)
      if (known !== 0) {
        cache.wanted(bytes)
        cache.unpin(known)
        return 'there'
      }
      if (cache.passes(key, bytes)) {
        if (cache.checks.isDue(key)) cache.checks.remember(key)
        return 'past'
      }
      cache.unpin(cache.pin(key, loaderOf(memory, bytes, page, [])))
      return 'in'
    })
  for (let page = 0; page < 64; page++) {
    cache.unpin(cache.pin(chunkKey(1, 1, page), loaderOf(memory, bytes, page, [])))
  }
  expect(cache.isFull).toBe(true)
  for (let round = 0; round < 4; round++) scan(2, 8)
  expect(scan(2, 8)).toEqual(Array.from({ length: 8 }, () => 'there'))
  const large = Array.from({ length: 10 }, () => scan(3, 64)).flat()
  expect(large.filter((what) => what === 'in').length).toBeLessThan(large.length / 32)
})

describe('memory that the memtables lend', () => {
  const chunkBytes = 200 * 1024

  /** 4 MiB for the cache, 11 for memtables, of which 9 are lent, and no others. */
  function lending() {
    const memory = createSharedMemory(20 * MIB)
    initializeHeap(memory, { limits: [0, 11 * MIB, 4 * MIB, 0, 0, 9 * MIB], regions: [budgets.cache] })
    const plain = createAllocator(memory, 0)
    const cache = new ChunkCache(memory, plain, createChunkCache(memory, plain, 13 * MIB), 0)
    const loads: number[] = []
    const pin = (value: number): number => {
      return cache.pin(chunkKey(1, 1, value), loaderOf(memory, chunkBytes, value, loads))
    }
    const fill = (chunks: number): void => {
      for (let value = 0; value < chunks; value++) cache.unpin(pin(value))
    }
    return { ...{ memory, plain, cache, loads, pin, fill }, writers: reclaiming(plain, cache) }
  }

  test('holds chunks that are found again, and is the memtables again when they find no room', () => {
    const { plain, writers, loads, fill } = lending()
    fill(45)
    expect(plain.used(budgets.lent)).toBeGreaterThan(7 * MIB)
    fill(45)
    expect(loads).toHaveLength(45)
    expect(plain.allocate(8 * MIB, budgets.memtables)).toBe(0)
    const block = writers.allocateOrThrow(8 * MIB, budgets.memtables)
    expect(block).toBeGreaterThan(0)
    expect(plain.used(budgets.lent)).toBe(0)
    // What was there and is read again finds a place of less.
    fill(45)
    expect(loads.length).toBeGreaterThan(70)
    expect(plain.used(budgets.lent)).toBeLessThanOrEqual(MIB)
    plain.free(block)
    fill(45)
    expect(plain.used(budgets.lent)).toBeGreaterThan(7 * MIB)
  })

  test('what is pinned there stays where it is, and nothing goes for a block that has no right to it', () => {
    const { memory, plain, cache, writers, pin, fill } = lending()
    fill(45)
    const [data, lent] = [pin(40), plain.used(budgets.lent)]
    expect(writers.allocate(12 * MIB, budgets.memtables)).toBe(0)
    expect(() => writers.allocateOrThrow(12 * MIB, budgets.memtables)).toThrow('out of memory [budget=memtables')
    expect(plain.used(budgets.lent)).toBe(lent)
    let blocks = 0
    while (writers.allocate(MIB, budgets.memtables) !== 0) blocks++
    expect(blocks).toBeGreaterThanOrEqual(10)
    expect(plain.used(budgets.lent)).toBe(256 * 1024)
    expect(new Set(memory.u32.subarray(data >>> 2, (data + chunkBytes) >>> 2))).toEqual(new Set([40]))
    cache.unpin(data)
    expect(cache.giveBack()).toBe(true)
    expect(cache.giveBack()).toBe(false)
    expect(plain.used(budgets.lent)).toBe(0)
  })
})
