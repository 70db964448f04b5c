// The memtables' side of memory that they lend the chunk cache.

import { type Allocator, budgets } from '../../memory/budgets.js'
import type { ChunkCache } from '../cache/chunk-cache.js'

/** The allocator of who fills memtables: what the cache has of their memory is theirs again when they need it. */
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
  const demand: Allocator['demand'] = (bytes, budget) => allocate(bytes, budget) || allocator.demand(bytes, budget)
  return { ...allocator, allocate, demand }
}
