// Benchmark of sustained line-protocol ingestion: rows per second until a count returns every row, processor seconds
// per million rows, and maximal resident memory.

import type { SenderOptions } from './line-sender.js'
import type { RowOrder, Shape } from './line-template.js'
import type { Peer } from './peers.js'
import { queryRows, runModule, usageOf } from './processes.js'

export interface LineLoad {
  /** A number: the seed of a random shape (random-lines.ts). */
  readonly shape: Shape | number
  readonly order: RowOrder
  readonly protocol: 'tcp' | 'http'
  readonly connections: number
  readonly rows: number
  /** Default: a name of its own. */
  readonly table?: string
  /** Default: 400,000. */
  readonly templateRows?: number
  /** Default: 10,000. */
  readonly batchRows?: number
  /** Rows of each table; default: all in one of that name. */
  readonly counts?: ReadonlyMap<string, number>
}

export interface LineMeasurement {
  readonly rowsPerSecond: number
  /** Of the server alone, per million rows. */
  readonly serverCpu: number
  readonly senderCpu: number
  readonly rssMebibytes: number
  readonly seconds: number
}

const templateRowsDefault = 400_000
const startSeconds = 1_704_067_200

let tables = 0

/** Sends one load to a server and waits until all of it is visible. */
export async function measureLines(peer: Peer, load: LineLoad): Promise<LineMeasurement> {
  const { server } = peer
  const table = load.table ?? `${load.shape}_${++tables}`
  const options: SenderOptions = {
    protocol: load.protocol,
    port: load.protocol === 'tcp' ? server.linePort : server.httpPort,
    connections: load.connections,
    rows: load.rows,
    templateRows: load.templateRows ?? templateRowsDefault,
    batchRows: load.batchRows ?? 10_000,
    shape: load.shape,
    order: load.order,
    table,
    startSeconds,
  }
  let start = 0
  let cpu = 0
  let rss = 0
  const watch = setInterval(() => {
    rss = Math.max(rss, usageOf(server.pid).rssBytes)
  }, 200)
  const last = await runModule('./line-sender.js', options, () => {
    start = performance.now()
    cpu = usageOf(server.pid).cpuSeconds
  })
  const counts = load.counts ?? new Map([[table, load.rows]])
  for (const [each, rows] of counts) await untilCounted(server.httpPort, each, rows)
  clearInterval(watch)
  const seconds = (performance.now() - start) / 1000
  const millions = load.rows / 1e6
  return {
    rowsPerSecond: load.rows / seconds,
    serverCpu: (usageOf(server.pid).cpuSeconds - cpu) / millions,
    senderCpu: (JSON.parse(last) as { cpuSeconds: number }).cpuSeconds / millions,
    rssMebibytes: rss / 1024 / 1024,
    seconds,
  }
}

/** The same unless the table is there with its rows, from an earlier run in a folder that stays. */
export async function loadOnce(
  peer: Peer,
  shape: Shape,
  table: string,
  rows: number,
  templateRows: number,
): Promise<void> {
  const counted = await queryRows(peer.server.httpPort, `select count() from ${table}`).catch(() => [[0]])
  if (Number(counted[0]?.[0] ?? 0) === rows) return
  await measureLines(peer, { shape, order: 'sorted', protocol: 'tcp', connections: 1, rows, table, templateRows })
}

async function untilCounted(port: number, table: string, rows: number): Promise<void> {
  for (let attempt = 0; ; attempt++) {
    const counted = await queryRows(port, `select count() from ${table}`).catch(() => [[0]])
    const seen = Number(counted[0]?.[0] ?? 0)
    if (seen === rows) return
    if (seen > rows || attempt > 60_000) throw new Error(`counted ${seen} of ${rows} rows`)
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
}

export function lineReport(name: string, load: LineLoad, measured: LineMeasurement): string {
  const rate = `${(measured.rowsPerSecond / 1000).toFixed(0)} K rows/s`
  const cpu = `server ${measured.serverCpu.toFixed(2)} CPU-s/M rows, sender ${measured.senderCpu.toFixed(2)}`
  const shape = typeof load.shape === 'number' ? `seed ${load.shape}` : load.shape
  const what = `${shape} ${load.order} ${load.protocol} x${load.connections} ${load.rows / 1e6} M rows`
  return `${name.padEnd(9)} ${what.padEnd(40)} ${rate.padStart(14)}  ${cpu}, RSS ${measured.rssMebibytes.toFixed(0)} MiB, ${measured.seconds.toFixed(1)} s`
}
