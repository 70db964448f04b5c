// The web console's client of the server's HTTP API. Each request has a header without which the server ignores the
// session cookie. A page of another site cannot set that header, so it cannot act on behalf of a signed-in user.
// Statements are sent as JSON bodies, except those of an export, which are in the URL.

import { asList, asNumber, asText, isObject, type JsonObject, objectIn } from './json.js'
import type { Column, Row } from './values.js'

/** Without it the server ignores the cookie. */
const ownHeader = { 'x-penstock-console': '1' } as const

export class QueryError extends Error {
  /** Offset in the statement; 0 if unknown. */
  readonly position: number

  constructor(message: string, position = 0) {
    super(message)
    this.name = 'QueryError'
    this.position = position
  }
}

type AskSignIn = (reason: string) => Promise<boolean>

let askSignIn: AskSignIn = async () => false
let asking: Promise<boolean> | null = null

/** Registers the sign-in dialog; it resolves with whether the user signed in. */
export function onSignIn(ask: AskSignIn): void {
  askSignIn = ask
}

export async function request(path: string, options: RequestInit = {}): Promise<Response> {
  for (let attempt = 0; ; attempt++) {
    const headers = { ...ownHeader, ...Object.fromEntries(new Headers(options.headers)) }
    const response = await fetch(path, { ...options, headers, credentials: 'same-origin', cache: 'no-store' })
    // Other refusals, such as a missing right, are final.
    const mayRetry = response.status === 403 && response.headers.has('www-authenticate') && attempt < 2
    if (!mayRetry || !(await signInOnce())) return response
  }
}

/** Requests that are refused at the same time ask once. */
function signInOnce(): Promise<boolean> {
  asking ??= askSignIn('This server requires a name and a password.').finally(() => {
    asking = null
  })
  return asking
}

const usualPaths = { execute: '/exec', export: '/exp', import: '/imp' } as const
let moved: JsonObject | null = null
let version = ''

async function settings(): Promise<JsonObject> {
  if (moved !== null) return moved
  const response = await request('../settings')
  // After a failed request the next call asks again.
  if (!response.ok) return {}
  const { config } = objectIn(await response.text())
  moved = isObject(config) ? config : {}
  version = asText(moved['release.version'])
  return moved
}

export async function serverVersion(): Promise<string> {
  await settings()
  return version
}

/** The path of an endpoint, which settings of the server may have moved. */
export async function pathOf(what: keyof typeof usualPaths): Promise<string> {
  return `..${asText((await settings())[`http.context.${what}`], usualPaths[what])}`
}

export interface RowsAnswer {
  readonly kind: 'rows'
  readonly columns: readonly Column[]
  readonly rows: readonly Row[]
  /** Whether the result has rows behind these. */
  readonly more: boolean
  /** Milliseconds that the server took. */
  readonly serverMs: number
}

export interface DoneAnswer {
  readonly kind: 'done'
  readonly text: string
  readonly notices: readonly string[]
}

export interface ExecuteOptions {
  readonly skip?: number
  /** Without it: as many rows as the server sends. */
  readonly limit?: number
  readonly explain?: boolean
  /** Rejects a statement that changes anything, whatever the user's rights. */
  readonly readOnly?: boolean
  readonly signal?: AbortSignal
}

export async function execute(sql: string, options: ExecuteOptions = {}): Promise<RowsAnswer | DoneAnswer> {
  const { skip = 0, limit, explain = false, readOnly = false } = options
  // One row more tells whether there are more.
  const range = limit === undefined ? {} : { limit: `${skip},${limit + 1}` }
  const body = { query: sql, timings: true, quoteLargeNum: true, explain, readonly: readOnly, ...range }
  const answer = await post(body, options.signal)
  if (isObject(answer['explain'])) {
    const rows = asList(answer['explain']['plan']).map((line) => [line])
    return { kind: 'rows', columns: [{ name: 'QUERY PLAN', type: 'VARCHAR' }], rows, more: false, serverMs: 0 }
  }
  if (answer['columns'] === undefined) {
    return { kind: 'done', text: doneText(answer), notices: asList(answer['notices']).map(String) }
  }
  const all = asList(answer['dataset']).map(asList)
  const rows = limit === undefined ? all : all.slice(0, limit)
  const more = rows.length < all.length || answer['capped'] === true
  const timings = isObject(answer['timings']) ? answer['timings'] : {}
  const serverMs = asNumber(timings['compiler']) + asNumber(timings['execute'])
  return { kind: 'rows', columns: asList(answer['columns']).map(columnOf), rows, more, serverMs }
}

/** Rows of a statement that must return some, such as those of system relations. */
export async function rowsOf(sql: string, signal?: AbortSignal): Promise<readonly Row[]> {
  const answer = await execute(sql, signal === undefined ? {} : { signal })
  return answer.kind === 'rows' ? answer.rows : []
}

/** The number of rows of a query. */
export async function countRows(sql: string, signal: AbortSignal): Promise<number> {
  return asNumber((await post({ query: sql, count: true }, signal))['count'])
}

async function post(body: JsonObject, signal: AbortSignal | undefined): Promise<JsonObject> {
  const response = await request(await pathOf('execute'), {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
    ...(signal === undefined ? {} : { signal }),
  })
  const text = await response.text()
  const answer = objectIn(text)
  if (response.ok && answer['error'] === undefined && Object.keys(answer).length > 0) return answer
  throw errorOf(answer, text, response.status)
}

