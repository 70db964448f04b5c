// `node .ci/telegraf.mjs TELEGRAF HTTP_PORT LINE_PORT`: tests the server with a real Telegraf. With its default
// settings for Prometheus, Telegraf scrapes the server and, if installed, the node exporter. It writes each metric to a
// file and, through its outputs for InfluxDB 2, InfluxDB 1, HTTP and TCP, to the server. The test compares the rows
// that each output has stored with the lines of the file. The server needs line.name.replacement=_, because the buckets
// of a histogram become fields such as `0.005` and `+Inf`.

import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePort, until } from './processes.mjs'

const [telegraf, http, line] = process.argv.slice(2)
const seconds = 8
/** Each output writes tables of its own. */
const outputs = {
  influxdb_v2: { urls: [`http://127.0.0.1:${http}`], token: '', organization: 'any', bucket: 'any' },
  influxdb: { urls: [`http://127.0.0.1:${http}`], database: 'any' },
  http: { url: `http://127.0.0.1:${http}/write`, data_format: 'influx' },
  socket_writer: { address: `tcp://127.0.0.1:${line}`, data_format: 'influx' },
}
const scratch = mkdtempSync(join(tmpdir(), 'penstock-telegraf-'))

try {
  const metrics = linesOf(readFileSync(await collect(), 'utf8'))
  for (const output of Object.keys(outputs)) await compare(output, metrics)
} finally {
  rmSync(scratch, { recursive: true, force: true })
}

/** Runs Telegraf for some seconds. Returns the file of all metrics. */
async function collect() {
  const exporterPort = await freePort()
  const hasExporter = spawnSync('prometheus-node-exporter', ['--version']).status === 0
  const exporter = hasExporter
    ? spawn('prometheus-node-exporter', [`--web.listen-address=127.0.0.1:${exporterPort}`], { stdio: 'ignore' })
    : null
  try {
    const urls = [`http://127.0.0.1:${http}/metrics`]
    if (hasExporter) urls.push(`http://127.0.0.1:${exporterPort}/metrics`)
    const file = join(scratch, 'metrics.out')
    const config = join(scratch, 'telegraf.conf')
    writeFileSync(config, configuration(urls, file))
    const agent = spawn(telegraf, ['--config', config], { stdio: ['ignore', 'inherit', 'pipe'] })
    let log = ''
    agent.stderr.on('data', (chunk) => (log += chunk))
    const ended = once(agent, 'close')
    const timer = setTimeout(() => agent.kill('SIGTERM'), seconds * 1000)
    const [status] = await ended
    clearTimeout(timer)
    const errors = log.split('\n').filter((text) => / E! /.test(text) && !/inputs\.prometheus/.test(text))
    if (status !== 0 || errors.length > 0) throw new Error(`Telegraf ended with status ${status}: ${errors[0] ?? log}`)
    return file
  } finally {
    exporter?.kill('SIGTERM')
  }
}

function configuration(urls, file) {
  const sections = [
    ['agent', { interval: '1s', flush_interval: '1s' }],
    ['[inputs.prometheus]', { urls }],
    ['[outputs.file]', { files: [file], data_format: 'influx' }],
    ...Object.entries(outputs).map(([name, own]) => [`[outputs.${name}]`, { ...own, name_prefix: `${name}_` }]),
  ]
  return sections
    .map(([title, keys]) => {
      const lines = Object.entries(keys).map(([key, value]) => `  ${key} = ${JSON.stringify(value)}\n`)
      return `[${title}]\n${lines.join('')}`
    })
    .join('')
}

/** The rows that the lines should become: of each table, how often each row is there. */
function linesOf(text) {
  const tables = new Map()
  for (const written of text.split('\n')) {
    if (written === '') continue
    const [head, fields, time] = cut(written, ' ')
    const [name, ...tags] = cut(head, ',')
    const values = {}
    for (const tag of tags) assign(values, tag, plain)
    for (const field of cut(fields, ',')) assign(values, field, number)
    add(tables, plain(name), { ...values, timestamp: `${new Date(Number(time) / 1e6).toISOString().slice(0, -1)}000Z` })
  }
  return tables
}

/** Cuts at the character where no backslash precedes it. */
function cut(text, character) {
  const parts = []
  let begin = 0
  for (let at = 0; at <= text.length; at++) {
    if (text[at] === '\\') at++
    else if (at === text.length || text[at] === character) {
      parts.push(text.slice(begin, at))
      begin = at + 1
    }
  }
  return parts
}

function assign(values, pair, parse) {
  const [name, value] = cut(pair, '=')
  values[plain(name).replace(/[?,'"\\/:)(+*%~.-]/g, '_')] = parse(value)
}

function plain(text) {
  return text.replace(/\\([,= \\])/g, '$1')
}

function number(text) {
  if (Number.isNaN(Number(text))) throw new Error(`the input wrote a field that is no number: ${text}`)
  return Number(text)
}

function add(tables, name, values) {
  const rows = tables.get(name) ?? new Map()
  const key = JSON.stringify(Object.entries(values).sort(([a], [b]) => (a < b ? -1 : 1)))
  rows.set(key, (rows.get(key) ?? 0) + 1)
  tables.set(name, rows)
}

async function compare(output, metrics) {
  const expected = [...metrics.values()].reduce((sum, rows) => sum + countOf(rows), 0)
  const stored = `select sum(table_row_count) from tables() where table_name like '${output}!_%' escape '!'`
  const isStored = async () => Number((await query(stored)).dataset[0][0]) >= expected
  await until(isStored, 10, `there are not ${expected} rows of ${output}`)
  let fields = 0
  for (const [name, rows] of metrics) {
    const found = new Map()
    const { columns, dataset } = await query(`select * from "${output}_${name}"`)
    for (const row of dataset) {
      const present = columns.map((column, index) => [column.name, row[index]]).filter(([, value]) => value !== null)
      fields += present.length
      add(found, name, Object.fromEntries(present))
    }
    const there = found.get(name) ?? new Map()
    for (const [row, count] of rows)
      if (there.get(row) !== count)
        throw new Error(`${output}: ${there.get(row) ?? 0} of ${count} rows of ${name}: ${row}`)
    if (countOf(there) !== countOf(rows)) throw new Error(`${output}: ${name} has rows that Telegraf did not write`)
  }
  const histograms = [...metrics.values()].filter((rows) => [...rows.keys()].some((row) => row.includes('"_Inf"')))
  if (histograms.length === 0) throw new Error('Telegraf saw no histogram')
  console.log(
    `ok ${output}: ${expected} rows of ${metrics.size} metrics, ${fields} values, ${histograms.length} histograms`,
  )
}

function countOf(rows) {
  return [...rows.values()].reduce((sum, count) => sum + count, 0)
}

async function query(sql) {
  const response = await fetch(`http://127.0.0.1:${http}/exec?query=${encodeURIComponent(sql)}`)
  const answer = await response.json()
  if (!response.ok) throw new Error(`${sql}: ${answer.error}`)
  return answer
}
