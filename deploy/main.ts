// The composition root: everything that lives long is made here, and given what it needs. Opened in the order engine,
// gateways; closed in the reverse order, so that what was taken is stored.

import { type Clock, systemClock } from '../engine/base/clock.js'
import type { Log } from '../engine/base/log.js'
import { allRights } from '../engine/base/rights.js'
import type { Engine, EngineOptions } from '../engine/engine.js'
import { Authenticator } from '../gateways/common/auth.js'
import type { BindAddress } from '../gateways/common/bind-address.js'
import { connectionRelations } from '../gateways/common/connection-relations.js'
import { ConnectionRegistry } from '../gateways/common/connections.js'
import { gatewayCounters } from '../gateways/common/metric.js'
import { gatewayMetrics } from '../gateways/common/metrics-table.js'
import { noUsers } from '../gateways/common/users.js'
import { openHttpGateway } from '../gateways/http/server.js'
import { openLineTcpGateway } from '../gateways/ilp-tcp/server.js'
import { type MinHttpGateway, openMinHttpGateway } from '../gateways/min-http/server.js'
import { openPgGateway } from '../gateways/pgwire/server.js'
import { recoverImports } from '../pipeline/ingest.js'
import { engineOptions } from './engine-options.js'
import { httpOptions, lineTcpOptions, pgOptions, pgUsers } from './gateway-options.js'
import type { LoadedSettings } from './settings.js'
import type { settingsTable } from './settings-table.js'

export interface ServerOptions {
  readonly root: string
  readonly version: string
  readonly loaded: LoadedSettings<typeof settingsTable>
  readonly log: Log
  /** The engine cannot go on: the process has to end. */
  readonly fatal: (error: Error) => void
  readonly openEngine: (options: EngineOptions) => Promise<Engine>
}

export type ListenerName = 'http' | 'health' | 'line protocol' | 'postgres'

export interface Server {
  readonly listeners: readonly { readonly name: ListenerName; readonly address: BindAddress }[]
  /** Somebody caught an error that nobody expected. */
  unhandledError(): void
  close(): Promise<void>
}

/** Something that has been opened; closed in the reverse order. */
type Closer = () => Promise<void>

export async function startServer(options: ServerOptions): Promise<Server> {
  const closers: Closer[] = []
  try {
    return await openAll(options, closers)
  } catch (error) {
    await closeAll(closers)
    throw error
  }
}

async function openAll(options: ServerOptions, closers: Closer[]): Promise<Server> {
  const { root, version, loaded, log, fatal, openEngine } = options
  const settings = loaded.values
  const clock: Clock = systemClock
  const listeners: { name: ListenerName; address: BindAddress }[] = []
  const opened = <Gateway extends { readonly address: BindAddress }>(name: ListenerName, gateway: Gateway): Gateway => {
    listeners.push({ name, address: gateway.address })
    return gateway
  }

  const engine = await openEngine(engineOptions({ root, loaded, log, clock, fatal }))
  closers.push(() => engine.close())
  await recoverImports({ engine, session: { user: 'admin', protocol: 'internal', readOnly: false, rights: allRights } })
  const registry = new ConnectionRegistry(clock, settings['connection.log.entries'])
  for (const relation of connectionRelations(registry)) engine.relation(relation)
  const counters = gatewayCounters()
  const metrics = gatewayMetrics(counters, registry)

  if (settings['http.enabled']) {
    const services = { engine, registry, counters, metrics, clock, log }
    const http = await openHttpGateway(settings['http.net.bind.to'], httpOptions(settings, version, root), services)
    opened('http', http)
    closers.push(() => http.close(settings['shutdown.timeout']))
  }
  if (settings['line.tcp.enabled']) {
    const services = { engine, registry, counters, log }
    const line = await openLineTcpGateway(settings['line.tcp.net.bind.to'], lineTcpOptions(settings), services)
    opened('line protocol', line)
    closers.push(() => line.close())
  }
  if (settings['pg.enabled']) {
    const authenticator = new Authenticator({ configured: pgUsers(settings), users: noUsers, anonymous: null })
    const services = { engine, authenticator, registry, counters, clock, log }
    const pg = await openPgGateway(settings['pg.net.bind.to'], pgOptions(settings), services)
    opened('postgres', pg)
    closers.push(() => pg.close())
  }
  let health: MinHttpGateway | null = null
  if (settings['http.min.enabled']) {
    health = opened('health', await openMinHttpGateway(settings['http.min.net.bind.to']))
    closers.push(health.close)
  }
  return {
    listeners,
    unhandledError: () => {
      counters.unhandledErrors++
      if (settings['http.pessimistic.health.check.enabled']) health?.unhealthy()
    },
    close: () => closeAll(closers),
  }
}

async function closeAll(closers: Closer[]): Promise<void> {
  for (let close = closers.pop(); close !== undefined; close = closers.pop()) await close()
}
