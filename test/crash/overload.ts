// `node dist/test/crash/overload.js [--protocol lines|qwp] [--rows n] [--seconds n] [--memory 1g]`: a producer sends
// much faster than the server stores rows, while queries run. Prints the largest resident memory and the slowest query,
// and fails if the server takes more memory than its budget plus a margin.
//
//   lines   Eight connections over TCP send --rows rows. Every accepted row must be stored.
//   qwp     Connections write frames of QWP (columnar protocol over WebSocket) and never wait for an acknowledgement.
//           They write first to a receiver that stores nothing, to measure how fast the producer can send; then to the
//           server for --seconds seconds, until the server is killed with SIGKILL. The producer must be able to send
//           ten times faster than the server stores, and TCP must slow it down. After the next start every acknowledged
//           frame must be stored once, and no frame in part.

import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import type { SenderOptions } from '../bench/line-sender.js'
import { startPenstock } from '../bench/peers.js'
import { queryRows, runModule, usageOf } from '../bench/processes.js'
import type { FloodOptions, FloodReport } from '../bench/qwp-flood.js'
import { connectionMicros, firstMicros } from '../bench/qwp-frames.js'
import { percentile } from '../bench/suite-latency.js'

const { values } = parseArgs({
  options: {
    protocol: { type: 'string', default: 'lines' },
    rows: { type: 'string', default: '40000000' },
    seconds: { type: 'string', default: '60' },
    memory: { type: 'string', default: '1g' },
  },
})
const mebibyte = 1024 * 1024
const rssMarginMebibytes = 400
/** How often the producer could send what the server takes. */
const tooFast = 10
const senderCpuMax = 0.1
const heldMin = 0.9
/** Sent and not acknowledged, beside what the sockets of this system hold. */
const unacknowledgedInServerMax = 64 * mebibyte
const sinkMs = 1500
const flood: Omit<FloodOptions, 'port'> = { table: 'flood', columns: 5, frameRows: 10_000, connections: 2 }

function mebibytes(size: string): number {
  const unit = size.at(-1)
  return unit === 'g' ? Number.parseFloat(size) * 1024 : Number.parseFloat(size)
}

function fail(why: string): void {
  process.stdout.write(`FAILED: ${why}\n`)
  process.exitCode = 1
}

/** Asks the server small queries until it is told to stop, and watches its memory. */
function watched(httpPort: number, pid: number): () => Promise<void> {
  const latencies: number[] = []
  let rss = 0
  let over = false
  const watch = (async () => {
    while (!over) {
      const start = performance.now()
      const answered = await queryRows(httpPort, 'select 1').catch(() => null)
      if (answered !== null) latencies.push(performance.now() - start)
      if (!over) rss = Math.max(rss, usageOf(pid).rssBytes / mebibyte)
      await new Promise((resolve) => setTimeout(resolve, 50))
    }
  })()
  return async () => {
    over = true
    await watch
    const allowed = mebibytes(values.memory) + rssMarginMebibytes
    const [p99, slowest] = [0.99, 1].map((part) => percentile(latencies, part))
    process.stdout.write(
      `RSS ${rss.toFixed(0)} of ${allowed} MiB, queries p99 ${p99?.toFixed(1)} ms, slowest ${slowest?.toFixed(0)} ms\n`,
    )
    if (rss > allowed) fail(`the server takes ${rss.toFixed(0)} MiB`)
  }
}

async function floodLines(): Promise<void> {
  const peer = await startPenstock([`memory.bytes=${values.memory}`])
  const options: SenderOptions = {
    protocol: 'tcp',
    port: peer.server.linePort,
    connections: 8,
    rows: Number(values.rows),
    templateRows: 200_000,
    batchRows: 10_000,
    shape: 'trades',
    order: 'shuffled',
    table: 'flood',
    startSeconds: 1_704_067_200,
  }
  const stopWatching = watched(peer.server.httpPort, peer.server.pid)
  await runModule('./line-sender.js', options, () => {})
  const counted = await settledCount(peer.server.httpPort, options.rows)
  await stopWatching()
  await peer.end()
  process.stdout.write(`${counted} of ${options.rows} rows\n`)
  if (counted !== options.rows) fail('rows are missing')
}

/** The count when it has stopped growing or is complete. */
async function settledCount(port: number, wanted: number): Promise<number> {
  let last = -1
  for (;;) {
    const rows = await queryRows(port, 'select count() from flood')
    const counted = Number(rows[0]?.[0])
    if (counted === wanted || counted === last) return counted
    last = counted
    await new Promise((resolve) => setTimeout(resolve, 2000))
  }
}

