// Allocator wrapper for the writer: when memtables need memory that the chunk cache (the cache of decoded pages) has
// borrowed from their budget, it reclaims the memory from the cache.

import { type Allocator, budgets } from '../../memory/budgets.js'
import type { ChunkCache } from '../cache/chunk-cache.js'

/** The allocator, which evicts the cache's borrowed chunks when memtables run out of memory within their budget. */
export function reclaiming(allocator: Allocator, cache: Pick<ChunkCache, 'giveBack'>): Allocator {
  const fits = (bytes: number): boolean => {
    return allocator.used(budgets.memtables) + bytes <= allocator.limit(budgets.memtables)
  }
  const allocate: Allocator['allocate'] = (bytes, budget) => {
    for (;;) {
      const address = allocator.allocate(bytes, budget)
      if (address !== 0 || budget !== budgets.memtables || !fits(bytes) || !cache.giveBack()) return address
    }
  }
  const allocateOrThrow: Allocator['allocateOrThrow'] = (bytes, budget) =>
    allocate(bytes, budget) || allocator.allocateOrThrow(bytes, budget)
  return { ...allocator, allocate, allocateOrThrow }
}
