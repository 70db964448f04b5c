// What the HTTP port answers while the server starts: 503 with Retry-After, to every request, health checks too.

import type { BindAddress } from '../common/bind-address.js'
import { listen, type TakenPort } from '../common/listen.js'
import type { TlsKeys } from '../common/tls.js'
import { replyBusy } from './replies.js'
import { createHttpServer } from './sockets.js'

const connectionsMax = 256
const requestMs = 10_000
/** For answers that are on their way when the server is ready. */
const farewellMs = 1000

export async function takeHttpPort(bindTo: BindAddress, tls: TlsKeys | null): Promise<TakenPort> {
  const server = createHttpServer({ requestTimeout: 0, keepAliveTimeout: requestMs }, tls)
  server.maxConnections = connectionsMax
  server.setTimeout(requestMs)
  server.on('request', (request, response) => {
    // A body is read to its end, so that its sender reads the answer.
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
