// Starts queries: small ones run inline on the main thread, all others on a query thread. The table versions that a
// query on a query thread reads are held (not freed) until it ends. Also lists the running queries and changes for
// query_activity(), and executes pg_sleep(), which delays the start of a query without blocking a thread.

import type { ExecuteOptions } from '../api/statements.js'
import { CancelledError, TimeoutError } from '../base/errors.js'
import type { QueryActivity } from '../sql/catalog.js'
import type { Query } from '../sql/plan/plan.js'
import type { RunningQuery } from '../threads/query-pool.js'
import type { WriterRequests } from '../threads/writer-requests.js'
import type { LocalEngineOptions } from './local-options.js'
import { activityOf, cancelReason, type RunOptions, requestOf } from './plan-helpers.js'

type QueryRunsOptions = Pick<LocalEngineOptions, 'view' | 'queries' | 'inline' | 'jit' | 'clock'>

export class QueryRuns {
  /** Queries on query threads, and changes that can be cancelled, by id. */
  readonly activity = new Map<number, QueryActivity>()
  readonly #options: QueryRunsOptions
  readonly #requests: Pick<WriterRequests, 'symbolsOf'>

  constructor(options: QueryRunsOptions, requests: Pick<WriterRequests, 'symbolsOf'>) {
    this.#options = options
    this.#requests = requests
  }

  /** What runs, with the rows that queries have read. */
  running(): QueryActivity[] {
    const { queries } = this.#options
    return Array.from(this.activity.values(), (entry) => ({ ...entry, rowsRead: queries.rowsRead(entry.queryId) }))
  }

  /** `ended` is called once, at the end of the query. */
  run(
    sql: string,
    query: Query,
    options: RunOptions,
    ended: () => void,
    nowMicros = this.#options.clock.nowMicros(),
  ): RunningQuery {
    const { view, queries, inline, jit, clock } = this.#options
    const { session } = options
    const request = requestOf(query, options, jit, nowMicros)
    const finished = inline?.run(request, session.snapshot)
    if (finished) {
      ended()
      return finished
    }
    const held = view.hold(query.tables, session.snapshot)
    const over = (): void => {
      held.release()
      this.activity.delete(running.queryId)
      ended()
    }
    const running = queries.run({ ...request, snapshots: held.snapshots }, over, this.#requests.symbolsOf(held))
    this.activity.set(running.queryId, activityOf(running.queryId, sql, session, clock))
    return running
  }
}

/** The delay ends early when the deadline passes or the client cancels. Throws TimeoutError and CancelledError. */
export function sleepBefore(
  sleepMs: number,
  { signal, timeoutMs }: Pick<ExecuteOptions, 'signal' | 'timeoutMs'>,
): Promise<void> {
  return new Promise((resolve, reject) => {
    const timesOut = timeoutMs > 0 && timeoutMs < sleepMs
    const timer = setTimeout(
      () => {
        signal?.removeEventListener('abort', cancel)
        if (timesOut) reject(new TimeoutError(timeoutMs))
        else resolve()
      },
      timesOut ? timeoutMs : sleepMs,
    )
    const cancel = (): void => {
      clearTimeout(timer)
      reject(new CancelledError(cancelReason(signal)))
    }
    if (signal?.aborted === true) cancel()
    else signal?.addEventListener('abort', cancel, { once: true })
  })
}
