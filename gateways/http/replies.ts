// Sends HTTP responses: complete ones in one write with a known length, and the start or the abort of streamed
// ones.

import type { ServerResponse } from 'node:http'
import type { ErrorCategory } from '../common/error-reports.js'
import { HttpResponse } from './messages.js'

export const contentTypes = {
  json: 'application/json; charset=utf-8',
  /** The content type that clients of /chk and /warnings expect. */
  plainJson: 'application/json',
  text: 'text/plain; charset=utf-8',
} as const

/** Bodies up to this size are joined with the head, as Latin-1 strings: the socket writes those from its stack. */
export const joinedBytesMax = 15 * 1024

const statusOfCategory: Record<ErrorCategory, number> = {
  request: 400,
  oversize: 413,
  forbidden: 403,
  busy: 503,
  internal: 500,
}

export function statusOf(category: ErrorCategory): number {
  return statusOfCategory[category]
}

/** Headers of every response: no content sniffing, no framing, no referrer, no embedding by other sites. */
const commonHeaders: readonly string[] = [
  ...['X-Content-Type-Options', 'nosniff', 'X-Frame-Options', 'DENY', 'Referrer-Policy', 'same-origin'],
  ...['Cross-Origin-Resource-Policy', 'same-origin', 'Cache-Control', 'no-store'],
]

/** The same as lines of a head. */
const commonLines = lines(commonHeaders)

function lines(headers: readonly string[]): string {
  return headers.map((text, index) => (index % 2 === 0 ? `${text}: ` : `${text}\r\n`)).join('')
}

/** Headers that the guard adds to a single response. */
const addedHeaders = new WeakMap<ServerResponse, readonly string[]>()

export function addHeaders(response: ServerResponse, headers: readonly string[]): void {
  addedHeaders.set(response, headers)
}

/** Like writeHead, with the headers that every response has. */
export function begin(response: ServerResponse, status: number, headers: readonly string[]): ServerResponse {
  return response.writeHead(status, [...headers, ...commonHeaders, ...ownHeaders(response, status)])
}

function ownHeaders(response: ServerResponse, status: number): readonly string[] {
  const added = addedHeaders.get(response) ?? []
  return status === 503 && !response.hasHeader('Retry-After') ? [...added, 'Retry-After', '1'] : added
}

export function reply(
  response: ServerResponse,
  status: number,
  type: string,
  body: string | Uint8Array,
  headers: readonly string[] = [],
): void {
  const bytes = typeof body === 'string' ? Buffer.from(body) : Buffer.from(body.buffer, body.byteOffset, body.length)
  if (bytes.length <= joinedBytesMax) replyLatin1(response, status, type, bytes.toString('latin1'), headers)
  else begin(response, status, ['Content-Type', type, 'Content-Length', String(bytes.length), ...headers]).end(bytes)
}

/** Sends a short body that is given with one character for each byte. */
export function replyLatin1(
  response: ServerResponse,
  status: number,
  type: string,
  body: string,
  headers: readonly string[] = [],
): void {
  const all = ['Content-Type', type, 'Content-Length', String(body.length), ...headers, ...ownHeaders(response, status)]
  if (!(response instanceof HttpResponse)) response.writeHead(status, [...all, ...commonHeaders]).end(body, 'latin1')
  else {
    response.writeHead(status, all)
    // Constant lines need no check of their names and values.
    response.endWith(commonLines, body)
  }
}

export function replyText(response: ServerResponse, status: number, text: string): void {
  reply(response, status, contentTypes.text, text)
}

/** Sends a 503: a limit is reached and the client may retry later. */
export function replyBusy(response: ServerResponse, text: string): void {
  replyText(response, 503, `${text}\r\n`)
}

export function replyJson(response: ServerResponse, status: number, value: unknown): void {
  reply(response, status, contentTypes.json, JSON.stringify(value))
}

/** Announces trailers. HTTP/1.0 has no chunks and no trailers; its responses end with the connection. */
export function announceTrailers(response: ServerResponse, names: readonly string[]): string[] {
  return response.req.httpVersionMinor === 0 ? [] : ['Trailer', names.join(', ')]
}

/** Aborts a response that has begun: the client sees a broken chunk or, without chunks, a reset. */
export function abortResponse(response: ServerResponse): void {
  const { socket, req } = response
  if (req.httpVersionMinor === 0 && socket !== null && !('encrypted' in socket)) socket.resetAndDestroy()
  else response.destroy()
}

/** Sends a response without a body. */
export function replyEmpty(response: ServerResponse, status: number, headers: readonly string[] = []): void {
  begin(response, status, headers).end()
}
