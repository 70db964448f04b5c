// Starts the HTTP server, or the server of line protocol over TCP, on a free port. It uses the fake engine
// (fake-engine.ts) unless the test passes a real one. Also has helpers to connect and to wait for a condition.

import { connect, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Clock, systemClock } from '../../engine/base/clock.js'
import type { Log } from '../../engine/base/log.js'
import { allRights } from '../../engine/base/rights.js'
import type { Engine } from '../../engine/engine.js'
import { Authenticator, type ConfiguredAccess } from '../../gateways/common/auth.js'
import { ConnectionRegistry } from '../../gateways/common/connections.js'
import type { LineKeys } from '../../gateways/common/line-keys.js'
import { type GatewayCounters, gatewayCounters } from '../../gateways/common/metric.js'
import { metricsSource } from '../../gateways/common/metrics-source.js'
import { gatewayMetrics } from '../../gateways/common/metrics-table.js'
import { noPages } from '../../gateways/common/pages.js'
import type { TlsKeys } from '../../gateways/common/tls.js'
import type { HttpOptions } from '../../gateways/http/context.js'
import { openHttpGateway } from '../../gateways/http/server.js'
import { type LineTcpGateway, type LineTcpOptions, openLineTcpGateway } from '../../gateways/ilp-tcp/server.js'
import { ParquetUploads } from '../../pipeline/ingest.js'
import { type FakeEngine, fakeEngine } from './fake-engine.js'

export interface TestGateway {
  readonly engine: FakeEngine
  readonly registry: ConnectionRegistry
  readonly counters: GatewayCounters
  readonly logged: string[]
  readonly port: number
  readonly url: string
  close(): Promise<void>
}

const here = { host: '127.0.0.1', port: 0 }

const httpDefaults: HttpOptions = {
  readOnly: false,
  acceptingWrites: ['http', 'tcp', 'pgwire'],
  corsOrigins: null,
  healthNeedsCredentials: true,
  hostNames: null,
  warnings: [],
  connectionsMax: 10,
  connectionsPerAddressMax: 0,
  keepAliveMs: 5000,
  headerBytesMax: 1024 * 1024,
  receiveBufferBytes: 256 * 1024,
  sendBufferBytes: 1024 * 1024,
  importExpandedBytesMax: 1024 * 1024,
  executePath: '/exec',
  exportPath: '/exp',
  importPath: '/imp',
  exportsMax: -1,
  importsMax: -1,
  preferencesPath: join(tmpdir(), `penstock-test-preferences-${process.pid}.json`),
  savedPath: join(tmpdir(), `penstock-test-saved-${process.pid}.json`),
  exportTimeoutMs: 60_000,
  exportDirectory: join(tmpdir(), 'penstock-test-exports'),
  rowsMax: 10_000,
  queryTimeoutMs: 0,
  queriesMax: -1,
  linesEnabled: true,
  lineRequestsMax: -1,
  lineBodyBytesMax: 1024 * 1024,
  lineBodiesBytesMax: 4 * 1024 * 1024,
  linePrefixParts: [],
  qwpBadValue: 'reject',
  qwpHoldMs: 1000,
  qwpDurable: true,
  qwpGroupsBytesMax: 4 * 1024 * 1024,
  qwpZstdLevel: 0,
  metricsEnabled: true,
  pessimisticHealth: false,
  logQueries: true,
  version: '0.0.0',
}

export const lineTcpDefaults: LineTcpOptions = {
  connectionsMax: 10,
  connectionsPerAddressMax: 0,
  badLine: 'close',
  authRequired: false,
  closed: null,
}

const noKeys: LineKeys = { find: () => undefined }

export function context() {
  const logged: string[] = []
  const log: Log = (level, logger, message) => void logged.push(`${level} ${logger} ${message}`)
  const registry = new ConnectionRegistry(systemClock, 100)
  return { engine: fakeEngine(), registry, counters: gatewayCounters(), logged, log, clock: systemClock }
}

/** Nobody has to say who he is. */
const openAccess: ConfiguredAccess = { configured: [], anonymous: { user: 'admin', rights: allRights } }

/** `real`: an engine instead of the fake one. */
export async function testHttp(
  changes: Partial<HttpOptions> = {},
  { access = openAccess, tls = null as TlsKeys | null, pages = noPages, real = null as Engine | null } = {},
  clock: Clock = systemClock,
): Promise<TestGateway & { reconfigure(changes: Partial<HttpOptions>): void }> {
  const around = context()
  const engine = real ?? around.engine
  const auth = new Authenticator({ ...access, users: engine.users })
  const metrics = metricsSource(gatewayMetrics(around.counters, around.registry), 'svc_')
  const gateway = await openHttpGateway(
    here,
    { ...httpDefaults, ...changes },
    {
      ...around,
      clock,
      engine,
      metrics,
      auth,
      tls,
      pages,
      openDump: null,
      uploads: new ParquetUploads(join(tmpdir(), `penstock-test-uploads-${process.pid}`)),
      alerts: { define: async () => {}, remove: async () => false },
      warnings: () => [],
      lakeConfig: {},
      lakeKeys: { of: async () => ({}), expire: false },
    },
  )
  const { port } = gateway.address
  const reconfigure = (again: Partial<HttpOptions>): void => gateway.reconfigure({ ...httpDefaults, ...again })
  return { ...around, reconfigure, port, url: `http://127.0.0.1:${port}`, close: () => gateway.close(100) }
}

export async function testLineTcp(
  changes: Partial<LineTcpOptions> = {},
  { keys = noKeys, tls = null as TlsKeys | null } = {},
): Promise<TestGateway & Pick<LineTcpGateway, 'reconfigure'>> {
  const around = context()
  const gateway = await openLineTcpGateway(here, { ...lineTcpDefaults, ...changes }, { ...around, keys, tls })
  const { reconfigure } = gateway
  return { ...around, reconfigure, port: gateway.address.port, url: '', close: () => gateway.close() }
}

/** A connection that may be reset by the other side. */
export async function connectTo(port: number): Promise<Socket> {
  const socket = connect({ host: '127.0.0.1', port })
  socket.on('error', () => {})
  await new Promise((resolve) => socket.once('connect', resolve))
  return socket
}

/** Polls until the condition holds; fails after some seconds. */
export async function until(condition: () => boolean): Promise<void> {
  const end = performance.now() + 600_000
  while (!condition()) {
    if (performance.now() > end) throw new Error(`never became true: ${condition}`)
    await new Promise((resolve) => setImmediate(resolve))
  }
}
