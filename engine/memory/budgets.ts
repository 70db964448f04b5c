// The budgets of the shared memory: how much each purpose (memtables, queries, and so on) may allocate. A budget's
// number is its index in the allocator's table of counters.

export const budgets = {
  /** Staging memory of the writer: decoded batches, log frames. Also what is allocated once, at the start. */
  ingest: 0,
  /** Memtable blocks, dictionaries. */
  memtables: 1,
  /** Decoded pages of parts. */
  cache: 2,
  /** Scratch, hash tables and result blocks of queries. */
  queries: 3,
  /** The flush arena: never used for anything else, so a full memtable can always be flushed. */
  flush: 4,
  /** Cache chunks in memory borrowed from the memtables, evicted when the memtables need it. */
  lent: 5,
} as const

export type Budget = (typeof budgets)[keyof typeof budgets]

export const budgetsCount = 6

/** The allocator's interface. Addresses are 64-byte aligned; the contents are undefined. */
export interface Allocator {
  /** Address of at least `bytes` bytes, or 0 when the budget or the memory is exhausted. */
  allocate(bytes: number, budget: Budget): number
  /** Like allocate, but throws ResourceError where that returns 0. */
  allocateOrThrow(bytes: number, budget: Budget): number
  free(address: number): void
  used(budget: Budget): number
  /** In bytes. That of borrowed memory is what the memtables leave unused at present. */
  limit(budget: Budget): number
}
