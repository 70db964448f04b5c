// The door of the PostgreSQL wire protocol: listens, lets clients in, and knows whose statements can be cancelled.

import { randomInt } from 'node:crypto'
import { setMaxListeners } from 'node:events'
import { createServer, type Server, type Socket } from 'node:net'
import { pipeline } from 'node:stream/promises'
import { demandRight } from '../../engine/base/rights.js'
import type { BindAddress } from '../common/bind-address.js'
import type { Connection } from '../common/connections.js'
import { closeServer, listen, remoteAddress, type TakenPort } from '../common/listen.js'
import type { Principal } from '../common/users.js'
import { authenticate } from './authentication.js'
import { followSettings } from './block-settings.js'
import { Channels } from './channels.js'
import type { PgOptions, PgServices, PgSession } from './context.js'
import { encrypted, endPointOf } from './encryption.js'
import { Inbound } from './inbound.js'
import {
  authentication,
  backendKeyData,
  errorResponse,
  type NoticeFields,
  noticeResponse,
  readyForQuery,
} from './messages.js'
import { exportMoment } from './moments.js'
import { namedStatements } from './named-statements.js'
import { noteNotification } from './notifications.js'
import { Outbound } from './outbound.js'
import { serveSession } from './session.js'
import { configure } from './session-statements.js'
import { applySetting, reportedAtStart, versionSettings } from './settings.js'
import { noticeOf, PgError } from './sqlstate.js'
import { type CancelRequest, readStartUp, type StartUp, startUpOptions } from './start-up.js'

export type { PgOptions, PgServices } from './context.js'
export { takePgPort } from './starting.js'

export interface PgGateway {
  readonly address: BindAddress
  close(): Promise<void>
}

const keepAliveProbeMs = 60_000
/** A client that has not come in after this time is cut off. */
const startUpMs = 60_000
const startUpBytesMax = 10_000
const messageBytesMax = 256 * 1024 * 1024

/** Sessions by process id. */
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
  readonly channels: Channels
  readonly moments: PgSession['moments']
  readonly closing: AbortSignal
}

export async function openPgGateway(
  on: BindAddress | TakenPort,
  options: PgOptions,
  services: PgServices,
): Promise<PgGateway> {
  const closing = new AbortController()
  // Every connection listens to it.
  setMaxListeners(0, closing.signal)
  const server = createServer({ noDelay: true, keepAlive: true, keepAliveInitialDelay: keepAliveProbeMs })
  const running = new Set<Promise<void>>()
  const gateway: Gateway = {
    ...{ options, services, sessions: new Map(), channels: new Channels(), moments: new Map() },
    closing: closing.signal,
  }
  server.on('connection', (socket) => {
    const served = serve(gateway, socket).finally(() => running.delete(served))
    running.add(served)
  })
  services.engine.users.onChange(() => refreshRights(gateway))
  const address = await listen(server, on)
  return { address, close: () => close(server, closing, running) }
}

async function close(server: Server, closing: AbortController, running: ReadonlySet<Promise<void>>): Promise<void> {
  const closed = closeServer(server)
  closing.abort()
  await Promise.all(running)
  await closed
}

async function serve(gateway: Gateway, accepted: Socket): Promise<void> {
  const { registry, log, tls } = gateway.services
  accepted.on('error', () => {})
  const leave = (): void => void accepted.destroy()
  gateway.closing.addEventListener('abort', leave)
  const socket = tls === null ? accepted : await encrypted(accepted, tls)
  gateway.closing.removeEventListener('abort', leave)
  if (socket === null) {
    accepted.destroy()
    return
  }
  const isEncrypted = socket !== accepted
  const inbound = new Inbound(startUpBytesMax)
  const out = new Outbound(socket)
  const description = {
    protocol: 'pg',
    remoteAddress: remoteAddress(socket),
    bytesIn: () => socket.bytesRead,
    bytesOut: () => out.sent,
    tls: isEncrypted,
  } as const
  const isFull = registry.active('pg') >= gateway.options.connectionsMax
  if (isFull) registry.reject(description, 'pg.net.connection.limit')
  const connection = isFull ? null : registry.open(description)
  const received = pipeline(socket, inbound.stage, { end: true }).catch(() => {})
  const stop = (): void => {
    inbound.close()
    out.hurry()
  }
  gateway.closing.addEventListener('abort', stop)
  let reason: string | null = null
  try {
    if (gateway.closing.aborted) stop()
    await converse(gateway, connection, inbound, out, isEncrypted ? endPointOf(socket) : undefined)
  } catch (error) {
    reason = error instanceof Error ? error.message : String(error)
    if (!inbound.closed) {
      out.put(errorResponse({ ...noticeOf(error), severity: 'FATAL' }))
      log('W', 'pg', `connection closed: ${reason} [id=${connection?.id ?? 0}, from=${description.remoteAddress}]`)
    }
  }
  gateway.closing.removeEventListener('abort', stop)
  if (inbound.closed) {
    reason = gateway.closing.aborted ? 'shutdown' : shutdown.message
    out.put(errorResponse(shutdown))
  }
  await out.flush()
  socket.end()
  socket.destroySoon()
  inbound.stage.destroy()
  await received
  if (connection !== null) registry.close(connection, reason)
}

