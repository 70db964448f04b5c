// Serves line protocol over TCP. The protocol has no responses: sys.connections, sys.connection_log and sys.rejects
// report what became of the rows. A line that cannot be stored closes the connection or is skipped, depending on a
// setting.

import { type KeyObject, randomBytes, verify } from 'node:crypto'
import { setMaxListeners } from 'node:events'
import { createServer, type Server, type Socket } from 'node:net'
import { createServer as createTlsServer } from 'node:tls'
import type { Clock } from '../../engine/base/clock.js'
import { AccessError } from '../../engine/base/errors.js'
import type { Log } from '../../engine/base/log.js'
import { hasRight } from '../../engine/base/rights.js'
import type { Engine, Receipt } from '../../engine/engine.js'
import { ingestLineStream } from '../../pipeline/ingest.js'
import type { BindAddress } from '../common/bind-address.js'
import { type ConnectionSlot, ConnectionSlots } from '../common/connection-slots.js'
import type { Connection, ConnectionRegistry } from '../common/connections.js'
import { readLine } from '../common/first-bytes.js'
import { Handshakes } from '../common/handshakes.js'
import type { LineKeys } from '../common/line-keys.js'
import { type BoundPort, closeServer, limitSettings, listen, remoteAddress } from '../common/listen.js'
import type { GatewayCounters } from '../common/metric.js'
import { Refusals } from '../common/refusals.js'
import type { TlsKeys } from '../common/tls.js'
import type { Principal } from '../common/users.js'

export interface LineTcpOptions {
  readonly connectionsMax: number
  /** 0 or less: no limit. */
  readonly connectionsPerAddressMax: number
  readonly badLine: 'close' | 'skip'
  /** Senders must authenticate. */
  readonly authRequired: boolean
  /** Why all writes are rejected; null: they are not. */
  readonly closed: string | null
}

export interface LineTcpServices {
  readonly engine: Pick<Engine, 'lines' | 'users'>
  readonly registry: ConnectionRegistry
  readonly counters: GatewayCounters
  readonly clock: Clock
  readonly log: Log
  /** Null: no TLS. */
  readonly tls: TlsKeys | null
  readonly keys: LineKeys
}

export interface LineTcpGateway {
  readonly address: BindAddress
  /** Disconnects senders that the new options no longer admit. */
  reconfigure(options: LineTcpOptions): void
  close(): Promise<void>
}

interface Gateway {
  readonly services: LineTcpServices
  options: LineTcpOptions
  readonly slots: ConnectionSlots
  readonly refusals: Refusals
  /** Connected senders; null: unauthenticated. */
  readonly senders: Map<Socket, Principal | null>
  readonly closing: AbortSignal
}

/** Idle time after which TCP keep-alive probes start. */
const keepAliveProbeMs = 60_000
const handshakeMs = 10_000

export async function openLineTcpGateway(
  on: BindAddress | BoundPort,
  options: LineTcpOptions,
  services: LineTcpServices,
): Promise<LineTcpGateway> {
  const closing = new AbortController()
  // Every connection adds a listener.
  setMaxListeners(0, closing.signal)
  const running = new Set<Promise<void>>()
  const gateway: Gateway = {
    ...{ services, options, senders: new Map(), closing: closing.signal },
    slots: new ConnectionSlots(placeLimits(options), { spare: 0, nowMs: () => services.clock.monotonicMs() }),
    refusals: new Refusals('ilp', services.log, services.clock),
  }
  const server = openServer(gateway, (socket, place) => {
    const served = serve(gateway, socket, place).finally(() => running.delete(served))
    running.add(served)
  })
  services.engine.users.onChange(() => dismiss(gateway))
  const address = await listen(server, on)
  return {
    address,
    reconfigure: (changed) => {
      gateway.options = changed
      gateway.slots.limit(placeLimits(changed))
      dismiss(gateway)
    },
    close: () => close(server, closing, running),
  }
}

function placeLimits({ connectionsMax, connectionsPerAddressMax }: LineTcpOptions) {
  return { max: connectionsMax, perAddressMax: connectionsPerAddressMax }
}

/** The slot of an accepted connection, and why it was evicted. */
interface Held {
  readonly place: ConnectionSlot
  dismissed: string | null
  /** The socket that carries the protocol: the accepted socket or its TLS socket. */
  socket: Socket
}

