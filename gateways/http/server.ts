// The door of the HTTP gateway: listens, lets connections in, hands requests to their handlers.

import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { ByteBudget } from '../../pipeline/ingest.js'
import { Admission } from '../common/admission.js'
import { answerOf } from '../common/answers.js'
import type { BindAddress } from '../common/bind-address.js'
import { BusyPoll } from '../common/busy-poll.js'
import type { Connection } from '../common/connections.js'
import { closeServer, listen, type TakenPort } from '../common/listen.js'
import { Refusals } from '../common/refusals.js'
import { sessionOf } from './access.js'
import type { Exchange, HttpContext, HttpOptions, HttpServices } from './context.js'
import { admit, crossOriginHeaders, readOn, refuseHost, refuseStranger } from './guard.js'
import { cutOff, replyBusy, replyJson, replyText, statusOf } from './replies.js'
import { type Routes, route, routes } from './routes.js'
import { SettingsStore } from './settings-store.js'
import { admitConnections, closeQuiet, connectionsCap, createHttpServer } from './sockets.js'

/** More than this of a body that nobody reads yet is not worth its memory. */
const receiveBytesMax = 256 * 1024

/** Behind an answer that took no longer, the next request is likely to come at once. */
const shortMs = 5

/** How often a closing server looks for connections that became idle. */
const sweepMs = 20

export { takeHttpPort } from './starting.js'

export interface HttpGateway {
  readonly address: BindAddress
  /** What can change while it runs: limits, deadlines and switches of the options. */
  reconfigure(options: HttpOptions): void
  /** Takes no more; resolves when running requests have been answered or the time is over. */
  close(timeoutMs: number): Promise<void>
}

export async function openHttpGateway(
  on: BindAddress | TakenPort,
  options: HttpOptions,
  services: HttpServices,
): Promise<HttpGateway> {
  const context: HttpContext = {
    ...services,
    options: { ...options },
    poll: new BusyPoll(options.busyPoll),
    refusals: new Refusals('http', services.log, services.clock),
    queries: new Admission(options.queriesMax),
    exports: new Admission(options.exportsMax),
    imports: new Admission(options.importsMax),
    settings: new SettingsStore(options.preferencesPath),
    lineRequests: new Admission(options.lineRequestsMax),
    lineBudget: new ByteBudget(Math.max(options.lineBodiesBytesMax, options.lineBodyBytesMax)),
  }
  const plain = {
    keepAliveTimeout: options.keepAliveMs,
    maxHeaderSize: options.headerBytesMax,
    // Bytes that node:http takes from a socket before a handler has read them.
    highWaterMark: Math.min(options.receiveBufferBytes, receiveBytesMax),
    requestTimeout: 0,
  }
  const server = createHttpServer(plain, services.tls)
  const connections = admitConnections(server, context)
  serveRequests(server, context, connections)
  closeQuiet(server, context)
  const address = await listen(server, on)
  return {
    address,
    reconfigure: (changed) => reconfigure(server, context, changed),
    close: (timeoutMs) => close(server, timeoutMs),
  }
}

/** Handlers read the options when they need them. */
function reconfigure(server: Server, context: HttpContext, changed: HttpOptions): void {
  Object.assign(context.options, changed)
  server.keepAliveTimeout = changed.keepAliveMs
  server.timeout = changed.keepAliveMs
  server.maxConnections = connectionsCap(changed)
  context.queries.limit(changed.queriesMax)
  context.exports.limit(changed.exportsMax)
  context.imports.limit(changed.importsMax)
  context.lineRequests.limit(changed.lineRequestsMax)
}

