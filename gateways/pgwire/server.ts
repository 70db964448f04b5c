// Runs the PostgreSQL server: listens, admits and authenticates clients, runs their sessions, and routes cancel
// requests.

import { randomInt } from 'node:crypto'
import { setMaxListeners } from 'node:events'
import { createServer, type Server, type Socket } from 'node:net'
import { pipeline } from 'node:stream/promises'
import { NotReadyError, SqlError } from '../../engine/base/errors.js'
import { requireRight } from '../../engine/base/rights.js'
import { type NamedStatements, postgresDialect } from '../../engine/engine.js'
import type { BindAddress } from '../common/bind-address.js'
import { type ConnectionSlot, ConnectionSlots, type Limit } from '../common/connection-slots.js'
import type { Connection } from '../common/connections.js'
import { linger, lingerLimits } from '../common/linger.js'
import { type BoundPort, closeServer, limitSettings, listen, remoteAddress } from '../common/listen.js'
import { Refusals } from '../common/refusals.js'
import type { Principal } from '../common/users.js'
import type { PgOptions, PgServices, PgSession, Prepared } from './context.js'
import { authenticate } from './protocol/authentication.js'
import { encrypted, endPointOf } from './protocol/encryption.js'
import { Inbound } from './protocol/inbound.js'
import {
  authentication,
  backendKeyData,
  errorResponse,
  type NoticeFields,
  noticeResponse,
  readyForQuery,
} from './protocol/messages.js'
import { Outbound } from './protocol/outbound.js'
import { noticeOf, PgError } from './protocol/sqlstate.js'
import { type CancelRequest, readStartUp, type StartUp, startUpOptions } from './protocol/start-up.js'
import { serveSession } from './session.js'
import { configure } from './session-statements.js'
import { applySessionSettings } from './transaction/block-settings.js'
import { Channels } from './transaction/channels.js'
import { noteNotification } from './transaction/notifications.js'
import { applySetting, reportedAtStart, versionSettings } from './transaction/settings.js'
import { exportSnapshot } from './transaction/snapshots.js'

export type { PgOptions, PgServices } from './context.js'
export { bindPgPort } from './protocol/starting.js'

export interface PgGateway {
  readonly address: BindAddress
  /** Applies options that may change at run time. */
  reconfigure(options: PgOptions): void
  close(): Promise<void>
}

const keepAliveProbeMs = 60_000
/** Time limit for the start-up of a client. */
const startUpMs = 60_000
/** Connections beyond the limit that may still send a cancel request or get the error that there are too many. */
const spareConnections = 64
const startUpBytesMax = 10_000
const messageBytesMax = 256 * 1024 * 1024

/** A session in the table of sessions by process id. */
interface KnownSession {
  readonly secret: number
  readonly pg: PgSession
  readonly principal: Principal
  readonly end: () => void
}
type Sessions = Map<number, KnownSession>

interface Gateway {
  readonly options: PgOptions
  readonly services: PgServices
  readonly sessions: Sessions
  readonly slots: ConnectionSlots
  readonly refusals: Refusals
  readonly channels: Channels
  readonly snapshots: PgSession['snapshots']
  readonly closing: AbortSignal
}

export async function openPgGateway(
  on: BindAddress | BoundPort,
  options: PgOptions,
  services: PgServices,
): Promise<PgGateway> {
  const closing = new AbortController()
  // Every connection adds a listener.
  setMaxListeners(0, closing.signal)
  const server = createServer({ noDelay: true, keepAlive: true, keepAliveInitialDelay: keepAliveProbeMs })
  const running = new Set<Promise<void>>()
  const gateway: Gateway = {
    ...{ options: { ...options }, services, sessions: new Map(), channels: new Channels(), snapshots: new Map() },
    slots: new ConnectionSlots(placeLimits(options), {
      spare: spareConnections,
      nowMs: () => services.clock.monotonicMs(),
    }),
    refusals: new Refusals('pg', services.log, services.clock),
    closing: closing.signal,
  }
  server.on('connection', (socket) => {
    const served = serve(gateway, socket).finally(() => running.delete(served))
    running.add(served)
  })
  services.engine.users.onChange(() => refreshRights(gateway))
  const address = await listen(server, on)
  return {
    address,
    reconfigure: (changed) => reconfigure(gateway, changed),
    close: () => close(server, closing, running),
  }
}

