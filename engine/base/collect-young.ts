// Garbage of queries is collected behind them, where nobody waits, not within one of the next: that takes 3 to 8 ms of a
// query of one. For whoever runs with Node's `--expose-gc`; else V8 collects when it has to.

import { getHeapSpaceStatistics } from 'node:v8'

/** Less is not worth it. */
const youngBytesMin = 512 * 1024

/** To be called by a thread at rest. */
export function collectYoung(): void {
  const collect = globalThis.gc
  if (collect === undefined) return
  const young = getHeapSpaceStatistics().find(({ space_name }) => space_name === 'new_space')
  if (young === undefined || young.space_used_size < youngBytesMin) return
  collect({ type: 'minor', execution: 'sync' })
}
