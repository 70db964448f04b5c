// Opens and closes listening sockets; errors name the configured address.

import type { AddressInfo, Server, Socket } from 'node:net'
import { NetworkError } from '../../engine/base/errors.js'
import { type BindAddress, bindAddressText } from './bind-address.js'

/** Connections that may wait for being accepted. */
const backlog = 1024

/**
 * A port that is bound before its gateway is ready: `server` responds that the server is starting. The gateway takes
 * the listening socket over when it starts.
 */
export interface BoundPort {
  readonly server: Server
  readonly address: BindAddress
  /** Ends the connections that were told to retry. */
  readonly handOver: () => void
}

/** Resolves with the bound address, including the port that the system chose for port 0. */
export function listen(server: Server, on: BindAddress | BoundPort): Promise<BindAddress> {
  return 'server' in on ? takeOver(server, on) : listenAt(server, on)
}

function listenAt(server: Server, address: BindAddress): Promise<BindAddress> {
  return new Promise((resolve, reject) => {
    const failed = (error: NodeJS.ErrnoException): void => {
      reject(new NetworkError(`cannot listen on ${bindAddressText(address)}: ${reasonText(error)}`, { cause: error }))
    }
    server.once('error', failed)
    server.listen({ host: address.host, port: address.port, backlog }, () => {
      server.off('error', failed)
      resolve({ host: address.host, port: (server.address() as AddressInfo).port })
    })
  })
}

/** Shares the listening socket between both servers; the one that listens last receives new connections. */
function takeOver(server: Server, { server: before, address, handOver }: BoundPort): Promise<BindAddress> {
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(before, backlog, () => {
      server.off('error', reject)
      handOver()
      resolve(address)
    })
  })
}

/** Stops listening; resolves when the last connection has ended. */
export function closeServer(server: Server): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve())
  })
}

/** `address:port` of the peer; empty when it has disconnected. */
export function remoteAddress(socket: Pick<Socket, 'remoteAddress' | 'remotePort'>): string {
  const { remoteAddress: host, remotePort: port } = socket
  return host === undefined || port === undefined ? '' : bindAddressText({ host, port })
}

function reasonText(error: NodeJS.ErrnoException): string {
  return error.code === 'EADDRINUSE' ? 'another process listens there' : error.message
}

/** Names of the settings that limit connections, for log records. */
export function limitSettings(protocol: 'http' | 'pg' | 'line.tcp') {
  return { total: `${protocol}.net.connection.limit`, address: 'net.connection.limit.per.address' } as const
}

/** The peer's address without the port, and as IPv4 if it was mapped to IPv6. */
export function plainAddress(address = ''): string {
  return address.replace(/^::ffff:(?=\d+\.)/i, '')
}
