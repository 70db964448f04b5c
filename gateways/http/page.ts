// HTTP handler for static pages: the console and the documentation. Bodies are compressed on first request, off the
// main thread, and then cached.

import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import type { Page } from '../common/pages.js'
import type { Handler } from './context.js'

/** Smaller bodies fit into a packet uncompressed. */
const packedBytesMin = 1400
const acceptsGzip = /\bgzip\b(?!\s*;\s*q=0(\.0*)?\s*(,|$))/i

export function handlePage({ contentType, body, etag }: Page): Handler {
  let packed: Promise<Buffer> | null = null
  return async ({ pages }, { request, response }) => {
    const shared = [...pages.headers, 'ETag', etag, 'Vary', 'Accept-Encoding']
    if (request.headers['if-none-match'] === etag) {
      response.writeHead(304, shared).end()
      return
    }
    const isPacked = body.length >= packedBytesMin && acceptsGzip.test(String(request.headers['accept-encoding'] ?? ''))
    if (isPacked) packed ??= promisify(gzip)(body, { level: 9 })
    const sent = isPacked && packed !== null ? await packed : body
    const coding = isPacked ? ['Content-Encoding', 'gzip'] : []
    response.writeHead(200, [...shared, 'Content-Type', contentType, ...coding, 'Content-Length', String(sent.length)])
    response.end(request.method === 'HEAD' ? undefined : sent)
  }
}
