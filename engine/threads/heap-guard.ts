// Watches a query thread's JavaScript heap, so that a query can be stopped before V8 terminates the thread with all its
// queries. Aggregates that count distinct values or concatenate strings store them on this heap. Two thresholds:
//
//   full      40 % of V8's limit: a query must spill to temporary files or fail
//   crowded   160 MiB: a query should spill, if one can. The settings limit the shared memory and not this heap, so it
//             is kept small.
//
// Garbage does not count: a heap above a threshold is garbage-collected and then measured again.

import { getHeapStatistics, setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

/** Minimum interval of checks, which take microseconds. */
const lookMs = 100
/** Minimum interval after a collection that freed enough. */
const collectMs = 5000
const fullShare = 0.4
const crowdedBytes = 160 * 1024 * 1024

export type HeapState = 'free' | 'crowded' | 'full'

/** Returns a function that tells the state of the heap. `canSpill`: whether it matters that the heap is crowded. */
export function heapGuard(nowMs: () => number): (canSpill: () => boolean) => HeapState {
  let lookAt = 0
  let collectAt = 0
  let collect: (() => void) | null = null
  return (canSpill) => {
    const now = nowMs()
    if (now < lookAt) return 'free'
    lookAt = now + lookMs
    const isFull = stateOfHeap() === 'full'
    const isCrowded = stateOfHeap() === 'crowded' && now >= collectAt && canSpill()
    if (!isFull && !isCrowded) return 'free'
    collect ??= collector()
    collect()
    const state = stateOfHeap()
    collectAt = nowMs() + collectMs
    if (isFull && state !== 'full') lookAt = collectAt
    return isCrowded || state === 'full' ? state : 'free'
  }
}

function stateOfHeap(): HeapState {
  const { used_heap_size: used, heap_size_limit: limit } = getHeapStatistics()
  if (used >= limit * fullShare) return 'full'
  return used >= crowdedBytes ? 'crowded' : 'free'
}

/**
 * A function that collects garbage. The V8 flag affects only contexts created after it is set, hence the new context.
 */
function collector(): () => void {
  setFlagsFromString('--expose-gc')
  return runInNewContext('gc') as () => void
}
