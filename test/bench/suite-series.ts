// Benchmark of a table with many distinct symbols: loads rows by line protocol over HTTP, starts the server again, and
// queries single series and all of them. Reports the rate of the load and the server's processor time per row, the time
// from the start until all rows are counted, memory, and the median time and the processor time of each query.

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Client } from 'undici'
import { type Build, type Peer, startBuild } from './peers.js'
import { queryRows, usageOf } from './processes.js'
import { exec, median, queryClient } from './suite-scan.js'

export interface SeriesOptions {
  readonly rows: number
  /** Distinct symbols, at most as many as rows. They come in turns. */
  readonly series: number
  readonly runs: number
  readonly settings: readonly string[]
}

const linesAtOnce = 20_000
const firstNanos = BigInt(Date.UTC(2024, 0, 1)) * 1_000_000n
const stepNanos = 100_000n

/** `#` stands for the number of a series. */
const queries: readonly (readonly [name: string, sql: string])[] = [
  ['rows of one series', "select * from series where id = 's#'"],
  ['newest row of one series', "select * from series where id = 's#' latest on timestamp partition by id"],
  ['newest rows of all', 'select count(), max(v) + # from (select * from series latest on timestamp partition by id)'],
  ['number of series', 'select count_distinct(id) + # from series'],
  ['ten largest sums', 'select id, sum(v) + # s from series group by id order by s desc limit 10'],
]

export async function manySeries(
  builds: readonly Build[],
  options: SeriesOptions,
  print: (line: string) => void,
): Promise<void> {
  for (const build of builds) {
    const folder = mkdtempSync(join(tmpdir(), 'penstock-bench-series-'))
    try {
      await measure(build, folder, options, (line) => print(`${build.name.padEnd(9)} ${line}`))
    } finally {
      rmSync(folder, { recursive: true, force: true })
    }
  }
}

async function measure(
  build: Build,
  folder: string,
  options: SeriesOptions,
  print: (line: string) => void,
): Promise<void> {
  const loading = await startBuild(build, options.settings, folder)
  try {
    print(await load(loading, options))
  } finally {
    await loading.end()
  }
  const begun = performance.now()
  const peer = await startBuild(build, options.settings, folder)
  try {
    const [[rows] = []] = await queryRows(peer.server.httpPort, 'select count() from series')
    if (rows !== options.rows) throw new Error(`rows are missing after the start [rows=${String(rows)}]`)
    print(`start ${(performance.now() - begun).toFixed(0)} ms until all rows are counted, ${memoryOf(peer)}`)
    for (const [name, sql] of queries) print(`${name.padEnd(26)} ${await timed(peer, sql, options)}`)
    print(`after the queries ${memoryOf(peer)}`)
  } finally {
    await peer.end()
  }
}

async function load({ server }: Peer, { rows, series }: SeriesOptions): Promise<string> {
  const client = new Client(`http://127.0.0.1:${server.httpPort}`)
  const begun = performance.now()
  const cpu = usageOf(server.pid).cpuSeconds
  for (let from = 0; from < rows; from += linesAtOnce) {
    const body = linesOf(from, Math.min(rows, from + linesAtOnce), series)
    const { statusCode, body: answer } = await client.request({ path: '/write', method: 'POST', body })
    const text = await answer.text()
    if (statusCode !== 204) throw new Error(`line protocol was refused [status=${statusCode}]: ${text}`)
  }
  const seconds = (performance.now() - begun) / 1000
  await exec(client, 'checkpoint')
  await client.close()
  const used = ((usageOf(server.pid).cpuSeconds - cpu) / rows) * 1e6
  return `load ${(rows / seconds).toFixed(0)} rows/s, ${used.toFixed(2)} CPU-us a row with the flushes`
}

function linesOf(from: number, to: number, series: number): string {
  let lines = ''
  for (let row = from; row < to; row++)
    lines += `series,id=s${row % series} v=${row % 1000}.5,n=${row}i ${firstNanos + BigInt(row) * stepNanos}\n`
  return lines
}

async function timed({ server }: Peer, sql: string, { series, runs }: SeriesOptions): Promise<string> {
  const client = queryClient(server.httpPort)
  const textOf = (run: number): string => sql.replaceAll('#', `${(run * 7919) % series}`)
  const begun = performance.now()
  await exec(client, textOf(0))
  const first = performance.now() - begun
  const times: number[] = []
  const cpu = usageOf(server.pid).cpuSeconds
  for (let run = 1; run <= runs; run++) {
    const start = performance.now()
    await exec(client, textOf(run))
    times.push(performance.now() - start)
  }
  const used = ((usageOf(server.pid).cpuSeconds - cpu) / runs) * 1000
  await client.close()
  return `${milliseconds(median(times))} (${milliseconds(used)} of processor time), the first ${milliseconds(first)}`
}

function milliseconds(value: number): string {
  return `${value.toFixed(1).padStart(8)} ms`
}

function memoryOf({ server }: Peer): string {
  return `RSS ${(usageOf(server.pid).rssBytes / 2 ** 20).toFixed(0)} MiB`
}
