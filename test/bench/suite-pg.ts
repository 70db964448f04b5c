// Benchmark of the PostgreSQL wire protocol, ours compared with QuestDB and PostgreSQL: inserts by every method that
// clients use, results, and small queries. Reports rows (or queries) per second, inserts until a count returns every
// row, and the processor time per row of server and client; then the ratios of the medians.
//
// Inserts run on our server and on QuestDB twice: with and without a sync to disk before each transaction is
// acknowledged. Our server and PostgreSQL sync by default, QuestDB does not. The report marks the runs that do not use
// the default: `unsynced` is our server without syncs, `synced questdb` is QuestDB with syncs. Inserts and small
// queries run once before they are measured, to warm up. Each measurement waits until the background work of all
// servers has ended.

import { once } from 'node:events'
import { connect } from 'node:net'
import type { Peer } from './peers.js'
import type { PgLoad } from './pg-load.js'
import { runModule, untilQuiet, usageOf } from './processes.js'
import { median } from './suite-scan.js'

export interface PgSuiteOptions {
  readonly rows: number
  readonly runs: number
  readonly points: number
  /** Null: all. */
  readonly only: PgLoad['work'] | null
}

/** Those that are there for their commits. */
const writers: ReadonlySet<string> = new Set(['unsynced', 'synced questdb'])

interface Work {
  readonly work: PgLoad['work']
  /** The part of the rows that it is measured with: less for the slow ones. */
  readonly share: number
  readonly reads: boolean
  readonly connections: number
}

const works: readonly Work[] = [
  { work: 'batches', share: 0.3, reads: false, connections: 1 },
  // As the tasks of a sink do it: a group of commits goes to the disk as one.
  { work: 'batches', share: 0.3, reads: false, connections: 4 },
  { work: 'single', share: 0.3, reads: false, connections: 1 },
  { work: 'texts', share: 0.1, reads: false, connections: 1 },
  { work: 'transaction', share: 0.02, reads: false, connections: 1 },
  { work: 'transaction texts', share: 0.02, reads: false, connections: 1 },
  { work: 'copy', share: 1, reads: false, connections: 1 },
  { work: 'select text', share: 1, reads: true, connections: 1 },
  { work: 'select binary', share: 1, reads: true, connections: 1 },
  { work: 'points', share: 1, reads: true, connections: 1 },
]

/** What a line of figures is of. */
function labelOf({ work, connections }: Pick<PgLoad, 'work' | 'connections'>): string {
  return (connections === 1 ? work : `${work} x ${connections}`).padEnd(14)
}

export async function pgWire(
  peers: readonly Peer[],
  { rows, runs, points, only }: PgSuiteOptions,
  print: (line: string) => void,
): Promise<void> {
  const readable = peers.filter(({ server }) => !writers.has(server.name))
  if (works.some(({ work, reads }) => reads && (only === null || only === work))) {
    for (const peer of readable) await fill(peer, rows)
  }
  for (const { work, share, reads, connections } of works) {
    if (only !== null && only !== work) continue
    const count = work === 'points' ? points : Math.max(1000, Math.round(rows * share))
    const rates = new Map<string, number[]>()
    for (let run = 0; run < runs; run++) {
      for (const peer of reads ? readable : peers) {
        const { name, pgPort } = peer.server
        const table = reads ? 'filled' : `${work.replace(' ', '_')}_${connections}_${run}`
        if (!reads) await create(peer, table)
        const load: PgLoad = { port: pgPort, table, work, rows: count, connections }
        if (run === 0 && work === 'points') await runModule('./pg-load.js', load, () => {})
        if (run === 0 && !reads) await warm(peer, load)
        await untilQuiet(
          peers.map(({ server }) => server),
          print,
        )
        const { line, rate } = await measure(peer, load, reads)
        print(line)
        rates.set(name, [...(rates.get(name) ?? []), rate])
      }
    }
    for (const line of ratios(labelOf({ work, connections }), rates)) print(line)
  }
}

const warmRowsMax = 200_000

/** Rows of the same kind into a table of their own. */
async function warm(peer: Peer, load: PgLoad): Promise<void> {
  if (load.work === 'copy' && copies(peer) !== 'copy') return
  const table = `${load.table}_warm`
  await create(peer, table)
  const rows = Math.min(load.rows, warmRowsMax)
  await runModule('./pg-load.js', { ...load, table, rows }, () => {})
  await untilCounted(peer, table, rows)
}

/** Medians of ours beside those of the peers. */
function ratios(label: string, rates: ReadonlyMap<string, readonly number[]>): string[] {
  const names = [...rates.keys()].filter((name) => median(rates.get(name) ?? []) > 0)
  const ours: readonly string[] = names.filter((name) => name === 'penstock' || name === 'unsynced')
  return names
    .filter((name) => !ours.includes(name))
    .map((peer) => {
      const times = ours.map(
        (name) => `${name} ${(median(rates.get(name) ?? []) / median(rates.get(peer) ?? [])).toFixed(2)}x`,
      )
      return `${''.padEnd(14)} ${label} ${times.join(', ')} of ${peer}`
    })
}

