// Tunes V8's garbage collector for this process. Rows, pages and results are in shared memory, so the JavaScript heaps
// are small, and V8 by default lets a small heap grow only little before it marks all of it. Buffers read from sockets
// count as heap growth, so line protocol would trigger a full marking every few megabytes.
//
// V8 reads the flag at each collection. It is set after all threads have started, because V8 rejects the code
// cache of its own modules if flags differ from those with which it was created.

import { setFlagsFromString } from 'node:v8'

/** Percentage by which a heap may grow before it is marked. */
const growthPercent = 300

export function relaxCollector(): void {
  setFlagsFromString(`--heap-growing-percent=${growthPercent}`)
}