async function floodQwp(): Promise<void> {
  const fastest = await producerRate()
  const keep = mkdtempSync(join(tmpdir(), 'penstock-overload-'))
  const settings = [`memory.bytes=${values.memory}`]
  const { server } = await startPenstock(settings, keep)
  const stopWatching = watched(server.httpPort, server.pid)
  const report: FloodReport = JSON.parse(
    await runModule('./qwp-flood.js', { ...flood, port: server.httpPort }, () => {
      setTimeout(() => {
        stopWatching().finally(() => process.kill(server.pid, 'SIGKILL'))
      }, Number(values.seconds) * 1000)
    }),
  )
  checkProducer(report, fastest)
  const restarted = await startPenstock(settings, keep)
  for (let index = 0; index < flood.connections; index++) await checkRows(restarted.server.httpPort, report, index)
  await restarted.end()
  rmSync(keep, { recursive: true })
}

/** Rows that the producer sends, to a socket that takes everything, in a second of processor time. */
async function producerRate(): Promise<number> {
  let bytes = 0
  const sink = createServer({ noDelay: true }, (socket: Socket) => {
    socket.once('data', () => {
      socket.write('HTTP/1.1 101 Switching Protocols\r\n\r\n')
      socket.on('data', (chunk: Buffer) => {
        bytes += chunk.length
      })
    })
    setTimeout(() => socket.destroy(), sinkMs)
  })
  await new Promise<void>((resolve) => sink.listen(0, '127.0.0.1', resolve))
  const address = sink.address()
  const port = typeof address === 'object' && address !== null ? address.port : 0
  const report: FloodReport = JSON.parse(await runModule('./qwp-flood.js', { ...flood, port }, () => {}))
  sink.close()
  return ((bytes / report.frameBytes) * flood.frameRows) / report.cpuSeconds
}

/** What the buffers of a connection of this system grow to, on both sides. */
function socketBytes(): number {
  const largest = ['wmem', 'rmem'].map((name) =>
    Number(readFileSync(`/proc/sys/net/ipv4/tcp_${name}`, 'utf8').trim().split(/\s+/)[2]),
  )
  return sum(largest)
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0)
}

function checkProducer(report: FloodReport, fastest: number): void {
  const { seconds, cpuSeconds, heldSeconds, bufferedBytesMax, unacknowledgedBytesMax, frameBytes } = report
  const taken = (sum(report.acknowledged) * flood.frameRows) / seconds
  const [cpu, held] = [cpuSeconds / seconds, heldSeconds / seconds]
  const percent = (part: number): string => `${(part * 100).toFixed(1)} %`
  process.stdout.write(
    `${Math.round(taken)} rows/s acknowledged of ${Math.round(fastest)} that a processor can send, held back ${percent(held)} of ` +
      `the time, its processor time ${percent(cpu)}, at most ${(unacknowledgedBytesMax / mebibyte).toFixed(1)} MiB not acknowledged\n`,
  )
  if (fastest < tooFast * taken) fail(`the producer is ${(fastest / taken).toFixed(1)} times too fast, not ${tooFast}`)
  if (held < heldMin) fail('TCP does not hold the producer back')
  if (cpu > senderCpuMax) fail(`the producer takes ${percent(cpu)} of a processor`)
  if (bufferedBytesMax > 2 * frameBytes) fail(`the producer holds ${bufferedBytesMax} bytes of a connection itself`)
  const waiting = flood.connections * socketBytes() + unacknowledgedInServerMax
  if (unacknowledgedBytesMax > waiting) fail(`${unacknowledgedBytesMax} bytes are not acknowledged`)
}

/** Frames are there in the order of their connection: all that were acknowledged, whole, once. */
async function checkRows(httpPort: number, { sent, acknowledged }: FloodReport, connection: number): Promise<void> {
  const first = firstMicros + connection * connectionMicros
  const [from, to] = [first, first + connectionMicros].map((micros) => new Date(micros / 1000).toISOString())
  // Rows of a frame are a microsecond apart: their number and the sum of their distances tell whether each is there once.
  const at = `timestamp::long - ${first}`
  const frames = `select (${at}) / ${flood.frameRows} frame, count() n, sum((${at}) % ${flood.frameRows}) s from flood
    where timestamp >= '${from}' and timestamp < '${to}' group by frame`
  const sql = `select count(), min(frame), max(frame), min(n), max(n), min(s), max(s) from (${frames})`
  const [[stored, least, most, ...rows] = []] = await queryRows(httpPort, sql)
  const distances = (flood.frameRows * (flood.frameRows - 1)) / 2
  const [wanted = 0, begun = 0] = [acknowledged[connection], sent[connection]]
  process.stdout.write(`connection ${connection}: ${wanted} frames acknowledged, ${stored} stored, ${begun} begun\n`)
  if (Number(stored) < wanted || Number(stored) > begun) fail('acknowledged frames are missing')
  if (least !== 0 || most !== Number(stored) - 1) fail(`frames ${least} to ${most} are ${stored}`)
  const whole = [flood.frameRows, flood.frameRows, distances, distances]
  if (rows.some((count, index) => count !== whole[index])) fail(`frames are there in part: ${rows}`)
}

await (values.protocol === 'qwp' ? floodQwp() : floodLines())
