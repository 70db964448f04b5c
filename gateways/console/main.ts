// Entry point of the console in the browser: creates its views and connects them, shows the view that the URL names,
// and applies the chosen colours.

import { quoted } from '../common/sql-text.js'
import { serverVersion } from './app/api.js'
import { button, byId, errorText, makeSplitter, notify, show } from './app/dom.js'
import { openImport } from './app/importer.js'
import { LivePage } from './app/live.js'
import { openSavedQueries } from './app/saved-queries.js'
import { Schema, type Table } from './app/schema.js'
import { SchemaTree } from './app/schema-tree.js'
import { openSignIn } from './app/sign-in.js'
import { openStartPage } from './app/start-page.js'
import { isNumber, isString, recall, remember } from './app/storage.js'
import { openDetails } from './app/table-details.js'
import { openCreateTable } from './app/table-forms.js'
import { Workspace } from './app/workspace.js'
import { DashboardsPage } from './dashboards/dashboards-page.js'

const views = ['query', 'dashboards', 'import', 'live', 'start'] as const
type View = (typeof views)[number]

const themes = [
  ['system', 'system'],
  ['light', 'sun'],
  ['dark', 'moon'],
] as const

async function open(): Promise<void> {
  openTheme()
  const schema = new Schema()
  const workspace = new Workspace(schema, () => void tree.reload())
  const forms = { insert: (sql: string) => workspace.open(sql), changed: () => void tree.reload() }
  byId('new-table', HTMLButtonElement).addEventListener('click', () => openCreateTable(forms))
  const tree = new SchemaTree(schema, {
    query: (table) => {
      location.hash = '#query'
      workspace.open(`SELECT * FROM ${quoted(table.name)}${latestFirst(table)};`, true)
      closeDrawer()
    },
    insert: (text) => {
      closeDrawer()
      workspace.editor.insert(text)
    },
    details: (table) => void openDetails(table, schema, forms),
  })
  openSavedQueries({
    current: () => workspace.statement,
    open: (sql) => workspace.open(sql),
  })
  const live = new LivePage()
  const openQuery = (sql: string, runs: boolean): void => {
    location.hash = '#query'
    workspace.open(sql, runs)
  }
  const dashboards = new DashboardsPage(schema, (sql) => openQuery(sql, true))
  const reload = async (): Promise<void> => {
    await tree.reload()
    await schema.loadLanguage()
  }
  openStartPage(
    () => tree.reload(),
    (sql) => openQuery(sql, true),
  )
  openImport(() => void tree.reload())
  openLayout(workspace)
  const showView = (): void => {
    const statement = /^#query=(.*)$/.exec(location.hash)?.[1]
    if (statement !== undefined) {
      workspace.open(decodeURIComponent(statement), true)
      history.replaceState(null, '', '#query')
    }
    const view = viewOf(location.hash)
    for (const name of views) show(byId(`view-${name}`, HTMLElement), name === view)
    for (const link of document.querySelectorAll('#views a')) {
      if (link.getAttribute('href') === `#${view}`) link.setAttribute('aria-current', 'page')
      else link.removeAttribute('aria-current')
    }
    if (view === 'live') live.start()
    else live.stop()
    if (view === 'dashboards') void dashboards.show(location.hash)
    else dashboards.hide()
  }
  window.addEventListener('hashchange', showView)
  showView()
  await openSignIn(() => void reload())
  await reload()
  byId('version', HTMLElement).textContent = await serverVersion()
}

/** The newest rows are what one wants to see of a table with time. */
function latestFirst({ timestamp, kind }: Table): string {
  return timestamp === null || kind === 'view' ? '' : ` ORDER BY ${quoted(timestamp)} DESC`
}

/** The first visit begins with the tour. */
function viewOf(hash: string): View {
  const named = views.find((view) => hash === `#${view}` || hash.startsWith(`#${view}?`))
  if (named !== undefined) return named
  const isFirst = recall('visited', isString, '') === ''
  remember('visited', 'yes')
  return isFirst ? 'start' : 'query'
}

function openTheme(): void {
  const place = byId('theme', HTMLElement)
  const apply = (index: number): void => {
    const [name, iconName] = themes[index % themes.length] ?? themes[0]
    document.documentElement.dataset['theme'] = name
    remember('theme', name)
    const next = button('', () => apply(index + 1), { icon: iconName, title: `Colours: ${name}`, className: 'quiet' })
    const hadFocus = place.contains(document.activeElement)
    place.replaceChildren(next)
    if (hadFocus) next.focus()
    document.dispatchEvent(new Event('theme'))
  }
  const stored = recall('theme', isString, 'system')
  apply(
    Math.max(
      0,
      themes.findIndex(([name]) => name === stored),
    ),
  )
}

function openLayout(workspace: Workspace): void {
  const side = byId('side', HTMLElement)
  const resize = (width: number): void => {
    const pixels = Math.max(160, Math.min(560, width))
    document.documentElement.style.setProperty('--side', `${pixels}px`)
    remember('side', pixels)
  }
  makeSplitter(byId('side-splitter', HTMLElement), 'x', (pixels) => resize(side.clientWidth + pixels))
  const width = recall('side', isNumber, 0)
  if (width > 0) resize(width)
  byId('drawer', HTMLButtonElement).addEventListener('click', () => {
    const opens = side.classList.toggle('open')
    byId('drawer', HTMLButtonElement).ariaExpanded = String(opens)
  })
  byId('add-tab', HTMLButtonElement).addEventListener('click', () => workspace.addTab())
  // A menu closes when something else is pressed, and by Escape.
  document.addEventListener('click', ({ target }) => {
    for (const menu of document.querySelectorAll('details.menu[open]')) {
      if (target instanceof Node && !menu.contains(target)) menu.removeAttribute('open')
    }
  })
  document.addEventListener('keydown', (event) => {
    if (event.key === 'Escape') closeMenus()
    if (event.key === 'F6') goToNextPart(event, workspace)
  })
}

function closeMenus(): void {
  for (const menu of document.querySelectorAll('details.menu[open]')) {
    const hadFocus = menu.contains(document.activeElement)
    menu.removeAttribute('open')
    const summary = menu.querySelector('summary')
    if (hadFocus && summary !== null) summary.focus()
  }
}

function closeDrawer(): void {
  byId('side', HTMLElement).classList.remove('open')
  byId('drawer', HTMLButtonElement).ariaExpanded = 'false'
}

/** F6 goes from the tree to the editor, to the result, and back. */
function goToNextPart(event: KeyboardEvent, workspace: Workspace): void {
  event.preventDefault()
  const { activeElement } = document
  const [side, editor] = [byId('side', HTMLElement), byId('editor-part', HTMLElement)]
  const result = document.querySelector('#result [tabindex="0"]')
  if (side.contains(activeElement)) workspace.editor.focus()
  else if (editor.contains(activeElement) && result instanceof HTMLElement) result.focus()
  else {
    const item = document.querySelector('#tables [role=treeitem][tabindex="0"]')
    if (item instanceof HTMLElement) item.focus()
    else byId('table-filter', HTMLInputElement).focus()
  }
}

open().catch((error: unknown) => notify(errorText(error)))
