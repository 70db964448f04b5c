// The allocator of the shared memory. Large objects are runs of 64 KiB pages; small objects come from size classes
// within single pages. All state is in shared memory, so every worker thread uses the same heap. The main thread
// allocates only at the start; later it must not wait for a lock.
//
// Header at allocatorAddress (u32 words):
//     0 lock (thread-lock.ts) | 1 first page number of the heap | 2 page count | 3 page table address
//     8 first page of each budget's region (0: the budget has none and uses the common pages)
//     4 allocations | 6 frees, as doubles, counted under the lock
//    16 used bytes by budget (in units of 64) | 32 limits by budget (units of 64)
//    64 heads of free runs by length 1..63, at [64 + 0] the list of runs of 64 pages and more
//   128 heads of partly free small pages by (budget * 16 + class)
//   256 + 64 * budget: heads of free runs of its region, as at 64
//
// Page table: 16 bytes a page {info, a, next, previous}. info = kind | class << 8 | budget << 16:
//   kind 0 free: the first and the last page of a free run hold the run length in a; the first is in a list
//   kind 1 run:  the first page of an allocated run; a = length in pages
//   kind 2 small: a page of objects of one class; a = offset of its first free object + 1 (0 = full) |
//     used objects << 17
//   kind 3 inside: a page of a run that is not its first
// A free small object holds the offset (+1) of the next free object of its page in its first u32.
//
// Invariants: 1. Two adjacent free runs are merged. 2. used(budget) is the sum of the sizes of its live objects.
//   3. The pages of a region serve its budget alone, and that budget uses no others. So a region is not fragmented
//      while its budget holds nothing, whatever the rest of the heap looks like.

import { assert } from '../base/assert.js'
import { ResourceError } from '../base/errors.js'
import { type Allocator, type Budget, budgets, budgetsCount } from './budgets.js'
import { allocatorAddress, heapBase } from './layout.js'
import type { SharedMemory } from './shared-memory.js'
import { breakLock, lock, unlock } from './thread-lock.js'

export const allocatorPageBytes = 65_536
const unitBytes = 64
const smallClasses = [256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768] as const
const smallBytesMax = 32_768
const longRunPages = 64

const header = allocatorAddress >>> 2
const lockWord = header
const firstPageWord = header + 1
const pageCountWord = header + 2
const tableWord = header + 3
const regionWords = header + 8
/** Indexes of doubles. */
const allocationsAt = (header + 4) >>> 1
const freesAt = (header + 6) >>> 1
const usedWords = header + 16
const limitWords = header + 32
const runHeads = header + 64
const smallHeads = header + 128
const regionHeads = header + 256

const kinds = { free: 0, run: 1, small: 2, inside: 3 } as const
const none = 0xffff_ffff

export interface HeapOptions {
  /** Bytes by budget (index = Budget). Without the last entry nothing is borrowed. */
  readonly limits: readonly number[]
  /** Budgets with a region of their own, as large as their limit, which other budgets cannot fragment. */
  readonly regions?: readonly Budget[]
}

/** Makes the whole heap one free run. Call once, before any other thread uses the memory. */
export function initializeHeap(memory: SharedMemory, options: HeapOptions): void {
  assert(options.limits.length >= budgets.lent, 'A4: every budget has a limit')
  const u32 = memory.u32
  const tableBytes = (memory.bytes / allocatorPageBytes) * 16
  const firstPage = Math.ceil((heapBase + tableBytes) / allocatorPageBytes)
  const pageCount = memory.bytes / allocatorPageBytes
  u32.fill(none, runHeads, runHeads + longRunPages)
  u32.fill(none, smallHeads, regionHeads + budgetsCount * longRunPages)
  u32[firstPageWord] = firstPage
  u32[pageCountWord] = pageCount
  u32[tableWord] = heapBase
  options.limits.forEach((bytes, index) => {
    u32[usedWords + index] = 0
    u32[limitWords + index] = Math.floor(bytes / unitBytes)
  })
  let end = pageCount
  for (const budget of options.regions ?? []) {
    const pages = pagesFor(options.limits[budget] ?? 0)
    end -= pages
    assert(end > firstPage, 'A4: the regions leave room for the others')
    u32[regionWords + budget] = end
    insertRun(u32, end, pages)
  }
  insertRun(u32, firstPage, end - firstPage)
}

