// The hash table by which the line-protocol kernel (WebAssembly; kernels/ilp.ts) finds the template of a line, by the
// name of the table on the wire, and the owner of each template.
//
// Invariant: the table is at most half full, and all templates in it are allocated.

import { assert } from '../base/assert.js'
import type { IlpKernel } from '../kernels/ilp.js'
import * as layout from '../kernels/ilp-layout.js'
import { type Allocator, budgets } from '../memory/budgets.js'
import type { SharedMemory } from '../memory/shared-memory.js'

const slotsFirst = 64

/** `Owner`: what a template belongs to. */
export class TemplateIndex<Owner> {
  readonly #memory: SharedMemory
  readonly #allocator: Allocator
  readonly #kernel: IlpKernel
  /** By the address of the template. */
  readonly #owners = new Map<number, Owner>()
  #slots: number
  #mask = slotsFirst - 1

  /** Throws ResourceError. */
  constructor(memory: SharedMemory, allocator: Allocator, kernel: IlpKernel) {
    this.#memory = memory
    this.#allocator = allocator
    this.#kernel = kernel
    this.#slots = allocator.allocateOrThrow(slotsFirst * 4, budgets.ingest)
    this.#empty()
  }

  get count(): number {
    return this.#owners.size
  }

  /** Address of the hash table u32[mask + 1]. */
  get address(): number {
    return this.#slots
  }

  get mask(): number {
    return this.#mask
  }

  owner(template: number): Owner | undefined {
    return this.#owners.get(template)
  }

  /** Makes room for one more template. Throws ResourceError. */
  reserve(): void {
    if ((this.count + 1) * 2 > this.#mask + 1) this.#grow()
  }

  /** Adds a template, for which there is room; it replaces the one with the same name. */
  add(template: number, owner: Owner): void {
    assert((this.count + 1) * 2 <= this.#mask + 1, 'K2: a table of templates is at most half full')
    const slot = this.#slotOf(template)
    this.#owners.delete(this.#memory.u32[slot]!)
    this.#memory.u32[slot] = template
    this.#owners.set(template, owner)
  }

  /** Removes a template before it is freed; without effect if another one has replaced it. */
  remove(template: number): void {
    if (!this.#owners.has(template)) return
    const { u32 } = this.#memory
    const first = this.#slots >>> 2
    let at = this.#slotOf(template) - first
    assert(u32[first + at] === template, 'K2: a template with an owner is in the table')
    this.#owners.delete(template)
    u32[first + at] = 0
    // Those behind it may be there only because its slot was taken.
    for (at = (at + 1) & this.#mask; u32[first + at] !== 0; at = (at + 1) & this.#mask) {
      const moved = u32[first + at]!
      u32[first + at] = 0
      u32[this.#slotOf(moved)] = moved
    }
  }

  clear(): void {
    this.#owners.clear()
    this.#empty()
  }

  #grow(): void {
    const count = (this.#mask + 1) * 2
    const slots = this.#allocator.allocateOrThrow(count * 4, budgets.ingest)
    this.#allocator.free(this.#slots)
    this.#slots = slots
    this.#mask = count - 1
    this.#enterAll()
  }

  #enterAll(): void {
    assert(this.count * 2 <= this.#mask + 1, 'K2: a table of templates is at most half full')
    this.#empty()
    for (const template of this.#owners.keys()) this.#memory.u32[this.#slotOf(template)] = template
  }

  #empty(): void {
    this.#memory.u32.fill(0, this.#slots >>> 2, (this.#slots >>> 2) + this.#mask + 1)
  }

  /** Index of the word of a template, or where it belongs. */
  #slotOf(template: number): number {
    const name = this.#memory.u32[(template + layout.templateNameAddress) >>> 2]!
    const slot = this.#kernel.templateSlot(this.#slots, this.#mask, name) >>> 0
    assert(slot >= this.#slots, 'K3: a slot is in its table')
    assert(slot <= this.#slots + this.#mask * 4, 'K3: a slot is in its table')
    return slot >>> 2
  }
}
