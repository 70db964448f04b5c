// Opening and closing of a listening socket, with errors that name the setting's address.

import type { AddressInfo, Server, Socket } from 'node:net'
import { NetworkError } from '../../engine/base/errors.js'
import { type BindAddress, bindAddressText } from './bind-address.js'

/** Connections that may wait for being accepted. */
const backlog = 1024

/**
 * A port that was taken ahead of the gateway that will serve it: `server` answers there that the server is starting.
 * A gateway that listens on it takes the connections over from then on.
 */
export interface TakenPort {
  readonly server: Server
  readonly address: BindAddress
  /** Lets go of those who were told to come again. */
  readonly handOver: () => void
}

/** Resolves with the address in use, which names the port that the system chose for port 0. */
export function listen(server: Server, on: BindAddress | TakenPort): Promise<BindAddress> {
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

/** Both servers have one listening socket from now on; the one that listens last gets the connections. */
function takeOver(server: Server, { server: before, address, handOver }: TakenPort): Promise<BindAddress> {
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

/** `address:port` of the other side; empty when it has gone already. */
export function remoteAddress(socket: Pick<Socket, 'remoteAddress' | 'remotePort'>): string {
  const { remoteAddress: host, remotePort: port } = socket
  return host === undefined || port === undefined ? '' : bindAddressText({ host, port })
}

function reasonText(error: NodeJS.ErrnoException): string {
  return error.code === 'EADDRINUSE' ? 'another process listens there' : error.message
}

/** The settings of the limits of connections, for logs. */
export function limitSettings(protocol: 'http' | 'pg' | 'line.tcp') {
  return { total: `${protocol}.net.connection.limit`, address: 'net.connection.limit.per.address' } as const
}

/** Without the port, and as IPv4 where the client came over it, whatever the listener's family is. */
export function plainAddress(address = ''): string {
  return address.replace(/^::ffff:(?=\d+\.)/i, '')
}
