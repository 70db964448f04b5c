// Ends query threads that do not answer. A query asks at every batch whether it was cancelled or is too late; one whose
// single call never ends does not ask. When it is overdue, and its thread has been within the same slice of work from one
// look to another, the thread is ended; another takes its place.

import type { SharedMemory } from '../memory/shared-memory.js'
import { type Activity, activityOf } from './activity.js'

/** A query that should have ended, and a thread that may be at it. */
export interface Overdue {
  readonly threadId: number
  readonly queryId: number
}

export interface QueryWatchOptions {
  readonly memory: SharedMemory
  readonly overdue: (graceMs: number) => readonly Overdue[]
  /** Ends the thread. */
  readonly end: (overdue: Overdue) => void
}

/** How long a query may take to notice that it is over. */
const graceMs = 2000
const intervalMs = 1000

export class QueryWatch {
  readonly #options: QueryWatchOptions
  readonly #timer: NodeJS.Timeout
  /** What overdue threads were at when they were looked at last. */
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
