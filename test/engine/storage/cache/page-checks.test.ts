// Goal: the checksum of a page of a data file is verified at the first read by any thread, and then again at least once
// in 64 reads. These repeated verifications are spread over time, so that few pages of one scan are verified at once.

import fc from 'fast-check'
import { expect, test } from 'vitest'
import { createAllocator, initializeHeap } from '../../../../engine/memory/allocator.js'
import { createSharedMemory } from '../../../../engine/memory/shared-memory.js'
import { chunkKey } from '../../../../engine/storage/cache/chunk-key.js'
import { createPageChecks, PageChecks } from '../../../../engine/storage/cache/page-checks.js'

const MIB = 1024 * 1024

/** Checks of two threads over the same memory. */
function twoThreads(cacheBytes = 16 * MIB): [PageChecks, PageChecks] {
  const memory = createSharedMemory(16 * MIB)
  initializeHeap(memory, { limits: [MIB, MIB, MIB, MIB, MIB] })
  const address = createPageChecks(memory, createAllocator(memory, 0), cacheBytes)
  return [new PageChecks(memory, address), new PageChecks(memory, address)]
}

/** Reads a page; whether its checksum was compared. */
function read(checks: PageChecks, partId: number, columnId: number, page: number): boolean {
  const key = chunkKey(partId, columnId, page)
  const isDue = checks.isDue(key)
  if (isDue) checks.remember(key)
  return isDue
}

test('what one thread has compared another need not', () => {
  const [one, other] = twoThreads()
  expect(read(one, 7, 2, 3)).toBe(true)
  expect(read(other, 7, 2, 3)).toBe(false)
  expect(read(one, 7, 2, 3)).toBe(false)
  for (const [part, column, page] of [
    [8, 2, 3],
    [7, 3, 3],
    [7, 2, 4],
    [7 + 2 ** 32, 2, 3],
  ] as const)
    expect(read(other, part, column, page)).toBe(true)
})

test('how much was wanted since a page was last wanted is known over all threads', () => {
  const [one, other] = twoThreads()
  expect(one.wantedSince(chunkKey(7, 2, 3), 100)).toBe(Number.POSITIVE_INFINITY)
  read(one, 7, 2, 3)
  expect(one.wantedSince(chunkKey(7, 2, 3), 110)).toBe(Number.POSITIVE_INFINITY)
  expect(other.wantedSince(chunkKey(7, 2, 3), 150)).toBe(40)
  expect(one.wantedSince(chunkKey(7, 2, 3), 151)).toBe(1)
  expect(one.wantedSince(chunkKey(7, 2, 4), 152)).toBe(Number.POSITIVE_INFINITY)
  expect(one.wantedSince(chunkKey(7, 2, 3), 2 ** 32 - 1)).toBe(2 ** 32 - 152)
  expect(one.wantedSince(chunkKey(7, 2, 3), 5)).toBe(6)
})

test('a page whose checksum was not found right stays due', () => {
  const [one, other] = twoThreads()
  expect(one.isDue(chunkKey(1, 1, 1))).toBe(true)
  expect(other.isDue(chunkKey(1, 1, 1))).toBe(true)
})

test('every page is compared again within 64 readings, and few of a scan at once', () => {
  const page = fc.record({ part: fc.integer({ min: 1, max: 2 ** 40 }), column: fc.integer({ min: 0, max: 2000 }) })
  fc.assert(
    fc.property(page, ({ part, column }) => {
      const [one, other] = twoThreads()
      const pages = 256
      const since = new Int32Array(pages)
      let longest = 0
      let most = 0
      for (let scan = 0; scan < 200; scan++) {
        let compared = 0
        for (let at = 0; at < pages; at++) {
          const isDue = read((scan + at) % 2 === 0 ? one : other, part, column, at)
          if (isDue) compared++
          since[at] = isDue ? 0 : since[at]! + 1
          longest = Math.max(longest, since[at]!)
        }
        if (scan > 0) most = Math.max(most, compared)
      }
      expect(longest).toBeLessThan(64)
      expect(most).toBeLessThan(pages / 8)
    }),
    { numRuns: 20 },
  )
})

test('more pages than there is room for are compared more often, never taken for compared', () => {
  const [one] = twoThreads(MIB)
  const seen = new Set<number>()
  for (let part = 1; part <= 5000; part++) {
    expect(read(one, part, 0, 0)).toBe(true)
    seen.add(part)
  }
  const forgotten = [...seen].filter((part) => one.isDue(chunkKey(part, 0, 0))).length
  expect(forgotten).toBeGreaterThan(3000)
  expect(forgotten).toBeLessThan(5000)
})
