// The chart view of a query result in the console: controls for the columns and the kind of chart, a legend for any
// number of series, and zooming. Dragging over a time range runs the query again for this range, with a shorter SAMPLE
// BY interval (refine.ts).

import { execute } from './api.js'
import {
  type ChartChoice,
  type ChartData,
  chartData,
  firstChoice,
  largest,
  rightColumns,
  type Series,
  stacked,
} from './chart-data.js'
import { button, element, errorText, notify, saveBlob, select } from './dom.js'
import { drawHeatMap } from './heat-map.js'
import { narrowed, refine, sampleInterval, type TimeRange } from './refine.js'
import { type ChartStyle, drawPlot, type Plot, resolvedColour } from './uplot.js'
import { type Column, grouped, isNumeric, isText, isTime, type Row } from './values.js'

const colours = [
  '#2a8f85',
  '#d9702e',
  '#5b7be0',
  '#b8478a',
  '#a58a1e',
  '#4aa04a',
  '#8a62cc',
  '#d05252',
  '#4196c4',
  '#84868a',
]
const dashes: readonly (readonly number[])[] = [[], [6, 4], [2, 3], [10, 4, 2, 4]]
const shownMax = 40
/** Rows of a heat map. */
const heatRowsMax = 400
const listedMax = 500
/** Points for each pixel of a zoomed chart's width. */
const pointsPerPixel = 0.5

interface Rows {
  readonly columns: readonly Column[]
  readonly rows: readonly Row[]
  /** Whether the result has more rows, which are not drawn. */
  readonly more: boolean
}

/** A chart within a panel: its controls are elsewhere. */
interface Embedding {
  readonly style: ChartStyle
  /** A range was dragged over, or null: it was double clicked. Without it, the chart asks for the range itself. */
  readonly zoomed: (range: TimeRange | null) => void
}

export class ChartView {
  readonly host = element('div', { className: 'chart' })
  readonly #embedding: Embedding | null
  readonly #closing = new AbortController()
  #sql: string
  #whole: Rows
  readonly #tools = element('div', { className: 'bar chart-tools' })
  readonly #plotHost = element('div', { className: 'plot' })
  readonly #legend = element('div', { className: 'legend' })
  #shown: Rows
  #choice: ChartChoice | null
  #style: ChartStyle = 'lines'
  #right: Set<number> | null = null
  #visible: Set<string> | null = null
  /** Whether the user has chosen what is visible. */
  #isChosen = false
  /** While a range is dragged over, rows that arrive wait. */
  #isDragging = false
  #waiting: (() => void) | null = null
  #range: TimeRange | null = null
  #interval: string | null
  #plot: Plot | null = null
  #data: ChartData | null = null
  #filter = ''

