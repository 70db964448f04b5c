// The query view of the console: tabs with an editor each, the buttons above it, the history, and the result pane.

import { complete } from '../../common/sql-completion.js'
import { mentionsSecret, statementAt, statementsOf } from '../../common/sql-text.js'
import { type Draft, SqlEditor } from './codemirror.js'
import { button, byId, drawReleased, element, makeSplitter, show } from './dom.js'
import { formatSql } from './format-sql.js'
import { paintHistory, rememberStatement } from './history.js'
import { Result } from './results.js'
import type { Schema } from './schema.js'
import { isNumber, recall, remember } from './storage.js'

interface Tab {
  readonly id: number
  name: string
  text: string
  draft: Draft | null
  results: Result[]
  /** Index of the shown result. */
  shown: number
}

interface StoredTab {
  readonly name: string
  readonly text: string
}

const savedCharactersMax = 500_000
const saveDelayMs = 400
const firstText = 'SELECT * FROM tables();\n'

export class Workspace {
  readonly editor: SqlEditor
  readonly #schema: Schema
  readonly #changed: () => void
  readonly #tabs: Tab[]
  #current: Tab
  #lastId = 0
  #saving: ReturnType<typeof setTimeout> | undefined

  /** `changed`: called after statements that may have changed the schema. */
  constructor(schema: Schema, changed: () => void) {
    this.#schema = schema
    this.#changed = changed
    const stored = recall('tabs', isStoredTabs, [{ name: 'Query 1', text: firstText }])
    this.#tabs = stored.map(({ name, text }) => this.#newTab(name, text))
    const current = this.#tabs[recall('tab', isNumber, 0)] ?? this.#tabs[0]
    this.#current = current ?? this.#newTab('Query 1', firstText)
    this.editor = new SqlEditor({
      host: byId('editor', HTMLElement),
      complete: (text, offset, asked) => complete(text, offset, asked, this.#schema.completion),
      changed: () => this.#edited(),
      keys: this.#keys(),
    })
    this.editor.open(this.editor.draft(this.#current.text))
    this.#bindTools()
    this.#paintTabs()
    this.#paintResults()
    window.addEventListener('pagehide', () => this.#save())
  }

  #keys(): { key: string; run: () => void }[] {
    return [
      { key: 'Mod-Enter', run: () => void this.run() },
      { key: 'Mod-Shift-Enter', run: () => void this.runAll() },
      { key: 'Shift-Alt-f', run: () => this.format() },
      { key: 'Alt-t', run: () => this.addTab() },
      { key: 'Alt-w', run: () => this.#closeTab(this.#current) },
      { key: 'Alt-.', run: () => this.#step(1) },
      { key: 'Alt-,', run: () => this.#step(-1) },
    ]
  }

  #bindTools(): void {
    const tools: readonly (readonly [string, () => void])[] = [
      ['run', () => void this.run()],
      ['run-all', () => void this.runAll()],
      ['explain', () => void this.run(true)],
      ['cancel', () => this.cancel()],
      ['format', () => this.format()],
    ]
    for (const [id, run] of tools) byId(id, HTMLButtonElement).addEventListener('click', run)
    const [part, work] = [byId('editor-part', HTMLElement), byId('work', HTMLElement)]
    makeSplitter(byId('editor-splitter', HTMLElement), 'y', (pixels) => {
      const height = Math.max(90, Math.min(work.clientHeight - 120, part.clientHeight + pixels))
      part.style.height = `${height}px`
      remember('editor-height', height)
    })
    const height = recall('editor-height', isNumber, 0)
    if (height > 0) part.style.height = `${height}px`
    paintHistory((sql) => this.open(sql))
  }

  /** The selection, or the statement at the cursor; empty if there is none. */
  get statement(): string {
    return this.editor.selection?.text.trim() ?? statementAt(this.editor.text, this.editor.cursor)?.text ?? ''
  }

  // Running --------------------------------------------------------------------------------------------------------

  /** Runs the selection, or the statement at the cursor. */
  async run(explain = false): Promise<void> {
    const { selection } = this.editor
    const statements = selection === null ? [] : statementsOf(selection.text)
    const found =
      selection === null
        ? [statementAt(this.editor.text, this.editor.cursor)].flatMap((one) => one ?? [])
        : statements.map(({ text, start, end }) => ({
            text,
            start: start + selection.start,
            end: end + selection.start,
          }))
    await this.#runAll(found, explain)
  }

  /** Runs all statements of the tab, until one fails. */
  async runAll(): Promise<void> {
    await this.#runAll(statementsOf(this.editor.text), false)
  }

  async #runAll(
    statements: readonly { readonly text: string; readonly start: number }[],
    explain: boolean,
  ): Promise<void> {
    if (statements.length === 0) return
    const tab = this.#current
    for (const result of tab.results) result.close()
    this.editor.mark(null)
    tab.shown = 0
    tab.results = statements.map(({ text, start }) => this.#resultOf(tab, text, start, explain))
    this.#paintResults()
    for (const [index, result] of tab.results.entries()) {
      this.#choose(tab, index)
      const begun = tab.results
      const succeeded = await result.run()
      if (tab.results !== begun) return
      rememberStatement(result.job.sql)
      if (!succeeded) {
        for (const rest of tab.results.slice(index + 1)) rest.cancel()
        break
      }
    }
    paintHistory((sql) => this.open(sql))
    if (statements.some(({ text }) => /^\s*(create|drop|alter|insert|rename|truncate|copy|delete|update)/i.test(text)))
      this.#changed()
  }

  #resultOf(tab: Tab, sql: string, start: number, explain: boolean): Result {
    const goTo = (position: number, message: string): void => {
      if (tab !== this.#current) return
      this.editor.mark({ offset: start + position, message })
      this.editor.goTo(start + position)
    }
    const result = new Result({ sql, explain, goTo })
    result.onChange = () => {
      if (tab === this.#current) this.#paintResultTabs()
    }
    return result
  }

  cancel(): void {
    for (const result of this.#current.results) {
      if (result.state === 'running' || result.state === 'waiting') result.cancel()
    }
  }

  // Results --------------------------------------------------------------------------------------------------------

  #choose(tab: Tab, index: number): void {
    tab.shown = index
    if (tab === this.#current) this.#paintResults()
  }

  #paintResults(): void {
    const { results, shown } = this.#current
    const pane = byId('result', HTMLElement)
    const result = results[shown]
    const idle = element('p', { className: 'empty' }, 'Ctrl+Enter runs the statement at the cursor.')
    if (pane.firstElementChild !== result?.host) pane.replaceChildren(result?.host ?? idle)
    this.#paintResultTabs()
  }

  #paintResultTabs(): void {
    const { results } = this.#current
    const strip = byId('result-tabs', HTMLElement)
    show(strip, results.length > 1)
    drawReleased(strip, () => strip.replaceChildren(...this.#resultTabs()))
    const isBusy = results.some(({ state }) => state === 'running' || state === 'waiting')
    byId('cancel', HTMLButtonElement).disabled = !isBusy
  }

  #resultTabs(): HTMLElement[] {
    const { results, shown } = this.#current
    return results.map((result, index) => {
      const { state, summary, job } = result
      const made = button(`${index + 1}`, () => this.#choose(this.#current, index), {
        title: job.sql.slice(0, 300),
        className: `state-${state}`,
      })
      made.append(element('span', { className: 'quiet' }, state === 'done' ? summary : state))
      made.role = 'tab'
      made.ariaSelected = String(index === shown)
      return made
    })
  }

  // Texts ----------------------------------------------------------------------------------------------------------

  format(): void {
    const { text } = this.editor
    const formatted = formatSql(text)
    if (formatted !== text) this.editor.replace(formatted)
    this.editor.focus()
  }

  /** Appends a statement to the text, and runs it if wanted. */
  open(sql: string, runs = false): void {
    this.editor.append(sql.endsWith(';') ? sql : `${sql};`)
    if (runs) void this.run()
    else this.editor.focus()
  }

  addTab(text = ''): void {
    const taken = new Set(this.#tabs.map(({ name }) => name))
    let number = 1
    while (taken.has(`Query ${number}`)) number++
    const tab = this.#newTab(`Query ${number}`, text)
    this.#tabs.push(tab)
    this.#show(tab)
    this.editor.focus()
  }

  #newTab(name: string, text: string): Tab {
    return { id: ++this.#lastId, name, text, draft: null, results: [], shown: 0 }
  }

  #step(change: number): void {
    const index = this.#tabs.indexOf(this.#current) + change
    const next = this.#tabs[(index + this.#tabs.length) % this.#tabs.length]
    if (next !== undefined) this.#show(next)
    this.editor.focus()
  }

  #show(tab: Tab): void {
    if (tab !== this.#current) {
      this.#current.text = this.editor.text
      const previous = this.#current
      this.#current = tab
      previous.draft = this.editor.open(tab.draft ?? this.editor.draft(tab.text))
    }
    this.#paintTabs()
    this.#paintResults()
    this.#saveSoon()
  }

  #closeTab(tab: Tab): void {
    for (const result of tab.results) result.close()
    const index = this.#tabs.indexOf(tab)
    if (this.#tabs.length === 1) {
      this.editor.replace('')
      tab.results = []
      this.#paintResults()
      return
    }
    if (tab === this.#current) {
      const next = this.#tabs[index + 1] ?? this.#tabs[index - 1]
      if (next !== undefined) this.#show(next)
    }
    this.#tabs.splice(index, 1)
    this.#paintTabs()
    this.#saveSoon()
  }

  #paintTabs(): void {
    const strip = byId('tabs', HTMLElement)
    strip.replaceChildren(
      ...this.#tabs.map((tab) => {
        const isCurrent = tab === this.#current
        const made = button(tab.name, () => this.#show(tab), { title: 'Double click renames' })
        made.role = 'tab'
        made.ariaSelected = String(isCurrent)
        made.tabIndex = isCurrent ? 0 : -1
        made.addEventListener('dblclick', () => this.#rename(tab, made))
        made.addEventListener('keydown', (event) => this.#tabKey(event, tab, made))
        const close = button('', () => this.#closeTab(tab), {
          icon: 'close',
          title: `Close ${tab.name} (Alt+W)`,
          className: 'quiet',
        })
        // By keyboard: Delete on the tab.
        close.tabIndex = -1
        close.ariaHidden = 'true'
        return element('div', { className: `tab${isCurrent ? ' current' : ''}`, role: 'presentation' }, made, close)
      }),
    )
  }

  #tabKey(event: KeyboardEvent, tab: Tab, made: HTMLButtonElement): void {
    const change = { ArrowLeft: -1, ArrowRight: 1 }[event.key]
    if (change !== undefined) {
      const next = this.#tabs[this.#tabs.indexOf(tab) + change]
      if (next === undefined) return
      this.#show(next)
      const focused = byId('tabs', HTMLElement).querySelector('[aria-selected=true]')
      if (focused instanceof HTMLElement) focused.focus()
    } else if (event.key === 'F2') this.#rename(tab, made)
    else if (event.key === 'Delete') this.#closeTab(tab)
  }

