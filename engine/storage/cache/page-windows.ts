// A thread's small pool of buffers for pages that are stored uncompressed. While a buffer is free, such a page is read
// from the file at each use and not stored in the chunk cache (chunk-cache.ts), because the file system caches it
// anyway. The buffer that was returned last is taken first: it is still in the processor's cache, so the read costs
// only one copy.

import { assert } from '../../base/assert.js'
import { ResourceError } from '../../base/errors.js'
import type { Allocator } from '../../memory/budgets.js'
import { budgets } from '../../memory/budgets.js'

/** Only sorts and merges pin more pages at a time; those pages are cached. */
const windowsMax = 8
/** Bytes before the values, for the Parquet levels that precede them in the file. */
export const windowHeaderBytes = 64
const slackBytes = 128

interface PageWindow {
  readonly address: number
  readonly bytes: number
}

export class PageWindows {
  private readonly allocator: Allocator
  /** Used as a stack: the buffer that was returned last is taken first. */
  private readonly free: PageWindow[] = []
  private readonly taken = new Map<number, PageWindow>()

  constructor(allocator: Allocator) {
    this.allocator = allocator
  }

  /** Address of that many writable bytes, 64-byte aligned, until give(); 0 if no buffer or no memory is free. */
  take(bytes: number): number {
    const window = this.freeOf(bytes) ?? this.made(bytes)
    if (window === undefined) return 0
    assert(window.bytes >= bytes, 'A1: a page has room in its window')
    const data = window.address + windowHeaderBytes
    this.taken.set(data, window)
    return data
  }

  /** Returns a buffer to the pool. False if the address is not one of its buffers. */
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
      return { address: this.allocator.allocateOrThrow(windowHeaderBytes + bytes + slackBytes, budgets.cache), bytes }
    } catch (error) {
      if (error instanceof ResourceError) return undefined
      throw error
    }
  }
}
