// Lists the tables: a click on a name queries its rows, a click on the arrow shows its columns.

import { execute } from './api.js'
import { appendStatement, insertText } from './editor.js'
import { byId, element } from './element.js'

const list = byId('tables')
const filter = byId('table-filter')
const shownMax = 2000
let tables = []
let hasMore = false

export function openTables(run) {
  filter.addEventListener('input', () => paint(run))
  byId('reload-tables').addEventListener('click', () => void loadTables(run))
  return loadTables(run)
}

export async function loadTables(run) {
  const sql =
    "select table_name, table_row_count, partitionBy, walEnabled from tables() where table_type = 'T' order by table_name"
  try {
    const { dataset, more } = await execute(sql, { limit: 10_000 })
    hasMore = more
    tables = dataset.map(([name, rows, partitionBy]) => ({ name, rows, partitionBy }))
    paint(run)
  } catch (error) {
    list.replaceChildren(element('li', { className: 'note' }, error.message))
  }
}

/** Quotes an identifier for use in a statement. */
export function quoted(name) {
  return /^[A-Za-z_]\w*$/.test(name) ? name : `"${name.replaceAll('"', '""')}"`
}

function paint(run) {
  const wanted = filter.value.trim().toLowerCase()
  const found = tables.filter(({ name }) => name.toLowerCase().includes(wanted))
  list.replaceChildren(...found.slice(0, shownMax).map((table) => tableElement(table, run)))
  if (found.length > shownMax || hasMore) {
    const note = `first ${Math.min(found.length, shownMax).toLocaleString()} tables; there are more`
    list.append(element('li', { className: 'note' }, note))
  }
}

function tableElement({ name, rows, partitionBy }, run) {
  const arrow = element('button', { type: 'button', title: 'Columns' }, '▸')
  const title = element('span', { className: 'name', title: `${name}, partitioned by ${partitionBy}` }, name)
  const line = element('div', {}, arrow, title, element('span', { className: 'note' }, rows.toLocaleString()))
  const item = element('li', {}, line)
  title.addEventListener('click', () => {
    appendStatement(`select * from ${quoted(name)};`)
    run()
  })
  arrow.addEventListener('click', () => void toggle(item, name, arrow))
  return item
}

async function toggle(item, name, arrow) {
  const open = item.querySelector('ul')
  arrow.textContent = open === null ? '▾' : '▸'
  if (open !== null) {
    open.remove()
    return
  }
  const columns = element('ul')
  item.append(columns)
  try {
    const { dataset } = await execute(`show columns from ${quoted(name)}`, { limit: 10_000 })
    for (const [column, type] of dataset) {
      const line = element(
        'div',
        {},
        element('span', { className: 'name' }, column),
        element('span', { className: 'note' }, type),
      )
      line.addEventListener('click', () => insertText(quoted(column)))
      columns.append(element('li', {}, line))
    }
  } catch (error) {
    columns.append(element('li', { className: 'note' }, error.message))
  }
}
