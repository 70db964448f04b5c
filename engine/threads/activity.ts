// What a query thread works at now, for who watches it: words beside its wake word, written at the beginning and at the end
// of every slice of work.
//
//   1  number of the query, 0 = none   2  slices so far

import { wakeWordStride, wakeWordsAddress } from '../memory/layout.js'
import type { SharedMemory } from '../memory/shared-memory.js'

export interface Activity {
  readonly queryId: number
  readonly slices: number
}

const wordsOf = (threadId: number): number => (wakeWordsAddress + threadId * wakeWordStride) >>> 2

export function activityOf({ i32 }: SharedMemory, threadId: number): Activity {
  const words = wordsOf(threadId)
  return { queryId: Atomics.load(i32, words + 1), slices: Atomics.load(i32, words + 2) }
}

/** `begin` says what the thread works at now; 0 ends it. */
export function noteActivity({ i32 }: SharedMemory, threadId: number): (queryId: number) => void {
  const words = wordsOf(threadId)
  return (queryId) => {
    Atomics.store(i32, words + 1, queryId)
    if (queryId !== 0) Atomics.add(i32, words + 2, 1)
  }
}
