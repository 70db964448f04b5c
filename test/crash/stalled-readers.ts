// `node dist/test/crash/stalled-readers.js [--readers 37] [--seconds 60] [--rows 4000000] [--memory 0]`: clients
// request a whole large table and do not read the response, while others work.
//
// Method: of 37 readers, 20 request CSV and 2 Parquet from /exp, 10 JSON from /exec, and 5 use the PostgreSQL protocol.
// None reads for --seconds. Meanwhile a probe counts with a condition, groups, and exports a part of the table.
// Expected: the readers' queries hold at most 64 MiB; every probe is answered, within a factor of the usual time; and
// when the readers continue, each gets what a reader that never stopped gets: the same bytes over the PostgreSQL
// protocol, almost the same number of bytes over HTTP, where times and chunk sizes differ.

import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { parseArgs } from 'node:util'
import { startPenstock } from '../bench/peers.js'
import { queryRows, usageOf } from '../bench/processes.js'

const { values } = parseArgs({
  options: {
    readers: { type: 'string', default: '37' },
    seconds: { type: 'string', default: '60' },
    rows: { type: 'string', default: '4000000' },
    memory: { type: 'string', default: '0' },
  },
})
const MIB = 1024 * 1024
const heldMax = 64 * MIB
/** How much slower than before a probe may be on a machine that others use, too. */
const slowerMax = 4
const slackMs = 250
/**
 * After so long they have stopped, on a quiet machine; on a busy one it takes longer until what was under way is at
 * rest.
 */
const settleMs = 2500
const restMsMax = 60_000

interface Kind {
  readonly name: string
  readonly share: number
  readonly request: string
}

const statement = 'select * from big'
const get = (path: string, more = ''): string =>
  `GET ${path}?query=${encodeURIComponent(statement)}${more} HTTP/1.1\r\nHost: penstock\r\nConnection: close\r\n\r\n`
const kinds: readonly Kind[] = [
  { name: 'csv', share: 20, request: get('/exp') },
  { name: 'json', share: 10, request: get('/exec', '&limit=100000000') },
  { name: 'parquet', share: 2, request: get('/exp', '&fmt=parquet') },
  { name: 'pg', share: 5, request: '' },
]

/** Of a kind: bytes and hash behind the head of the answer, which names the time. */
interface Reading {
  readonly bytes: number
  readonly hash: string
  /** The last bytes, which tell of an error. */
  readonly end: string
}

/** A client that does not read before it is told to. */
class Reader {
  readonly kind: string
  readonly #socket: Socket
  #failure: Error | null = null

  private constructor(kind: string, socket: Socket) {
    this.kind = kind
    this.#socket = socket
    socket.on('error', (error) => {
      this.#failure = error
    })
  }

  static async open({ name, request }: Kind, httpPort: number, pgPort: number): Promise<Reader> {
    const socket = connect({ host: '127.0.0.1', port: name === 'pg' ? pgPort : httpPort })
    await once(socket, 'connect')
    if (name === 'pg') await signIn(socket)
    else socket.write(request)
    socket.pause()
    return new Reader(name, socket)
  }

