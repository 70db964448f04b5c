// Benchmark of upserts: INSERT .. ON CONFLICT of single rows from eight sessions of the PostgreSQL protocol, with
// random keys of which about half are stored at first; and a MERGE of a tenth as many rows as the table has, half of
// them with stored keys, compared with INSERT .. SELECT of the same rows into a new table. There are two tables with
// the same rows. In one the keys ascend with time. In the other they are random, so that the minimum and maximum of a
// Parquet page exclude no key.

import type { ClientLoad, ClientMeasurement } from './client-load.js'
import type { Peer } from './peers.js'
import { queryRows, runModule, usageOf } from './processes.js'
import { median } from './suite-scan.js'

export interface UpsertOptions {
  readonly rows: number
  /** Statements of a run. */
  readonly requests: number
  readonly runs: number
}

const sessions = 8
const valuesMax = 10_000
const first = 1_704_067_200_000_000
/** Makes keys from row numbers, one to one: a product with an odd number modulo a power of two. */
const kinds = [
  { name: 'ascending', keyOf: (row: string) => row },
  { name: 'random', keyOf: (row: string) => `((${row}) * 2654435761) & 1099511627775` },
]

export async function upserts(
  peer: Peer,
  { rows, requests, runs }: UpsertOptions,
  print: (line: string) => void,
): Promise<void> {
  const { server } = peer
  const exec = (sql: string): Promise<unknown[][]> => queryRows(server.httpPort, sql)
  for (const kind of kinds) {
    const table = `upserts_${kind.name}`
    await fill(exec, table, kind.keyOf('x'), rows)
    const figures: Figures[] = []
    for (let run = 0; run < runs; run++) figures.push(await single(peer, table, kind.keyOf, rows, requests))
    print(`${kind.name.padEnd(9)} ON CONFLICT of single rows x ${sessions}  ${lineOf(figures)}`)
    print(`${kind.name.padEnd(9)} MERGE  ${await merges(exec, table, kind.keyOf, rows, runs)}`)
  }
}

type Exec = (sql: string) => Promise<unknown[][]>

async function fill(exec: Exec, table: string, key: string, rows: number): Promise<void> {
  await exec(
    `create table ${table} (k long primary key, v long, name varchar, ts timestamp) timestamp(ts) partition by day`,
  )
  await exec(
    `insert into ${table} select ${key}, x, concat('n', x % 1000), cast(${first} + x * 100000 as timestamp) from long_sequence(${rows})`,
  )
  await exec('checkpoint')
}

interface Figures {
  readonly rate: number
  readonly serverMicros: number
  readonly p50: number
  readonly p99: number
}

async function single(
  { server }: Peer,
  table: string,
  keyOf: (row: string) => string,
  rows: number,
  requests: number,
): Promise<Figures> {
  const sql = `insert into ${table} (k, v, ts) values (${keyOf('$1::long')}, 1, '2024-01-02')
    on conflict (k) do update set v = ${table}.v + excluded.v`
  const values = Array.from(
    { length: Math.min(valuesMax, requests) },
    () => `${1 + Math.floor(Math.random() * rows * 2)}`,
  )
  const load: ClientLoad = { port: server.pgPort, protocol: 'prepared', sql, values, requests, connections: sessions }
  let cpu = 0
  let used = 0
  const output = await runModule(
    './client-load.js',
    load,
    () => {
      cpu = usageOf(server.pid).cpuSeconds
    },
    () => {
      used = usageOf(server.pid).cpuSeconds - cpu
    },
  )
  const { seconds, p50, p99 } = JSON.parse(output) as ClientMeasurement
  return { rate: requests / seconds, serverMicros: (used / requests) * 1e6, p50, p99 }
}

function lineOf(figures: readonly Figures[]): string {
  const of = (key: keyof Figures): number => median(figures.map((each) => each[key]))
  const times = `p50 ${of('p50').toFixed(2)} ms, p99 ${of('p99').toFixed(2)} ms`
  return `${of('rate').toFixed(0).padStart(6)} /s  server ${of('serverMicros').toFixed(0)} CPU-us each, ${times}`
}

/** A tenth of the rows: half of them have stored keys. */
async function merges(
  exec: Exec,
  table: string,
  keyOf: (row: string) => string,
  rows: number,
  runs: number,
): Promise<string> {
  const changed = Math.ceil(rows / 10)
  const [insertMs, mergeMs]: number[][] = [[], []]
  for (let run = 0; run < runs; run++) {
    const key = keyOf(`${rows} - ${Math.floor(changed / 2)} + x + ${run * changed}`)
    await exec(
      `create table source_${run} as (select ${key} k, x v, concat('n', x % 1000) name, cast(${first} + x * 100000 as timestamp) ts from long_sequence(${changed})) timestamp(ts) partition by day`,
    )
    await exec(
      `create table inserted_${run} (k long, v long, name varchar, ts timestamp) timestamp(ts) partition by day`,
    )
    insertMs?.push(await time(exec, `insert into inserted_${run} select * from source_${run}`))
    mergeMs?.push(
      await time(
        exec,
        `merge into ${table} t using source_${run} s on t.k = s.k
        when matched then update set v = t.v + s.v
        when not matched then insert (k, v, name, ts) values (s.k, s.v, s.name, s.ts)`,
      ),
    )
    await exec(`drop table source_${run}`)
    await exec(`drop table inserted_${run}`)
  }
  const [insert, merge] = [median(insertMs ?? []), median(mergeMs ?? [])]
  const ratio = `${(merge / insert).toFixed(1)}x`
  return `${changed} rows in ${merge.toFixed(0)} ms, INSERT .. SELECT of them in ${insert.toFixed(0)} ms: ${ratio}`
}

async function time(exec: Exec, sql: string): Promise<number> {
  const begun = performance.now()
  await exec(sql)
  return performance.now() - begun
}
