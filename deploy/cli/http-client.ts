// HTTP client of the command-line tool for a running server. The only module that uses undici.

import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import type { Readable } from 'node:stream'

export interface ServerFlags {
  readonly url: string
  readonly user?: string
  readonly password?: string
  readonly token?: string
  readonly ca?: string
  readonly insecure?: boolean
}

/** An error with the exit status of the tool. */
export class ToolError extends Error {
  readonly exitCode: number
  /** Offset in the statement; 0 if unknown. */
  readonly position: number
  /** The message without its place and suggestion. */
  readonly bare: string
  readonly hint: string

  constructor(message: string, exitCode: number = exitCodes.refused, place = { position: 0, bare: '', hint: '' }) {
    super(message)
    this.name = 'ToolError'
    this.exitCode = exitCode
    this.position = place.position
    this.bare = place.bare
    this.hint = place.hint
  }

  /** The same with the text of its place below the message. */
  at(text: string): ToolError {
    const { message, exitCode, position, bare, hint } = this
    return text === '' ? this : new ToolError(`${message}\n${text.trimEnd()}`, exitCode, { position, bare, hint })
  }
}

export const exitCodes = { refused: 1, usage: 2, unreachable: 3 } as const

export interface Reply {
  readonly status: number
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly body: Readable & { text(): Promise<string> }
  /** Complete after the last byte of the body; names in lower case. */
  readonly trailers: Readonly<Record<string, string>>
}

export interface Client {
  get(path: string, query: Readonly<Record<string, string>>, signal?: AbortSignal): Promise<Reply>
  post(path: string, query: Readonly<Record<string, string>>, body: PostBody, type: string): Promise<Reply>
  close(): Promise<void>
}

type PostBody = string | Uint8Array | Readable | AsyncIterable<Uint8Array>

export function openClient(flags: ServerFlags): Client {
  // Loaded on first use, because `penstock start` imports this module for its errors only.
  const { Agent, request } = createRequire(import.meta.url)('undici') as typeof import('undici')
  const base = baseUrl(flags.url)
  const dispatcher = new Agent({
    // Imports and queries have no time limit.
    ...{ headersTimeout: 0, bodyTimeout: 0, connectTimeout: 10_000 },
    connect: {
      rejectUnauthorized: flags.insecure !== true,
      ...(flags.ca === undefined ? {} : { ca: readFileSync(flags.ca) }),
    },
  })
  const authorization = authorizationOf(flags)
  const send = async (method: 'GET' | 'POST', path: string, query: Readonly<Record<string, string>>, rest: object) => {
    return ask(method, movable[path] === undefined ? path : await pathOf(path, ask, authorization), query, rest)
  }
  const ask = async (method: 'GET' | 'POST', path: string, query: Readonly<Record<string, string>>, rest: object) => {
    const url = new URL(path.replace(/^\//, ''), base)
    url.search = new URLSearchParams(query).toString()
    try {
      const { statusCode, headers, body, trailers } = await request(url, { method, dispatcher, ...rest })
      return { status: statusCode, headers, body, trailers } as Reply
    } catch (error) {
      // A body may fail with an error of its own.
      throw error instanceof ToolError ? error : unreachable(base, error)
    }
  }
  return {
    get: (path, query, signal) =>
      send('GET', path, query, { headers: authorization, ...(signal === undefined ? {} : { signal }) }),
    post: (path, query, body, type) =>
      send('POST', path, query, { body, headers: { ...authorization, 'content-type': type } }),
    close: () => dispatcher.close(),
  }
}

/** Paths that the server's settings may change, with the key under which /settings reports each. */
const movable: Readonly<Record<string, string>> = {
  exec: 'http.context.execute',
  exp: 'http.context.export',
  imp: 'http.context.import',
}

type Ask = (method: 'GET', path: string, query: Readonly<Record<string, string>>, rest: object) => Promise<Reply>

/** Uses the default when the server does not report a path. */
async function pathOf(path: string, ask: Ask, headers: Readonly<Record<string, string>>): Promise<string> {
  const reply = await ask('GET', 'settings', {}, { headers })
  const text = await reply.body.text()
  if (reply.status !== 200) return path
  try {
    const { config } = JSON.parse(text) as { readonly config?: Readonly<Record<string, unknown>> }
    const moved = config?.[movable[path] ?? '']
    return typeof moved === 'string' ? moved : path
  } catch {
    return path
  }
}

function baseUrl(text: string): URL {
  let url: URL
  try {
    url = new URL(text.includes('://') ? text : `http://${text}`)
  } catch {
    throw new ToolError(`not an address of a server: ${text}`, exitCodes.usage)
  }
  if (url.protocol !== 'http:' && url.protocol !== 'https:') {
    throw new ToolError(`the address must begin with http:// or https:// [url=${text}]`, exitCodes.usage)
  }
  if (!url.pathname.endsWith('/')) url.pathname += '/'
  return url
}

function authorizationOf({ user, password, token }: ServerFlags): Readonly<Record<string, string>> {
  if (token !== undefined && token !== '') return { authorization: `Bearer ${token}` }
  if (user === undefined || user === '') return {}
  return { authorization: `Basic ${Buffer.from(`${user}:${password ?? ''}`).toString('base64')}` }
}

function unreachable({ origin }: URL, error: unknown): ToolError {
  const cause = error instanceof Error ? error : new Error(String(error))
  const code = 'code' in cause ? String(cause.code) : ''
  const inner = cause instanceof AggregateError ? cause.errors.map(String).join(', ') : cause.message
  return new ToolError(`no answer from ${origin}: ${inner === '' ? code : inner}`, exitCodes.unreachable)
}

/** The error message of a failed response. */
export async function refusalText(reply: Reply): Promise<string> {
  return (await refusalOf(reply)).message
}

/** The error of a failed response, with the place in the statement. */
export async function refusalOf(reply: Reply): Promise<ToolError> {
  const text = (await reply.body.text()).trim()
  if (reply.status === 401 || reply.status === 403) {
    return new ToolError(
      `the server rejects these credentials, or they lack the right [status=${reply.status}]${text === '' ? '' : `: ${errorIn(text).message}`}`,
    )
  }
  return text === '' ? new ToolError(`the server answered with status ${reply.status}`) : errorIn(text)
}

function errorIn(text: string): ToolError {
  try {
    const { error, message, status, position, hint } = JSON.parse(text) as Record<string, unknown>
    const words = error ?? message ?? status
    if (typeof words !== 'string') return new ToolError(text)
    const offset = typeof position === 'number' ? position : 0
    const placed = offset > 0 ? `${words} [position=${offset}]` : words
    const suggestion = typeof hint === 'string' ? hint : ''
    const place = { position: offset, bare: words, hint: suggestion }
    return new ToolError(suggestion === '' ? placed : `${placed}; ${suggestion}`, exitCodes.refused, place)
  } catch {
    return new ToolError(text)
  }
}
