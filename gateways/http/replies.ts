// Complete answers: one write with its length known.

import type { ServerResponse } from 'node:http'
import type { Blame } from '../common/answers.js'

export const contentTypes = {
  json: 'application/json; charset=utf-8',
  text: 'text/plain; charset=utf-8',
} as const

/**
 * node:http writes a text together with the headers, in one piece, but bytes as a second piece of a vectored write,
 * which takes longer. Latin-1 maps bytes to characters and back unchanged, whatever they encode.
 */
const joinedBytesMax = 16 * 1024

const statusOfBlame: Record<Blame, number> = { request: 400, forbidden: 403, busy: 503, internal: 500 }

export function statusOf(blame: Blame): number {
  return statusOfBlame[blame]
}

export function reply(
  response: ServerResponse,
  status: number,
  type: string,
  body: string | Uint8Array,
  headers: readonly string[] = [],
): void {
  const bytes = typeof body === 'string' ? Buffer.from(body) : Buffer.from(body.buffer, body.byteOffset, body.length)
  if (status === 503) response.setHeader('Retry-After', '1')
  response.writeHead(status, ['Content-Type', type, 'Content-Length', String(bytes.length), ...headers])
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

/** No body at all. */
export function replyEmpty(response: ServerResponse, status: number, headers: readonly string[] = []): void {
  response.writeHead(status, [...headers])
  response.end()
}
