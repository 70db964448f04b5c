// One panel of a dashboard: runs its query and shows the rows as a chart, as rows or as a single value. An error is
// shown in the panel and does not affect other panels. Queries of panels are always read-only, whatever rights the
// viewer has, because another user may have written them.

import type { Panel } from '../../common/dashboards.js'
import { execute, type RowsAnswer } from '../app/api.js'
import { ChartView } from '../app/chart.js'
import { button, element, errorText } from '../app/dom.js'
import { Grid } from '../app/grid.js'
import { PagedRows } from '../app/paged-rows.js'
import type { TimeRange } from '../app/refine.js'
import { RowDetail } from '../app/row-detail.js'
import { cellText, grouped, isNumeric } from '../app/values.js'
import { panelSql, rangeSql, type SqlValues } from './panel-sql.js'

const rowsMax = { chart: 10_000, rows: 1000, value: 1 } as const
/** Pixels for each point of a chart. */
const pixelsPerPoint = 4
const pointsMin = 50

export interface PanelContext {
  readonly range: TimeRange
  readonly values: SqlValues
}

/** What can be done with a panel, by its menu and by keys. */
export interface PanelActions {
  readonly edit: () => void
  readonly move: (places: number) => void
  readonly duplicate: () => void
  readonly remove: () => void
  /** Into the editor. */
  readonly open: (sql: string) => void
  /** The time range was chosen in a chart; null: back to the range of the dashboard. */
  readonly zoom: (range: TimeRange | null) => void
}

export class PanelView {
  readonly host: HTMLElement
  readonly panel: Panel
  readonly #actions: PanelActions
  readonly #body = element('div', { className: 'panel-body' })
  readonly #note = element('span', { className: 'quiet panel-note' })
  #chart: ChartView | null = null
  #grid: { readonly grid: Grid; readonly rows: PagedRows } | null = null
  #sql = ''

  /** `isPreview`: in a form, without a menu. */
  constructor(panel: Panel, actions: PanelActions, isPreview = false) {
    this.panel = panel
    this.#actions = actions
    const title = panel.title === '' ? 'Panel' : panel.title
    const head = element('div', { className: 'panel-head' }, element('h3', {}, title), this.#note)
    if (!isPreview) head.append(this.#menu(title))
    this.host = element(
      'section',
      { className: `panel panel-${panel.kind} width-${panel.width} height-${panel.height}`, ariaLabel: title },
      head,
      this.#body,
    )
    if (isPreview) return
    this.host.tabIndex = 0
    this.host.role = 'group'
    this.host.addEventListener('keydown', (event) => this.#key(event))
  }

  close(): void {
    this.#chart?.close()
    this.#grid?.rows.close()
  }

  /** Runs the query and shows its rows; never rejects. */
  async load({ range, values }: PanelContext, signal: AbortSignal): Promise<void> {
    const { kind } = this.panel
    const points = Math.max(pointsMin, this.host.clientWidth / pixelsPerPoint)
    this.#sql = panelSql(this.panel.sql, new Map([...rangeSql(range, points), ...values]))
    this.host.ariaBusy = 'true'
    try {
      if (this.panel.sql === '') throw new Error('The panel has no query yet.')
      const answer = await execute(this.#sql, { limit: rowsMax[kind], readOnly: true, signal })
      if (signal.aborted) return
      if (answer.kind !== 'rows') throw new Error('The statement returns no rows.')
      this.#show(answer)
    } catch (error) {
      if (!signal.aborted) this.fail(errorText(error))
    } finally {
      if (!signal.aborted) this.host.ariaBusy = 'false'
    }
  }

  fail(message: string): void {
    this.close()
    this.#chart = null
    this.#grid = null
    this.#note.textContent = ''
    this.#body.replaceChildren(element('p', { className: 'problem panel-problem' }, message))
  }

  #show(answer: RowsAnswer): void {
    const { kind } = this.panel
    this.#note.textContent = kind === 'chart' && answer.more ? `the first ${grouped(answer.rows.length)} rows` : ''
    if (kind === 'chart') this.#showChart(answer)
    else if (kind === 'rows') this.#showRows(answer)
    else this.#body.replaceChildren(...this.#valueOf(answer))
  }

  #showChart(answer: RowsAnswer): void {
    if (this.#chart !== null) {
      this.#chart.update(this.#sql, answer)
      return
    }
    this.#chart = new ChartView(this.#sql, answer, {
      style: this.panel.style,
      zoomed: (range) => this.#actions.zoom(range),
    })
    this.#body.replaceChildren(this.#chart.host)
    this.#chart.draw()
  }

