// Queries and rewrites that are to end, for the thread that is in the middle of a long piece of their work: it reads its
// messages only behind it.
//
//   1,024 words: the number of what is to end, at the place of its lowest bits
//
// Another one of the same bits takes the place: who has nothing but this word says it again until it is heard.

import { stopWordsAddress } from './layout.js'
import type { SharedMemory } from './shared-memory.js'

const wordsMask = 1023

export function stopWork({ i32 }: SharedMemory, id: number): void {
  Atomics.store(i32, (stopWordsAddress >>> 2) + (id & wordsMask), id)
}

/** What was stopped begins anew under its number. */
export function resumeWork({ i32 }: SharedMemory, id: number): void {
  Atomics.compareExchange(i32, (stopWordsAddress >>> 2) + (id & wordsMask), id, 0)
}

export function isStopped({ i32 }: SharedMemory, id: number): boolean {
  return Atomics.load(i32, (stopWordsAddress >>> 2) + (id & wordsMask)) === (id | 0)
}
