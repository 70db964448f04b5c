// States of groups as cells of a fixed size in shared memory.

import type { ExecContext } from './context.js'

/** Memory of cells that grows with the number of groups; new cells are set to nothing seen. */
export class CellMemory {
  address = 0
  groups = 0
  readonly #context: ExecContext
  readonly #cellBytes: number
  readonly #clear: (from: number, to: number) => void
  #capacity = 0

  constructor(context: ExecContext, cellBytes: number, clear: (from: number, to: number) => void) {
    this.#context = context
    this.#cellBytes = cellBytes
    this.#clear = clear
  }

  grow(groups: number): void {
    if (groups > this.#capacity) {
      const { space, memory } = this.#context
      const capacity = Math.max(64, groups, this.#capacity * 2)
      const fresh = space.take(capacity * this.#cellBytes)
      memory.u8.copyWithin(fresh, this.address, this.address + this.groups * this.#cellBytes)
      if (this.address !== 0) space.give(this.address)
      this.address = fresh
      this.#capacity = capacity
    }
    if (groups <= this.groups) return
    const from = this.groups
    this.groups = groups
    this.#clear(from, groups)
  }

  reset(): void {
    this.groups = 0
  }
}
