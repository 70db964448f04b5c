// The work queue of one parallel fragment, in shared memory: which thread works on which chunk, and where the results
// are. The coordinator and its worker threads take chunks from one atomic counter. Each chunk has a state word, so
// results are found by chunk number and can be combined in order.
//
// Layout, u32 words:
//
//   0 next chunk | 1 chunk count | 2 coordinator's thread id | 3 closed (1: the coordinator needs no more results)
//   4 to 7 bit set of threads that wait for the next merge | 8 idle (1: workers must not start or keep work)
//   9 number of workers that hold memory
//   16.. state word of each chunk
//
// The state word of a chunk is one of
//
//   0                     free: never taken, given up, or its result was withdrawn
//   (thread id + 1) * 2   claimed by that thread; below 64 KiB, so it is no address
//   address + 1           done: the result is at that address, which is aligned to 64
//   1                     merged: the thread that made the result may reuse its memory
//
// Invariants:
//   1. A thread publishes a result only by replacing its own claim with the address, by compare-and-swap. A thread
//      whose claim was taken over by the coordinator, after a time-out, discards its result.
//   2. A result depends on the chunk alone, not on the thread that makes it.
//   3. Only the coordinator withdraws a result, and does not read it afterwards. The thread that made the
//      result sees the changed word and may reuse the memory.
//   4. The queue exists until every worker has been dismissed, which may be after the query has ended.

import type { SharedMemory } from '../../memory/shared-memory.js'

const headerWords = 16
const nextWord = 0
const countWord = 1
const coordinatorWord = 2
const closedWord = 3
const waitingWord = 4
const waitingWords = 4
const idleWord = 8
const holdersWord = 9
const merged = 1

export function workQueueBytes(chunks: number): number {
  return (headerWords + chunks) * 4
}

export function initWorkQueue(
  { u32 }: SharedMemory,
  address: number,
  chunks: number,
  coordinatorThreadId: number,
): void {
  const base = address >>> 2
  u32.fill(0, base, base + headerWords + chunks)
  u32[base + countWord] = chunks
  u32[base + coordinatorWord] = coordinatorThreadId
}

/** One thread's access to the work queue. */
export class WorkQueue {
  readonly #u32: Uint32Array
  readonly #base: number
  readonly #claim: number
  readonly #threadId: number

  constructor({ u32 }: SharedMemory, address: number, threadId: number) {
    this.#u32 = u32
    this.#base = address >>> 2
    this.#threadId = threadId
    this.#claim = (threadId + 1) * 2
  }

  get coordinatorThreadId(): number {
    return this.#u32[this.#base + coordinatorWord]!
  }

  get closed(): boolean {
    return Atomics.load(this.#u32, this.#base + closedWord) === 1
  }

  close(): void {
    Atomics.store(this.#u32, this.#base + closedWord, 1)
  }

  /** Workers must not start chunks, and must free their results. */
  get idle(): boolean {
    return Atomics.load(this.#u32, this.#base + idleWord) === 1
  }

  goIdle(idle: boolean): void {
    Atomics.store(this.#u32, this.#base + idleWord, idle ? 1 : 0)
  }

  /** Whether workers hold memory for their chunks and results. */
  get isHeld(): boolean {
    return Atomics.load(this.#u32, this.#base + holdersWord) > 0
  }

  countHolder(change: 1 | -1): void {
    Atomics.add(this.#u32, this.#base + holdersWord, change)
  }

  /** Number of chunks that were taken at least once. */
  get begun(): number {
    const count = this.#u32[this.#base + countWord]!
    return Math.min(count, Atomics.load(this.#u32, this.#base + nextWord))
  }

  /**
   * Discards a chunk's result, which will be computed again; returns the address of the result, or 0 if there was none.
   */
  withdraw(chunk: number): number {
    const result = this.resultOf(chunk)
    return result !== 0 && this.#replace(chunk, result + 1, 0) ? result : 0
  }

  /** Claims the next chunk; -1 when all were taken at least once. */
  next(): number {
    const count = this.#u32[this.#base + countWord]!
    while (Atomics.load(this.#u32, this.#base + nextWord) < count) {
      const chunk = Atomics.add(this.#u32, this.#base + nextWord, 1)
      if (chunk < count && this.#replace(chunk, 0, this.#claim)) return chunk
    }
    return -1
  }

  /** Claims a chunk that was given up; with `force` also one that another thread works on. False when it is done. */
  takeOver(chunk: number, force: boolean): boolean {
    const word = Atomics.load(this.#u32, this.#wordOf(chunk))
    if ((word & 1) === 1 || (word !== 0 && !force)) return false
    return this.#replace(chunk, word, this.#claim)
  }

  giveUp(chunk: number): void {
    this.#replace(chunk, this.#claim, 0)
  }

  /** Publishes the result; false when the chunk was taken over from this thread. */
  finish(chunk: number, result: number): boolean {
    return this.#replace(chunk, this.#claim, result + 1)
  }

  /** Address of a chunk's result, or 0 if there is none. */
  resultOf(chunk: number): number {
    const word = Atomics.load(this.#u32, this.#wordOf(chunk))
    return (word & 1) === 1 ? word - 1 : 0
  }

  /**
   * Ends the fragment before its time: no chunk is begun any more, and workers free their memory. False while another
   * thread works on a chunk; call it again then.
   */
  seal(): boolean {
    this.goIdle(true)
    const count = this.#u32[this.#base + countWord]!
    let sealed = true
    for (let chunk = 0; chunk < count; chunk++) {
      const word = Atomics.load(this.#u32, this.#wordOf(chunk))
      const claimed = word !== 0 && (word & 1) === 0 && word !== this.#claim
      if (claimed || !this.#replace(chunk, word, merged)) sealed = false
    }
    return sealed
  }

  setMerged(chunk: number): void {
    Atomics.store(this.#u32, this.#wordOf(chunk), merged)
  }

  /** Requests that this thread is woken after the coordinator's next merge. */
  awaitMerge(): void {
    Atomics.or(this.#u32, this.#base + waitingWord + (this.#threadId >>> 5), 1 << (this.#threadId & 31))
  }

  wakeWaiting(wake: (threadId: number) => void): void {
    for (let word = 0; word < waitingWords; word++) {
      if (Atomics.load(this.#u32, this.#base + waitingWord + word) === 0) continue
      const bits = Atomics.exchange(this.#u32, this.#base + waitingWord + word, 0)
      for (let bit = 0; bit < 32; bit++) if ((bits >>> bit) & 1) wake(word * 32 + bit)
    }
  }

  #replace(chunk: number, from: number, to: number): boolean {
    return Atomics.compareExchange(this.#u32, this.#wordOf(chunk), from, to) === from
  }

  #wordOf(chunk: number): number {
    return this.#base + headerWords + chunk
  }
}
