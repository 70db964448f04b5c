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
import { engineMetrics } from '../gateways/common/engine-metrics.js'
import { memoryRelation } from '../gateways/common/memory-relation.js'
import { gatewayCounters } from '../gateways/common/metric.js'
import { metricsSource } from '../gateways/common/metrics-source.js'
import { gatewayMetrics } from '../gateways/common/metrics-table.js'
import { noUsers } from '../gateways/common/users.js'
import { openHttpGateway } from '../gateways/http/server.js'
import { openLineTcpGateway } from '../gateways/ilp-tcp/server.js'
import { type MinHttpGateway, openMinHttpGateway } from '../gateways/min-http/server.js'
import { openPgGateway } from '../gateways/pgwire/server.js'
import { recoverImports } from '../pipeline/ingest.js'
import { engineOptions, freeBytesMin } from './engine-options.js'
import { httpOptions, lineTcpOptions, pgOptions, pgUsers } from './gateway-options.js'
import type { LiveSettings, Loaded } from './live-settings.js'
import { Telemetry } from './telemetry.js'

export interface ServerOptions {
  readonly root: string
  readonly version: string
  readonly live: LiveSettings
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
  const { root, version, live, log, fatal, openEngine } = options
  const loaded = live.current
  const settings = loaded.values
  const clock: Clock = systemClock
  const listeners: { name: ListenerName; address: BindAddress }[] = []
  const opened = <Gateway extends { readonly address: BindAddress }>(name: ListenerName, gateway: Gateway): Gateway => {
    listeners.push({ name, address: gateway.address })
    return gateway
  }

  const telemetry = new Telemetry(() => live.current.values, clock, log)
  const hooks = { ...telemetry.hooks, reload: () => live.reload() }
  const engine = await openEngine(
    engineOptions({ root, loaded, current: () => live.current, hooks, log, clock, fatal }),
  )
  closers.push(() => engine.close())
  const watchDisk = ({ values }: Loaded): void => engine.refuseBelow(freeBytesMin(values['disk.free.bytes.min'], root))
  watchDisk(loaded)
  live.onChange(watchDisk)
  await recoverImports({ engine, session: { user: 'admin', protocol: 'internal', readOnly: false, rights: allRights } })
  const registry = new ConnectionRegistry(clock, settings['connection.log.entries'])
  for (const relation of connectionRelations(registry)) engine.relation(relation)
  engine.relation(memoryRelation(engine))
  let health: MinHttpGateway | null = null
  const tellHealth = (): void => {
    const bad = live.current.values['http.pessimistic.health.check.enabled'] && counters.unhandledErrors > 0
    health?.setHealth(!bad)
  }
  const counters = gatewayCounters(tellHealth)
  live.onChange(tellHealth)
  const metrics = metricsSource(
    [...gatewayMetrics(counters, registry), ...engineMetrics(engine, () => clock.nowMicros()), ...telemetry.metrics],
    settings['metrics.prefix'],
  )
  await telemetry.start(engine)
  closers.push(() => telemetry.close())

  if (settings['http.enabled']) {
    const services = { engine, registry, counters, metrics, clock, log }
    const http = await openHttpGateway(settings['http.net.bind.to'], httpOptions(settings, version, root), services)
    opened('http', http)
    live.onChange(({ values }) => http.reconfigure(httpOptions(values, version, root)))
    closers.push(() => http.close(live.current.values['shutdown.timeout']))
  }
  if (settings['line.tcp.enabled']) {
    const services = { engine, registry, counters, log }
    const lineOptions = lineTcpOptions(settings)
    const line = await openLineTcpGateway(settings['line.tcp.net.bind.to'], lineOptions, services)
    opened('line protocol', line)
    live.onChange(({ values }) => void Object.assign(lineOptions, lineTcpOptions(values)))
    closers.push(() => line.close())
  }
  if (settings['pg.enabled']) {
    const authenticator = new Authenticator({ configured: pgUsers(settings), users: noUsers, anonymous: null })
    const services = { engine, authenticator, registry, counters, clock, log }
    const options = pgOptions(settings)
    const pg = await openPgGateway(settings['pg.net.bind.to'], options, services)
    opened('postgres', pg)
    live.onChange(({ values }) => void Object.assign(options, pgOptions(values)))
    closers.push(() => pg.close())
  }
  if (settings['http.min.enabled']) {
    const text = async () => (live.current.values['metrics.enabled'] ? metrics.text() : null)
    health = opened('health', await openMinHttpGateway(settings['http.min.net.bind.to'], text))
    closers.push(health.close)
  }
  if (settings['metrics.enabled']) void metrics.load()
  return {
    listeners,
    unhandledError: () => {
      counters.unhandledErrors++
    },
    close: () => closeAll(closers),
  }
}

async function closeAll(closers: Closer[]): Promise<void> {
  for (let close = closers.pop(); close !== undefined; close = closers.pop()) await close()
}
