// Benchmark of latencies: from sending a line to a query that returns its row, of small queries over a persistent
// connection, and of a server start.

import { once } from 'node:events'
import { connect } from 'node:net'
import { Client } from 'undici'
import { type Peer, startPenstock } from './peers.js'
import { usageOf } from './processes.js'
import { measureLines } from './suite-lines.js'

/** Milliseconds at a share of the sorted samples. */
export function percentile(samples: readonly number[], share: number): number {
  const sorted = [...samples].sort((x, y) => x - y)
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] as number
}

function spread(samples: readonly number[]): string {
  return `p50 ${percentile(samples, 0.5).toFixed(3)} ms, p99 ${percentile(samples, 0.99).toFixed(3)} ms (${samples.length} samples)`
}

async function exec(client: Client, sql: string): Promise<string> {
  const { body } = await client.request({ path: `/exec?query=${encodeURIComponent(sql)}`, method: 'GET' })
  return body.text()
}

/**
 * Small queries, one after the other, over one kept connection. The client is a bare socket that only looks for the end
 * of each answer: a client library takes longer for a request than a server does.
 */
export async function smallQueries(peer: Peer, count: number): Promise<string> {
  const socket = connect({ port: peer.server.httpPort, host: '127.0.0.1', noDelay: true })
  await once(socket, 'connect')
  const request = Buffer.from('GET /exec?query=select%201 HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n')
  const samples = new Array<number>(count)
  const warm = 2000
  let requested = 0
  let begin = 0
  let start = 0
  let answer = ''
  await new Promise<void>((resolve, reject) => {
    const ask = (): void => {
      if (requested === warm) begin = performance.now()
      requested++
      start = performance.now()
      socket.write(request)
    }
    socket.on('data', (chunk: Buffer) => {
      answer += chunk.toString('latin1')
      if (!isWhole(answer)) return
      if (!answer.startsWith('HTTP/1.1 200')) return reject(new Error(answer))
      answer = ''
      if (requested > warm) samples[requested - warm - 1] = performance.now() - start
      if (requested === warm + count) resolve()
      else ask()
    })
    socket.on('error', reject).on('close', () => reject(new Error('the server closed the connection')))
    ask()
  })
  const rate = (count / (performance.now() - begin)) * 1000
  socket.destroy()
  return `small query: ${spread(samples)}, ${rate.toFixed(0)}/s`
}

/** Whether an HTTP answer of ASCII has come to its end: all of its Content-Length, or its last chunk. */
function isWhole(answer: string): boolean {
  const head = answer.indexOf('\r\n\r\n')
  if (head < 0) return false
  const length = /\r\ncontent-length: *(\d+)/i.exec(answer.slice(0, head))
  return length === null ? answer.endsWith('\r\n0\r\n\r\n') : answer.length === head + 4 + Number(length[1])
}

/** Sends one line at a time over TCP while another load runs, and polls until a query shows it. */
export async function freshness(peer: Peer, rounds: number, backgroundRowsPerSecond: number): Promise<string> {
  const socket = connect(peer.server.linePort, '127.0.0.1')
  await once(socket, 'connect')
  const client = new Client(`http://127.0.0.1:${peer.server.httpPort}`)
  let over = false
  const background = backgroundLoad(peer, backgroundRowsPerSecond, () => over)
  const samples: number[] = []
  for (let round = 0; round < rounds; round++) {
    const start = performance.now()
    socket.write(`fresh n=${round}i\n`)
    while (!(await exec(client, `select n from fresh where n = ${round}`)).includes(`[[${round}]]`)) {
      if (performance.now() - start > 10_000) throw new Error('a row was not seen for 10 s')
    }
    samples.push(performance.now() - start)
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
  over = true
  await background
  socket.end()
  await client.close()
  return `freshness under ${backgroundRowsPerSecond} rows/s: ${spread(samples)}`
}

async function backgroundLoad(peer: Peer, rowsPerSecond: number, stopped: () => boolean): Promise<void> {
  const socket = connect(peer.server.linePort, '127.0.0.1')
  await once(socket, 'connect')
  const perTick = rowsPerSecond / 100
  let sent = 0
  while (!stopped()) {
    let lines = ''
    for (let row = 0; row < perTick; row++) lines += `background,host=h${row % 50} value=${sent + row}.5,n=${row}i\n`
    sent += perTick
    if (!socket.write(lines)) await once(socket, 'drain')
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
  socket.end()
}

/** How long a server rests before its memory counts as idle. */
const pauseMs = 5000

/**
 * Milliseconds from the command to the first answer, over so many starts with an empty root; idle memory of the last.
 */
export async function starts(count: number): Promise<string> {
  const samples: number[] = []
  let rss = 0
  for (let index = 0; index < count; index++) {
    const start = performance.now()
    const peer = await startPenstock()
    samples.push(performance.now() - start)
    if (index === count - 1) await new Promise((resolve) => setTimeout(resolve, pauseMs))
    rss = usageOf(peer.server.pid).rssBytes
    await peer.end()
  }
  return `start: ${spread(samples)}, idle RSS ${(rss / 1024 / 1024).toFixed(0)} MiB`
}

/** Bytes on disk per row of the 20-column load, after CHECKPOINT for ours. */
export async function diskBytes(peer: Peer, rows: number, sizeOf: (root: string) => number): Promise<string> {
  await measureLines(peer, { shape: 'cpu', order: 'sorted', protocol: 'http', connections: 2, rows })
  const client = new Client(`http://127.0.0.1:${peer.server.httpPort}`)
  await exec(client, 'checkpoint')
  await client.close()
  return `disk: ${(sizeOf(peer.root) / rows).toFixed(1)} bytes a row`
}
