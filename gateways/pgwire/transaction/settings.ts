// Settings of a session: what the start-up message and SET say. Those of `reportedSettings` are told to the client at
// the start and when they change, because drivers read them from there.

import type { PgOptions, PgSession } from '../context.js'
import { encodingName } from '../protocol/client-encoding.js'
import { parameterStatus } from '../protocol/messages.js'
import { PgError } from '../protocol/sqlstate.js'

/** Names in lower case, and as ParameterStatus spells them. */
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
  // Without it sqlx asks for plans as PostgreSQL has them, and cannot check queries when they are compiled.
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
  // Of the dialect.
  questdb_version: '9.3.4',
  server_encoding: 'UTF8',
  server_version: '12.3',
  standard_conforming_strings: 'on',
  timezone: 'UTC',
}

/** Settings that this server cannot change: only the value that it has is taken. */
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

/** What a session knows of the version from the start; that of the dialect needs no word. */
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

/** The setting as it is now. Throws when the value cannot be taken. */
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

/** Throws as applySetting() does, and changes nothing. */
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

/** Clients write it in many ways, some with quotes. */
function encodingOf(value: string): string {
  const name = /^'?default'?$/i.test(value) ? 'UTF8' : encodingName(value)
  if (name === null) throw invalid('client_encoding', value)
  return name
}

/** Dates come in the ISO form, whatever order is asked for. */
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

/** Timestamps are in UTC; the zone is the client's, which converts them. */
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

/** Tells the client when the setting is not what it was. */
export function reportSetting(pg: PgSession, name: string, before: string): void {
  const shown = reportedSettings.get(name)
  const value = settingValue(pg, name)
  if (shown !== undefined && value !== before) pg.out.put(parameterStatus(shown, value))
}
