// Detects that a thread's JavaScript heap is nearly full of live data, so that a query can be stopped before V8
// terminates the thread with all its queries. Aggregates that count distinct values or concatenate strings store them
// on that heap. Garbage must not count, so a full heap is first garbage-collected and then measured again.

import { getHeapStatistics, setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

/** Minimum interval of checks, which take microseconds. */
const lookMs = 100
/** Minimum interval after a collection that freed enough. */
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

/**
 * A function that collects garbage. The V8 flag affects only contexts created after it is set, hence the new context.
 */
function collector(): () => void {
  setFlagsFromString('--expose-gc')
  return runInNewContext('gc') as () => void
}
