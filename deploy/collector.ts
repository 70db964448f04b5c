// How V8 collects garbage in this process. Rows, pages and results are in the shared memory; the heaps of JavaScript are
// small (16 MB on the main thread), and V8 lets a small heap grow little before it marks all of it. What a socket has read
// counts too, though it is gone with the next cheap collection: each 8 to 32 MB of line protocol cost a marking of the whole
// heap on five threads.
//
// The flags are read at each collection. They are set when all threads have started: V8 refuses the code cache of its own
// modules when flags differ from those with which it was made.

import { setFlagsFromString } from 'node:v8'

/** A heap may grow by this share before it is marked: 16 MB that live make a limit of about 80. */
const growthPercent = 300

export function relaxCollector(): void {
  setFlagsFromString(`--heap-growing-percent=${growthPercent}`)
  setFlagsFromString('--no-parallel-scavenge')
}
