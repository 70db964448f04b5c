// Derives access control from the settings: configured users, keys and certificates; checks for insecure
// configurations.

import { createHash, randomBytes } from 'node:crypto'
import { type BigIntStats, statSync } from 'node:fs'
import { resolve } from 'node:path'
import { systemClock } from '../../engine/base/clock.js'
import type { Log } from '../../engine/base/log.js'
import { allRights, readRights } from '../../engine/base/rights.js'
import type { ConfiguredName, UserDirectory } from '../../engine/engine.js'
import { Authenticator, type ConfiguredAccess } from '../../gateways/common/auth.js'
import { type LineKeys, lineKeys } from '../../gateways/common/line-keys.js'
import { openTlsKeys, type TlsKeys } from '../../gateways/common/tls.js'
import type { ConfiguredUser } from '../../gateways/common/users.js'
import { type Settings, SettingsError } from './settings.js'

const defaultPgPassword = 'quest'

/** The engine, which opens later, reports a root that is not there. */
const folderOptions = { bigint: true, throwIfNoEntry: false } as const

export function httpAuthenticator(settings: Settings, users: UserDirectory): Authenticator {
  return new Authenticator({ ...httpAccess(settings), users })
}

export function pgAuthenticator(settings: Settings, users: UserDirectory, root: string): Authenticator {
  return new Authenticator({ ...pgAccess(settings), users, nameSecret: nameSecretOf(statSync(root, folderOptions)) })
}

/**
 * From properties of the root folder that do not change, and that only users of this machine can read. Where the file
 * system does not know when the folder was created, its inode alone could be guessed: then each start has another secret.
 */
export function nameSecretOf(root: Pick<BigIntStats, 'ino' | 'birthtimeNs'> | undefined): Buffer {
  if (root === undefined || root.birthtimeNs <= 0n) return randomBytes(32)
  return createHash('sha256').update(`${root.ino} ${root.birthtimeNs}`).digest()
}

export function httpAccess(settings: Settings): ConfiguredAccess {
  return { configured: httpUsers(settings), anonymous: anonymousOf(settings) }
}

export function pgAccess(settings: Settings): ConfiguredAccess {
  return { configured: pgUsers(settings), anonymous: null }
}

export function lineTcpKeys(settings: Settings, root: string, users: UserDirectory, log: Log): LineKeys {
  const path = settings['line.tcp.auth.db.path']
  return lineKeys(path === '' ? null : resolve(root, path), users, log)
}

/**
 * The setting that requires senders of line protocol over TCP to authenticate; null: they need not. `auto` requires
 * it where another protocol does, except by a well-known default password.
 */
export function lineAuthCause(settings: Settings): string | null {
  if (settings['line.tcp.auth.db.path'] !== '') return 'line.tcp.auth.db.path'
  switch (settings['line.tcp.auth.required']) {
    case 'true':
      return 'line.tcp.auth.required'
    case 'false':
      return null
    case 'auto':
      if (settings['http.enabled'] && settings['http.user'] !== '') return 'http.user'
      if (settings['http.enabled'] && settings['http.auth.required']) return 'http.auth.required'
      return settings['pg.enabled'] && settings['pg.password'] !== defaultPgPassword ? 'pg.password' : null
  }
}

/** The settings that disable writes by line protocol over TCP; null: none. */
export function lineClosedBy(settings: Settings): string | null {
  if (settings['security.readonly']) return 'security.readonly'
  const isAuto = settings['line.tcp.auth.required'] === 'auto' && settings['line.tcp.auth.db.path'] === ''
  const othersAre = settings['http.security.readonly'] && settings['pg.security.readonly']
  return isAuto && othersAre ? 'http.security.readonly and pg.security.readonly' : null
}

/** The settings that disable writes by datagrams of QWP; null: none. */
export function datagramsClosedBy(settings: Settings): string | null {
  if (settings['security.readonly']) return 'security.readonly'
  return settings['http.security.readonly'] ? 'http.security.readonly' : null
}

/** Whether a protocol is read-only. */
export function isReadOnly(settings: Settings, protocol: 'http' | 'pg'): boolean {
  return settings['security.readonly'] || settings[`${protocol}.security.readonly`]
}

/** Names of configured users, which SQL must not reuse, with their rights. */
export function configuredNames(settings: Settings): ConfiguredName[] {
  const names = new Map<string, ConfiguredName>()
  const everybody = [
    ...(settings['pg.enabled'] ? pgUsers(settings) : []),
    ...(settings['http.enabled'] ? httpUsers(settings) : []),
  ]
  for (const { user, rights } of everybody) names.set(user.toLowerCase(), { name: user, rights })
  return [...names.values()]
}

export type TlsPrefix = 'http' | 'http.min' | 'line.tcp' | 'pg'

