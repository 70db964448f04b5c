// Load generator that sends small queries from many clients; it runs as a separate process. Every connection sends its
// next request when the response to the previous one is complete. All requests are encoded before the clock starts. The
// generator does not decode responses, it only looks for their end: a complete client library would take longer for a
// request than the server. Prints `ready` after the warm-up, and at the end ClientMeasurement as JSON. Its argument is
// ClientLoad as JSON.

import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { signIn } from './pg-client.js'
import { execution, preparation, simpleQuery } from './pg-messages.js'

export interface ClientLoad {
  readonly protocol: 'http' | 'simple' | 'prepared'
  readonly port: number
  /** With `$1` where the values go, which take turns; without values it is sent as it is. */
  readonly sql: string
  readonly values: readonly string[]
  readonly requests: number
  readonly connections: number
}

export interface ClientMeasurement {
  readonly seconds: number
  readonly cpuSeconds: number
  /** Milliseconds from a request to its whole answer. */
  readonly p50: number
  readonly p99: number
}

const warmRequests = 3000

/** Sends one request; resolves when its answer is complete. */
type Ask = (request: Buffer) => Promise<void>

function requestsOf({ protocol, sql, values }: ClientLoad): Buffer[] {
  if (protocol === 'prepared') return values.length === 0 ? [execution([])] : values.map((value) => execution([value]))
  const texts = values.length === 0 ? [sql] : values.map((value) => sql.replace('$1', `'${value}'`))
  return texts.map(protocol === 'simple' ? simpleQuery : httpRequest)
}

function httpRequest(sql: string): Buffer {
  return Buffer.from(`GET /exec?query=${encodeURIComponent(sql)} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n`)
}

async function open({ protocol, port, sql }: ClientLoad): Promise<{ readonly socket: Socket; readonly ask: Ask }> {
  if (protocol === 'http') return openHttp(port)
  const { socket, answers } = await signIn(port)
  let readies = answers.count('Z')
  const ask = (request: Buffer): Promise<void> => {
    socket.write(request)
    readies++
    return answers.until('Z', readies)
  }
  if (protocol === 'prepared') await ask(preparation(sql))
  return { socket, ask }
}

async function openHttp(port: number): Promise<{ readonly socket: Socket; readonly ask: Ask }> {
  const socket = connect({ port, host: '127.0.0.1', noDelay: true })
  await once(socket, 'connect')
  let answer: Buffer | null = null
  let done: () => void = () => {}
  let failed: (error: Error) => void = () => {}
  socket.on('data', (chunk: Buffer) => {
    answer = answer === null ? chunk : Buffer.concat([answer, chunk])
    if (!isWhole(answer)) return
    if (answer.toString('latin1', 9, 12) === '200') done()
    else failed(new Error(answer.toString('latin1')))
    answer = null
  })
  socket.on('close', () => failed(new Error('the server closed the connection')))
  const ask = (request: Buffer): Promise<void> => {
    socket.write(request)
    return new Promise((resolve, reject) => {
      done = resolve
      failed = reject
    })
  }
  return { socket, ask }
}

/** Whether an answer has all of its Content-Length, or its last chunk. */
function isWhole(answer: Buffer): boolean {
  const head = answer.indexOf('\r\n\r\n')
  if (head < 0) return false
  const length = /\r\ncontent-length: *(\d+)/i.exec(answer.toString('latin1', 0, head))
  // QuestDB writes the size of the last chunk as `00`.
  if (length === null) return /\r\n0+\r\n\r\n$/.test(answer.toString('latin1', answer.length - 8))
  return answer.length === head + 4 + Number(length[1])
}

/** Sends `count` requests over all connections; returns the sorted milliseconds of each. */
async function run(asks: readonly Ask[], requests: readonly Buffer[], count: number): Promise<Float64Array> {
  const times = new Float64Array(count)
  let next = 0
  const work = async (ask: Ask): Promise<void> => {
    while (next < count) {
      const index = next++
      const begun = performance.now()
      await ask(requests[index % requests.length] as Buffer)
      times[index] = performance.now() - begun
    }
  }
  await Promise.all(asks.map(work))
  return times.sort()
}

async function main(): Promise<void> {
  const load = JSON.parse(process.argv[2] ?? '{}') as ClientLoad
  const requests = requestsOf(load)
  const clients = await Promise.all(Array.from({ length: load.connections }, () => open(load)))
  const asks = clients.map(({ ask }) => ask)
  await run(asks, requests, Math.min(warmRequests, load.requests))
  process.stdout.write('ready\n')
  const cpu = process.cpuUsage()
  const start = performance.now()
  const times = await run(asks, requests, load.requests)
  const seconds = (performance.now() - start) / 1000
  const used = process.cpuUsage(cpu)
  for (const { socket } of clients) socket.destroy()
  const at = (share: number): number => times[Math.min(times.length - 1, Math.floor(times.length * share))] ?? 0
  const measurement: ClientMeasurement = {
    seconds,
    cpuSeconds: (used.user + used.system) / 1e6,
    p50: at(0.5),
    p99: at(0.99),
  }
  process.stdout.write(`${JSON.stringify(measurement)}\n`)
}

await main()