  /** Rows in which the user works stay as they are. */
  #showRows(answer: RowsAnswer): void {
    const before = this.#grid
    if (before?.grid.host.contains(document.activeElement) === true) return
    const scrolled = before?.grid.host.scrollTop ?? 0
    const rows = new PagedRows(this.#sql, answer, true)
    const detail = new RowDetail(rows, () => grid.host.focus())
    const grid = new Grid(rows, (row) => detail.open(row))
    rows.onChange = () => grid.refresh()
    rows.onError = (error) => this.fail(errorText(error))
    before?.rows.close()
    this.#grid = { grid, rows }
    this.#body.replaceChildren(element('div', { className: 'result-body' }, grid.host, detail.host))
    const sorting = before?.rows.sorting ?? null
    if (sorting !== null && sorting.column < rows.columns.length)
      rows.sort(sorting).catch((error: unknown) => this.fail(errorText(error)))
    grid.host.scrollTop = scrolled
  }

  /** The first number of the first row, or else its first column; the others are below it. */
  #valueOf({ columns, rows }: RowsAnswer): HTMLElement[] {
    const [row] = rows
    if (row === undefined) return [element('p', { className: 'empty' }, 'No rows.')]
    const main = Math.max(
      0,
      columns.findIndex(({ type }) => isNumeric(type)),
    )
    const text = cellText(row[main])
    const value = text === null ? 'NULL' : isNumeric(columns[main]?.type ?? '') ? numberText(text) : text
    const unit = this.panel.unit === '' ? null : element('span', { className: 'panel-unit' }, ` ${this.panel.unit}`)
    const others = columns.flatMap(({ name }, index) =>
      index === main ? [] : [`${name} ${cellText(row[index]) ?? 'NULL'}`],
    )
    return [
      element('p', { className: text === null ? 'panel-number null' : 'panel-number' }, value, unit),
      element('p', { className: 'quiet' }, others.join(' · ')),
    ]
  }

  #menu(title: string): HTMLElement {
    const { edit, move, duplicate, remove, open } = this.#actions
    const menu = element(
      'details',
      { className: 'menu right' },
      element('summary', { ariaLabel: `Menu of ${title}`, title: 'Menu' }, ''),
    )
    const items = [
      ['Edit …', edit],
      ['Move back', () => move(-1)],
      ['Move forward', () => move(1)],
      ['Duplicate', duplicate],
      ['Open in the editor', () => open(this.#sql)],
      ['Remove', remove],
    ] as const
    const buttons = items.map(([text, run]) =>
      button(text, () => {
        menu.open = false
        run()
      }),
    )
    menu.append(element('div', { className: 'menu-list' }, ...buttons))
    return menu
  }

  #key(event: KeyboardEvent): void {
    if (event.target !== this.host || event.ctrlKey || event.metaKey) return
    const { edit, move, remove } = this.#actions
    const run = event.altKey
      ? { ArrowLeft: () => move(-1), ArrowUp: () => move(-1), ArrowRight: () => move(1), ArrowDown: () => move(1) }
      : { Enter: edit, Delete: remove, ...this.#neighbours() }
    const found = Object.entries(run).find(([key]) => key === event.key)
    if (found === undefined) return
    event.preventDefault()
    found[1]()
  }

  #neighbours(): Readonly<Record<string, () => void>> {
    const focus = (other: Element | null) => (): void => {
      if (other instanceof HTMLElement) other.focus()
    }
    const [before, after] = [focus(this.host.previousElementSibling), focus(this.host.nextElementSibling)]
    return { ArrowLeft: before, ArrowUp: before, ArrowRight: after, ArrowDown: after }
  }
}

/** Whole numbers keep all digits; others have six. */
function numberText(text: string): string {
  if (/^-?\d+$/.test(text)) return grouped(text)
  const value = Number(text)
  if (!Number.isFinite(value)) return text
  const [whole = '', fraction] = String(Number(value.toPrecision(6))).split('.')
  return fraction === undefined ? grouped(whole) : `${grouped(whole)}.${fraction}`
}
