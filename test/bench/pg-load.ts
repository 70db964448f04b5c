// Load generator for the PostgreSQL wire protocol, run as a separate process. It prepares all messages before the clock
// starts, sends them over one or several sockets, and only counts the responses. Prints `ready`, and at the end a line
// of JSON: {"seconds", "cpuSeconds", "rows", "bytes"}. Its argument is PgLoad as JSON.

import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import {
  copyBlocks,
  type Flight,
  insertBatches,
  pointQueries,
  selection,
  textInserts,
  type WireJob,
} from './pg-messages.js'

export interface PgLoad {
  readonly port: number
  readonly table: string
  readonly work: 'batches' | 'texts' | 'single' | 'copy' | 'select text' | 'select binary' | 'points'
  readonly rows: number
  /** Those that share the work: whoever has its answer sends what is next. */
  readonly connections: number
}

/** Walks over the messages of the server. */
class Answers {
  /** Messages by the code of their type. */
  readonly counts = new Float64Array(256)
  bytes = 0
  failure: string | null = null
  readonly #socket: Socket
  /** Bytes of the message under way that have not come yet. */
  #pending = 0
  #head: Buffer = Buffer.alloc(0)
  #news: (() => void) | null = null

  constructor(socket: Socket) {
    this.#socket = socket
    socket.on('data', (chunk: Buffer) => this.#take(chunk))
    socket.on('close', () => {
      this.failure ??= 'the server closed the connection'
      this.#news?.()
    })
  }

  count(type: string): number {
    return this.counts[type.charCodeAt(0)]!
  }

  /** Until so many messages of the type have come. */
  async until(type: string, count: number): Promise<void> {
    while (this.count(type) < count) {
      if (this.failure !== null) throw new Error(this.failure)
      await new Promise<void>((resolve) => {
        this.#news = resolve
      })
    }
    if (this.failure !== null) throw new Error(this.failure)
  }

  #take(chunk: Buffer): void {
    this.bytes += chunk.length
    let bytes = chunk
    if (this.#head.length > 0) {
      bytes = Buffer.concat([this.#head, chunk])
      this.#head = Buffer.alloc(0)
    }
    let at = Math.min(this.#pending, bytes.length)
    this.#pending -= at
    for (; bytes.length - at >= 5; ) {
      const type = bytes[at]!
      const end = at + 1 + bytes.readUInt32BE(at + 1)
      this.counts[type] = this.counts[type]! + 1
      if (type === 69) this.failure ??= bytes.toString('latin1', at + 5, Math.min(end, bytes.length))
      // COPY: the server is ready for data; a password is asked for.
      if (type === 82 && end <= bytes.length && bytes.readInt32BE(at + 5) === 3) this.#socket.write(password)
      this.#pending = Math.max(0, end - bytes.length)
      at = Math.min(end, bytes.length)
    }
    if (at < bytes.length) this.#head = bytes.subarray(at)
    this.#news?.()
    this.#news = null
  }
}

const password = Buffer.from('p\0\0\0\x0aquest\0', 'latin1')

function startUp(): Buffer {
  const parameters = Buffer.from('user\0admin\0database\0qdb\0\0')
  const head = Buffer.alloc(8)
  head.writeInt32BE(8 + parameters.length, 0)
  head.writeInt32BE(196_608, 4)
  return Buffer.concat([head, parameters])
}

function jobOf({ work, table, rows }: PgLoad): WireJob {
  switch (work) {
    case 'batches':
      return insertBatches(table, rows, 1000)
    case 'single':
      return insertBatches(table, rows, 1)
    case 'texts':
      return textInserts(table, rows, 1000)
    case 'copy':
      return copyBlocks(table, rows)
    case 'select text':
    case 'select binary':
      return selection(table, work === 'select binary')
    case 'points':
      return pointQueries(table, rows)
  }
}

interface Session {
  readonly socket: Socket
  readonly answers: Answers
}

/** Signed in, and behind what the job has to say first. */
async function session(port: number, { before, afterBefore }: WireJob): Promise<Session> {
  const socket = connect({ port, host: '127.0.0.1', noDelay: true })
  await once(socket, 'connect')
  const answers = new Answers(socket)
  socket.write(startUp())
  await answers.until('Z', 1)
  if (before !== null) {
    socket.write(before)
    await answers.until(afterBefore, answers.count(afterBefore) + 1)
  }
  return { socket, answers }
}

/** Takes flights from those that are left until there are none. */
async function send({ socket, answers }: Session, flights: Iterator<Flight>, waits: boolean): Promise<void> {
  let readies = answers.count('Z')
  for (let flight = flights.next(); flight.done !== true; flight = flights.next()) {
    const { bytes, readies: expected } = flight.value
    readies += expected
    const drained = socket.write(bytes)
    if (waits) await answers.until('Z', readies)
    else if (!drained) await once(socket, 'drain')
  }
  await answers.until('Z', readies)
}

async function main(): Promise<void> {
  const load = JSON.parse(process.argv[2] ?? '{}') as PgLoad
  const job = jobOf(load)
  const sessions = await Promise.all(Array.from({ length: load.connections }, () => session(load.port, job)))
  for (const { answers } of sessions) answers.bytes = 0
  process.stdout.write('ready\n')
  const cpu = process.cpuUsage()
  const start = performance.now()
  const flights = job.flights.values()
  await Promise.all(sessions.map((each) => send(each, flights, job.waits)))
  const seconds = (performance.now() - start) / 1000
  const used = process.cpuUsage(cpu)
  for (const { socket } of sessions) socket.destroy()
  const sum = (of: (answers: Answers) => number): number =>
    sessions.reduce((total, { answers }) => total + of(answers), 0)
  const measurement = {
    seconds,
    cpuSeconds: (used.user + used.system) / 1e6,
    rows: sum((answers) => answers.count('D')),
    bytes: sum((answers) => answers.bytes),
  }
  process.stdout.write(`${JSON.stringify(measurement)}\n`)
}

await main()