function placeLimits({ connectionsMax, connectionsPerAddressMax }: PgOptions) {
  return { max: connectionsMax, perAddressMax: connectionsPerAddressMax }
}

/** Sessions read the options whenever they need them. */
function reconfigure({ options, slots, sessions }: Gateway, changed: PgOptions): void {
  Object.assign(options, changed)
  slots.limit(placeLimits(changed))
  for (const { pg } of sessions.values()) applySessionSettings(pg)
}

async function close(server: Server, closing: AbortController, running: ReadonlySet<Promise<void>>): Promise<void> {
  const closed = closeServer(server)
  closing.abort()
  await Promise.all(running)
  await closed
}

async function serve(gateway: Gateway, accepted: Socket): Promise<void> {
  const { registry, tls } = gateway.services
  accepted.on('error', () => {})
  const guest: Guest = { dismissed: null }
  const place = gateway.slots.enter({
    address: accepted.remoteAddress,
    dismiss: (reason) => {
      guest.dismissed = reason
      accepted.destroy()
    },
  })
  if (typeof place === 'string') {
    registry.reject(description(accepted, accepted, null), limitSettings('pg')[place])
    accepted.destroy()
    return
  }
  const leave = (): void => void accepted.destroy()
  // Also limits TLS handshakes that stall.
  const impatience = setTimeout(leave, startUpMs)
  accepted.once('close', () => {
    clearTimeout(impatience)
    place.leave()
  })
  gateway.closing.addEventListener('abort', leave)
  const socket = tls === null ? accepted : await encrypted(accepted, tls)
  gateway.closing.removeEventListener('abort', leave)
  if (socket === null) accepted.destroy()
  else await talk(gateway, guest, { accepted, socket, place, signedIn: () => clearTimeout(impatience) })
}

interface Guest {
  /** Why the connection was evicted. */
  dismissed: string | null
}

interface Talk {
  readonly accepted: Socket
  /** The socket that carries the protocol: the accepted socket or its TLS socket. */
  readonly socket: Socket
  readonly place: ConnectionSlot
  readonly signedIn: () => void
}

function description(accepted: Socket, socket: Socket, out: Outbound | null) {
  return {
    protocol: 'pg',
    remoteAddress: remoteAddress(socket),
    bytesIn: () => socket.bytesRead,
    bytesOut: () => out?.sent ?? 0,
    tls: socket !== accepted,
  } as const
}

async function talk(gateway: Gateway, guest: Guest, { accepted, socket, place, signedIn }: Talk): Promise<void> {
  const { registry, log } = gateway.services
  const inbound = new Inbound(startUpBytesMax)
  const out = new Outbound(socket)
  const connection = registry.open(description(accepted, socket, out))
  const received = pipeline(socket, inbound.stage, { end: true }).catch(() => {})
  const stop = (): void => {
    inbound.close()
    out.closeSoon()
  }
  gateway.closing.addEventListener('abort', stop)
  let reason: string | null = null
  let farewell: NoticeFields | null = null
  try {
    if (gateway.closing.aborted) stop()
    const endPoint = socket === accepted ? undefined : endPointOf(socket)
    await converse(gateway, connection, { place, signedIn }, inbound, out, endPoint)
  } catch (error) {
    reason = error instanceof Error ? error.message : String(error)
    if (!inbound.closed) {
      farewell = { ...noticeOf(error), severity: 'FATAL' }
      if (error instanceof Crowd) registry.refuse(connection, limitSettings('pg')[error.limit])
      if (connection.principal === null) gateway.refusals.note(socket, reason)
      else log('W', 'pg', `connection closed: ${reason} [id=${connection.id}, from=${connection.remoteAddress}]`)
    }
  }
  gateway.closing.removeEventListener('abort', stop)
  if (inbound.closed) {
    reason = gateway.closing.aborted ? 'shutdown' : shutdown.message
    farewell = shutdown
  }
  await end(socket, inbound, { out, place, farewell })
  await received
  registry.close(connection, guest.dismissed ?? reason)
}

