// HTTP client of the command-line tool for a running server. It uses the modules of Node, because a package would take
// most of the time of a short command to load.

import { readFileSync } from 'node:fs'
import { Agent, type IncomingMessage, type RequestOptions, request } from 'node:http'
import type { AgentOptions } from 'node:https'
import { createRequire } from 'node:module'
import type { Readable } from 'node:stream'
import { text as textOf } from 'node:stream/consumers'
import { pipeline } from 'node:stream/promises'

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
  readonly trailers: Readonly<Record<string, string | undefined>>
}

export interface Client {
  get(path: string, query: Readonly<Record<string, string>>, signal?: AbortSignal): Promise<Reply>
  post(path: string, query: Readonly<Record<string, string>>, body: PostBody, type: string): Promise<Reply>
  close(): Promise<void>
}

type PostBody = string | Uint8Array | Readable | AsyncIterable<Uint8Array>

/** Limit in ms of connecting, with the handshake of TLS. Imports and queries have no limit. */
const defaultConnectMs = 10_000

interface Asked {
  readonly method: 'GET' | 'POST'
  readonly headers: Readonly<Record<string, string>>
  readonly signal?: AbortSignal
  readonly body?: PostBody
}

export function openClient(flags: ServerFlags, connectMs = defaultConnectMs): Client {
  const base = baseUrl(flags.url)
  const trusted = flags.ca === undefined ? {} : { ca: readFileSync(flags.ca) }
  const connector: Connector =
    base.protocol === 'https:'
      ? secureConnector({ rejectUnauthorized: flags.insecure !== true, ...trusted }, connectMs)
      : { agent: new Agent({ keepAlive: true }), request, connected: 'connect', connectMs }
  const authorization = authorizationOf(flags)
  const send = async (path: string, query: Readonly<Record<string, string>>, asked: Asked): Promise<Reply> =>
    ask(movable[path] === undefined ? path : await pathOf(path, ask, authorization), query, asked)
  const ask: Ask = async (path, query, asked) => {
    const url = new URL(path.replace(/^\//, ''), base)
    url.search = new URLSearchParams(query).toString()
    try {
      return replyOf(await respond(connector, url, asked))
    } catch (error) {
      // A body may fail with an error of its own.
      throw error instanceof ToolError ? error : unreachable(base, error)
    }
  }
  return {
    get: (path, query, signal) =>
      send(path, query, { method: 'GET', headers: authorization, ...(signal === undefined ? {} : { signal }) }),
    post: (path, query, body, type) =>
      send(path, query, { method: 'POST', headers: { ...authorization, 'content-type': type }, body }),
    close: async () => connector.agent.destroy(),
  }
}

interface Connector {
  readonly agent: Agent
  readonly request: typeof request
  /** The event of a socket that can be used. */
  readonly connected: 'connect' | 'secureConnect'
  readonly connectMs: number
}

function secureConnector(options: AgentOptions, connectMs: number): Connector {
  // Loaded on first use: TLS takes its time.
  const { Agent, request }: typeof import('node:https') = createRequire(import.meta.url)('node:https')
  return { agent: new Agent({ keepAlive: true, ...options }), request, connected: 'secureConnect', connectMs }
}

/** Resolves when the response begins, even before the body of the request has ended. */
function respond(connector: Connector, url: URL, { body, ...asked }: Asked): Promise<IncomingMessage> {
  const { agent, request, connected, connectMs } = connector
  const options: RequestOptions = { ...asked, agent }
  return new Promise((resolve, reject) => {
    const sent = request(url, options, resolve)
    sent.on('error', reject)
    sent.on('socket', (socket) => {
      if (!socket.connecting) return
      const late = (): unknown => sent.destroy(new Error(`no connection within ${connectMs / 1000} s`))
      const timer = setTimeout(late, connectMs)
      for (const event of [connected, 'close']) socket.once(event, () => clearTimeout(timer))
    })
    if (body === undefined || typeof body === 'string' || body instanceof Uint8Array) sent.end(body)
    else pipeline(body, sent).catch(reject)
  })
}

function replyOf(response: IncomingMessage): Reply {
  return {
    status: response.statusCode ?? 0,
    headers: response.headers,
    body: Object.assign(response, { text: () => textOf(response) }),
    get trailers() {
      return response.trailers
    },
  }
}

/** Paths that the server's settings may change, with the key under which /settings reports each. */
const movable: Readonly<Record<string, string>> = {
  exec: 'http.context.execute',
  exp: 'http.context.export',
  imp: 'http.context.import',
}

type Ask = (path: string, query: Readonly<Record<string, string>>, asked: Asked) => Promise<Reply>

/** Uses the default when the server does not report a path. */
async function pathOf(path: string, ask: Ask, headers: Readonly<Record<string, string>>): Promise<string> {
  const reply = await ask('settings', {}, { method: 'GET', headers })
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
