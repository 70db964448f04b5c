// Answers every HTTP request with 503 and Retry-After while the server starts, health checks included.

import type { BindAddress } from '../common/bind-address.js'
import { listen, type TakenPort } from '../common/listen.js'
import type { TlsKeys } from '../common/tls.js'
import { replyBusy } from './replies.js'
import { createHttpServer } from './sockets.js'

const connectionsMax = 256
const requestMs = 10_000
/** Grace period for responses in flight when the server becomes ready. */
const farewellMs = 1000

export async function takeHttpPort(bindTo: BindAddress, tls: TlsKeys | null): Promise<TakenPort> {
  const server = createHttpServer({ requestTimeout: 0, keepAliveTimeout: requestMs }, tls)
  server.maxConnections = connectionsMax
  server.setTimeout(requestMs)
  server.on('request', (request, response) => {
    // The body is read to its end, so that the client reads the response.
    request.resume()
    replyBusy(response, 'the server is starting')
  })
  server.on('clientError', (_error, socket) => socket.destroy())
  const address = await listen(server, bindTo)
  const handOver = (): void => {
    server.closeIdleConnections()
    setTimeout(() => server.closeAllConnections(), farewellMs).unref()
  }
  return { server, address, handOver }
}
