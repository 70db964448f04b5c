// Client for S3-compatible services: builds addresses, signs requests, sends them, and converts error responses to
// StoreError. Credentials appear in no message.

import { type HttpResponse, type HttpTransport, httpTransport } from './http-transport.js'
import { StoreError, type StoreErrorKind } from './object-store.js'
import { RequestSigner } from './request-signer.js'
import type { CredentialsProvider } from './s3-credentials.js'
import { elementText } from './s3-xml.js'

export interface S3Options {
  readonly bucket: string
  /** Empty, or without slashes at its ends. */
  readonly prefix: string
  /** Empty: that of AWS in the region. */
  readonly endpoint: string
  readonly region: string
  /** Bucket in the path instead of the host name; `auto`: with an endpoint, and for names that hold dots. */
  readonly pathStyle: 'auto' | 'true' | 'false'
  readonly connections: number
  /** For each request, without its content: until the response begins, and between its chunks. */
  readonly timeoutMs: number
  readonly multipartBytes: number
}

export interface S3Request {
  readonly method: 'GET' | 'HEAD' | 'PUT' | 'POST' | 'DELETE'
  /** Relative to the bucket, prefix included; empty: the bucket itself. */
  readonly key: string
  readonly query?: Readonly<Record<string, string>>
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: Uint8Array
}

const emptyBody = new Uint8Array()

export class S3Client {
  readonly #credentials: CredentialsProvider
  readonly #base: URL
  readonly #transport: HttpTransport
  readonly #signer: RequestSigner

  constructor(options: S3Options, credentials: CredentialsProvider) {
    this.#credentials = credentials
    this.#base = baseUrl(options)
    this.#transport = httpTransport('object storage', options)
    this.#signer = new RequestSigner('s3', options.region)
  }

  /** Resolves for statuses below 300. Rejects with StoreError. */
  async send(request: S3Request): Promise<HttpResponse> {
    try {
      return await this.#sendOnce(request)
    } catch (error) {
      if (!(error instanceof ExpiredError)) throw error
      this.#credentials.forget()
      return this.#sendOnce(request)
    }
  }

  async close(): Promise<void> {
    await this.#transport.close()
  }

  async #sendOnce({ method, key, query = {}, headers = {}, body = emptyBody }: S3Request): Promise<HttpResponse> {
    const url = this.#url(key, query)
    const signed = await this.#signer.sign({ method, url, headers, body }, await this.#credentials.current())
    const hasBody = method === 'PUT' || method === 'POST'
    const response = await this.#transport.send(signed.url, {
      method,
      headers: signed.headers,
      body: hasBody ? body : null,
    })
    if (response.status < 300) return response
    throw responseError(method, `${this.#base.pathname === '/' ? '' : this.#base.pathname}/${key}`, response)
  }

  #url(key: string, query: Readonly<Record<string, string>>): string {
    const path = key.split('/').map(encodeSegment).join('/')
    const search = Object.entries(query).map(([name, value]) => `${encodeSegment(name)}=${encodeSegment(value)}`)
    const base = this.#base.href.replace(/\/$/, '')
    return `${base}/${path}${search.length === 0 ? '' : `?${search.join('&')}`}`
  }
}

/** The keys have expired, or their clock is off: fetching them again may help. */
class ExpiredError extends StoreError {}

/** The path of URL segments, encoded as the signature wants it. */
function encodeSegment(text: string): string {
  return encodeURIComponent(text).replace(
    /[!'()*]/g,
    (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
  )
}

function baseUrl({ bucket, endpoint, region, pathStyle }: S3Options): URL {
  const url = new URL(endpoint === '' ? `https://s3.${region}.amazonaws.com` : endpoint)
  const inPath = pathStyle === 'true' || (pathStyle === 'auto' && (endpoint !== '' || bucket.includes('.')))
  if (inPath) url.pathname = `${url.pathname.replace(/\/+$/, '')}/${encodeSegment(bucket)}`
  else url.hostname = `${bucket}.${url.hostname}`
  return url
}

const expiredCodes = new Set(['ExpiredToken', 'ExpiredTokenException', 'InvalidToken', 'TokenRefreshRequired'])
const busyCodes = new Set(['RequestTimeout', 'SlowDown', 'InternalError', 'ServiceUnavailable', 'OperationAborted'])
/** What the service says when the bytes that arrived are not those that were sent. */
const garbledCodes = new Set(['BadDigest', 'XAmzContentSHA256Mismatch', 'IncompleteBody'])

function responseError(method: string, path: string, response: HttpResponse): StoreError {
  const text = new TextDecoder().decode(response.content)
  return errorOf(method, path, response.status, text)
}

/** Also for errors that follow a status of 200, as that of a completed upload may. */
export function errorOf(method: string, path: string, status: number, xml: string): StoreError {
  const code = elementText(xml, 'Code') ?? ''
  const message = elementText(xml, 'Message') ?? ''
  const words = [`${method} ${path} answers with status ${status}`, code, message]
    .filter((word) => word !== '')
    .join(': ')
  if (expiredCodes.has(code)) return new ExpiredError('denied', words)
  return new StoreError(kindOf(status, code), words)
}

function kindOf(status: number, code: string): StoreErrorKind {
  if (busyCodes.has(code) || garbledCodes.has(code)) return 'unavailable'
  if (code === 'NoSuchUpload') return 'unavailable'
  if (code === 'NoSuchBucket') return 'rejected'
  if (status === 409 || status === 412) return 'conflict'
  if (status === 404) return 'missing'
  if (status === 401 || status === 403) return 'denied'
  if (status === 501) return 'unsupported'
  return status === 408 || status === 429 || status >= 500 ? 'unavailable' : 'rejected'
}
