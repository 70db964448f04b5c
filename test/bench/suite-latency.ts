// Benchmarks of latency: from sending a line until a query returns its row, beside a load of lines; of small queries
// over one connection; of the queries of a dashboard beside a load of lines; of a server start, with the memory of the
// idle server. Also measures the bytes per row on disk.

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

/** What a dashboard of the last minutes asks, over the table of the background load. */
const panels: readonly (readonly [name: string, sql: string])[] = [
  ['latest', 'select * from background latest on timestamp partition by host'],
  ['by second', 'select timestamp, avg(value), max(n) from background where timestamp > # sample by 1s'],
  [
    'one host',
    "select timestamp, value from background where host = 'h7' and timestamp > # order by timestamp limit 500",
  ],
  ['by host', 'select host, max(value), count() from background where timestamp > # group by host'],
]
/** Rows are there before the first round. */
const dashboardWarmMs = 3000
/** The dashboard shows so many microseconds. */
const shownMicros = 5_000_000

interface DashboardTimes {
  readonly all: number[]
  readonly latest: number[]
}

/**
 * Milliseconds of a dashboard's four queries, one after the other, beside so many rows a second, and of one of them.
 * Servers take turns; each has its load only in its turn.
 */
export async function dashboards(
  peers: readonly Peer[],
  { runs, rounds, rowsPerSecond }: { readonly runs: number; readonly rounds: number; readonly rowsPerSecond: number },
  print: (line: string) => void,
): Promise<void> {
  const medians = new Map<Peer, { all: number; latest: number; cpu: number }[]>()
  for (let run = 0; run < runs; run++) {
    for (const peer of peers) {
      let over = false
      const background = backgroundLoad(peer, rowsPerSecond, () => over)
      await new Promise((resolve) => setTimeout(resolve, dashboardWarmMs))
      const before = usageOf(peer.server.pid).cpuSeconds
      const begun = performance.now()
      const { all, latest } = await dashboard(peer, rounds)
      const cpu = (usageOf(peer.server.pid).cpuSeconds - before) / ((performance.now() - begun) / 1000)
      over = true
      await background
      const figures = { all: percentile(all, 0.5), latest: percentile(latest, 0.5), cpu }
      medians.set(peer, [...(medians.get(peer) ?? []), figures])
    }
  }
  for (const [{ server }, figures] of medians) {
    const of = (key: 'all' | 'latest' | 'cpu'): number =>
      percentile(
        figures.map((each) => each[key]),
        0.5,
      )
    print(
      `${server.name.padEnd(9)} dashboard beside ${rowsPerSecond} rows/s: four queries p50 ${of('all').toFixed(2)} ms, latest p50 ${of('latest').toFixed(2)} ms, server ${of('cpu').toFixed(2)} CPU-s a second with the load`,
    )
  }
}

async function dashboard(peer: Peer, rounds: number): Promise<DashboardTimes> {
  const client = new Client(`http://127.0.0.1:${peer.server.httpPort}`)
  const times: DashboardTimes = { all: [], latest: [] }
  for (let round = 0; round < rounds; round++) {
    const from = (Date.now() * 1000 - shownMicros).toString()
    const begun = performance.now()
    for (const [name, sql] of panels) {
      const start = performance.now()
      const answer = await exec(client, sql.replace('#', `${from}::timestamp`))
      if (!answer.includes('"dataset"')) throw new Error(`${peer.server.name} refused ${name}: ${answer}`)
      if (name === 'latest') times.latest.push(performance.now() - start)
    }
    times.all.push(performance.now() - begun)
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
  await client.close()
  return times
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
