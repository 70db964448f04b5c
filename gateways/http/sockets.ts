// The sockets of the HTTP gateway: plain or TLS, counted and listed, and closed when they waste our time.
//
// Time runs against whoever is quiet: a handshake or the headers of a request that do not come, a body that stops, an
// answer that is not read. A statement that takes long is nobody's fault: nothing is owed by the client then.

import { createServer, type IncomingMessage, type Server, type ServerOptions, type ServerResponse } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import { Socket } from 'node:net'
import { assert } from '../../engine/base/assert.js'
import type { Connection } from '../common/connections.js'
import { remoteAddress } from '../common/listen.js'
import type { TlsKeys } from '../common/tls.js'
import type { HttpContext, HttpOptions } from './context.js'

/** Connections beyond the limit that are told so; further ones are closed unheard. */
const refusedMax = 64
const refusedMs = 5000
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

/** Beyond it nobody is heard. */
export function connectionsCap({ connectionsMax }: Pick<HttpOptions, 'connectionsMax'>): number {
  return connectionsMax + refusedMax
}

/** Those that are let in. A connection that is not here is beyond the limit. */
export function admitConnections(server: Server, context: HttpContext): WeakMap<Socket, Connection> {
  const { registry, options, tls } = context
  const connections = new WeakMap<Socket, Connection>()
  server.maxConnections = connectionsCap(options)
  server.on(tls === null ? 'connection' : 'secureConnection', (socket: Socket) => {
    const description = {
      protocol: 'http',
      remoteAddress: remoteAddress(socket),
      bytesIn: () => socket.bytesRead,
      bytesOut: () => socket.bytesWritten,
      tls: tls !== null,
    } as const
    if (registry.active('http') >= options.connectionsMax) {
      registry.reject(description, 'http.net.connection.limit')
      const impatience = setTimeout(() => socket.destroy(), refusedMs)
      socket.once('close', () => clearTimeout(impatience))
      return
    }
    const connection = registry.open(description)
    connections.set(socket, connection)
    socket.once('close', (failed) => registry.close(connection, failed ? 'connection broken' : null))
  })
  return connections
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
export function closeQuiet(server: Server, context: HttpContext): void {
  const busy = new WeakMap<Socket, { readonly request: IncomingMessage; readonly response: ServerResponse }>()
  server.on('request', (request: IncomingMessage, response: ServerResponse) => {
    const { socket } = request
    if (!busy.has(socket)) socket.once('end', () => probe((busy.get(socket) as { response: ServerResponse }).response))
    busy.set(socket, { request, response })
  })
  server.setTimeout(context.options.keepAliveMs, (socket: Socket) => {
    const exchange = busy.get(socket)
    const waitsForUs =
      exchange?.request.complete === true && !exchange.response.writableFinished && socket.writableLength === 0
    if (waitsForUs) socket.setTimeout(context.options.keepAliveMs)
    else socket.destroy()
  })
}
