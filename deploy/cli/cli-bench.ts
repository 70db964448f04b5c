// Implements `penstock bench`: measures this machine in about half a minute: disk syncs, rows per second by line
// protocol, the time of small commits, and queries over the rows. It starts a server of its own in a temporary folder
// and is its only client, over HTTP.

import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, fsyncSync, mkdtempSync, openSync, rmSync, writeSync } from 'node:fs'
import { availableParallelism, cpus, totalmem } from 'node:os'
import { join, resolve } from 'node:path'
import { makeDirectories } from '../../engine/base/files.js'
import { type Client, exitCodes, openClient, refusalText, ToolError } from './http-client.js'

export interface BenchFlags {
  readonly dir: string
  readonly seconds: string
  readonly json?: boolean
}

interface Measured {
  readonly what: string
  readonly value: number
  readonly unit: string
}

const linesPerBlock = 2000
const blocks = 50
const hosts = 100
/** Blocks that are on their way at one time. */
const pending = 4
const smallCommits = 200
const runs = 9
const firstMs = Date.UTC(2026, 0)

const queries: Readonly<Record<string, string>> = {
  'filter and count': `SELECT count() FROM cpu WHERE usage_user > 90`,
  'average by host': `SELECT host, avg(usage_user), max(usage_system) FROM cpu`,
  'SAMPLE BY 1m': `SELECT ts, avg(usage_user), avg(usage_system) FROM cpu SAMPLE BY 1m`,
  'latest by host': `SELECT * FROM cpu LATEST ON ts PARTITION BY host`,
  'last 1,000 rows': `SELECT * FROM cpu ORDER BY ts DESC LIMIT 1000`,
}

export async function runBench({ dir, seconds, json }: BenchFlags): Promise<void> {
  const ingestMs = Number(seconds) * 1000
  if (!(ingestMs > 0 && ingestMs <= 600_000))
    throw new ToolError('--seconds is a number from 1 to 600', exitCodes.usage)
  const parent = resolve(dir)
  makeDirectories(parent)
  const folder = mkdtempSync(join(parent, 'penstock-bench-'))
  const show = (measured: Measured): void => {
    if (json !== true) process.stdout.write(lineOf(measured))
  }
  try {
    if (json !== true) process.stdout.write(`${machine()}\n`)
    const all = await measure(folder, ingestMs, show)
    if (json === true)
      process.stdout.write(
        `${JSON.stringify({ machine: machine(), node: process.versions.node, measured: all }, null, 2)}\n`,
      )
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

async function measure(folder: string, ingestMs: number, show: (measured: Measured) => void): Promise<Measured[]> {
  const all: Measured[] = []
  const add = (what: string, value: number, unit: string): void => {
    const measured = { what, value, unit }
    all.push(measured)
    show(measured)
  }
  add('sync of 4 KB to the disk, median', syncMs(folder), 'ms')
  const server = await startServer(join(folder, 'root'))
  const client = openClient({ url: server.url })
  try {
    await execute(
      client,
      'CREATE TABLE cpu (host SYMBOL, region SYMBOL, usage_user DOUBLE, usage_system DOUBLE, usage_idle DOUBLE, tasks LONG, ts TIMESTAMP) TIMESTAMP(ts) PARTITION BY HOUR',
    )
    const { rows, ms } = await ingest(client, ingestMs)
    add('rows by line protocol, synced', rows / (ms / 1000), 'rows/s')
    const commits = await commitTimes(client)
    add('commit of one row, median', quantile(commits, 0.5), 'ms')
    add('commit of one row, 99th percentile', quantile(commits, 0.99), 'ms')
    for (const [name, sql] of Object.entries(queries)) {
      const times = await queryTimes(client, sql)
      add(`${name}, of ${grouped(rows)} rows, median`, quantile(times, 0.5), 'ms')
    }
    add('small queries, one after another', await smallQueries(client), 'queries/s')
  } finally {
    await client.close()
    await server.end()
  }
  return all
}

/** This program as a server, on a free port of this machine. */
async function startServer(root: string): Promise<{ readonly url: string; end(): Promise<void> }> {
  const off = ['http.min.enabled=false', 'line.tcp.enabled=false', 'pg.enabled=false', 'telemetry.enabled=false']
  const sets = ['http.net.bind.to=127.0.0.1:0', ...off].flatMap((set) => ['--set', set])
  const args = [process.argv[1] ?? '', 'start', '-d', root, ...sets]
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] })
  const stop = (): void => void child.kill('SIGKILL')
  process.on('exit', stop)
  const url = await addressOf(child)
  const end = async (): Promise<void> => {
    const closed = once(child, 'close')
    child.kill('SIGTERM')
    await closed
    process.removeListener('exit', stop)
  }
  return { url, end }
}

