// Virtual grid of result rows: creates DOM elements only for the visible rows and columns. It is operated by pointer
// and by keyboard: arrow keys move the active cell, Shift extends the selection, Enter opens the row, Ctrl+C copies; in
// the header Enter sorts, and Alt with an arrow key changes the column's width.

import { copyToClipboard, element, errorText, notify } from './dom.js'
import {
  columnPixelsMin,
  columnWidths,
  rowsTop,
  scrollToRow,
  spacePixels,
  type Viewport,
  visibleRows,
} from './grid-maths.js'
import type { PagedRows } from './paged-rows.js'
import { type Column, cellText, copyText, grouped, isNumeric, type Row } from './values.js'

const rowPixels = 24
const headPixels = 38
const spareRows = 10
const cellCharactersMax = 500
const widthStep = 16

interface Cell {
  readonly row: number
  readonly column: number
}

/** The row of the header, for the active cell. */
const header = -1

interface Range {
  readonly first: number
  readonly last: number
  readonly left: number
  readonly right: number
}

/** A cell of the header, which lives as long as the grid. */
interface HeadCell {
  readonly host: HTMLElement
  readonly arrow: HTMLElement
}

let gridCount = 0

export class Grid {
  readonly host: HTMLElement
  readonly #id = `grid-${++gridCount}`
  readonly #rows: PagedRows
  readonly #head = element('div', { className: 'grid-head', role: 'row' })
  readonly #space = element('div', { className: 'grid-space', role: 'rowgroup' })
  readonly #widths: number[]
  readonly #openRow: (row: number) => void
  #active: Cell = { row: 0, column: 0 }
  #anchor: Cell = { row: 0, column: 0 }
  #frame = 0
  readonly #corner = element('div', { className: 'cell corner', role: 'columnheader', ariaLabel: 'Row' })
  readonly #headCells = new Map<number, HeadCell>()

