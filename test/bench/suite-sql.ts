// Benchmark of analytic queries over market data, and of the query types of TSBS cpu-only, ours compared with QuestDB
// and DuckDB on the same rows. The complete result is fetched; some runs warm up, and the median of the others counts.
// Prints the geometric mean over all queries of our time divided by that of the fastest peer, after each round and for
// the medians of all rounds, since a single round of millisecond queries is noisy. At the end it measures how the time
// of a query of ours grows with its time range.

import { setTimeout as pause } from 'node:timers/promises'
import type { Client } from 'undici'
import type { Shape } from './line-template.js'
import type { Peer } from './peers.js'
import { untilQuiet, usageOf } from './processes.js'
import { marketQueries } from './sql-market.js'
import { tsbsQueries } from './sql-tsbs.js'
import { loadOnce } from './suite-lines.js'
import { exec, loadDuckdb, median, medianTime, queryClient } from './suite-scan.js'

export interface SqlQuery {
  readonly name: string
  readonly sql: (n: number) => string
  /** Where DuckDB says it otherwise. */
  readonly duckdb?: (n: number) => string
}

export interface SqlOptions {
  /** Of market data; none: those queries are left out. */
  readonly rows: number
  /** Of TSBS cpu-only. */
  readonly tsbsRows: number
  readonly runs: number
  /** All queries are asked so often. */
  readonly rounds: number
  readonly duckdb: boolean
  /** Names of the queries to run. */
  readonly only: RegExp
}

interface Table {
  readonly shape: Shape
  readonly name: string
  readonly rows: number
  readonly templateRows: number
}

function tablesOf({ rows, tsbsRows }: SqlOptions): Table[] {
  const tables: Table[] = [
    { shape: 'market', name: 'market', rows, templateRows: 1_500_000 },
    { shape: 'quotes', name: 'quotes', rows: Math.ceil(rows / 4), templateRows: 500_000 },
    { shape: 'tsbs', name: 'cpu', rows: tsbsRows, templateRows: 400_000 },
  ]
  return tables.filter((table) => table.rows > 0)
}

interface Runner {
  readonly name: string
  readonly textOf: (query: SqlQuery, n: number) => string
  readonly run: (sql: string) => Promise<unknown>
  /** Processor seconds so far. */
  readonly cpu: () => number
}

/** Answered at once by any server: what they take is the client's. */
const clientRuns = 2000
/** A server that has just answered looks for more for a while: QuestDB's workers spin for 100 ms. */
const pauseMs = 300

/** What a query may take, in times of the better peer. */
const ratioMost = 1.2

export async function analytics(
  peers: readonly Peer[],
  options: SqlOptions,
  print: (line: string) => void,
): Promise<void> {
  const tables = tablesOf(options)
  for (const peer of peers) {
    for (const { shape, name, rows, templateRows } of tables) await loadOnce(peer, shape, name, rows, templateRows)
  }
  const clients = peers.map(({ server }) => queryClient(server.httpPort))
  const [ours] = clients
  const [our] = peers
  if (ours === undefined || our === undefined) throw new Error('our server runs first')
  await exec(ours, 'checkpoint')
  for (const client of clients) for (let n = 0; n < clientRuns; n++) await exec(client, `select ${n}`)
  const runners: Runner[] = peers.map(({ server }, index) => ({
    name: server.name,
    textOf: (query, n) => query.sql(n),
    run: (sql) => exec(clients[index] as Client, sql),
    cpu: () => usageOf(server.pid).cpuSeconds,
  }))
  if (options.duckdb) {
    const run = await loadDuckdb(ours, our.root, tables)
    const textOf: Runner['textOf'] = (query, n) => (query.duckdb ?? query.sql)(n)
    const cpu = (): number => process.cpuUsage().user / 1e6 + process.cpuUsage().system / 1e6
    runners.push({ name: 'duckdb', textOf, run, cpu })
  }
  await untilQuiet(
    peers.map(({ server }) => server),
    print,
  )
  const queries = [...(options.rows > 0 ? marketQueries : []), ...(options.tsbsRows > 0 ? tsbsQueries : [])]
  const requested = queries.filter(({ name }) => options.only.test(name))
  const rounds: SidesOfQuery[][] = []
  for (let round = 0; round < options.rounds; round++) {
    const sides: SidesOfQuery[] = []
    for (const query of requested) sides.push(await sideBySide(runners, query, options.runs, print))
    summarise(sides, print)
    rounds.push(sides)
  }
  if (rounds.length > 1) {
    print(`medians of ${rounds.length} rounds:`)
    const medians = requested.map((_, index): SidesOfQuery => {
      const of = (key: keyof SidesOfQuery): number[] =>
        runners.map((_, side) => median(rounds.map((sides) => sides[index]?.[key][side] as number)))
      return { times: of('times'), cpus: of('cpus') }
    })
    for (const [index, { name }] of requested.entries())
      printTimes(name, runners, medians[index] as SidesOfQuery, print)
    summarise(medians, print)
  }
  if (options.rows > 0 && options.only.test('growth')) await growth(ours, options, print)
  for (const client of clients) await client.close()
}

