// Derives the options of the gateways (HTTP, line protocol over TCP, QWP over UDP, PostgreSQL) from the settings.

import { hostname } from 'node:os'
import { resolve } from 'node:path'
import type { HttpOptions } from '../gateways/http/context.js'
import type { LineTcpOptions } from '../gateways/ilp-tcp/server.js'
import type { PgOptions } from '../gateways/pgwire/server.js'
import type { QwpUdpOptions } from '../gateways/qwp-udp/server.js'
import {
  datagramsClosedBy,
  exposures,
  isLoopback,
  isReadOnly,
  lineAuthCause,
  lineClosedBy,
  sideEffects,
} from './settings/security.js'
import type { Settings } from './settings/settings.js'

export function httpOptions(settings: Settings, version: string, root: string): HttpOptions {
  const secondBound = settings['http.security.max.response.rows']
  const rowsMax = settings['http.json.query.max.response.rows']
  return {
    readOnly: isReadOnly(settings, 'http'),
    acceptingWrites: acceptingWrites(settings),
    corsOrigins: settings['http.cors.enabled'] ? corsOrigins(settings['http.cors.allow.origin']) : null,
    healthNeedsCredentials: settings['http.health.check.authentication.required'],
    hostNames: hostNames(settings),
    warnings: [...exposures(settings), ...sideEffects(settings)].map((warning) => ({ tag: 'security', warning })),
    connectionsMax: settings['http.net.connection.limit'],
    connectionsPerAddressMax: settings['net.connection.limit.per.address'],
    keepAliveMs: settings['http.net.connection.timeout'],
    headerBytesMax: settings['http.request.header.bytes.max'],
    receiveBufferBytes: settings['http.receive.buffer.size'],
    sendBufferBytes: settings['http.send.buffer.size'],
    importExpandedBytesMax: settings['http.import.expanded.bytes.max'],
    executePath: settings['http.context.execute'],
    exportPath: settings['http.context.export'],
    importPath: settings['http.context.import'],
    preferencesPath: resolve(root, 'conf/preferences.json'),
    savedPath: resolve(root, 'conf/saved.json'),
    rowsMax: secondBound < 0 ? rowsMax : Math.min(rowsMax, secondBound),
    queryTimeoutMs: settings['query.timeout'],
    queriesMax: settings['http.json.query.connection.limit'],
    exportsMax: settings['http.export.connection.limit'],
    importsMax: settings['http.import.connection.limit'],
    exportTimeoutMs: settings['http.export.default.timeout'],
    exportDirectory: resolve(root, settings['http.export.parquet.tmp.dir']),
    linesEnabled: settings['line.http.enabled'],
    lineRequestsMax: settings['http.ilp.connection.limit'],
    lineBodyBytesMax: settings['line.http.body.bytes.max'],
    lineBodiesBytesMax: settings['line.http.bodies.bytes.max'],
    linePrefixParts: settings['line.http.table.prefix'],
    qwpBadValue: settings['qwp.bad.value'],
    qwpHoldMs: settings['qwp.hold.ms'],
    qwpDurable: settings['wal.commit.mode'] === 'sync',
    qwpGroupsBytesMax: settings['qwp.groups.bytes.max'],
    qwpZstdLevel: settings['qwp.egress.compression.force.level'],
    metricsEnabled: settings['metrics.enabled'],
    pessimisticHealth: settings['http.pessimistic.health.check.enabled'],
    logQueries: settings['log.sql.query.progress.exe'],
    version,
  }
}

export function lineTcpOptions(settings: Settings): LineTcpOptions {
  return {
    connectionsMax: settings['line.tcp.net.connection.limit'],
    connectionsPerAddressMax: settings['net.connection.limit.per.address'],
    badLine: settings['line.tcp.bad.line'],
    authRequired: lineAuthCause(settings) !== null,
    closed: lineClosedBy(settings) === null ? null : `rows are not accepted [setting=${lineClosedBy(settings)}]`,
  }
}

export function qwpUdpOptions(settings: Settings): QwpUdpOptions {
  const closedBy = datagramsClosedBy(settings)
  return {
    group: settings['qwp.udp.unicast'] ? null : settings['qwp.udp.join'],
    receiveBufferBytes: settings['qwp.udp.receive.buffer.size'],
    datagramBytesMax: settings['qwp.udp.msg.buffer.size'],
    waitingMax: settings['qwp.udp.msg.count'],
    waitingBytesMax: settings['qwp.groups.bytes.max'],
    uncommittedMax: settings['qwp.udp.max.uncommitted.datagrams'],
    commitMs: settings['qwp.udp.commit.interval'],
    closed: closedBy === null ? null : `rows are not accepted [setting=${closedBy}]`,
  }
}

/** The protocols that accept writes, by the names in the response of /settings. */
function acceptingWrites(settings: Settings): string[] {
  const protocols = [
    ['http', !isReadOnly(settings, 'http')],
    ['tcp', settings['line.tcp.enabled'] && lineClosedBy(settings) === null],
    ['pgwire', settings['pg.enabled'] && !isReadOnly(settings, 'pg')],
  ] as const
  return protocols.flatMap(([name, isOpen]) => (isOpen ? [name] : []))
}

export function pgOptions(settings: Settings): PgOptions {
  return {
    connectionsMax: settings['pg.net.connection.limit'],
    connectionsPerAddressMax: settings['net.connection.limit.per.address'],
    readOnly: isReadOnly(settings, 'pg'),
    authentication: settings['pg.auth.method'],
    firstTimestamp: settings['pg.designated.timestamp'] === 'first',
    serverVersion: settings['pg.server.version'],
    tlsRequired: settings['pg.security.required'],
    queryTimeoutMs: settings['query.timeout'],
    logQueries: settings['log.sql.query.progress.exe'],
  }
}

/** Accepted values of the Host header; null, unless configured, for a server that listens beyond its own machine. */
function hostNames(settings: Settings): readonly string[] | null {
  const names = settings['http.host.names'].map((name) => name.toLowerCase())
  if (names.includes('*')) return null
  if (names.length === 0 && !isLoopback(settings['http.net.bind.to'].host)) return null
  return [...names, hostname().toLowerCase()]
}

function corsOrigins(text: string): readonly string[] {
  return text.split(',').flatMap((origin) => (origin.trim() === '' ? [] : [origin.trim()]))
}
