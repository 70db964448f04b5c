// Benchmark of QWP (columnar protocol over WebSocket), in three steps.
//
//   rows in            A separate process sends frames in the form of the official clients, and the same rows by line
//                      protocol over TCP. Reported: rows per second until all rows are acknowledged (QWP) or can be
//                      queried (line protocol), and processor time of the server per row until all rows are in
//                      Parquet files. For comparison: a receiver that decodes nothing (qwp-sink.ts, the lower bound),
//                      and the official Python client, if `python3` or $PYTHON has it.
//   acknowledgement    The time until a frame of 100 rows is acknowledged, compared with the time of an fdatasync.
//   rows out           The same query by QWP, as binary rows of the PostgreSQL wire protocol, and as an Arrow stream of
//                      /exp, in turns. The clients only count bytes.
//
// Rows in and rows out run once before they are measured, so that their code is compiled.

import { spawnSync } from 'node:child_process'
import { closeSync, fdatasyncSync, mkdtempSync, openSync, rmSync, writeSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Peer } from './peers.js'
import { queryRows, runModule, startModule, untilQuiet, usageOf } from './processes.js'
import type { QwpSenderOptions, SenderReport } from './qwp-sender.js'
import { readBatches, readWire } from './result-readers.js'

const frameRows = 1000
/** Frames of each protocol before its measured ones: code is compiled then. */
const warmFrames = 4000
/** Frames that are sent before the first of them is acknowledged. */
const framesInFlight = 64
const shortFrames = 300
const shortFrameRows = 100
const resultColumns = 10
const resultRounds = 3
/** Rows of the official client, which makes them one by one. */
const clientRowsMax = 2_000_000
const clientProgram = fileURLToPath(new URL('../../../test/interop/qwp_rate.py', import.meta.url))

interface Cost {
  readonly rowsPerSecond: number
  readonly micros: number
}

export async function qwp(peer: Peer, rows: number, print: (line: string) => void): Promise<void> {
  const frames = Math.max(1, Math.floor(rows / frameRows))
  for (const columns of [5, 20]) {
    for (const protocol of ['lines', 'qwp'] as const) {
      await rowsIn(peer, protocol, {
        table: `warm_${protocol}_${columns}`,
        columns,
        frames: Math.min(frames, warmFrames),
      })
    }
    const lines = await rowsIn(peer, 'lines', { table: `lines_${columns}`, columns, frames }, print)
    const wire = await rowsIn(peer, 'qwp', { table: `qwp_${columns}`, columns, frames }, print)
    const [micros, rate] = [wire.micros / lines.micros, wire.rowsPerSecond / lines.rowsPerSecond]
    print(
      `in, ${columns} columns: QWP takes ${micros.toFixed(2)} of the processor time of lines, at ${rate.toFixed(2)} of the rate`,
    )
    await rowsDropped(columns, frames, print)
  }
  liveClient(peer, Math.min(rows, clientRowsMax), print)
  await acknowledgements(peer, print)
  await rowsOut(peer, rows, print)
}

async function rowsIn(
  peer: Peer,
  protocol: QwpSenderOptions['protocol'],
  { table, columns, frames }: Pick<QwpSenderOptions, 'table' | 'columns' | 'frames'>,
  print: (line: string) => void = () => {},
): Promise<Cost> {
  const { pid, httpPort, linePort } = peer.server
  const rows = frames * frameRows
  const port = protocol === 'qwp' ? httpPort : linePort
  const options: QwpSenderOptions = { protocol, port, table, columns, frames, frameRows, inFlight: framesInFlight }
  let before = 0
  let begunMs = 0
  const text = await runModule('qwp-sender.js', options, () => {
    before = usageOf(pid).cpuSeconds
    begunMs = performance.now()
  })
  const sender = JSON.parse(text) as SenderReport
  await untilThere(httpPort, table, rows)
  const seconds = protocol === 'qwp' ? sender.seconds : (performance.now() - begunMs) / 1000
  await queryRows(httpPort, 'checkpoint')
  await untilQuiet([peer.server], print)
  const micros = ((usageOf(pid).cpuSeconds - before) / rows) * 1e6
  const rowsPerSecond = rows / seconds
  const cost = `${Math.round(rowsPerSecond)} rows/s, ${micros.toFixed(2)} us of processor time a row`
  const sent = `${((sender.cpuSeconds / rows) * 1e6).toFixed(2)} us of the sender, ${(sender.bytes / rows).toFixed(0)} bytes`
  print(`in, ${protocol.padEnd(5)}, ${columns} columns   ${cost} (${sent})`)
  return { rowsPerSecond, micros }
}

/** The same frames, to a receiver that decodes nothing. */
async function rowsDropped(columns: number, frames: number, print: (line: string) => void): Promise<void> {
  const { child, line: port } = await startModule('qwp-sink.js')
  const { pid = 0 } = child
  const before = usageOf(pid).cpuSeconds
  const options: QwpSenderOptions = {
    ...{ protocol: 'qwp', port: Number(port), table: 'none', columns, frames, frameRows, inFlight: framesInFlight },
  }
  const sender = JSON.parse(await runModule('qwp-sender.js', options, () => {})) as SenderReport
  const rows = frames * frameRows
  const micros = ((usageOf(pid).cpuSeconds - before) / rows) * 1e6
  child.kill()
  print(
    `in, dropped, ${columns} columns  ${Math.round(rows / sender.seconds)} rows/s, ${micros.toFixed(2)} us of processor time a row`,
  )
}

