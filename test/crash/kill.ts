// `node dist/test/crash/kill.js [--rounds n] [--seed n] [--flush-rows n] [--second-kills]`: kills the server with
// SIGKILL at random times while clients write, restarts it, and checks that every acknowledged row is stored and no row
// is stored twice.
//
// Method: clients send batches with row numbers over HTTP; a batch is acknowledged by its 204. The last client sends
// its batches as transactions over the PostgreSQL protocol, acknowledged by COMMIT. A reader records the largest count
// that a query has returned. After each kill every acknowledged batch is complete, no batch is stored partly or in only
// some of the tables, no row number occurs twice, and the count is at least the recorded one.
//
// --flush-rows makes the server flush so often that kills hit flushes, compactions and log trims. --second-kills also
// kills the next start at a random time of its recovery, and possibly those after it.

import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import pg from 'pg'
import { randomNumbers } from '../bench/line-template.js'
import { queryRows } from '../bench/processes.js'

const { values } = parseArgs({
  options: {
    rounds: { type: 'string', default: '50' },
    seed: { type: 'string', default: String(Date.now() % 1e9) },
    port: { type: 'string', default: '17000' },
    clients: { type: 'string', default: '4' },
    set: { type: 'string', multiple: true, default: [] },
    'flush-rows': { type: 'string' },
    'second-kills': { type: 'boolean', default: false },
  },
})
const port = Number(values.port)
const random = randomNumbers(Number(values.seed))
const batchRowsMax = 500
const tables = ['crash_a', 'crash_b', 'crash_c']

interface Batch {
  readonly client: number
  readonly number: number
  readonly rows: number
}

interface Progress {
  readonly acknowledged: Batch[]
  readonly sent: Map<string, Batch>
  /** Rows of the first table that a query has shown. */
  shown: number
  next: number[]
}

/** Whatever ends this process, a client's failure that nobody awaits yet among it, ends the server too. */
let running: ChildProcess | undefined
process.on('exit', () => running?.kill('SIGKILL'))