/** After the final message, discards what the client still sends. */
async function end(
  socket: Socket,
  inbound: Inbound,
  {
    out,
    place,
    farewell,
  }: { readonly out: Outbound; readonly place: ConnectionSlot; readonly farewell: NoticeFields | null },
): Promise<void> {
  if (farewell !== null) out.put(errorResponse(farewell))
  await out.flush()
  if (farewell === null) {
    socket.end()
    socket.destroySoon()
  } else if (!socket.destroyed) {
    place.depart()
    inbound.close()
    linger(socket, lingerLimits.stranger)
    await new Promise((resolve) => socket.once('close', resolve))
  }
  inbound.stage.destroy()
}

/** The error for too many connections. */
class Crowd extends PgError {
  readonly limit: Limit

  constructor(limit: Limit) {
    super('53300', `sorry, too many clients already${limit === 'address' ? ' from this address' : ''}`)
    this.limit = limit
  }
}

const shutdown: NoticeFields = {
  severity: 'FATAL',
  code: '57P01',
  message: 'terminating connection due to administrator command',
  position: 0,
}

/** `endPoint`: channel-binding data; undefined without TLS. */
async function converse(
  gateway: Gateway,
  connection: Connection,
  { place, signedIn }: Pick<Talk, 'place' | 'signedIn'>,
  inbound: Inbound,
  out: Outbound,
  endPoint: Buffer | null | undefined,
): Promise<void> {
  const wanted = await readStartUp(inbound, out)
  if (wanted === null) return
  if ('process' in wanted) {
    cancel(gateway.sessions, wanted)
    return
  }
  refuseCrowd(place.refusal())
  if (gateway.options.tlsRequired && endPoint === undefined)
    throw new PgError('28000', 'this server accepts encrypted connections only')
  const principal = await authenticate(gateway, wanted.user, { inbound, out, endPoint: endPoint ?? null })
  if (principal === null) return
  refuseCrowd(place.work())
  signedIn()
  connection.principal = principal.user
  inbound.messageBytesMax = messageBytesMax
  await converseAs(gateway, connection, principal, wanted, inbound, out)
}

function refuseCrowd(limit: Limit | null): void {
  if (limit !== null) throw new Crowd(limit)
}

async function converseAs(
  gateway: Gateway,
  connection: Connection,
  principal: Principal,
  { parameters }: StartUp,
  inbound: Inbound,
  out: Outbound,
): Promise<void> {
  const { sessions } = gateway
  const pg = openSession(gateway, connection, principal, { inbound, out })
  out.put(authentication('ok'))
  for (const [name, value] of [...startUpOptions(parameters.get('options') ?? ''), ...parameters]) {
    if (!startUpOnly.has(name) && !name.startsWith('_pq_.')) applySetting(pg, name, [value])
  }
  for (const [name, value] of pg.settings) pg.started.set(name, value)
  applySessionSettings(pg)
  for (const message of reportedAtStart(pg)) out.put(message)
  const secret = randomInt(2 ** 31)
  out.put(backendKeyData(connection.id, secret))
  out.put(readyForQuery('I'))
  const end = (): void => {
    inbound.close()
    out.closeSoon()
  }
  sessions.set(connection.id, { secret, pg, principal, end })
  inbound.onEnd = () => pg.running?.abort()
  try {
    await serveSession(pg, inbound)
  } finally {
    sessions.delete(connection.id)
  }
}

const startUpOnly: ReadonlySet<string> = new Set(['user', 'database', 'options', 'replication'])

