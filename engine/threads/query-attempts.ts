// Types of the state that the pool of query threads (query-pool.ts) keeps: its threads, the queries, the attempts to
// run them, and the storage jobs.

import type { RunQuery } from '../exec/run/messages.js'
import type { RowsRead } from '../exec/scan/scan-progress.js'
import type { Job, StageWork } from '../storage/jobs/messages.js'
import type { QueuedQuery } from './memory-queue.js'
import type { ToQueryHost } from './messages.js'
import type { Running } from './query-reader.js'
import type { Thread } from './thread.js'

/** A query, until nothing uses its resources any more. */
export interface Task {
  readonly running: Running
  readonly request: Omit<RunQuery, 'kind' | 'queryId'>
  readonly ended: () => void
  readonly startedMs: number
  readonly starved: QueuedQuery
  /** What the current attempt has read; null: not known yet. */
  rowsRead: RowsRead | null
  /** Number of attempts that ended because rows of the object store were not on this disk. */
  fetches: number
  /** The thread of the current attempt; null between two attempts. */
  worker: Worker | null
}

/** One attempt to run a query: its workers, and what to do when they are gone. */
export interface ParallelAttempt {
  /** Whether other queries were running when the attempt began. */
  readonly ranWithOthers: boolean
  /** Number of this attempt among those of all queries. */
  readonly attempt: number
  readonly coordinator: Thread<ToQueryHost>
  readonly request: RunQuery
  /** Threads that may still be working for the query. */
  readonly fragmentWorkers: Set<Thread<ToQueryHost>>
  /** All threads that were notified. */
  readonly notified: Set<Thread<ToQueryHost>>
  called: boolean
  readonly startedMs: number
  /** When the query ended for its reader. */
  endedMs: number
  ended: (() => void) | null
}

export interface Worker {
  readonly thread: Thread<ToQueryHost>
  readonly queries: Set<Running>
  /** Queries whose result blocks belong to this thread, until the blocks are returned. */
  readonly readers: Set<Running>
  /** Jobs by id. */
  readonly jobs: Map<number, PostedJob>
}

export interface PostedJob {
  readonly jobId: number
  readonly job: Job | StageWork
  /** Number of threads that died while running it, except those terminated because of a query. */
  readonly deaths: number
}
