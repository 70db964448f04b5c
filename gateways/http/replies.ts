// Complete answers: one write with its length known.

import type { ServerResponse } from 'node:http'
import type { Blame } from '../common/answers.js'

export const contentTypes = {
  json: 'application/json; charset=utf-8',
  /** As /chk and /warnings are known to name it. */
  plainJson: 'application/json',
  text: 'text/plain; charset=utf-8',
} as const

/**
 * node:http writes a text together with the headers, in one piece, but bytes as a second piece of a vectored write,
 * which takes longer. Latin-1 maps bytes to characters and back unchanged, whatever they encode.
 */
const joinedBytesMax = 16 * 1024

const statusOfBlame: Record<Blame, number> = { request: 400, oversize: 413, forbidden: 403, busy: 503, internal: 500 }

export function statusOf(blame: Blame): number {
  return statusOfBlame[blame]
}

/**
 * For every answer: it is data and not a page to be guessed at or framed, its address stays with this server, and pages
 * of other sites cannot embed it.
 */
const commonHeaders: readonly string[] = [
  ...['X-Content-Type-Options', 'nosniff', 'X-Frame-Options', 'DENY', 'Referrer-Policy', 'same-origin'],
  ...['Cross-Origin-Resource-Policy', 'same-origin', 'Cache-Control', 'no-store'],
]

/** Headers of single answers, from those who stand before the handlers. */
const addedHeaders = new WeakMap<ServerResponse, readonly string[]>()

export function addHeaders(response: ServerResponse, headers: readonly string[]): void {
  addedHeaders.set(response, headers)
}

/** Begins an answer: as writeHead, with the headers that every answer has. */
export function begin(response: ServerResponse, status: number, headers: readonly string[]): ServerResponse {
  const added = addedHeaders.get(response) ?? []
  const later = status === 503 && !response.hasHeader('Retry-After') ? ['Retry-After', '1'] : []
  return response.writeHead(status, [...headers, ...commonHeaders, ...added, ...later])
}

export function reply(
  response: ServerResponse,
  status: number,
  type: string,
  body: string | Uint8Array,
  headers: readonly string[] = [],
): void {
  const bytes = typeof body === 'string' ? Buffer.from(body) : Buffer.from(body.buffer, body.byteOffset, body.length)
  begin(response, status, ['Content-Type', type, 'Content-Length', String(bytes.length), ...headers])
  if (bytes.length > joinedBytesMax) response.end(bytes)
  else response.end(bytes.toString('latin1'), 'latin1')
}

export function replyText(response: ServerResponse, status: number, text: string): void {
  reply(response, status, contentTypes.text, text)
}

/** Comes again later: a limit is reached. */
export function replyBusy(response: ServerResponse, text: string): void {
  replyText(response, 503, `${text}\r\n`)
}

export function replyJson(response: ServerResponse, status: number, value: unknown): void {
  reply(response, status, contentTypes.json, JSON.stringify(value))
}

/** HTTP/1.0 knows no chunks, so nothing can stand behind them: its answers end with the connection. */
export function announceTrailers(response: ServerResponse, names: readonly string[]): string[] {
  return response.req.httpVersionMinor === 0 ? [] : ['Trailer', names.join(', ')]
}

/** An answer that has begun and has no good end: the client sees a broken chunk, or, without chunks, a reset. */
export function cutOff(response: ServerResponse): void {
  const { socket, req } = response
  if (req.httpVersionMinor === 0 && socket !== null && !('encrypted' in socket)) socket.resetAndDestroy()
  else response.destroy()
}

/** No body at all. */
export function replyEmpty(response: ServerResponse, status: number, headers: readonly string[] = []): void {
  begin(response, status, headers).end()
}