  constructor(sql: string, rows: Rows, embedding: Embedding | null = null) {
    this.#embedding = embedding
    if (embedding !== null) this.#style = embedding.style
    this.#sql = sql
    this.#whole = rows
    this.#shown = rows
    this.#choice = firstChoice(rows.columns)
    this.#interval = sampleInterval(sql)
    if (embedding === null) this.host.append(this.#tools)
    this.host.append(element('div', { className: 'chart-body' }, this.#plotHost, this.#legend))
    this.#plotHost.addEventListener('dblclick', () => (embedding === null ? this.#reset() : embedding.zoomed(null)))
    const { signal } = this.#closing
    this.#plotHost.addEventListener('pointerdown', () => {
      this.#isDragging = true
    })
    for (const end of ['pointerup', 'pointercancel']) document.addEventListener(end, () => this.#endDrag(), { signal })
    const resizing = new ResizeObserver(() => this.#plot?.resize())
    resizing.observe(this.#plotHost)
    signal.addEventListener('abort', () => resizing.disconnect())
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => this.draw(), { signal })
    document.addEventListener('theme', () => this.draw(), { signal })
  }

  #endDrag(): void {
    const waiting = this.#waiting
    this.#isDragging = false
    this.#waiting = null
    if (waiting !== null) setTimeout(waiting)
  }

  /** Draws other rows; what is shown of them stays, if they have the same columns. */
  update(sql: string, rows: Rows): void {
    if (this.#isDragging) {
      this.#waiting = () => this.update(sql, rows)
      return
    }
    const names = (of: Rows): string => JSON.stringify(of.columns)
    const isSame = names(rows) === names(this.#whole)
    this.#sql = sql
    this.#whole = rows
    this.#shown = rows
    if (!isSame) this.#choice = firstChoice(rows.columns)
    if (!isSame || !this.#isChosen) this.#visible = null
    this.#right = null
    this.draw()
  }

  close(): void {
    this.#closing.abort()
    this.#plot?.close()
    this.#plot = null
  }

  /** Draws, once the host is in the page. */
  draw(): void {
    if (!this.host.isConnected) return
    this.#plot?.close()
    this.#plot = null
    this.#plotHost.replaceChildren()
    const { columns, rows } = this.#shown
    if (this.#choice === null || rows.length === 0) {
      const reason =
        rows.length === 0 ? 'There are no rows to draw.' : 'A chart needs a time or a number, and another number.'
      this.#plotHost.append(element('p', { className: 'empty' }, reason))
      this.#legend.replaceChildren()
      this.#paintTools(columns)
      return
    }
    this.#data = chartData(columns, rows, this.#choice)
    this.#visible ??= largest(this.#data.series, this.#style === 'heat' ? heatRowsMax : shownMax)
    this.#right ??= rightColumns(this.#data.series)
    this.#paintTools(columns)
    this.#paintPlot(this.#data)
    this.#paintLegend(this.#data, null)
  }

  #paintPlot({ x, series, isTime: timed }: ChartData): void {
    const shown = series.filter(({ label }) => this.#visible?.has(label))
    const isStacked = (this.#style === 'area' || this.#style === 'bars') && shown.length > 1
    const sums = isStacked ? stacked(shown, x.length) : []
    const drawn = shown.map((one, index) => ({
      label: one.label,
      ...this.#lookOf(one.label, series),
      right: !isStacked && this.#right?.has(one.column) === true,
      data: isStacked ? (sums[index] ?? []) : one.points,
    }))
    // The highest sums are drawn first, and the lower ones over them.
    if (isStacked) drawn.reverse()
    const draw = this.#style === 'heat' ? drawHeatMap : drawPlot
    this.#plot = draw({
      ...{ host: this.#plotHost, x, isTime: timed, style: this.#style, series: drawn },
      hovered: (index) => this.#paintLegend(this.#data, index),
      selected: (from, to) => void this.#zoom(from, to),
    })
  }

  #lookOf(label: string, series: readonly Series[]): { colour: string; dash: readonly number[] } {
    const index = Math.max(
      0,
      series.findIndex((one) => one.label === label),
    )
    return {
      colour: colours[index % colours.length] ?? '#888888',
      dash: dashes[Math.floor(index / colours.length) % dashes.length] ?? [],
    }
  }

  #paintTools(columns: readonly Column[]): void {
    const choice = this.#choice
    const { series } = this.#data ?? { series: [] }
    const styles = [
      ['lines', 'Lines'],
      ['area', 'Stacked area'],
      ['bars', 'Bars'],
      ['points', 'Points'],
      ['heat', 'Heat map'],
    ] as const
    const parts: (Node | null)[] = [
      select('Kind of chart', styles, this.#style, (value) => {
        this.#style = styles.find(([style]) => style === value)?.[0] ?? 'lines'
        if (series.length > shownMax) this.#visible = null
        this.draw()
      }),
    ]
    if (choice !== null) parts.push(...this.#choosers(columns, choice))
    const zoomed = this.#range !== null
    parts.push(
      element('span', { className: 'grow' }),
      this.#shown.more
        ? element('span', { className: 'warning' }, `the first ${grouped(this.#shown.rows.length)} rows`)
        : null,
      this.#interval === null ? null : element('span', { className: 'quiet' }, `SAMPLE BY ${this.#interval}`),
      zoomed ? button('Whole range', () => this.#reset(), { title: 'Double click does the same' }) : null,
      button('', () => this.#save(), { icon: 'download', title: 'Save the chart as an image', className: 'quiet' }),
    )
    this.#tools.replaceChildren(...parts.filter((part) => part !== null))
  }

  #choosers(columns: readonly Column[], choice: ChartChoice): (Node | null)[] {
    const listed = (fits: (type: string) => boolean): [string, string][] =>
      columns.flatMap(({ name, type }, index) => (fits(type) ? [[String(index), name] satisfies [string, string]] : []))
    const texts = listed(isText)
    const change = (changed: Partial<ChartChoice>): void => {
      this.#choice = { ...choice, ...changed }
      this.#visible = null
      this.#right = null
      this.draw()
    }
    const by: [string, string][] = [['-1', '(nothing)'], ...texts]
    return [
      labelled(
        'x',
        select(
          'Horizontal axis',
          listed((type) => isTime(type) || isNumeric(type)),
          String(choice.x),
          (value) => change({ x: Number(value), values: choice.values.filter((index) => index !== Number(value)) }),
        ),
      ),
      texts.length === 0
        ? null
        : labelled(
            'by',
            select('A line for each', by, String(choice.by), (value) => change({ by: Number(value) })),
          ),
      this.#columnsMenu(columns, choice, change),
    ]
  }

  /** Which columns are drawn, and on which axis. */
  #columnsMenu(
    columns: readonly Column[],
    choice: ChartChoice,
    change: (changed: Partial<ChartChoice>) => void,
  ): HTMLElement {
    const menu = element(
      'details',
      { className: 'menu' },
      element('summary', {}, `${choice.values.length} ${choice.values.length === 1 ? 'column' : 'columns'}`),
    )
    const list = element('div', { className: 'menu-list' })
    columns.forEach(({ name, type }, index) => {
      if (!isNumeric(type) || index === choice.x) return
      const side = !choice.values.includes(index) ? 'off' : this.#right?.has(index) ? 'right' : 'left'
      const sides = [
        ['left', 'left axis'],
        ['right', 'right axis'],
        ['off', 'not shown'],
      ] as const
      const chooser = select(`Axis of ${name}`, sides, side, (value) => {
        const right = new Set(this.#right)
        if (value === 'right') right.add(index)
        else right.delete(index)
        const values = choice.values.filter((other) => other !== index)
        change({ values: value === 'off' ? values : [...values, index].sort((a, b) => a - b) })
        this.#right = right
        this.draw()
      })
      list.append(element('label', {}, element('span', {}, name), chooser))
    })
    menu.append(list)
    return menu
  }

  /** Values at the pointer, and switches for the series. */
  #paintLegend(data: ChartData | null, at: number | null): void {
    if (data === null) return
    const { series } = data
    if (at !== null && this.#legend.childElementCount > 0) {
      this.#updateValues(data, at)
      return
    }
    const wanted = this.#filter.toLowerCase()
    const found = series.filter(({ label }) => label.toLowerCase().includes(wanted))
    const list = element('ul', { ariaLabel: 'Series' })
    for (const one of found.slice(0, listedMax)) list.append(this.#legendItem(one, series))
    const parts: Node[] = [element('div', { className: 'legend-time quiet' }, timeText(data, null))]
    if (series.length > shownMax) parts.push(...this.#legendHead(series))
    if (found.length > listedMax)
      list.append(element('li', { className: 'quiet' }, `and ${found.length - listedMax} more`))
    this.#legend.replaceChildren(...parts, list)
  }

  #legendHead(series: readonly Series[]): Node[] {
    const filter = element('input', {
      type: 'search',
      placeholder: 'Filter',
      ariaLabel: 'Filter the series',
      value: this.#filter,
    })
    filter.addEventListener('input', () => {
      this.#filter = filter.value
      this.#paintLegend(this.#data, null)
      this.#legend.querySelector('input')?.focus()
    })
    const note = `${this.#visible?.size ?? 0} of ${series.length} series are shown: the largest ones, or those that you select.`
    return [element('p', { className: 'quiet' }, note), filter]
  }

  #legendItem({ label }: Series, series: readonly Series[]): HTMLElement {
    const box = element('input', { type: 'checkbox', checked: this.#visible?.has(label) === true })
    box.addEventListener('change', () => {
      this.#isChosen = true
      if (box.checked) this.#visible?.add(label)
      else this.#visible?.delete(label)
      this.draw()
    })
    const swatch = element('span', { className: 'swatch' })
    swatch.style.backgroundColor = this.#lookOf(label, series).colour
    const value = element('span', { className: 'value', attributes: { 'data-series': label } })
    return element(
      'li',
      {},
      element('label', {}, box, swatch, element('span', { className: 'name', title: label }, label), value),
    )
  }

  #updateValues(data: ChartData, at: number): void {
    const time = this.#legend.querySelector('.legend-time')
    if (time !== null) time.textContent = timeText(data, at)
    const values = new Map(data.series.map(({ label, points }) => [label, points[at]]))
    for (const cell of this.#legend.querySelectorAll('[data-series]')) {
      if (!(cell instanceof HTMLElement)) continue
      const value = values.get(cell.dataset['series'] ?? '')
      cell.textContent = value === null || value === undefined ? '' : String(Number(value.toPrecision(8)))
    }
  }

  async #zoom(from: number, to: number): Promise<void> {
    if (this.#choice === null || this.#data === null || !this.#data.isTime) return
    const range = { fromMs: from * 1000, toMs: to * 1000 }
    if (this.#embedding !== null) return this.#embedding.zoomed(range)
    const time = this.#shown.columns[this.#choice.x]?.name ?? ''
    const points = Math.max(100, this.#plotHost.clientWidth * pointsPerPixel)
    const sql = refine(this.#sql, time, range, points) ?? narrowed(this.#sql, time, range)
    this.host.setAttribute('aria-busy', 'true')
    try {
      const answer = await execute(sql)
      if (answer.kind !== 'rows') return
      this.#shown = answer
      this.#range = range
      this.#interval = sampleInterval(sql)
      this.draw()
    } catch (error) {
      notify(`The range cannot be asked for: ${errorText(error)}`)
    } finally {
      this.host.removeAttribute('aria-busy')
    }
  }

  #reset(): void {
    this.#shown = this.#whole
    this.#range = null
    this.#interval = sampleInterval(this.#sql)
    this.draw()
  }

  /** Plot, title and legend as a PNG file. */
  #save(): void {
    const source = this.#plot?.canvas
    const data = this.#data
    if (source === undefined || data === null) return
    const scale = devicePixelRatio
    const shown = data.series.filter(({ label }) => this.#visible?.has(label)).slice(0, shownMax)
    const [lineHeight, perLine] = [18 * scale, Math.max(1, Math.floor(source.width / (180 * scale)))]
    const canvas = element('canvas', {
      width: source.width + 24 * scale,
      height: source.height + 24 * scale + Math.ceil(shown.length / perLine) * lineHeight,
    })
    const context = canvas.getContext('2d')
    if (context === null) return
    const style = getComputedStyle(this.host)
    context.fillStyle = resolvedColour(this.host, style.getPropertyValue('--panel'))
    context.fillRect(0, 0, canvas.width, canvas.height)
    context.drawImage(source, 12 * scale, 12 * scale)
    context.font = `${12 * scale}px system-ui, sans-serif`
    shown.forEach(({ label }, index) => {
      const left = 16 * scale + (index % perLine) * 180 * scale
      const top = source.height + 22 * scale + Math.floor(index / perLine) * lineHeight
      context.fillStyle = this.#lookOf(label, data.series).colour
      context.fillRect(left, top - 8 * scale, 10 * scale, 10 * scale)
      context.fillStyle = style.color
      context.fillText(label.slice(0, 26), left + 16 * scale, top)
    })
    canvas.toBlob((blob) => {
      if (blob !== null) saveBlob(blob, `penstock-chart-${Date.now()}.png`)
    })
  }
}

function labelled(text: string, control: HTMLElement): HTMLElement {
  return element('label', { className: 'inline' }, element('span', { className: 'quiet' }, text), control)
}

function timeText({ x, isTime: timed }: ChartData, at: number | null): string {
  const value = at === null ? undefined : x[at]
  if (value === undefined) return timed ? 'UTC. Drag to zoom.' : 'Move over the chart for values.'
  return timed ? `${new Date(value * 1000).toISOString().replace('T', ' ').replace('Z', '')} UTC` : String(value)
}
