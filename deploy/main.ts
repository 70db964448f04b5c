// The composition root: creates all long-lived objects of the server and connects them. The ports are bound first
// (ports.ts), then the engine starts, then the gateways open. They are closed in reverse order, so everything that was
// accepted is stored.

import { join, resolve } from 'node:path'
import type { KafkaOptions } from '../connectors/kafka/options.js'
import type { KafkaConnectorHandle, KafkaServices } from '../connectors/kafka/server.js'
import { DumpImport } from '../connectors/sqlite/import.js'
import { type SharedClock, systemClock } from '../engine/base/clock.js'
import { FileError, ResourceError } from '../engine/base/errors.js'
import type { Log } from '../engine/base/log.js'
import { type Engine, type EngineOptions, internalSession } from '../engine/engine.js'
import { backendsOf, connectionRelations } from '../gateways/common/connection-relations.js'
import { ConnectionRegistry } from '../gateways/common/connections.js'
import type { DumpRequest, DumpSession } from '../gateways/common/dump-import.js'
import { engineMetrics } from '../gateways/common/engine-metrics.js'
import { memoryRelation } from '../gateways/common/memory-relation.js'
import { type GatewayCounters, gatewayCounters, type Metric } from '../gateways/common/metric.js'
import { type MetricsSource, metricsSource } from '../gateways/common/metrics-source.js'
import { gatewayMetrics } from '../gateways/common/metrics-table.js'
import { joinPages, noPages } from '../gateways/common/pages.js'
import { consolePages } from '../gateways/console/server.js'
import { docsPages } from '../gateways/docs/server.js'
import { openHttpGateway } from '../gateways/http/server.js'
import { openLineTcpGateway } from '../gateways/ilp-tcp/server.js'
import { openPgGateway } from '../gateways/pgwire/server.js'
import { openQwpUdpGateway } from '../gateways/qwp-udp/server.js'
import {
  copyRelations,
  fileCopier,
  IcebergTables,
  ParquetUploads,
  RemoteFiles,
  recoverImports,
} from '../pipeline/ingest.js'
import { ServerAlerts } from './alerts.js'
import { ServerBackups } from './backups.js'
import { copyDirectories, engineOptions } from './engine-options.js'
import { httpOptions, lineTcpOptions, pgOptions, qwpUdpOptions } from './gateway-options.js'
import { kafkaOptions } from './kafka-options.js'
import { openObjectStore, remoteFileOptions, type ServerStore, storeFolder } from './object-store.js'
import { bindPorts, type Listener, type Port } from './root/ports.js'
import type { LiveSettings, Loaded } from './settings/live-settings.js'
import { freeBytesMin } from './settings/machine.js'
import { httpAccess, httpAuthenticator, lineTcpKeys, pgAccess, pgAuthenticator } from './settings/security.js'
import { resumeCounters, runFirstStatements } from './start-statements.js'
import { Telemetry } from './telemetry.js'

export interface ServerOptions {
  readonly root: string
  readonly version: string
  readonly live: LiveSettings
  readonly log: Log
  /** Called if the engine cannot continue; the process must end. */
  readonly fatal: (error: Error) => void
  readonly openEngine: (options: EngineOptions) => Promise<Engine>
}

const clockLookMs = 1000
const healthMs = 2000

export interface Server {
  readonly engine: Engine
  readonly listeners: readonly Listener[]
  /** Counts an exception that no one caught. */
  unhandledError(): void
  close(): Promise<void>
}

/** Closes something that was opened; called in reverse order. */
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

/** What the gateways need, and the list to which they add their closers. */
interface Opening extends ServerOptions {
  readonly closers: Closer[]
  readonly clock: SharedClock
  readonly engine: Engine
  readonly registry: ConnectionRegistry
  readonly counters: GatewayCounters
  readonly metrics: MetricsSource
  readonly store: ServerStore
  readonly alerts: ServerAlerts
  readonly uploads: ParquetUploads
}

async function openAll(options: ServerOptions, closers: Closer[]): Promise<Server> {
  const { live, root, log } = options
  const settings = live.current.values
  let opened: Opening | null = null
  const metricsText = async () => (live.current.values['metrics.enabled'] ? (opened?.metrics.text() ?? null) : null)
  const ports = await bindPorts({ settings, root, log, metricsText, closers })
  const reportHealth = (): void => {
    const trouble = counters.unhandledErrors > 0 || (opened?.engine.metrics().counts.logLosses ?? 0) > 0
    const bad = live.current.values['http.pessimistic.health.check.enabled'] && trouble
    if (opened !== null) ports.health?.setHealth(!bad)
  }
  const counters = gatewayCounters(reportHealth)
  live.onChange(reportHealth)
  live.onChange(({ values }) => ports.health?.limitAddresses(values['net.connection.limit.per.address']))
  const opening = await openData(options, closers, counters)
  await runFirstStatements(opening.engine)
  if (ports.http !== null) await openHttp(opening, ports.http)
  if (ports.line !== null) await openLines(opening, ports.line)
  const datagrams = settings['qwp.udp.enabled'] ? [await openDatagrams(opening)] : []
  if (ports.pg !== null) await openPostgres(opening, ports.pg)
  opened = opening
  const healthTimer = setInterval(reportHealth, healthMs).unref()
  closers.push(async () => clearInterval(healthTimer))
  if (ports.health !== null) closers.push(ports.health.close)
  reportHealth()
  return {
    engine: opening.engine,
    listeners: [...ports.listeners, ...datagrams],
    unhandledError: () => {
      counters.unhandledErrors++
    },
    close: () => closeAll(closers),
  }
}

