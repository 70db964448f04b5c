// Load generator for the PostgreSQL wire protocol, run as a separate process. It prepares all messages before the clock
// starts, sends them over one or several sockets, and only counts the responses. Prints `ready`, and at the end a line
// of JSON: {"seconds", "cpuSeconds", "rows", "bytes"}. Its argument is PgLoad as JSON.

import { once } from 'node:events'
import { type Answers, type PgClient, signIn } from './pg-client.js'
import {
  copyBlocks,
  type Flight,
  insertBatches,
  pointQueries,
  selection,
  textInserts,
  transactions,
  type WireJob,
} from './pg-messages.js'

export interface PgLoad {
  readonly port: number
  readonly table: string
  readonly work:
    | 'batches'
    | 'texts'
    | 'single'
    | 'transaction'
    | 'transaction texts'
    | 'copy'
    | 'select text'
    | 'select binary'
    | 'points'
  readonly rows: number
  /** Those that share the work: whoever has its answer sends what is next. */
  readonly connections: number
}

function jobOf({ work, table, rows }: PgLoad): WireJob {
  switch (work) {
    case 'batches':
      return insertBatches(table, rows, 1000)
    case 'single':
      return insertBatches(table, rows, 1)
    case 'texts':
      return textInserts(table, rows, 1000)
    case 'transaction':
    case 'transaction texts':
      return transactions(table, rows, 1000, work === 'transaction')
    case 'copy':
      return copyBlocks(table, rows)
    case 'select text':
    case 'select binary':
      return selection(table, work === 'select binary')
    case 'points':
      return pointQueries(table, rows)
  }
}

/** Signed in, and behind what the job has to say first. */
async function session(port: number, { before, afterBefore }: WireJob): Promise<PgClient> {
  const client = await signIn(port)
  const { socket, answers } = client
  if (before !== null) {
    socket.write(before)
    await answers.until(afterBefore, answers.count(afterBefore) + 1)
  }
  return client
}

/** Takes flights from those that are left until there are none. */
async function send({ socket, answers }: PgClient, flights: Iterator<Flight>, waits: boolean): Promise<void> {
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
