// HTTP for the warm-up: a gateway of its own on a port that the system chooses, open for as long as the warm-up lasts, so
// that its requests are in no list, log or counter of the server. It lets in who knows a token that is made here and told
// to nobody, as a user that may only read. Requests come over real sockets from a thread of their own (warm-up-client.ts):
// what V8 learns of them holds for those of clients.

import { randomBytes } from 'node:crypto'
import { Worker } from 'node:worker_threads'
import { compiledModule } from '../engine/base/module-url.js'
import type { Rights } from '../engine/base/rights.js'
import { Authenticator } from '../gateways/common/auth.js'
import { ConnectionRegistry } from '../gateways/common/connections.js'
import { gatewayCounters } from '../gateways/common/metric.js'
import { noPages } from '../gateways/common/pages.js'
import { noUsers } from '../gateways/common/users.js'
import { type HttpGateway, openHttpGateway } from '../gateways/http/server.js'
import type { WarmClientData, WarmReply, WarmRequest } from './warm-up-client.js'

type Options = Parameters<typeof openHttpGateway>[1]
type Services = Pick<Parameters<typeof openHttpGateway>[2], 'engine' | 'metrics' | 'clock' | 'log'>

/** Whose statements these are; nobody else's session has this very object. */
export const warmRights: Rights = { read: true, write: false, admin: false }

const loopback = '127.0.0.1'
const closeMs = 1000
/** A connection follows the other before that is gone. */
const connectionsMax = 2

/** The thread needs little: it holds one answer. */
const resourceLimits = { maxOldGenerationSizeMb: 64, maxYoungGenerationSizeMb: 4 }

export class WarmHttp {
  readonly port: number
  readonly #gateway: HttpGateway
  readonly #client: Worker
  #answered: ((whole: WarmReply) => void) | null = null
  #closed = false

  constructor(gateway: HttpGateway, client: Worker) {
    this.port = gateway.address.port
    this.#gateway = gateway
    this.#client = client
    client.on('message', (whole: WarmReply) => this.#done(whole))
    client.on('error', () => {})
    client.on('exit', () => {
      this.#closed = true
      this.#done(false)
    })
  }

  /** Resolves behind the last byte of the answer, whatever it says. */
  ask(path: WarmRequest): Promise<void> {
    if (this.#closed) return Promise.reject(closed())
    return new Promise((resolve, reject) => {
      this.#answered = (whole) => (whole ? resolve() : reject(closed()))
      this.#client.postMessage(path)
    })
  }

  async close(): Promise<void> {
    this.#closed = true
    await this.#client.terminate()
    await this.#gateway.close(closeMs)
  }

  #done(whole: WarmReply): void {
    const answered = this.#answered
    this.#answered = null
    answered?.(whole)
  }
}

function closed(): Error {
  return new Error('the connection of the warm-up is closed')
}

export async function openWarmHttp(options: Options, services: Services): Promise<WarmHttp> {
  const token = randomBytes(32).toString('hex')
  const user = { user: 'system', rights: warmRights, verifier: null }
  const users = { ...noUsers, byToken: (told: string) => (told === token ? user : undefined) }
  const gateway = await openHttpGateway(
    { host: loopback, port: 0 },
    { ...options, readOnly: true, connectionsMax, connectionsPerAddressMax: 0, hostNames: null, logQueries: false },
    {
      ...services,
      ...{ auth: new Authenticator({ users, configured: [], anonymous: null }), tls: null, pages: noPages },
      ...{ registry: new ConnectionRegistry(services.clock, 0), counters: gatewayCounters(), openDump: null },
    },
  )
  const workerData: WarmClientData = { ...gateway.address, token }
  const client = new Worker(compiledModule(import.meta.url, './warm-up-client.js'), { workerData, resourceLimits })
  client.unref()
  return new WarmHttp(gateway, client)
}
