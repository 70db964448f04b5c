// The door of line protocol over TCP. The protocol has no answers: what became of the rows stands in sys.connections,
// sys.connection_log and sys.rejects, and a line that cannot be stored closes the connection or is skipped, by setting.

import { setMaxListeners } from 'node:events'
import { createServer, type Server, type Socket } from 'node:net'
import { createServer as createTlsServer } from 'node:tls'
import { AccessError } from '../../engine/base/errors.js'
import type { Log } from '../../engine/base/log.js'
import { hasRight } from '../../engine/base/rights.js'
import type { Engine, Receipt } from '../../engine/engine.js'
import { ingestLineStream } from '../../pipeline/ingest.js'
import type { BindAddress } from '../common/bind-address.js'
import type { Connection, ConnectionRegistry } from '../common/connections.js'
import type { LineKeys } from '../common/line-keys.js'
import { closeServer, listen, remoteAddress, type TakenPort } from '../common/listen.js'
import type { GatewayCounters } from '../common/metric.js'
import type { TlsKeys } from '../common/tls.js'
import type { Principal } from '../common/users.js'
import { challengeSender } from './authentication.js'

export { takeLinePort } from './starting.js'

export interface LineTcpOptions {
  readonly connectionsMax: number
  readonly badLine: 'close' | 'skip'
}

export interface LineTcpServices {
  readonly engine: Pick<Engine, 'lines' | 'users'>
  readonly registry: ConnectionRegistry
  readonly counters: GatewayCounters
  readonly log: Log
  /** Null: nothing is encrypted. */
  readonly tls: TlsKeys | null
  /** Null: nobody has to prove who he is. */
  readonly keys: LineKeys | null
}

export interface LineTcpGateway {
  readonly address: BindAddress
  close(): Promise<void>
}

/** A silent peer is asked after this time whether it is still there. */
const keepAliveProbeMs = 60_000
const handshakeMs = 10_000

export async function openLineTcpGateway(
  on: BindAddress | TakenPort,
  options: LineTcpOptions,
  services: LineTcpServices,
): Promise<LineTcpGateway> {
  const closing = new AbortController()
  // Every connection listens to it.
  setMaxListeners(0, closing.signal)
  const running = new Set<Promise<void>>()
  const known = new Map<Socket, Principal>()
  const server = openServer(services.tls, (socket) => {
    const served = serve(socket, known, options, services, closing.signal).finally(() => running.delete(served))
    running.add(served)
  })
  services.engine.users.onChange(() => dismiss(known, services))
  const address = await listen(server, on)
  return { address, close: () => close(server, closing, running) }
}

function openServer(tls: TlsKeys | null, serveSocket: (socket: Socket) => void): Server {
  // Half open: who has sent his last line sees the connection close when the engine has answered for all of them.
  const options = { allowHalfOpen: true, noDelay: true, keepAlive: true, keepAliveInitialDelay: keepAliveProbeMs }
  if (tls === null) return createServer(options, serveSocket)
  const server = createTlsServer({ ...options, ...tls.options, handshakeTimeout: handshakeMs }, serveSocket)
  tls.onChange((changed) => server.setSecureContext(changed))
  return server
}

/** Cuts off who has lost the right to write. */
function dismiss(known: ReadonlyMap<Socket, Principal>, { keys }: LineTcpServices): void {
  for (const [socket, { user }] of known) {
    const principal = keys?.find(user)?.principal
    if (principal === undefined || !hasRight({ ...principal, readOnly: false }, 'write'))
      socket.destroy(new AccessError('the right to write was taken away', 0))
  }
}

async function serve(
  socket: Socket,
  known: Map<Socket, Principal>,
  options: LineTcpOptions,
  services: LineTcpServices,
  closing: AbortSignal,
): Promise<void> {
  const { registry, engine, log, keys } = services
  socket.on('error', () => {})
  const description = {
    protocol: 'ilp',
    remoteAddress: remoteAddress(socket),
    bytesIn: () => socket.bytesRead,
    bytesOut: () => 0,
    tls: services.tls !== null,
  } as const
  if (registry.active('ilp') >= options.connectionsMax) {
    registry.reject(description, 'line.tcp.net.connection.limit')
    socket.destroy()
    return
  }
  const connection = registry.open(description)
  let reason: string | null = null
  try {
    if (keys !== null) {
      const leave = (): void => void socket.destroy()
      closing.addEventListener('abort', leave)
      const principal = await challengeSender(socket, keys)
      closing.removeEventListener('abort', leave)
      if (principal === null) throw new AccessError('authentication failed', 0)
      connection.principal = principal.user
      known.set(socket, principal)
    }
    const onReceipt = (receipt: Receipt): void => count(receipt, connection, services)
    const sink = { engine, connectionId: connection.id, precision: 'n', badLine: options.badLine, onReceipt } as const
    await ingestLineStream(socket, sink, closing)
  } catch (error) {
    reason = closing.aborted ? 'shutdown' : reasonText(error)
    log(
      closing.aborted ? 'I' : 'W',
      'ilp',
      `connection closed: ${reason} [id=${connection.id}, from=${connection.remoteAddress}]`,
    )
  } finally {
    known.delete(socket)
    socket.destroy()
    registry.close(connection, reason)
  }
}

function count(receipt: Receipt, connection: Connection, { registry, counters }: LineTcpServices): void {
  registry.touch(connection)
  connection.rowsReceived += receipt.rows + receipt.rejects.length
  connection.rowsCommitted += receipt.rows
  connection.rowsRejected += receipt.rejects.length
  counters.rowsWritten += receipt.rows
  counters.rowsRejected += receipt.rejects.length
}

function reasonText(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}

/** What the last turn of the event loop brought is with the engine before the connections are cut. */
async function close(server: Server, closing: AbortController, running: ReadonlySet<Promise<void>>): Promise<void> {
  const closed = closeServer(server)
  await new Promise((resolve) => setImmediate(resolve))
  closing.abort()
  await Promise.all(running)
  await closed
}
