// History of executed statements in the console, newest first. Statements that may contain a secret are not stored.

import { mentionsSecret } from '../../common/sql-text.js'
import { button, byId, element } from './dom.js'
import { isStrings, recall, remember } from './storage.js'

const keptMax = 200
const charactersMax = 20_000

export function rememberStatement(sql: string): void {
  if (mentionsSecret(sql) || sql.length > charactersMax) return
  remember('history', [sql, ...earlier().filter((other) => other !== sql)].slice(0, keptMax))
}

function earlier(): string[] {
  return recall('history', isStrings, [])
}

/** Fills the menu of earlier statements. */
export function paintHistory(open: (sql: string) => void): void {
  const menu = byId('history', HTMLDetailsElement)
  const list = byId('history-list', HTMLElement)
  const filter = element('input', { type: 'search', placeholder: 'Filter', ariaLabel: 'Filter the history' })
  const items = element('div', { className: 'history-items' })
  const paint = (): void => {
    const wanted = filter.value.toLowerCase()
    const found = earlier().filter((sql) => sql.toLowerCase().includes(wanted))
    const choose = (sql: string) => () => {
      menu.open = false
      open(sql)
    }
    items.replaceChildren(
      ...found
        .slice(0, 50)
        .map((sql) => button(sql.replaceAll(/\s+/g, ' ').slice(0, 160), choose(sql), { title: sql.slice(0, 1000) })),
    )
    if (found.length === 0) items.append(element('p', { className: 'quiet' }, 'No statement yet.'))
  }
  filter.addEventListener('input', paint)
  paint()
  list.replaceChildren(filter, items)
}
