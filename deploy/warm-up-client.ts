// The thread that sends the requests of the warm-up (warm-up-http.ts). What V8 learns of sockets on the main thread it
// learns then of those of clients: with sockets of both sides there, two dozen functions of Node's HTTP server had to be
// compiled anew for the first client.

import { connect, type Socket } from 'node:net'
import { parentPort, workerData } from 'node:worker_threads'

/** What the thread is told at its start. */
export interface WarmClientData {
  readonly host: string
  readonly port: number
  readonly token: string
}

/** The path of a request; the thread answers whether all of the answer came, else its connection was closed. */
export type WarmRequest = string
export type WarmReply = boolean

/** Clients come and go: so many requests take one connection. */
const socketRequests = 100

/** Of undici, of curl, and of fetch and browsers, which read compressed answers. */
const usualHeaders: readonly string[] = [
  'host: 127.0.0.1\r\nconnection: keep-alive\r\n',
  'Host: 127.0.0.1\r\nUser-Agent: penstock\r\nAccept: */*\r\n',
  'host: 127.0.0.1\r\nconnection: keep-alive\r\naccept: */*\r\nuser-agent: penstock\r\naccept-encoding: gzip, deflate\r\n',
]

class WarmClient {
  readonly #data: WarmClientData
  readonly #reply: (reply: WarmReply) => void
  #socket: Socket | null = null
  #requests = 0
  #received: Buffer = Buffer.alloc(0)

  constructor(data: WarmClientData, reply: (reply: WarmReply) => void) {
    this.#data = data
    this.#reply = reply
  }

  /** One at a time. */
  ask(path: WarmRequest): void {
    const { token } = this.#data
    if (this.#requests % socketRequests === 0) this.#leave()
    this.#socket ??= this.#open()
    const headers = usualHeaders[Math.floor(this.#requests++ / socketRequests) % usualHeaders.length]
    this.#socket.write(`GET ${path} HTTP/1.1\r\n${headers}Authorization: Bearer ${token}\r\n\r\n`)
  }

  #open(): Socket {
    const socket = connect(this.#data.port, this.#data.host).setNoDelay()
    socket.on('data', (bytes: Buffer) => this.#take(bytes))
    socket.on('close', () => {
      this.#socket = null
      this.#received = Buffer.alloc(0)
      this.#reply(false)
    })
    socket.on('error', () => {})
    return socket
  }

  #leave(): void {
    this.#socket?.removeAllListeners('close').end()
    this.#socket = null
  }

  #take(bytes: Buffer): void {
    this.#received = this.#received.length === 0 ? bytes : Buffer.concat([this.#received, bytes])
    if (!isWhole(this.#received)) return
    this.#received = Buffer.alloc(0)
    this.#reply(true)
  }
}

/** Whether an answer is there to its end, which is told by its length or by an empty chunk. */
export function isWhole(answer: Buffer): boolean {
  const body = answer.indexOf('\r\n\r\n') + 4
  if (body < 4) return false
  const length = /\r\ncontent-length: (\d+)/i.exec(answer.toString('latin1', 0, body))?.[1]
  if (length !== undefined) return answer.length >= body + Number(length)
  for (let at = body; ; ) {
    const end = answer.indexOf('\r\n', at)
    if (end < 0) return false
    const bytes = Number.parseInt(answer.toString('latin1', at, end), 16)
    if (bytes === 0) return answer.indexOf('\r\n\r\n', end) >= 0
    at = end + 2 + bytes + 2
  }
}

const parent = parentPort
if (parent !== null) {
  const client = new WarmClient(workerData as WarmClientData, (reply) => parent.postMessage(reply))
  parent.on('message', (path: WarmRequest) => client.ask(path))
}
