// Load generator for line protocol, run as a separate process. Sends rows over several connections. Prints `ready`
// before it connects, and at the end a line of JSON: {"rows", "bytes", "seconds", "cpuSeconds"}. Its argument is
// SenderOptions as JSON.

import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { type LineTemplate, lineTemplate, type RowOrder, type Shape, stampRows, templateOf } from './line-template.js'
import { randomLines } from './random-lines.js'

export interface SenderOptions {
  readonly protocol: 'tcp' | 'http'
  readonly port: number
  readonly connections: number
  readonly rows: number
  readonly templateRows: number
  readonly batchRows: number
  /** A number: the seed of a random shape (random-lines.ts). */
  readonly shape: Shape | number
  readonly order: RowOrder
  readonly table: string
  readonly startSeconds: number
}

/**
 * The next rows of the template, as they lie there unless a socket might still hold them when they are stamped again.
 */
function batch(template: LineTemplate, options: SenderOptions, first: number, count: number): Buffer {
  const from = first % template.rows
  const to = Math.min(template.rows, from + count)
  stampRows(template, options.startSeconds, first - from, from, to)
  const start = from === 0 ? 0 : template.stamps[from - 1]! + 20
  const bytes = template.bytes.subarray(start, template.stamps[to - 1]! + 20)
  return template.rows >= 2 * options.connections * options.batchRows ? bytes : Buffer.from(bytes)
}

interface Cursor {
  next: number
  bytes: number
}

/** The next batch of the load, shared by all connections; null at the end. */
function nextBatch(template: LineTemplate, options: SenderOptions, cursor: Cursor): Buffer | null {
  if (cursor.next >= options.rows) return null
  const untilWrap = template.rows - (cursor.next % template.rows)
  const count = Math.min(options.batchRows, options.rows - cursor.next, untilWrap)
  const bytes = batch(template, options, cursor.next, count)
  cursor.next += count
  cursor.bytes += bytes.length
  return bytes
}

async function sendTcp(template: LineTemplate, options: SenderOptions, cursor: Cursor): Promise<void> {
  const socket: Socket = connect(options.port, '127.0.0.1')
  await once(socket, 'connect')
  for (let bytes = nextBatch(template, options, cursor); bytes !== null; bytes = nextBatch(template, options, cursor)) {
    if (!socket.write(bytes)) await once(socket, 'drain')
  }
  socket.end()
  await once(socket, 'close')
}

/** One request after the other over a kept connection. Written by hand: a client takes more than the rows do. */
async function sendHttp(template: LineTemplate, options: SenderOptions, cursor: Cursor): Promise<void> {
  const socket: Socket = connect(options.port, '127.0.0.1')
  socket.setNoDelay(true)
  await once(socket, 'connect')
  socket.once('end', closedEarly)
  for (let bytes = nextBatch(template, options, cursor); bytes !== null; bytes = nextBatch(template, options, cursor)) {
    socket.cork()
    socket.write(`POST /write HTTP/1.1\r\nHost: 127.0.0.1:${options.port}\r\nContent-Length: ${bytes.length}\r\n\r\n`)
    socket.write(bytes)
    socket.uncork()
    await untilStored(socket)
  }
  socket.off('end', closedEarly)
  socket.end()
  await once(socket, 'close')
}

function closedEarly(): never {
  throw new Error('the server closed a connection')
}

/** An answer 204 has no body. */
async function untilStored(socket: Socket): Promise<void> {
  let answer = ''
  while (!answer.endsWith('\r\n\r\n')) {
    const [chunk] = (await once(socket, 'data')) as [Buffer]
    answer += chunk.toString('latin1')
    if (!answer.startsWith('HTTP/1.1 204')) throw new Error(`the server answered: ${answer}`)
  }
}

async function main(): Promise<void> {
  const options = JSON.parse(process.argv[2] ?? '{}') as SenderOptions
  const { shape, table, order } = options
  const rows = Math.min(options.templateRows, options.rows)
  const template =
    typeof shape === 'number'
      ? templateOf(randomLines(table, shape), rows, order, shape, 1e6)
      : lineTemplate(shape, table, rows, order, 42)
  const cursor: Cursor = { next: 0, bytes: 0 }
  process.stdout.write('ready\n')
  const cpu = process.cpuUsage()
  const start = performance.now()
  const send = options.protocol === 'tcp' ? sendTcp : sendHttp
  await Promise.all(Array.from({ length: options.connections }, () => send(template, options, cursor)))
  const { user, system } = process.cpuUsage(cpu)
  const seconds = (performance.now() - start) / 1000
  process.stdout.write(
    `${JSON.stringify({ rows: options.rows, bytes: cursor.bytes, seconds, cpuSeconds: (user + system) / 1e6 })}\n`,
  )
}

await main()
