// Cancellation flags in shared memory for queries and rewrite jobs. A thread that is in a long call does not read its
// messages, so it polls these words in between.
//
//   1,024 words: the id of the cancelled query or job, at the index of its lowest 10 bits
//
// Ids with the same lowest bits overwrite each other. A caller that relies on the flag alone sets it repeatedly until
// the work has stopped.

import { cancelFlagsAddress } from './layout.js'
import type { SharedMemory } from './shared-memory.js'

const wordsMask = 1023

export function setCancelFlag({ i32 }: SharedMemory, id: number): void {
  Atomics.store(i32, (cancelFlagsAddress >>> 2) + (id & wordsMask), id)
}

/** Clears the flag before cancelled work starts again under the same id. */
export function clearCancelFlag({ i32 }: SharedMemory, id: number): void {
  Atomics.compareExchange(i32, (cancelFlagsAddress >>> 2) + (id & wordsMask), id, 0)
}

export function isCancelFlagSet({ i32 }: SharedMemory, id: number): boolean {
  return Atomics.load(i32, (cancelFlagsAddress >>> 2) + (id & wordsMask)) === (id | 0)
}