function openServer(gateway: Gateway, serveSocket: (socket: Socket, held: Held) => void): Server {
  const { tls } = gateway.services
  // Half-open: after a sender ends its side, the connection closes only when the engine has processed all of its
  // lines.
  const options = { allowHalfOpen: true, noDelay: true, keepAlive: true, keepAliveInitialDelay: keepAliveProbeMs }
  if (tls === null) {
    return createServer(options, (socket) => {
      const held = admit(gateway, socket)
      if (held !== null) serveSocket(socket, held)
    })
  }
  const handshakes = new Handshakes<Held>()
  const server = createTlsServer({ ...options, ...tls.options, handshakeTimeout: handshakeMs }, (socket) => {
    const held = handshakes.complete(socket)
    if (held === undefined) {
      socket.destroy()
      return
    }
    held.socket = socket
    serveSocket(socket, held)
  })
  // Half-open sockets stay when the handshake fails or takes too long.
  server.on('tlsClientError', (_error, socket) => socket.destroy())
  gateway.closing.addEventListener('abort', () => handshakes.end())
  server.on('connection', (socket: Socket) => {
    const held = admit(gateway, socket)
    if (held !== null) handshakes.begin(socket, held)
  })
  tls.onChange((changed) => server.setSecureContext(changed))
  return server
}

/** Returns null when the connection was rejected. */
function admit({ options, slots, refusals, services }: Gateway, socket: Socket): Held | null {
  const turnAway = (reason: string): null => {
    services.registry.reject(description(socket, services), reason)
    socket.destroy()
    return null
  }
  socket.on('error', () => {})
  if (options.closed !== null) {
    refusals.note(socket, options.closed)
    return turnAway(options.closed)
  }
  const place = slots.enter({
    address: socket.remoteAddress,
    dismiss: (reason) => {
      held.dismissed = reason
      held.socket.destroy()
    },
  })
  if (typeof place === 'string') return turnAway(limitSettings('line.tcp')[place])
  const held: Held = { place, dismissed: null, socket }
  socket.once('close', () => place.leave())
  return held
}

function description(socket: Socket, { tls }: LineTcpServices) {
  return {
    protocol: 'ilp',
    remoteAddress: remoteAddress(socket),
    bytesIn: () => socket.bytesRead,
    bytesOut: () => 0,
    tls: tls !== null,
  } as const
}

/** Disconnects senders that have lost the right to write. */
function dismiss({ senders, options, services }: Gateway): void {
  for (const [socket, known] of senders) {
    const principal = known === null ? null : (services.keys.find(known.user)?.principal ?? null)
    const may =
      principal === null
        ? known === null && !options.authRequired
        : hasRight({ ...principal, readOnly: false }, 'write')
    if (options.closed !== null) socket.destroy(new AccessError(options.closed, 0))
    else if (!may) socket.destroy(new AccessError('the right to write was revoked', 0))
  }
}

async function serve(gateway: Gateway, socket: Socket, held: Held): Promise<void> {
  const { services, options, senders, closing, refusals } = gateway
  const { registry, log } = services
  socket.on('error', () => {})
  const connection = registry.open(description(socket, services))
  let reason: string | null = null
  try {
    if (options.authRequired && !(await signIn(gateway, socket, connection, held))) return
    if (gateway.options.closed !== null) throw new AccessError(gateway.options.closed, 0)
    if (!options.authRequired) senders.set(socket, null)
    await ingestLineStream(socket, sinkOptions(gateway, connection, held.place), closing)
  } catch (error) {
    reason = closing.aborted ? 'shutdown' : (held.dismissed ?? reasonText(error))
    const text = `connection closed: ${reason} [id=${connection.id}, from=${connection.remoteAddress}]`
    if (held.dismissed === null) log(closing.aborted ? 'I' : 'W', 'ilp', text)
    else refusals.note(socket, reason)
  } finally {
    senders.delete(socket)
    socket.destroy()
    registry.close(connection, reason)
  }
}

/** Returns whether the sender is authenticated; a failure has been recorded. */
async function signIn(
  { services, senders, closing, refusals }: Gateway,
  socket: Socket,
  connection: Connection,
  held: Held,
): Promise<boolean> {
  const leave = (): void => void socket.destroy()
  closing.addEventListener('abort', leave)
  const { remoteAddress } = socket
  const signedIn = await challengeSender(socket, services.keys)
  closing.removeEventListener('abort', leave)
  if ('refused' in signedIn) {
    const reason = closing.aborted ? 'shutdown' : (held.dismissed ?? signedIn.refused)
    if (!closing.aborted) refusals.note({ remoteAddress }, reason)
    services.registry.refuse(connection, reason)
    return false
  }
  connection.principal = signedIn.user
  senders.set(socket, signedIn)
  held.place.work()
  return true
}

