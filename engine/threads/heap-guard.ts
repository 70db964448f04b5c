// Tells when the heap of JavaScript of a thread fills up: aggregates that count different values or join texts keep them
// there, and V8 would end the thread, with every query on it. Garbage is no reason: what is left is looked at again behind
// a collection.

import { getHeapStatistics, setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

/** Looking costs microseconds. */
const lookMs = 100
/** Between collections that found the heap not full. */
const collectMs = 5000
const fullShare = 0.4

export function heapGuard(nowMs: () => number): () => boolean {
  let lookAt = 0
  let collect: (() => void) | null = null
  return () => {
    const now = nowMs()
    if (now < lookAt) return false
    lookAt = now + lookMs
    if (usedShare() < fullShare) return false
    collect ??= collector()
    collect()
    if (usedShare() >= fullShare) return true
    lookAt = nowMs() + collectMs
    return false
  }
}

function usedShare(): number {
  const { used_heap_size: used, heap_size_limit: limit } = getHeapStatistics()
  return used / limit
}

/** The flag is set when it is needed first: it concerns contexts that are made behind it. */
function collector(): () => void {
  setFlagsFromString('--expose-gc')
  return runInNewContext('gc') as () => void
}
