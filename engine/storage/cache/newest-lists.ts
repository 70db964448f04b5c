// Stores lists in the chunk cache (the cache of decoded pages): for a part (Parquet file) and one of its symbol
// columns, the newest row of each symbol. exec/scan/newest-in-part.ts makes the lists and defines their layout; this
// file treats them as bytes, identified by part and column.

import { assert } from '../../base/assert.js'
import { ResourceError } from '../../base/errors.js'
import type { Allocator } from '../../memory/budgets.js'
import { budgets } from '../../memory/budgets.js'
import type { SharedMemory } from '../../memory/shared-memory.js'
import { newestPage, type PageCache } from './chunk-cache.js'
import type { ChunkKey } from './chunk-key.js'

/** A list may take at most this part of the cache. */
const cacheParts = 8

interface ListCache {
  readonly memory: SharedMemory
  readonly allocator: Pick<Allocator, 'limit'>
  readonly cache: PageCache
}

/** The key of a list, from the part's key for any page of the column. */
export function listKey(page: ChunkKey): ChunkKey {
  return { ...page, page: newestPage }
}

/** Address of the pinned list, or 0. */
export function pinList({ cache }: ListCache, key: ChunkKey): number {
  // A locked shard looks like a missing list, which would have to be made again.
  return cache.pinReady(key) || (cache.has(key) ? cache.pinReady(key) : 0)
}

/** Copies the list to the cache, unless it is too large or the cache is full of pinned pages. */
export function keepList({ memory, allocator, cache }: ListCache, key: ChunkKey, list: number, bytes: number): void {
  if (bytes * cacheParts > allocator.limit(budgets.cache)) return
  assert(bytes > 0 && list % 8 === 0, 'S4: a list is in memory while it is copied')
  const load = (room: (bytes: number) => number): { needs: number; cost: 'decompress' } => {
    memory.u8.copyWithin(room(bytes), list, list + bytes)
    return { needs: 0, cost: 'decompress' }
  }
  try {
    cache.unpin(cache.pin(key, { load }))
  } catch (error) {
    if (!(error instanceof ResourceError)) throw error
  }
}
