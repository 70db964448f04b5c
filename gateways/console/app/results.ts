// The result pane of the console: one result for each statement of a run, shown as rows, chart, message or error.

import { type ExportFormat, execute, exportFormats, exportRows, QueryError } from './api.js'
import { ChartView } from './chart.js'
import { firstChoice } from './chart-data.js'
import { button, copyToClipboard, element, errorText, notify, saveBlob, show } from './dom.js'
import { Grid } from './grid.js'
import { PagedRows } from './paged-rows.js'
import { RowDetail } from './row-detail.js'
import { type CopyFormat, copyFormats, copyText, durationText, grouped, sizeText } from './values.js'

/** Rows of the first page; the server may send fewer. */
const firstRows = 10_000

export interface Job {
  readonly sql: string
  readonly explain: boolean
  /** Shows the place of an error in the editor. */
  readonly goTo: (position: number, message: string) => void
}

type State = 'waiting' | 'running' | 'done' | 'failed' | 'cancelled'

/** One statement and what came of it. */
export class Result {
  readonly host = element('section', { className: 'result', role: 'tabpanel' })
  readonly job: Job
  state: State = 'waiting'
  summary = ''
  onChange: () => void = () => {}
  #rows: PagedRows | null = null
  #chart: ChartView | null = null
  readonly #abort = new AbortController()

  constructor(job: Job) {
    this.job = job
    this.host.append(element('p', { className: 'empty' }, 'Waits for the statements before it.'))
  }

  async run(): Promise<boolean> {
    if (this.#abort.signal.aborted) return false
    this.#become('running', '')
    const begunMs = performance.now()
    const clock = element('p', { className: 'empty' }, 'Running …')
    this.host.replaceChildren(clock)
    const ticking = setInterval(() => {
      clock.textContent = `Running for ${durationText(performance.now() - begunMs)} …`
    }, 100)
    try {
      const { sql, explain } = this.job
      const answer = await execute(sql, { limit: firstRows, explain, signal: this.#abort.signal })
      const took = durationText(performance.now() - begunMs)
      if (answer.kind === 'done') this.#showDone(answer.text, answer.notices, took)
      else this.#showRows(new PagedRows(sql, answer), took, answer.serverMs)
      return true
    } catch (error) {
      this.#showError(error)
      return false
    } finally {
      clearInterval(ticking)
    }
  }

  cancel(): void {
    this.#abort.abort()
    if (this.state === 'waiting') this.#become('cancelled', '')
  }

  close(): void {
    this.#abort.abort()
    this.#rows?.close()
    this.#chart?.close()
  }

  #become(state: State, summary: string): void {
    this.state = state
    this.summary = summary
    this.onChange()
  }

  #showDone(text: string, notices: readonly string[], took: string): void {
    const notes = notices.map((note) => element('p', { className: 'quiet' }, note))
    this.host.replaceChildren(
      element('div', { className: 'message' }, element('p', {}, `${text} in ${took}.`), ...notes),
    )
    this.#become('done', text === 'OK' ? took : text)
  }

  #showError(error: unknown): void {
    if (this.#abort.signal.aborted) {
      this.host.replaceChildren(element('div', { className: 'message' }, 'Cancelled.'))
      this.#become('cancelled', '')
      return
    }
    const message = errorText(error)
    const position = error instanceof QueryError ? error.position : 0
    const place = position > 0 ? placeText(this.job.sql, position) : null
    const goTo = (): void => this.job.goTo(position, message)
    this.host.replaceChildren(
      element(
        'div',
        { className: 'message problem', role: 'alert' },
        element('p', {}, message),
        place === null ? null : element('pre', { tabIndex: 0, ariaLabel: 'Place of the error' }, place),
        place === null ? null : button('Go to the place', goTo),
      ),
    )
    this.#become('failed', '')
    if (position > 0) goTo()
  }

