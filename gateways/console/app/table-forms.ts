// Forms that create and change a table. They show the SQL statement while they are filled in; the user runs it, or
// copies it into the editor.

import { execute } from './api.js'
import { button, byId, element, errorText, notify, select } from './dom.js'
import type { Table, TableColumn } from './schema.js'
import { alterTableSql, type Change, columnTypes, createTableSql, type NewColumn, partitionUnits } from './table-sql.js'

export interface FormActions {
  readonly insert: (sql: string) => void
  /** Called after the statement has run. */
  readonly changed: () => void
}

const listed = (values: readonly string[]): [string, string][] => values.map((value) => [value, value])

/** The statement of a form, with the buttons that run it. */
class Preview {
  readonly host = element('div', { className: 'preview-sql' })
  readonly #code = element('pre', { className: 'code', tabIndex: 0, ariaLabel: 'Statement' })
  readonly #problem = element('p', { className: 'problem', role: 'alert', hidden: true })

  constructor(title: string, { insert, changed }: FormActions) {
    const dialog = byId('details', HTMLDialogElement)
    const run = async (): Promise<void> => {
      try {
        await execute(this.#code.textContent ?? '')
        notify(`${title}: done.`)
        dialog.close()
        changed()
      } catch (error) {
        this.#problem.textContent = errorText(error)
        this.#problem.hidden = false
      }
    }
    const take = (): void => {
      dialog.close()
      insert(this.#code.textContent ?? '')
    }
    const bar = element(
      'div',
      { className: 'bar' },
      button(title, () => void run(), { className: 'main' }),
      button('Into the editor', take),
    )
    this.host.append(this.#code, this.#problem, bar)
  }

  show(sql: string): void {
    this.#code.textContent = sql
    this.#problem.hidden = true
  }
}

export function openCreateTable(actions: FormActions): void {
  const dialog = byId('details', HTMLDialogElement)
  const preview = new Preview('Create the table', actions)
  const name = element('input', { value: 'new_table', spellcheck: false })
  const ttl = element('input', { placeholder: 'for example 30 DAYS', spellcheck: false })
  let partitionBy = 'DAY'
  const columns: ColumnFields[] = []
  const list = element('div', { className: 'column-list' })
  const update = (): void => {
    const timestamp = columns.find(({ designated }) => designated.checked)?.name.value ?? ''
    const own = columns.map((fields) => fields.column)
    preview.show(createTableSql({ name: name.value, columns: own, timestamp, partitionBy, ttl: ttl.value.trim() }))
  }
  const add = (column: string, type: string, designated: boolean): void => {
    const fields = new ColumnFields(column, type, designated, update, () => {
      columns.splice(columns.indexOf(fields), 1)
      fields.host.remove()
      update()
    })
    columns.push(fields)
    list.append(fields.host)
    update()
  }
  for (const input of [name, ttl]) input.addEventListener('input', update)
  const partition = select('Partition by', listed(partitionUnits), partitionBy, (value) => {
    partitionBy = value
    update()
  })
  const fields = element(
    'div',
    { className: 'fields' },
    labelled('Table', name),
    labelled('Partition by', partition),
    labelled('TTL: rows that are older are dropped', ttl),
  )
  openDialog(
    'New table',
    fields,
    list,
    button('Add a column', () => add('', 'DOUBLE', false), { icon: 'plus' }),
    preview.host,
  )
  add('ts', 'TIMESTAMP', true)
  add('name', 'SYMBOL', false)
  add('value', 'DOUBLE', false)
  dialog.showModal()
  name.select()
}

class ColumnFields {
  readonly host: HTMLElement
  readonly name: HTMLInputElement
  readonly designated: HTMLInputElement
  readonly #key = element('input', { type: 'checkbox' })
  #type: string

  constructor(name: string, type: string, designated: boolean, update: () => void, remove: () => void) {
    this.#type = type
    this.name = element('input', { value: name, ariaLabel: 'Name of the column', spellcheck: false })
    this.designated = element('input', { type: 'radio', name: 'designated', checked: designated })
    for (const input of [this.name, this.designated, this.#key]) input.addEventListener('input', update)
    const types = select('Type of the column', listed(columnTypes), type, (value) => {
      this.#type = value
      update()
    })
    this.host = element(
      'div',
      { className: 'bar' },
      this.name,
      types,
      element('label', { className: 'inline' }, this.designated, 'designated timestamp'),
      element('label', { className: 'inline' }, this.#key, 'key of DEDUP'),
      button('', remove, { icon: 'close', title: 'Remove the column', className: 'quiet' }),
    )
  }

  get column(): NewColumn {
    return { name: this.name.value.trim(), type: this.#type, key: this.#key.checked }
  }
}

const changes: readonly (readonly [kind: Change['kind'], text: string])[] = [
  ['add', 'Add a column'],
  ['rename', 'Rename a column'],
  ['type', 'Change the type of a column'],
  ['drop', 'Drop a column'],
  ['ttl', 'Set the TTL'],
  ['rename-table', 'Rename the table'],
]

export function openAlterTable(table: Table, columns: readonly TableColumn[], actions: FormActions): void {
  const preview = new Preview('Change the table', actions)
  const names = columns.map(({ name }) => name)
  const state = { kind: changes[0]?.[0] ?? 'add', column: names[0] ?? '', type: 'DOUBLE', text: '' }
  const fields = element('div', { className: 'fields' })
  const update = (): void => preview.show(alterTableSql(table.name, changeOf(state)))
  const paint = (): void => {
    const { kind } = state
    const text = element('input', { value: state.text, spellcheck: false })
    text.addEventListener('input', () => {
      state.text = text.value.trim()
      update()
    })
    const column = select('Column', listed(names), state.column, (value) => {
      state.column = value
      update()
    })
    const type = select('Type', listed(columnTypes), state.type, (value) => {
      state.type = value
      update()
    })
    const named = {
      add: 'Name',
      rename: 'New name',
      ttl: 'TTL, for example 30 DAYS; empty: rows are kept',
      'rename-table': 'New name',
    }
    const asked = kind === 'type' || kind === 'drop' ? null : named[kind]
    fields.replaceChildren(
      ...(kind === 'rename' || kind === 'type' || kind === 'drop' ? [labelled('Column', column)] : []),
      ...(asked === null ? [] : [labelled(asked, text)]),
      ...(kind === 'add' || kind === 'type' ? [labelled('Type', type)] : []),
    )
    update()
  }
  const kinds = select('What to change', changes, state.kind, (value) => {
    state.kind = changes.find(([kind]) => kind === value)?.[0] ?? 'add'
    paint()
  })
  openDialog(`Change ${table.name}`, labelled('What to change', kinds), fields, preview.host)
  paint()
}

interface AlterState {
  readonly kind: Change['kind']
  readonly column: string
  readonly type: string
  readonly text: string
}

function changeOf({ kind, column, type, text }: AlterState): Change {
  switch (kind) {
    case 'add':
      return { kind, column: text, type }
    case 'rename':
      return { kind, column, to: text }
    case 'type':
      return { kind, column, type }
    case 'drop':
      return { kind, column }
    case 'ttl':
      return { kind, ttl: text }
    case 'rename-table':
      return { kind, to: text }
  }
}

function openDialog(title: string, ...content: readonly HTMLElement[]): void {
  const dialog = byId('details', HTMLDialogElement)
  const close = button('', () => dialog.close(), { icon: 'close', title: 'Close (Escape)', className: 'quiet' })
  const head = element('div', { className: 'dialog-head' }, element('h2', { id: 'details-title' }, title), close)
  dialog.replaceChildren(head, element('div', { className: 'details-body' }, ...content))
}

function labelled(text: string, control: HTMLElement): HTMLElement {
  return element('label', { className: 'field' }, element('span', {}, text), control)
}