/** Rows of market data are 43.2 ms apart. */
const marketStart = Date.UTC(2024, 0, 1)
const marketStepMs = 43.2

/** Cost by the rows of the time range, and by the rows that it leaves out. */
async function growth(client: Client, { rows, runs }: SqlOptions, print: (line: string) => void): Promise<void> {
  const at = (row: number): string => new Date(marketStart + row * marketStepMs).toISOString().slice(0, 23)
  const timeOf = (from: number, to: number): Promise<number> => {
    const range = `timestamp >= '${at(from)}' and timestamp < '${at(to)}'`
    const sql = (n: number): string => `select symbol, sum(price) + ${n}, max(amount) from market where ${range}`
    return medianTime(runs, (n) => exec(client, sql(n)))
  }
  for (const parts of [8, 4, 2, 1]) {
    const taken = rows / parts
    const time = await timeOf(0, taken)
    print(`growth: ${taken / 1e6} M rows ${time.toFixed(1)} ms, ${((time / taken) * 1e6).toFixed(2)} ms a million`)
  }
  const few = Math.min(rows, 1_000_000)
  for (const place of [0, 0.5, 1]) {
    const from = Math.floor((rows - few) * place)
    const time = await timeOf(from, from + few)
    print(`growth: ${few / 1e6} M rows from row ${from} of ${rows} on ${time.toFixed(1)} ms`)
  }
}

/** Milliseconds of each side, ours first. */
interface SidesOfQuery {
  readonly times: readonly number[]
  /** Of the processor, for each request. */
  readonly cpus: readonly number[]
}

async function sideBySide(
  runners: readonly Runner[],
  query: SqlQuery,
  runs: number,
  print: (line: string) => void,
): Promise<SidesOfQuery> {
  const times: number[] = []
  const cpus: number[] = []
  for (const { textOf, run, cpu } of runners) {
    if (runners.length > 1) await pause(pauseMs)
    const before = cpu()
    let requested = 0
    const milliseconds = await medianTime(runs, (n, warmUp) => {
      requested++
      // No text comes twice: all of a statement gets warm, not only what is behind a cache of known texts.
      return run(warmUp === 0 ? textOf(query, n) : `${textOf(query, n)} -- ${warmUp}`)
    })
    times.push(milliseconds)
    cpus.push(((cpu() - before) * 1000) / requested)
  }
  printTimes(query.name, runners, { times, cpus }, print)
  return { times, cpus }
}

/** Milliseconds, with those of the processor in brackets; the ratio is to the quickest of the others. */
function printTimes(
  name: string,
  runners: readonly Runner[],
  { times, cpus }: SidesOfQuery,
  print: (line: string) => void,
): void {
  const columns = runners.map(({ name }, side) => {
    const used = (cpus[side] as number).toFixed(1).padStart(6)
    return `${name} ${(times[side] as number).toFixed(1).padStart(7)} (${used})`
  })
  print(`${name.padEnd(28)} ${columns.join('  ')}  ratio to the better ${ratioOf(times).toFixed(2)}`)
}

function ratioOf([own, ...others]: readonly number[]): number {
  return others.length === 0 ? 1 : (own as number) / Math.min(...others)
}

function summarise(sides: readonly SidesOfQuery[], print: (line: string) => void): void {
  const ratios = sides.map(({ times }) => ratioOf(times))
  const mean = Math.exp(ratios.reduce((sum, ratio) => sum + Math.log(ratio), 0) / ratios.length)
  const above = ratios.filter((ratio) => ratio > ratioMost).length
  print(
    `geometric mean ${mean.toFixed(2)}, worst ${Math.max(...ratios).toFixed(2)}, above ${ratioMost}: ${above} of ${ratios.length}`,
  )
}
