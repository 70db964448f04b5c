// Manages the sockets of the HTTP gateway: plain or TLS, registered in sys.connections, and closed when a client
// stalls.
//
// Timeouts apply while the server waits for the client: to a handshake or request headers that do not arrive, a body
// that stops, or a response that is not read. They do not apply while a statement runs. After a final response a
// connection lingers (common/linger.ts). When there are too many connections, those that have not completed a request
// are evicted (common/connection-slots.ts).

import { createServer, type IncomingMessage, type Server, type ServerOptions, type ServerResponse } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import { Socket } from 'node:net'
import { assert } from '../../engine/base/assert.js'
import { type ConnectionSlot, ConnectionSlots } from '../common/connection-slots.js'
import type { Connection } from '../common/connections.js'
import { Handshakes } from '../common/handshakes.js'
import { respondToMalformed } from '../common/http-framing.js'
import { linger, lingerLimits } from '../common/linger.js'
import { limitSettings, remoteAddress } from '../common/listen.js'
import type { TlsKeys } from '../common/tls.js'
import type { HttpContext, HttpOptions } from './context.js'
import { HttpResponse } from './messages.js'

/** Connections beyond the limit that may still send a request and get a 503. */
const spareConnections = 64
const headersMs = 60_000
const handshakeMs = 10_000
const checkEveryMs = 2000
const graceMs = 1000
/** Every response starts with these bytes. */
const responseBeginning = 'HTTP/1.1 '
/**
 * When to probe a half-closed client to find out whether it has closed its socket: a closed socket answers the first
 * byte with a reset, and the next write reports that reset.
 */
const probesMs = [50, 150, 1000]

/** An accepted connection that has completed its TLS handshake, if any. */
export interface HttpConnection {
  readonly connection: Connection
  readonly place: ConnectionSlot
  /** The most recent request. */
  exchange: { readonly request: IncomingMessage; readonly response: ServerResponse } | null
}

export function createHttpServer(options: ServerOptions, tls: TlsKeys | null): Server {
  const shared = {
    ...{ ServerResponse: HttpResponse, headersTimeout: headersMs, connectionsCheckingInterval: checkEveryMs },
    ...options,
  }
  if (tls === null) return answeringHalfClosed(createServer(shared))
  const server = createTlsServer({ ...shared, ...tls.options, handshakeTimeout: handshakeMs, allowHalfOpen: true })
  tls.onChange((changed) => server.setSecureContext(changed))
  return answeringHalfClosed(server)
}

/** Clients such as `nc -N` close their side after the request; they still get the whole response. */
function answeringHalfClosed<Kind extends Server>(server: Kind): Kind {
  return Object.assign(server, { httpAllowHalfOpen: true })
}

export function httpSlots(options: HttpOptions, nowMs: () => number): ConnectionSlots {
  return new ConnectionSlots(slotLimits(options), { spare: spareConnections, nowMs })
}

export function slotLimits({ connectionsMax, connectionsPerAddressMax }: HttpOptions) {
  return { max: connectionsMax, perAddressMax: connectionsPerAddressMax }
}

/** An accepted connection before its TLS handshake. */
interface Accepted {
  readonly place: ConnectionSlot
  /** The socket that carries HTTP: the accepted socket or its TLS socket. */
  talking: Socket
  held: HttpConnection | null
}

interface Admitted {
  readonly connections: WeakMap<Socket, HttpConnection>
  /** Ends connections amid their TLS handshake, of which node:http does not know. */
  readonly endHandshakes: () => void
}

/** Admits connections. */
export function admitConnections(server: Server, context: HttpContext): Admitted {
  const { registry, tls, clock } = context
  const connections = new WeakMap<Socket, HttpConnection>()
  const handshakes = new Handshakes<Accepted>()
  server.on('connection', (socket: Socket) => {
    const entered = context.slots.enter({
      address: socket.remoteAddress,
      idleMs: () => idleMs(accepted.held, clock.nowMicros()),
      dismiss: (reason) => {
        if (accepted.held !== null) registry.close(accepted.held.connection, reason)
        accepted.talking.destroy()
      },
    })
    if (typeof entered === 'string') {
      registry.reject(description(socket, tls !== null), limitSettings('http')[entered])
      socket.destroy()
      return
    }
    const accepted: Accepted = { place: entered, talking: socket, held: null }
    socket.once('close', () => entered.leave())
    if (tls === null) serveConnection(accepted, socket, context, connections)
    else handshakes.begin(socket, accepted)
  })
  server.on('secureConnection', (socket: Socket) => {
    const accepted = handshakes.complete(socket)
    if (accepted === undefined) socket.destroy()
    else serveConnection(accepted, socket, context, connections)
  })
  return { connections, endHandshakes: () => handshakes.end() }
}

