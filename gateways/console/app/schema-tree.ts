// The tree of tables, views and their columns in the console. The keyboard works as in any tree: arrow keys move, open
// and close; Enter queries a table or inserts a column into the editor. Buttons in a table's row do the same for
// pointers.

import { quoted } from '../../common/sql-text.js'
import { button, byId, drawReleased, element, errorText, icon, show } from './dom.js'
import type { Schema, Table, TableColumn } from './schema.js'
import { grouped } from './values.js'

const shownMax = 1000

export interface TreeActions {
  readonly query: (table: Table) => void
  readonly insert: (text: string) => void
  readonly details: (table: Table) => void
}

export class SchemaTree {
  readonly #schema: Schema
  readonly #actions: TreeActions
  readonly #list = byId('tables', HTMLElement)
  readonly #filter = byId('table-filter', HTMLInputElement)
  readonly #open = new Set<string>()

  constructor(schema: Schema, actions: TreeActions) {
    this.#schema = schema
    this.#actions = actions
    this.#filter.addEventListener('input', () => this.paint())
    this.#list.addEventListener('keydown', (event) => this.#key(event))
    byId('reload-tables', HTMLButtonElement).addEventListener('click', () => void this.reload())
  }

  async reload(): Promise<void> {
    try {
      await this.#schema.load()
      drawReleased(this.#list, () => this.paint())
    } catch (error) {
      this.#list.replaceChildren(element('div', { className: 'quiet', role: 'none' }, errorText(error)))
    }
  }

  paint(): void {
    const wanted = this.#filter.value.trim().toLowerCase()
    const found = this.#schema.tables.filter(({ name }) => name.toLowerCase().includes(wanted))
    const focused = focusedKey(this.#list)
    this.#list.replaceChildren(...found.slice(0, shownMax).map((table) => this.#tableItem(table)))
    if (found.length > shownMax) this.#list.append(note(`${grouped(found.length - shownMax)} more: filter by name`))
    show(byId('no-tables', HTMLElement), this.#schema.tables.length === 0)
    const items = [...this.#list.querySelectorAll('[role=treeitem]')]
    const current = items.find((item) => item.getAttribute('data-key') === focused) ?? items[0]
    if (!(current instanceof HTMLElement)) return
    current.tabIndex = 0
    if (focused !== null) current.focus()
  }

  /** A line, and below it, while it is open, the group of its columns. */
  #tableItem(table: Table): HTMLElement {
    const { name, kind, rowCount } = table
    const isOpen = this.#open.has(name)
    const item = element(
      'div',
      {
        ...{ className: 'tree-line', role: 'treeitem', tabIndex: -1, ariaExpanded: String(isOpen) },
        title: `${name}: ${kind}${rowCount === null ? '' : `, ${grouped(rowCount)} rows`}`,
      },
      element('span', { className: 'toggle' }, icon('chevron')),
      icon(kind === 'table' ? 'table' : kind === 'view' ? 'view' : 'matView'),
      element('span', { className: 'name' }, name),
      element('span', { className: 'note' }, rowCount === null ? '' : compact(rowCount)),
      this.#tableButtons(table),
    )
    item.setAttribute('data-key', name)
    item.addEventListener('click', () => this.#toggle(item, table))
    const branch = element('div', { role: 'none' }, item)
    if (isOpen) void this.#showColumns(item, table)
    return branch
  }

  #tableButtons(table: Table): HTMLElement {
    const stop = (run: () => void) => (event: Event) => {
      event.stopPropagation()
      run()
    }
    const query = button(
      '',
      stop(() => this.#actions.query(table)),
      { icon: 'run', title: `Query ${table.name} (Enter)` },
    )
    const details = button(
      '',
      stop(() => this.#actions.details(table)),
      { icon: 'rows', title: `Details of ${table.name} (D)` },
    )
    for (const one of [query, details]) one.tabIndex = -1
    return element('span', { className: 'tree-buttons' }, query, details)
  }

  #toggle(item: HTMLElement, table: Table): void {
    const opens = item.ariaExpanded !== 'true'
    item.ariaExpanded = String(opens)
    if (opens) {
      this.#open.add(table.name)
      void this.#showColumns(item, table)
    } else {
      this.#open.delete(table.name)
      item.parentElement?.querySelector('[role=group]')?.remove()
    }
  }

  async #showColumns(item: HTMLElement, table: Table): Promise<void> {
    const group = element('div', { role: 'group', ariaLabel: `Columns of ${table.name}` })
    item.parentElement?.querySelector('[role=group]')?.remove()
    item.after(group)
    try {
      const columns = await this.#schema.columns(table.name)
      group.replaceChildren(...columns.map((column) => this.#columnItem(table, column)))
    } catch (error) {
      group.replaceChildren(note(errorText(error)))
    }
  }

  #columnItem(table: Table, column: TableColumn): HTMLElement {
    const { name, type, designated, upsertKey } = column
    const item = element(
      'div',
      { className: 'tree-line column', role: 'treeitem', tabIndex: -1, title: columnTitle(column) },
      designated ? icon('clock') : upsertKey ? icon('key') : element('span', { className: 'icon' }),
      element('span', { className: 'name' }, name),
      element('span', { className: 'note type' }, type),
    )
    item.setAttribute('data-key', `${table.name}.${name}`)
    item.setAttribute('data-insert', quoted(name))
    item.addEventListener('click', () => this.#actions.insert(quoted(name)))
    return item
  }

  #key(event: KeyboardEvent): void {
    const { target } = event
    if (!(target instanceof HTMLElement) || target.role !== 'treeitem') return
    const items = [...this.#list.querySelectorAll('[role=treeitem]')].filter((item) => item instanceof HTMLElement)
    const index = items.indexOf(target)
    const table = this.#schema.tables.find(({ name }) => name === target.dataset['key'])
    const moves: Record<string, () => void> = {
      ArrowDown: () => focusItem(items, items[index + 1]),
      ArrowUp: () => focusItem(items, items[index - 1]),
      Home: () => focusItem(items, items[0]),
      End: () => focusItem(items, items.at(-1)),
      ArrowRight: () => {
        if (table !== undefined && target.ariaExpanded === 'false') this.#toggle(target, table)
        else focusItem(items, items[index + 1])
      },
      ArrowLeft: () => {
        if (table !== undefined && target.ariaExpanded === 'true') this.#toggle(target, table)
        else
          focusItem(
            items,
            items.findLast((item, place) => place < index && item.ariaExpanded !== null),
          )
      },
      Enter: () => {
        if (table !== undefined) this.#actions.query(table)
        else this.#actions.insert(target.dataset['insert'] ?? '')
      },
      d: () => {
        if (table !== undefined) this.#actions.details(table)
      },
    }
    const move = event.ctrlKey || event.metaKey || event.altKey ? undefined : moves[event.key]
    if (move === undefined) return
    event.preventDefault()
    move()
  }
}

function focusItem(all: readonly HTMLElement[], item: HTMLElement | undefined): void {
  if (item === undefined) return
  for (const other of all) other.tabIndex = -1
  item.tabIndex = 0
  item.focus()
}

function focusedKey(list: HTMLElement): string | null {
  const { activeElement } = document
  return activeElement !== null && list.contains(activeElement) ? activeElement.getAttribute('data-key') : null
}

function columnTitle({ name, type, designated, upsertKey, indexed, distinct }: TableColumn): string {
  const facts = [
    ...(designated ? ['designated timestamp'] : []),
    ...(upsertKey ? ['key of DEDUP'] : []),
    ...(indexed ? ['indexed'] : []),
    ...(distinct > 0 ? [`${grouped(distinct)} values`] : []),
  ]
  return [`${name} ${type}`, ...facts].join(', ')
}

function note(text: string): HTMLElement {
  return element('div', { className: 'quiet note-line', role: 'none' }, text)
}

/** 15968 as `16k`. */
function compact(count: number): string {
  if (count < 10_000) return grouped(count)
  const units = ['k', 'M', 'G', 'T']
  let value = count
  let unit = -1
  while (value >= 1000 && unit < units.length - 1) {
    value /= 1000
    unit++
  }
  return `${value < 10 ? value.toFixed(1) : Math.round(value)}${units[unit]}`
}
