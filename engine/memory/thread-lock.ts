// A lock in shared memory that says who holds it, so that it can be broken when that thread has died. Who gives it back wakes
// others only when some wait: that is a call into the engine, which costs more than what most holders do.
//
// Word (i32): 0 free, else thread id + 1, and `awaited` when others wait.

import { assert } from '../base/assert.js'

/** Above all thread ids. */
const awaited = 0x1_0000
/** Most hold it for less time than it takes to fall asleep. */
const spinsMax = 200
/** Who waits looks again after so long: the holder may have died. */
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
    // Whoever was asleep may not be the only one: it takes the lock as one that others wait for.
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

/** Takes the lock from a thread that has ended while it held it. */
export function breakLock(i32: Int32Array, word: number, threadId: number): void {
  for (;;) {
    const held = Atomics.load(i32, word)
    if ((held & ~awaited) !== threadId + 1) return
    if (Atomics.compareExchange(i32, word, held, 0) !== held) continue
    Atomics.notify(i32, word)
    return
  }
}
