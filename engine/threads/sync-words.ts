// The words by which the writer asks the log thread for an fdatasync. One sync is under way at a time.
//
//   +0 requested u32 (a count) | +4 descriptor u32 | +64 completed u32 (a count) | +68 failed u32 (1 = the sync failed)
//
// The writer stores the descriptor, then the count, then wakes the log thread; the answer goes the other way.

import { controlBase } from '../memory/layout.js'
import type { SharedMemory } from '../memory/shared-memory.js'

const requestedWord = (controlBase + 32 * 1024) >>> 2
const descriptorWord = requestedWord + 1
const completedWord = requestedWord + 16
const failedWord = requestedWord + 17

/** Writer: asks for a sync of the file. */
export function requestSync(memory: SharedMemory, descriptor: number): void {
  memory.u32[descriptorWord] = descriptor
  Atomics.add(memory.u32, requestedWord, 1)
}

/** Log thread: the descriptor that waits for its sync, or -1. */
export function pendingSync(memory: SharedMemory): number {
  const waiting = Atomics.load(memory.u32, requestedWord) !== Atomics.load(memory.u32, completedWord)
  return waiting ? (memory.u32[descriptorWord] as number) : -1
}

/** Log thread: answers the pending request. */
export function completeSync(memory: SharedMemory, failed: boolean): void {
  memory.u32[failedWord] = failed ? 1 : 0
  Atomics.add(memory.u32, completedWord, 1)
}

/** Writer: how its last request stands. */
export function syncState(memory: SharedMemory): 'pending' | 'done' | 'failed' {
  if (pendingSync(memory) >= 0) return 'pending'
  return memory.u32[failedWord] === 1 ? 'failed' : 'done'
}