  constructor(rows: PagedRows, openRow: (row: number) => void) {
    this.#rows = rows
    this.#openRow = openRow
    const texts = rows.loaded().map((row) => row.map((value) => cellText(value) ?? 'NULL'))
    this.#widths = columnWidths(
      rows.columns.map(({ name, type }) => (name.length > type.length ? name : type)),
      texts.slice(0, 200),
    )
    this.host = element('div', { className: 'grid', role: 'grid', tabIndex: 0, ariaLabel: 'Rows' })
    this.host.ariaColCount = String(rows.columns.length)
    this.host.append(element('div', { role: 'rowgroup', className: 'grid-top' }, this.#head), this.#space)
    this.#space.addEventListener('pointerdown', (event) => this.#press(event))
    this.#space.addEventListener('dblclick', () => this.#openRow(this.#active.row))
    this.#head.addEventListener('click', (event) => this.#pressHead(event))
    this.host.addEventListener('keydown', (event) => this.#key(event))
    this.host.addEventListener('scroll', () => this.#schedule(), { passive: true })
    new ResizeObserver(() => this.#schedule()).observe(this.host)
    this.refresh()
  }

  /** Draws again after rows have arrived or the order has changed. */
  refresh(): void {
    this.host.ariaRowCount = String(this.#rows.isComplete ? this.#rows.rowCount + 1 : -1)
    this.#schedule()
  }

  /** Columns and rows of the selection; all loaded rows if only one cell is selected. */
  chosen(): { readonly columns: readonly Column[]; readonly rows: readonly Row[] } {
    const { first, last, left, right } = this.#selection()
    if (first === last && left === right) return { columns: this.#rows.columns, rows: this.#rows.loaded() }
    const rows: Row[] = []
    for (let index = Math.max(0, first); index <= last; index++) {
      const row = this.#rows.row(index)
      if (row !== undefined) rows.push(row.slice(left, right + 1))
    }
    return { columns: this.#rows.columns.slice(left, right + 1), rows }
  }

  #selection(): Range {
    const [a, b] = [this.#active, this.#anchor]
    return {
      ...{ first: Math.min(a.row, b.row), last: Math.max(a.row, b.row) },
      ...{ left: Math.min(a.column, b.column), right: Math.max(a.column, b.column) },
    }
  }

  get #viewport(): Viewport {
    return {
      rowCount: this.#rows.rowCount,
      rowPixels,
      viewPixels: Math.max(rowPixels, this.host.clientHeight - headPixels),
    }
  }

  /** Width of the column with the numbers of rows. */
  get #gutter(): number {
    return 26 + 7.5 * String(this.#rows.rowCount).length
  }

  #schedule(): void {
    if (this.#frame !== 0) return
    this.#frame = requestAnimationFrame(() => {
      this.#frame = 0
      this.#paint()
    })
  }

  #paint(): void {
    const viewport = this.#viewport
    const { first, end, offset } = visibleRows(viewport, this.host.scrollTop, spareRows)
    const lefts = this.#lefts()
    const width = lefts.at(-1) ?? 0
    this.#space.style.height = `${spacePixels(viewport)}px`
    for (const part of [this.#space, this.#head]) part.style.width = `${width}px`
    const [left, right] = this.#visibleColumns(lefts)
    this.#paintHead(lefts, left, right)
    const rows: HTMLElement[] = []
    for (let index = first; index < end; index++) {
      const row = this.#rowElement(index, lefts, left, right)
      row.style.transform = `translateY(${offset + (index - first) * rowPixels}px)`
      rows.push(row)
    }
    this.#space.replaceChildren(...rows)
    this.host.setAttribute('aria-activedescendant', `${this.#id}-${this.#active.row}-${this.#active.column}`)
    this.#rows.nearEnd(Math.ceil((rowsTop(viewport, this.host.scrollTop) + viewport.viewPixels) / rowPixels))
  }

  /** Left edges of the columns, and the right edge of the last one. */
  #lefts(): number[] {
    let left = this.#gutter
    const lefts = this.#widths.map((width) => {
      left += width
      return left - width
    })
    return [...lefts, left]
  }

  #visibleColumns(lefts: readonly number[]): [first: number, end: number] {
    const from = this.host.scrollLeft
    const to = from + this.host.clientWidth
    const first = lefts.findIndex((_, index) => (lefts[index + 1] ?? Number.POSITIVE_INFINITY) > from)
    const end = lefts.findIndex((left) => left >= to)
    return [Math.max(0, first), end < 0 ? this.#widths.length : Math.min(end, this.#widths.length)]
  }

  /**
   * Changes the cells of the header in place. A browser sends no click for an element that is replaced, or only moved,
   * between press and release, and the grid is drawn whenever rows arrive.
   */
  #paintHead(lefts: readonly number[], first: number, end: number): void {
    this.#corner.style.width = `${this.#gutter}px`
    const cells = this.#rows.columns.slice(first, end).map((column, offset) => {
      const index = first + offset
      const cell = this.#headCells.get(index) ?? this.#headCell(column, index)
      this.#headCells.set(index, cell)
      this.#updateHeadCell(cell, index)
      cell.host.style.left = `${lefts[index] ?? 0}px`
      cell.host.style.width = `${this.#widths[index] ?? 0}px`
      return cell.host
    })
    const wanted = [this.#corner, ...cells]
    const { children } = this.#head
    if (wanted.length !== children.length || wanted.some((cell, index) => cell !== children[index]))
      this.#head.replaceChildren(...wanted)
  }

  #headCell({ name, type }: Column, index: number): HeadCell {
    const handle = element('div', { className: 'handle', attributes: { 'data-column': String(index) } })
    handle.addEventListener('pointerdown', (event) => this.#drag(event, index))
    handle.addEventListener('dblclick', () => this.#fit(index))
    const arrow = element('span', { className: 'arrow' })
    const host = element(
      'div',
      {
        ...{ className: `cell${isNumeric(type) ? ' right' : ''}`, role: 'columnheader' },
        ...{ title: `${name} ${type}`, id: `${this.#id}-${header}-${index}` },
        attributes: { 'aria-colindex': String(index + 1), 'data-column': String(index) },
      },
      element('span', { className: 'name' }, name, arrow),
      element('span', { className: 'type' }, type),
      handle,
    )
    return { host, arrow }
  }

  #updateHeadCell({ host, arrow }: HeadCell, index: number): void {
    const { sorting } = this.#rows
    const order = sorting?.column !== index ? 'none' : sorting.descending ? 'descending' : 'ascending'
    host.ariaSort = order
    arrow.textContent = { none: '', ascending: ' ▲', descending: ' ▼' }[order]
    host.classList.toggle('active', this.#active.row === header && this.#active.column === index)
  }

  #rowElement(index: number, lefts: readonly number[], first: number, end: number): HTMLElement {
    const row = this.#rows.row(index)
    const number = element('div', { className: 'cell number', role: 'rowheader' }, grouped(index + 1))
    number.style.width = `${this.#gutter}px`
    const made = element('div', { className: `grid-row${index % 2 === 1 ? ' odd' : ''}`, role: 'row' }, number)
    made.setAttribute('aria-rowindex', String(index + 2))
    made.setAttribute('data-row', String(index))
    const selection = this.#selection()
    for (let column = first; column < end; column++) {
      const cell = this.#cellElement(row, index, column, selection)
      cell.style.left = `${lefts[column] ?? 0}px`
      cell.style.width = `${this.#widths[column] ?? 0}px`
      made.append(cell)
    }
    return made
  }

