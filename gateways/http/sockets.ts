// The sockets of the HTTP gateway: plain or TLS, counted and listed, and closed when they waste our time.
//
// Time runs against whoever is quiet: a handshake or the headers of a request that do not come, a body that stops, an
// answer that is not read. A statement that takes long is nobody's fault: nothing is owed by the client then. Behind a
// final answer a connection lingers (common/linger.ts), and while connections are many, those that have completed no
// request give way (common/places.ts).

import { createServer, type IncomingMessage, type Server, type ServerOptions, type ServerResponse } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import { Socket } from 'node:net'
import { assert } from '../../engine/base/assert.js'
import type { Connection } from '../common/connections.js'
import { answerBroken } from '../common/http-framing.js'
import { linger, patience } from '../common/linger.js'
import { limitSettings, remoteAddress } from '../common/listen.js'
import { type Place, Places } from '../common/places.js'
import type { TlsKeys } from '../common/tls.js'
import type { HttpContext, HttpOptions } from './context.js'

/** Connections beyond the limit that may send a request and are told so. */
const spareConnections = 64
const headersMs = 60_000
const handshakeMs = 10_000
const checkEveryMs = 2000
/** How every answer begins, whatever the client speaks. */
const answerBeginning = 'HTTP/1.1 '
/**
 * When a client that has sent its last byte is written to, lest it be gone: the first byte has a closed socket answer
 * with a reset, the next one hears of that.
 */
const probesMs = [50, 150, 1000]

/** A connection that has been accepted, and the handshake of TLS is behind it. */
export interface HttpConnection {
  readonly connection: Connection
  readonly place: Place
  /** The last one. */
  exchange: { readonly request: IncomingMessage; readonly response: ServerResponse } | null
}

export function createHttpServer(options: ServerOptions, tls: TlsKeys | null): Server {
  const shared = { ...options, headersTimeout: headersMs, connectionsCheckingInterval: checkEveryMs }
  if (tls === null) return answeringHalfClosed(createServer(shared))
  const server = createTlsServer({ ...shared, ...tls.options, handshakeTimeout: handshakeMs, allowHalfOpen: true })
  tls.onChange((changed) => server.setSecureContext(changed))
  return answeringHalfClosed(server)
}

/** `nc -N` and others end their side behind the request: they get the answer whole, and the connection ends behind it. */
function answeringHalfClosed<Kind extends Server>(server: Kind): Kind {
  return Object.assign(server, { httpAllowHalfOpen: true })
}

export function httpPlaces(options: HttpOptions, nowMs: () => number): Places {
  return new Places(placeLimits(options), { spare: spareConnections, nowMs })
}

export function placeLimits({ connectionsMax, connectionsPerAddressMax }: HttpOptions) {
  return { max: connectionsMax, perAddressMax: connectionsPerAddressMax }
}

/** An accepted connection, before TLS. */
interface Accepted {
  readonly place: Place
  /** What the connection is talked through: the socket itself, or its TLS. */
  talking: Socket
  held: HttpConnection | null
}

/** Those that are open. */
export function admitConnections(server: Server, context: HttpContext): WeakMap<Socket, HttpConnection> {
  const { registry, tls, clock } = context
  const connections = new WeakMap<Socket, HttpConnection>()
  /** Handshakes under way, by the address of the client. */
  const handshakes = new Map<string, Accepted>()
  server.on('connection', (socket: Socket) => {
    const address = remoteAddress(socket)
    const entered = context.places.enter({
      address: socket.remoteAddress,
      restingMs: () => restingMs(accepted.held, clock.nowMicros()),
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
    socket.once('close', () => {
      entered.leave()
      handshakes.delete(address)
    })
    if (tls === null) serveConnection(accepted, socket, context, connections)
    else handshakes.set(address, accepted)
  })
  server.on('secureConnection', (socket: Socket) => {
    const accepted = handshakes.get(remoteAddress(socket))
    if (accepted === undefined) socket.destroy()
    else serveConnection(accepted, socket, context, connections)
  })
  return connections
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
  // node:http calls it behind an answer that ends the connection.
  const destroySoon = (): void => {
    held.place.depart()
    if (held.exchange?.request.complete === false) resumeLater(held.exchange.request)
    linger(socket, connection.principal === null ? patience.stranger : patience.known)
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

/** Whoever was reading lets go of the body in a later turn; until then nothing would flow. */
export function resumeLater(request: IncomingMessage): void {
  setImmediate(() => request.resume())
}

/** How long nothing has been asked and all is answered. */
function restingMs(held: HttpConnection | null, nowMicros: number): number {
  const { exchange = null, connection = null } = held ?? {}
  if (exchange === null || connection === null) return 0
  if (!exchange.request.complete || !exchange.response.writableFinished) return 0
  return (nowMicros - connection.lastActiveAtMicros) / 1000
}

/**
 * Bytes that are no request end the connection: behind an answer, if they belong to a request that has been answered. In
 * the middle of an answer nothing can be said, nor before TLS speaks.
 */
export function endBroken(socket: Socket, held: HttpConnection | undefined, status: string): void {
  const response = held?.exchange?.response
  const isAnswering = response?.headersSent === true && !response.writableEnded
  if (held === undefined || isAnswering || !socket.writable) {
    socket.destroy()
    return
  }
  held.place.depart()
  const isAnswered = response?.headersSent === true && held.exchange?.request.complete === false
  answerBroken(socket, isAnswered ? null : status)
}

/**
 * Sends the first bytes of every answer, one by one, to a client of which nobody knows whether it is there; what is sent
 * behind them begins without them.
 */
function probe(response: ServerResponse): void {
  let sent = 0
  for (const ms of probesMs) {
    const timer = setTimeout(() => {
      const { socket } = response
      if (socket === null || response.headersSent || response.destroyed) return
      if (sent === 0) beginBehind(socket, () => sent)
      Socket.prototype.write.call(socket, answerBeginning.charAt(sent++))
    }, ms)
    response.once('close', () => clearTimeout(timer))
  }
}

/** Leaves out the first characters of what node:http writes next, which is the head of an answer. */
function beginBehind(socket: Socket, characters: () => number): void {
  const write = (chunk: string, ...rest: []): boolean => {
    Reflect.deleteProperty(socket, 'write')
    assert(chunk.startsWith(answerBeginning), 'an answer begins with its head')
    return socket.write(chunk.slice(characters()), ...rest)
  }
  Object.assign(socket, { write })
}

/** Closes connections whose client sends and takes nothing, though it is its turn. */
export function closeQuiet(server: Server, context: HttpContext, connections: WeakMap<Socket, HttpConnection>): void {
  const begun = (request: IncomingMessage, response: ServerResponse): void => {
    const held = connections.get(request.socket)
    if (held === undefined) return
    if (held.exchange === null) {
      request.socket.once('end', () => {
        if (held.exchange !== null) probe(held.exchange.response)
      })
    }
    held.exchange = { request, response }
  }
  // Before the handlers: they end connections by it.
  server.prependListener('request', begun)
  server.prependListener('checkContinue', begun)
  server.setTimeout(context.options.keepAliveMs, (socket: Socket) => {
    const exchange = connections.get(socket)?.exchange ?? null
    const waitsForUs =
      exchange?.request.complete === true && !exchange.response.writableFinished && socket.writableLength === 0
    if (waitsForUs) socket.setTimeout(context.options.keepAliveMs)
    else socket.destroy()
  })
}