/** One thread's handle to the allocator. `threadId` (0 to threadsMax - 1) identifies the holder of the lock. */
export function createAllocator(memory: SharedMemory, threadId: number): Allocator {
  const u32 = memory.u32
  const { i32, f64 } = memory

  function allocate(bytes: number, budget: Budget): number {
    assert(bytes > 0, 'A2: an allocation has a size')
    const classIndex = bytes <= smallBytesMax ? classOf(bytes) : -1
    const span = classIndex >= 0 ? (smallClasses[classIndex] as number) : pagesFor(bytes) * allocatorPageBytes
    lock(i32, lockWord, threadId)
    const address = !hasRoom(u32, budget, span)
      ? 0
      : classIndex >= 0
        ? takeSmall(u32, classIndex, budget)
        : takeRun(u32, pagesFor(bytes), budget)
    if (address !== 0) {
      Atomics.add(u32, usedWords + budget, span / unitBytes)
      f64[allocationsAt] = f64[allocationsAt]! + 1
    }
    unlock(i32, lockWord)
    return address
  }

  function allocateOrThrow(bytes: number, budget: Budget): number {
    const address = allocate(bytes, budget)
    if (address === 0) throw ResourceError.outOfMemory(budgetName(budget), bytes)
    return address
  }

  function free(address: number): void {
    const page = Math.floor(address / allocatorPageBytes)
    assert(page >= u32[firstPageWord]!, 'A1: only memory of the heap is freed')
    lock(i32, lockWord, threadId)
    const info = u32[entry(u32, page)]!
    const budget = info >>> 16
    const span = (info & 255) === kinds.small ? freeSmall(u32, page, address) : freeRun(u32, page)
    f64[freesAt] = f64[freesAt]! + 1
    unlock(i32, lockWord)
    const used = Atomics.sub(u32, usedWords + budget, span / unitBytes)
    assert(used >= span / unitBytes, 'A2: a budget gets back no more than it gave')
  }

  return {
    allocate,
    allocateOrThrow,
    free,
    used: (budget) => Atomics.load(u32, usedWords + budget) * unitBytes,
    limit: (budget) => limitOf(u32, budget) * unitBytes,
  }
}

/** Allocations and frees since the start. */
export function allocationCounts({ f64 }: SharedMemory): { readonly allocations: number; readonly frees: number } {
  return { allocations: f64[allocationsAt]!, frees: f64[freesAt]! }
}

/** Breaks the lock of a thread that died holding it. Only the main thread calls this, for a thread that has ended. */
export function breakAllocatorLock(memory: SharedMemory, threadId: number): void {
  breakLock(memory.i32, lockWord, threadId)
}

function budgetName(budget: Budget): string {
  return ['ingest', 'memtables', 'cache', 'queries', 'flush', 'lent'][budget] as string
}

/**
 * Called with the lock held. Memory counts as used only once it is taken: if a request that is refused counted for a
 * moment, another thread would find no memory where there is some.
 */
function hasRoom(u32: Uint32Array, budget: Budget, span: number): boolean {
  return Atomics.load(u32, usedWords + budget) + span / unitBytes <= limitOf(u32, budget)
}

/** In units. */
function limitOf(u32: Uint32Array, budget: Budget): number {
  const limit = u32[limitWords + budget]!
  return budget === budgets.lent ? Math.max(0, limit - Atomics.load(u32, usedWords + budgets.memtables)) : limit
}

function classOf(bytes: number): number {
  let index = 0
  while ((smallClasses[index] as number) < bytes) index++
  return index
}

function pagesFor(bytes: number): number {
  return Math.ceil(bytes / allocatorPageBytes)
}

/** Word index of a page's table entry. */
function entry(u32: Uint32Array, page: number): number {
  return (u32[tableWord]! >>> 2) + page * 4
}

// ---- free runs ------------------------------------------------------------------------------------------------------

/** Index of the free lists that the page belongs to: those of its region or the common ones. */
function headsOf(u32: Uint32Array, page: number): number {
  let heads = runHeads
  let start = 0
  for (let budget = 0; budget < budgetsCount; budget++) {
    const first = u32[regionWords + budget]!
    if (first > start && first <= page) {
      start = first
      heads = regionHeads + budget * longRunPages
    }
  }
  return heads
}

function headOf(u32: Uint32Array, page: number, length: number): number {
  return headsOf(u32, page) + (length < longRunPages ? length : 0)
}

function insertRun(u32: Uint32Array, page: number, length: number): void {
  const first = entry(u32, page)
  const last = entry(u32, page + length - 1)
  u32[last] = kinds.free
  u32[last + 1] = length
  u32[first] = kinds.free
  u32[first + 1] = length
  link(u32, headOf(u32, page, length), page)
}

function removeRun(u32: Uint32Array, page: number): number {
  const length = u32[entry(u32, page) + 1]!
  unlink(u32, headOf(u32, page, length), page)
  return length
}

function link(u32: Uint32Array, head: number, page: number): void {
  const at = entry(u32, page)
  const next = u32[head]!
  u32[at + 2] = next
  u32[at + 3] = none
  if (next !== none) u32[entry(u32, next) + 3] = page
  u32[head] = page
}

function unlink(u32: Uint32Array, head: number, page: number): void {
  const at = entry(u32, page)
  const next = u32[at + 2]!
  const previous = u32[at + 3]!
  if (next !== none) u32[entry(u32, next) + 3] = previous
  if (previous === none) u32[head] = next
  else u32[entry(u32, previous) + 2] = next
}

