// Benchmark of small queries from many clients at once: over HTTP, and over the PostgreSQL protocol as simple queries
// and as prepared statements, with 1, 8, 16 and 64 connections; one query with a large result is among them. Load
// generator and servers share the machine, so each rate is printed with the server's processor time per request.
// Servers take turns, and each line is the median of the runs.

import type { ClientLoad, ClientMeasurement } from './client-load.js'
import type { Peer } from './peers.js'
import { queryRows, runModule, usageOf } from './processes.js'
import { median } from './suite-scan.js'

export interface ClientsOptions {
  /** Of the table. */
  readonly rows: number
  readonly requests: number
  readonly runs: number
  /** Of names such as `limit http x 16`. */
  readonly only: RegExp
}

interface Work {
  readonly name: string
  readonly sql: string
  readonly values: readonly string[]
  /** One in so many of the requests is sent: those of small queries take less. */
  readonly share?: number
}

/** As many as double-groupby-1 of TSBS returns of 4,000 hosts in three hours, with as many columns. */
const largeRows = 12_000
const symbols = 100
const firstMillis = Date.UTC(2024, 0, 1)
const valuesMax = 1000

/** A row each 100 ms, symbols in turn. */
function worksOf(rows: number): Work[] {
  const timeAt = (index: number): string => new Date(firstMillis + index * 100).toISOString().replace('Z', '000Z')
  const times = Array.from({ length: Math.min(rows, valuesMax) }, (_, index) => timeAt((index * 7919) % rows))
  const names = Array.from({ length: symbols }, (_, index) => `s${index}`)
  const hour = `ts >= '${timeAt(0)}' and ts < '${timeAt(36_000)}'`
  return [
    { name: 'limit', sql: 'select a, b from clients limit 5', values: [] },
    { name: 'latest', sql: 'select * from clients where sym = $1 latest on ts partition by sym', values: names },
    { name: 'point', sql: 'select * from clients where ts = $1', values: times },
    {
      name: 'groupby',
      sql: `select ts, max(a) from clients where sym = $1 and ${hour} sample by 1m`,
      values: names,
    },
    { name: 'rows', sql: `select ts, sym, a from clients limit ${largeRows}`, values: [], share: 50 },
  ]
}

const protocols: readonly ClientLoad['protocol'][] = ['http', 'simple', 'prepared']
const connectionCounts = [1, 8, 16, 64]

interface Figures {
  readonly rate: number
  readonly serverMicros: number
  readonly clientMicros: number
  readonly p50: number
  readonly p99: number
}

export async function clients(
  peers: readonly Peer[],
  { rows, requests, runs, only }: ClientsOptions,
  print: (line: string) => void,
): Promise<void> {
  for (const peer of peers) await fill(peer, rows)
  for (const work of worksOf(rows)) {
    for (const protocol of protocols) {
      for (const connections of connectionCounts) {
        const name = `${work.name} ${protocol} x ${connections}`
        if (!only.test(name)) continue
        const all = new Map<string, Figures[]>()
        for (let run = 0; run < runs; run++) {
          for (const peer of peers) {
            const count = Math.ceil(requests / (work.share ?? 1))
            const figures = await measure(peer, { ...work, protocol, connections, requests: count })
            all.set(peer.server.name, [...(all.get(peer.server.name) ?? []), figures])
          }
        }
        for (const [server, figures] of all) print(lineOf(server, name, figures))
      }
    }
  }
}

async function measure({ server }: Peer, load: Omit<ClientLoad, 'port'>): Promise<Figures> {
  const port = load.protocol === 'http' ? server.httpPort : server.pgPort
  const argument: ClientLoad = { ...load, port }
  let cpu = 0
  let used = 0
  const ready = (): void => {
    cpu = usageOf(server.pid).cpuSeconds
  }
  const done = (): void => {
    used = usageOf(server.pid).cpuSeconds - cpu
  }
  const { seconds, cpuSeconds, p50, p99 } = JSON.parse(
    await runModule('./client-load.js', argument, ready, done),
  ) as ClientMeasurement
  const micros = (spent: number): number => (spent / load.requests) * 1e6
  return { rate: load.requests / seconds, serverMicros: micros(used), clientMicros: micros(cpuSeconds), p50, p99 }
}

function lineOf(server: string, name: string, figures: readonly Figures[]): string {
  const of = (key: keyof Figures): number => median(figures.map((each) => each[key]))
  const rate = `${of('rate').toFixed(0).padStart(7)} /s`
  const cpu = `server ${of('serverMicros').toFixed(1)} CPU-us a request, client ${of('clientMicros').toFixed(1)}`
  const times = `p50 ${of('p50').toFixed(3)} ms, p99 ${of('p99').toFixed(3)} ms`
  return `${server.padEnd(9)} ${name.padEnd(22)} ${rate}  ${cpu}, ${times}`
}

async function fill({ server }: Peer, rows: number): Promise<void> {
  const { httpPort } = server
  await queryRows(
    httpPort,
    'create table clients (ts timestamp, sym symbol, a double, b long) timestamp(ts) partition by day wal',
  )
  const select = `select cast(1704067200000000 + (x - 1) * 100000 as timestamp),
    concat('s', (x - 1) % ${symbols}), x * 0.5, x from long_sequence(${rows})`
  await queryRows(httpPort, `insert into clients ${select}`)
  for (let attempt = 0; attempt < 6000; attempt++) {
    const [[count] = []] = await queryRows(httpPort, 'select count(*) from clients')
    if (count === rows) return
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
  throw new Error(`the rows do not appear [server=${server.name}]`)
}
