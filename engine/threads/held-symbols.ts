// The symbols that a reader of the main thread needs: dictionaries of its snapshots that the writer keeps in memory
// meanwhile. Those that were given back are read again by the writer, which then holds them in the reader's name.

import { holdDictionary, releaseDictionary } from '../memory/column-layout.js'
import type { SharedMemory } from '../memory/shared-memory.js'
import type { TableSnapshot } from '../storage/schema/schema.js'

export interface RestedSymbols {
  readonly tableId: number
  /** Addresses. */
  readonly dictionaries: readonly number[]
}

export class HeldSymbols {
  /** Not held: they have to be read again. */
  readonly rested: readonly RestedSymbols[]
  readonly #memory: SharedMemory
  readonly #held: number[] = []
  #released = false

  constructor(memory: SharedMemory, snapshots: readonly TableSnapshot[]) {
    this.#memory = memory
    const rested: RestedSymbols[] = []
    for (const { version } of snapshots) {
      const missing: number[] = []
      for (const [, address] of version.dictionaries) {
        if (holdDictionary(memory, address)) this.#held.push(address)
        else missing.push(address)
      }
      if (missing.length > 0) rested.push({ tableId: version.schema.id, dictionaries: missing })
    }
    this.rested = rested
  }

  /** The writer holds them in the name of this reader, who may be gone by now. */
  add({ dictionaries }: RestedSymbols): void {
    this.#held.push(...dictionaries)
    if (this.#released) this.release()
  }

  release(): void {
    this.#released = true
    for (const address of this.#held.splice(0)) releaseDictionary(this.#memory, address)
  }
}
