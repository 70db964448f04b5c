// `npm run bench -- [suite] [options]`: measures our server and other databases (peers) in the same run, taking turns,
// so that changes of the machine's speed affect all alike. Without a suite it runs `lines`.
//
//   lines      sustained line protocol      --shape cpu|tsbs|trades|market|orders|quotes --order sorted|late|shuffled
//                                           --protocol tcp|http --connections n --rows n --runs n
//              --shape random --seed n: as many random shapes as --runs says, and our rates divided by the first peer's
//   scan       scans and group-bys          --rows n --runs n --peer duckdb
//   sql        analytic queries             --rows n --tsbs n --runs n --rounds n --only pattern
//                                           --peer questdb --peer duckdb
//   http       exports, responses, imports  --rows n --runs n --only pattern --repeats n --peer questdb --peer duckdb
//   clients    small queries from many clients, a large one   --rows n --runs n --repeats n --only pattern
//              --peer questdb
//   views      costs and gains of materialized views   --rows n --runs n --peer questdb
//   upserts    ON CONFLICT from eight sessions, MERGE   --rows n --runs n --repeats n --set memory.bytes=2g
//   spill      states that outgrow the memory, with --set memory.bytes=512m    --rows n --runs n
//   series     many distinct symbols: load, restart, queries    --rows n --series n --runs n
//   latency    small queries, freshness, a dashboard beside lines   --runs n --repeats n --only pattern --peer questdb
//   start      time to the first response, idle memory   --repeats n
//   first      first request of each kind in fresh processes   --rows n --repeats n
//   disk       bytes per row                --rows n --peer questdb
//   pg         PostgreSQL wire protocol     --rows n --runs n --repeats n --work name --peer questdb --peer postgresql
//   qwp        rows in and out by QWP, beside lines, PG wire and Arrow   --rows n
//   parser     our SQL parser beside the package sqlite-parser
//   kafka      JSON records of a topic      --rows n --runs n --kafka version (needs Java and Maven)
//   lake       LAKE ON beside plain tables, rows in object storage    --rows n --runs n
//   --peer questdb                          runs a real QuestDB as well (needs Java and Maven)
//   --peer folder                           also runs the build of Penstock in that clone, to compare two versions
//   --keep folder                           keeps the servers' data there, so that it is not loaded again (scan, sql)
//   --repeats n                             upper limit of what a suite repeats: small queries, single lines, upserts,
//                                           starts, processes
//   --set key=value                         a setting of our server

import { readdirSync, statSync } from 'node:fs'
import { cpus, totalmem } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import type { RowOrder, Shape } from './line-template.js'
import {
  buildsOf,
  isBuild,
  type Peer,
  startOtherBuild,
  startPenstock,
  startPostgresql,
  startQuestdb,
  startSyncedQuestdb,
  startUnsynced,
} from './peers.js'
import type { PgLoad } from './pg-load.js'
import { clients } from './suite-clients.js'
import { firsts } from './suite-first.js'
import { httpFiles } from './suite-http.js'
import { kafka } from './suite-kafka.js'
import { lake } from './suite-lake.js'
import { dashboards, diskBytes, freshness, smallQueries, starts } from './suite-latency.js'
import { type LineLoad, lineReport, measureLines } from './suite-lines.js'
import { parserReport } from './suite-parser.js'
import { pgWire } from './suite-pg.js'
import { qwp } from './suite-qwp.js'
import { randomLoads } from './suite-random-lines.js'
import { median, scans } from './suite-scan.js'
import { manySeries } from './suite-series.js'
import { spills } from './suite-spill.js'
import { analytics } from './suite-sql.js'
import { upserts } from './suite-upserts.js'
import { viewCosts } from './suite-views.js'

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    peer: { type: 'string', multiple: true, default: [] },
    set: { type: 'string', multiple: true, default: [] },
    shape: { type: 'string', default: 'cpu' },
    order: { type: 'string', default: 'sorted' },
    protocol: { type: 'string', default: 'tcp' },
    connections: { type: 'string', default: '4' },
    rows: { type: 'string', default: '2000000' },
    runs: { type: 'string', default: '1' },
    seed: { type: 'string', default: '1' },
    rounds: { type: 'string', default: '1' },
    series: { type: 'string', default: '1000000' },
    kafka: { type: 'string', default: '4.3.1' },
    tsbs: { type: 'string', default: '1000000' },
    only: { type: 'string', default: '' },
    keep: { type: 'string' },
    repeats: { type: 'string', default: '10000' },
    work: { type: 'string' },
  },
})

const namedPeers: ReadonlySet<string> = new Set(['questdb', 'duckdb', 'postgresql'])

