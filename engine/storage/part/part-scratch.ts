// The working buffers of one job or decoder in shared memory, requested by name. A buffer grows on demand, and all are
// freed together.

import { assert } from '../../base/assert.js'
import type { Allocator, Budget } from '../../memory/budgets.js'
import type { SharedMemory } from '../../memory/shared-memory.js'

/** Kernels read and write up to this many bytes after the end of a buffer. */
const slackBytes = 128

export class Scratch {
  readonly memory: SharedMemory
  /** Total size of the buffers. */
  bytes = 0
  private readonly allocator: Allocator
  private readonly budget: Budget
  private readonly blocks = new Map<string, { readonly address: number; readonly bytes: number }>()

  constructor(memory: SharedMemory, allocator: Allocator, budget: Budget) {
    this.memory = memory
    this.allocator = allocator
    this.budget = budget
  }

  /**
   * Address of at least `bytes` bytes; the first `retained` bytes are preserved if the buffer moves. Throws
   * ResourceError.
   */
  room(name: string, bytes: number, retained = 0): number {
    assert(bytes >= retained, 'A2: a buffer does not shrink below what it keeps')
    const known = this.blocks.get(name)
    if (known !== undefined && known.bytes >= bytes) return known.address
    if (known !== undefined && retained === 0) this.drop(name)
    const address = this.allocator.allocateOrThrow(bytes + slackBytes, this.budget)
    if (known !== undefined && retained > 0) {
      this.memory.u8.copyWithin(address, known.address, known.address + retained)
      this.allocator.free(known.address)
    }
    this.bytes += bytes - (retained > 0 ? (known?.bytes ?? 0) : 0)
    this.blocks.set(name, { address, bytes })
    return address
  }

  /** Frees one buffer. */
  drop(name: string): void {
    const known = this.blocks.get(name)
    if (known === undefined) return
    this.blocks.delete(name)
    this.bytes -= known.bytes
    this.allocator.free(known.address)
  }

  release(): void {
    for (const name of [...this.blocks.keys()]) this.drop(name)
    assert(this.bytes === 0, 'A2: scratch memory counts what it holds')
  }
}
