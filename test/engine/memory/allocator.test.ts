// Goal: the allocator of the shared memory never lets live objects overlap, counts the memory of each budget correctly,
// and has a single free run when everything is freed. Method: random allocations and frees, compared with a list of
// live intervals.

import fc from 'fast-check'
import { describe, expect, test, vi } from 'vitest'
import { allocatorPageBytes, createAllocator, initializeHeap } from '../../../engine/memory/allocator.js'
import { type Allocator, type Budget, budgets } from '../../../engine/memory/budgets.js'
import { createSharedMemory, type SharedMemory } from '../../../engine/memory/shared-memory.js'

const MIB = 1024 * 1024

function heap(bytes: number, limit: number): { memory: SharedMemory; allocator: Allocator } {
  const memory = createSharedMemory(bytes)
  initializeHeap(memory, { limits: [limit, limit, limit, limit, limit] })
  return { memory, allocator: createAllocator(memory, 0) }
}

interface Live {
  readonly address: number
  readonly bytes: number
}

function overlaps(live: readonly Live[], address: number, bytes: number): boolean {
  return live.some((other) => address < other.address + other.bytes && other.address < address + bytes)
}

describe('allocator', () => {
  const step = fc.record({
    bytes: fc.oneof(fc.integer({ min: 1, max: 40_000 }), fc.integer({ min: 1, max: 900_000 })),
    free: fc.nat(),
    budget: fc.integer({ min: 0, max: 4 }),
  })

  test('live objects never overlap and all memory comes back', () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 200 }), (steps) => {
        const { memory, allocator } = heap(24 * MIB, 64 * MIB)
        const live: Live[] = []
        for (const { bytes, free, budget } of steps) {
          const address = allocator.allocate(bytes, budget as Budget)
          if (address !== 0) {
            expect(address % 64).toBe(0)
            expect(overlaps(live, address, bytes)).toBe(false)
            memory.u8.fill(0xee, address, address + bytes)
            live.push({ address, bytes })
          }
          if (free % 3 > 0 && live.length > 0) allocator.free((live.splice(free % live.length, 1)[0] as Live).address)
        }
        for (const { address } of live) allocator.free(address)
        for (const budget of Object.values(budgets)) expect(allocator.used(budget)).toBe(0)
        expect(allocator.allocate(19 * MIB, budgets.queries)).toBeGreaterThan(0)
      }),
      { numRuns: 60 },
    )
  })

  test('a budget refuses what exceeds it and says so', () => {
    const { allocator } = heap(16 * MIB, 1 * MIB)
    expect(allocator.allocate(2 * MIB, budgets.cache)).toBe(0)
    expect(allocator.used(budgets.cache)).toBe(0)
    expect(() => allocator.allocateOrThrow(2 * MIB, budgets.cache)).toThrow(
      'out of memory [budget=cache, bytes=2097152, setting=memory.bytes]',
    )
    expect(allocator.allocate(8 * allocatorPageBytes, budgets.cache)).toBeGreaterThan(0)
  })

  test('a refused allocation never takes from others, not even for a moment', () => {
    const { allocator } = heap(7.5 * MIB, 4 * MIB)
    expect(allocator.allocate(2 * MIB, budgets.queries)).toBeGreaterThan(0)
    const most: number[] = []
    const add = Atomics.add
    const spy = vi.spyOn(Atomics, 'add').mockImplementation((...args: Parameters<typeof add>) => {
      const before = add(...args)
      most.push(allocator.used(budgets.queries))
      return before
    })
    try {
      expect(allocator.allocate(3 * MIB, budgets.queries)).toBe(0)
      // Within the limit, but no run of pages is that long.
      expect(allocator.allocate(1.5 * MIB, budgets.queries)).toBe(0)
    } finally {
      spy.mockRestore()
    }
    expect(most.filter((used) => used !== 2 * MIB)).toEqual([])
  })

  test('an exhausted memory answers 0 whatever the budget says', () => {
    const { allocator } = heap(8 * MIB, 64 * MIB)
    expect(allocator.allocate(9 * MIB, budgets.ingest)).toBe(0)
    expect(allocator.used(budgets.ingest)).toBe(0)
  })

  test('a region is whole for its budget, however broken the rest is', () => {
    const memory = createSharedMemory(24 * MIB)
    const limits = [24 * MIB, 24 * MIB, 24 * MIB, 24 * MIB, 8 * MIB]
    initializeHeap(memory, { limits, regions: [budgets.flush] })
    const allocator = createAllocator(memory, 0)
    const taken: number[] = []
    for (;;) {
      const address = allocator.allocate(allocatorPageBytes, budgets.memtables)
      if (address === 0) break
      taken.push(address)
    }
    expect(taken.length * allocatorPageBytes).toBeLessThan(16 * MIB)
    taken.filter((_, index) => index % 2 === 0).forEach((address) => void allocator.free(address))
    expect(allocator.allocate(2 * allocatorPageBytes, budgets.queries)).toBe(0)
    for (let round = 0; round < 3; round++) {
      const one = allocator.allocate(3 * MIB, budgets.flush)
      const two = allocator.allocate(5 * MIB, budgets.flush)
      expect(Math.min(one, two)).toBeGreaterThan(0)
      expect(allocator.allocate(1, budgets.flush)).toBe(0)
      for (const address of round === 0 ? [one, two] : [two, one]) allocator.free(address)
    }
    taken.filter((_, index) => index % 2 === 1).forEach((address) => void allocator.free(address))
    expect(allocator.allocate(11 * MIB, budgets.memtables)).toBeGreaterThan(0)
    expect(allocator.allocate(8 * MIB, budgets.flush)).toBeGreaterThan(0)
  })

  test('what is lent is what the memtables leave at the moment', () => {
    const memory = createSharedMemory(24 * MIB)
    initializeHeap(memory, { limits: [0, 8 * MIB, MIB, 0, MIB, 6 * MIB], regions: [budgets.cache] })
    const allocator = createAllocator(memory, 0)
    const lent = allocator.allocate(5 * MIB, budgets.lent)
    expect(lent).toBeGreaterThan(0)
    expect(allocator.allocate(2 * MIB, budgets.lent)).toBe(0)
    // The memtables have all of their limit, whatever is lent; from then on nothing is.
    const blocks = [4, 4].map((size) => allocator.allocate(size * MIB, budgets.memtables))
    expect(Math.min(...blocks)).toBeGreaterThan(0)
    expect(allocator.limit(budgets.lent)).toBe(0)
    allocator.free(lent)
    expect(allocator.allocate(1, budgets.lent)).toBe(0)
    allocator.free(blocks[0] as number)
    expect(allocator.limit(budgets.lent)).toBe(2 * MIB)
    expect(allocator.allocate(2 * MIB, budgets.lent)).toBeGreaterThan(0)
  })
})
