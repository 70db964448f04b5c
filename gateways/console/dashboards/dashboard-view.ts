// One dashboard: time range, refresh, variables and panels. Changes are a draft until they are saved. Panels are refreshed
// while the dashboard is visible, a few at a time; a refresh that takes longer than the interval delays the next one.

import { type Dashboard, type Panel, refreshIntervals } from '../../common/dashboards.js'
import { type SavedItem, storeItem } from '../app/api.js'
import { button, element, errorText, notify, select, show } from '../app/dom.js'
import type { TimeRange } from '../app/refine.js'
import type { Schema } from '../app/schema.js'
import { type Address, fixedRange, hashOf, rangeNow, refreshMs } from './dashboard-address.js'
import { openDashboardForm } from './dashboard-form.js'
import { openPanelForm } from './panel-form.js'
import { rangeSql } from './panel-sql.js'
import { type PanelContext, PanelView } from './panel-view.js'
import { RangeControl } from './range-control.js'
import { VariablesBar } from './variables-bar.js'

const atOnceMax = 4
/** For variables, which have no width. */
const pointsOfVariables = 300
const newPanel: Panel = {
  ...{ title: '', kind: 'chart', style: 'lines', width: 'half', height: 'medium', sql: '', unit: '' },
}

export interface DashboardOptions {
  readonly schema: Schema
  /** Takes a query into the editor. */
  readonly openQuery: (sql: string) => void
  /** Who looks at it. */
  readonly me: () => string
  /** Removes what a renamed dashboard was before. */
  readonly renamed: (before: string) => Promise<void>
}

export interface DashboardState {
  readonly item: Omit<SavedItem, 'content'>
  readonly definition: Dashboard
  /** Whether it belongs to whoever looks at it. */
  readonly isOwn: boolean
}

export class DashboardView {
  readonly host = element('div', { className: 'dashboard' })
  readonly #options: DashboardOptions
  readonly #head = element('div', { className: 'bar dashboard-head' })
  readonly #problem = element('p', { className: 'problem', role: 'alert', hidden: true })
  readonly #grid = element('div', { className: 'panels' })
  #item: Omit<SavedItem, 'content'>
  #saved: Dashboard
  #draft: Dashboard
  #isOwn: boolean
  #address: Address
  #variables: VariablesBar
  readonly #rangeControl: RangeControl
  #panels: PanelView[] = []
  #context: PanelContext | null = null
  #abort = new AbortController()
  #timer: ReturnType<typeof setTimeout> | undefined
  #isShown = false
  /** Whether a refresh fell due while nobody could see it. */
  #isDue = false

  constructor({ item, definition, isOwn }: DashboardState, address: Address, options: DashboardOptions) {
    this.#item = item
    this.#saved = definition
    this.#draft = definition
    this.#isOwn = isOwn
    this.#address = address
    this.#options = options
    this.#rangeControl = new RangeControl((range) => this.#go({ range }))
    this.#variables = this.#newVariables()
    this.#paint()
  }

  get item(): Omit<SavedItem, 'content'> {
    return this.#item
  }

  get isChanged(): boolean {
    return this.#draft !== this.#saved || this.#item.version === 0
  }

  /** Begins to refresh; `address`: with the time range and values to show. */
  start(address: Address): void {
    this.#address = address
    this.#isShown = true
    this.#paintHead()
    void this.#load(true)
  }

  /** Shows what fell due while nobody could see it. */
  wake(): void {
    if (this.#isShown && this.#isDue) void this.#load(false)
  }

  stop(): void {
    this.#isShown = false
    this.#abort.abort()
    clearTimeout(this.#timer)
  }

  // Loading --------------------------------------------------------------------------------------------------------

  get #range(): string {
    return this.#address.range ?? this.#draft.range
  }

  get #refresh(): Dashboard['refresh'] {
    return this.#address.refresh ?? this.#draft.refresh
  }

