// An S3 service in memory over HTTP, for tests: objects with metadata, range reads, conditional writes, paged lists,
// multipart uploads. It verifies signatures by computing them itself, and tests can make its requests fail.

import { createHash, createHmac } from 'node:crypto'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

interface StoredObject {
  readonly content: Buffer
  readonly etag: string
  readonly headers: Record<string, string>
}

export interface S3Service {
  readonly endpoint: string
  readonly bucket: string
  readonly accessKeyId: string
  readonly secretAccessKey: string
  readonly objects: Map<string, StoredObject>
  /** Method and path of each request. */
  readonly requests: string[]
  /** Called with each request; a status that it returns is the response, before or behind the effect of the request. */
  fail: ((request: IncomingMessage) => { readonly status: number; readonly applied: boolean } | 'reset' | null) | null
  /** Behaves like services that do not know If-None-Match. */
  ignoresConditions: boolean
  close(): Promise<void>
}

const region = 'us-east-1'
const listMax = 3

export async function openS3Service(): Promise<S3Service> {
  const service = new MemoryService()
  await service.listen()
  return service
}

class MemoryService implements S3Service {
  endpoint = ''
  readonly bucket = 'history'
  readonly accessKeyId = 'AKIDEXAMPLE'
  readonly secretAccessKey = 'secret/example+key'
  readonly objects = new Map<string, StoredObject>()
  readonly requests: string[] = []
  fail: S3Service['fail'] = null
  ignoresConditions = false
  readonly #uploads = new Map<
    string,
    { readonly key: string; readonly headers: Record<string, string>; readonly parts: Map<number, Buffer> }
  >()
  readonly #server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => this.#handle(request, response, Buffer.concat(chunks)))
  })

  async listen(): Promise<void> {
    await new Promise<void>((listening) => this.#server.listen(0, '127.0.0.1', listening))
    this.endpoint = `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`
  }

  close(): Promise<void> {
    return new Promise((closed) => {
      this.#server.close(() => closed())
      this.#server.closeAllConnections()
    })
  }

  #handle(request: IncomingMessage, response: ServerResponse, body: Buffer): void {
    this.requests.push(`${request.method} ${request.url}`)
    const failure = this.fail?.(request) ?? null
    if (failure === 'reset') {
      request.socket.destroy()
      return
    }
    const reply = failure !== null && !failure.applied ? null : this.#answer(request, body)
    if (failure !== null) send(response, { status: failure.status, headers: {}, content: Buffer.from('') })
    else if (reply !== null) send(response, reply)
  }

  #answer(request: IncomingMessage, body: Buffer): Reply {
    const url = new URL(request.url ?? '/', this.endpoint)
    const refused = refusal(request, url, body, this)
    if (refused !== '') return failureReply(403, refused)
    const [, bucket = '', key = ''] = /^\/([^/]+)\/?(.*)$/.exec(decodeURIComponent(url.pathname)) ?? []
    if (bucket !== this.bucket) return failureReply(404, 'NoSuchBucket')
    if (key === '') return listReply(this, url)
    switch (request.method) {
      case 'PUT':
        return url.searchParams.has('uploadId') ? this.#putPart(url, body) : this.#putObject(request, key, body)
      case 'POST':
        return url.searchParams.has('uploads') ? this.#begin(request, key) : this.#complete(request, url)
      case 'DELETE':
        if (url.searchParams.has('uploadId')) this.#uploads.delete(url.searchParams.get('uploadId') ?? '')
        else this.objects.delete(key)
        return { status: 204, headers: {}, content: Buffer.from('') }
      default:
        return this.#getObject(request, key)
    }
  }

  #putObject(request: IncomingMessage, key: string, content: Buffer): Reply {
    const refused = this.#conditionRefusal(request, key)
    if (refused !== null) return refused
    const etag = `"${createHash('md5').update(content).digest('hex')}"`
    this.objects.set(key, { content, etag, headers: metadataOf(request) })
    return { status: 200, headers: { etag }, content: Buffer.from('') }
  }

  #conditionRefusal(request: IncomingMessage, key: string): Reply | null {
    if (this.ignoresConditions) return null
    const { 'if-none-match': absent, 'if-match': match } = request.headers
    const found = this.objects.get(key)
    if (absent === '*' && found !== undefined) return failureReply(412, 'PreconditionFailed')
    if (match !== undefined && found === undefined) return failureReply(404, 'NoSuchKey')
    return match !== undefined && found?.etag !== match ? failureReply(412, 'PreconditionFailed') : null
  }

  #begin(request: IncomingMessage, key: string): Reply {
    const id = `upload-${this.#uploads.size + 1}`
    this.#uploads.set(id, { key, headers: metadataOf(request), parts: new Map() })
    return xmlReply(`<InitiateMultipartUploadResult><UploadId>${id}</UploadId></InitiateMultipartUploadResult>`)
  }

  #putPart(url: URL, body: Buffer): Reply {
    const upload = this.#uploads.get(url.searchParams.get('uploadId') ?? '')
    if (upload === undefined) return failureReply(404, 'NoSuchUpload')
    upload.parts.set(Number(url.searchParams.get('partNumber')), body)
    const etag = `"${createHash('md5').update(body).digest('hex')}"`
    return { status: 200, headers: { etag }, content: Buffer.from('') }
  }

  #complete(request: IncomingMessage, url: URL): Reply {
    const id = url.searchParams.get('uploadId') ?? ''
    const upload = this.#uploads.get(id)
    if (upload === undefined) return failureReply(404, 'NoSuchUpload')
    const refused = this.#conditionRefusal(request, upload.key)
    if (refused !== null) return refused
    const parts = [...upload.parts].sort(([one], [other]) => one - other).map(([, part]) => part)
    const content = Buffer.concat(parts)
    const etag = `"${createHash('md5').update(content).digest('hex')}-${parts.length}"`
    this.objects.set(upload.key, { content, etag, headers: upload.headers })
    this.#uploads.delete(id)
    return xmlReply(`<CompleteMultipartUploadResult><ETag>${etag}</ETag></CompleteMultipartUploadResult>`)
  }

  #getObject(request: IncomingMessage, key: string): Reply {
    const found = this.objects.get(key)
    if (found === undefined) return failureReply(404, 'NoSuchKey')
    const { etag, headers } = found
    const [, first, last] = /^bytes=(\d+)-(\d+)$/.exec(request.headers.range ?? '') ?? []
    if (first === undefined) return { status: 200, headers: { ...headers, etag }, content: found.content }
    if (Number(first) >= found.content.length) return failureReply(416, 'InvalidRange')
    const content = found.content.subarray(Number(first), Number(last) + 1)
    return { status: 206, headers: { ...headers, etag }, content }
  }
}

