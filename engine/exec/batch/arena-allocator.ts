// Lets code that expects an Allocator, such as the decoders and encoders of pages, allocate temporary memory from the
// memory of a query (QueryArena).

import type { Allocator } from '../../memory/budgets.js'
import type { QueryArena } from './query-arena.js'

/** An allocator over the query's arena; what is not freed is freed when the query ends. */
export function arenaAllocator(arena: QueryArena): Allocator {
  return {
    allocate: (bytes) => arena.take(bytes),
    allocateOrThrow: (bytes) => arena.take(bytes),
    free: (address) => arena.give(address),
    used: () => 0,
    limit: () => Number.POSITIVE_INFINITY,
  }
}
