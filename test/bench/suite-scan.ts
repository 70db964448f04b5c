// Benchmark of scans and GROUP BY over Parquet files, compared with other builds of Penstock, with DuckDB on the same
// rows (copied from our files to a native table), and with the same WebAssembly kernels over arrays in memory
// (resident.ts). Constants vary from run to run, except in count(), so that no result cache can help. Reports the
// median milliseconds of the runs, for the arrays the best run.

import { join } from 'node:path'
import { DuckDBInstance } from '@duckdb/node-api'
import { Client } from 'undici'
import type { Peer } from './peers.js'
import { untilQuiet } from './processes.js'
import { residentArrays } from './resident.js'
import { loadOnce } from './suite-lines.js'

interface ScanQuery {
  readonly name: string
  readonly ours: (n: number) => string
  readonly duckdb: (n: number) => string
}

const both = (name: string, sql: (n: number) => string): ScanQuery => ({ name, ours: sql, duckdb: sql })

/** Over the trades load: symbol, side, price, amount, timestamp. */
const queries: readonly ScanQuery[] = [
  both('count()', () => 'select count(*) from t'),
  both('sum of doubles', (n) => `select sum(price) + ${n} from t`),
  both('min, max', (n) => `select min(price) + ${n}, max(price) from t`),
  both('count where', (n) => `select count(*) from t where price > ${30_000 + n}`),
  {
    name: 'filtered sum (time and price)',
    ours: (n) =>
      `select sum(amount) from t where timestamp >= '2024-01-01T02:00:00' and timestamp < '2024-01-05' and price > ${30_000 + n}`,
    duckdb: (n) =>
      `select sum(amount) from t where timestamp >= '2024-01-01T02:00:00' and timestamp < '2024-01-05' and price > ${30_000 + n}`,
  },
  both('five aggregates', (n) => `select count(*), sum(price), avg(amount), min(price), max(amount) + ${n} from t`),
  both('group by symbol', (n) => `select symbol, sum(price) + ${n}, count(*) from t group by symbol`),
  both('group by symbol, side', (n) => `select symbol, side, avg(price) + ${n} from t group by symbol, side`),
  {
    name: 'SAMPLE BY 1h',
    ours: (n) => `select timestamp, sum(price) + ${n} from t sample by 1h`,
    duckdb: (n) => `select time_bucket(interval '1 hour', timestamp) b, sum(price) + ${n} from t group by b order by b`,
  },
  both('where symbol', (n) => `select sum(price) + ${n} from t where symbol = 'ETH-USD'`),
  both('top 10 by price', (n) => `select price + ${n} p, amount from t order by p desc limit 10`),
]

export interface ScanOptions {
  readonly rows: number
  readonly runs: number
  readonly duckdb: boolean
}

/** `peers`: ours first, then other builds of it; the ratios are of the first. */
export async function scans(
  peers: readonly Peer[],
  options: ScanOptions,
  print: (line: string) => void,
): Promise<void> {
  const clients = peers.map(({ server }) => queryClient(server.httpPort))
  const [client] = clients
  const [own] = peers
  if (client === undefined || own === undefined) throw new Error('our server runs first')
  for (const [index, peer] of peers.entries()) {
    await loadOnce(peer, 'trades', 't', options.rows, 400_000)
    await exec(clients[index] as Client, 'checkpoint')
  }
  const reference = options.duckdb ? await loadDuckdb(client, own.root, [{ name: 't', rows: options.rows }]) : null
  await untilQuiet(
    peers.map(({ server }) => server),
    print,
  )
  const resident = await residentArrays()
  for (const query of queries) {
    const times: number[] = []
    for (const each of clients) times.push(await medianTime(options.runs, (n) => exec(each, query.ours(n))))
    if (reference !== null) times.push(await medianTime(options.runs, (n) => reference(query.duckdb(n))))
    times.push((await resident.measure(query.name, options.rows, options.runs)) ?? Number.NaN)
    const names = [...peers.map(({ server }) => server.name), ...(reference === null ? [] : ['duckdb']), 'arrays']
    const columns = names.map((name, side) => `${name} ${milliseconds(times[side] as number)}`)
    const ratios = names.slice(1).map((name, side) => {
      return `${name} ${measured((times[0] as number) / (times[side + 1] as number), 2)}`
    })
    print(`${query.name.padEnd(32)} ${columns.join('   ')}   ratio to ${ratios.join(', ')}`)
  }
  await resident.close()
  for (const each of clients) await each.close()
}

