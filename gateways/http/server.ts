// Runs the HTTP server: listens, admits connections and requests, and passes requests to their handlers.

import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { andThen, attempt } from '../../engine/base/and-then.js'
import { ByteBudget } from '../../pipeline/ingest.js'
import { Admission } from '../common/admission.js'
import type { BindAddress } from '../common/bind-address.js'
import { errorReportOf } from '../common/error-reports.js'
import { type FramingFault, framingFault, malformedStatus } from '../common/http-framing.js'
import { isLingering, linger, lingerLimits } from '../common/linger.js'
import { type BoundPort, closeServer, limitSettings, listen } from '../common/listen.js'
import { Refusals } from '../common/refusals.js'
import { Sessions } from '../common/sessions.js'
import type { TlsKeys } from '../common/tls.js'
import { sessionOf } from './access.js'
import type { Exchange, HttpContext, HttpOptions, HttpServices } from './context.js'
import {
  admit,
  anonymous,
  crossOriginHeaders,
  discardRemainder,
  refuseHost,
  refuseUnauthenticated,
  refuseUnread,
} from './guard.js'
import { abortResponse, replyBusy, replyJson, replyText, statusOf } from './replies.js'
import { methodsOf, type Routes, route, routes } from './routes.js'
import { SavedItems } from './saved-items.js'
import { SettingsStore } from './settings-store.js'
import {
  admitConnections,
  beginExchange,
  closeStalled,
  createHttpServer,
  endMalformed,
  type HttpConnection,
  httpSlots,
  quietMsMax,
  slotLimits,
} from './sockets.js'
import { serveUpgrades, upgradePaths } from './upgrades.js'
import { upgradeRequests } from './web-sockets.js'

/** Limit of body bytes buffered before a handler reads them. */
const receiveBytesMax = 256 * 1024

/** How often a closing server looks for connections that have become idle. */
const sweepMs = 20

/** Limits while the server starts. */
const startingConnectionsMax = 256
const startingRequestMs = 10_000
/** Grace period for responses in flight when the server becomes ready. */
const farewellMs = 1000

export interface HttpGateway {
  readonly address: BindAddress
  /** Applies limits, deadlines and switches that may change at run time. */
  reconfigure(options: HttpOptions): void
  /** Stops accepting; resolves when running requests have finished or the timeout has passed. */
  close(timeoutMs: number): Promise<void>
}

export async function openHttpGateway(
  on: BindAddress | BoundPort,
  options: HttpOptions,
  services: HttpServices,
): Promise<HttpGateway> {
  const settings = new SettingsStore(options.preferencesPath, services.log)
  const preferences = async (): Promise<Readonly<Record<string, unknown>>> => (await settings.read()).values
  const context: HttpContext = {
    ...services,
    options: { ...options },
    startedMicros: services.clock.nowMicros(),
    sessions: new Sessions(services.auth, services.clock),
    refusals: new Refusals('http', services.log, services.clock),
    slots: httpSlots(options, () => services.clock.monotonicMs()),
    queries: new Admission(options.queriesMax),
    exports: new Admission(options.exportsMax),
    imports: new Admission(options.importsMax),
    settings,
    saved: new SavedItems(options.savedPath, services.log, preferences),
    lineRequests: new Admission(options.lineRequestsMax),
    qwpGroups: new ByteBudget(options.qwpGroupsBytesMax),
    lineBudget: new ByteBudget(Math.max(options.lineBodiesBytesMax, options.lineBodyBytesMax)),
  }
  const plain = {
    IncomingMessage: upgradeRequests(upgradePaths),
    keepAliveTimeout: 0,
    maxHeaderSize: options.headerBytesMax,
    // Bytes that node:http buffers from a socket before a handler reads them.
    highWaterMark: Math.min(options.receiveBufferBytes, receiveBytesMax),
    requestTimeout: 0,
  }
  const server = createHttpServer(plain, services.tls)
  const { connections, endHandshakes } = admitConnections(server, context)
  serveRequests(server, context, connections)
  closeStalled(server, context, connections)
  const upgrades = serveUpgrades(server, context, connections)
  const address = await listen(server, on)
  return {
    address,
    reconfigure: (changed) => {
      reconfigure(server, context, changed)
      upgrades.recheck()
    },
    close: async (timeoutMs) => {
      const closed = close(server, timeoutMs)
      endHandshakes()
      await Promise.all([closed, upgrades.close()])
    },
  }
}

/** Handlers read the options whenever they need them. */
function reconfigure(server: Server, context: HttpContext, changed: HttpOptions): void {
  Object.assign(context.options, changed)
  server.timeout = quietMsMax(changed)
  context.slots.limit(slotLimits(changed))
  context.queries.limit(changed.queriesMax)
  context.exports.limit(changed.exportsMax)
  context.imports.limit(changed.importsMax)
  context.lineRequests.limit(changed.lineRequestsMax)
}

function serveRequests(server: Server, context: HttpContext, connections: WeakMap<Socket, HttpConnection>): void {
  const table = routes(context.options, context.pages)
  const take = (request: IncomingMessage, response: ServerResponse): void => {
    const held = connections.get(request.socket)
    // The connection was evicted in favour of another one.
    if (held === undefined || request.socket.destroyed) return
    beginExchange(held, request, response, context.options)
    context.registry.touch(held.connection)
    void serve(table, context, request, response, held)
  }
  server.on('request', take)
  // A client that sends Expect: 100-continue learns before it sends the body whether it is admitted.
  server.on('checkContinue', take)
  server.on('clientError', (error: NodeJS.ErrnoException, stream) => {
    const socket = stream as Socket
    if (isLingering(socket)) return
    if (error.code === 'ECONNRESET') socket.destroy()
    else endMalformed(socket, connections.get(socket), malformedStatus(error.code))
  })
}

