// Handles HTTP requests that become WebSocket connections: checks them like any other request, then passes the
// connection to the handler of its protocol.
//
// A request is refused with an ordinary HTTP response: 400 for an invalid header, 401 for missing or wrong credentials,
// 403 for a missing right, an unknown Host name or a page of another site, 501 for an unknown transfer coding, 503
// while there are too many connections.

import { type IncomingMessage, type Server, STATUS_CODES } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { framingFault } from '../common/http-framing.js'
import { limitSettings } from '../common/listen.js'
import type { Principal } from '../common/users.js'
import { isForeign, refusalOfWrite, sessionOf } from './access.js'
import type { HttpContext } from './context.js'
import { admit, isUnknownHost } from './guard.js'
import { mayRead, readOptionsOf, serveReader } from './qwp-read.js'
import { mayWrite, serveWriter } from './qwp-write.js'
import { headerText } from './request-body.js'
import type { HttpConnection } from './sockets.js'
import { acceptWebSocket, closeCodes, type MessageSocket, pathOf } from './web-sockets.js'

const writePaths = ['/write/v4', '/api/v4/write'] as const
const readPath = '/read/v1'
export const upgradePaths: ReadonlySet<string> = new Set([...writePaths, readPath])

/** The only version of the protocol. */
const version = 1
/** A frame's header takes at most this much of the receive buffer. */
const frameHeaderBytes = 14
/** Half of the ingest ring, less what a message takes besides its bytes. */
const messageBytesMax = 16 * 1024 ** 2 - 4096

interface Open {
  readonly socket: MessageSocket
  readonly served: Promise<void>
  /** Whether the user still has the right to the connection. */
  readonly isPermitted: () => boolean
}

export interface Upgrades {
  /** Closes connections of users that have lost the right to them. */
  recheck(): void
  /** Takes no more messages, and resolves when those that came are answered. */
  close(): Promise<void>
}

export function serveUpgrades(
  server: Server,
  context: HttpContext,
  connections: WeakMap<Socket, HttpConnection>,
): Upgrades {
  const open = new Set<Open>()
  const leaving = new AbortController()
  server.on('upgrade', (request: IncomingMessage, duplex: Duplex, head: Buffer) => {
    duplex.on('error', () => {})
    const held = connections.get(request.socket)
    if (held === undefined || leaving.signal.aborted) {
      duplex.destroy()
      return
    }
    context.registry.touch(held.connection)
    const upgrade = { request, duplex, head, held, leaving: leaving.signal }
    takeUpgrade(context, upgrade, (entry) => {
      open.add(entry)
      void entry.served.finally(() => open.delete(entry))
    }).catch((error: Error) => {
      context.log('E', 'qwp', `upgrade failed: ${error.stack}`)
      duplex.destroy()
    })
  })
  const recheck = (): void => {
    for (const { socket, isPermitted } of open) {
      if (!isPermitted()) socket.close(closeCodes.policy, 'the right to this connection was revoked')
    }
  }
  context.engine.users.onChange(recheck)
  return {
    recheck,
    close: async () => {
      leaving.abort()
      await Promise.all([...open].map(({ served }) => served))
    },
  }
}

interface Upgrade {
  readonly request: IncomingMessage
  readonly duplex: Duplex
  readonly head: Buffer
  readonly held: HttpConnection
  readonly leaving: AbortSignal
}

interface Refusal {
  readonly status: number
  readonly message: string
  readonly headers?: readonly string[]
}

/** How an accepted request is served. */
interface Service {
  readonly headers: readonly string[]
  readonly answersPings: boolean
  readonly isPermitted: () => boolean
  readonly serve: (socket: MessageSocket) => Promise<void>
}

