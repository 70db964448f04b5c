// The door of line protocol over TCP. The protocol has no answers: what became of the rows stands in sys.connections,
// sys.connection_log and sys.rejects, and a line that cannot be stored closes the connection or is skipped, by setting.

import { createServer, type Server, type Socket } from 'node:net'
import type { Log } from '../../engine/base/log.js'
import type { Engine, Receipt } from '../../engine/engine.js'
import { ingestLineStream } from '../../pipeline/ingest.js'
import type { BindAddress } from '../common/bind-address.js'
import type { Connection, ConnectionRegistry } from '../common/connections.js'
import { closeServer, listen, remoteAddress } from '../common/listen.js'
import type { GatewayCounters } from '../common/metric.js'

export interface LineTcpOptions {
  readonly connectionsMax: number
  readonly badLine: 'close' | 'skip'
}

export interface LineTcpServices {
  readonly engine: Pick<Engine, 'lines'>
  readonly registry: ConnectionRegistry
  readonly counters: GatewayCounters
  readonly log: Log
}

export interface LineTcpGateway {
  readonly address: BindAddress
  close(): Promise<void>
}

/** A silent peer is asked after this time whether it is still there. */
const keepAliveProbeMs = 60_000

export async function openLineTcpGateway(
  bindTo: BindAddress,
  options: LineTcpOptions,
  services: LineTcpServices,
): Promise<LineTcpGateway> {
  const closing = new AbortController()
  const server = createServer({ noDelay: true, keepAlive: true, keepAliveInitialDelay: keepAliveProbeMs })
  const running = new Set<Promise<void>>()
  server.on('connection', (socket) => {
    const served = serve(socket, options, services, closing.signal).finally(() => running.delete(served))
    running.add(served)
  })
  const address = await listen(server, bindTo)
  return { address, close: () => close(server, closing, running) }
}

async function serve(
  socket: Socket,
  options: LineTcpOptions,
  services: LineTcpServices,
  closing: AbortSignal,
): Promise<void> {
  const { registry, engine, log } = services
  const description = {
    protocol: 'ilp',
    remoteAddress: remoteAddress(socket),
    bytesIn: () => socket.bytesRead,
    bytesOut: () => 0,
    tls: false,
  } as const
  if (registry.active('ilp') >= options.connectionsMax) {
    registry.reject(description, 'line.tcp.net.connection.limit')
    socket.destroy()
    return
  }
  const connection = registry.open(description)
  let reason: string | null = null
  try {
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