function serveConnection(
  accepted: Accepted,
  socket: Socket,
  { registry, tls }: HttpContext,
  connections: WeakMap<Socket, HttpConnection>,
): void {
  const connection = registry.open(description(socket, tls !== null))
  const held: HttpConnection = { connection, place: accepted.place, exchange: null }
  accepted.talking = socket
  accepted.held = held
  connections.set(socket, held)
  socket.once('close', (failed) => registry.close(connection, failed ? 'connection broken' : null))
  // node:http calls this after a response that ends the connection.
  const destroySoon = (): void => {
    held.place.depart()
    if (held.exchange?.request.complete === false) resumeLater(held.exchange.request)
    linger(socket, connection.principal === null ? lingerLimits.stranger : lingerLimits.known)
  }
  Object.assign(socket, { destroySoon })
}

function description(socket: Socket, tls: boolean) {
  return {
    protocol: 'http',
    remoteAddress: remoteAddress(socket),
    bytesIn: () => socket.bytesRead,
    bytesOut: () => socket.bytesWritten,
    tls,
  } as const
}

/** Resumes in a later turn, because the previous reader releases the body only then. */
export function resumeLater(request: IncomingMessage): void {
  setImmediate(() => request.resume())
}

/** How long the connection has been idle. */
function idleMs(held: HttpConnection | null, nowMicros: number): number {
  const { exchange = null, connection = null } = held ?? {}
  if (exchange === null || connection === null) return 0
  if (!exchange.request.complete || !exchange.response.writableFinished) return 0
  return (nowMicros - connection.lastActiveAtMicros) / 1000
}

/**
 * Ends a connection that sent bytes which are not HTTP: with an error response, if earlier responses are complete. No
 * error can be sent in the middle of a response or before TLS is established.
 */
export function endMalformed(socket: Socket, held: HttpConnection | undefined, status: string): void {
  const response = held?.exchange?.response
  const isResponding = response?.headersSent === true && !response.writableEnded
  if (held === undefined || isResponding || !socket.writable) {
    socket.destroy()
    return
  }
  held.place.depart()
  const hasResponded = response?.headersSent === true && held.exchange?.request.complete === false
  respondToMalformed(socket, hasResponded ? null : status)
}

/**
 * Detects whether a half-closed client is still there by sending it the first bytes of the response one at a time.
 * The response itself then omits them.
 */
function probe(response: ServerResponse): void {
  let sent = 0
  for (const ms of probesMs) {
    const timer = setTimeout(() => {
      const { socket } = response
      if (socket === null || response.headersSent || response.destroyed) return
      if (sent === 0) beginAfter(socket, () => sent)
      Socket.prototype.write.call(socket, responseBeginning.charAt(sent++))
    }, ms)
    response.once('close', () => clearTimeout(timer))
  }
}

/** Drops the first characters of what node:http writes next, which is the response head. */
function beginAfter(socket: Socket, characters: () => number): void {
  const write = (chunk: string, ...rest: []): boolean => {
    Reflect.deleteProperty(socket, 'write')
    assert(chunk.startsWith(responseBeginning), 'M4: a response begins with its head')
    return socket.write(chunk.slice(characters()), ...rest)
  }
  Object.assign(socket, { write })
}

/**
 * How long a client may be quiet: longer than it is told, since its next request may be on the way when the time is
 * over. node:http has a limit of its own between two requests; it is off, because it sets two timers for each request.
 */
export function quietMsMax({ keepAliveMs }: HttpOptions): number {
  return keepAliveMs + graceMs
}

/** Notes the most recent request of a connection. */
export function beginExchange(
  held: HttpConnection,
  request: IncomingMessage,
  response: ServerResponse,
  { keepAliveMs }: HttpOptions,
): void {
  if (held.exchange === null) {
    request.socket.once('end', () => {
      if (held.exchange !== null) probe(held.exchange.response)
    })
  }
  held.exchange = { request, response }
  response._keepAliveTimeout = keepAliveMs
}

/** Closes connections whose client neither sends nor reads while the server waits for it. */
export function closeStalled(server: Server, context: HttpContext, connections: WeakMap<Socket, HttpConnection>): void {
  server.setTimeout(quietMsMax(context.options), (socket: Socket) => {
    const exchange = connections.get(socket)?.exchange ?? null
    const waitsForUs =
      exchange?.request.complete === true && !exchange.response.writableFinished && socket.writableLength === 0
    if (waitsForUs) socket.setTimeout(quietMsMax(context.options))
    else socket.destroy()
  })
}