function launchServer(root: string): ChildProcess {
  const command = new URL('../../deploy/cli.js', import.meta.url).pathname
  const sets = [
    `http.net.bind.to=127.0.0.1:${port}`,
    'http.min.enabled=false',
    'line.tcp.enabled=false',
    `pg.net.bind.to=127.0.0.1:${port + 1}`,
    ...(values['flush-rows'] === undefined ? [] : [`storage.flush.rows=${values['flush-rows']}`]),
    ...values.set,
  ]
  const child = spawn(process.execPath, [command, 'start', '-d', root, ...sets.flatMap((set) => ['--set', set])], {
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  running = child
  return child
}

async function startServer(root: string): Promise<ChildProcess> {
  const child = launchServer(root)
  for (let attempt = 0; attempt < 1000; attempt++) {
    if (child.exitCode !== null) throw new Error(`the server ended with code ${child.exitCode}`)
    if (
      await fetch(`http://127.0.0.1:${port}/`)
        .then((answer) => answer.ok)
        .catch(() => false)
    )
      return child
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
  throw new Error('the server does not answer')
}

/** One request writes the batch into all tables: it is atomic over them. */
function linesOf({ client, number, rows }: Batch): string {
  const lines: string[] = []
  for (let row = 0; row < rows; row++) {
    for (const table of tables) {
      const micros = 1_700_000_000_000_000 + number * 1_000_000 + row - (row % 7 === 0 ? 90_000_000_000 : 0)
      lines.push(`${table},client=c${client} batch=${number}i,row=${row}i,text="t${row % 10}" ${micros}000`)
    }
  }
  return `${lines.join('\n')}\n`
}

/** Transactions on one connection after the other: what fails was not acknowledged. */
async function writeTransactions(client: number, progress: Progress, stopped: () => boolean): Promise<void> {
  while (!stopped()) {
    const connection = new pg.Client({ host: '127.0.0.1', port: port + 1, user: 'admin', password: 'quest' })
    connection.on('error', () => {})
    try {
      await connection.connect()
      for (const table of [...tables, 'crash_marks'])
        await connection.query(
          `create table if not exists ${table} (client symbol, batch long, row long, text varchar, timestamp timestamp) timestamp(timestamp) partition by day wal`,
        )
      await connection.query("insert into crash_marks values ('c', 0, 0, '', '2024-01-01')")
      while (!stopped()) {
        const number = progress.next[client] as number
        progress.next[client] = number + 1
        const batch: Batch = { client, number, rows: 1 + Math.floor(random() * batchRowsMax) }
        progress.sent.set(`${client}/${number}`, batch)
        for (const statement of statementsOf(batch)) await connection.query(statement)
        progress.acknowledged.push(batch)
      }
    } catch {
      await new Promise((resolve) => setTimeout(resolve, 10))
    } finally {
      await connection.end().catch(() => {})
    }
  }
}

/** A change of another table comes between the rows. */
function statementsOf({ client, number, rows }: Batch): string[] {
  const inserts = tables.map((table) => {
    const tuples = Array.from({ length: rows }, (_, row) => {
      const micros = 1_700_000_000_000_000 + number * 1_000_000 + row
      return `('c${client}', ${number}, ${row}, 't${row % 10}', ${micros}::timestamp)`
    })
    return `insert into ${table} (client, batch, row, text, timestamp) values ${tuples.join(', ')}`
  })
  const change = number % 10 === 0 ? [`update crash_marks set batch = ${number}`] : []
  return ['begin', ...inserts.slice(0, 1), ...change, ...inserts.slice(1), 'commit']
}

async function write(client: number, progress: Progress, stopped: () => boolean): Promise<void> {
  while (!stopped()) {
    const number = progress.next[client] as number
    progress.next[client] = number + 1
    const batch: Batch = { client, number, rows: 1 + Math.floor(random() * batchRowsMax) }
    progress.sent.set(`${client}/${number}`, batch)
    const answer = await fetch(`http://127.0.0.1:${port}/write`, { method: 'POST', body: linesOf(batch) }).catch(
      () => null,
    )
    if (answer?.status === 204) progress.acknowledged.push(batch)
    else if (answer !== null) throw new Error(`the server answered ${answer.status}: ${await answer.text()}`)
  }
}

async function read(progress: Progress, stopped: () => boolean): Promise<void> {
  while (!stopped()) {
    const rows = await queryRows(port, `select count() from ${tables[0]}`).catch(() => null)
    if (rows !== null) progress.shown = Math.max(progress.shown, Number(rows[0]?.[0] ?? 0))
    // Kills also meet flushes, merges and trims of the log.
    if (random() < 0.02) await queryRows(port, 'checkpoint').catch(() => [])
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
}

function check(condition: boolean, message: string): void {
  if (!condition) throw new Error(`${message} [seed=${values.seed}]`)
}

async function verify(progress: Progress): Promise<number> {
  let total = 0
  let first: readonly string[] | undefined
  for (const table of tables) {
    const sql = `select client, batch, count() c, count_distinct(row) d from ${table} group by client, batch`
    const found = new Map(
      (await allRows(sql)).map((row) => [`${String(row[0]).slice(1)}/${row[1]}`, [Number(row[2]), Number(row[3])]]),
    )
    for (const { client, number, rows } of progress.acknowledged) {
      const seen = found.get(`${client}/${number}`)?.[0] ?? 0
      check(seen === rows, `${table}: batch ${client}/${number} was acknowledged with ${rows} rows and has ${seen}`)
    }
    first ??= [...found.keys()]
    check(found.size === first.length, `${table}: a batch is not in all tables`)
    check(
      first.every((key) => found.has(key)),
      `${table}: a batch is not in all tables`,
    )
    total = 0
    for (const [key, [rows, distinct]] of found) {
      check(rows === distinct, `${table}: batch ${key} has rows twice`)
      check(rows === progress.sent.get(key)?.rows, `${table}: batch ${key} is there in part`)
      total += rows as number
    }
    if (table === tables[0])
      check(total >= progress.shown, `${table}: a query had shown ${progress.shown} rows, now ${total}`)
  }
  return total
}

async function allRows(sql: string): Promise<unknown[][]> {
  const rows: unknown[][] = []
  for (;;) {
    const page = await queryRows(
      port,
      `select * from (${sql}) order by client, batch limit ${rows.length}, ${rows.length + 5000}`,
    ).catch((error: Error) => {
      // The first kill came before the first row.
      if (error.message.startsWith('table does not exist')) return []
      throw error
    })
    rows.push(...page)
    if (page.length < 5000) return rows
  }
}

/** How long the last start took: recovery is somewhere before its end. */
let startMs = 500
let secondKills = 0

/** Kills starts in the midst of their recovery. */
async function killStarts(root: string): Promise<void> {
  do {
    const child = launchServer(root)
    await pause(startMs * (0.3 + 0.7 * random()))
    check(child.exitCode === null, `a start ended with code ${child.exitCode}`)
    const ended = once(child, 'exit')
    child.kill('SIGKILL')
    await ended
    secondKills++
  } while (random() < 0.3)
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}

async function round(root: string, progress: Progress): Promise<number> {
  if (values['second-kills'] && progress.sent.size > 0) await killStarts(root)
  const begunMs = performance.now()
  const child = await startServer(root)
  startMs = performance.now() - begunMs
  if (progress.sent.size > 0) await verify(progress)
  let over = false
  const stopped = () => over
  const last = Number(values.clients) - 1
  const clients = Array.from({ length: last }, (_, client) => write(client, progress, stopped))
  clients.push(writeTransactions(last, progress, stopped))
  const reader = read(progress, stopped)
  await new Promise((resolve) => setTimeout(resolve, 50 + random() * 1500))
  const ended = once(child, 'exit')
  child.kill('SIGKILL')
  over = true
  await ended
  await Promise.all([...clients, reader])
  return progress.acknowledged.length
}

async function main(): Promise<void> {
  const root = mkdtempSync(join(tmpdir(), 'penstock-crash-'))
  process.stdout.write(`seed ${values.seed}\n`)
  const progress: Progress = {
    acknowledged: [],
    sent: new Map(),
    shown: 0,
    next: Array.from({ length: Number(values.clients) }, () => 0),
  }
  let slowestMs = 0
  for (let number = 1; number <= Number(values.rounds); number++) {
    const batches = await round(root, progress)
    process.stdout.write(`round ${number}: ${batches} batches acknowledged, ${progress.sent.size} sent\n`)
  }
  const start = performance.now()
  const child = await startServer(root)
  slowestMs = performance.now() - start
  const rows = await verify(progress)
  const transactions = progress.acknowledged.filter(({ client }) => client === Number(values.clients) - 1).length
  check(transactions > 0, 'no transaction was acknowledged')
  child.kill('SIGTERM')
  await once(child, 'exit')
  rmSync(root, { recursive: true, force: true })
  process.stdout.write(
    `${values.rounds} rounds, ${secondKills} kills of starts, ${transactions} transactions, ${rows} rows in each of ${tables.length} tables, last start ${slowestMs.toFixed(0)} ms: nothing lost, nothing twice\n`,
  )
}

await main()