/** Opens the engine with telemetry, connectors and metrics. */
async function openData(options: ServerOptions, closers: Closer[], counters: GatewayCounters): Promise<Opening> {
  const { root, live, log, fatal, openEngine } = options
  const clock: SharedClock = systemClock
  closers.push(watchClock(log))
  const loaded = live.current
  const telemetry = new Telemetry(() => live.current.values, clock, log)
  const { systemTable, observer } = telemetry.hooks
  const registry = new ConnectionRegistry(clock, loaded.values['connection.log.entries'])
  const backends = () => backendsOf(registry)
  const hooks = { backends, systemTable, observer, reload: () => live.reload() }
  const store = openObjectStore(loaded.values, root, log)
  closers.push(store.close)
  let isOpen = false
  // A running server waits until the log can be written again. One that is not ready yet fails to start.
  const logFailed = (error: Error): void => {
    if (!isOpen && !isFull(error)) fatal(error)
  }
  const engine = await openEngine({
    ...engineOptions({ root, loaded, current: () => live.current, hooks, log, clock, fatal }),
    logFailed,
    objectStore: store.policies,
  })
  closers.push(() => engine.close())
  const watchDisk = ({ values }: Loaded): void => engine.refuseBelow(freeBytesMin(values['disk.free.bytes.min'], root))
  watchDisk(loaded)
  live.onChange(watchDisk)
  await recoverUnfinished(engine, log)
  await resumeCounters(engine)
  const directories = copyDirectories(loaded.values, root)
  engine.copier(fileCopier(engine, directories))
  const remoteFiles = new RemoteFiles(remoteFileOptions(loaded.values, root, { client: store.client, clock }))
  const readable = { ...directories, storeRoot: storeFolder(loaded.values) }
  const icebergTables = new IcebergTables({ directories: readable, remote: remoteFiles, clock })
  const uploads = new ParquetUploads(join(root, 'tmp', 'uploads'))
  for (const relation of copyRelations(readable, remoteFiles, icebergTables, uploads)) engine.relation(relation)
  const backups = new ServerBackups(engine.backups, { root, settings: () => live.current.values, clock, log })
  engine.backups.register(backups)
  closers.push(() => backups.close())
  const alerts = new ServerAlerts(engine, { path: resolve(root, 'conf/alerts.json'), clock, log })
  const relations = [
    ...connectionRelations(registry),
    memoryRelation(engine),
    store.relation,
    alerts.relation,
    backups.relation,
  ]
  for (const relation of relations) engine.relation(relation)
  const connectors = await openConnectors(kafkaOptions(loaded), { engine, log, clock }, live)
  const metrics = metricsSource(
    [
      ...connectors.metrics,
      ...gatewayMetrics(counters, registry),
      ...engineMetrics(engine, () => clock.monotonicMs()),
      ...telemetry.metrics,
      ...store.metrics,
      ...alerts.metrics,
    ],
    loaded.values['metrics.prefix'],
  )
  await telemetry.start(engine)
  isOpen = true
  closers.push(() => telemetry.close())
  closers.push(connectors.close)
  closers.push(async () => alerts.close())
  return { ...options, closers, clock, engine, registry, counters, metrics, store, alerts, uploads }
}

async function openHttp(opening: Opening, { port, tls }: Port): Promise<void> {
  const { live, version, root, closers, engine } = opening
  const settings = live.current.values
  const auth = httpAuthenticator(settings, opening.engine.users)
  const pages = settings['http.console.enabled'] ? joinPages(consolePages(), docsPages()) : noPages
  const openDump = (request: DumpRequest): DumpSession => new DumpImport({ ...request, engine })
  const services = {
    ...opening,
    auth,
    tls,
    pages,
    openDump,
    warnings: opening.store.warnings,
    lakeConfig: opening.store.lakeConfig,
    lakeKeys: opening.store.lakeKeys,
  }
  const http = await openHttpGateway(port, httpOptions(settings, version, root), services)
  live.onChange(({ values }) => {
    auth.reconfigure(httpAccess(values))
    http.reconfigure(httpOptions(values, version, root))
  })
  closers.push(() => http.close(live.current.values['shutdown.timeout']))
}

