// Small bodies of requests, whole, with a bound.

import type { IncomingMessage } from 'node:http'
import { gunzipSync } from 'node:zlib'
import { ExecRequestError } from './exec-request.js'

export const bodyBytesMax = 8 * 1024 * 1024

/** As text; rejects with ExecRequestError when it is too large, cut off or not UTF-8. */
export async function readBody(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of request) {
    bytes += (chunk as Buffer).length
    if (bytes > bodyBytesMax) throw new ExecRequestError(`the body is too large [max=${bodyBytesMax}]`, null)
    chunks.push(chunk as Buffer)
  }
  const body = Buffer.concat(chunks)
  try {
    const plain =
      request.headers['content-encoding'] === 'gzip' ? gunzipSync(body, { maxOutputLength: bodyBytesMax }) : body
    return new TextDecoder('utf-8', { fatal: true }).decode(plain)
  } catch {
    throw new ExecRequestError('the body is not valid UTF-8, or expands to more than it may', null)
  }
}
