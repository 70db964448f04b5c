// Frees the memory that terminated query threads leave behind. It is freed when the queries have ended that the dead
// thread coordinated or worked for, because other threads may use it until then. Result blocks that readers still use
// are left out: each is freed when its reader returns it.

import { Ledger } from '../memory/ledger.js'
import type { SharedMemory } from '../memory/shared-memory.js'

interface OrphanedThread {
  readonly threadId: number
  /** Address of the thread's ledger of allocations; 0: it had none. */
  readonly ledger: number
  /** Queries that are still in progress on other threads. */
  readonly waitsFor: Set<number>
  /** Result blocks that readers use; each is freed separately. */
  readonly borrowed: ReadonlySet<number>
}

export type Settled = (threadId: number, ledger: number) => void

export class OrphanedMemory {
  readonly #memory: SharedMemory
  /** Has a query thread free the addresses. */
  readonly #free: (addresses: readonly number[]) => void
  /** Called when nothing uses the thread's memory; its ledger is empty and can be reused. */
  readonly #settled: Settled
  #orphans: OrphanedThread[] = []

  constructor(memory: SharedMemory, free: (addresses: readonly number[]) => void, settled: Settled) {
    this.#memory = memory
    this.#free = free
    this.#settled = settled
  }

  add(threadId: number, ledger: number, waitsFor: Iterable<number>, borrowed: Iterable<number>): void {
    this.#orphans.push({ threadId, ledger, waitsFor: new Set(waitsFor), borrowed: new Set(borrowed) })
    this.#settle()
  }

  queryOver(queryId: number): void {
    if (this.#orphans.length === 0) return
    for (const { waitsFor } of this.#orphans) waitsFor.delete(queryId)
    this.#settle()
  }

  #settle(): void {
    const done = this.#orphans.filter(({ waitsFor }) => waitsFor.size === 0)
    this.#orphans = this.#orphans.filter(({ waitsFor }) => waitsFor.size > 0)
    for (const { threadId, ledger, borrowed } of done) {
      if (ledger !== 0) this.#giveBack(new Ledger(this.#memory, ledger), borrowed)
      this.#settled(threadId, ledger)
    }
  }

  #giveBack(ledger: Ledger, borrowed: ReadonlySet<number>): void {
    const addresses = ledger.addresses().filter((address) => !borrowed.has(address))
    ledger.clear()
    if (addresses.length > 0) this.#free(addresses)
  }
}
