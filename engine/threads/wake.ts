// Wake words: how threads tell each other that there is news. A sender first makes its news visible (a posted message, a
// stored word), then wakes; a thread reads its word, looks for news, and waits only while the word is still the same.

import { wakeWordStride, wakeWordsAddress } from '../memory/layout.js'
import type { SharedMemory } from '../memory/shared-memory.js'

/** Ids of the threads that exist once; query threads follow. */
export const threadIds = { main: 0, writer: 1, log: 2, firstQuery: 3 } as const

function wordOf(threadId: number): number {
  return (wakeWordsAddress + threadId * wakeWordStride) >>> 2
}

export function wake(memory: SharedMemory, threadId: number): void {
  Atomics.add(memory.i32, wordOf(threadId), 1)
  Atomics.notify(memory.i32, wordOf(threadId))
}

/** What the thread's word says now: read it before looking for news. */
export function wakeWord(memory: SharedMemory, threadId: number): number {
  return Atomics.load(memory.i32, wordOf(threadId))
}

/** Blocks while the word is still `seen`, at most `timeoutMs`. Never on the main thread. */
export function waitForWake(memory: SharedMemory, threadId: number, seen: number, timeoutMs: number): void {
  Atomics.wait(memory.i32, wordOf(threadId), seen, timeoutMs)
}
