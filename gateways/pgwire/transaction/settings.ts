// Session settings from the startup message and SET. Those in `reportedSettings` are reported to the client at the
// start and on each change, because drivers rely on that.

import type { PgOptions, PgSession } from '../context.js'
import { encodingName } from '../protocol/client-encoding.js'
import { parameterStatus } from '../protocol/messages.js'
import { PgError } from '../protocol/sqlstate.js'

/** Names in lower case, with the spelling of ParameterStatus. */
export const reportedSettings: ReadonlyMap<string, string> = new Map([
  ['application_name', 'application_name'],
  ['client_encoding', 'client_encoding'],
  ['datestyle', 'DateStyle'],
  ['default_transaction_read_only', 'default_transaction_read_only'],
  ['in_hot_standby', 'in_hot_standby'],
  ['integer_datetimes', 'integer_datetimes'],
  ['intervalstyle', 'IntervalStyle'],
  ['is_superuser', 'is_superuser'],
  ['server_encoding', 'server_encoding'],
  ['server_version', 'server_version'],
  ['session_authorization', 'session_authorization'],
  ['standard_conforming_strings', 'standard_conforming_strings'],
  ['timezone', 'TimeZone'],
  // Without it, sqlx requests plans in PostgreSQL's format and cannot check queries at compile time.
  ['questdb_version', 'questdb_version'],
])

const initial: Readonly<Record<string, string>> = {
  application_name: '',
  client_encoding: 'UTF8',
  datestyle: 'ISO, MDY',
  default_transaction_read_only: 'off',
  in_hot_standby: 'off',
  integer_datetimes: 'on',
  intervalstyle: 'postgres',
  is_superuser: 'on',
  password_encryption: 'scram-sha-256',
  // Version of the dialect.
  questdb_version: '9.3.4',
  server_encoding: 'UTF8',
  server_version: '12.3',
  standard_conforming_strings: 'on',
  timezone: 'UTC',
}

/** Settings with a fixed value: SET accepts only that value. */
const fixed: ReadonlySet<string> = new Set([
  'integer_datetimes',
  'is_superuser',
  'in_hot_standby',
  'password_encryption',
  'questdb_version',
  'server_encoding',
  'server_version',
])

const otherNames: Readonly<Record<string, string>> = {
  names: 'client_encoding',
  'time zone': 'timezone',
}

export function reportedAtStart(pg: PgSession): Buffer[] {
  return [...reportedSettings].map(([name, shown]) => parameterStatus(shown, settingValue(pg, name)))
}

export function settingValue({ settings, session }: PgSession, name: string): string {
  return settings.get(name) ?? (name === 'session_authorization' ? session.user : (initial[name] ?? ''))
}

/** Version settings of a new session; the dialect's version is a default. */
export function versionSettings({ serverVersion }: PgOptions): Map<string, string> {
  if (serverVersion === initial.server_version) return new Map()
  const [major = '', minor = ''] = serverVersion.split('.')
  return new Map([
    ['server_version', serverVersion],
    ['server_version_num', String(Number(major) * 10_000 + Number(minor))],
  ])
}

export function settingName(written: string): string {
  return otherNames[written] ?? written
}

/** Applies the setting and returns its new value. Throws when the value is not accepted. */
export function applySetting(
  pg: PgSession,
  name: string,
  values: readonly string[],
): { readonly name: string; readonly value: string } {
  const value = values.join(', ')
  if (isDefault(value)) {
    resetSettings(pg, name)
    return { name, value: settingValue(pg, name) }
  }
  if (fixed.has(name)) throw new PgError('55P02', `parameter "${name}" cannot be changed`)
  const taken = checked(name, value)
  pg.settings.set(name, taken)
  return { name, value: taken }
}

/** Throws like applySetting(), but changes nothing. */
export function checkSetting(name: string, values: readonly string[]): void {
  const value = values.join(', ')
  if (!isDefault(value)) checked(name, value)
}

function isDefault(value: string): boolean {
  return value.toLowerCase() === 'default'
}

