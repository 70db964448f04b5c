// Side panel of the result grid: all values of one row, untruncated and with their types.

import { button, copyToClipboard, element, notify } from './dom.js'
import type { PagedRows } from './paged-rows.js'
import { cellText, copyText, grouped } from './values.js'

export class RowDetail {
  readonly host = element('aside', { className: 'row-detail', hidden: true, ariaLabel: 'Row' })
  readonly #rows: PagedRows
  readonly #closed: () => void
  #index = 0

  /** `closed`: returns the focus. */
  constructor(rows: PagedRows, closed: () => void) {
    this.#rows = rows
    this.#closed = closed
    this.host.addEventListener('keydown', (event) => {
      if (event.key === 'Escape') this.close()
    })
  }

  open(index: number): void {
    this.#index = Math.max(0, Math.min(this.#rows.rowCount - 1, index))
    const row = this.#rows.row(this.#index)
    const fields = this.#rows.columns.map(({ name, type }, column) => {
      const text = row === undefined ? '…' : cellText(row[column])
      const value = element('dd', { className: text === null ? 'null' : '' }, text === null ? 'NULL' : pretty(text))
      return [element('dt', {}, name, element('span', { className: 'type' }, type)), value]
    })
    const step = (change: number): void => this.open(this.#index + change)
    const copy = (): void => {
      if (row === undefined) return
      void copyToClipboard(copyText('json', this.#rows.columns, [row])).then(() => notify('Copied the row as JSON.'))
    }
    const close = button('', () => this.close(), { icon: 'close', title: 'Close (Escape)', className: 'quiet' })
    this.host.replaceChildren(
      element(
        'div',
        { className: 'bar' },
        element('strong', {}, `Row ${grouped(this.#index + 1)}`),
        button('Previous', () => step(-1), { className: 'quiet', disabled: this.#index === 0 }),
        button('Next', () => step(1), { className: 'quiet', disabled: this.#index >= this.#rows.rowCount - 1 }),
        button('', copy, { icon: 'copy', title: 'Copy as JSON', className: 'quiet' }),
        close,
      ),
      element('dl', { tabIndex: 0, ariaLabel: 'Values' }, ...fields.flat()),
    )
    this.host.hidden = false
    close.focus()
  }

  close(): void {
    this.host.hidden = true
    this.#closed()
  }
}

/** Objects and arrays on several lines. */
function pretty(text: string): string {
  if (!/^[[{]/.test(text)) return text
  try {
    return JSON.stringify(JSON.parse(text), null, 2)
  } catch {
    return text
  }
}
