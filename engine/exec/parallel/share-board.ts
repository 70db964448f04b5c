// Who works on which chunk of a shared fragment: a board in shared memory, one for each fragment that is shared. All
// threads take chunks from one counter; what a chunk gave is found by its number, whoever made it.
//
// Layout, u32 words:
//
//   0 next chunk | 1 chunk count | 2 lead's thread id | 3 closed (1: the lead needs nothing any more)
//   4 to 7 threads that wait until the lead merges, a bit each | 8 resting (1: the lead's reader has stopped)
//   16.. word of each chunk
//
// The word of a chunk is one of
//
//   0                   nobody works on it: it was never taken, given up, or its result was withdrawn
//   (thread id + 1) * 2   that thread works on it; below 64 KiB, so it is no address
//   address + 1         done: the result lies there, 64-byte aligned
//   1                   merged: the thread that made the result may use its memory again
//
// Invariants:
//   1. A thread publishes a result only by changing its own claim into the address, in one step. Who lost its claim
//      meanwhile (the lead took it over, because it waited for too long) throws its result away.
//   2. Results are made of the chunk alone, so it does not matter who made them.
//   3. Only the lead withdraws a result, which it reads then no more; whoever made it finds another word there, and may use
//      its memory again.
//   4. The board stays until every helper has been dismissed, longer than the query (QueryDoor sees to it).

import type { SharedMemory } from '../../memory/shared-memory.js'

const headerWords = 16
const nextWord = 0
const countWord = 1
const leadWord = 2
const closedWord = 3
const waitingWord = 4
const waitingWords = 4
const restingWord = 8
const merged = 1

export function boardBytes(chunks: number): number {
  return (headerWords + chunks) * 4
}

export function initBoard({ u32 }: SharedMemory, address: number, chunks: number, leadThreadId: number): void {
  const base = address >>> 2
  u32.fill(0, base, base + headerWords + chunks)
  u32[base + countWord] = chunks
  u32[base + leadWord] = leadThreadId
}

/** A board as one thread sees it. */
export class ShareBoard {
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

  get leadThreadId(): number {
    return this.#u32[this.#base + leadWord]!
  }

  get closed(): boolean {
    return Atomics.load(this.#u32, this.#base + closedWord) === 1
  }

  close(): void {
    Atomics.store(this.#u32, this.#base + closedWord, 1)
  }

  /** Helpers begin nothing and keep nothing. */
  get resting(): boolean {
    return Atomics.load(this.#u32, this.#base + restingWord) === 1
  }

  rest(resting: boolean): void {
    Atomics.store(this.#u32, this.#base + restingWord, resting ? 1 : 0)
  }

  /** Chunks that were taken once. */
  get begun(): number {
    const count = this.#u32[this.#base + countWord]!
    return Math.min(count, Atomics.load(this.#u32, this.#base + nextWord))
  }

  /** The lead does without the result of a chunk, which is to be made again; the address that it had, 0 = none. */
  withdraw(chunk: number): number {
    const result = this.resultOf(chunk)
    return result !== 0 && this.#replace(chunk, result + 1, 0) ? result : 0
  }

  /** Takes the next chunk that nobody has; -1 when all were taken once. */
  next(): number {
    const count = this.#u32[this.#base + countWord]!
    while (Atomics.load(this.#u32, this.#base + nextWord) < count) {
      const chunk = Atomics.add(this.#u32, this.#base + nextWord, 1)
      if (chunk < count && this.#replace(chunk, 0, this.#claim)) return chunk
    }
    return -1
  }

  /** Takes a chunk that was given up; `force`: that another thread works on, too. False when it is done. */
  takeOver(chunk: number, force: boolean): boolean {
    const word = Atomics.load(this.#u32, this.#wordOf(chunk))
    if ((word & 1) === 1 || (word !== 0 && !force)) return false
    return this.#replace(chunk, word, this.#claim)
  }

  giveUp(chunk: number): void {
    this.#replace(chunk, this.#claim, 0)
  }

  /** False when the chunk was taken from this thread. */
  finish(chunk: number, result: number): boolean {
    return this.#replace(chunk, this.#claim, result + 1)
  }

  /** Address of a chunk's result, 0 while there is none. */
  resultOf(chunk: number): number {
    const word = Atomics.load(this.#u32, this.#wordOf(chunk))
    return (word & 1) === 1 ? word - 1 : 0
  }

  setMerged(chunk: number): void {
    Atomics.store(this.#u32, this.#wordOf(chunk), merged)
  }

  /** This thread wants to be woken when the lead has merged something. */
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