function milliseconds(value: number): string {
  return `${measured(value, 1).padStart(8)} ms`
}

/** NaN: nothing to compare with. */
function measured(value: number, digits: number): string {
  return Number.isNaN(value) ? '-' : value.toFixed(digits)
}

export async function exec(client: Client, sql: string): Promise<string> {
  const { statusCode, body } = await client.request({ path: `/exec?query=${encodeURIComponent(sql)}`, method: 'GET' })
  const text = await body.text()
  if (statusCode !== 200) throw new Error(`${sql}: ${text}`)
  return text
}

/**
 * Compilers of all sides need more than one run, and of what is short some dozen: so many at least, and for so long.
 */
const warmUpRuns = 3
const warmUpMs = 300

/**
 * Milliseconds: some runs to warm up, then the median of the others. `run`: of constants that n tells; of the runs to
 * warm up, which have the same constants, also with a number of its own.
 */
export async function medianTime(runs: number, run: (n: number, warmUp: number) => Promise<unknown>): Promise<number> {
  const begun = performance.now()
  for (let warm = 0; warm < warmUpRuns || performance.now() - begun < warmUpMs; warm++) await run(0, warm)
  const times: number[] = []
  for (let n = 1; n <= runs; n++) {
    const start = performance.now()
    await run(n, 0)
    times.push(performance.now() - start)
  }
  return median(times)
}

/** Of an even number the larger one in the middle; 0 of none. */
export function median(all: readonly number[]): number {
  return all.toSorted((x, y) => x - y)[all.length >> 1] ?? 0
}

export type RunSql = (sql: string) => Promise<unknown>

export function queryClient(httpPort: number): Client {
  return new Client(`http://127.0.0.1:${httpPort}`, { headersTimeout: 900_000, bodyTimeout: 900_000 })
}

/** A native DuckDB database with a table made of the parts of each of ours, unless it is there from an earlier run. */
export async function loadDuckdb(
  client: Client,
  root: string,
  tables: readonly { readonly name: string; readonly rows: number }[],
): Promise<RunSql> {
  const instance = await DuckDBInstance.create(join(root, 'reference.duckdb'), { threads: '2' })
  const connection = await instance.connect()
  await connection.run("set timezone = 'UTC'")
  for (const { name, rows } of tables) {
    const known = await connection.runAndReadAll(`select count(*) from ${name}`).catch(() => null)
    if (Number(known?.getRows()[0]?.[0]) === rows) continue
    const copy = (files: string): Promise<unknown> =>
      connection.run(`create or replace table ${name} as select * from read_parquet([${files}]) order by timestamp`)
    await copy(await partFiles(client, root, name)).catch(() => partFiles(client, root, name).then(copy))
    await connection.run('checkpoint')
  }
  // Fetched whole, without making JavaScript's values of it.
  return (sql) => connection.runAndReadAll(sql)
}

/** The parts of a table once no merge replaces them any more. */
async function partFiles(client: Client, root: string, table: string): Promise<string> {
  for (let known = ''; ; ) {
    const { dataset } = JSON.parse(await exec(client, `select file from table_parts('${table}')`)) as {
      dataset: [string][]
    }
    const files = dataset.map(([file]) => `'${join(root, 'db', file)}'`).join(', ')
    if (files === known) return files
    known = files
    await new Promise((resolve) => setTimeout(resolve, 2000))
  }
}