function serveRequests(server: Server, context: HttpContext, connections: WeakMap<Socket, Connection>): void {
  const table = routes(context.options, context.pages)
  const take = (request: IncomingMessage, response: ServerResponse): void => {
    const connection = connections.get(request.socket)
    if (connection === undefined) {
      response.setHeader('Connection', 'close')
      replyBusy(response, 'too many connections are open now')
      return
    }
    context.registry.touch(connection)
    context.poll.asked()
    void serve(table, context, request, response, connection)
  }
  server.on('request', take)
  // Whoever asks before it sends a body hears first whether it may.
  server.on('checkContinue', take)
  server.on('clientError', (error: NodeJS.ErrnoException, socket) => {
    if (!socket.writable || error.code === 'ECONNRESET') socket.destroy()
    else socket.end(`HTTP/1.1 ${clientErrorStatus(error.code)}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`)
  })
}

async function serve(
  table: Routes,
  context: HttpContext,
  request: IncomingMessage,
  response: ServerResponse,
  connection: Connection,
): Promise<void> {
  const url = originForm(request)
  const mark = url.indexOf('?')
  const path = mark < 0 ? url : url.slice(0, mark)
  const begunMs = context.clock.monotonicMs()
  try {
    await answer(table, context, path, { request, response, query: mark < 0 ? '' : url.slice(mark + 1), connection })
  } catch (error) {
    const { blame, message } = answerOf(error)
    if (blame !== 'internal' && !response.headersSent) {
      replyJson(response, statusOf(blame), { error: message, position: 0 })
      readOn(response, 'known')
    } else failed(context, response, path, error)
  }
  const tookMs = context.clock.monotonicMs() - begunMs
  if (tookMs < shortMs) context.poll.answered()
  count(context, table.has(path) ? path : 'other', response.statusCode, tookMs)
}

async function answer(
  table: Routes,
  context: HttpContext,
  path: string,
  exchange: Omit<Exchange, 'session'>,
): Promise<void> {
  const { request, response, query, connection } = exchange
  if (refuseHost(context, request, response)) return
  crossOriginHeaders(context, request, response)
  const admitted = admit(context, request, path)
  const principal = admitted instanceof Promise ? await admitted : admitted
  connection.principal = principal?.user ?? null
  if (principal === null) return refuseStranger(context, request, response, path)
  if (request.headers.expect?.toLowerCase() === '100-continue') response.writeContinue()
  const session = sessionOf(principal, request.headers, context.options, connection.trace)
  await route(table, context, path, { request, response, query, connection, session })
}

/** `GET http://host/path` asks as `GET /path` of that host does. */
function originForm({ url = '/', headers }: IncomingMessage): string {
  const absolute = /^https?:\/\/([^/?#]*)(.*)$/is.exec(url)
  if (absolute === null) return url
  const [, host, rest = ''] = absolute
  headers.host = host
  return rest.startsWith('/') ? rest : `/${rest}`
}

function failed({ counters, log }: HttpContext, response: ServerResponse, path: string, error: unknown): void {
  counters.unhandledErrors++
  log('C', 'http', `request failed: ${error instanceof Error ? error.stack : String(error)} [path=${path}]`)
  if (response.headersSent) cutOff(response)
  else replyText(response, 500, 'Internal Server Error\r\n')
}

function count({ counters }: HttpContext, endpoint: string, status: number, ms: number): void {
  counters.durations.observe(endpoint, ms / 1000)
  const kind = `${Math.floor(status / 100)}xx`
  if (kind in counters.responses) counters.responses[kind as keyof typeof counters.responses]++
}

function clientErrorStatus(code: string | undefined): string {
  if (code === 'HPE_HEADER_OVERFLOW') return '431 Request Header Fields Too Large'
  return code === 'ERR_HTTP_REQUEST_TIMEOUT' ? '408 Request Timeout' : '400 Bad Request'
}

async function close(server: Server, timeoutMs: number): Promise<void> {
  const closed = closeServer(server)
  server.closeIdleConnections()
  const impatience = setTimeout(() => server.closeAllConnections(), timeoutMs)
  // A kept connection becomes idle only when its answer is out.
  const sweep = setInterval(() => server.closeIdleConnections(), sweepMs)
  await closed
  clearTimeout(impatience)
  clearInterval(sweep)
}