/** Null when TLS is off. Throws when the key store cannot be used. */
export function tlsKeys(settings: Settings, prefix: TlsPrefix, root: string, log: Log): TlsKeys | null {
  if (!settings[`${prefix}.security.enabled`]) return null
  const path = settings[`${prefix}.security.keystore.path`]
  if (path === '') throw new SettingsError(`${prefix}.security.enabled needs ${prefix}.security.keystore.path`)
  const keyStorePath = path
    .split(',')
    .map((part) => resolve(root, part.trim()))
    .join(',')
  const keyStorePassword = settings[`${prefix}.security.keystore.password`]
  return openTlsKeys({
    keyStorePath,
    keyStorePassword,
    name: prefix,
    log,
    nowMs: () => Math.floor(systemClock.nowMicros() / 1000),
  })
}

/** Describes what unauthenticated clients on other machines can do, one sentence each. */
export function exposures(settings: Settings): string[] {
  const found: string[] = []
  const isOpen = (key: 'http' | 'pg' | 'line.tcp'): boolean =>
    settings[`${key}.enabled`] && !isLoopback(settings[`${key}.net.bind.to`].host)
  if (isOpen('http') && anonymousOf(settings) !== null) {
    const what = isReadOnly(settings, 'http') ? 'read everything' : 'read and change everything'
    found.push(`HTTP: anybody who reaches the port can ${what}: set http.user and http.password`)
  }
  if (isOpen('pg') && pgUsers(settings).some(({ password }) => password === defaultPgPassword)) {
    found.push('PostgreSQL wire protocol: a user has the default password: set pg.password (and pg.readonly.password)')
  }
  if (isOpen('line.tcp') && lineAuthCause(settings) === null && lineClosedBy(settings) === null) {
    found.push('line protocol over TCP: anybody who reaches the port can write: set line.tcp.auth.required')
  }
  const receives = settings['qwp.udp.enabled'] && !isLoopback(settings['qwp.udp.bind.to'].host)
  if (receives && datagramsClosedBy(settings) === null) {
    found.push(
      'QWP over UDP: anybody who reaches the port can write: set qwp.udp.bind.to to an address of this machine',
    )
  }
  return found
}

/** Describes what settings disable beyond what they name, one sentence each. */
export function sideEffects(settings: Settings): string[] {
  if (!settings['line.tcp.enabled']) return []
  const closedBy = lineClosedBy(settings)
  if (closedBy !== null) return [`line protocol over TCP accepts no rows [setting=${closedBy}]`]
  const cause = lineAuthCause(settings)
  if (cause === null || cause.startsWith('line.tcp.')) return []
  return [
    `line protocol over TCP accepts rows only from senders with a key [setting=${cause}, line.tcp.auth.required=auto]: ALTER USER .. CREATE TOKEN TYPE JWK makes a key, line.tcp.auth.required=false lets everybody write`,
  ]
}

/** Throws SettingsError for insecure settings under security.strict, or incomplete ones. */
export function checkSecurity(settings: Settings): void {
  if ((settings['http.user'] === '') !== (settings['http.password'] === '')) {
    throw new SettingsError('http.user and http.password must be set together')
  }
  if (settings['pg.security.required'] && !settings['pg.security.enabled']) {
    throw new SettingsError('pg.security.required needs pg.security.enabled')
  }
  if (settings['http.cors.enabled'] && settings['http.cors.allow.origin'] === '') {
    throw new SettingsError('http.cors.enabled needs http.cors.allow.origin')
  }
  checkPaths(settings)
  const exposed = exposures(settings)
  if (settings['security.strict'] && exposed.length > 0) {
    throw new SettingsError(
      `security.strict: the server does not start while other machines have access: ${exposed.join('; ')}`,
    )
  }
}

/** Throws SettingsError when two endpoints have the same path. */
function checkPaths(settings: Settings): void {
  const taken = new Map(fixedPaths.map((path) => [path, 'the server']))
  for (const key of ['http.context.execute', 'http.context.export', 'http.context.import'] as const) {
    const path = settings[key]
    const by = path.startsWith('/console/') ? 'the console' : taken.get(path)
    if (by !== undefined) throw new SettingsError(`${key}: the path is already used by ${by} [path=${path}]`)
    taken.set(path, key)
  }
}

const fixedPaths = [
  ...['/ping', '/settings', '/warnings', '/metrics', '/chk', '/write', '/console'],
  ...['/api/v2/write', '/api/v1/sql/execute', '/api/v1/sql/validate'],
]

function anonymousOf(settings: Settings): ConfiguredUser | null {
  if (settings['http.user'] !== '' || settings['http.auth.required']) return null
  return { user: 'admin', password: '', rights: allRights }
}

function httpUsers(settings: Settings): ConfiguredUser[] {
  const [user, password] = [settings['http.user'], settings['http.password']]
  return user === '' ? [] : [{ user, password, rights: allRights }]
}

function pgUsers(settings: Settings): ConfiguredUser[] {
  const users: ConfiguredUser[] = []
  if (settings['pg.readonly.user.enabled']) {
    const [user, password] = [settings['pg.readonly.user'], settings['pg.readonly.password']]
    users.push({ user, password, rights: readRights })
  }
  users.push({ user: settings['pg.user'], password: settings['pg.password'], rights: allRights })
  return users
}

export function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || /^127\./.test(host)
}