  #cellElement(row: Row | undefined, index: number, column: number, selection: Range): HTMLElement {
    const { type = '' } = this.#rows.columns[column] ?? {}
    const text = row === undefined ? '…' : cellText(row[column])
    const { first, last, left, right } = selection
    const isSelected = index >= first && index <= last && column >= left && column <= right
    const isActive = index === this.#active.row && column === this.#active.column
    const kinds = [
      'cell',
      ...(text === null ? ['null'] : []),
      ...(isNumeric(type) ? ['right'] : []),
      ...(isSelected && (first !== last || left !== right) ? ['selected'] : []),
      ...(isActive ? ['active'] : []),
    ]
    const cell = element('div', { className: kinds.join(' '), role: 'gridcell' }, shortened(text ?? 'NULL'))
    cell.id = `${this.#id}-${index}-${column}`
    cell.setAttribute('aria-colindex', String(column + 1))
    cell.setAttribute('data-column', String(column))
    return cell
  }

  #press(event: PointerEvent): void {
    const place = this.#placeOf(event)
    if (place === null) return
    if (place.column < 0) {
      this.#select({ row: place.row, column: 0 }, false)
      this.#openRow(place.row)
      return
    }
    this.#select(place, event.shiftKey)
    const move = (next: PointerEvent): void => {
      const under = this.#placeOf(next)
      if (under !== null && under.column >= 0) this.#select(under, true)
    }
    if (event.pointerType !== 'mouse') return
    this.#space.addEventListener('pointermove', move)
    window.addEventListener('pointerup', () => this.#space.removeEventListener('pointermove', move), { once: true })
  }

  /** The cell under the pointer; column -1: the number of the row. */
  #placeOf({ target }: Event): Cell | null {
    if (!(target instanceof HTMLElement)) return null
    const row = target.closest('[data-row]')
    if (!(row instanceof HTMLElement)) return null
    return { row: Number(row.dataset['row']), column: Number(target.dataset['column'] ?? -1) }
  }

  #pressHead(event: MouseEvent): void {
    const { target } = event
    if (!(target instanceof HTMLElement) || target.className === 'handle') return
    const cell = target.closest('[data-column]')
    if (cell instanceof HTMLElement) this.#sort(Number(cell.dataset['column']))
  }

  /** Ascending, then descending, then as it came. */
  #sort(column: number): void {
    const { sorting } = this.#rows
    const next =
      sorting?.column !== column
        ? { column, descending: false }
        : sorting.descending
          ? null
          : { column, descending: true }
    this.host.ariaBusy = 'true'
    this.#rows
      .sort(next)
      .catch((error: unknown) => notify(errorText(error)))
      .finally(() => {
        if (!this.#rows.isSorting) this.host.ariaBusy = null
      })
  }

  #drag(begin: PointerEvent, column: number): void {
    begin.preventDefault()
    begin.stopPropagation()
    const width = this.#widths[column] ?? 0
    const move = (event: PointerEvent): void => this.#resize(column, width + event.clientX - begin.clientX)
    window.addEventListener('pointermove', move)
    window.addEventListener('pointerup', () => window.removeEventListener('pointermove', move), { once: true })
  }

  #resize(column: number, width: number): void {
    this.#widths[column] = Math.max(columnPixelsMin, Math.min(2000, width))
    this.#schedule()
  }

  /** The width that the longest visible value needs. */
  #fit(column: number): void {
    const texts = this.#rows.loaded().map((row) => cellText(row[column]) ?? 'NULL')
    const longest = texts.reduce((most, text) => Math.max(most, Math.min(200, text.length)), 4)
    this.#resize(column, Math.ceil(longest * 7.6) + 24)
  }

  #select(place: Cell, extend: boolean): void {
    const rowMax = this.#rows.rowCount - 1
    const column = Math.max(0, Math.min(this.#widths.length - 1, place.column))
    this.#active = { row: Math.max(extend ? 0 : header, Math.min(rowMax, place.row)), column }
    if (!extend) this.#anchor = this.#active
    this.#reveal()
    this.#schedule()
  }

  #reveal(): void {
    const { row, column } = this.#active
    if (row >= 0) {
      const top = scrollToRow(this.#viewport, this.host.scrollTop, row)
      if (top !== this.host.scrollTop) this.host.scrollTop = top
    }
    const lefts = this.#lefts()
    const [left = 0, right = 0] = [lefts[column], lefts[column + 1]]
    if (left - this.#gutter < this.host.scrollLeft) this.host.scrollLeft = left - this.#gutter
    else if (right > this.host.scrollLeft + this.host.clientWidth) this.host.scrollLeft = right - this.host.clientWidth
  }

  #key(event: KeyboardEvent): void {
    const { row, column } = this.#active
    const control = event.ctrlKey || event.metaKey
    const widens =
      row === header && event.altKey ? { ArrowLeft: -widthStep, ArrowRight: widthStep }[event.key] : undefined
    if (control && event.key === 'c') this.#copy()
    else if (control && event.key === 'a') this.#selectAll()
    else if (widens !== undefined) this.#resize(column, (this.#widths[column] ?? 0) + widens)
    else if (event.key === 'Enter' || event.key === ' ') {
      if (row === header) this.#sort(column)
      else this.#openRow(row)
    } else {
      const target = this.#targetOf(event, control)
      if (target === null) return
      this.#select(target, event.shiftKey)
    }
    event.preventDefault()
  }

  #selectAll(): void {
    this.#anchor = { row: 0, column: 0 }
    this.#active = { row: this.#rows.rowCount - 1, column: this.#widths.length - 1 }
    this.#schedule()
  }

  /** Where a key leads. */
  #targetOf({ key }: KeyboardEvent, control: boolean): Cell | null {
    const { row, column } = this.#active
    const page = Math.max(1, Math.floor(this.#viewport.viewPixels / rowPixels) - 1)
    const [rowMax, columnMax] = [this.#rows.rowCount - 1, this.#widths.length - 1]
    const moves: Record<string, Cell> = {
      ArrowUp: { row: control ? 0 : row - 1, column },
      ArrowDown: { row: control ? rowMax : row + 1, column },
      ArrowLeft: { row, column: control ? 0 : column - 1 },
      ArrowRight: { row, column: control ? columnMax : column + 1 },
      PageUp: { row: Math.max(0, row - page), column },
      PageDown: { row: row + page, column },
      Home: { row: control ? 0 : row, column: 0 },
      End: { row: control ? rowMax : row, column: columnMax },
    }
    return moves[key] ?? null
  }

  /** One cell as it is, several ones as text with tabs. */
  #copy(): void {
    const { first, last, left, right } = this.#selection()
    const single = first === last && left === right
    const text = single
      ? (cellText(this.#rows.row(first)?.[left]) ?? '')
      : copyText('text', ...tupleOf(this.chosen())).replace(/^.*\n/, '')
    copyToClipboard(text)
      .then(() => notify(single ? 'Copied the value.' : `Copied ${grouped(last - first + 1)} rows.`))
      .catch((error: unknown) => notify(errorText(error)))
  }
}

function tupleOf({ columns, rows }: ReturnType<Grid['chosen']>): [readonly Column[], readonly Row[]] {
  return [columns, rows]
}

function shortened(text: string): string {
  const line = text.length > cellCharactersMax ? `${text.slice(0, cellCharactersMax)}…` : text
  return line.replaceAll(/[\r\n]+/g, ' ↵ ')
}
