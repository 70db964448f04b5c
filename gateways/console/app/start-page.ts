// The start page of the console, for new users: loads sample data and offers queries over it, shows programs that send
// a row, and lists the keys.

import { demoLines, demoTables, sensorsInsert } from '../../common/demo-data.js'
import { execute, request } from './api.js'
import { button, byId, copyToClipboard, element, errorText, notify } from './dom.js'
import { asText, objectIn } from './json.js'
import { snippetsFor } from './snippets.js'

/** `loaded`: called when the sample tables are there. `tryIt`: opens a statement in the editor and runs it. */
export function openStartPage(loaded: () => Promise<void>, tryIt: (sql: string) => void): void {
  byId('start', HTMLElement).append(
    element('section', { className: 'start-card' }, ...tourCard(loaded, tryIt)),
    element('section', { className: 'start-card wide' }, ...rowCard()),
    element('section', { className: 'start-card' }, ...keysCard()),
  )
}

const examples: readonly (readonly [title: string, sql: string])[] = [
  [
    'Average temperature of each freezer by hour',
    `SELECT ts, room, avg(temperature) AS temperature\nFROM readings\nWHERE room LIKE 'freezer%'\nSAMPLE BY 1h`,
  ],
  ['The latest reading of each sensor', 'SELECT * FROM readings LATEST ON ts PARTITION BY sensor'],
  [
    'Each opening of a door, with the reading before it',
    'SELECT d.ts, d.room, d.seconds, r.temperature\nFROM doors d\nASOF JOIN readings r ON (room)',
  ],
  [
    'Longest silence of each sensor',
    "SELECT sensor, max(datediff('m', previous, ts)) AS minutes\nFROM (SELECT ts, sensor, lag(ts) OVER (PARTITION BY sensor ORDER BY ts) AS previous FROM readings)\nORDER BY minutes DESC",
  ],
]

function tourCard(loaded: () => Promise<void>, tryIt: (sql: string) => void): HTMLElement[] {
  const status = element('output', { className: 'quiet' })
  const load = button('Load the sample data', () => void run(), { className: 'main' })
  const run = async (): Promise<void> => {
    load.disabled = true
    status.textContent = 'Loading …'
    try {
      status.textContent = await loadDemo()
      await loaded()
    } catch (error) {
      status.textContent = errorText(error)
    } finally {
      load.disabled = false
    }
  }
  const items = examples.map(([title, sql]) =>
    element(
      'li',
      {},
      button(title, () => tryIt(sql), { className: 'link' }),
    ),
  )
  return [
    element('h2', {}, 'Try it with sample data'),
    element(
      'p',
      {},
      'A week of a wholesaler’s cold rooms in three related tables: 8 sensors with gaps and late rows, 15,968 readings, 587 openings of doors.',
    ),
    element('div', { className: 'bar' }, load, status),
    element('p', {}, 'Then run one of these, and choose “Chart”:'),
    element('ul', {}, ...items),
    element(
      'p',
      {},
      element('a', { href: '/docs/tour.html', target: '_blank' }, 'The tour of ten minutes'),
      ' goes on from here; ',
      element('a', { href: '/docs/sql/', target: '_blank' }, 'the SQL reference'),
      ' has every statement.',
    ),
  ]
}

/** Creates the sample tables and fills them; tables of these names stay as they are. */
async function loadDemo(): Promise<string> {
  const existing: string[] = []
  for (const [name, sql] of Object.entries(demoTables)) {
    const response = await request(`../chk?f=json&j=${name}`)
    if (asText(objectIn(await response.text())['status']) === 'Exists') existing.push(name)
    else await execute(sql)
  }
  if (existing.length > 0) return `Nothing was loaded: the tables ${existing.join(', ')} are there already.`
  await execute(sensorsInsert())
  const lines = demoLines()
  for (let start = 0; start < lines.length; ) {
    const end = start + 500_000 >= lines.length ? lines.length : lines.lastIndexOf('\n', start + 500_000) + 1
    const response = await request('../write', { method: 'POST', body: lines.slice(start, end) })
    if (!response.ok)
      throw new Error(asText(objectIn(await response.text())['message'], `the server answered ${response.status}`))
    start = end
  }
  return 'sensors, readings and doors are loaded.'
}

function rowCard(): HTMLElement[] {
  const snippets = snippetsFor(location.origin)
  const code = element('pre', { className: 'code', tabIndex: 0, ariaLabel: 'Program' })
  const strip = element('div', { className: 'segments', role: 'tablist', ariaLabel: 'Language' })
  const choose = (index: number): void => {
    code.textContent = snippets[index]?.code ?? ''
    ;[...strip.children].forEach((tab, place) => {
      if (!(tab instanceof HTMLElement)) return
      tab.ariaSelected = String(place === index)
      tab.tabIndex = place === index ? 0 : -1
    })
  }
  strip.append(
    ...snippets.map(({ language }, index) => {
      const tab = button(language, () => choose(index))
      tab.role = 'tab'
      tab.addEventListener('keydown', ({ key }) => {
        const next = strip.children[index + ({ ArrowLeft: -1, ArrowRight: 1 }[key] ?? 0)]
        if (!(next instanceof HTMLElement) || next === tab) return
        choose([...strip.children].indexOf(next))
        next.focus()
      })
      return tab
    }),
  )
  choose(0)
  const copy = (): void => {
    void copyToClipboard(code.textContent ?? '').then(() => notify('Copied.'))
  }
  return [
    element('h2', {}, 'Send a row'),
    element(
      'p',
      {},
      'The table and its columns are created as they appear. For many rows, use a client that batches them: ',
      element('a', { href: '/docs/clients.html', target: '_blank' }, 'clients'),
      '.',
    ),
    strip,
    code,
    element('div', { className: 'bar' }, button('Copy', copy, { icon: 'copy' })),
    element(
      'p',
      { className: 'quiet' },
      `PostgreSQL clients connect to ${location.hostname}, port 8812 unless it is set otherwise. If the server requires credentials, add them to the program.`,
    ),
  ]
}

const keyList: readonly (readonly [keys: string, what: string])[] = [
  ['Ctrl+Enter', 'run the selection, or the statement at the cursor'],
  ['Ctrl+Shift+Enter', 'run all statements'],
  ['Ctrl+Space', 'complete'],
  ['Shift+Alt+F', 'format'],
  ['Alt+T, Alt+W', 'new tab, close the tab'],
  ['Alt+. Alt+,', 'next tab, previous tab'],
  ['Ctrl+F, F8', 'find, go to the error'],
  ['Escape, Tab', 'leave the editor'],
  ['F6', 'go from part to part: tables, editor, results'],
  ['Arrow keys, Enter', 'in the tree: open, query. In the rows: move, open the row'],
  ['Ctrl+C', 'in the rows: copy the selection'],
]

function keysCard(): HTMLElement[] {
  const rows = keyList.flatMap(([keys, what]) => [element('dt', {}, element('kbd', {}, keys)), element('dd', {}, what)])
  return [element('h2', {}, 'Keys'), element('dl', { className: 'facts' }, ...rows)]
}