  /** All that comes from now on. */
  async read(): Promise<Reading> {
    const hash = createHash('sha1')
    let bytes = 0
    let end = ''
    let head: Buffer | null = this.kind === 'pg' ? null : Buffer.alloc(0)
    const ready = Buffer.from('5a0000000549', 'hex')
    for await (const chunk of this.#socket as AsyncIterable<Buffer>) {
      let body = chunk
      if (head !== null) {
        head = Buffer.concat([head, chunk])
        const end = head.indexOf('\r\n\r\n')
        if (end < 0) continue
        body = head.subarray(end + 4)
        head = null
      }
      // Chunk sizes of HTTP differ from reading to reading; of JSON the times at its end, too.
      bytes += body.length
      end = JSON.stringify(chunk.subarray(-300).toString('latin1'))
      hash.update(body)
      if (this.kind === 'pg' && chunk.subarray(-6).equals(ready)) break
    }
    if (this.#failure !== null) throw this.#failure
    this.#socket.destroy()
    return { bytes, hash: hash.digest('hex'), end }
  }
}

async function signIn(socket: Socket): Promise<void> {
  const message = (tag: string, body: Buffer): Buffer => {
    const length = Buffer.alloc(4)
    length.writeInt32BE(body.length + 4)
    return Buffer.concat([Buffer.from(tag), length, body])
  }
  const text = (...parts: string[]): Buffer => Buffer.from(`${parts.join('\0')}\0`)
  const version = Buffer.from('00030000', 'hex')
  socket.write(message('', Buffer.concat([version, text('user', 'admin', 'database', 'qdb'), Buffer.alloc(1)])))
  await once(socket, 'data')
  socket.write(message('p', text('quest')))
  await once(socket, 'data')
  socket.write(message('Q', text(statement)))
}

/** Milliseconds of one probe. Throws when it is refused. */
async function probe(port: number, sql: string, path = 'exec'): Promise<number> {
  const begun = performance.now()
  const answer = await fetch(`http://127.0.0.1:${port}/${path}?query=${encodeURIComponent(sql)}`)
  const body = await answer.text()
  if (answer.status !== 200) throw new Error(`${sql}: ${answer.status} ${body.slice(0, 200)}`)
  return performance.now() - begun
}

const probes: Readonly<Record<string, (port: number) => Promise<number>>> = {
  count: (port) => probe(port, 'select count() from big where d > 0.5 and x % 7 = 3'),
  group: (port) => probe(port, 'select s, avg(d), max(x) from big group by s'),
  export: (port) => probe(port, 'select * from big limit 200000', 'exp'),
}

type Times = Record<string, number[]>

async function runProbes(port: number, times: Times): Promise<void> {
  for (const [name, run] of Object.entries(probes)) times[name] = [...(times[name] ?? []), await run(port)]
}

function median(numbers: readonly number[]): number {
  return numbers.toSorted((x, y) => x - y)[numbers.length >>> 1] ?? 0
}

/** Bytes that queries hold. */
async function heldByQueries(port: number): Promise<number> {
  const answer = await fetch(`http://127.0.0.1:${port}/metrics`)
  const match = /memory_used_bytes\{budget="queries"\} (\S+)/.exec(await answer.text())
  if (match === null) throw new Error('the metrics do not tell the memory of queries')
  return Number(match[1])
}

async function makeTable(port: number): Promise<void> {
  const columns = `timestamp_sequence('2024-01-01', 1000000) ts, x, rnd_double() d, ('s' || (x % 50))::symbol s,
    'a text of the row ' || x v, x::int i, (x % 1000)::short sh, x % 3 = 0 b, (x * 7)::timestamp t2, x * 1.5 e`
  await queryRows(
    port,
    `create table big as (select ${columns} from long_sequence(${values.rows})) timestamp(ts) partition by month`,
  )
  await queryRows(port, 'checkpoint')
}

async function main(): Promise<void> {
  const peer = await startPenstock(values.memory === '0' ? [] : [`memory.bytes=${values.memory}`])
  const { httpPort, pgPort, pid } = peer.server
  const failures: string[] = []
  const fail = (text: string): void => {
    failures.push(text)
    process.stdout.write(`WRONG: ${text}\n`)
  }
  try {
    await makeTable(httpPort)
    const before: Times = {}
    for (let round = 0; round < 5; round++) await runProbes(httpPort, before)
    const idle = await heldByQueries(httpPort)
    const readers: Reader[] = []
    for (const kind of kinds) {
      const count = Math.max(1, Math.round((Number(values.readers) * kind.share) / 37))
      for (let index = 0; index < count; index++) readers.push(await Reader.open(kind, httpPort, pgPort))
    }
    await new Promise((resolve) => setTimeout(resolve, settleMs))
    for (let ms = 0; ms < restMsMax && (await heldByQueries(httpPort)) - idle > heldMax; ms += settleMs)
      await new Promise((resolve) => setTimeout(resolve, settleMs))
    const during: Times = {}
    let held = 0
    const end = performance.now() + Number(values.seconds) * 1000
    do {
      await runProbes(httpPort, during).catch((error: unknown) => fail(String(error)))
      held = Math.max(held, (await heldByQueries(httpPort)) - idle)
    } while (performance.now() < end)
    const rss = usageOf(pid).rssBytes / MIB
    process.stdout.write(
      `${readers.length} stalled readers hold ${(held / MIB).toFixed(1)} MiB, RSS ${rss.toFixed(0)} MiB\n`,
    )
    if (held > heldMax) fail(`they hold more than ${heldMax / MIB} MiB`)
    for (const name of Object.keys(probes)) {
      const [usual, now] = [median(before[name] ?? []), median(during[name] ?? [])]
      process.stdout.write(`${name}: ${usual.toFixed(0)} ms before, ${now.toFixed(0)} ms beside them\n`)
      if (now > usual * slowerMax + slackMs) fail(`${name} is slow`)
    }
    await readOn(readers, httpPort, pgPort, fail)
    const left = (await heldByQueries(httpPort)) - idle
    if (left > MIB) fail(`${left} bytes are held when all have read`)
  } finally {
    await peer.end()
  }
  process.stdout.write(failures.length === 0 ? 'all is right\n' : `${failures.length} things are wrong\n`)
  if (failures.length > 0) process.exitCode = 1
}

/** All of them get what one that never stopped gets. */
async function readOn(
  readers: readonly Reader[],
  httpPort: number,
  pgPort: number,
  fail: (text: string) => void,
): Promise<void> {
  for (const kind of kinds) {
    const usual = await (await Reader.open(kind, httpPort, pgPort)).read()
    for (const reader of readers.filter((candidate) => candidate.kind === kind.name)) {
      const reading = await reader.read().catch((error: unknown) => ({ bytes: -1, hash: '', end: String(error) }))
      // Of JSON over HTTP the sizes of chunks and the times at the end differ.
      const same =
        kind.name === 'pg' ? reading.hash === usual.hash : Math.abs(reading.bytes - usual.bytes) < usual.bytes / 500
      if (!same) fail(`a reader of ${kind.name} got ${reading.bytes} bytes for ${usual.bytes} [end=${reading.end}]`)
    }
  }
}

await main()
