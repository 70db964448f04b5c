// Checks an HTTP request before its body is read: authenticates it, except for public paths, and checks its Host header
// (DNS rebinding). Rejects it if a check fails. Also adds the CORS headers.

import type { IncomingMessage, ServerResponse } from 'node:http'
import { lingerLimits, watchRemainder } from '../common/linger.js'
import type { Principal } from '../common/users.js'
import { isAllowedOrigin } from './access.js'
import type { HttpContext } from './context.js'
import { icebergPath, icebergStranger, icebergTokenPath } from './iceberg.js'
import { parseQueryString } from './query-string.js'
import { addHeaders, replyJson } from './replies.js'
import { headerText } from './request-body.js'
import { sessionPath, sessionToken } from './session-cookie.js'
import { resumeLater } from './sockets.js'
import { writePathV3 } from './write-request.js'

/** Null: the request was rejected and its response has been sent. */
export type Admitted = Principal | null | Promise<Principal | null>

const exposedHeaders = 'X-Row-Count, X-Checksum-CRC32, X-Influxdb-Version, Retry-After, Content-Disposition'

/** Paths that load balancers probe. */
const healthPaths: ReadonlySet<string> = new Set(['/', '/ping', '/health', '/ready'])

/** Paths of clients of InfluxDB, which may send credentials as the parameters `u` and `p`. */
const influxPaths: ReadonlySet<string> = new Set(['/write', '/api/v2/write', writePathV3, '/query', '/ping'])

/** Names of the local machine and of private networks; a name without a dot cannot be registered. */
const ownNames = /^[^.]+\.?$|\.(localhost|local|internal|lan|home\.arpa|test)\.?$/

/**
 * Returns the authenticated principal; null when the credentials are missing or wrong. Throws or rejects with
 * ResourceError.
 */
export function admit(context: HttpContext, request: IncomingMessage, path: string): Admitted {
  const { options, auth, pages } = context
  const { method, headers } = request
  // A CORS preflight never carries credentials and reveals nothing but allowed methods and headers.
  if (method === 'OPTIONS') return auth.anonymous ?? anonymous
  // The request brings its credentials in its body.
  if (path === icebergTokenPath) return auth.anonymous ?? anonymous
  if (!options.healthNeedsCredentials && healthPaths.has(path)) return auth.anonymous ?? anonymous
  // The console prompts for credentials itself. Its pages and the documentation are public.
  if (pages.files.has(path) || pages.files.has(`${path}/`)) return auth.anonymous ?? anonymous
  const hasConsole = pages.home !== null
  if (hasConsole && path === sessionPath) return auth.anonymous ?? anonymous
  const token = hasConsole && headers.authorization === undefined ? sessionToken(request) : undefined
  if (token !== undefined) return ofSession(context, token)
  return auth.header(headers.authorization ?? (influxPaths.has(path) ? credentialsIn(request) : undefined))
}

/** An invalid token is like unknown credentials: on an open server it changes nothing. */
async function ofSession({ auth, sessions }: HttpContext, token: string): Promise<Principal | null> {
  const session = await sessions.check(token)
  return session?.principal ?? auth.anonymous
}

/** The parameters `u` and `p` as an Authorization header. */
function credentialsIn({ url = '' }: IncomingMessage): string | undefined {
  const { parameters } = parseQueryString(url.replace(/^[^?]*\??/, ''))
  const user = parameters.get('u')
  if (user === undefined) return undefined
  return `Basic ${Buffer.from(`${user}:${parameters.get('p') ?? ''}`).toString('base64')}`
}

/** A principal without rights, for public resources. */
export const anonymous: Principal = { user: '', rights: { read: false, write: false, admin: false } }

/**
 * Sends a 403 for missing or wrong credentials. Redirects a browser on the start page to the console, which
 * prompts.
 */
