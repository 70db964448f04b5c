// The menu of saved queries in the console. The server keeps them by user; others see those that are shared. Statements
// that may contain a secret are rejected.

import { givesSecret } from '../../common/sql-text.js'
import { removeItem, type SavedItem, savedItems, storeItem } from './api.js'
import { button, byId, element, errorText, notify } from './dom.js'

export interface SavedQueriesOptions {
  /** The statement that would run. */
  readonly current: () => string
  readonly open: (sql: string) => void
}

/** Fills the menu when it is opened. */
export function openSavedQueries(options: SavedQueriesOptions): void {
  const menu = byId('saved', HTMLDetailsElement)
  menu.addEventListener('toggle', () => {
    if (menu.open) void paint(menu, options)
  })
}

async function paint(menu: HTMLDetailsElement, options: SavedQueriesOptions): Promise<void> {
  const list = byId('saved-list', HTMLElement)
  const name = element('input', { placeholder: 'Name', ariaLabel: 'Name of the query', spellcheck: false })
  const shared = element('input', { type: 'checkbox' })
  const again = (): Promise<void> => paint(menu, options)
  const save = async (): Promise<void> => {
    const [sql, chosen] = [options.current(), name.value.trim()]
    if (sql === '') throw new Error('There is no statement at the cursor.')
    if (chosen === '') throw new Error('A saved query needs a name.')
    if (givesSecret(sql)) throw new Error('The statement may contain a secret, and is not saved.')
    await storeItem({ kind: 'query', name: chosen, shared: shared.checked, content: sql })
  }
  name.addEventListener('keydown', ({ key: pressed }) => {
    if (pressed === 'Enter') attempt(save, again)
  })
  list.replaceChildren(
    element(
      'div',
      { className: 'bar' },
      name,
      element('label', { className: 'inline', title: 'Others see it, too' }, shared, 'Shared'),
      button('Save the statement', () => attempt(save, again)),
    ),
  )
  try {
    const { user, items } = await savedItems('query')
    const none = element('p', { className: 'quiet' }, 'No query is saved yet. Only shared ones are visible to others.')
    list.append(...(items.length === 0 ? [none] : items.map((item) => queryLine(item, user, { menu, options, again }))))
  } catch (error) {
    list.append(element('p', { className: 'problem' }, errorText(error)))
  }
}

interface Menu {
  readonly menu: HTMLDetailsElement
  readonly options: SavedQueriesOptions
  readonly again: () => Promise<void>
}

function queryLine(item: SavedItem, me: string, { menu, options, again }: Menu): HTMLElement {
  const { name, user, shared } = item
  const sql = String(item.content)
  const open = button(name, () => {
    menu.open = false
    options.open(sql)
  })
  open.title = sql.slice(0, 1000)
  open.className = 'grow'
  const isOwn = user === me
  const share = (): Promise<number> => storeItem({ kind: 'query', name, shared: !shared, content: sql })
  const remove = (): Promise<void> => removeItem('query', name, user)
  const parts = [
    open,
    element('span', { className: 'quiet' }, isOwn ? (shared ? 'shared' : 'private') : `shared by ${user}`),
    isOwn ? button(shared ? 'Make private' : 'Share', () => attempt(share, again), { className: 'quiet' }) : null,
    button('', () => attempt(remove, again), { icon: 'close', title: `Remove ${name}`, className: 'quiet' }),
  ]
  return element('div', { className: 'bar saved-query' }, ...parts)
}

function attempt(work: () => Promise<unknown>, done: () => Promise<void>): void {
  work()
    .then(done)
    .catch((error: unknown) => notify(errorText(error)))
}
