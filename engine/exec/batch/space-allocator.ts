// Adapts the arena of a query to the Allocator interface, for code such as page decoders and encoders that needs
// scratch memory.

import type { Allocator } from '../../memory/budgets.js'
import type { QuerySpace } from './query-space.js'

/** An allocator over the query's arena; what is not freed is freed when the query ends. */
export function spaceAllocator(space: QuerySpace): Allocator {
  return {
    allocate: (bytes) => space.take(bytes),
    demand: (bytes) => space.take(bytes),
    free: (address) => space.give(address),
    used: () => 0,
    limit: () => Number.POSITIVE_INFINITY,
  }
}
