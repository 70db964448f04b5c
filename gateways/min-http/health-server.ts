// HTTP server for health checks, on a thread of its own. It responds to every path except /metrics with 200, 500
// (unhealthy) or 503 (starting), according to a word in shared memory that the main thread sets, and to any path with
// 503 if there are too many connections. /metrics is fetched from the main thread. Requests are not logged.

import { createServer, type RequestListener, type Server, type ServerResponse } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import type { Socket } from 'node:net'
import { type ConnectionSlot, ConnectionSlots } from '../common/connection-slots.js'
import { framingFault, malformedStatus, respondToMalformed } from '../common/http-framing.js'
import { isLingering, linger, lingerLimits } from '../common/linger.js'
import type { TlsServerOptions } from '../common/tls.js'

/** Index of the shared word that holds one of `healthStates`. */
export const healthWord = 0
export const healthStates = { healthy: 0, unhealthy: 1, starting: 2 } as const

/** Limit of metrics requests that wait for the main thread. */
const metricsWaitingMax = 16
/** Health checks have small headers. */
const headerBytesMax = 16 * 1024
const headersMs = 10_000
/** Enough for health checks; when all are taken, a new connection evicts an idle one. */
const connectionsMax = 256
const spareConnections = 64

export type RequestMetrics = () => Promise<{ readonly contentType: string; readonly text: string } | null>

export interface HealthServer {
  readonly server: Server
  /** 0 or less: no limit. */
  limitAddresses(perAddressMax: number): void
}

export function healthServer(
  flag: Int32Array,
  requestMetrics: RequestMetrics,
  tls: TlsServerOptions | null = null,
): HealthServer {
  let metricsWaiting = 0
  const settings = { maxHeaderSize: headerBytesMax, headersTimeout: headersMs, requestTimeout: headersMs }
  const options = { spare: spareConnections, nowMs: () => performance.now() }
  const places = new ConnectionSlots({ max: connectionsMax, perAddressMax: 0 }, options)
  const known = new WeakMap<Socket, ConnectionSlot>()
  const serve: RequestListener = (request, response) => {
    request.resume()
    const fault = framingFault(request)
    const place = known.get(request.socket)
    if (fault !== null) {
      response.setHeader('Connection', 'close')
      respond(response, fault.status, 'text/plain', `${fault.message}\n`)
    } else if (place !== undefined && place.work() !== null) {
      response.setHeader('Connection', 'close')
      respondBusy(response, 'too many connections are open now\n')
    } else if (request.url?.split('?')[0] !== '/metrics') {
      respondHealth(response, Atomics.load(flag, healthWord))
    } else if (Atomics.load(flag, healthWord) === healthStates.starting) {
      respondStarting(response)
    } else if (metricsWaiting >= metricsWaitingMax) {
      respondBusy(response, 'the server is busy\n')
    } else {
      metricsWaiting++
      void requestMetrics().then((metrics) => {
        metricsWaiting--
        if (metrics === null) respond(response, 404, 'text/plain', 'Not Found\r\n')
        else respond(response, 200, metrics.contentType, metrics.text)
      })
    }
  }
  const server = tls === null ? createServer(settings, serve) : createTlsServer({ ...settings, ...tls }, serve)
  watchSockets(server, places, known, tls !== null)
  return {
    server,
    limitAddresses: (perAddressMax) => places.limit({ max: connectionsMax, perAddressMax }),
  }
}

/** Assigns slots before the TLS handshake; requests arrive on the TLS socket. */
function watchSockets(
  server: Server,
  places: ConnectionSlots,
  known: WeakMap<Socket, ConnectionSlot>,
  isTls: boolean,
): void {
  const handshakes = new Map<string, ConnectionSlot>()
  const nameOf = ({ remoteAddress, remotePort }: Socket): string => `${remoteAddress} ${remotePort}`
  const begin = (socket: Socket, place: ConnectionSlot): void => {
    known.set(socket, place)
    const destroySoon = (): void => {
      place.depart()
      linger(socket, lingerLimits.stranger)
    }
    Object.assign(socket, { destroySoon })
  }
  server.on('connection', (socket: Socket) => {
    const place = places.enter({ address: socket.remoteAddress, dismiss: () => socket.destroy() })
    if (typeof place === 'string') {
      socket.destroy()
      return
    }
    const name = nameOf(socket)
    if (isTls) handshakes.set(name, place)
    else begin(socket, place)
    socket.once('close', () => {
      place.leave()
      handshakes.delete(name)
    })
  })
  server.on('secureConnection', (socket: Socket) => {
    const place = handshakes.get(nameOf(socket))
    if (place === undefined) socket.destroy()
    else begin(socket, place)
  })
  server.on('clientError', (error: NodeJS.ErrnoException, stream) => {
    const socket = stream as Socket
    if (isLingering(socket)) return
    const place = known.get(socket)
    if (place === undefined || !socket.writable || error.code === 'ECONNRESET') socket.destroy()
    else {
      place.depart()
      respondToMalformed(socket, malformedStatus(error.code))
    }
  })
}

function respondHealth(response: ServerResponse, state: number): void {
  if (state === healthStates.starting) respondStarting(response)
  else if (state === healthStates.healthy) respond(response, 200, 'text/plain', 'OK')
  else respond(response, 500, 'text/plain', 'unhandled errors occurred')
}

function respondStarting(response: ServerResponse): void {
  respondBusy(response, 'the server is starting\n')
}

function respondBusy(response: ServerResponse, text: string): void {
  response.setHeader('Retry-After', '1')
  respond(response, 503, 'text/plain', text)
}

function respond(response: ServerResponse, status: number, type: string, body: string): void {
  response.writeHead(status, ['Content-Type', type, 'Content-Length', String(Buffer.byteLength(body))])
  response.end(body)
}
