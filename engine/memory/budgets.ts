// Who may hold how much of the shared memory. Numbers are indexes into the allocator's table of counters.

export const budgets = {
  /** Staging of the writer: decoded batches, frames. */
  ingest: 0,
  /** Memtable blocks, dictionaries. */
  memtables: 1,
  /** Decoded pages of parts. */
  cache: 2,
  /** Scratch, hash tables and result blocks of queries. */
  queries: 3,
  /** The flush arena: never lent to anybody else, so a full memtable can always be flushed. */
  flush: 4,
  /** Chunks of the cache in memory that the memtables do not use; they go when the memtables find no room. */
  lent: 5,
} as const

export type Budget = (typeof budgets)[keyof typeof budgets]

export const budgetsCount = 6

/** Memory of the allocator as its users see it. Addresses are 64-byte aligned; contents are undefined. */
export interface Allocator {
  /** Address of at least `bytes` bytes, or 0 when the budget or the memory is exhausted. */
  allocate(bytes: number, budget: Budget): number
  /** The same, but throws ResourceError instead of answering 0. */
  demand(bytes: number, budget: Budget): number
  free(address: number): void
  used(budget: Budget): number
  /** Of `lent` it is what the memtables leave now. */
  limit(budget: Budget): number
}
