// Wake words: a futex for each thread, by which others wake it. A sender first makes its message visible (a posted
// message or a stored word), then wakes the thread. The receiver reads its word, looks for messages, and sleeps only
// while the word is unchanged, so no wake-up is lost.

import { wakeWordStride, wakeWordsAddress } from '../memory/layout.js'
import type { SharedMemory } from '../memory/shared-memory.js'

/** Ids of threads that exist once; those of query threads follow. */
export const threadIds = { main: 0, writer: 1, log: 2, firstQuery: 3 } as const

function wordOf(threadId: number): number {
  return (wakeWordsAddress + threadId * wakeWordStride) >>> 2
}

export function wake(memory: SharedMemory, threadId: number): void {
  Atomics.add(memory.i32, wordOf(threadId), 1)
  Atomics.notify(memory.i32, wordOf(threadId))
}

/** The current value of the thread's word; read it before looking for messages. */
export function wakeWord(memory: SharedMemory, threadId: number): number {
  return Atomics.load(memory.i32, wordOf(threadId))
}

/** Blocks while the word is still `seen`, at most `timeoutMs`. Never on the main thread. */
export function waitForWake(memory: SharedMemory, threadId: number, seen: number, timeoutMs: number): void {
  Atomics.wait(memory.i32, wordOf(threadId), seen, timeoutMs)
}