async function addressOf({ stdout }: ChildProcess): Promise<string> {
  let text = ''
  for await (const chunk of stdout ?? []) {
    text += String(chunk)
    const address = /^ {2}http +(\S+)$/m.exec(text)?.[1]
    if (address !== undefined && text.includes('Ctrl-C')) return `http://${address}`
  }
  throw new ToolError('the server of the measurement has ended')
}

function machine(): string {
  const [cpu] = cpus()
  const memory = Math.round(totalmem() / 1024 ** 3)
  return `${cpu?.model ?? 'unknown processor'}, ${availableParallelism()} threads, ${memory} GiB, Node.js ${process.versions.node}`
}

function syncMs(folder: string): number {
  const file = openSync(join(folder, 'sync'), 'w')
  const times: number[] = []
  try {
    const block = Buffer.alloc(4096)
    for (let n = 0; n < 25; n++) {
      const begin = performance.now()
      writeSync(file, block)
      fsyncSync(file)
      times.push(performance.now() - begin)
    }
  } finally {
    closeSync(file)
  }
  return quantile(times, 0.5)
}

/** Lines of one block, and where in its bytes the milliseconds of each line's timestamp are. */
interface Block {
  readonly bytes: Buffer
  readonly places: Int32Array
}

/** Every host once in 100 ms of the data's time, with pseudo-random values. */
function block(index: number): Block {
  let text = ''
  let state = index * 7919 + 1
  const places = new Int32Array(linesPerBlock)
  for (let n = 0; n < linesPerBlock; n++) {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648
    const [user, system] = [(state % 10_000) / 100, ((state >> 8) % 5000) / 100]
    const host = n % hosts
    const fields = `usage_user=${user},usage_system=${system},usage_idle=${100 - user},tasks=${state % 300}i`
    text += `cpu,host=host-${host},region=region-${host % 5} ${fields} `
    places[n] = text.length
    text += `${firstMs}000000\n`
  }
  return { bytes: Buffer.from(text), places }
}

/** Moves the lines of a block to a later time, as if the hosts had sent them then. */
function moved({ bytes, places }: Block, count: number): Buffer {
  const beginMs = firstMs + count * (linesPerBlock / hosts) * 100
  for (let n = 0; n < linesPerBlock; n++)
    bytes.write(String(beginMs + Math.floor(n / hosts) * 100), places[n] ?? 0, 'latin1')
  return bytes
}

async function ingest(client: Client, ms: number): Promise<{ rows: number; ms: number }> {
  const texts = Array.from({ length: blocks }, (_, index) => block(index))
  let [count, rows] = [0, 0]
  const sendOne = async (): Promise<void> => {
    const next = texts[count % blocks]
    if (next !== undefined) rows += await send(client, moved(next, count++), linesPerBlock)
  }
  // The first block creates the dictionaries.
  await sendOne()
  rows = 0
  const begin = performance.now()
  const sendMany = async (): Promise<void> => {
    while (performance.now() - begin < ms) await sendOne()
  }
  await Promise.all(Array.from({ length: pending }, sendMany))
  return { rows, ms: performance.now() - begin }
}

async function send(client: Client, lines: string | Uint8Array, count: number): Promise<number> {
  const reply = await client.post('write', {}, lines, 'text/plain')
  if (reply.status !== 204) throw new ToolError(await refusalText(reply))
  await reply.body.text()
  return count
}

async function execute(client: Client, query: string): Promise<void> {
  const reply = await client.get('exec', { query })
  if (reply.status !== 200) throw new ToolError(await refusalText(reply))
  await reply.body.text()
}

async function commitTimes(client: Client): Promise<number[]> {
  const times: number[] = []
  for (let n = 0; n < smallCommits; n++) {
    const begin = performance.now()
    await send(client, `cpu,host=host-1,region=region-1 usage_user=1 ${Date.UTC(2027, 0) + n}000000\n`, 1)
    times.push(performance.now() - begin)
  }
  return times
}

async function queryTimes(client: Client, sql: string): Promise<number[]> {
  const times: number[] = []
  for (let n = 0; n < runs; n++) {
    const begin = performance.now()
    await execute(client, sql)
    times.push(performance.now() - begin)
  }
  // The first run reads from the disk and compiles.
  return times.slice(1)
}

async function smallQueries(client: Client): Promise<number> {
  const begin = performance.now()
  let count = 0
  for (; performance.now() - begin < 1000; count++)
    await execute(client, `SELECT usage_user FROM cpu WHERE host = 'host-${count % hosts}' LIMIT 1`)
  return count / ((performance.now() - begin) / 1000)
}

function quantile(times: readonly number[], share: number): number {
  const sorted = times.toSorted((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0
}

function lineOf({ what, value, unit }: Measured): string {
  const text = value >= 1000 ? grouped(Math.round(value)) : value.toFixed(value < 10 ? 2 : 1)
  return `${what.padEnd(56)} ${text.padStart(12)} ${unit}\n`
}

function grouped(value: number): string {
  return value.toLocaleString('en')
}
