// Reads request headers as strings, and small request bodies as a whole, up to a limit.

import type { IncomingMessage } from 'node:http'
import { gunzipSync } from 'node:zlib'
import { BodyTooLarge } from '../../pipeline/ingest.js'
import { ExecRequestError } from './exec-request.js'

const bodyBytesMax = 8 * 1024 * 1024

export function headerText({ headers }: IncomingMessage, name: string): string | undefined {
  const value = headers[name]
  return Array.isArray(value) ? value[0] : value
}

/** Whether the request has a body or declares its type. */
export function bringsBody({ headers }: IncomingMessage): boolean {
  const { 'content-type': type, 'content-length': length = '0', 'transfer-encoding': coding } = headers
  return type !== undefined || coding !== undefined || length !== '0'
}

/**
 * Reads the body as a string. Rejects with BodyTooLarge, leaving the rest unread, or ExecRequestError for invalid
 * UTF-8.
 */
export async function readBody(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of request.iterator({ destroyOnReturn: false })) {
    bytes += (chunk as Buffer).length
    if (bytes > bodyBytesMax) throw new BodyTooLarge(bodyBytesMax)
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
