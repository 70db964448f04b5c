// `node dist/test/crash/disk-full.js [--directory d] [--mib n] [--seconds n] [--floor size]`: fills the disk under a
// server that receives rows by line protocol (HTTP and TCP), INSERT (HTTP and PostgreSQL protocol) and CSV import, then
// frees it. QWP and COPY are not covered. Without --directory it mounts a tmpfs of --mib MiB, which requires root; a
// directory must be on a file system of about that size. --floor is the free space below which the server rejects
// writes (`disk.free.bytes.min`); with 0 it only notices a full disk by failing writes.
//
// Method: clients write numbered batches over HTTP lines, TCP lines, INSERT, CSV import and the PostgreSQL protocol.
// Another file fills the disk, at first until less space is free than the server requires, then to the last byte. It is
// removed after each step, which takes --seconds. Meanwhile every rejection over HTTP is a 503 with Retry-After, and
// queries are answered. Afterwards, without a restart, each protocol accepts rows again, every acknowledged batch is
// complete, none is stored partly, and a connection of line protocol over TCP has lost nothing. After a SIGKILL and a
// restart the same is checked again.

import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, mkdirSync, mkdtempSync, openSync, rmSync, statfsSync, writeSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import pg from 'pg'
import { queryRows } from '../bench/processes.js'

const { values } = parseArgs({
  options: {
    directory: { type: 'string' },
    mib: { type: 'string', default: '400' },
    seconds: { type: 'string', default: '4' },
    port: { type: 'string', default: '17100' },
    /** The server refuses below so much; 0: it learns from failing writes. */
    floor: { type: 'string', default: '64m' },
  },
})
const ports = { http: Number(values.port), line: Number(values.port) + 1, pg: Number(values.port) + 2 }
const base = `http://127.0.0.1:${ports.http}`
const batchRows = 200
const stepMs = Number(values.seconds) * 1000
const MIB = 1024 * 1024

type Outcome = 'stored' | 'refused' | 'lost'
type Send = (batch: number) => Promise<Outcome>

interface Path {
  readonly name: string
  readonly send: Send
  readonly stored: number[]
  refused: number
  /** Batches that nobody answered: they may be there whole. */
  readonly unknown: number[]
  next: number
}

function check(condition: boolean, message: string): void {
  if (!condition) throw new Error(message)
}

function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}

