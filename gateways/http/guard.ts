// Stands before the routes: lets a request in, or answers it without reading its body. Also the headers that every
// answer has, and CORS.

import type { IncomingMessage, ServerResponse } from 'node:http'
import { patience, watchRest } from '../common/linger.js'
import type { Principal } from '../common/users.js'
import { isAllowedOrigin } from './access.js'
import type { HttpContext } from './context.js'
import { isKnownHost } from './host-names.js'
import { addHeaders, replyJson } from './replies.js'
import { headerText } from './request-body.js'
import { resumeLater } from './sockets.js'

/** Why a request does not come in: the answer has been given. */
export type Admitted = Principal | null | Promise<Principal | null>

const exposedHeaders = 'X-Row-Count, X-Checksum-CRC32, X-Influxdb-Version, Retry-After, Content-Disposition'

/** Paths that load balancers ask. */
const healthPaths: ReadonlySet<string> = new Set(['/', '/ping'])

/** Who asks; null: nobody that is known. Throws or rejects with ResourceError. */
export function admit({ options, auth, pages }: HttpContext, request: IncomingMessage, path: string): Admitted {
  const { method, headers } = request
  // A preflight never has credentials, and gets nothing but the names of methods.
  if (method === 'OPTIONS') return auth.anonymous ?? nobody
  if (!options.healthNeedsCredentials && healthPaths.has(path)) return auth.anonymous ?? nobody
  // The console asks for credentials itself; its pages are the same for everybody.
  if (pages.files.has(path) || `${path}/` === pages.home) return auth.anonymous ?? nobody
  return auth.header(headers.authorization)
}

/** Has no rights: comes to what is the same for everybody, or without any. */
export const nobody: Principal = { user: '', rights: { read: false, write: false, admin: false } }

/** 403: credentials are missing or wrong. A browser that came to the start page goes on to the console, which asks. */
export function refuseStranger(
  { pages, refusals }: HttpContext,
  request: IncomingMessage,
  response: ServerResponse,
  path: string,
): void {
  const message = 'credentials are missing or wrong'
  refusals.note(request.socket, message)
  // Who waits to be told to go on sends no body now.
  if (request.headers.expect !== undefined) response.setHeader('Connection', 'close')
  if (path === '/' && pages.home !== null) response.setHeader('Refresh', `0; url=${pages.home}`)
  response.setHeader('WWW-Authenticate', 'Basic realm="penstock", charset="UTF-8"')
  // Clients of line protocol read `code` and `message`, others `error`.
  refuseUnread(response, 403, { code: 'forbidden', message, error: message, position: 0 })
}

/** Whether the request was answered 403: a server that knows no credentials is called by a name that may be a stranger's. */
export function refuseHost(
  { options, auth, refusals }: HttpContext,
  request: IncomingMessage,
  response: ServerResponse,
): boolean {
  const { hostNames } = options
  if (hostNames === null || auth.anonymous === null || isKnownHost(request.headers.host, hostNames)) return false
  const message = 'the server is not called by this name [setting=http.host.names]'
  refusals.note(request.socket, message)
  refuseUnread(response, 403, { code: 'forbidden', message, error: message, position: 0 })
  return true
}

/** Answers before the body has been read; what comes of it is thrown away, for a while. */
export function refuseUnread(response: ServerResponse, status: number, body: unknown): void {
  replyJson(response, status, body)
  readOn(response, 'stranger')
}

/** Behind an answer: what the client still sends is thrown away, for a while. */
export function readOn(response: ServerResponse, who: keyof typeof patience): void {
  const { req: request } = response
  if (request.complete || request.destroyed) return
  const watched = watchRest(request.socket, patience[who])
  request.once('close', watched)
  resumeLater(request)
}

/** CORS: what a page of an allowed origin may see and send. */
export function crossOriginHeaders({ options }: HttpContext, request: IncomingMessage, response: ServerResponse): void {
  const { corsOrigins } = options
  if (corsOrigins === null) return
  const { origin } = request.headers
  const headers = ['Vary', 'Origin']
  if (origin !== undefined && isAllowedOrigin(origin, corsOrigins)) {
    headers.push('Access-Control-Allow-Origin', corsOrigins.includes('*') ? '*' : origin)
    headers.push('Access-Control-Expose-Headers', exposedHeaders)
    if (request.method === 'OPTIONS') {
      headers.push('Access-Control-Allow-Methods', 'GET, POST, PUT, HEAD, OPTIONS')
      headers.push(
        'Access-Control-Allow-Headers',
        headerText(request, 'access-control-request-headers') ?? 'Authorization',
      )
      headers.push('Access-Control-Max-Age', '600')
    }
  }
  addHeaders(response, headers)
}