interface Reply {
  readonly status: number
  readonly headers: Record<string, string>
  readonly content: Buffer
}

function send(response: ServerResponse, { status, headers, content }: Reply): void {
  response.writeHead(status, { ...headers, 'content-length': content.length })
  response.end(response.req.method === 'HEAD' ? undefined : content)
}

function xmlReply(xml: string): Reply {
  return { status: 200, headers: { 'content-type': 'application/xml' }, content: Buffer.from(xml) }
}

function failureReply(status: number, code: string): Reply {
  return { ...xmlReply(`<Error><Code>${code}</Code><Message>the test says so</Message></Error>`), status }
}

function metadataOf(request: IncomingMessage): Record<string, string> {
  const own = Object.entries(request.headers).filter(([name]) => name.startsWith('x-amz-meta-'))
  return Object.fromEntries(own.map(([name, value]) => [name, String(value)]))
}

function listReply(service: S3Service, url: URL): Reply {
  const prefix = url.searchParams.get('prefix') ?? ''
  const after = url.searchParams.get('continuation-token') ?? ''
  const keys = [...service.objects.keys()].filter((key) => key.startsWith(prefix) && key > after).sort()
  const entries = keys.slice(0, listMax).map((key) => {
    const { content, etag } = service.objects.get(key) ?? { content: Buffer.from(''), etag: '' }
    const quoted = `&quot;${etag.replaceAll('"', '')}&quot;`
    const name = key.replaceAll('&', '&amp;').replaceAll('<', '&lt;')
    return `<Contents><Key>${name}</Key><Size>${content.length}</Size><ETag>${quoted}</ETag></Contents>`
  })
  const isTruncated = keys.length > listMax
  const token = isTruncated ? `<NextContinuationToken>${keys[listMax - 1]}</NextContinuationToken>` : ''
  return xmlReply(
    `<ListBucketResult xmlns="x"><IsTruncated>${isTruncated}</IsTruncated>${token}${entries.join('')}</ListBucketResult>`,
  )
}

/** What is wrong with the signature of a request; empty: nothing. `name`: of the service, as signatures have it. */
export function refusal(
  request: IncomingMessage,
  url: URL,
  body: Buffer,
  service: Pick<S3Service, 'accessKeyId' | 'secretAccessKey'>,
  name = 's3',
): string {
  const [, id, day, signed = '', signature] =
    /^AWS4-HMAC-SHA256 Credential=([^/]+)\/(\d+)\/[^,]+, SignedHeaders=([^,]+), Signature=(\w+)$/.exec(
      request.headers.authorization ?? '',
    ) ?? []
  if (id !== service.accessKeyId) return 'InvalidAccessKeyId'
  const hash = createHash('sha256').update(body).digest('hex')
  if (request.headers['x-amz-content-sha256'] !== hash) return 'XAmzContentSHA256Mismatch'
  const [path = '', search = ''] = (request.url ?? '').split('?')
  const query = search.split('&').sort().join('&')
  const headers = signed.split(';').map((name) => `${name}:${String(request.headers[name] ?? '').trim()}\n`)
  const canonical = [request.method, path, query, headers.join(''), signed, hash].join('\n')
  const scope = `${day}/${region}/${name}/aws4_request`
  const digest = createHash('sha256').update(canonical).digest('hex')
  const text = ['AWS4-HMAC-SHA256', request.headers['x-amz-date'], scope, digest].join('\n')
  const hmac = (key: string | Buffer, data: string): Buffer => createHmac('sha256', key).update(data).digest()
  const key = [region, name, 'aws4_request'].reduce(hmac, hmac(`AWS4${service.secretAccessKey}`, day ?? ''))
  return hmac(key, text).toString('hex') === signature && url.host !== '' ? '' : 'SignatureDoesNotMatch'
}
