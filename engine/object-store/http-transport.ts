// Sends HTTP requests to services of the object store: S3, credentials, Iceberg catalogs. No other module of the engine
// uses the package undici, which is loaded on first use, since most servers have no object storage.

import { createRequire } from 'node:module'
import { StoreError } from './object-store.js'
import type { FetchText } from './s3-credentials.js'

export interface HttpResponse {
  readonly status: number
  header(name: string): string | null
  readonly content: Uint8Array
}

interface HttpRequest {
  readonly method: string
  readonly headers: Record<string, string>
  readonly body: Uint8Array | null
}

export interface HttpTransport {
  /** Rejects with StoreError 'unavailable' when no response arrives: the service may have done what was asked. */
  send(url: URL, request: HttpRequest): Promise<HttpResponse>
  close(): Promise<void>
}

export interface TransportOptions {
  readonly connections: number
  /** Until the response begins, and between its chunks. */
  readonly timeoutMs: number
}

/** `service`: what messages call it. */
export function httpTransport(service: string, { connections, timeoutMs }: TransportOptions): HttpTransport {
  const { Agent, request }: typeof import('undici') = createRequire(import.meta.url)('undici')
  const dispatcher = new Agent({ connections, connect: { timeout: timeoutMs } })
  return {
    send: async (url, { method, headers, body }) => {
      try {
        const options = { method, headers, body, dispatcher, headersTimeout: timeoutMs, bodyTimeout: timeoutMs }
        const response = await request(url, options)
        const content = await response.body.bytes()
        return { status: response.statusCode, content, header: (name) => headerText(response.headers[name]) }
      } catch (error) {
        throw new StoreError('unavailable', `${service} cannot be reached: ${reasonOf(error)} [host=${url.host}]`, {
          cause: error,
        })
      }
    },
    close: () => dispatcher.destroy(),
  }
}

/** For small requests to services of credentials. */
export function textFetcher(timeoutMs: number): FetchText {
  const { send } = httpTransport('object storage', { connections: 1, timeoutMs })
  return async (url, { method, headers }) => {
    const { status, content } = await send(new URL(url), { method, headers: { ...headers }, body: null })
    return { status, text: new TextDecoder().decode(content) }
  }
}

function headerText(value: string | string[] | undefined): string | null {
  return typeof value === 'string' ? value : (value?.[0] ?? null)
}

/** An error of several addresses has no message of its own. */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  if (error.message !== '') return error.message
  return 'code' in error ? String(error.code) : error.name
}