const shutdown: NoticeFields = {
  severity: 'FATAL',
  code: '57P01',
  message: 'terminating connection due to administrator command',
  position: 0,
}

/** `connection` null: there are too many. `endPoint`: what clients may bind to; undefined without encryption. */
async function converse(
  gateway: Gateway,
  connection: Connection | null,
  inbound: Inbound,
  out: Outbound,
  endPoint: Buffer | null | undefined,
): Promise<void> {
  const impatience = setTimeout(() => inbound.stage.destroy(), startUpMs)
  try {
    const wanted = await readStartUp(inbound, out)
    if (wanted === null) return
    if ('process' in wanted) {
      cancel(gateway.sessions, wanted)
      return
    }
    if (connection === null) throw new PgError('53300', 'sorry, too many clients already')
    if (gateway.options.tlsRequired && endPoint === undefined)
      throw new PgError('28000', 'this server takes encrypted connections only')
    const principal = await authenticate(gateway, wanted.user, { inbound, out, endPoint: endPoint ?? null })
    if (principal === null) return
    clearTimeout(impatience)
    connection.principal = principal.user
    inbound.messageBytesMax = messageBytesMax
    await converseAs(gateway, connection, principal, wanted, inbound, out)
  } finally {
    clearTimeout(impatience)
  }
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
  followSettings(pg)
  for (const message of reportedAtStart(pg)) out.put(message)
  const secret = randomInt(2 ** 31)
  out.put(backendKeyData(connection.id, secret))
  out.put(readyForQuery('I'))
  const end = (): void => {
    inbound.close()
    out.hurry()
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
  { options, services, sessions, channels, moments }: Gateway,
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
      exportMoment: () => exportMoment(pg),
      named: () => namedStatements(pg),
    },
    started: new Map(),
    transaction,
    held: [],
    savepoints: [],
    synced: null,
    unanswered: [],
    ...{ channels, moments, exported: [] },
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
    isResting: true,
    skipping: false,
    running: null,
  }
  return pg
}

/** Who has been dropped is sent away, who has other rights has them at once. */
function refreshRights({ sessions, services }: Gateway): void {
  for (const { pg, principal, end } of sessions.values()) {
    const now = services.authenticator.refresh(principal)
    if (now === null) end()
    else pg.session = { ...pg.session, rights: now.rights }
  }
}

/** False: there is no such session. Throws AccessError about those of others, unless an administrator asks. */
function signal(sessions: Sessions, by: PgSession, process: number, ends: boolean): boolean {
  const found = sessions.get(process)
  if (found === undefined) {
    by.out.put(noticeResponse({ ...notThere, message: `PID ${process} is not a PostgreSQL backend process` }))
    return false
  }
  if (found.principal.user !== by.session.user) demandRight(by.session, 'admin')
  if (ends) found.end()
  else found.pg.running?.abort('canceling statement due to user request')
  return true
}

const notThere = { severity: 'WARNING', code: '01000', position: 0 } as const

/** Nobody is told whether it did anything. */
function cancel(sessions: Sessions, { process, secret }: CancelRequest): void {
  const session = sessions.get(process)
  if (session !== undefined && session.secret === secret)
    session.pg.running?.abort('canceling statement due to user request')
}
