// The menu of saved queries in the console. The server stores them in its preferences, so all users see them, with the
// name of the user who saved each. Statements that may contain a secret are rejected.

import { mentionsSecret } from '../../common/sql-text.js'
import { preferences, storePreferences } from './api.js'
import { button, byId, element, errorText, notify } from './dom.js'
import { type SavedQuery, savedKey, savedQueriesIn, withoutQuery, withQuery } from './saved-list.js'

const conflict = 409
const attempts = 3

export interface SavedQueriesOptions {
  readonly user: () => string
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
  const save = async (): Promise<void> => {
    const [sql, chosen] = [options.current(), name.value.trim()]
    if (sql === '') throw new Error('There is no statement at the cursor.')
    if (chosen === '') throw new Error('A saved query needs a name.')
    if (mentionsSecret(sql)) throw new Error('The statement may contain a secret: everybody would see it.')
    await change((queries) => withQuery(queries, { name: chosen, sql, user: options.user() }))
  }
  const attempt = (work: () => Promise<void>) => (): void => {
    work()
      .then(() => paint(menu, options))
      .catch((error: unknown) => notify(errorText(error)))
  }
  name.addEventListener('keydown', ({ key: pressed }) => {
    if (pressed === 'Enter') attempt(save)()
  })
  const head = element('div', { className: 'bar' }, name, button('Save the statement', attempt(save)))
  list.replaceChildren(head)
  try {
    const queries = savedQueriesIn((await preferences()).values)
    const items = queries.map((query) => {
      const open = button(query.name, () => {
        menu.open = false
        options.open(query.sql)
      })
      open.title = query.sql.slice(0, 1000)
      open.className = 'grow'
      const remove = attempt(() => change((all) => withoutQuery(all, query)))
      return element(
        'div',
        { className: 'bar saved-query' },
        open,
        element('span', { className: 'quiet' }, query.user),
        button('', remove, { icon: 'close', title: `Remove ${query.name}`, className: 'quiet' }),
      )
    })
    const none = element('p', { className: 'quiet' }, 'No query is saved yet. Every user of the server sees them.')
    list.append(...(items.length === 0 ? [none] : items))
  } catch (error) {
    list.append(element('p', { className: 'problem' }, errorText(error)))
  }
}

/** Another user may save a query at the same time: then it is tried again with the newer list. */
async function change(changed: (queries: readonly SavedQuery[]) => SavedQuery[]): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    const { version, values } = await preferences()
    const { status, problem } = await storePreferences(version, { [savedKey]: changed(savedQueriesIn(values)) })
    if (problem === '') return
    if (status !== conflict || attempt === attempts) throw new Error(problem)
  }
}
