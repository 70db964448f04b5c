// What is wrong with a request of HTTP before anybody asks what it wants: bytes that are none, and messages of which
// RFC 9112 wants a refusal because two readers could see two different requests in them. Such a connection ends.

import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import { linger, patience } from './linger.js'

export interface FramingFault {
  readonly status: 400 | 501
  readonly message: string
}

/** A host and a port: a name, an IPv4 address, or an IPv6 address in brackets. */
const hostText = /^(\[[0-9a-f:.]+(%[\w.~%-]+)?\]|[\w.~!$&'()*+,;=%-]*)(:\d*)?$/i

/** Null: the message can be read in one way only. What the parser refuses itself never comes here. */
export function framingFault({ rawHeaders, headers, httpVersionMinor }: IncomingMessage): FramingFault | null {
  const hosts = countOf(rawHeaders, 'host')
  if (hosts > 1) return { status: 400, message: 'the request has several Host headers' }
  if (headers.host !== undefined && !hostText.test(headers.host))
    return { status: 400, message: 'the Host header is no host and port' }
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

/** Names and values alternate. */
function countOf(rawHeaders: readonly string[], name: string): number {
  let count = 0
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const header = rawHeaders[index] as string
    if (header.length === name.length && header.toLowerCase() === name) count++
  }
  return count
}

/** The status of what the parser of node:http could not take. */
export function brokenStatus(code: string | undefined): string {
  if (code === 'HPE_HEADER_OVERFLOW') return '431 Request Header Fields Too Large'
  return code === 'ERR_HTTP_REQUEST_TIMEOUT' ? '408 Request Timeout' : '400 Bad Request'
}

/** Answers bytes that are no request, unless the answer has been given (null); the connection ends. */
export function answerBroken(socket: Socket, status: string | null): void {
  // The parser would make an error of each byte that follows.
  socket.removeAllListeners('data')
  socket.on('data', () => {})
  socket.resume()
  if (status !== null) socket.write(`HTTP/1.1 ${status}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`)
  linger(socket, patience.stranger)
}
