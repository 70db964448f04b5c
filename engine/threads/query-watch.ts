// Terminates query threads that do not respond. A query checks at every batch whether it is cancelled or past its
// deadline, but a single call that never ends does not check. If a query is overdue and its thread has stayed in the
// same slice of work between two checks, the thread is terminated and replaced.

import type { SharedMemory } from '../memory/shared-memory.js'
import { type Activity, activityOf } from './activity.js'

/** A query that should have ended, and a thread that may be running it. */
export interface Overdue {
  readonly threadId: number
  readonly queryId: number
}

export interface QueryWatchOptions {
  readonly memory: SharedMemory
  readonly overdue: (graceMs: number) => readonly Overdue[]
  /** Terminates the thread. */
  readonly end: (overdue: Overdue) => void
}

/** Time in ms that a query has to notice that it must end. */
const graceMs = 2000
const intervalMs = 1000

export class QueryWatch {
  readonly #options: QueryWatchOptions
  readonly #timer: NodeJS.Timeout
  /** The activity of overdue threads at the last check. */
  #seen = new Map<number, Activity>()

  constructor(options: QueryWatchOptions) {
    this.#options = options
    this.#timer = setInterval(() => this.look(), intervalMs)
    this.#timer.unref()
  }

  look(): void {
    const seen = new Map<number, Activity>()
    for (const overdue of this.#options.overdue(graceMs)) {
      const { threadId, queryId } = overdue
      const now = activityOf(this.#options.memory, threadId)
      if (now.queryId !== queryId) continue
      const before = this.#seen.get(threadId)
      if (before?.queryId === queryId && before.slices === now.slices) this.#options.end(overdue)
      else seen.set(threadId, now)
    }
    this.#seen = seen
  }

  close(): void {
    clearInterval(this.#timer)
  }
}