/** Clones of Penstock that run beside ours. */
function otherBuilds(): string[] {
  const folders = values.peer.filter((name) => !namedPeers.has(name))
  for (const folder of folders)
    if (!isBuild(folder)) throw new Error(`neither a known peer nor a built clone [peer=${folder}]`)
  return folders
}

async function startPeers(): Promise<Peer[]> {
  const isLong = positionals[0] === 'http' || positionals[0] === 'clients'
  const sets = isLong ? ['http.json.query.max.response.rows=1000000', ...values.set] : values.set
  const peers = [await startPenstock(sets, values.keep)]
  for (const folder of otherBuilds()) peers.push(await startOtherBuild(folder, sets, values.keep))
  if (values.peer.includes('questdb')) peers.push(await startQuestdb(values.keep))
  const postgresql = values.peer.includes('postgresql') ? await startPostgresql() : null
  if (postgresql !== null) peers.push(postgresql)
  return peers
}

async function lines(peers: readonly Peer[]): Promise<void> {
  if (values.shape === 'random') return randomShapes(peers)
  const load: LineLoad = {
    shape: values.shape as Shape,
    order: values.order as RowOrder,
    protocol: values.protocol as 'tcp' | 'http',
    connections: Number(values.connections),
    rows: Number(values.rows),
  }
  const rates = new Map<string, number[]>()
  for (let run = 0; run < Number(values.runs); run++) {
    for (const peer of peers) {
      const measured = await measureLines(peer, { ...load, templateRows: templateRowsOf(load) })
      process.stdout.write(`${lineReport(peer.server.name, load, measured)}\n`)
      rates.set(peer.server.name, [...(rates.get(peer.server.name) ?? []), measured.rowsPerSecond])
    }
  }
  const [ours, ...others] = [...rates].map(([name, all]) => ({ name, rate: median(all) }))
  for (const { name, rate } of others)
    process.stdout.write(`medians: ${((ours?.rate ?? 0) / rate).toFixed(2)} times the rate of ${name}\n`)
}

/** Texts that never come again are in as many lines as there are rows. */
function templateRowsOf({ shape, rows }: LineLoad): number {
  return shape === 'orders' ? rows : Math.min(rows, 400_000)
}

async function randomShapes(peers: readonly Peer[]): Promise<void> {
  const options = {
    seed: Number(values.seed),
    seeds: Number(values.runs),
    rows: Number(values.rows),
    protocol: values.protocol as 'tcp' | 'http',
    connections: Number(values.connections),
  }
  await randomLoads(peers, options, (line) => process.stdout.write(`${line}\n`))
}

function repeats(usual: number): number {
  return Math.min(usual, Number(values.repeats))
}

function print(peer: Peer, line: string): void {
  process.stdout.write(`${peer.server.name.padEnd(9)} ${line}\n`)
}

async function scan(peers: readonly Peer[]): Promise<void> {
  const options = { rows: Number(values.rows), runs: Number(values.runs), duckdb: values.peer.includes('duckdb') }
  const builds = peers.filter(({ server }) => server.name !== 'questdb' && server.name !== 'postgresql')
  await scans(builds, options, (line) => process.stdout.write(`${line}\n`))
}

async function sql(peers: readonly Peer[]): Promise<void> {
  const options = {
    rows: Number(values.rows),
    tsbsRows: Number(values.tsbs),
    runs: Number(values.runs),
    duckdb: values.peer.includes('duckdb'),
    rounds: Number(values.rounds),
    only: new RegExp(values.only),
  }
  await analytics(peers, options, (line) => process.stdout.write(`${line}\n`))
}

async function http(peers: readonly Peer[]): Promise<void> {
  const options = {
    rows: Number(values.rows),
    runs: Number(values.runs),
    duckdb: values.peer.includes('duckdb'),
    only: new RegExp(values.only),
  }
  await httpFiles(peers, options, (line) => process.stdout.write(`${line}\n`))
  for (const peer of peers) print(peer, await smallQueries(peer, repeats(5000)))
}

async function pg(peers: readonly Peer[]): Promise<void> {
  const only = (values.work ?? null) as PgLoad['work'] | null
  const options = { rows: Number(values.rows), runs: Number(values.runs), points: repeats(20_000), only }
  const others = [await startUnsynced(values.set)]
  try {
    if (values.peer.includes('questdb')) others.push(await startSyncedQuestdb())
    await pgWire([...peers, ...others], options, (line) => process.stdout.write(`${line}\n`))
  } finally {
    for (const other of others) await other.end()
  }
}

async function clientLoads(peers: readonly Peer[]): Promise<void> {
  const options = {
    rows: Math.min(100_000, Number(values.rows)),
    requests: repeats(20_000),
    runs: Number(values.runs),
    only: new RegExp(values.only),
  }
  await clients(peers, options, (line) => process.stdout.write(`${line}\n`))
}

