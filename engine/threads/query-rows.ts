// The result of a query as the engine's API returns it. Most results are complete at once, so the iterators for the
// others are created on demand.

import type { RowsResult } from '../api/statements.js'
import type { RunningQuery } from './query-reader.js'

type Known = Pick<RowsResult, 'columns' | 'timestampIndex' | 'rowsCertain' | 'compilerMs' | 'cached'>

export class QueryRows implements RowsResult {
  readonly kind = 'rows'
  readonly columns: RowsResult['columns']
  readonly timestampIndex: number
  readonly rowsCertain: () => number
  readonly compilerMs: number
  readonly cached: boolean
  readonly ready: RowsResult['ready']
  /** Number of inserted rows, for INSERT .. RETURNING. */
  inserted?: number
  /** Set for UPDATE and DELETE with RETURNING. */
  changed?: 'UPDATE' | 'DELETE'
  readonly #running: RunningQuery

  constructor(running: RunningQuery, { columns, timestampIndex, rowsCertain, compilerMs, cached }: Known) {
    this.columns = columns
    this.timestampIndex = timestampIndex
    this.rowsCertain = rowsCertain
    this.compilerMs = compilerMs
    this.cached = cached
    this.ready = running.ready
    this.#running = running
  }

  get blocks(): RowsResult['blocks'] {
    return this.#running.blocks
  }

  get values(): RowsResult['values'] {
    return this.#running.values
  }

  get packed(): RowsResult['packed'] {
    return this.#running.batches
  }

  get summary(): RowsResult['summary'] {
    return this.#running.summary
  }
}
