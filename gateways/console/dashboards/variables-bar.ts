// The controls of a dashboard's variables: a text, a number, or choices, which a query may return.

import type { Variable } from '../../common/dashboards.js'
import { execute } from '../app/api.js'
import { element, errorText, select } from '../app/dom.js'
import { cellText, isNumeric } from '../app/values.js'
import { panelSql, type SqlValues, variableSql } from './panel-sql.js'

const choicesMax = 1000

interface Choices {
  readonly texts: readonly string[]
  readonly numeric: boolean
  readonly problem: string
}

const noChoices: Choices = { texts: [], numeric: false, problem: '' }

export class VariablesBar {
  readonly host = element('div', { className: 'bar variables' })
  readonly #variables: readonly Variable[]
  readonly #changed: (name: string, values: readonly string[]) => void
  readonly #choices = new Map<string, Choices>()
  #values: ReadonlyMap<string, readonly string[]> = new Map()

  constructor(variables: readonly Variable[], changed: (name: string, values: readonly string[]) => void) {
    this.#variables = variables
    this.#changed = changed
  }

  /** Takes the values of the address, asks for the choices, and resolves with the SQL of each variable. */
  async load(
    values: ReadonlyMap<string, readonly string[]>,
    range: readonly [string, string][],
    signal: AbortSignal,
  ): Promise<SqlValues> {
    this.#values = values
    const found = new Map(range)
    // A query may name the variables before it.
    for (const variable of this.#variables) {
      this.#choices.set(variable.name, await choicesOf(variable, found, signal))
      const { numeric } = this.#choices.get(variable.name) ?? noChoices
      found.set(variable.name.toLowerCase(), variableSql(variable, this.#effective(variable), numeric))
    }
    this.#paint()
    return found
  }

  #chosen({ name, initial }: Variable): readonly string[] {
    return this.#values.get(name.toLowerCase()) ?? initial
  }

  /** What the queries get: without a selection the first choice, or all if several may be selected. */
  #effective(variable: Variable): readonly string[] {
    const chosen = this.#chosen(variable)
    const { texts, problem } = this.#choices.get(variable.name) ?? noChoices
    if (variable.kind === 'text') return chosen.length === 0 ? [''] : chosen.slice(0, 1)
    if (variable.kind === 'number') return chosen.slice(0, 1)
    if (problem !== '') throw new Error(`The variable ${variable.name}: ${problem}`)
    if (variable.several) {
      if (chosen.length === 0 && texts.length > choicesMax)
        throw new Error(`The variable ${variable.name} has more than ${choicesMax} choices: select some.`)
      return chosen.length === 0 ? texts : chosen
    }
    return chosen.length === 0 ? texts.slice(0, 1) : chosen.slice(0, 1)
  }

  #paint(): void {
    const { activeElement } = document
    // What the user chooses at the moment, or types, stays.
    if (this.host.querySelector('details[open]') !== null) return
    if (activeElement instanceof HTMLInputElement && activeElement.value !== activeElement.defaultValue) return
    const focused = [...this.host.children].findIndex((control) => control.contains(activeElement))
    this.host.replaceChildren(...this.#variables.map((variable) => this.#control(variable)))
    const next = this.host.children[focused]?.querySelector('summary, input, select')
    if (next instanceof HTMLElement) next.focus()
  }

  #control(variable: Variable): HTMLElement {
    const { name, kind, several } = variable
    const { texts, problem } = this.#choices.get(name) ?? noChoices
    const chosen = this.#chosen(variable)
    if (problem !== '') return element('span', { className: 'problem' }, `${name}: ${problem}`)
    if (kind === 'text' || kind === 'number') {
      const input = element('input', {
        ...{ defaultValue: chosen[0] ?? '', spellcheck: false, size: 12 },
        ...(kind === 'number' ? { type: 'number', step: 'any' } : {}),
      })
      input.addEventListener('change', () => this.#changed(name, [input.value]))
      return labelled(name, input)
    }
    if (several) return this.#severalMenu(variable, texts, chosen)
    // A value that is no choice any more stays visible.
    const all = [...new Set([...chosen.slice(0, 1), ...texts])]
    const pairs = all.map((text): [string, string] => [text, text === '' ? '(empty)' : text])
    return labelled(
      name,
      select(name, pairs, chosen[0] ?? texts[0] ?? '', (value) => this.#changed(name, [value])),
    )
  }

  #severalMenu({ name }: Variable, texts: readonly string[], chosen: readonly string[]): HTMLElement {
    const summary = chosen.length === 0 ? 'all' : chosen.length < 3 ? chosen.join(', ') : `${chosen.length} selected`
    const menu = element('details', { className: 'menu' }, element('summary', {}, `${name}: ${summary}`))
    const selected = new Set(chosen)
    const boxes = [...new Set([...chosen, ...texts])].slice(0, choicesMax).map((text) => {
      const box = element('input', { type: 'checkbox', checked: selected.has(text) })
      box.addEventListener('change', () => {
        if (box.checked) selected.add(text)
        else selected.delete(text)
      })
      return element('label', {}, element('span', {}, text === '' ? '(empty)' : text), box)
    })
    menu.append(element('div', { className: 'menu-list' }, ...boxes))
    menu.addEventListener('toggle', () => {
      const after = [...selected]
      if (!menu.open && after.join('\n') !== chosen.join('\n')) this.#changed(name, after)
    })
    return menu
  }
}

async function choicesOf(variable: Variable, values: SqlValues, signal: AbortSignal): Promise<Choices> {
  if (variable.kind === 'list') return { ...noChoices, texts: variable.choices }
  if (variable.kind !== 'query') return noChoices
  try {
    const answer = await execute(panelSql(variable.sql, values), { limit: choicesMax + 1, readOnly: true, signal })
    if (answer.kind !== 'rows') throw new Error('the statement returns no rows')
    const texts = answer.rows.flatMap(([value]) => cellText(value) ?? [])
    return { texts: [...new Set(texts)], numeric: isNumeric(answer.columns[0]?.type ?? ''), problem: '' }
  } catch (error) {
    return { ...noChoices, problem: errorText(error) }
  }
}

function labelled(text: string, control: HTMLElement): HTMLElement {
  return element('label', { className: 'inline' }, element('span', { className: 'quiet' }, text), control)
}
