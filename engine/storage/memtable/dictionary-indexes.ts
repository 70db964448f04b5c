// What the writer's symbol dictionaries can give back when neither rows nor symbols find room:
//
//   tables       hash tables, those first that have not grown for the longest time: they take twice what texts and entries
//                take, only the writer reads them, and they are made again in milliseconds
//   dictionaries everything but the header, of tables that nobody reads or writes: their files give them back
//
// Tables may lie in the writer's staging memory as well, which is one piece: they take megabytes in a row, and memtables
// leave pieces.
//
// What the request under way has made or read again stays: it would be wanted for its next line. Without its table a
// dictionary answers "full" to the next text, known or not, and makes room: that brings back what was given away.

import { assert } from '../../base/assert.js'
import { type Allocator, type Budget, budgets } from '../../memory/budgets.js'
import { dictionarySlotBytes } from '../../memory/column-layout.js'
import type { SharedMemory } from '../../memory/shared-memory.js'

/** A dictionary as its memory is concerned. */
export interface IndexedDictionary {
  readonly indexBytes: number
  /** Whether it is worth it to give chunks and heaps back. */
  readonly isLarge: boolean
  /** Gives the hash table back. */
  dropIndex(): void
  /** Gives everything back; false when somebody needs it. */
  evict(): boolean
}

/** Smaller ones are not worth it. */
export const restedBytesMin = 64 * 1024
/** Slots of the table that dictionaries have instead of their own: all free, and too few for any text. */
export const emptySlots = 1

/** Of the memtables' memory, from where on tables lie in staging memory; of that, what they may have. */
const shares = { memtables: 0.5, staging: 0.4 } as const

export class DictionaryIndexes {
  #allocator: Allocator | undefined
  /** Tables in staging memory and their bytes. */
  readonly #staged = new Map<number, number>()
  #stagedBytes = 0
  /** By when they grew last, the oldest first. */
  readonly #grown = new Map<IndexedDictionary, number>()
  #time = 0
  #requestBegan = 0
  #growing: IndexedDictionary | null = null
  #emptyTable = 0

  /** What grew before may go from now on. */
  beginRequest(): void {
    this.#requestBegan = this.#time
  }

  /** Runs what makes the dictionary larger; it stays meanwhile. */
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

  /** Address of the table of `emptySlots`, never to be freed or written. Throws ResourceError. */
  emptyTable({ u8 }: SharedMemory, allocator: Allocator): number {
    if (this.#emptyTable !== 0) return this.#emptyTable
    const bytes = emptySlots * dictionarySlotBytes
    this.#emptyTable = allocator.demand(bytes, budgets.ingest)
    u8.fill(0, this.#emptyTable, this.#emptyTable + bytes)
    return this.#emptyTable
  }

  /** The allocator of the writer: tables, then whole dictionaries go when it finds no room. */
  over(allocator: Allocator): Allocator {
    this.#allocator = allocator
    const allocate: Allocator['allocate'] = (bytes, budget) => {
      for (;;) {
        const address = allocator.allocate(bytes, budget)
        if (address !== 0 || !this.#shedFor(budget)) return address
      }
    }
    const demand: Allocator['demand'] = (bytes, budget) => allocate(bytes, budget) || allocator.demand(bytes, budget)
    return { ...allocator, allocate, demand }
  }

  /** What tables take of the staging memory. */
  get stagedBytes(): number {
    return this.#stagedBytes
  }

  /** Address of a table's memory. Throws ResourceError. */
  takeTable(allocator: Allocator, bytes: number): number {
    return (bytes >= restedBytesMin && this.#takeOutside(bytes)) || allocator.demand(bytes, budgets.memtables)
  }

  /** 0: memtables have room, or staging has none. */
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

  /** Those that may go, the oldest first. */
  #rested(): IndexedDictionary[] {
    const began = this.#requestBegan
    const rested = [...this.#grown].filter(([dictionary, time]) => time <= began && dictionary !== this.#growing)
    return rested.map(([dictionary]) => dictionary)
  }

  #shedTable(): boolean {
    const oldest = this.#rested().find(({ indexBytes }) => indexBytes >= restedBytesMin)
    oldest?.dropIndex()
    return oldest !== undefined
  }

  /** Gives something back; false when there is nothing that may go. */
  #shed(): boolean {
    return this.#shedTable() || this.#rested().some((dictionary) => dictionary.isLarge && dictionary.evict())
  }
}