export function refuseUnauthenticated(
  { pages, refusals }: HttpContext,
  request: IncomingMessage,
  response: ServerResponse,
  path: string,
): void {
  const message = 'credentials are missing or wrong'
  refusals.note(request.socket, message)
  // A client that waits for 100 Continue does not send its body now.
  if (request.headers.expect !== undefined) response.setHeader('Connection', 'close')
  if (path === '/' && pages.home !== null) response.setHeader('Refresh', `0; url=${pages.home}`)
  if (path.startsWith(icebergPath)) {
    refuseUnread(response, 401, icebergStranger(message))
    return
  }
  response.setHeader('WWW-Authenticate', 'Basic realm="penstock", charset="UTF-8"')
  // Clients of line protocol read `code` and `message`, others `error`.
  refuseUnread(response, 403, { code: 'forbidden', message, error: message, position: 0 })
}

/**
 * Rejects an unknown Host name with a 403 where the server requires no credentials; returns whether it did (DNS
 * rebinding).
 */
export function refuseHost(context: HttpContext, request: IncomingMessage, response: ServerResponse): boolean {
  if (!isUnknownHost(context, request)) return false
  const { refusals } = context
  const message = 'the Host header does not name this server [setting=http.host.names]'
  refusals.note(request.socket, message)
  refuseUnread(response, 403, { code: 'forbidden', message, error: message, position: 0 })
  return true
}

export function isUnknownHost({ options: { hostNames }, auth }: HttpContext, request: IncomingMessage): boolean {
  return hostNames !== null && auth.anonymous !== null && !isKnownHost(request.headers.host, hostNames)
}

/** Responds before the body has been read; the rest of the body is discarded for a limited time. */
export function refuseUnread(response: ServerResponse, status: number, body: unknown): void {
  replyJson(response, status, body)
  discardRemainder(response, 'stranger')
}

/** After the response, discards what the client still sends, for a limited time. */
export function discardRemainder(response: ServerResponse, who: keyof typeof lingerLimits): void {
  const { req: request } = response
  if (request.complete || request.destroyed) return
  const watched = watchRemainder(request.socket, lingerLimits[who])
  request.once('close', watched)
  resumeLater(request)
}

/** Adds the CORS headers: what a page of an allowed origin may read and send. `methods`: those of the path. */
export function crossOriginHeaders(
  { options }: HttpContext,
  request: IncomingMessage,
  response: ServerResponse,
  methods: () => readonly string[],
): void {
  const { corsOrigins } = options
  if (corsOrigins === null) return
  const { origin } = request.headers
  const headers = ['Vary', 'Origin']
  if (origin !== undefined && isAllowedOrigin(origin, corsOrigins)) {
    headers.push('Access-Control-Allow-Origin', corsOrigins.includes('*') ? '*' : origin)
    headers.push('Access-Control-Expose-Headers', exposedHeaders)
    if (request.method === 'OPTIONS') {
      headers.push('Access-Control-Allow-Methods', methods().join(', '))
      headers.push(
        'Access-Control-Allow-Headers',
        headerText(request, 'access-control-request-headers') ?? 'Authorization',
      )
      headers.push('Access-Control-Max-Age', '600')
    }
  }
  addHeaders(response, headers)
}

/**
 * Checks the Host header against DNS rebinding. A malicious page can make its own name resolve to this server, and the
 * browser then treats this server as part of that page's site. Only the name in the Host header reveals it. IP
 * addresses and names that nobody else can register are always accepted; `known` holds further names from the
 * settings, in lower case.
 */
export function isKnownHost(host: string | undefined, known: readonly string[]): boolean {
  // Browsers always send a Host header.
  if (host === undefined || host === '') return true
  const name = host.replace(/:\d*$/, '').toLowerCase()
  return isAddress(name) || ownNames.test(name) || known.includes(name)
}

function isAddress(name: string): boolean {
  return /^\[[0-9a-f:.%]+\]$/.test(name) || /^\d{1,3}(\.\d{1,3}){3}$/.test(name)
}
