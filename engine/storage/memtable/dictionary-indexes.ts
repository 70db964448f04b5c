// Decides what the writer's symbol dictionaries (string to id, one for each SYMBOL column) release when the memory for
// memtables is exhausted:
//
//   hash tables    released first, the least recently grown first. They take twice the memory of strings and entries,
//                  only the writer uses them, and they are rebuilt in milliseconds.
//   dictionaries   everything but the header, for tables that no statement reads or writes; reloaded from their files.
//
// Hash tables may also be allocated from the writer's staging memory, because they need megabytes of contiguous memory
// and the memtables' budget is fragmented.
//
// Dictionaries that grew during the current request are not released, because its next line may need them. A dictionary
// without its hash table reports "full" at the next lookup of a string; the writer then grows it as usual, which
// rebuilds the table.

import { assert } from '../../base/assert.js'
import { type Allocator, type Budget, budgets } from '../../memory/budgets.js'
import { dictionarySlotBytes } from '../../memory/column-layout.js'
import type { SharedMemory } from '../../memory/shared-memory.js'

/** A dictionary, as far as its memory is concerned. */
export interface IndexedDictionary {
  readonly indexBytes: number
  /** Whether evicting its chunks and heaps would free a useful amount of memory. */
  readonly isLarge: boolean
  /** Releases the hash table. */
  dropIndex(): void
  /** Releases strings and entries; false if they are in use. */
  evict(): boolean
}

/** Smaller tables and dictionaries are not released. */
export const evictedBytesMin = 64 * 1024
/** Slots of the shared table of dictionaries without their own: all free, but too few for any string. */
export const emptySlots = 1

/**
 * memtables: above this use of their budget, tables are allocated in staging memory. staging: the limit of tables
 * there.
 */
const shares = { memtables: 0.5, staging: 0.4 } as const

export class DictionaryIndexes {
  #allocator: Allocator | undefined
  /** Hash tables in staging memory, by address, with their bytes. */
  readonly #staged = new Map<number, number>()
  #stagedBytes = 0
  /** Time of the last growth of each dictionary, the oldest first. */
  readonly #grown = new Map<IndexedDictionary, number>()
  #time = 0
  #requestBegan = 0
  #growing: IndexedDictionary | null = null
  #emptyTable = 0

  /** Starts a request: dictionaries that grew before it may be released from now on. */
  beginRequest(): void {
    this.#requestBegan = this.#time
  }

  /** Runs work that grows the dictionary, which is not released meanwhile. */
  grow(dictionary: IndexedDictionary, work: () => void): void {
    const before = this.#growing
    this.#growing = dictionary
    try {
      work()
    } finally {
      this.#growing = before
      this.#grown.delete(dictionary)
      this.#grown.set(dictionary, ++this.#time)
    }
  }

  forget(dictionary: IndexedDictionary): void {
    this.#grown.delete(dictionary)
  }

  /** Address of the shared empty table, which must not be freed or written. Throws ResourceError. */
  emptyTable({ u8 }: SharedMemory, allocator: Allocator): number {
    if (this.#emptyTable !== 0) return this.#emptyTable
    const bytes = emptySlots * dictionarySlotBytes
    this.#emptyTable = allocator.allocateOrThrow(bytes, budgets.ingest)
    u8.fill(0, this.#emptyTable, this.#emptyTable + bytes)
    return this.#emptyTable
  }

  /** Wraps the writer's allocator: when it is out of memory, hash tables and then whole dictionaries are released. */
  over(allocator: Allocator): Allocator {
    this.#allocator = allocator
    const allocate: Allocator['allocate'] = (bytes, budget) => {
      for (;;) {
        const address = allocator.allocate(bytes, budget)
        if (address !== 0 || !this.#shedFor(budget)) return address
      }
    }
    const allocateOrThrow: Allocator['allocateOrThrow'] = (bytes, budget) =>
      allocate(bytes, budget) || allocator.allocateOrThrow(bytes, budget)
    return { ...allocator, allocate, allocateOrThrow }
  }

  /** Bytes of hash tables in staging memory. */
  get stagedBytes(): number {
    return this.#stagedBytes
  }

  /** Allocates memory for a hash table. Throws ResourceError. */
  takeTable(allocator: Allocator, bytes: number): number {
    return (bytes >= evictedBytesMin && this.#takeOutside(bytes)) || allocator.allocateOrThrow(bytes, budgets.memtables)
  }

  /** Allocates from staging memory; 0 if the memtables have room or staging memory has none. */
  #takeOutside(bytes: number): number {
    const allocator = this.#allocator
    if (allocator === undefined) return 0
    const { memtables, ingest } = budgets
    if (allocator.used(memtables) + bytes <= allocator.limit(memtables) * shares.memtables) return 0
    if (this.#stagedBytes + bytes > allocator.limit(ingest) * shares.staging) return 0
    const address = allocator.allocate(bytes, ingest)
    if (address === 0) return 0
    this.#staged.set(address, bytes)
    this.#stagedBytes += bytes
    return address
  }

  giveTable(allocator: Allocator, address: number): void {
    this.#stagedBytes -= this.#staged.get(address) ?? 0
    assert(this.#stagedBytes >= 0, 'A2: a budget gets back no more than it gave')
    this.#staged.delete(address)
    allocator.free(address)
  }

  #shedFor(budget: Budget): boolean {
    if (budget === budgets.memtables) return this.#shed()
    return budget === budgets.ingest && this.#stagedBytes > 0 && this.#shedTable()
  }

  /** Dictionaries that may be released, the least recently grown first. */
  #evicted(): IndexedDictionary[] {
    const began = this.#requestBegan
    const evicted = [...this.#grown].filter(([dictionary, time]) => time <= began && dictionary !== this.#growing)
    return evicted.map(([dictionary]) => dictionary)
  }

  #shedTable(): boolean {
    const oldest = this.#evicted().find(({ indexBytes }) => indexBytes >= evictedBytesMin)
    oldest?.dropIndex()
    return oldest !== undefined
  }

  /** Releases something; false if nothing can be released. */
  #shed(): boolean {
    return this.#shedTable() || this.#evicted().some((dictionary) => dictionary.isLarge && dictionary.evict())
  }
}
