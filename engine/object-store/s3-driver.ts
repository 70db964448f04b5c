// Implements ObjectDriver for S3-compatible services: reads, writes, lists and deletes objects, one attempt for each
// call; only the parts of an upload are retried. An object's metadata contain its CRC-32 and the id of the write.
//
//   PUT <key>                                      objects in one request
//   POST ?uploads, PUT ?partNumber, POST ?uploadId   objects above `multipartBytes` in parts, where this is permitted
//
// A conditional write has If-None-Match: * or If-Match in the PUT or in the last request of an upload.
//
// The signature of each request covers the SHA-256 of its content, so the service rejects content that was corrupted on
// the way.

import type { HttpResponse } from './http-transport.js'
import {
  type ByteRange,
  type ListPage,
  type ObjectDriver,
  type ObjectHead,
  type ObjectInfo,
  type PutCondition,
  type PutRequest,
  StoreError,
} from './object-store.js'
import type { Retrier } from './retry.js'
import { errorOf, S3Client, type S3Options } from './s3-client.js'
import type { CredentialsProvider } from './s3-credentials.js'
import { elementStrings, elementText, escapeXml } from './s3-xml.js'

const checksumHeader = 'x-amz-meta-crc32'
const writeIdHeader = 'x-amz-meta-write-id'
/** Parts that are sent at a time: each is in memory while it is sent. */
const partsAtOnce = 4
/** Objects have at most 10,000 parts. */
const partsMax = 10_000

export class S3Driver implements ObjectDriver {
  readonly url: string
  readonly multipartBytes: number
  readonly #client: S3Client
  readonly #prefix: string
  readonly #retrier: Retrier

  constructor(options: S3Options, credentials: CredentialsProvider, retrier: Retrier) {
    const { bucket, prefix, multipartBytes } = options
    this.url = `s3://${bucket}${prefix === '' ? '' : `/${prefix}`}`
    this.multipartBytes = multipartBytes
    this.#client = new S3Client(options, credentials)
    this.#prefix = prefix === '' ? '' : `${prefix}/`
    this.#retrier = retrier
  }