async function takeUpgrade(context: HttpContext, upgrade: Upgrade, opened: (open: Open) => void): Promise<void> {
  const { request, duplex, head, held } = upgrade
  const principal = await principalOf(context, request)
  if ('status' in principal) return refuse(context, upgrade, principal)
  held.connection.principal = principal.user
  const service =
    pathOf(request) === readPath ? readService(context, upgrade, principal) : writeService(context, upgrade, principal)
  if ('status' in service) return refuse(context, upgrade, service)
  const limit = held.place.work()
  if (limit !== null) {
    const message = `too many connections [setting=${limitSettings('http')[limit]}]`
    return refuse(context, upgrade, { status: 503, message, headers: ['Retry-After: 1'] })
  }
  const client = headerText(request, 'x-qwp-client-id') ?? ''
  held.connection.application = () => client
  // Without a request the connection counts as busy.
  held.exchange = null
  const { isPermitted, answersPings } = service
  const headers = [`X-QWP-Version: ${version}`, ...service.headers]
  const bounds = { messageBytesMax: bytesMaxOf(context), answersPings }
  acceptWebSocket({ request, socket: duplex, head, headers, ...bounds }, (socket) =>
    opened({ socket, isPermitted, served: service.serve(socket) }),
  )
}

async function principalOf(context: HttpContext, request: IncomingMessage): Promise<Principal | Refusal> {
  const fault = framingFault(request)
  if (fault !== null) return fault
  if (isUnknownHost(context, request)) return { status: 403, message: 'the Host header does not name this server' }
  const principal = await admit(context, request, pathOf(request))
  if (principal === null) return { status: 401, message: 'credentials are missing or wrong', headers: [challenge] }
  const asked = headerText(request, 'x-qwp-max-version') ?? '1'
  if (/^[1-9][0-9]{0,8}$/.test(asked)) return principal
  return { status: 400, message: `invalid X-QWP-Max-Version, expected a number [value=${asked}]` }
}

function writeService(
  context: HttpContext,
  { request, held, leaving }: Upgrade,
  principal: Principal,
): Service | Refusal {
  const session = sessionOf(principal, request.headers, context.options, held.connection.trace)
  const refusal = refusalOfWrite({ session })
  if (refusal !== null) return { status: 403, message: refusal }
  const wantsDurable = asksDurable(context, request)
  const durable = wantsDurable ? ['X-QWP-Durable-Ack: enabled'] : []
  return {
    headers: [`X-QWP-Max-Batch-Size: ${bytesMaxOf(context)}`, ...durable],
    answersPings: true,
    isPermitted: () => mayWrite(context, principal),
    serve: (socket) => serveWriter(context, { held, principal, socket, wantsDurable }, leaving),
  }
}

function readService(
  context: HttpContext,
  { request, held, leaving }: Upgrade,
  principal: Principal,
): Service | Refusal {
  const { headers } = request
  // Browsers let any page open a WebSocket and read from it.
  if (isForeign(headers, context.options.corsOrigins)) {
    return { status: 403, message: 'a page of another site may not read here [docs=security.md]' }
  }
  const options = readOptionsOf(headers)
  if (typeof options === 'string') return { status: 400, message: options }
  return {
    headers: options.zstdLevel === 0 ? [] : ['X-QWP-Content-Encoding: zstd'],
    answersPings: false,
    isPermitted: () => mayRead(context, principal),
    serve: (socket) => serveReader(context, { held, principal, socket, headers, options }, leaving),
  }
}

function bytesMaxOf({ options }: HttpContext): number {
  return Math.min(options.receiveBufferBytes - frameHeaderBytes, messageBytesMax)
}

const challenge = 'WWW-Authenticate: Basic realm="penstock", charset="UTF-8"'

function asksDurable({ options }: HttpContext, request: IncomingMessage): boolean {
  return options.qwpDurable && headerText(request, 'x-qwp-request-durable-ack')?.toLowerCase() === 'true'
}

function refuse({ refusals }: HttpContext, { request, duplex }: Upgrade, refusal: Refusal): void {
  const { status, message, headers = [] } = refusal
  refusals.note(request.socket, message)
  const body = Buffer.from(JSON.stringify({ error: message, message }))
  const lines = [
    `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}`,
    'Connection: close',
    'Content-Type: application/json; charset=utf-8',
    `Content-Length: ${body.length}`,
    ...headers,
  ]
  duplex.end(Buffer.concat([Buffer.from(`${lines.join('\r\n')}\r\n\r\n`), body]))
}
