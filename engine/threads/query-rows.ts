// The result of a query as the engine's API returns it: the description of the columns, and the rows as blocks, values
// or batches. Most results are complete when they are returned (`ready`), so iterators over the rows are created only
// if the caller asks for them.

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
  changed?: 'UPDATE' | 'DELETE' | 'MERGE'
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
