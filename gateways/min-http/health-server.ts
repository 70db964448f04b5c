// The server of health checks: 200 OK whatever the path, 500 when the flag says so, and /metrics. Nothing is logged.

import { createServer, type RequestListener, type Server, type ServerResponse } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import type { TlsServerOptions } from '../common/tls.js'

/** Word of the shared flag: not 0 once the main server is unhealthy. */
export const unhealthyWord = 0

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
      answerHealth(response, Atomics.load(flag, unhealthyWord) === 0)
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

function answerHealth(response: ServerResponse, healthy: boolean): void {
  answer(response, healthy ? 200 : 500, 'text/plain', healthy ? 'OK' : 'unhandled errors occurred')
}

function answer(response: ServerResponse, status: number, type: string, body: string): void {
  response.writeHead(status, ['Content-Type', type, 'Content-Length', String(Buffer.byteLength(body))])
  response.end(body)
}
