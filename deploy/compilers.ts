// V8's compilers come behind whoever waits. Its four threads make code quicker that already runs; on a machine of two
// processors they took one, or both, from the thread that had an answer under way: in the first calls of a statement it
// waited for 3 to 7 ms. With a lower priority (Linux has one for each thread) the worst of three calls takes a tenth less,
// and rates of ingestion stay what they were.

import { readdirSync, readFileSync } from 'node:fs'
import { getPriority, setPriority } from 'node:os'

/** Above that of the process: a third of the share that another thread has of the same processor. */
const niceness = 5
const niceMost = 19

const taskFolder = '/proc/self/task'

/** To be called before the process has threads of its own making. Elsewhere than on Linux nothing happens. */
export function compileBehind(): void {
  if (process.platform !== 'linux') return
  try {
    const priority = Math.min(niceMost, getPriority() + niceness)
    for (const thread of compilerThreads()) setPriority(thread, priority)
  } catch {
    // A system that hides threads, or does not let their priority be changed: it serves all the same.
  }
}

/**
 * Threads of V8's platform. Node names them since version 22. Before, all have one name, and order tells: the thread that
 * waits for delayed tasks is made first, V8's four then, all others later.
 */
function compilerThreads(): number[] {
  const threads = readdirSync(taskFolder)
    .map(Number)
    .filter((thread) => thread !== process.pid)
    .sort((x, y) => x - y)
  const named = threads.filter((thread) =>
    readFileSync(`${taskFolder}/${thread}/comm`, 'latin1').startsWith('V8Worker'),
  )
  return named.length > 0 ? named : threads.slice(1, 5)
}
