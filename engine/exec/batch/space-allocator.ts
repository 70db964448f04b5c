// Scratch memory of operators and encoders, out of the memory of their query.

import type { Allocator } from '../../memory/budgets.js'
import type { QuerySpace } from './query-space.js'

/** The query's memory as an allocator: what is not freed goes back at the query's end. */
export function spaceAllocator(space: QuerySpace): Allocator {
  return {
    allocate: (bytes) => space.take(bytes),
    demand: (bytes) => space.take(bytes),
    free: (address) => space.give(address),
    used: () => 0,
    limit: () => Number.POSITIVE_INFINITY,
  }
}