async function fill(peer: Peer, rows: number): Promise<void> {
  await create(peer, 'filled')
  const load: PgLoad = { port: peer.server.pgPort, table: 'filled', work: copies(peer), rows, connections: 1 }
  await runModule('./pg-load.js', load, () => {})
  await untilCounted(peer, 'filled', rows)
}

function isQuestdb(name: string): boolean {
  return name.endsWith('questdb')
}

/** QuestDB has no COPY from its client. */
function copies({ server }: Peer): PgLoad['work'] {
  return isQuestdb(server.name) ? 'single' : 'copy'
}

async function create(peer: Peer, table: string): Promise<void> {
  const types =
    peer.server.name === 'postgresql'
      ? '(ts timestamp, sym text, price float8, qty int8, note text)'
      : '(ts timestamp, sym symbol, price double, qty long, note varchar) timestamp(ts) partition by day wal'
  await ask(peer, `create table ${table} ${types}`)
  if (peer.server.name === 'postgresql' && table === 'filled') await ask(peer, 'create index on filled (ts)')
}

interface Measurement {
  readonly seconds: number
  readonly cpuSeconds: number
}

async function measure(peer: Peer, load: PgLoad, reads: boolean): Promise<{ line: string; rate: number }> {
  const { server } = peer
  const head = `${server.name.padEnd(14)} ${labelOf(load)}`
  if (load.work === 'copy' && isQuestdb(server.name)) return { line: `${head} is not known to it`, rate: 0 }
  let begun = 0
  let cpu = 0
  const seen: Promise<number>[] = []
  const ready = (): void => {
    begun = performance.now()
    cpu = usageOf(server.pid, true).cpuSeconds
  }
  // The end of the client's process is not waited for: it takes as long as ten batches.
  const done = (): void => {
    if (!reads) seen.push(untilCounted(peer, load.table, load.rows).then(() => performance.now()))
  }
  const measurement = JSON.parse(await runModule('./pg-load.js', load, ready, done)) as Measurement
  const [end] = await Promise.all(seen)
  const seconds = end === undefined ? measurement.seconds : (end - begun) / 1000
  const serverCpu = usageOf(server.pid, true).cpuSeconds - cpu
  const rate = load.rows / seconds
  const each = (used: number): string => ((used / load.rows) * 1e6).toFixed(2).padStart(7)
  const usage = `server ${each(serverCpu)} CPU-us each, client ${each(measurement.cpuSeconds)}`
  return { line: `${head} ${rate.toFixed(0).padStart(9)} /s  ${usage}`, rate }
}

async function untilCounted(peer: Peer, table: string, rows: number): Promise<void> {
  for (let attempt = 0; attempt < 6000; attempt++) {
    const seen = Number(await ask(peer, `select count(*) from ${table}`))
    if (seen === rows) return
    if (seen > rows) throw new Error(`counted ${seen} of ${rows} rows`)
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
  throw new Error(`the rows do not appear [server=${peer.server.name}, table=${table}]`)
}

/** The last value of the answer to a simple query over a connection of its own; '' without rows. */
async function ask({ server }: Peer, sql: string): Promise<string> {
  const socket = connect({ port: server.pgPort, host: '127.0.0.1' })
  await once(socket, 'connect')
  const query = Buffer.from(`${sql}\0`)
  const head = Buffer.alloc(5, 'Q')
  head.writeInt32BE(query.length + 4, 1)
  const parameters = Buffer.from('\0\x03\0\0user\0admin\0database\0qdb\0\0', 'latin1')
  const start = Buffer.alloc(4)
  start.writeInt32BE(parameters.length + 4)
  socket.write(Buffer.concat([start, parameters]))
  let bytes: Buffer = Buffer.alloc(0)
  let readies = 0
  let value = ''
  for await (const chunk of socket) {
    bytes = Buffer.concat([bytes, chunk as Buffer])
    for (; bytes.length >= 5 && bytes.length > bytes.readInt32BE(1); bytes = bytes.subarray(1 + bytes.readInt32BE(1))) {
      const body = bytes.subarray(5, 1 + bytes.readInt32BE(1))
      const type = String.fromCharCode(bytes[0]!)
      if (type === 'E') throw new Error(`${server.name}: ${body.toString('latin1')} [sql=${sql}]`)
      if (type === 'R' && body.readInt32BE(0) === 3) socket.write('p\0\0\0\x0aquest\0')
      if (type === 'D') value = body.toString('latin1', 6)
      if (type === 'Z' && readies++ === 0) socket.write(Buffer.concat([head, query]))
    }
    if (readies === 2) break
  }
  socket.destroy()
  return value
}