function serve(
  table: Routes,
  context: HttpContext,
  request: IncomingMessage,
  response: ServerResponse,
  held: HttpConnection,
): void | Promise<void> {
  const url = originForm(request)
  const mark = url.indexOf('?')
  const path = mark < 0 ? url : url.slice(0, mark)
  const begunMs = context.clock.monotonicMs()
  return attempt(
    () => respond(table, context, path, { request, response, query: mark < 0 ? '' : url.slice(mark + 1), held }),
    (error) => {
      const { category, message } = errorReportOf(error)
      if (category !== 'internal' && !response.headersSent) {
        replyJson(response, statusOf(category), { error: message, position: 0 })
        discardRemainder(response, 'known')
      } else failed(context, response, path, error)
    },
    () => {
      context.registry.touch(held.connection)
      const tookMs = context.clock.monotonicMs() - begunMs
      count(context, table.has(path) ? path : 'other', response.statusCode, tookMs)
    },
  )
}

function respond(
  table: Routes,
  context: HttpContext,
  path: string,
  { request, response, query, held }: Omit<Exchange, 'session' | 'connection'> & { readonly held: HttpConnection },
): void | Promise<void> {
  const { connection } = held
  const fault = framingFault(request)
  if (fault !== null) return refuseFraming(response, fault)
  if (refuseHost(context, request, response)) return
  crossOriginHeaders(context, request, response, () => methodsOf(table, path))
  return andThen(admit(context, request, path), (principal) => {
    connection.principal = principal?.user ?? null
    if (principal === null) return refuseUnauthenticated(context, request, response, path)
    // An unauthenticated connection stays in the waiting state even when it requests public resources.
    if (principal !== anonymous && refuseCrowd(context, response, held)) return
    if (request.headers.expect?.toLowerCase() === '100-continue') response.writeContinue()
    const session = sessionOf(principal, request.headers, context.options, connection.trace)
    return route(table, context, path, { request, response, query, connection, session })
  })
}

function refuseFraming(response: ServerResponse, { status, message }: FramingFault): void {
  response.setHeader('Connection', 'close')
  refuseUnread(response, status, { error: message, position: 0 })
}

/** Sends a 503 when the connection exceeds a limit; returns whether it did. */
function refuseCrowd(
  { registry }: HttpContext,
  response: ServerResponse,
  { connection, place }: HttpConnection,
): boolean {
  const limit = place.work()
  if (limit === null) return false
  registry.refuse(connection, limitSettings('http')[limit])
  response.setHeader('Connection', 'close')
  replyBusy(response, `too many connections${limit === 'address' ? ' from this address' : ''} are open now`)
  discardRemainder(response, 'stranger')
  return true
}

/** Reduces the absolute form `GET http://host/path` to `GET /path`. */
function originForm({ url = '/', headers }: IncomingMessage): string {
  if (url.startsWith('/')) return url
  const absolute = /^https?:\/\/([^/?#]*)(.*)$/is.exec(url)
  if (absolute === null) return url
  const [, host, rest = ''] = absolute
  headers.host = host
  return rest.startsWith('/') ? rest : `/${rest}`
}

function failed({ counters, log }: HttpContext, response: ServerResponse, path: string, error: unknown): void {
  counters.unhandledErrors++
  log('C', 'http', `request failed: ${error instanceof Error ? error.stack : String(error)} [path=${path}]`)
  if (response.headersSent) abortResponse(response)
  else replyText(response, 500, 'Internal Server Error\r\n')
}

function count({ counters }: HttpContext, endpoint: string, status: number, ms: number): void {
  counters.durations.observe(endpoint, ms / 1000)
  const kind = `${Math.floor(status / 100)}xx`
  if (kind in counters.responses) counters.responses[kind as keyof typeof counters.responses]++
}

async function close(server: Server, timeoutMs: number): Promise<void> {
  const closed = closeServer(server)
  server.closeIdleConnections()
  const impatience = setTimeout(() => server.closeAllConnections(), timeoutMs)
  // A keep-alive connection becomes idle only after its response has been sent.
  const sweep = setInterval(() => server.closeIdleConnections(), sweepMs)
  await closed
  clearTimeout(impatience)
  clearInterval(sweep)
}

/** Binds the port and responds with 503 and Retry-After to every request while the server starts. */
export async function bindHttpPort(bindTo: BindAddress, tls: TlsKeys | null): Promise<BoundPort> {
  const server = createHttpServer({ requestTimeout: 0, keepAliveTimeout: startingRequestMs }, tls)
  server.maxConnections = startingConnectionsMax
  server.setTimeout(startingRequestMs)
  server.on(tls === null ? 'connection' : 'secureConnection', (socket: Socket) => {
    // node:http calls this after a response that ends the connection.
    Object.assign(socket, { destroySoon: () => linger(socket, lingerLimits.stranger) })
  })
  server.on('request', (request, response) => {
    // A connection that the client keeps for later requests would be reset when the server becomes ready.
    response.shouldKeepAlive = false
    // The body is read to its end, so that the client reads the response.
    request.resume()
    replyBusy(response, 'the server is starting')
  })
  server.on('clientError', (_error, socket) => socket.destroy())
  const address = await listen(server, bindTo)
  const handOver = (): void => {
    server.closeIdleConnections()
    setTimeout(() => server.closeAllConnections(), farewellMs).unref()
  }
  return { server, address, handOver }
}