/**
 * First page of a free run of at least `length` pages, or `none`: segregated lists by length, best fit among the long
 * runs. Best fit avoids fragmenting the longest runs; the list has at most a few hundred.
 */
function findRun(u32: Uint32Array, heads: number, length: number): number {
  for (let size = length; size < longRunPages; size++) {
    const page = u32[heads + size]!
    if (page !== none) return page
  }
  let best: number = none
  let bestLength = Number.POSITIVE_INFINITY
  for (let page = u32[heads]!; page !== none; page = u32[entry(u32, page) + 2]!) {
    const found = u32[entry(u32, page) + 1]!
    if (found === length) return page
    if (found < length || found >= bestLength) continue
    best = page
    bestLength = found
  }
  return best
}

function takeRun(u32: Uint32Array, length: number, budget: Budget): number {
  const own = u32[regionWords + budget]! > 0
  const page = findRun(u32, own ? regionHeads + budget * longRunPages : runHeads, length)
  if (page === none) return 0
  const found = removeRun(u32, page)
  assert(found >= length, 'A2: a run of pages is cut from one that is as long')
  if (found > length) insertRun(u32, page + length, found - length)
  for (let inner = page + 1; inner < page + length; inner++) u32[entry(u32, inner)] = kinds.inside
  u32[entry(u32, page)] = kinds.run | (budget << 16)
  u32[entry(u32, page) + 1] = length
  return page * allocatorPageBytes
}

function freeRun(u32: Uint32Array, page: number): number {
  const at = entry(u32, page)
  assert((u32[at]! & 255) === kinds.run, 'A2: a run of pages is freed at its beginning')
  const length = u32[at + 1]!
  const heads = headsOf(u32, page)
  let start = page
  let total = length
  const after = page + length
  if (isFree(u32, after) && headsOf(u32, after) === heads) {
    total += removeRun(u32, after)
  }
  if (isFree(u32, page - 1) && headsOf(u32, page - 1) === heads) {
    start = page - u32[entry(u32, page - 1) + 1]!
    total += removeRun(u32, start)
  }
  insertRun(u32, start, total)
  return length * allocatorPageBytes
}

function isFree(u32: Uint32Array, page: number): boolean {
  if (page < u32[firstPageWord]! || page >= u32[pageCountWord]!) return false
  return (u32[entry(u32, page)]! & 255) === kinds.free
}

// ---- small objects: a = (offset of the first free object + 1) | used objects << 17 ---------------------------------

const freeOffsetMask = 0x1ffff

function takeSmall(u32: Uint32Array, classIndex: number, budget: Budget): number {
  const head = smallHeads + budget * 16 + classIndex
  if (u32[head]! === none && !startSmallPage(u32, classIndex, budget)) return 0
  const page = u32[head]!
  const at = entry(u32, page)
  const state = u32[at + 1]!
  const address = page * allocatorPageBytes + (state & freeOffsetMask) - 1
  const next = u32[address >>> 2]!
  u32[at + 1] = next | ((state & ~freeOffsetMask) + (freeOffsetMask + 1))
  if (next === 0) unlink(u32, head, page)
  return address
}

function startSmallPage(u32: Uint32Array, classIndex: number, budget: Budget): boolean {
  const address = takeRun(u32, 1, budget)
  if (address === 0) return false
  const size = smallClasses[classIndex] as number
  const objects = Math.floor(allocatorPageBytes / size)
  for (let index = 0; index < objects; index++) {
    u32[(address + index * size) >>> 2] = index + 1 < objects ? (index + 1) * size + 1 : 0
  }
  const page = address / allocatorPageBytes
  const at = entry(u32, page)
  u32[at] = kinds.small | (classIndex << 8) | (budget << 16)
  u32[at + 1] = 1
  link(u32, smallHeads + budget * 16 + classIndex, page)
  return true
}

function freeSmall(u32: Uint32Array, page: number, address: number): number {
  const at = entry(u32, page)
  const info = u32[at]!
  const classIndex = (info >>> 8) & 255
  const size = smallClasses[classIndex] as number
  const head = smallHeads + (info >>> 16) * 16 + classIndex
  const state = u32[at + 1]!
  assert((address % allocatorPageBytes) % size === 0, 'A2: an object is freed at its beginning')
  assert(state >>> 17 > 0, 'A2: an object is freed once')
  const firstFree = state & freeOffsetMask
  u32[address >>> 2] = firstFree
  u32[at + 1] = (address - page * allocatorPageBytes + 1) | ((state & ~freeOffsetMask) - (freeOffsetMask + 1))
  if (firstFree === 0) link(u32, head, page)
  if (u32[at + 1]! >>> 17 === 0) {
    unlink(u32, head, page)
    u32[at] = kinds.run | (info & 0xff_0000)
    u32[at + 1] = 1
    freeRun(u32, page)
  }
  return size
}