  #showRows(rows: PagedRows, took: string, serverMs: number): void {
    this.#rows = rows
    const status = element('output', { className: 'status quiet' })
    const detail = new RowDetail(rows, () => grid.host.focus())
    const grid = new Grid(rows, (row) => detail.open(row))
    const body = element('div', { className: 'result-body' }, grid.host, detail.host)
    const chart =
      firstChoice(rows.columns) === null
        ? null
        : new ChartView(this.job.sql, { columns: rows.columns, rows: rows.loaded(), more: !rows.isComplete })
    this.#chart = chart
    const count = button('Count all', () => void this.#count(rows), { title: 'Runs the query to count its rows' })
    const paintStatus = (): void => {
      const server = element('span', { className: 'server-time' }, ` · server ${durationText(serverMs)}`)
      status.replaceChildren(`${rowsText(rows)} · ${took}`, ...(serverMs > 0 ? [server] : []))
      show(count, !rows.isComplete && rows.canPage)
    }
    rows.onChange = () => {
      grid.refresh()
      paintStatus()
    }
    rows.onError = (error) => notify(errorText(error))
    paintStatus()
    const tools = element('div', { className: 'bar result-tools' })
    if (chart !== null) tools.append(this.#views(body, grid, chart))
    tools.append(status, count, element('span', { className: 'grow' }), this.#copyMenu(grid), this.#exportMenu())
    this.host.replaceChildren(tools, body)
    this.#become('done', rows.isComplete ? `${grouped(rows.rowCount)}` : `${grouped(rows.rowCount)}+`)
  }

  /** Switches between rows and chart. */
  #views(body: HTMLElement, grid: Grid, chart: ChartView): HTMLElement {
    const choose = (charted: boolean): void => {
      toRows.ariaPressed = String(!charted)
      toChart.ariaPressed = String(charted)
      show(body, !charted)
      if (charted) {
        body.after(chart.host)
        chart.draw()
      } else {
        chart.host.remove()
        grid.refresh()
      }
    }
    const toRows = button('Rows', () => choose(false), { icon: 'rows' })
    const toChart = button('Chart', () => choose(true), { icon: 'chart' })
    toRows.ariaPressed = 'true'
    toChart.ariaPressed = 'false'
    return element('div', { className: 'segments', role: 'group', ariaLabel: 'View' }, toRows, toChart)
  }

  async #count(rows: PagedRows): Promise<void> {
    try {
      await rows.count()
      this.#become('done', grouped(rows.rowCount))
    } catch (error) {
      notify(errorText(error))
    }
  }

  #copyMenu(grid: Grid): HTMLElement {
    const names: Record<CopyFormat, string> = { text: 'Text with tabs', csv: 'CSV', json: 'JSON', markdown: 'Markdown' }
    const menu = element(
      'details',
      { className: 'menu' },
      element('summary', { title: 'The selection, or all loaded rows' }, 'Copy'),
    )
    const copy = async (format: CopyFormat): Promise<void> => {
      menu.open = false
      const { columns, rows } = grid.chosen()
      await copyToClipboard(copyText(format, columns, rows))
      notify(`Copied ${grouped(rows.length)} rows as ${names[format]}.`)
    }
    const items = copyFormats.map((format) =>
      button(names[format], () => copy(format).catch((error: unknown) => notify(errorText(error)))),
    )
    menu.append(element('div', { className: 'menu-list' }, ...items))
    return menu
  }

  /** All rows of the result as a file, not only those that are loaded. */
  #exportMenu(): HTMLElement {
    const names: Record<ExportFormat, string> = { csv: 'CSV', parquet: 'Parquet', ndjson: 'JSON lines', arrow: 'Arrow' }
    const menu = element(
      'details',
      { className: 'menu right' },
      element('summary', { title: 'All rows as a file' }, 'Export'),
    )
    const save = async (format: ExportFormat): Promise<void> => {
      menu.open = false
      const status = element('output', { className: 'quiet' })
      const abort = new AbortController()
      const cancel = button('', () => abort.abort(), { icon: 'close', title: 'Cancel the export', className: 'quiet' })
      menu.before(status, cancel)
      try {
        const blob = await exportRows(this.job.sql, format, abort.signal, (bytes) => {
          status.textContent = `${sizeText(bytes)} …`
        })
        saveBlob(blob, `penstock-${Date.now()}.${exportFormats[format]}`)
      } finally {
        status.remove()
        cancel.remove()
      }
    }
    const formats = ['csv', 'parquet', 'ndjson', 'arrow'] as const
    const items = formats.map((format) =>
      button(names[format], () => save(format).catch((error: unknown) => notify(errorText(error)))),
    )
    menu.append(element('div', { className: 'menu-list' }, ...items))
    return menu
  }
}

function rowsText(rows: PagedRows): string {
  const { rowCount, isComplete } = rows
  if (isComplete) return `${grouped(rowCount)} ${rowCount === 1 ? 'row' : 'rows'}`
  return `first ${grouped(rowCount)} rows of more`
}

/** The line with the error, and a caret below its place. */
function placeText(sql: string, position: number): string {
  const begin = sql.lastIndexOf('\n', position - 1) + 1
  const end = sql.indexOf('\n', position)
  const line = sql.slice(begin, end < 0 ? sql.length : end)
  return `${line}\n${' '.repeat(position - begin)}^`
}
