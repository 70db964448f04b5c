// HTTP for the warm-up: a gateway of its own on a port that the system chooses, open for as long as the warm-up lasts, so
// that its requests are in no list, log or counter of the server. It lets in who knows a token that is made here and told
// to nobody, as a user that may only read. Requests go over a real socket: what V8 learns of it holds for those of clients.

import { randomBytes } from 'node:crypto'
import { connect, type Socket } from 'node:net'
import type { Rights } from '../engine/base/rights.js'
import { Authenticator } from '../gateways/common/auth.js'
import { ConnectionRegistry } from '../gateways/common/connections.js'
import { gatewayCounters } from '../gateways/common/metric.js'
import { noPages } from '../gateways/common/pages.js'
import { noUsers } from '../gateways/common/users.js'
import { type HttpGateway, openHttpGateway } from '../gateways/http/server.js'

type Options = Parameters<typeof openHttpGateway>[1]
type Services = Pick<Parameters<typeof openHttpGateway>[2], 'engine' | 'metrics' | 'clock' | 'log'>

/** Whose statements these are; nobody else's session has this very object. */
export const warmRights: Rights = { read: true, write: false, admin: false }

const loopback = '127.0.0.1'
const closeMs = 1000

export class WarmHttp {
  readonly port: number
  readonly #gateway: HttpGateway
  readonly #socket: Socket
  readonly #head: string
  #received: Buffer = Buffer.alloc(0)
  #answered: ((error: Error | null) => void) | null = null

  constructor(gateway: HttpGateway, socket: Socket, token: string) {
    this.port = gateway.address.port
    this.#gateway = gateway
    this.#socket = socket
    this.#head = ` HTTP/1.1\r\nHost: ${loopback}\r\nAuthorization: Bearer ${token}\r\n\r\n`
    socket.on('data', (bytes: Buffer) => this.#take(bytes))
    socket.on('close', () => this.#done(closed()))
    socket.on('error', () => {})
  }

  /** Resolves behind the last byte of the answer, whatever it says. */
  ask(path: string): Promise<void> {
    if (this.#socket.destroyed) return Promise.reject(closed())
    return new Promise((resolve, reject) => {
      this.#answered = (error) => (error === null ? resolve() : reject(error))
      this.#socket.write(`GET ${path}${this.#head}`)
    })
  }

  async close(): Promise<void> {
    this.#socket.destroy()
    await this.#gateway.close(closeMs)
  }

  #take(bytes: Buffer): void {
    this.#received = this.#received.length === 0 ? bytes : Buffer.concat([this.#received, bytes])
    if (!isWhole(this.#received)) return
    this.#received = Buffer.alloc(0)
    this.#done(null)
  }

  #done(error: Error | null): void {
    const answered = this.#answered
    this.#answered = null
    answered?.(error)
  }
}

function closed(): Error {
  return new Error('the connection of the warm-up is closed')
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

export async function openWarmHttp(options: Options, services: Services): Promise<WarmHttp> {
  const token = randomBytes(32).toString('hex')
  const user = { user: 'system', rights: warmRights, verifier: null }
  const users = { ...noUsers, byToken: (told: string) => (told === token ? user : undefined) }
  const gateway = await openHttpGateway(
    { host: loopback, port: 0 },
    { ...options, readOnly: true, connectionsMax: 1, hostNames: null, logQueries: false, busyPoll: false },
    {
      ...services,
      ...{ auth: new Authenticator({ users, configured: [], anonymous: null }), tls: null, pages: noPages },
      ...{ registry: new ConnectionRegistry(services.clock, 0), counters: gatewayCounters(), openDump: null },
    },
  )
  const socket = connect(gateway.address.port, loopback).setNoDelay().unref()
  return new WarmHttp(gateway, socket, token)
}
