// Detects that the JavaScript heap of a thread is nearly full, before V8 terminates the thread with all its queries.
// Aggregates that count distinct values or concatenate strings keep them on that heap. Only live data counts, so a
// garbage collection is run before the result.

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