async function openLines(opening: Opening, { port, tls }: Port): Promise<void> {
  const { live, closers, root, engine, log } = opening
  const settings = live.current.values
  const options = lineTcpOptions(settings)
  const keys = lineTcpKeys(settings, root, engine.users, log)
  const line = await openLineTcpGateway(port, options, { ...opening, keys, tls })
  live.onChange(({ values }) => line.reconfigure(lineTcpOptions(values)))
  closers.push(() => line.close())
}

async function openDatagrams(opening: Opening): Promise<Listener> {
  const { live, closers } = opening
  const settings = live.current.values
  const receiver = await openQwpUdpGateway(settings['qwp.udp.bind.to'], qwpUdpOptions(settings), opening)
  live.onChange(({ values }) => receiver.reconfigure(qwpUdpOptions(values)))
  closers.push(() => receiver.close())
  return { name: 'QWP over UDP', address: receiver.address, secure: false }
}

async function openPostgres(opening: Opening, { port, tls }: Port): Promise<void> {
  const { live, closers } = opening
  const settings = live.current.values
  const authenticator = pgAuthenticator(settings, opening.engine.users, opening.root)
  const pg = await openPgGateway(port, pgOptions(settings), { ...opening, authenticator, tls })
  live.onChange(({ values }) => {
    authenticator.reconfigure(pgAccess(values))
    pg.reconfigure(pgOptions(values))
  })
  closers.push(() => pg.close())
}

/**
 * Cleans up after imports that a crash interrupted. On a full disk that is left to the next start, so that clients can
 * read.
 */
async function recoverUnfinished(engine: Engine, log: Log): Promise<void> {
  try {
    await recoverImports({ engine, session: internalSession('admin') })
  } catch (thrown) {
    if (!(thrown instanceof ResourceError)) throw thrown
    log('W', 'import', `files of unfinished imports remain until the next start: ${thrown.message}`)
  }
}

/** Whether the disk is full. Space may be freed, for which the server must run. */
function isFull(error: Error): boolean {
  return error instanceof FileError && ['ENOSPC', 'EDQUOT'].includes(error.code)
}

/** Logs changes of the machine's clock. The server's clock has already adapted by then. */
function watchClock(log: Log): Closer {
  systemClock.onStep((micros) => {
    const seconds = `${micros > 0 ? '+' : ''}${(micros / 1e6).toFixed(3)}`
    log('W', 'server', `the machine's clock was set [seconds=${seconds}]`)
  })
  const timer = setInterval(() => systemClock.nowMicros(), clockLookMs).unref()
  return async () => clearInterval(timer)
}

interface Connectors {
  readonly metrics: readonly Metric[]
  readonly close: Closer
}

/**
 * Opens the connectors, which are closed after the gateways and before the engine. Their code is loaded only if any are
 * configured. Their relations always exist, so queries of them do not depend on the settings.
 */
async function openConnectors(
  options: readonly KafkaOptions[],
  services: KafkaServices,
  live: LiveSettings,
): Promise<Connectors> {
  const { connectorMetrics, connectorRelations } = await import('../connectors/kafka/relations.js')
  const kafka = options.length === 0 ? null : await import('../connectors/kafka/server.js')
  const isHeld = (): boolean => live.current.values['security.readonly']
  const connectors =
    kafka === null
      ? []
      : options.map((one) => kafka.openKafkaConnector({ ...one, enabled: one.enabled && !isHeld() }, services))
  holdConnectors(
    connectors,
    connectors.filter((_, index) => options[index]?.enabled === true && isHeld()),
    live,
  )
  for (const relation of connectorRelations(connectors)) services.engine.relation(relation)
  for (const connector of connectors) services.engine.connector(connector)
  return {
    metrics: connectorMetrics(connectors),
    close: async () => {
      await Promise.all(connectors.map((connector) => connector.close()))
    },
  }
}

/** Pauses connectors while `security.readonly` is set, and resumes afterwards those that it has paused. */
function holdConnectors(
  connectors: readonly KafkaConnectorHandle[],
  heldAtStart: readonly KafkaConnectorHandle[],
  live: LiveSettings,
): void {
  let held = heldAtStart
  let isHeld = live.current.values['security.readonly']
  live.onChange(({ values }) => {
    if (values['security.readonly'] === isHeld) return
    isHeld = values['security.readonly']
    const changed = isHeld ? connectors.filter(({ statistics }) => statistics.state !== 'paused') : held
    held = isHeld ? changed : []
    for (const connector of changed) void (isHeld ? connector.pause() : connector.resume())
  })
}

async function closeAll(closers: Closer[]): Promise<void> {
  for (let close = closers.pop(); close !== undefined; close = closers.pop()) await close()
}