  #rename(tab: Tab, made: HTMLElement): void {
    const input = element('input', { value: tab.name, ariaLabel: 'Name of the tab', className: 'rename' })
    const finish = (): void => {
      tab.name = input.value.trim() === '' ? tab.name : input.value.trim()
      this.#paintTabs()
      this.#saveSoon()
    }
    input.addEventListener('blur', finish, { once: true })
    input.addEventListener('keydown', (event) => {
      if (event.key === 'Enter' || event.key === 'Escape') input.blur()
    })
    made.replaceWith(input)
    input.select()
  }

  #edited(): void {
    this.#current.text = this.editor.text
    this.#saveSoon()
  }

  #saveSoon(): void {
    clearTimeout(this.#saving)
    this.#saving = setTimeout(() => this.#save(), saveDelayMs)
  }

  /** Texts that may contain secrets stay in memory. */
  #save(): void {
    const texts = this.#tabs.map(({ name, text }) => ({
      name,
      text: mentionsSecret(text) || text.length > savedCharactersMax ? '' : text,
    }))
    remember('tabs', texts)
    remember('tab', this.#tabs.indexOf(this.#current))
  }
}

function isStoredTabs(value: unknown): value is StoredTab[] {
  const isTab = (tab: unknown): boolean =>
    typeof tab === 'object' &&
    tab !== null &&
    'name' in tab &&
    'text' in tab &&
    typeof tab.name === 'string' &&
    typeof tab.text === 'string'
  return Array.isArray(value) && value.length > 0 && value.every(isTab)
}