  /** Another part of the address, which the browser's back button undoes. */
  #go(changed: Partial<Address>): void {
    this.#address = { ...this.#address, ...changed }
    history.pushState(null, '', hashOf(this.#address))
    this.start(this.#address)
  }

  /** `whole`: asks for the choices of variables, too. Never rejects. */
  async #load(whole: boolean): Promise<void> {
    this.#abort.abort()
    clearTimeout(this.#timer)
    this.#abort = new AbortController()
    const { signal } = this.#abort
    this.#isDue = false
    const range = rangeNow(this.#range, Date.now())
    try {
      const values =
        whole || this.#context === null
          ? await this.#variables.load(this.#address.values, rangeSql(range, pointsOfVariables), signal)
          : this.#context.values
      if (signal.aborted) return
      const named = [...values].filter(([name]) => !['from', 'to', 'interval'].includes(name))
      this.#context = { range, values: new Map(named) }
      this.#complain('')
      const waiting = [...this.#panels]
      await Promise.all(Array.from({ length: atOnceMax }, () => this.#loadFrom(waiting, signal)))
    } catch (error) {
      if (!signal.aborted) this.#complain(errorText(error))
    }
    const ms = refreshMs(this.#refresh)
    if (signal.aborted || ms === null) return
    this.#timer = setTimeout(() => {
      if (document.visibilityState === 'visible') void this.#load(false)
      else this.#isDue = true
    }, ms)
  }

  async #loadFrom(waiting: PanelView[], signal: AbortSignal): Promise<void> {
    for (let next = waiting.shift(); next !== undefined && !signal.aborted; next = waiting.shift()) {
      if (this.#context !== null) await next.load(this.#context, signal)
    }
  }

  #complain(problem: string): void {
    this.#problem.textContent = problem
    show(this.#problem, problem !== '')
  }

  // Painting -------------------------------------------------------------------------------------------------------

  #paint(): void {
    for (const panel of this.#panels) panel.close()
    this.#panels = this.#draft.panels.map((panel, index) => this.#panelView(panel, index))
    this.#grid.replaceChildren(...this.#panels.map(({ host }) => host))
    if (this.#panels.length === 0)
      this.#grid.append(element('p', { className: 'empty' }, 'No panels yet: add one with a query.'))
    this.host.replaceChildren(this.#head, this.#variables.host, this.#problem, this.#grid)
    this.#paintHead()
  }

  #paintHead(): void {
    const { name, user, shared } = this.#item
    const hadFocus = this.#head.contains(document.activeElement) ? document.activeElement : null
    const state = this.isChanged ? 'not saved' : this.#isOwn ? (shared ? 'shared' : 'private') : `by ${user}`
    const every = select(
      'Refresh',
      refreshIntervals.map((interval): [string, string] => [interval, interval === 'off' ? 'no refresh' : interval]),
      this.#refresh,
      (chosen) => this.#go({ refresh: refreshIntervals.find((interval) => interval === chosen) ?? 'off' }),
    )
    this.#rangeControl.show(this.#range)
    const discard = button('Discard', () => this.#change(this.#saved), { title: 'Back to what is saved' })
    this.#head.replaceChildren(
      element('a', { href: '#dashboards', title: 'All dashboards' }, 'Dashboards'),
      element('h2', {}, name, ' ', element('small', {}, state)),
      element('span', { className: 'grow' }),
      this.#rangeControl.host,
      every,
      button('', () => void this.#load(true), { icon: 'refresh', title: 'Refresh now' }),
      button('Add a panel', () => this.#edit(null)),
      button('Settings …', () => this.#settings()),
      ...(this.#isOwn ? [] : [button('Save a copy', () => this.#saveCopy())]),
      ...(this.isChanged && this.#isOwn ? [button('Save', () => void this.#save(), { className: 'main' })] : []),
      ...(this.#draft === this.#saved ? [] : [discard]),
    )
    // The control that was used is made again: the focus goes to its successor.
    if (hadFocus instanceof HTMLElement && !hadFocus.isConnected) {
      const label = hadFocus.title === '' ? hadFocus.textContent : hadFocus.title
      const next = [...this.#head.querySelectorAll('button, select')].find(
        (each) => each instanceof HTMLElement && (each.title === '' ? each.textContent : each.title) === label,
      )
      if (next instanceof HTMLElement) next.focus()
    }
  }

  #newVariables(): VariablesBar {
    return new VariablesBar(this.#draft.variables, (name, chosen) => {
      const values = new Map([...this.#address.values, [name.toLowerCase(), chosen] as const])
      this.#go({ values })
    })
  }

  #panelView(panel: Panel, index: number): PanelView {
    return new PanelView(panel, {
      edit: () => this.#edit(index),
      move: (places) => this.#move(index, places),
      duplicate: () => this.#setPanels(this.#draft.panels.toSpliced(index + 1, 0, panel), index + 1),
      remove: () => {
        this.#setPanels(this.#draft.panels.toSpliced(index, 1), Math.max(0, index - 1))
        notify('The panel is removed; Discard brings it back.')
      },
      open: this.#options.openQuery,
      zoom: (range) => this.#zoom(range),
    })
  }

  #zoom(range: TimeRange | null): void {
    this.#go({ range: range === null ? null : fixedRange(range.fromMs, range.toMs) })
  }

  // Changing -------------------------------------------------------------------------------------------------------

  #change(draft: Dashboard): void {
    const variablesChanged = draft.variables !== this.#draft.variables
    this.#draft = draft
    if (variablesChanged) this.#variables = this.#newVariables()
    this.#context = null
    this.#paint()
    void this.#load(true)
  }

  #setPanels(panels: readonly Panel[], focused: number): void {
    this.#change({ ...this.#draft, panels })
    this.#panels[focused]?.host.focus()
  }

  #move(index: number, places: number): void {
    const panel = this.#draft.panels[index]
    const target = index + places
    if (panel === undefined || target < 0 || target >= this.#draft.panels.length) return
    this.#setPanels(this.#draft.panels.toSpliced(index, 1).toSpliced(target, 0, panel), target)
  }

  /** `index`: null for a new panel. */
  #edit(index: number | null): void {
    const { panels } = this.#draft
    openPanelForm(index === null ? newPanel : (panels[index] ?? newPanel), {
      schema: this.#options.schema,
      context: () => this.#context,
      done: (panel) => {
        const place = index ?? panels.length
        this.#setPanels(panels.toSpliced(place, index === null ? 0 : 1, panel), place)
      },
    })
  }

  #settings(): void {
    openDashboardForm({ ...this.#item, definition: this.#draft }, (changed) => {
      const { name, shared, definition } = changed
      this.#change(definition)
      if (this.#isOwn) void this.#save(name, shared)
    })
  }

  /** Saves the draft; with another name it is renamed. */
  async #save(name = this.#item.name, shared = this.#item.shared): Promise<void> {
    const isRenamed = name !== this.#item.name && this.#item.version > 0
    const definition = this.#draft
    try {
      const seen = isRenamed ? 0 : this.#item.version
      const version = await storeItem({ kind: 'dashboard', name, shared, version: seen, content: definition })
      const before = this.#item.name
      this.#item = { ...this.#item, name, shared, version }
      this.#saved = definition
      this.#address = { ...this.#address, name }
      history.replaceState(null, '', hashOf(this.#address))
      if (isRenamed) await this.#options.renamed(before)
      notify(`The dashboard ${name} is saved.`)
      this.#complain('')
    } catch (error) {
      this.#complain(`The dashboard is not saved: ${errorText(error)}`)
    }
    this.#paintHead()
  }

  /** A dashboard of another user becomes one's own. */
  #saveCopy(): void {
    const { name } = this.#item
    openDashboardForm({ name, shared: false, definition: this.#draft }, async (changed) => {
      const me = this.#options.me()
      this.#item = { name: changed.name, user: me, shared: changed.shared, version: 0 }
      this.#isOwn = true
      this.#draft = changed.definition
      this.#address = { ...this.#address, user: me }
      await this.#save(changed.name, changed.shared)
    })
  }
}