function checked(name: string, value: string): string {
  switch (name) {
    case 'client_encoding':
      return encodingOf(value)
    case 'standard_conforming_strings':
      if (!/^(on|true|yes|1)$/i.test(value)) throw invalid(name, value)
      return 'on'
    case 'idle_in_transaction_session_timeout':
    case 'idle_session_timeout':
    case 'lock_timeout':
    case 'statement_timeout':
      return String(millisOf(name, value))
    case 'datestyle':
      return dateStyleOf(value)
    case 'intervalstyle':
      return intervalStyleOf(value)
    case 'timezone':
      return zoneOf(value)
    case 'default_transaction_read_only':
    case 'transaction_read_only':
    case 'default_transaction_deferrable':
    case 'transaction_deferrable':
      return flagOf(name, value)
    case 'default_transaction_isolation':
    case 'transaction_isolation':
      return levelOf(name, value)
    default:
      return value
  }
}

function invalid(name: string, value: string): PgError {
  return new PgError('22023', `invalid value for parameter "${name}": "${value}"`)
}

function flagOf(name: string, value: string): string {
  if (/^(on|true|yes|1)$/i.test(value)) return 'on'
  if (/^(off|false|no|0)$/i.test(value)) return 'off'
  throw invalid(name, value)
}

function levelOf(name: string, value: string): string {
  const level = value.toLowerCase()
  if (!/^(read (un)?committed|repeatable read|serializable)$/.test(level)) throw invalid(name, value)
  return level
}

/** Clients spell encoding names in many ways, some with quotes. */
function encodingOf(value: string): string {
  const name = /^'?default'?$/i.test(value) ? 'UTF8' : encodingName(value)
  if (name === null) throw invalid('client_encoding', value)
  return name
}

/** Only ISO dates are supported; the requested field order is ignored. */
function dateStyleOf(value: string): string {
  const words = value.split(/[,\s]+/).map((word) => word.toUpperCase())
  const known = new Set(['ISO', 'MDY', 'DMY', 'YMD', 'US', 'EUROPEAN', 'EURO', 'NONEUROPEAN'])
  if (words.some((word) => !known.has(word))) {
    if (words.some((word) => /^(POSTGRES|SQL|GERMAN)$/.test(word))) {
      throw new PgError('0A000', 'only the DateStyle ISO is supported')
    }
    throw invalid('DateStyle', value)
  }
  const order = words.find((word) => word !== 'ISO') ?? 'MDY'
  return `ISO, ${order === 'EUROPEAN' || order === 'EURO' ? 'DMY' : order.length === 3 ? order : 'MDY'}`
}

function intervalStyleOf(value: string): string {
  const style = value.toLowerCase()
  if (!/^(postgres(_verbose)?|sql_standard|iso_8601)$/.test(style)) throw invalid('IntervalStyle', value)
  return style
}

/** Timestamps are in UTC; the zone is kept for the client, which converts them. */
function zoneOf(value: string): string {
  return value === '' || /^local$/i.test(value) ? 'UTC' : value
}

const unitMillis: Readonly<Record<string, number>> = { '': 1, ms: 1, s: 1000, min: 60_000, h: 3_600_000, d: 86_400_000 }

function millisOf(name: string, value: string): number {
  const match = /^\s*(\d+)\s*(ms|s|min|h|d|)\s*$/.exec(value)
  const unit = match === null ? undefined : unitMillis[match[2] ?? '']
  if (match === null || unit === undefined) throw invalid(name, value)
  return Number(match[1]) * unit
}

export function resetSettings(pg: PgSession, name: string): void {
  const wanted = otherNames[name.toLowerCase()] ?? name.toLowerCase()
  const names = wanted === 'all' ? [...pg.settings.keys()].filter((key) => !key.startsWith('transaction_')) : [wanted]
  for (const key of names) {
    const before = settingValue(pg, key)
    const started = pg.started.get(key)
    if (started === undefined) pg.settings.delete(key)
    else pg.settings.set(key, started)
    reportSetting(pg, key, before)
  }
}

/** Reports the setting to the client if it has changed. */
export function reportSetting(pg: PgSession, name: string, before: string): void {
  const shown = reportedSettings.get(name)
  const value = settingValue(pg, name)
  if (shown !== undefined && value !== before) pg.out.put(parameterStatus(shown, value))
}