  async put(request: PutRequest): Promise<ObjectInfo> {
    const { key, body, condition, multipart } = request
    if (multipart && body.bytes > this.multipartBytes) return this.#putInParts(request)
    const content = body.read(0, body.bytes)
    const response = await this.#client.send({
      method: 'PUT',
      key: this.#prefix + key,
      headers: { ...metadata(request), ...conditionHeaders(condition) },
      body: content,
    })
    body.sent?.(content)
    return { key, bytes: body.bytes, etag: etagOf(response) }
  }

  async get(key: string, range: ByteRange | null): Promise<{ content: Uint8Array; checksum: number | null }> {
    const headers = range === null ? {} : { range: `bytes=${range.offset}-${range.offset + range.bytes - 1}` }
    const response = await this.#client.send({ method: 'GET', key: this.#prefix + key, headers })
    if (range !== null && response.status !== 206 && response.content.length !== range.bytes) {
      throw new StoreError('unsupported', `the service ignores byte ranges [key=${key}]`)
    }
    return { content: response.content, checksum: checksumOf(response) }
  }

  async head(key: string): Promise<ObjectHead | null> {
    try {
      const response = await this.#client.send({ method: 'HEAD', key: this.#prefix + key })
      const bytes = Number(response.header('content-length') ?? Number.NaN)
      const writeId = response.header(writeIdHeader)
      return { key, bytes, etag: etagOf(response), checksum: checksumOf(response), writeId }
    } catch (error) {
      if (error instanceof StoreError && error.kind === 'missing') return null
      throw error
    }
  }

  async list(prefix: string, from: string | null): Promise<ListPage> {
    const query = {
      ...{ 'list-type': '2', prefix: this.#prefix + prefix },
      ...(from === null ? {} : { 'continuation-token': from }),
    }
    const { content } = await this.#client.send({ method: 'GET', key: '', query })
    const xml = new TextDecoder().decode(content)
    const objects = elementStrings(xml, 'Contents').flatMap((entry): ObjectInfo[] => {
      const key = elementText(entry, 'Key') ?? ''
      if (!key.startsWith(this.#prefix) || key.endsWith('/')) return []
      const bytes = Number(elementText(entry, 'Size') ?? Number.NaN)
      return [{ key: key.slice(this.#prefix.length), bytes, etag: elementText(entry, 'ETag') ?? '' }]
    })
    const isLast = elementText(xml, 'IsTruncated') !== 'true'
    return { objects, next: isLast ? null : (elementText(xml, 'NextContinuationToken') ?? null) }
  }

  async delete(key: string): Promise<void> {
    try {
      await this.#client.send({ method: 'DELETE', key: this.#prefix + key })
    } catch (error) {
      if (!(error instanceof StoreError) || error.kind !== 'missing') throw error
    }
  }

  close(): Promise<void> {
    return this.#client.close()
  }

  async #putInParts(request: PutRequest): Promise<ObjectInfo> {
    const key = this.#prefix + request.key
    const begun = await this.#client.send({ method: 'POST', key, query: { uploads: '' }, headers: metadata(request) })
    const uploadId = elementText(new TextDecoder().decode(begun.content), 'UploadId')
    if (uploadId === undefined) throw new StoreError('unsupported', `the service starts no upload [key=${request.key}]`)
    try {
      const etags = await this.#sendParts(request, key, uploadId)
      return await this.#complete(request, key, uploadId, etags)
    } catch (error) {
      // Behind a lost response the upload may be complete: then there is nothing to abort, and the store reads back.
      await this.#client.send({ method: 'DELETE', key, query: { uploadId } }).catch(() => undefined)
      throw error
    }
  }

  async #sendParts({ body }: PutRequest, key: string, uploadId: string): Promise<string[]> {
    const partBytes = Math.max(this.multipartBytes, Math.ceil(body.bytes / partsMax))
    const count = Math.ceil(body.bytes / partBytes)
    const etags: string[] = []
    let next = 0
    const sendSome = async (): Promise<void> => {
      while (next < count) {
        const part = next++
        const offset = part * partBytes
        const content = body.read(offset, Math.min(partBytes, body.bytes - offset))
        const query = { partNumber: String(part + 1), uploadId }
        const response = await this.#retrier.run(() => this.#client.send({ method: 'PUT', key, query, body: content }))
        body.sent?.(content)
        etags[part] = etagOf(response)
      }
    }
    const senders = Array.from({ length: Math.min(partsAtOnce, count) }, sendSome)
    const settled = await Promise.allSettled(senders)
    for (const outcome of settled) if (outcome.status === 'rejected') throw outcome.reason
    return etags
  }

  async #complete(request: PutRequest, key: string, uploadId: string, etags: readonly string[]): Promise<ObjectInfo> {
    const parts = etags.map(
      (etag, index) => `<Part><PartNumber>${index + 1}</PartNumber><ETag>${escapeXml(etag)}</ETag></Part>`,
    )
    const response = await this.#client.send({
      method: 'POST',
      key,
      query: { uploadId },
      headers: { 'content-type': 'application/xml', ...conditionHeaders(request.condition) },
      body: new TextEncoder().encode(`<CompleteMultipartUpload>${parts.join('')}</CompleteMultipartUpload>`),
    })
    const xml = new TextDecoder().decode(response.content)
    // Long completions begin their response before the outcome is known.
    if (elementText(xml, 'Code') !== undefined) throw errorOf('POST', key, 500, xml)
    return { key: request.key, bytes: request.body.bytes, etag: elementText(xml, 'ETag') ?? etagOf(response) }
  }
}

function metadata({ checksum, writeId }: PutRequest): Record<string, string> {
  return {
    'content-type': 'application/octet-stream',
    [checksumHeader]: checksum.toString(16).padStart(8, '0'),
    [writeIdHeader]: writeId,
  }
}

function conditionHeaders(condition: PutCondition): Record<string, string> {
  switch (condition.kind) {
    case 'always':
      return {}
    case 'absent':
      return { 'if-none-match': '*' }
    case 'match':
      return { 'if-match': condition.etag }
  }
}

function etagOf(response: HttpResponse): string {
  return response.header('etag') ?? ''
}

function checksumOf(response: HttpResponse): number | null {
  const text = response.header(checksumHeader)
  return text !== null && /^[0-9a-f]{8}$/.test(text) ? Number.parseInt(text, 16) : null
}
