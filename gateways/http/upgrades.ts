// Handles HTTP requests that become WebSocket connections: checks them like any other request, then passes the
// connection to the handler of its protocol.
//
// A request is refused with an ordinary HTTP response: 400 for a protocol version that does not exist, 401 for missing
// or wrong credentials, 403 for a missing right or a page of another site, 503 while there are too many connections.

import { type IncomingMessage, type Server, STATUS_CODES } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { framingFault } from '../common/http-framing.js'
import { limitSettings } from '../common/listen.js'
import type { Principal } from '../common/users.js'
import { refusalOfWrite, sessionOf } from './access.js'
import type { HttpContext } from './context.js'
import { admit, isStrangeHost } from './guard.js'
import { mayWrite, serveWriter } from './qwp-write.js'
import { headerText } from './request-body.js'
import type { HttpConnection } from './sockets.js'
import { acceptWebSocket, closeCodes, type MessageSocket, pathOf } from './web-sockets.js'

const writePaths = ['/write/v4', '/api/v4/write'] as const
export const upgradePaths: ReadonlySet<string> = new Set(writePaths)

/** The only version of the protocol. */
const version = 1
/** A frame's header takes at most this much of the receive buffer. */
const frameHeaderBytes = 14
/** Half of the ingest ring, less what a message takes besides its bytes. */
const messageBytesMax = 16 * 1024 ** 2 - 4096

interface Open {
  readonly socket: MessageSocket
  readonly principal: Principal
  readonly served: Promise<void>
}

export interface Upgrades {
  /** Closes connections of users that have lost the right to write. */
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
    const upgrade = { request, duplex, head, held }
    takeUpgrade(context, upgrade, (principal, socket) => {
      const wantsDurable = asksDurable(context, request)
      const served = serveWriter(context, { held, principal, socket, wantsDurable }, leaving.signal)
      const entry = { socket, principal, served }
      open.add(entry)
      void served.finally(() => open.delete(entry))
    }).catch((error: Error) => {
      context.log('E', 'qwp', `upgrade failed: ${error.stack}`)
      duplex.destroy()
    })
  })
  const recheck = (): void => {
    for (const { socket, principal } of open) {
      if (!mayWrite(context, principal)) socket.close(closeCodes.policy, 'the right to write was revoked')
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
}

async function takeUpgrade(
  context: HttpContext,
  { request, duplex, head, held }: Upgrade,
  opened: (principal: Principal, socket: MessageSocket) => void,
): Promise<void> {
  const { connection } = held
  const refuse = (status: number, message: string, headers: readonly string[] = []): void => {
    context.refusals.note(request.socket, message)
    refuseUpgrade(duplex, status, message, headers)
  }
  const fault = framingFault(request)
  if (fault !== null) return refuse(fault.status, fault.message)
  if (isStrangeHost(context, request)) return refuse(403, 'the Host header does not name this server')
  const principal = await admit(context, request, pathOf(request))
  connection.principal = principal?.user ?? null
  if (principal === null) return refuse(401, 'credentials are missing or wrong', [challenge])
  const session = sessionOf(principal, request.headers, context.options, connection.trace)
  const refusal = refusalOfWrite({ session })
  if (refusal !== null) return refuse(403, refusal)
  const asked = headerText(request, 'x-qwp-max-version') ?? '1'
  if (!/^[1-9][0-9]{0,8}$/.test(asked))
    return refuse(400, `invalid X-QWP-Max-Version, expected a number [value=${asked}]`)
  const limit = held.place.work()
  if (limit !== null)
    return refuse(503, `too many connections [setting=${limitSettings('http')[limit]}]`, ['Retry-After: 1'])
  const client = headerText(request, 'x-qwp-client-id') ?? ''
  connection.application = () => client
  // Without a request the connection counts as busy.
  held.exchange = null
  const bytesMax = Math.min(context.options.receiveBufferBytes - frameHeaderBytes, messageBytesMax)
  const headers = [`X-QWP-Version: ${version}`, `X-QWP-Max-Batch-Size: ${bytesMax}`]
  if (asksDurable(context, request)) headers.push('X-QWP-Durable-Ack: enabled')
  const handshake = { request, socket: duplex, head, headers, messageBytesMax: bytesMax }
  acceptWebSocket(handshake, (socket) => opened(principal, socket))
}

const challenge = 'WWW-Authenticate: Basic realm="penstock", charset="UTF-8"'

function asksDurable({ options }: HttpContext, request: IncomingMessage): boolean {
  return options.qwpDurable && headerText(request, 'x-qwp-request-durable-ack')?.toLowerCase() === 'true'
}

function refuseUpgrade(socket: Duplex, status: number, message: string, headers: readonly string[]): void {
  const body = Buffer.from(JSON.stringify({ error: message, message }))
  const lines = [
    `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}`,
    'Connection: close',
    'Content-Type: application/json; charset=utf-8',
    `Content-Length: ${body.length}`,
    ...headers,
  ]
  socket.end(Buffer.concat([Buffer.from(`${lines.join('\r\n')}\r\n\r\n`), body]))
}