async function startServer(root: string): Promise<ChildProcess> {
  const command = new URL('../../deploy/cli.js', import.meta.url).pathname
  const sets = [
    ...[`http.net.bind.to=127.0.0.1:${ports.http}`, `line.tcp.net.bind.to=127.0.0.1:${ports.line}`],
    ...[`pg.net.bind.to=127.0.0.1:${ports.pg}`, 'http.min.enabled=false', 'memory.bytes=512m', 'wal.bytes.max=128m'],
    `disk.free.bytes.min=${values.floor}`,
  ].flatMap((set) => ['--set', set])
  const child = spawn(process.execPath, [command, 'start', '-d', root, ...sets], {
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  for (let attempt = 0; attempt < 600; attempt++) {
    if (child.exitCode !== null) throw new Error(`the server ended with code ${child.exitCode}`)
    if (
      await fetch(base)
        .then(({ ok }) => ok)
        .catch(() => false)
    )
      return child
    await sleep(50)
  }
  throw new Error('the server does not answer')
}

// ---- one batch by each path -----------------------------------------------------------------------------------------

const text = 'x'.repeat(200)

function lines(table: string, batch: number): string {
  const micros = (row: number) => 1_700_000_000_000_000 + batch * 1_000_000 + row
  return Array.from(
    { length: batchRows },
    (_, row) => `${table} batch=${batch}i,row=${row}i,text="${text}${batch * row}" ${micros(row)}000\n`,
  ).join('')
}

/** A refusal has the status and the header that tell clients to come back. */
async function outcomeOf(answer: Response): Promise<Outcome> {
  const body = await answer.text()
  if (answer.status === 200 || answer.status === 204) return 'stored'
  check(answer.status === 503, `${answer.url} answered ${answer.status}: ${body}`)
  check(answer.headers.get('retry-after') !== null, `${answer.url} answered 503 without Retry-After: ${body}`)
  return 'refused'
}

const sendLines: Send = async (batch) =>
  outcomeOf(await fetch(`${base}/write`, { method: 'POST', body: lines('by_http', batch) }))

function insertOf(table: string, batch: number): string {
  const rows = Array.from(
    { length: batchRows },
    (_, row) => `(${batch}, ${row}, '${text}', ${batch * 1_000_000 + row})`,
  )
  return `INSERT INTO ${table} (batch, row, text, timestamp) VALUES ${rows.join(',')}`
}

const sendInsert: Send = async (batch) => {
  const body = JSON.stringify({ query: insertOf('by_insert', batch) })
  const headers = { 'content-type': 'application/json' }
  return outcomeOf(await fetch(`${base}/exec`, { method: 'POST', headers, body }))
}

const sendCsv: Send = async (batch) => {
  const rows = Array.from(
    { length: batchRows },
    (_, row) => `${batch},${row},${text},${new Date(batch * 1000 + row).toISOString()}`,
  )
  const form = new FormData()
  form.append('data', new Blob([`batch,row,text,timestamp\n${rows.join('\n')}\n`]), 'rows.csv')
  return outcomeOf(await fetch(`${base}/imp?name=by_csv&forceHeader=true&fmt=json`, { method: 'POST', body: form }))
}

function pgPath(client: pg.Client): Send {
  return async (batch) => {
    try {
      await client.query(insertOf('by_pg', batch))
      return 'stored'
    } catch (error) {
      const { code, message } = error as { readonly code?: string; readonly message: string }
      check(code?.startsWith('53') === true, `the wire protocol answered ${code}: ${message}`)
      return 'refused'
    }
  }
}

/** No answers here: what the socket took counts as sent. */
function tcpPath(socket: Socket): Send {
  return async (batch) => {
    socket.write(lines('by_tcp', batch))
    while (socket.writableNeedDrain && !over) await sleep(10)
    return 'stored'
  }
}

// ---- the run
// ----------------------------------------------------------------------------------------------------------

let over = false

async function write(path: Path): Promise<void> {
  while (!over) {
    const batch = path.next++
    const outcome = await path.send(batch).catch((error: Error) => {
      if (!(error instanceof TypeError)) throw error
      return 'lost' as const
    })
    if (outcome === 'stored') path.stored.push(batch)
    else if (outcome === 'lost') path.unknown.push(batch)
    else {
      path.refused++
      await sleep(20)
    }
    await sleep(2)
  }
}

/** Queries answer, whatever the disk does. */
async function read(): Promise<number> {
  let answers = 0
  while (!over) {
    const start = performance.now()
    const rows = await queryRows(ports.http, 'select count() from by_http where row >= 0')
    check(Number(rows[0]?.[0]) >= 0, 'a query gave no count')
    check(performance.now() - start < 10_000, 'a query took longer than 10 s')
    answers++
    await sleep(20)
  }
  return answers
}

/** A neighbour's file: grows until so many bytes are free. */
class Ballast {
  readonly #path: string
  #file: number
  #size = 0

  constructor(directory: string) {
    this.#path = join(directory, 'ballast')
    this.#file = openSync(this.#path, 'w')
  }

  fill(directory: string, freeBytes: number): void {
    const chunk = Buffer.alloc(MIB, 7)
    for (;;) {
      const { bavail, bsize } = statfsSync(directory)
      const room = bavail * bsize - freeBytes
      if (room <= 0) return
      try {
        this.#size += writeSync(this.#file, chunk, 0, Math.min(MIB, room), this.#size)
      } catch {
        return
      }
    }
  }

  remove(): void {
    closeSync(this.#file)
    rmSync(this.#path)
  }
}

async function verify(paths: readonly Path[]): Promise<number> {
  let total = 0
  for (const { name, stored, unknown, next } of paths) {
    const found = new Map<number, number>()
    for (let from = 0; from < next; from += 5000) {
      const sql = `select batch, count() c, count_distinct(row) d from by_${name} where batch >= ${from} and batch < ${from + 5000}`
      for (const [batch, rows, distinct] of await queryRows(ports.http, sql)) {
        check(rows === distinct, `${name}: batch ${batch} has rows twice`)
        check(rows === batchRows, `${name}: batch ${batch} is there in part [rows=${rows}]`)
        found.set(Number(batch), Number(rows))
      }
    }
    for (const batch of stored) check(found.has(batch), `${name}: batch ${batch} was acknowledged and is lost`)
    const possible = new Set([...stored, ...unknown])
    for (const batch of found.keys()) check(possible.has(batch), `${name}: batch ${batch} was refused and is there`)
    total += found.size * batchRows
  }
  return total
}

/** Every path has stored something since: the server has recovered by itself. */
async function untilAllStore(paths: readonly Path[]): Promise<number> {
  const before = paths.map(({ stored }) => stored.length)
  const start = performance.now()
  while (paths.some(({ stored }, index) => stored.length <= (before[index] as number) + 2)) {
    check(performance.now() - start < 30_000, `not all paths take rows again: ${summary(paths)}`)
    await sleep(50)
  }
  return performance.now() - start
}

function summary(paths: readonly Path[]): string {
  return paths.map(({ name, stored, refused }) => `${name} ${stored.length}/${refused}`).join(', ')
}

async function fillAndFree(directory: string, paths: readonly Path[]): Promise<void> {
  const phases = [
    ['nearly full', 20 * MIB],
    ['full', 0],
  ] as const
  for (const [words, freeBytes] of values.floor === '0' ? phases.slice(1) : phases) {
    const ballast = new Ballast(directory)
    ballast.fill(directory, freeBytes)
    const halfway = performance.now() + stepMs / 2
    const until = performance.now() + stepMs
    let before: readonly number[] | null = null
    while (performance.now() < until) {
      await sleep(100)
      ballast.fill(directory, freeBytes)
      if (performance.now() > halfway) before ??= paths.map(({ stored }) => stored.length)
    }
    // A request whose rows the log could not write is answered when it can: they may not be refused and stored both.
    const waits = (index: number): boolean => freeBytes === 0 && before?.[index] === paths[index]?.stored.length
    const silent = paths.filter(({ name, refused }, index) => name !== 'tcp' && refused === 0 && !waits(index))
    check(silent.length === 0, `${words}, but paths stored and refused nothing: ${summary(silent)}`)
    check(
      paths.some(({ refused }, index) => refused > 0 || waits(index)),
      `${words}, but nobody was refused and nobody waits`,
    )
    ballast.remove()
    const recoveredMs = await untilAllStore(paths)
    process.stdout.write(
      `${words}: stored/refused batches ${summary(paths)}; all stored again after ${recoveredMs.toFixed(0)} ms\n`,
    )
  }
}

async function connectClients(): Promise<{ paths: Path[]; socket: Socket; client: pg.Client }> {
  const client = new pg.Client({ host: '127.0.0.1', port: ports.pg, user: 'admin', password: 'quest', database: 'qdb' })
  client.on('error', () => {})
  await client.connect()
  for (const table of ['by_insert', 'by_pg', 'by_http', 'by_tcp', 'by_csv']) {
    const columns = 'batch LONG, row LONG, text VARCHAR, timestamp TIMESTAMP'
    await client.query(`CREATE TABLE ${table} (${columns}) TIMESTAMP(timestamp) PARTITION BY DAY`)
  }
  const socket = connect({ host: '127.0.0.1', port: ports.line })
  await once(socket, 'connect')
  socket.on('error', () => {})
  const sends: Record<string, Send> = { http: sendLines, insert: sendInsert, csv: sendCsv, pg: pgPath(client) }
  sends['tcp'] = tcpPath(socket)
  const paths = Object.entries(sends).map(
    ([name, send]): Path => ({ name, send, stored: [], refused: 0, unknown: [], next: 0 }),
  )
  return { paths, socket, client }
}

async function run(directory: string): Promise<void> {
  const root = join(directory, 'root')
  mkdirSync(root)
  let server = await startServer(root)
  try {
    const { paths, socket, client } = await connectClients()
    const writers = paths.map(write)
    const reader = read()
    const clients = Promise.all([...writers, reader])
    clients.catch(() => {})
    await Promise.race([untilAllStore(paths), clients])
    await Promise.race([fillAndFree(directory, paths), clients])
    over = true
    const answers = (await clients).at(-1)
    check(!socket.destroyed, 'the line connection was closed')
    // It closes when every line of it is stored.
    socket.end()
    await once(socket, 'close')
    await client.end()
    const rows = await verify(paths)
    server.kill('SIGKILL')
    await once(server, 'exit')
    server = await startServer(root)
    check((await verify(paths)) === rows, 'another number of rows after the restart')
    process.stdout.write(`${rows} rows by ${paths.length} paths, ${answers} queries: nothing lost, no restart needed\n`)
  } finally {
    over = true
    server.kill('SIGKILL')
    await once(server, 'exit').catch(() => {})
  }
}

async function main(): Promise<void> {
  if (values.directory !== undefined) return run(mkdtempSync(join(values.directory, 'disk-full-')))
  const mount = mkdtempSync(join(tmpdir(), 'penstock-disk-'))
  const mounted = spawnSync('mount', ['-t', 'tmpfs', '-o', `size=${values.mib}m`, 'penstock-disk', mount])
  if (mounted.status !== 0) {
    process.stdout.write(`skipped: a tmpfs cannot be mounted here (${String(mounted.stderr).trim()})\n`)
    rmSync(mount, { recursive: true })
    return
  }
  try {
    await run(mount)
  } finally {
    spawnSync('umount', ['-l', mount])
    rmSync(mount, { recursive: true, force: true })
  }
}

await main()
process.exit()
