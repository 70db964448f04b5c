// The console's main script: runs statements and displays their results.

import { download, execute } from './api.js'
import { chartRows, drawChart, openChart } from './chart.js'
import { openDialogs } from './dialogs.js'
import { appendStatement, currentStatement, openEditor, selectAt } from './editor.js'
import { byId, element, show } from './element.js'
import { clearRows, openGrid, showRows } from './grid.js'
import { loadTables, openTables } from './tables.js'

const historyMax = 50
const status = byId('status')
let running = null

async function run({ explain = false } = {}) {
  running?.abort()
  const { text, start } = currentStatement()
  if (text === '') return
  const aborting = new AbortController()
  running = aborting
  byId('cancel').disabled = false
  status.textContent = 'Running …'
  problem(null)
  const begun = performance.now()
  try {
    const limit = byId('limit').valueAsNumber || 1000
    const answer = await execute(text, { limit, signal: aborting.signal, explain })
    present(answer, performance.now() - begun)
    remember(text)
  } catch (error) {
    if (running !== aborting) return
    status.textContent = aborting.signal.aborted ? 'Cancelled.' : 'Failed.'
    if (!aborting.signal.aborted) {
      problem(error.message)
      if (error.position > 0) selectAt(start + error.position)
    }
  } finally {
    if (running === aborting) {
      running = null
      byId('cancel').disabled = true
    }
  }
}

function present(answer, wallMs) {
  if (answer.explain !== undefined) {
    const rows = answer.explain.plan.map((line) => [line])
    answer = { columns: [{ name: 'QUERY PLAN', type: 'STRING' }], dataset: rows, count: rows.length }
  }
  if (answer.columns === undefined) {
    clearRows()
    chartRows([], [])
    choose('grid')
    status.textContent = `${answer.ddl ?? 'OK'}${changes(answer)}, ${wallMs.toFixed(0)} ms`
    void loadTables(run)
    return
  }
  const columns = answer.columns.map(({ name, type, dim }) => ({
    name,
    type: dim === undefined ? type : `DOUBLE${'[]'.repeat(dim)}`,
  }))
  showRows(columns, answer.dataset)
  const drawable = chartRows(columns, answer.dataset)
  byId('tab-chart').disabled = !drawable
  if (!drawable) choose('grid')
  else if (!byId('chart').hidden) drawChart()
  const server =
    answer.timings === undefined
      ? ''
      : `, ${(answer.timings.compiler + answer.timings.execute).toFixed(1)} ms on the server`
  const rows = answer.count.toLocaleString()
  const told = answer.more ? `first ${rows} rows; there are more` : `${rows} rows`
  status.textContent = `${told}, ${wallMs.toFixed(0)} ms${server}`
}

/** Describes how many rows a statement has changed. */
function changes(answer) {
  const done = ['inserted', 'updated', 'deleted'].find((word) => answer[word] !== undefined)
  return done === undefined ? '' : `, ${answer[done].toLocaleString()} rows ${done}`
}

function problem(text) {
  byId('problem').textContent = text ?? ''
  show(byId('problem'), text !== null)
}

function choose(tab) {
  for (const name of ['grid', 'chart']) {
    byId(`tab-${name}`).setAttribute('aria-selected', String(name === tab))
    show(byId(name), name === tab)
  }
  show(byId('chart-choice'), tab === 'chart')
  if (tab === 'chart') drawChart()
}

async function save(format) {
  const { text } = currentStatement()
  if (text === '') return
  problem(null)
  status.textContent = 'Preparing the file …'
  try {
    await download(text, format)
    status.textContent = 'Saved.'
  } catch (error) {
    status.textContent = 'Failed.'
    problem(error.message)
  }
}

// Statements that mention secrets are not saved in the browser.
const secret = /pass(word|wd)|secret|token/i

function remember(text) {
  if (secret.test(text)) return
  const kept = [text, ...earlier().filter((other) => other !== text)].slice(0, historyMax)
  localStorage.setItem('history', JSON.stringify(kept))
  paintHistory()
}

function earlier() {
  try {
    return JSON.parse(localStorage.getItem('history') ?? '[]')
  } catch {
    return []
  }
}

function paintHistory() {
  const options = earlier().map((text) => element('option', { value: text }, text.replace(/\s+/g, ' ').slice(0, 80)))
  byId('history').replaceChildren(element('option', { value: '' }, 'History'), ...options)
}

openGrid()
openChart()
openDialogs(() => void loadTables(run))
openEditor(run)
paintHistory()
byId('run').addEventListener('click', () => void run())
byId('explain').addEventListener('click', () => void run({ explain: true }))
byId('cancel').addEventListener('click', () => running?.abort())
byId('export-csv').addEventListener('click', () => void save('csv'))
byId('export-parquet').addEventListener('click', () => void save('parquet'))
byId('tab-grid').addEventListener('click', () => choose('grid'))
byId('tab-chart').addEventListener('click', () => choose('chart'))
byId('history').addEventListener('change', (event) => {
  if (event.target.value !== '') appendStatement(event.target.value)
  event.target.value = ''
})
await openTables(run)
// `#run=<sql>` puts a statement into the editor; only read-only statements run at once.
const given = new URLSearchParams(location.hash.slice(1)).get('run')
if (given !== null) {
  appendStatement(given)
  if (/^\s*(select|show|explain|with|tables\(\))/i.test(given)) void run()
}
