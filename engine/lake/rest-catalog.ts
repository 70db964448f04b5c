// Client of an external Iceberg REST catalog (Nessie, Polaris, Lakekeeper and others): the requests of Iceberg's REST
// protocol that loading, creating, renaming and committing to tables need. Credentials appear in no message.
//
//   GET   /v1/config?warehouse=...                          prefix of the paths below
//   POST  /v1/oauth/tokens                                  a token for client id and secret (OAuth2)
//   GET   /v1/<prefix>/namespaces/<ns>                      whether the namespace exists
//   POST  /v1/<prefix>/namespaces                           creates the namespace
//   GET   /v1/<prefix>/namespaces/<ns>/tables/<table>       metadata of a table
//   POST  /v1/<prefix>/namespaces/<ns>/tables               creates a table
//   POST  /v1/<prefix>/namespaces/<ns>/tables/<table>       a commit: requirements and updates
//   POST  /v1/<prefix>/tables/rename
//
// Invariants:
//   1. A commit without a clear response (time-out, status 5xx) has the result 'unknown'. The caller then looks at the
//      table to find out whether it succeeded.
//   2. Only the catalog decides whether the requirements of a commit hold; they are not checked here beforehand.

import { type HttpTransport, httpTransport } from '../object-store/http-transport.js'
import { StoreError, type StoreErrorKind } from '../object-store/object-store.js'
import { type CatalogMetadata, catalogJson, isObject, metadataIn, parseCatalogJson } from './catalog-metadata.js'

export interface RestCatalogOptions {
  /** Without `/v1`. */
  readonly url: string
  /** Empty: that of the catalog. */
  readonly warehouse: string
  readonly namespace: readonly string[]
  /** Empty: none. */
  readonly token: string
  /** Null: no OAuth2. */
  readonly client: { readonly id: string; readonly secret: string } | null
  readonly scope: string
  /** Where tokens are requested; empty: at the catalog. */
  readonly tokenUrl: string
  readonly timeoutMs: number
  /** Instead of HTTP, in simulations. */
  readonly transport?: HttpTransport
}

export type CommitResult =
  | { readonly kind: 'committed'; readonly metadata: CatalogMetadata }
  | { readonly kind: 'conflict'; readonly reason: string }
  | { readonly kind: 'unknown'; readonly error: StoreError }

interface Answer {
  readonly status: number
  readonly body: unknown
}

interface Token {
  readonly text: string
  /** On the monotonic clock. */
  readonly untilMs: number
}

/** Tokens are requested anew this long before they expire. */
const tokenSpareMs = 30_000
const tokenSecondsDefault = 3600
const connections = 4
/** Between the levels of a namespace in a path. */
const levelSeparator = '\u001f'

export class RestCatalog {
  readonly #options: RestCatalogOptions
  readonly #nowMs: () => number
  readonly #transport: HttpTransport
  #token: Token | null = null
  /** With a slash at its end. */
  #base: string | null = null
  #hasNamespace = false

  constructor(options: RestCatalogOptions, nowMs: () => number) {
    this.#options = options
    this.#nowMs = nowMs
    const { transport, timeoutMs } = options
    this.#transport = transport ?? httpTransport('the catalog', { connections, timeoutMs })
  }

