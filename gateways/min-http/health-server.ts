// The server of health checks: 200 OK whatever the path, 500 or 503 when the flag says so, and /metrics. Nothing is logged.

import { createServer, type RequestListener, type Server, type ServerResponse } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import type { TlsServerOptions } from '../common/tls.js'

/** Word of the shared flag that holds one of `healthStates`. */
export const healthWord = 0
export const healthStates = { healthy: 0, unhealthy: 1, starting: 2 } as const

/** Requests for metrics that wait for the main thread at one time. */
const metricsWaitingMax = 16
/** A health check takes nothing that is large. */
const headerBytesMax = 16 * 1024
const headersMs = 10_000

export type AskMetrics = () => Promise<{ readonly contentType: string; readonly text: string } | null>

export function healthServer(flag: Int32Array, askMetrics: AskMetrics, tls: TlsServerOptions | null = null): Server {
  let metricsWaiting = 0
  const settings = { maxHeaderSize: headerBytesMax, headersTimeout: headersMs, requestTimeout: headersMs }
  const serve: RequestListener = (request, response) => {
    request.resume()
    if (request.url?.split('?')[0] !== '/metrics') {
      answerHealth(response, Atomics.load(flag, healthWord))
      return
    }
    if (Atomics.load(flag, healthWord) === healthStates.starting) {
      answerStarting(response)
      return
    }
    if (metricsWaiting >= metricsWaitingMax) {
      response.setHeader('Retry-After', '1')
      answer(response, 503, 'text/plain', 'the server is busy\n')
      return
    }
    metricsWaiting++
    void askMetrics().then((metrics) => {
      metricsWaiting--
      if (metrics === null) answer(response, 404, 'text/plain', 'Not Found\r\n')
      else answer(response, 200, metrics.contentType, metrics.text)
    })
  }
  return tls === null ? createServer(settings, serve) : createTlsServer({ ...settings, ...tls }, serve)
}

function answerHealth(response: ServerResponse, state: number): void {
  if (state === healthStates.starting) answerStarting(response)
  else if (state === healthStates.healthy) answer(response, 200, 'text/plain', 'OK')
  else answer(response, 500, 'text/plain', 'unhandled errors occurred')
}

function answerStarting(response: ServerResponse): void {
  response.setHeader('Retry-After', '1')
  answer(response, 503, 'text/plain', 'the server is starting\n')
}

function answer(response: ServerResponse, status: number, type: string, body: string): void {
  response.writeHead(status, ['Content-Type', type, 'Content-Length', String(Buffer.byteLength(body))])
  response.end(body)
}
