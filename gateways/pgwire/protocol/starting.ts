// Rejects PostgreSQL connections with 57P03 while the server starts, as PostgreSQL does.

import { createServer, type Socket } from 'node:net'
import { pipeline } from 'node:stream/promises'
import type { BindAddress } from '../../common/bind-address.js'
import { type BoundPort, listen } from '../../common/listen.js'
import type { TlsKeys } from '../../common/tls.js'
import { encrypted } from './encryption.js'
import { Inbound } from './inbound.js'
import { errorResponse } from './messages.js'
import { Outbound } from './outbound.js'
import { readStartUp } from './start-up.js'

const connectionsMax = 256
const connectionMs = 10_000
const startUpBytesMax = 10_000

export async function bindPgPort(bindTo: BindAddress, tls: TlsKeys | null): Promise<BoundPort> {
  const server = createServer({ noDelay: true })
  server.maxConnections = connectionsMax
  server.on('connection', (socket) => void refuse(socket, tls).finally(() => socket.destroySoon()))
  return { server, address: await listen(server, bindTo), handOver: () => {} }
}

async function refuse(accepted: Socket, tls: TlsKeys | null): Promise<void> {
  accepted.on('error', () => {})
  const impatience = setTimeout(() => accepted.destroy(), connectionMs)
  accepted.once('close', () => clearTimeout(impatience))
  const socket = tls === null ? accepted : await encrypted(accepted, tls)
  if (socket === null) return
  const inbound = new Inbound(startUpBytesMax)
  const out = new Outbound(socket)
  void pipeline(socket, inbound.stage).catch(() => {})
  try {
    const wanted = await readStartUp(inbound, out)
    if (wanted === null || 'process' in wanted) return
    const [severity, code] = ['FATAL', '57P03'] as const
    out.put(errorResponse({ severity, code, message: 'the database system is starting up', position: 0 }))
  } catch {
    // A client of another protocol gets no response.
  }
  await out.flush()
  socket.end()
}
