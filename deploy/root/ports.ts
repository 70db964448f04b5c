// Binds the server's TCP ports before its data is read, so that a second server fails at once. Until the gateways take
// the ports over, clients get the response that the server is starting; line protocol has no responses, so its
// connections are closed.

import type { Log } from '../../engine/base/log.js'
import type { BindAddress } from '../../gateways/common/bind-address.js'
import type { BoundPort } from '../../gateways/common/listen.js'
import type { TlsKeys } from '../../gateways/common/tls.js'
import { bindHttpPort } from '../../gateways/http/server.js'
import { bindLinePort } from '../../gateways/ilp-tcp/server.js'
import { type MinHttpGateway, openMinHttpGateway } from '../../gateways/min-http/server.js'
import { bindPgPort } from '../../gateways/pgwire/server.js'
import { type TlsPrefix, tlsKeys } from '../settings/security.js'
import type { Settings } from '../settings/settings.js'

type ListenerName = 'http' | 'health' | 'line protocol' | 'postgres' | 'QWP over UDP'

export interface Listener {
  readonly name: ListenerName
  readonly address: BindAddress
  /** Uses or supports TLS. */
  readonly secure: boolean
}

export interface Port {
  readonly port: BoundPort
  readonly tls: TlsKeys | null
}

/** Null: disabled. */
export interface Ports {
  readonly http: Port | null
  readonly line: Port | null
  readonly pg: Port | null
  /** Runs on its own thread and serves at once; it reports an unhealthy server until setHealth() is called. */
  readonly health: MinHttpGateway | null
  readonly listeners: readonly Listener[]
}

interface PortsOptions {
  readonly settings: Settings
  readonly root: string
  readonly log: Log
  readonly metricsText: Parameters<typeof openMinHttpGateway>[1]
  readonly closers: (() => Promise<void>)[]
}

export async function bindPorts(options: PortsOptions): Promise<Ports> {
  const { settings, closers } = options
  const listeners: Listener[] = []
  const health = openHealth(options)
  // Handles a failure that occurs before the promise is awaited.
  health.catch(() => {})
  const take = async (
    name: ListenerName,
    prefix: TlsPrefix,
    bind: (tls: TlsKeys | null) => Promise<BoundPort>,
  ): Promise<Port> => {
    const tls = openTls(options, prefix)
    const port = await bind(tls)
    closers.push(async () => void port.server.close())
    listeners.push({ name, address: port.address, secure: tls !== null })
    return { port, tls }
  }
  const http = settings['http.enabled']
    ? await take('http', 'http', (tls) => bindHttpPort(settings['http.net.bind.to'], tls))
    : null
  const line = settings['line.tcp.enabled']
    ? await take('line protocol', 'line.tcp', () => bindLinePort(settings['line.tcp.net.bind.to']))
    : null
  const pg = settings['pg.enabled']
    ? await take('postgres', 'pg', (tls) => bindPgPort(settings['pg.net.bind.to'], tls))
    : null
  const opened = await health
  if (opened !== null) listeners.push(opened.listener)
  return { http, line, pg, health: opened?.gateway ?? null, listeners }
}

/** Starts the thread while the other ports are bound. */
function openHealth(options: PortsOptions): Promise<{ gateway: MinHttpGateway; listener: Listener } | null> {
  const { settings, metricsText, closers } = options
  if (!settings['http.min.enabled']) return Promise.resolve(null)
  const tls = openTls(options, 'http.min')
  const perAddressMax = settings['net.connection.limit.per.address']
  const opening = openMinHttpGateway(settings['http.min.net.bind.to'], metricsText, { tls, perAddressMax })
  closers.push(async () => (await opening.catch(() => null))?.close())
  const listenerOf = ({ address }: MinHttpGateway): Listener => ({ name: 'health', address, secure: tls !== null })
  return opening.then((gateway) => ({ gateway, listener: listenerOf(gateway) }))
}

function openTls({ settings, root, log, closers }: PortsOptions, prefix: TlsPrefix): TlsKeys | null {
  const keys = tlsKeys(settings, prefix, root, log)
  if (keys !== null) closers.push(async () => keys.close())
  return keys
}
