// The hash tables of the writer's symbol dictionaries as memory that can be had back. A table takes twice what texts and
// entries take, only the writer reads it, and it is made of them again in milliseconds: when neither rows nor symbols find
// room, tables that have not grown for the longest time go. Their dictionaries answer "full" to the next text, known or
// not, and make a new one.

import { type Allocator, budgets } from '../memory/budgets.js'

/** A dictionary as its hash table is concerned. */
export interface IndexedDictionary {
  readonly indexBytes: number
  /** Gives the table back. */
  dropIndex(): void
}

/** Smaller ones are not worth it. */
const indexBytesMin = 64 * 1024
/** Tables that grew within so many growths stay: requests that write all of them would make each again for every line. */
const recentGrowths = 16

export class DictionaryIndexes {
  /** By when their table grew last. */
  readonly #grown = new Map<IndexedDictionary, number>()
  #time = 0
  #growing: IndexedDictionary | null = null

  /** Runs what makes the dictionary larger; its own table stays meanwhile. */
  grow(dictionary: IndexedDictionary, work: () => void): void {
    const before = this.#growing
    this.#growing = dictionary
    try {
      work()
    } finally {
      this.#growing = before
      this.#grown.set(dictionary, ++this.#time)
    }
  }

  forget(dictionary: IndexedDictionary): void {
    this.#grown.delete(dictionary)
  }

  /** The allocator of memtables and dictionaries: tables go when it finds no room. */
  over(allocator: Allocator): Allocator {
    const allocate: Allocator['allocate'] = (bytes, budget) => {
      for (;;) {
        const address = allocator.allocate(bytes, budget)
        if (address !== 0 || budget !== budgets.memtables || !this.#shed()) return address
      }
    }
    const demand: Allocator['demand'] = (bytes, budget) => allocate(bytes, budget) || allocator.demand(bytes, budget)
    return { ...allocator, allocate, demand }
  }

  /** False when there is no table that may go. */
  #shed(): boolean {
    const newest = this.#time - recentGrowths
    let oldest: IndexedDictionary | null = null
    let least = Number.POSITIVE_INFINITY
    for (const [dictionary, time] of this.#grown) {
      if (time >= least || time > newest || dictionary === this.#growing) continue
      if (dictionary.indexBytes < indexBytesMin) continue
      oldest = dictionary
      least = time
    }
    oldest?.dropIndex()
    return oldest !== null
  }
}