async function latency(peers: readonly Peer[]): Promise<void> {
  const only = new RegExp(values.only)
  for (const peer of peers) {
    if (only.test('small')) print(peer, await smallQueries(peer, repeats(5000)))
    if (only.test('freshness')) print(peer, await freshness(peer, repeats(200), 100_000))
  }
  if (!only.test('dashboard')) return
  const options = { runs: Number(values.runs), rounds: repeats(100), rowsPerSecond: 100_000 }
  await dashboards(peers, options, (line) => process.stdout.write(`${line}\n`))
}

async function columns(peers: readonly Peer[]): Promise<void> {
  for (const peer of peers) await qwp(peer, Number(values.rows), (line) => print(peer, line))
}

async function spill(peers: readonly Peer[]): Promise<void> {
  const options = { rows: Number(values.rows), runs: Number(values.runs) }
  await spills(peers, options, (line) => process.stdout.write(`${line}\n`))
}

async function views(peers: readonly Peer[]): Promise<void> {
  const options = { rows: Number(values.rows), runs: Number(values.runs) }
  for (const peer of peers) for (const line of await viewCosts(peer, options)) print(peer, line)
}

async function upserted(peers: readonly Peer[]): Promise<void> {
  const options = { rows: Number(values.rows), requests: repeats(10_000), runs: Number(values.runs) }
  for (const peer of peers) await upserts(peer, options, (line) => print(peer, line))
}

async function start(): Promise<void> {
  process.stdout.write(`${await starts(repeats(10))}\n`)
}

async function first(): Promise<void> {
  const options = { processes: repeats(20), rows: Math.min(100_000, Number(values.rows)) }
  await firsts(buildsOf(otherBuilds()), options, (line) => process.stdout.write(`${line}\n`))
}

async function series(): Promise<void> {
  const rows = Number(values.rows)
  const options = {
    rows,
    series: Math.min(rows, Number(values.series)),
    runs: Number(values.runs),
    settings: values.set,
  }
  await manySeries(buildsOf(otherBuilds()), options, (line) => process.stdout.write(`${line}\n`))
}

async function disk(peers: readonly Peer[]): Promise<void> {
  for (const peer of peers) print(peer, await diskBytes(peer, Number(values.rows), bytesOfTables))
}

/** Size of the largest folder of the data directory: the table's, without logs of any kind. */
function bytesOfTables(root: string): number {
  const folder = join(root, 'db')
  const sizes = new Map<string, number>()
  for (const file of readdirSync(folder, { recursive: true, withFileTypes: true })) {
    if (!file.isFile()) continue
    const path = join(file.parentPath, file.name)
    if (/[/](wal|txn_seq)/.test(path)) continue
    const table = path.slice(folder.length + 1).split('/')[0] as string
    sizes.set(table, (sizes.get(table) ?? 0) + statSync(path).blocks * 512)
  }
  return Math.max(...sizes.values())
}

async function records(): Promise<void> {
  const options = {
    version: values.kafka,
    records: Number(values.rows),
    runs: Number(values.runs),
    settings: values.set,
  }
  await kafka(options, (line) => process.stdout.write(`${line}\n`))
}

async function lakes(): Promise<void> {
  const options = { rows: Number(values.rows), runs: Number(values.runs), settings: values.set }
  await lake(options, (line) => process.stdout.write(`${line}\n`))
}

/** Suites that start their servers themselves. */
const alone: ReadonlySet<string> = new Set(['start', 'first', 'series', 'kafka', 'parser', 'lake'])

const suites: Record<string, (peers: readonly Peer[]) => Promise<void>> = {
  lines,
  scan,
  sql,
  http,
  spill,
  latency,
  clients: clientLoads,
  views,
  upserts: upserted,
  start,
  first,
  series,
  disk,
  pg,
  qwp: columns,
  kafka: records,
  lake: lakes,
  parser: async () => parserReport((line) => process.stdout.write(`${line}\n`)),
}

async function main(): Promise<void> {
  const name = positionals[0] ?? 'lines'
  const suite = suites[name]
  if (suite === undefined) throw new Error(`unknown suite [suite=${name}, known=${Object.keys(suites).join(', ')}]`)
  process.stdout.write(
    `${cpus().length} x ${cpus()[0]?.model}, ${(totalmem() / 2 ** 30).toFixed(0)} GiB, Node ${process.version}\n`,
  )
  const peers = alone.has(name) ? [] : await startPeers()
  try {
    await suite(peers)
  } finally {
    for (const peer of peers) await peer.end()
  }
}

await main()
