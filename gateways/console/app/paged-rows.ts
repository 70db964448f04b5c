// PagedRows: the rows of a result of any size, fetched from the server in pages. A page is requested when it is about
// to be shown, and the least recently used pages are dropped, so the browser holds a limited number of rows.
//
// Each page runs the query again and skips the rows of the pages before it. If rows are inserted meanwhile, a row may
// be shown twice or not at all where two pages meet; an ORDER BY with a time range avoids that.

import { isQuery, quoted } from '../../common/sql-text.js'
import { countRows, execute, type RowsAnswer } from './api.js'
import { type Column, compareValues, type Row } from './values.js'

export interface Sorting {
  readonly column: number
  readonly descending: boolean
}

const pagesMax = 30

export class PagedRows {
  readonly sql: string
  readonly columns: readonly Column[]
  /** Called when rows have arrived, or their number has changed. */
  onChange: () => void = () => {}
  onError: (error: unknown) => void = () => {}
  #pages = new Map<number, readonly Row[]>()
  readonly #pending = new Map<number, Promise<void>>()
  readonly #abort = new AbortController()
  readonly #readOnly: boolean
  #pageRows: number
  #rowCount: number
  #isComplete: boolean
  #sorting: Sorting | null = null
  /** The order of the rows that are here, while the server sorts. */
  #settled: Sorting | null = null
  #sortAbort: AbortController | null = null
  /** The rows as they came, before a sort in the browser. */
  readonly #original: readonly Row[]

  /** `readOnly`: the server rejects a statement that changes anything. */
  constructor(sql: string, { columns, rows, more }: RowsAnswer, readOnly = false) {
    this.sql = sql
    this.#readOnly = readOnly
    this.columns = columns
    this.#original = rows
    this.#pages.set(0, rows)
    this.#pageRows = Math.max(1, rows.length)
    this.#rowCount = rows.length
    this.#isComplete = !more
  }

  /** Rows that are known to exist. */
  get rowCount(): number {
    return this.#rowCount
  }

  /** Whether that is all of them. */
  get isComplete(): boolean {
    return this.#isComplete
  }

  /** The order that was chosen last. */
  get sorting(): Sorting | null {
    return this.#sorting
  }

  /** Whether the server is still sorting, and the rows that are here have another order. */
  get isSorting(): boolean {
    return this.#sortAbort !== null
  }

  /** Whether pages behind the first one can be requested. */
  get canPage(): boolean {
    return isQuery(this.sql)
  }

  /** The rows that are in the browser, in order, from the first one on. */
  loaded(): readonly Row[] {
    const rows: Row[] = []
    for (let page = 0; this.#pages.has(page); page++) rows.push(...(this.#pages.get(page) ?? []))
    return rows
  }

  /** A row; undefined while its page is being fetched, which this begins. */
  row(index: number): Row | undefined {
    const number = Math.floor(index / this.#pageRows)
    const page = this.#pages.get(number)
    if (page === undefined) {
      void this.#fetch(number)
      return undefined
    }
    if (number > 0) {
      // The last page of the map is the most recently used one.
      this.#pages.delete(number)
      this.#pages.set(number, page)
    }
    return page[index - number * this.#pageRows]
  }

  /** Fetches the next page when the end of the known rows comes near. */
  nearEnd(index: number): void {
    if (this.#isComplete || !this.canPage || index < this.#rowCount - 200) return
    void this.#fetch(Math.floor(this.#rowCount / this.#pageRows))
  }

  /** Finds out how many rows there are. */
  async count(): Promise<void> {
    this.#rowCount = Math.max(this.#rowCount, await countRows(this.#ordered(), this.#abort.signal))
    this.#isComplete = true
    this.onChange()
  }

  /**
   * Sorts all rows: in the browser if all are here, else by the server. A sort that is still running is given up. If it
   * fails, the rows keep their order.
   */
  async sort(sorting: Sorting | null): Promise<void> {
    this.#sortAbort?.abort()
    this.#sortAbort = null
    this.#sorting = sorting
    // Pages in the order before are of no use.
    this.#pending.clear()
    if (this.#pages.size === 1 && this.#isComplete && this.#rowCount <= this.#original.length) {
      this.#settled = sorting
      this.#pages.set(0, sorting === null ? this.#original : sorted(this.#original, this.columns, sorting))
      this.onChange()
      return
    }
    const abort = new AbortController()
    this.#sortAbort = abort
    this.onChange()
    try {
      const answer = await this.#ask({ limit: this.#pageRows }, abort.signal)
      // Another order may have been chosen meanwhile.
      if (answer.kind !== 'rows' || abort !== this.#sortAbort) return
      this.#settled = sorting
      this.#pages = new Map([[0, answer.rows]])
    } catch (error) {
      if (abort !== this.#sortAbort || abort.signal.aborted) return
      this.#sorting = this.#settled
      throw error
    } finally {
      if (abort === this.#sortAbort) {
        this.#sortAbort = null
        this.onChange()
      }
    }
  }

  close(): void {
    this.#abort.abort()
    this.#sortAbort?.abort()
  }

  #ordered(): string {
    if (this.#sorting === null) return this.sql
    const { column, descending } = this.#sorting
    return `SELECT * FROM (${this.sql}\n) ORDER BY ${quoted(this.columns[column]?.name ?? '')}${descending ? ' DESC' : ''}`
  }

  #ask(
    range: { readonly skip?: number; readonly limit: number },
    signal = this.#abort.signal,
  ): ReturnType<typeof execute> {
    return execute(this.#ordered(), { ...range, readOnly: this.#readOnly, signal })
  }

  #fetch(page: number): Promise<void> {
    const running = this.#pending.get(page)
    // The pages of a new order begin with the first one.
    if (running !== undefined || this.isSorting || this.#abort.signal.aborted) return running ?? Promise.resolve()
    const fetching = this.#load(page)
      .catch((error: unknown) => {
        if (!this.#abort.signal.aborted) this.onError(error)
      })
      .finally(() => {
        if (this.#pending.get(page) === fetching) this.#pending.delete(page)
      })
    this.#pending.set(page, fetching)
    return fetching
  }

  async #load(page: number): Promise<void> {
    const skip = page * this.#pageRows
    const sorting = this.#sorting
    const answer = await this.#ask({ skip, limit: this.#pageRows })
    if (answer.kind !== 'rows' || sorting !== this.#sorting) return
    this.#pages.set(page, answer.rows)
    this.#evict()
    const end = skip + answer.rows.length
    if (end > this.#rowCount || (!this.#isComplete && !answer.more)) this.#rowCount = end
    if (!answer.more) this.#isComplete = true
    this.onChange()
  }

  /** The first page stays, since copies and charts begin with it. */
  #evict(): void {
    for (const page of this.#pages.keys()) {
      if (this.#pages.size <= pagesMax) return
      if (page !== 0) this.#pages.delete(page)
    }
  }
}

function sorted(rows: readonly Row[], columns: readonly Column[], { column, descending }: Sorting): Row[] {
  const type = columns[column]?.type ?? ''
  const direction = descending ? -1 : 1
  return [...rows].sort((x, y) => direction * compareValues(type, x[column] ?? null, y[column] ?? null))
}
