// Memory that query threads held when they were ended. It may be given back when nobody looks at it any more: other threads
// have been dismissed from the queries that the dead one led or helped with, and result blocks have been read.

import { Ledger } from '../memory/ledger.js'
import type { SharedMemory } from '../memory/shared-memory.js'

interface Legacy {
  readonly threadId: number
  /** 0: what it held was not written down. */
  readonly ledger: number
  /** Queries that are not over for all threads. */
  readonly waitsFor: Set<number>
  /** Result blocks that readers have: each comes back by itself. */
  readonly lent: ReadonlySet<number>
}

export type Settled = (threadId: number, ledger: number) => void

export class ThreadLegacies {
  readonly #memory: SharedMemory
  /** Has a query thread give the addresses back. */
  readonly #free: (addresses: readonly number[]) => void
  /** Nobody needs anything of the thread; its ledger is empty and may serve another one. */
  readonly #settled: Settled
  #legacies: Legacy[] = []

  constructor(memory: SharedMemory, free: (addresses: readonly number[]) => void, settled: Settled) {
    this.#memory = memory
    this.#free = free
    this.#settled = settled
  }

  add(threadId: number, ledger: number, waitsFor: Iterable<number>, lent: Iterable<number>): void {
    this.#legacies.push({ threadId, ledger, waitsFor: new Set(waitsFor), lent: new Set(lent) })
    this.#settle()
  }

  queryOver(queryId: number): void {
    if (this.#legacies.length === 0) return
    for (const { waitsFor } of this.#legacies) waitsFor.delete(queryId)
    this.#settle()
  }

  #settle(): void {
    const done = this.#legacies.filter(({ waitsFor }) => waitsFor.size === 0)
    this.#legacies = this.#legacies.filter(({ waitsFor }) => waitsFor.size > 0)
    for (const { threadId, ledger, lent } of done) {
      if (ledger !== 0) this.#giveBack(new Ledger(this.#memory, ledger), lent)
      this.#settled(threadId, ledger)
    }
  }

  #giveBack(ledger: Ledger, lent: ReadonlySet<number>): void {
    const addresses = ledger.addresses().filter((address) => !lent.has(address))
    ledger.clear()
    if (addresses.length > 0) this.#free(addresses)
  }
}