/** What the official client of Python reaches, with data frames and row by row. */
function liveClient(peer: Peer, rows: number, print: (line: string) => void): void {
  const python = process.env.PYTHON ?? 'python3'
  const { stdout, status } = spawnSync(python, [clientProgram, `${peer.server.httpPort}`, `${rows}`], {
    stdio: ['ignore', 'pipe', 'ignore'],
    encoding: 'utf8',
  })
  if (status !== 0) print(`in, official client: not measured, ${python} lacks questdb 6, pandas or numpy`)
  else for (const line of stdout.trim().split('\n')) print(`in, official client, ${line}`)
}

async function untilThere(httpPort: number, table: string, wanted: number): Promise<void> {
  for (;;) {
    const [[found] = []] = await queryRows(httpPort, `select count() from ${table}`).catch(() => [[0]])
    if (Number(found) >= wanted) return
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
}

async function acknowledgements(peer: Peer, print: (line: string) => void): Promise<void> {
  const options: QwpSenderOptions = {
    ...{ protocol: 'qwp', port: peer.server.httpPort, table: 'short', columns: 5, inFlight: 1 },
    ...{ frames: shortFrames, frameRows: shortFrameRows },
  }
  const { waitsMs } = JSON.parse(await runModule('qwp-sender.js', options, () => {})) as SenderReport
  const syncs = syncTimes()
  const at = (sorted: readonly number[], part: number): string =>
    (sorted[Math.floor(sorted.length * part)] ?? 0).toFixed(2)
  print(
    `${shortFrameRows} rows acknowledged in ${at(waitsMs, 0.5)} ms (p99 ${at(waitsMs, 0.99)}); fdatasync ${at(syncs, 0.5)} ms (p99 ${at(syncs, 0.99)})`,
  )
}

/** Milliseconds of appending a page to a file and syncing it, sorted. */
function syncTimes(): number[] {
  const folder = mkdtempSync(join(tmpdir(), 'penstock-sync-'))
  const file = openSync(join(folder, 'file'), 'w')
  const page = Buffer.alloc(4096, 1)
  const times = Array.from({ length: shortFrames }, () => {
    const begunMs = performance.now()
    writeSync(file, page)
    fdatasyncSync(file)
    return performance.now() - begunMs
  })
  closeSync(file)
  rmSync(folder, { recursive: true })
  return times.sort((left, right) => left - right)
}

async function rowsOut(peer: Peer, rows: number, print: (line: string) => void): Promise<void> {
  const { httpPort, pid } = peer.server
  const numbers = Array.from({ length: resultColumns - 2 }, (_, column) => `x * ${column + 0.5} v${column}`)
  const columns = `(firsts + x * 1000000)::timestamp ts, 's' || (x % 100) k, ${numbers.join(', ')}`
  const from = `(select x, 1704067200000000 firsts from long_sequence(${rows}))`
  await queryRows(
    httpPort,
    `create table if not exists wide as (select ${columns} from ${from}), cast(k as symbol) timestamp(ts) partition by year`,
  )
  await queryRows(httpPort, 'checkpoint')
  await untilQuiet([peer.server], print)
  const sql = 'select * from wide'
  const ways: readonly (readonly [string, () => Promise<number>])[] = [
    ['QWP', () => readBatches(httpPort, sql)],
    ['PG wire, binary', () => readWire(peer.server.pgPort, sql)],
    ['/exp, Arrow', () => readArrow(httpPort, sql)],
  ]
  // The first query reads the parts and compiles, whichever way its rows leave.
  for (const [, read] of ways) await read()
  const costs = ways.map((): Cost[] => [])
  const bytes = ways.map(() => 0)
  for (let round = 0; round < resultRounds; round++) {
    for (const [index, [, read]] of ways.entries()) {
      const before = usageOf(pid).cpuSeconds
      const begunMs = performance.now()
      bytes[index] = await read()
      const seconds = (performance.now() - begunMs) / 1000
      const micros = ((usageOf(pid).cpuSeconds - before) / rows) * 1e6
      costs[index]?.push({ rowsPerSecond: rows / seconds, micros })
    }
  }
  const [batches, wire, arrow] = costs.map(medianCost)
  for (const [index, [name]] of ways.entries()) {
    const { rowsPerSecond, micros } = medianCost(costs[index] ?? [])
    print(
      `out, ${name.padEnd(15)} ${Math.round(rowsPerSecond)} rows/s, ${micros.toFixed(3)} us of processor time a row, ${((bytes[index] ?? 0) / rows).toFixed(0)} bytes`,
    )
  }
  if (batches === undefined || wire === undefined || arrow === undefined) return
  print(
    `out: QWP at ${(batches.rowsPerSecond / wire.rowsPerSecond).toFixed(2)} of the rate of the PostgreSQL wire protocol, with ${(batches.micros / arrow.micros).toFixed(2)} of the processor time of Arrow`,
  )
}

function medianCost(costs: readonly Cost[]): Cost {
  const middle = (numbers: number[]): number => numbers.sort((left, right) => left - right)[numbers.length >> 1] ?? 0
  return {
    rowsPerSecond: middle(costs.map((cost) => cost.rowsPerSecond)),
    micros: middle(costs.map((cost) => cost.micros)),
  }
}

async function readArrow(port: number, sql: string): Promise<number> {
  const url = `http://127.0.0.1:${port}/exp?fmt=arrow&query=${encodeURIComponent(sql)}`
  const response = await fetch(url)
  if (!response.ok || response.body === null) throw new Error(await response.text())
  let bytes = 0
  for await (const chunk of response.body) bytes += chunk.length
  if (bytes === 0) throw new Error('there is no result')
  return bytes
}
