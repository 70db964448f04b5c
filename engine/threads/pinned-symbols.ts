// Pins the symbol dictionaries of the tables that a query reads, so that the writer does not evict them during the
// query. Returns those that are already evicted: the writer must reload them, and then pins them on behalf of the
// query.

import { holdDictionary, releaseDictionary } from '../memory/column-layout.js'
import type { SharedMemory } from '../memory/shared-memory.js'
import type { TableSnapshot } from '../storage/schema/schema.js'

export interface EvictedSymbols {
  readonly tableId: number
  /** Addresses of the dictionaries. */
  readonly dictionaries: readonly number[]
}

export class PinnedSymbols {
  /** Evicted dictionaries, which the writer must reload. */
  readonly evicted: readonly EvictedSymbols[]
  readonly #memory: SharedMemory
  readonly #held: number[] = []
  #released = false

  constructor(memory: SharedMemory, snapshots: readonly TableSnapshot[]) {
    this.#memory = memory
    const evicted: EvictedSymbols[] = []
    for (const { version } of snapshots) {
      const missing: number[] = []
      for (const [, address] of version.dictionaries) {
        if (holdDictionary(memory, address)) this.#held.push(address)
        else missing.push(address)
      }
      if (missing.length > 0) evicted.push({ tableId: version.schema.id, dictionaries: missing })
    }
    this.evicted = evicted
  }

  /** The writer has pinned these for the reader, which may have finished by now. */
  add({ dictionaries }: EvictedSymbols): void {
    this.#held.push(...dictionaries)
    if (this.#released) this.release()
  }

  release(): void {
    this.#released = true
    for (const address of this.#held.splice(0)) releaseDictionary(this.#memory, address)
  }
}
