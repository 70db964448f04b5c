// Rooms of one thread for plain pages that are read past the chunk cache: the file system has them in memory anyway, and
// a room that was read a moment ago is still in the processor's cache, so the page costs one copy and no way to memory.

import { assert } from '../../base/assert.js'
import { ResourceError } from '../../base/errors.js'
import type { Allocator } from '../../memory/budgets.js'
import { budgets } from '../../memory/budgets.js'

/** More are pinned at once by sorts and merges alone: their pages go into the cache. */
const windowsMax = 8
/** Before the values: room for the levels that lie before them in the file. */
export const windowHeaderBytes = 64
const slackBytes = 128

interface PageWindow {
  readonly address: number
  readonly bytes: number
}

export class PageWindows {
  private readonly allocator: Allocator
  /** The one that was given back last is taken first. */
  private readonly free: PageWindow[] = []
  private readonly taken = new Map<number, PageWindow>()

  constructor(allocator: Allocator) {
    this.allocator = allocator
  }

  /** Address of so many writable bytes, 64-byte aligned, until give(); 0 when there is no window left, or no memory. */
  take(bytes: number): number {
    const window = this.freeOf(bytes) ?? this.made(bytes)
    if (window === undefined) return 0
    assert(window.bytes >= bytes, 'A1: a page has room in its window')
    const data = window.address + windowHeaderBytes
    this.taken.set(data, window)
    return data
  }

  /** False: the address is none of a window. */
  give(data: number): boolean {
    const window = this.taken.get(data)
    if (window === undefined) return false
    this.taken.delete(data)
    this.free.push(window)
    return true
  }

  release(): void {
    for (const { address } of [...this.free, ...this.taken.values()]) this.allocator.free(address)
    this.free.length = 0
    this.taken.clear()
  }

  private freeOf(bytes: number): PageWindow | undefined {
    const index = this.free.findLastIndex((window) => window.bytes >= bytes)
    return index < 0 ? undefined : this.free.splice(index, 1)[0]
  }

  private made(bytes: number): PageWindow | undefined {
    const smaller = this.free.pop()
    if (smaller !== undefined) this.allocator.free(smaller.address)
    else if (this.taken.size >= windowsMax) return undefined
    try {
      return { address: this.allocator.demand(windowHeaderBytes + bytes + slackBytes, budgets.cache), bytes }
    } catch (error) {
      if (error instanceof ResourceError) return undefined
      throw error
    }
  }
}
