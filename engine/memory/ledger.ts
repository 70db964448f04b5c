// A list in shared memory of the addresses that one thread has allocated for queries and flushes. If the thread is
// terminated in the middle of its work, another thread frees its memory by this list.
//
// Layout, u32 words: 0 number of entries | 1 unused | then a hash table of addresses, 0 = empty (open addressing,
// linear probing, backward-shift deletion). Only the owning thread writes while it lives. When the list is full,
// further addresses are not recorded, and their memory is lost if the thread is terminated.

import { assert } from '../base/assert.js'
import { type Allocator, budgets } from './budgets.js'
import type { SharedMemory } from './shared-memory.js'

const headerWords = 2
const slots = 1 << 15
const entriesMax = slots / 2
export const ledgerBytes = (headerWords + slots) * 4

export class Ledger {
  readonly #u32: Uint32Array
  readonly #base: number

  constructor({ u32 }: SharedMemory, address: number) {
    this.#u32 = u32
    this.#base = address >>> 2
  }

  clear(): void {
    this.#u32.fill(0, this.#base, this.#base + headerWords + slots)
  }

  addresses(): number[] {
    const first = this.#base + headerWords
    return [...this.#u32.subarray(first, first + slots)].filter((address) => address !== 0)
  }

  add(address: number): void {
    assert(address !== 0, 'A1: address 0 is no memory')
    if (this.#u32[this.#base]! >= entriesMax) return
    let slot = slotOf(address)
    while (this.#at(slot) !== 0) slot = (slot + 1) & (slots - 1)
    this.#put(slot, address)
    this.#u32[this.#base] = this.#u32[this.#base]! + 1
  }

  /** Ignores addresses that are not in the list. */
  remove(address: number): void {
    let slot = slotOf(address)
    for (; this.#at(slot) !== address; slot = (slot + 1) & (slots - 1)) if (this.#at(slot) === 0) return
    this.#put(slot, 0)
    this.#u32[this.#base] = this.#u32[this.#base]! - 1
    this.#closeGap(slot)
  }

  /** Moves later entries of the probe sequence into the gap, so that lookups still find them. */
  #closeGap(empty: number): void {
    let gap = empty
    for (let slot = (gap + 1) & (slots - 1); this.#at(slot) !== 0; slot = (slot + 1) & (slots - 1)) {
      const wanted = slotOf(this.#at(slot))
      if (((slot - wanted) & (slots - 1)) < ((slot - gap) & (slots - 1))) continue
      this.#put(gap, this.#at(slot))
      this.#put(slot, 0)
      gap = slot
    }
  }

  #at(slot: number): number {
    return this.#u32[this.#base + headerWords + slot]!
  }

  #put(slot: number, address: number): void {
    this.#u32[this.#base + headerWords + slot] = address
  }
}

function slotOf(address: number): number {
  return (Math.imul(address >>> 6, 0x9e37_79b1) >>> 17) & (slots - 1)
}

/** Wraps the allocator so that allocations of the budgets for queries and flushes are recorded in the ledger. */
export function recorded(allocator: Allocator, ledger: Ledger): Allocator {
  const noted = (address: number, budget: number): number => {
    if (address !== 0 && (budget === budgets.queries || budget === budgets.flush)) ledger.add(address)
    return address
  }
  return {
    ...allocator,
    allocate: (bytes, budget) => noted(allocator.allocate(bytes, budget), budget),
    allocateOrThrow: (bytes, budget) => noted(allocator.allocateOrThrow(bytes, budget), budget),
    free: (address) => {
      ledger.remove(address)
      allocator.free(address)
    },
  }
}