/**
 * Marks the connection as working at its first whole lines, even before the engine accepts them: they must not be
 * lost.
 */
function sinkOptions({ services, options }: Gateway, connection: Connection, place: ConnectionSlot) {
  const { engine } = services
  return {
    engine: {
      lines: (request: Parameters<Engine['lines']>[0]) => {
        place.work()
        return engine.lines(request)
      },
    },
    connectionId: connection.id,
    precision: 'n',
    badLine: options.badLine,
    onReceipt: (receipt: Receipt) => count(receipt, connection, services),
  } as const
}

function count(receipt: Receipt, connection: Connection, { registry, counters }: LineTcpServices): void {
  registry.touch(connection)
  connection.rowsReceived += receipt.rows + receipt.rejected
  connection.rowsCommitted += receipt.rows
  connection.rowsRejected += receipt.rejected
  counters.rowsWritten += receipt.rows
  counters.rowsRejected += receipt.rejected
}

function reasonText(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}

/** Hands the input of the last event-loop turn to the engine before it closes the connections. */
async function close(server: Server, closing: AbortController, running: ReadonlySet<Promise<void>>): Promise<void> {
  const closed = closeServer(server)
  await new Promise((resolve) => setImmediate(resolve))
  closing.abort()
  await Promise.all(running)
  await closed
}

// Authentication of line protocol over TCP: before its first line a sender proves that it holds the private key of an
// EC key on the curve P-256.
//
//   sender   <key id>\n
//   server   512 printable characters, \n
//   sender   base64 of the signature of the 512 characters (ECDSA with SHA-256; DER, or r followed by s), \n
//
// Then lines follow, or the server closes the connection. A sender with an unknown key id is challenged like any
// other, unless its first line is a row: such a sender does not attempt to authenticate.

const challengeBytes = 512
const keyIdBytesMax = 512
const signatureBytesMax = 512
const responseMs = 10_000
/** Size of r and s. */
const plainSignatureBytes = 64
const firstPrintable = 0x20
const printableCount = 0x5f

/** Returns the principal, or why the sender is rejected. */
async function challengeSender(socket: Socket, keys: LineKeys): Promise<Principal | { readonly refused: string }> {
  const keyId = await readLine(socket, keyIdBytesMax, responseMs)
  if (keyId === null) return refused('the client sent no key id')
  const known = keys.find(Buffer.from(keyId, 'latin1').toString())
  if (known === undefined && rowText.test(keyId)) return refused('the client sent a row instead of a key id')
  const challenge = randomBytes(challengeBytes).map((byte) => firstPrintable + (byte % printableCount))
  socket.write(Buffer.concat([challenge, Buffer.from('\n')]))
  const signature = await readLine(socket, signatureBytesMax, responseMs)
  if (signature === null) return refused('the client did not answer the challenge')
  if (known === undefined || !isSigned(known.key, challenge, Buffer.from(signature, 'base64')))
    return refused('the key or its signature is wrong')
  if (!hasRight({ ...known.principal, readOnly: false }, 'write'))
    return refused(`the right is missing [user=${known.principal.user}, right=write]`)
  return known.principal
}

/** Matches a row (`table,symbol=value column=value`), which no key id does. */
const rowText = /^\S+ \S*=/

function refused(why: string): { readonly refused: string } {
  return { refused: `authentication failed: ${why} [setting=line.tcp.auth.required]` }
}

function isSigned(key: KeyObject, challenge: Uint8Array, signature: Buffer): boolean {
  const encodings = signature.length === plainSignatureBytes ? (['ieee-p1363', 'der'] as const) : (['der'] as const)
  return encodings.some((dsaEncoding) => {
    try {
      return verify('sha256', challenge, { key, dsaEncoding }, signature)
    } catch {
      return false
    }
  })
}

/** Binds the port and closes connections while the server starts, so that senders keep their lines and retry. */
export async function bindLinePort(bindTo: BindAddress): Promise<BoundPort> {
  const server = createServer((socket) => socket.destroy())
  return { server, address: await listen(server, bindTo), handOver: () => {} }
}
