// The form of a dashboard: name, who sees it, time range, refresh interval and variables.

import {
  type Dashboard,
  dashboardFrom,
  refreshIntervals,
  type Variable,
  variableKinds,
} from '../../common/dashboards.js'
import { button, byId, element, errorText, select, show } from '../app/dom.js'
import { openFormDialog } from './form-dialog.js'
import { choice, field } from './panel-form.js'

interface Settings {
  readonly name: string
  readonly shared: boolean
  readonly definition: Dashboard
}

const kindNames: Record<Variable['kind'], string> = {
  ...{ text: 'Text', number: 'Number', list: 'Choices', query: 'Choices of a query' },
}

/** `done`: with settings that are valid. */
export function openDashboardForm(
  { name: before, shared: wasShared, definition }: Settings,
  done: (settings: Settings) => void | Promise<void>,
): void {
  const name = element('input', { value: before, required: true, maxLength: 100, spellcheck: false })
  const shared = element('input', { type: 'checkbox', checked: wasShared })
  const range = element('input', { value: definition.range, required: true, spellcheck: false, size: 14 })
  let { refresh } = definition
  const problem = element('p', { className: 'problem', role: 'alert' })
  const list = element('div', { className: 'column-list' })
  const rows: VariableFields[] = []
  const add = (variable: Variable): void => {
    const row = new VariableFields(variable, () => {
      rows.splice(rows.indexOf(row), 1)
      row.host.remove()
    })
    rows.push(row)
    list.append(row.host)
  }
  for (const variable of definition.variables) add(variable)
  const form = element(
    'form',
    { className: 'import-form' },
    element(
      'div',
      { className: 'fields' },
      field('Name', name),
      field('Time range: a duration such as 6h, or from/to', range),
      field(
        'Refresh',
        select(
          'Refresh',
          refreshIntervals.map((each): [string, string] => [each, each]),
          refresh,
          (chosen) => {
            refresh = refreshIntervals.find((each) => each === chosen) ?? 'off'
          },
        ),
      ),
      element('label', { className: 'inline' }, shared, 'Shared: others see it, and only you change it'),
    ),
    element('h3', {}, 'Variables'),
    list,
    button('Add a variable', () => add({ name: '', kind: 'query', choices: [], sql: '', several: true, initial: [] }), {
      icon: 'plus',
    }),
    problem,
    element(
      'div',
      { className: 'bar' },
      element('button', { type: 'submit', className: 'main' }, 'Save the dashboard'),
    ),
  )
  form.addEventListener('submit', (event) => {
    event.preventDefault()
    try {
      const changed = { ...definition, range: range.value.trim(), refresh, variables: rows.map((row) => row.variable) }
      const settings = { name: name.value.trim(), shared: shared.checked, definition: dashboardFrom(changed) }
      byId('details', HTMLDialogElement).close()
      void done(settings)
    } catch (error) {
      problem.textContent = errorText(error)
    }
  })
  openFormDialog('Dashboard', form)
  byId('details', HTMLDialogElement).showModal()
  name.select()
}

class VariableFields {
  readonly host: HTMLElement
  readonly #name: HTMLInputElement
  readonly #source: HTMLTextAreaElement
  readonly #several: HTMLInputElement
  readonly #initial: HTMLInputElement
  readonly #sourceField: HTMLElement
  readonly #severalField: HTMLElement
  #kind: Variable['kind']

  constructor({ name, kind, choices, sql, several, initial }: Variable, remove: () => void) {
    this.#kind = kind
    this.#name = element('input', { value: name, ariaLabel: 'Name of the variable', placeholder: 'name', size: 10 })
    const source = kind === 'query' ? sql : choices.join('\n')
    this.#source = element('textarea', {
      value: source,
      rows: 2,
      spellcheck: false,
      ariaLabel: 'Query, or a choice a line',
    })
    this.#several = element('input', { type: 'checkbox', checked: several })
    this.#initial = element('input', {
      value: initial.join(', '),
      ariaLabel: 'Initial value',
      placeholder: 'initial',
      size: 10,
    })
    this.#sourceField = element('span', { className: 'grow' }, this.#source)
    this.#severalField = element('label', { className: 'inline' }, this.#several, 'several')
    const kinds = choice('Kind of variable', kindNames, variableKinds, kind, (chosen) => {
      this.#kind = chosen
      this.#paint()
    })
    this.host = element(
      'div',
      { className: 'bar variable-fields' },
      ...[this.#name, kinds, this.#sourceField, this.#severalField, this.#initial],
      button('', remove, { icon: 'close', title: 'Remove the variable', className: 'quiet' }),
    )
    this.#paint()
  }

  #paint(): void {
    const hasChoices = this.#kind === 'list' || this.#kind === 'query'
    show(this.#sourceField, hasChoices)
    show(this.#severalField, hasChoices)
    this.#source.placeholder = this.#kind === 'query' ? 'SELECT DISTINCT room FROM sensors' : 'one choice a line'
  }

  get variable(): Variable {
    const lines = (text: string, separator: string): string[] =>
      text.split(separator).flatMap((part) => (part.trim() === '' ? [] : [part.trim()]))
    const [kind, source] = [this.#kind, this.#source.value]
    const isSingle = kind === 'text' || kind === 'number'
    const initial = this.#initial.value.trim()
    return {
      ...{ name: this.#name.value.trim(), kind, several: !isSingle && this.#several.checked },
      choices: kind === 'list' ? lines(source, '\n') : [],
      sql: kind === 'query' ? source.trim() : '',
      initial: isSingle ? (initial === '' ? [] : [initial]) : lines(initial, ','),
    }
  }
}
