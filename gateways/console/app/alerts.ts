// The alerts on the console's live page: a table of their states, and a form that defines, changes and removes them. The
// server evaluates them; sys.alerts has their states.

import { removeAlert, storeAlert } from './api.js'
import { button, drawReleased, element, errorText, notify } from './dom.js'
import { patchChildren } from './patch.js'
import { plainTable } from './table-details.js'
import { grouped, type Row } from './values.js'

export const alertsQuery =
  'SELECT name, state, since, rows, coalesce(error, first_row, \'\'), every, "for", query FROM sys.alerts ORDER BY name'

const heads = ['Alert', 'State', 'Since', 'Rows', 'First row, or error', 'Query', '']
const durations = '[0-9]+[smhd]'

export class AlertsPanel {
  readonly host = element('section', { className: 'live-part live-alerts' })
  readonly #states = element('div', {})
  readonly #name = element('input', { required: true, spellcheck: false })
  readonly #every = element('input', { required: true, value: '1m', pattern: durations, size: 4 })
  readonly #for = element('input', { required: true, value: '0s', pattern: durations, size: 4 })
  readonly #query = element('textarea', { required: true, rows: 3, spellcheck: false })
  readonly #problem = element('p', { className: 'problem', role: 'alert' })
  readonly #form = element('details', {})
  /** By name. */
  #definitions: ReadonlyMap<string, Row> = new Map()

  constructor() {
    const form = element(
      'form',
      { className: 'import-form' },
      element(
        'div',
        { className: 'fields' },
        field('Name', this.#name),
        field('Every', this.#every),
        field('Fires after', this.#for),
      ),
      field('Query: the alert fires while it returns rows', this.#query),
      element('div', { className: 'bar' }, element('button', { type: 'submit', className: 'main' }, 'Save the alert')),
      this.#problem,
    )
    form.addEventListener('submit', (event) => {
      event.preventDefault()
      void this.#store()
    })
    this.#form.append(element('summary', {}, 'Add or change an alert'), form)
    this.host.append(element('h2', {}, 'Alerts'), this.#states, this.#form)
  }

  paint(alerts: readonly Row[]): void {
    const rows = alerts.map(([name, state, since, rowCount, text, , , query]) => {
      const edit = button('Change', () => this.#edit(String(name)))
      edit.title = `Change ${String(name)}`
      const remove = button('Remove', () => void this.#remove(String(name)), { title: `Remove ${String(name)}` })
      return [
        ...[String(name), stateMark(String(state)), secondsText(since), grouped(String(rowCount)), String(text ?? '')],
        element('code', {}, String(query).slice(0, 400)),
        element('div', { className: 'bar' }, edit, remove),
      ]
    })
    const none = element('p', { className: 'quiet' }, 'None.')
    const table = rows.length === 0 ? none : plainTable(heads, rows, new Set([3]))
    if (rows.length > 0) Object.assign(table, { ariaLabel: 'Alerts', role: 'region' })
    this.#definitions = new Map(alerts.map((row) => [String(row[0]), row]))
    drawReleased(this.#states, () => patchChildren(this.#states, [table]))
  }

  #edit(name: string): void {
    const [, , , , , every, duration, query] = this.#definitions.get(name) ?? []
    this.#form.open = true
    this.#name.value = name
    this.#every.value = String(every)
    this.#for.value = String(duration)
    this.#query.value = String(query)
    this.#query.focus()
  }

  async #store(): Promise<void> {
    const name = this.#name.value
    const definition = { name, query: this.#query.value, every: this.#every.value, for: this.#for.value }
    this.#problem.textContent = await storeAlert(definition).catch(errorText)
    if (this.#problem.textContent === '') notify(`The alert ${name} is saved.`)
  }

  async #remove(name: string): Promise<void> {
    const problem = await removeAlert(name).catch(errorText)
    notify(problem === '' ? `The alert ${name} is removed.` : problem)
  }
}

function secondsText(timestamp: Row[number] | undefined): string {
  return String(timestamp ?? '')
    .slice(0, 19)
    .replace('T', ' ')
}

function stateMark(state: string): HTMLElement {
  const className = { firing: 'problem', error: 'problem', pending: 'warning', inactive: 'good' }[state] ?? 'quiet'
  return element('span', { className }, state)
}

function field(label: string, control: HTMLElement): HTMLElement {
  return element('label', { className: 'field' }, element('span', {}, label), control)
}
