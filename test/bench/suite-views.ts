// Benchmark of materialized views: what five views cost ingestion, what a refresh after late rows costs compared with a
// full refresh, and what the queries of a dashboard gain. Reports rates, milliseconds, and CPU seconds of the server.

import type { Peer } from './peers.js'
import { queryRows, usageOf } from './processes.js'
import { measureLines } from './suite-lines.js'
import { medianTime } from './suite-scan.js'

export interface ViewOptions {
  readonly rows: number
  readonly runs: number
}

const aggregates = `first(price) open, max(price) high, min(price) low, last(price) close, sum(amount) volume, count() n`
const combined = `first(open) open, max(high) high, min(low) low, last(close) close, sum(volume) volume, sum(n) n`

/** Coarser views read finer ones. */
const views: readonly (readonly [name: string, query: string])[] = [
  ['by_minute', `select timestamp, symbol, ${aggregates} from viewed sample by 1m`],
  ['by_hour', `select timestamp, symbol, ${combined} from by_minute sample by 1h`],
  ['by_day', `select timestamp, symbol, ${combined} from by_hour sample by 1d`],
  ['all_minute', `select timestamp, ${aggregates} from viewed sample by 1m`],
  ['all_hour', `select timestamp, ${combined} from all_minute sample by 1h`],
]

/** Panels of a dashboard of hours, over the view and over the table, which the planner answers from the view. */
const panels: readonly (readonly [view: string, table: string])[] = [
  ...['max(high)', 'min(low)', 'sum(volume)', 'sum(n)', 'max(close)'].map((value): readonly [string, string] => [
    `select timestamp, ${value} v from by_minute sample by 1h`,
    `select timestamp, ${overTable(value)} v from viewed sample by 1h`,
  ]),
  ...['max(high)', 'min(low)', 'sum(volume)', 'sum(n)', 'max(open)'].map((value): readonly [string, string] => [
    `select timestamp, symbol, ${value} v from by_minute sample by 1h`,
    `select timestamp, symbol, ${overTable(value)} v from viewed sample by 1h`,
  ]),
]

function overTable(value: string): string {
  return value
    .replace(/volume/, 'amount')
    .replace(/sum\(n\)/, 'count()')
    .replace(/high|low|open|close/, 'price')
}

export async function viewCosts(peer: Peer, { rows, runs }: ViewOptions): Promise<readonly string[]> {
  const { server } = peer
  const exec = (sql: string): Promise<unknown[][]> => queryRows(server.httpPort, sql)
  const load = { shape: 'trades', order: 'sorted', protocol: 'tcp', connections: 1, rows } as const
  const plain = await measureLines(peer, { ...load, table: 'unviewed' })
  await exec(
    'create table viewed (symbol symbol, side symbol, price double, amount double, timestamp timestamp) timestamp(timestamp) partition by day',
  )
  for (const [name, query] of views) await exec(`create materialized view ${name} as (${query})`)
  const startMs = performance.now()
  await measureLines(peer, { ...load, table: 'viewed' })
  for (const [name] of views) await exec(`refresh materialized view ${name} incremental`)
  await untilRefreshed(exec)
  const viewedRate = rows / ((performance.now() - startMs) / 1000)
  const { late, full } = await lateCosts(peer, rows)
  return [
    `ingest ${rate(plain.rowsPerSecond)} without views, ${rate(viewedRate)} with ${views.length} stored to the end`,
    `refresh after 1,000 late rows over 30 days ${late.toFixed(2)} CPU-s, FULL ${full.toFixed(2)} CPU-s`,
    await dashboard(peer, runs),
  ]
}

/** CPU seconds of refreshes of five views of rows over 30 days: after late rows, and in full. */
async function lateCosts({ server }: Peer, rows: number): Promise<{ late: number; full: number }> {
  const exec = (sql: string): Promise<unknown[][]> => queryRows(server.httpPort, sql)
  const first = Date.UTC(2024, 0, 1) * 1000
  const spanMicros = 30 * 86_400_000_000
  const step = Math.floor(spanMicros / rows)
  await exec(
    `create table history as (select 'S' || (x % 10) symbol, x * 0.5 price, x * 0.1 amount, timestamp_sequence(${first}L, ${step}L) timestamp from long_sequence(${rows})), cast(symbol as symbol) timestamp(timestamp) partition by day`,
  )
  const names = views.map(([name]) => `late_${name}`)
  for (const [name, query] of views) {
    const over = query.replace(/from (by|all)_/, 'from late_$1_').replace('from viewed', 'from history')
    await exec(`create materialized view late_${name} refresh manual deferred as (${over})`)
  }
  const refresh = async (mode: string): Promise<number> => {
    const before = usageOf(server.pid).cpuSeconds
    for (const name of names) await exec(`refresh materialized view ${name} ${mode}`)
    await untilRefreshed(exec)
    return usageOf(server.pid).cpuSeconds - before
  }
  await refresh('full')
  await exec(lateRows(first, first + spanMicros))
  const late = await refresh('incremental')
  return { late, full: await refresh('full') }
}

async function dashboard({ server }: Peer, runs: number): Promise<string> {
  const all = async (queries: readonly string[]): Promise<string> => {
    const before = usageOf(server.pid).cpuSeconds
    const median = await medianTime(runs, async () => {
      for (const query of queries) await queryRows(server.httpPort, query)
    })
    return `${median.toFixed(1)} ms, ${(usageOf(server.pid).cpuSeconds - before).toFixed(2)} CPU-s in all`
  }
  const ofViews = await all(panels.map(([view]) => view))
  const ofTable = await all(panels.map(([, table]) => table))
  const without = await all(panels.map(([, table]) => table.replace('from viewed', 'from unviewed')))
  return `dashboard of ${panels.length} panels: views ${ofViews}; table with views ${ofTable}; without ${without}`
}

function rate(rowsPerSecond: number): string {
  return `${(rowsPerSecond / 1000).toFixed(0)} K rows/s`
}

function lateRows(first: number, last: number): string {
  const step = Math.max(1, Math.floor((last - first) / 1000))
  const values = Array.from({ length: 1000 }, (_, index) => `('S1', 1, 1, ${first + index * step + 1})`)
  return `insert into history (symbol, price, amount, timestamp) values ${values.join(', ')}`
}

/** REFRESH of other servers returns before it is done. */
async function untilRefreshed(exec: (sql: string) => Promise<unknown[][]>): Promise<void> {
  for (let tries = 0; tries < 6000; tries++) {
    const states = await exec('select view_status from materialized_views()')
    if (states.every(([status]) => status === 'valid')) return
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
  throw new Error('the views are not refreshed')
}