function openSession(
  { options, services, sessions, channels, snapshots }: Gateway,
  connection: Connection,
  principal: Principal,
  streams: { readonly inbound: Inbound; readonly out: Outbound },
): PgSession {
  const settings = versionSettings(options)
  const transaction = services.engine.begin()
  connection.application = () => settings.get('application_name') ?? ''
  const pg: PgSession = {
    ...services,
    ...{ options, connection, settings },
    ...streams,
    session: {
      user: principal.user,
      protocol: 'pg',
      dialect: postgresDialect,
      numbers: { last: null },
      readOnly: options.readOnly,
      rights: principal.rights,
      trace: connection.trace,
      settings,
      processId: connection.id,
      transaction,
      configure: (name, value, local) => configure(pg, name, value, local),
      signal: (process, ends) => signal(sessions, pg, process, ends),
      notify: (channel, payload) => noteNotification(pg, channel, payload),
      channels: () => channels.of(pg),
      exportSnapshot: () => exportSnapshot(pg),
      named: () => namedStatements(pg),
    },
    started: new Map(),
    transaction,
    held: [],
    savepoints: [],
    synced: null,
    pendingSyncs: [],
    ...{ channels, snapshots, exported: [] },
    noted: new Map(),
    inbox: { messages: [], bytes: 0 },
    block: null,
    isWithinText: false,
    isSplit: false,
    lostSavepoints: false,
    tookEffect: false,
    statements: new Map(),
    text: '',
    lastBound: null,
    portals: new Map(),
    cursors: new Map(),
    status: 'I',
    isAwaited: true,
    isIdle: true,
    skipping: false,
    running: null,
  }
  return pg
}

/** Ends sessions of dropped users and applies changed rights to the others at once. */
function refreshRights({ sessions, services }: Gateway): void {
  for (const { pg, principal, end } of sessions.values()) {
    const now = services.authenticator.refresh(principal)
    if (now === null) end()
    else pg.session = { ...pg.session, rights: now.rights }
  }
}

/**
 * Returns false when there is no such session. Throws AccessError for sessions of other users, unless the caller is
 * an administrator.
 */
function signal(sessions: Sessions, by: PgSession, process: number, ends: boolean): boolean {
  const found = sessions.get(process)
  if (found === undefined) {
    by.out.put(noticeResponse({ ...notThere, message: `PID ${process} is not a PostgreSQL backend process` }))
    return false
  }
  if (found.principal.user !== by.session.user) requireRight(by.session, 'admin')
  if (ends) found.end()
  else found.pg.running?.abort('canceling statement due to user request')
  return true
}

const notThere = { severity: 'WARNING', code: '01000', position: 0 } as const

/** Gives the client no response, whether or not a statement was cancelled. */
function cancel(sessions: Sessions, { process, secret }: CancelRequest): void {
  const session = sessions.get(process)
  if (session !== undefined && session.secret === secret)
    session.pg.running?.abort('canceling statement due to user request')
}

// Prepared statements and cursors of a session, for pg_prepared_statements and pg_cursors.

function namedStatements(pg: PgSession): NamedStatements {
  const named = [...pg.statements.values()].filter(({ name }) => name !== '')
  return {
    prepared: named.map((prepared) => {
      const { name, text, micros, bySql } = prepared
      return { name, text, micros, bySql, oids: oidsOf(pg, prepared) }
    }),
    cursors: [...pg.cursors.values()].map(({ name, query, micros, hold, binary, scroll }) => {
      return { name, text: query.text, micros, hold, binary, scroll }
    }),
  }
}

/** Parameter types; those that the client specified when the statement's tables no longer exist. */
function oidsOf(pg: PgSession, { statement, description, oids }: Prepared): readonly number[] {
  if (description !== null) return description.parameters.map(({ oid }) => oid)
  if (statement === null) return oids
  try {
    return pg.engine.describe(statement, pg.session, oids).parameters.map(({ oid }) => oid)
  } catch (error) {
    if (error instanceof SqlError || error instanceof NotReadyError) return oids
    throw error
  }
}