  /** For messages. */
  describe(table: string): string {
    return [...this.#options.namespace, table].join('.')
  }

  /** Null: there is no such table. Rejects with StoreError. */
  async load(table: string): Promise<CatalogMetadata | null> {
    const answer = await this.#ask('GET', `${this.#namespacePath()}/tables/${encodeURIComponent(table)}?snapshots=all`)
    if (answer.status === 404) return null
    return metadataIn(this.#successful(answer))
  }

  /** `request`: its columns, partitions and properties. Null: there is such a table. Rejects with StoreError. */
  async create(table: string, request: object): Promise<CatalogMetadata | null> {
    await this.#createNamespace()
    const answer = await this.#ask('POST', `${this.#namespacePath()}/tables`, { name: table, ...request })
    if (answer.status === 409) return null
    this.#hasNamespace = answer.status < 300
    return metadataIn(this.#successful(answer))
  }

  /** Rejects with StoreError if the catalog refuses the commit for another reason than its requirements. */
  async commit(table: string, requirements: readonly object[], updates: readonly object[]): Promise<CommitResult> {
    const identifier = { namespace: this.#options.namespace, name: table }
    let answer: Answer
    try {
      const path = `${this.#namespacePath()}/tables/${encodeURIComponent(table)}`
      answer = await this.#ask('POST', path, { identifier, requirements, updates })
    } catch (error) {
      if (error instanceof StoreError && error.kind === 'unavailable') return { kind: 'unknown', error }
      throw error
    }
    if (answer.status === 409) return { kind: 'conflict', reason: messageOf(answer) }
    if (answer.status >= 500) return { kind: 'unknown', error: errorOf(answer) }
    return { kind: 'committed', metadata: metadataIn(this.#successful(answer)) }
  }

  /** False: there is no table of the first name. Rejects with StoreError. */
  async rename(from: string, to: string): Promise<boolean> {
    const { namespace } = this.#options
    const names = { source: { namespace, name: from }, destination: { namespace, name: to } }
    const answer = await this.#ask('POST', 'tables/rename', names)
    if (answer.status === 404) return false
    this.#successful(answer)
    return true
  }

  async close(): Promise<void> {
    await this.#transport.close()
  }

  #namespacePath(): string {
    return `namespaces/${encodeURIComponent(this.#options.namespace.join(levelSeparator))}`
  }

  async #createNamespace(): Promise<void> {
    if (this.#hasNamespace) return
    const { namespace } = this.#options
    const found = await this.#ask('GET', this.#namespacePath())
    const missing = found.status === 404
    if (!missing) this.#successful(found)
    for (let levels = 1; missing && levels <= namespace.length; levels++) {
      const answer = await this.#ask('POST', 'namespaces', { namespace: namespace.slice(0, levels), properties: {} })
      if (answer.status !== 409) this.#successful(answer)
    }
    this.#hasNamespace = true
  }

  /** The body. Throws StoreError for a status that is an error. */
  #successful(answer: Answer): unknown {
    if (answer.status < 300) return answer.body
    throw errorOf(answer)
  }

  /** A token that the catalog does not accept any more is requested anew, once. */
  async #ask(method: 'GET' | 'POST', path: string, body?: object): Promise<Answer> {
    const url = `${await this.#baseUrl()}${path}`
    const answer = await this.#send(method, url, body)
    if (answer.status !== 401 || this.#options.client === null) return answer
    this.#token = null
    return this.#send(method, url, body)
  }

  async #baseUrl(): Promise<string> {
    if (this.#base !== null) return this.#base
    const { url, warehouse } = this.#options
    const query = warehouse === '' ? '' : `?warehouse=${encodeURIComponent(warehouse)}`
    const root = `${url.replace(/\/+$/, '')}/v1/`
    let answer = await this.#send('GET', `${root}config${query}`)
    if (answer.status === 401 && this.#options.client !== null) {
      this.#token = null
      answer = await this.#send('GET', `${root}config${query}`)
    }
    const config = this.#successful(answer)
    const prefix = memberOf(config, 'overrides', 'prefix') ?? memberOf(config, 'defaults', 'prefix')
    this.#base = prefix === undefined || prefix === '' ? root : `${root}${prefix}/`
    return this.#base
  }

  async #send(method: 'GET' | 'POST', url: string, body?: object): Promise<Answer> {
    const token = await this.#bearer()
    const headers = {
      accept: 'application/json',
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      ...(token === '' ? {} : { authorization: `Bearer ${token}` }),
    }
    const content = body === undefined ? null : Buffer.from(catalogJson(body))
    return this.#exchange(method, url, headers, content)
  }

  async #exchange(
    method: string,
    url: string,
    headers: Record<string, string>,
    body: Uint8Array | null,
  ): Promise<Answer> {
    const { status, content } = await this.#transport.send(new URL(url), { method, headers, body })
    const text = new TextDecoder().decode(content)
    try {
      return { status, body: text === '' ? null : parseCatalogJson(text) }
    } catch (error) {
      if (status >= 300) return { status, body: text.slice(0, 200) }
      throw new StoreError('unavailable', `the response of the catalog is not JSON [url=${url}]`, { cause: error })
    }
  }

  /** Empty: the catalog asks for none. */
  async #bearer(): Promise<string> {
    const { client, token, scope, tokenUrl, url } = this.#options
    if (client === null) return token
    if (this.#token !== null && this.#nowMs() < this.#token.untilMs) return this.#token.text
    const form = new URLSearchParams({
      ...{ grant_type: 'client_credentials', client_id: client.id, client_secret: client.secret },
      ...(scope === '' ? {} : { scope }),
    })
    const place = tokenUrl === '' ? `${url.replace(/\/+$/, '')}/v1/oauth/tokens` : tokenUrl
    const headers = { accept: 'application/json', 'content-type': 'application/x-www-form-urlencoded' }
    const answer = await this.#exchange('POST', place, headers, Buffer.from(form.toString()))
    const text = isObject(answer.body) ? answer.body['access_token'] : undefined
    if (answer.status >= 300 || typeof text !== 'string') {
      const kind = answer.status >= 500 ? 'unavailable' : 'denied'
      throw new StoreError(kind, `the catalog gives no token: status ${answer.status} [url=${place}]`)
    }
    const seconds = isObject(answer.body) ? Number(answer.body['expires_in'] ?? tokenSecondsDefault) : 0
    this.#token = { text, untilMs: this.#nowMs() + seconds * 1000 - tokenSpareMs }
    return text
  }
}

const kinds: Readonly<Record<number, StoreErrorKind>> = {
  401: 'denied',
  403: 'denied',
  404: 'missing',
  409: 'conflict',
  429: 'unavailable',
}

function errorOf(answer: Answer): StoreError {
  const { status } = answer
  const kind = kinds[status] ?? (status >= 500 ? 'unavailable' : 'rejected')
  return new StoreError(kind, `the catalog answers ${status}: ${messageOf(answer)}`)
}

function messageOf({ body }: Answer): string {
  const error = isObject(body) ? body['error'] : undefined
  if (isObject(error)) return `${String(error['message'] ?? '')} (${String(error['type'] ?? 'no type')})`
  if (typeof error === 'string') return error
  return typeof body === 'string' ? body : 'no message'
}

function memberOf(config: unknown, group: string, name: string): string | undefined {
  const members = isObject(config) ? config[group] : undefined
  const value = isObject(members) ? members[name] : undefined
  return typeof value === 'string' ? value : undefined
}