function errorOf(answer: JsonObject, text: string, status: number): QueryError {
  const message = asText(answer['error'], text.trim() === '' ? `the server answered ${status}` : text.trim())
  const hint = asText(answer['hint'])
  return new QueryError(hint === '' ? message : `${message}; ${hint}`, asNumber(answer['position']))
}

function columnOf(value: unknown): Column {
  const { name, type, dim } = isObject(value) ? value : {}
  const dimensions = asNumber(dim)
  return { name: asText(name), type: dimensions === 0 ? asText(type) : `DOUBLE${'[]'.repeat(dimensions)}` }
}

function doneText(answer: JsonObject): string {
  for (const word of ['inserted', 'updated', 'deleted', 'merged']) {
    const count = answer[word]
    if (typeof count === 'number') return `${count.toLocaleString('en')} ${count === 1 ? 'row' : 'rows'} ${word}`
  }
  return asText(answer['ddl'], 'OK')
}

export const exportFormats = { csv: 'csv', parquet: 'parquet', ndjson: 'jsonl', arrow: 'arrow' } as const
export type ExportFormat = keyof typeof exportFormats

/** All rows of a query as a file; `progress` gets the bytes that have arrived. */
export async function exportRows(
  sql: string,
  format: ExportFormat,
  signal: AbortSignal,
  progress: (bytes: number) => void,
): Promise<Blob> {
  const query = new URLSearchParams({ query: sql, fmt: format })
  const response = await request(`${await pathOf('export')}?${query}`, { signal })
  if (!response.ok || response.body === null) {
    const text = await response.text()
    throw errorOf(objectIn(text), text, response.status)
  }
  const parts: Uint8Array<ArrayBuffer>[] = []
  let bytes = 0
  const reader = response.body.getReader()
  for (let part = await reader.read(); !part.done; part = await reader.read()) {
    parts.push(part.value)
    bytes += part.value.length
    progress(bytes)
  }
  return new Blob(parts, { type: response.headers.get('content-type') ?? '' })
}

/** Sends a form or a file, with progress, which fetch() does not report. */
export function upload(
  path: string,
  body: FormData | Blob,
  signal: AbortSignal,
  progress: (share: number) => void,
): Promise<{ readonly status: number; readonly text: string }> {
  return new Promise((resolve, reject) => {
    const sending = new XMLHttpRequest()
    sending.open('POST', path)
    for (const [name, value] of Object.entries(ownHeader)) sending.setRequestHeader(name, value)
    sending.upload.addEventListener('progress', ({ loaded, total }) => progress(total === 0 ? 1 : loaded / total))
    sending.addEventListener('load', () => resolve({ status: sending.status, text: sending.responseText }))
    sending.addEventListener('error', () => reject(new QueryError('the connection to the server was lost')))
    sending.addEventListener('abort', () => reject(new QueryError('cancelled')))
    signal.addEventListener('abort', () => sending.abort())
    sending.send(body)
  })
}

export async function metricsText(signal: AbortSignal): Promise<string> {
  const response = await request('../metrics', { signal })
  return response.ok ? response.text() : ''
}

export interface SavedItem {
  readonly name: string
  /** Whose it is. */
  readonly user: string
  readonly shared: boolean
  readonly version: number
  readonly content: unknown
}

const savedPath = '../api/v1/saved'

/** What the user, and others who share it, have saved in the server; `user`: who asks. */
export async function savedItems(
  kind: 'query' | 'dashboard',
): Promise<{ readonly user: string; readonly items: readonly SavedItem[] }> {
  const response = await request(`${savedPath}?kind=${kind}`)
  const text = await response.text()
  const answer = objectIn(text)
  if (!response.ok) throw errorOf(answer, text, response.status)
  const items = asList(answer['saved']).map((entry) => {
    const { name, user, shared, version, content } = isObject(entry) ? entry : {}
    return { name: asText(name), user: asText(user), shared: shared === true, version: asNumber(version), content }
  })
  return { user: asText(answer['user']), items }
}

/** Saves an item, and resolves with its new version. `version` in the item: what the user has seen. */
export async function storeItem(item: JsonObject): Promise<number> {
  const response = await request(savedPath, { method: 'PUT', body: JSON.stringify(item) })
  const text = await response.text()
  const answer = objectIn(text)
  if (!response.ok) throw errorOf(answer, text, response.status)
  return asNumber(answer['version'])
}

export async function removeItem(kind: 'query' | 'dashboard', name: string, user: string): Promise<void> {
  const response = await request(`${savedPath}?${new URLSearchParams({ kind, name, user })}`, { method: 'DELETE' })
  const problem = await problemOf(response)
  if (problem !== '') throw new QueryError(problem)
}

/** What is wrong; empty: the alert is defined. */
export async function storeAlert(definition: JsonObject): Promise<string> {
  return problemOf(await request('../api/v1/alerts', { method: 'PUT', body: JSON.stringify(definition) }))
}

/** What is wrong; empty: the alert is removed. */
export async function removeAlert(name: string): Promise<string> {
  return problemOf(await request(`../api/v1/alerts?name=${encodeURIComponent(name)}`, { method: 'DELETE' }))
}

async function problemOf(response: Response): Promise<string> {
  const text = await response.text()
  return response.ok ? '' : asText(objectIn(text)['error'], text)
}

export interface Warning {
  readonly tag: string
  readonly warning: string
}

export async function warnings(signal: AbortSignal): Promise<Warning[]> {
  const response = await request('../warnings', { signal })
  const list: unknown = response.ok ? JSON.parse(await response.text()) : []
  return asList(list).map((entry) => {
    const { tag, warning } = isObject(entry) ? entry : {}
    return { tag: asText(tag), warning: asText(warning) }
  })
}
