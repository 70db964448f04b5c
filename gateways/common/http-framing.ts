// Rejects HTTP requests with invalid framing: bytes that are not HTTP, and ambiguous messages that RFC 9112 requires
// a server to reject because two readers could parse them differently (request smuggling). Such a connection ends.

import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import { linger, lingerLimits } from './linger.js'

export interface FramingFault {
  readonly status: 400 | 501
  readonly message: string
}

/** Host and optional port: a name, an IPv4 address, or an IPv6 address in brackets. */
const hostText = /^(\[[0-9a-f:.]+(%[\w.~%-]+)?\]|[\w.~!$&'()*+,;=%-]*)(:\d*)?$/i

/** Returns null when the framing is unambiguous. The parser of node:http has already rejected other errors. */
export function framingFault({ rawHeaders, headers, httpVersionMinor }: IncomingMessage): FramingFault | null {
  const hosts = countOf(rawHeaders, 'host')
  if (hosts > 1) return { status: 400, message: 'the request has several Host headers' }
  if (headers.host !== undefined && !hostText.test(headers.host))
    return { status: 400, message: 'the Host header is not a host and port' }
  const coding = headers['transfer-encoding']
  if (coding === undefined) return null
  if (httpVersionMinor === 0) return { status: 400, message: 'HTTP/1.0 has no Transfer-Encoding' }
  const codings = coding.split(',').map((name) => name.trim().toLowerCase())
  if (codings.length === 1 && codings[0] === 'chunked') return null
  if (codings.at(-1) !== 'chunked') return { status: 400, message: 'Transfer-Encoding does not end with chunked' }
  const unknown = codings.find((name) => name !== 'chunked')
  if (unknown === undefined) return { status: 400, message: 'Transfer-Encoding names chunked more than once' }
  return { status: 501, message: `the transfer coding is not supported [coding=${JSON.stringify(unknown)}]` }
}

/** `rawHeaders` alternates names and values. */
function countOf(rawHeaders: readonly string[], name: string): number {
  let count = 0
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const header = rawHeaders[index] as string
    if (header.length === name.length && header.toLowerCase() === name) count++
  }
  return count
}

/** Status line for an error code of the parser of node:http. */
export function malformedStatus(code: string | undefined): string {
  if (code === 'HPE_HEADER_OVERFLOW') return '431 Request Header Fields Too Large'
  return code === 'ERR_HTTP_REQUEST_TIMEOUT' ? '408 Request Timeout' : '400 Bad Request'
}

/** Sends an error response to an invalid request, unless one was sent (null), and ends the connection. */
export function respondToMalformed(socket: Socket, status: string | null): void {
  // Otherwise the parser would report an error for every further byte.
  socket.removeAllListeners('data')
  socket.on('data', () => {})
  socket.resume()
  if (status !== null) socket.write(`HTTP/1.1 ${status}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`)
  linger(socket, lingerLimits.stranger)
}
