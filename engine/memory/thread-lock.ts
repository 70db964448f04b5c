// A lock (latch) in shared memory that records its holder, so that it can be broken when that thread has died.
// Unlocking notifies other threads only if some wait, because a notification costs more than the typical critical
// section.
//
// Word (i32): 0 free, else thread id + 1, plus `awaited` when other threads wait.

import { assert } from '../base/assert.js'

/** Above all thread ids. */
const awaited = 0x1_0000
/** Attempts before the thread sleeps: most critical sections are shorter than falling asleep. */
const spinsMax = 200
/** Timeout of a wait in ms, because the holder may have died. */
const waitMs = 1

export function lock(i32: Int32Array, word: number, threadId: number): void {
  if (!tryLock(i32, word, threadId)) waitForLock(i32, word, threadId)
}

export function tryLock(i32: Int32Array, word: number, threadId: number): boolean {
  return Atomics.compareExchange(i32, word, 0, threadId + 1) === 0
}

function waitForLock(i32: Int32Array, word: number, threadId: number): void {
  for (let spins = 0; spins < spinsMax; spins++) if (tryLock(i32, word, threadId)) return
  for (;;) {
    const held = Atomics.load(i32, word)
    // Other threads may wait as well, so the lock is taken with the mark that it is awaited.
    if (held === 0 && Atomics.compareExchange(i32, word, 0, (threadId + 1) | awaited) === 0) return
    if (held === 0) continue
    assert((held & ~awaited) !== threadId + 1, 'A5: a thread takes a lock once')
    const marked = held | awaited
    if (held !== marked && Atomics.compareExchange(i32, word, held, marked) !== held) continue
    Atomics.wait(i32, word, marked, waitMs)
  }
}

export function unlock(i32: Int32Array, word: number): void {
  const held = Atomics.exchange(i32, word, 0)
  assert(held !== 0, 'A5: a lock is released by its holder')
  if (held >= awaited) Atomics.notify(i32, word, 1)
}

/** Releases a lock on behalf of a terminated thread that held it. */
export function breakLock(i32: Int32Array, word: number, threadId: number): void {
  for (;;) {
    const held = Atomics.load(i32, word)
    if ((held & ~awaited) !== threadId + 1) return
    if (Atomics.compareExchange(i32, word, held, 0) !== held) continue
    Atomics.notify(i32, word)
    return
  }
}
