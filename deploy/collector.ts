// How V8 collects garbage in this process. Rows, pages and results lie in the shared memory; the heaps of JavaScript are
// small (16 MB on the main thread), and V8 allows a small heap little before it marks all of it. What a socket has read
// counts too, though it is gone with the next cheap collection: each 8 to 32 MB of line protocol cost a marking of the
// whole heap on five threads. That was a quarter of the server's processor time over TCP and a third over HTTP.
//
// The young part is collected by the thread that runs alone: with V8's own threads sharing the work, the main thread waited for
// them with an answer under way, for objects that are dead anyway.
//
// A process at rest keeps what it has learnt. Eight seconds behind the last collection V8 would reduce the memory of a
// thread that allocates little: it forgets the shapes of all objects that are dead at that moment, which are those of every
// query, and with them the compiled code that was made for them; and the young part begins at a megabyte again. Queries
// behind a rest took twice the processor time, the tenth of a kind as the first. What decides is read when a heap is made,
// so it stands in the command that starts the server: `heapFlags`.
//
// Whoever asks for a millisecond's work should not collect the garbage of a hundred queries before: threads at rest do
// (engine/base/collect-young.ts), for which Node lends them its collector.
//
// The other flags are read at each collection. They are set when all threads have started: V8 refuses the code cache of its own
// modules when flags differ from those with which it was made.

import { setFlagsFromString } from 'node:v8'
import { collectYoung } from '../engine/base/collect-young.js'
import { atRest } from './rest.js'

/** A heap may grow by so much before it is marked: 16 MB that live make a limit of about 80. */
const growthPercent = 300
/**
 * Of the command: a thread gives memory back behind a rest of half an hour, the young part has 16 MB from the first, and the
 * collector may be called. Without them all is well but a little slower.
 */
export const heapFlags: readonly string[] = [
  '--gc-memory-reducer-start-delay-ms=1800000',
  '--min-semi-space-size=16',
  '--expose-gc',
]

/** To be called before the process has other threads: their young parts, of which there are many, begin small. */
export function startSmallHeaps(): void {
  setFlagsFromString('--min-semi-space-size=0')
}

export function relaxCollector(): void {
  setFlagsFromString(`--heap-growing-percent=${growthPercent}`)
  setFlagsFromString('--no-parallel-scavenge')
}

const restLookMs = 100

/** On the main thread; the others do so where they wait (engine/threads/thread.ts). */
export function collectAtRest(): void {
  atRest(restLookMs, collectYoung)
}
