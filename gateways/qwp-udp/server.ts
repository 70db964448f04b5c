// Receives QWP messages (rows by column; engine/qwp/message.ts describes them) as UDP datagrams. A datagram is one
// complete message with its own symbols; it does not refer to other datagrams. Clients are not authenticated and get no
// response. Rows can be lost on the network, when they arrive faster than they are stored, and when the server rejects
// them.
//
// A datagram that does not begin like a message is counted and dropped before the engine sees it.

import { createSocket, type RemoteInfo, type Socket } from 'node:dgram'
import { isIPv6 } from 'node:net'
import type { Clock } from '../../engine/base/clock.js'
import { NetworkError, ResourceError, RowError } from '../../engine/base/errors.js'
import type { Log } from '../../engine/base/log.js'
import { type Engine, isLoneMessage, type Receipt } from '../../engine/engine.js'
import { QwpDatagrams } from '../../pipeline/ingest.js'
import { type BindAddress, bindAddressText } from '../common/bind-address.js'
import type { Connection, ConnectionRegistry } from '../common/connections.js'
import type { GatewayCounters } from '../common/metric.js'
import { Refusals } from '../common/refusals.js'

export interface QwpUdpOptions {
  /** The group of a multicast receiver; null: it is unicast. */
  readonly group: string | null
  /** Bytes of the socket's receive buffer; -1: as the system likes. */
  readonly receiveBufferBytes: number
  /** Longer datagrams are dropped. */
  readonly datagramBytesMax: number
  readonly waitingMax: number
  readonly waitingBytesMax: number
  readonly uncommittedMax: number
  readonly commitMs: number
  /** Why all datagrams are dropped; null: they are not. */
  readonly closed: string | null
}

export interface QwpUdpServices {
  readonly engine: Pick<Engine, 'lines' | 'metrics' | 'forgetConnection'>
  readonly registry: ConnectionRegistry
  readonly counters: GatewayCounters
  readonly clock: Clock
  readonly log: Log
}

export interface QwpUdpGateway {
  readonly address: BindAddress
  reconfigure(options: QwpUdpOptions): void
  close(): Promise<void>
}

export async function openQwpUdpGateway(
  on: BindAddress,
  options: QwpUdpOptions,
  services: QwpUdpServices,
): Promise<QwpUdpGateway> {
  const socket = createSocket({ type: isIPv6(on.host) ? 'udp6' : 'udp4', reuseAddr: options.group !== null })
  const address = await bind(socket, on, options)
  const receiver = new Receiver(options, services, address)
  socket.on('message', (message, from) => receiver.take(message, from))
  socket.on('error', (error) => services.log('E', 'qwp', `the socket for datagrams failed: ${error.message}`))
  return {
    address,
    reconfigure: (changed) => {
      receiver.closed = changed.closed
    },
    close: async () => {
      await new Promise<void>((resolve) => socket.close(resolve))
      await receiver.close()
    },
  }
}

/** Rejects when the address, the group or the buffer cannot be had. */
async function bind(socket: Socket, on: BindAddress, options: QwpUdpOptions): Promise<BindAddress> {
  const failed = (error: unknown): Error =>
    new Error(`cannot receive datagrams [address=${bindAddressText(on)}]`, { cause: error })
  await new Promise<void>((resolve, reject) => {
    socket.once('error', (error) => reject(failed(error)))
    socket.bind(on.port, on.host, resolve)
  })
  socket.removeAllListeners('error')
  try {
    if (options.group !== null) socket.addMembership(options.group)
    if (options.receiveBufferBytes > 0) socket.setRecvBufferSize(options.receiveBufferBytes)
  } catch (error) {
    socket.close()
    throw failed(error)
  }
  return { host: on.host, port: socket.address().port }
}

class Receiver {
  closed: string | null
  readonly #options: QwpUdpOptions
  readonly #services: QwpUdpServices
  readonly #connection: Connection
  readonly #refusals: Refusals
  readonly #datagrams: QwpDatagrams
  #bytes = 0

  constructor(options: QwpUdpOptions, services: QwpUdpServices, address: BindAddress) {
    const { registry, engine, log, clock } = services
    this.#options = options
    this.#services = services
    this.closed = options.closed
    this.#refusals = new Refusals('qwp', log, clock)
    this.#connection = registry.open({
      ...{ protocol: 'udp', remoteAddress: bindAddressText(address), tls: false },
      ...{ bytesIn: () => this.#bytes, bytesOut: () => 0 },
    })
    this.#datagrams = new QwpDatagrams({
      ...{ engine, connectionId: this.#connection.id, ...options },
      stored: (receipt, messages) => this.#stored(receipt, messages),
      rejected: (error, messages) => this.#rejected(error, messages),
    })
  }

  take(message: Uint8Array, { address }: RemoteInfo): void {
    const { udp } = this.#services.counters.qwp
    this.#bytes += message.length
    if (this.closed !== null) {
      udp.refused++
      this.#refusals.note({ remoteAddress: address }, this.closed)
    } else if (message.length > this.#options.datagramBytesMax || !isLoneMessage(message)) {
      udp.malformed++
      this.#refusals.note({ remoteAddress: address }, 'the datagram is no message of QWP')
    } else if (!this.#datagrams.take(message)) {
      udp.dropped++
      this.#refusals.note(
        { remoteAddress: address },
        'datagrams come faster than they are stored [setting=qwp.udp.msg.count]',
      )
    }
  }

  #stored({ rows, rejected }: Receipt, messages: number): void {
    const { registry, counters } = this.#services
    registry.touch(this.#connection)
    this.#connection.rowsReceived += rows + rejected
    this.#connection.rowsCommitted += rows
    this.#connection.rowsRejected += rejected
    counters.qwp.udp.stored += messages
    counters.rowsWritten += rows
    counters.rowsRejected += rejected
  }

  #rejected(error: Error, messages: number): void {
    const { counters, log } = this.#services
    counters.qwp.udp.rejected += messages
    if (error instanceof NetworkError || error instanceof RowError || error instanceof ResourceError) {
      this.#refusals.note({}, error.message)
      return
    }
    counters.unhandledErrors++
    log('E', 'qwp', `datagrams are lost: ${error.message} [datagrams=${messages}]`)
  }

  async close(): Promise<void> {
    await this.#datagrams.close()
    this.#services.registry.close(this.#connection, 'shutdown')
  }
}
