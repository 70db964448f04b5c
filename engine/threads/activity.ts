// Activity words in shared memory, beside each query thread's wake word: they say which query the thread is working on.
// The thread updates them at both ends of every slice of work, so that the main thread can detect a slice that does not
// end (query-watch.ts).
//
//   word 1  id of the query, 0 = none
//   word 2  number of slices so far

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

/** Returns a function to call at the start of a slice with the query's id, and at its end with 0. */
export function noteActivity({ i32 }: SharedMemory, threadId: number): (queryId: number) => void {
  const words = wordsOf(threadId)
  return (queryId) => {
    Atomics.store(i32, words + 1, queryId)
    if (queryId !== 0) Atomics.add(i32, words + 2, 1)
  }
}
