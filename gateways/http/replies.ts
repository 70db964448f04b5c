// Complete answers: one write with its length known.

import type { ServerResponse } from 'node:http'
import type { Blame } from '../common/answers.js'

export const contentTypes = {
  json: 'application/json; charset=utf-8',
  text: 'text/plain; charset=utf-8',
} as const

const statusOfBlame: Record<Blame, number> = { request: 400, busy: 503, internal: 500 }

export function statusOf(blame: Blame): number {
  return statusOfBlame[blame]
}

export function reply(response: ServerResponse, status: number, type: string, body: string | Buffer): void {
  const length = typeof body === 'string' ? Buffer.byteLength(body) : body.length
  response.writeHead(status, ['Content-Type', type, 'Content-Length', String(length)])
  response.end(body)
}

export function replyText(response: ServerResponse, status: number, text: string): void {
  reply(response, status, contentTypes.text, text)
}

export function replyJson(response: ServerResponse, status: number, value: unknown): void {
  reply(response, status, contentTypes.json, JSON.stringify(value))
}

/** No body at all. */
export function replyEmpty(response: ServerResponse, status: number, headers: readonly string[] = []): void {
  response.writeHead(status, [...headers])
  response.end()
}
