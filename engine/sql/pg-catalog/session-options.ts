// Settings of a session that PostgreSQL drivers read by SHOW, current_setting() and pg_settings, with their values: the
// one that the session has set, or a constant that describes how this server behaves. Also the result of version(), by
// which tools for QuestDB's dialect recognise the server.

import type { Value } from '../../types/value.js'

/** Settings of a session by lower-case name: from SET, set_config() or the start of the connection. */
export type SessionSettings = ReadonlyMap<string, string>

/** Result of version(). If `version` is undefined, it is the string that clients of this dialect expect. */
export function versionText(version: string | undefined): string {
  return `PostgreSQL ${version ?? '12.3'}, compiled by Visual C++ build 1914, 64-bit, Penstock`
}

interface SessionOption {
  /** Spelled as in SHOW. */
  readonly name: string
  readonly value: string
  readonly kind: 'string' | 'bool' | 'integer' | 'real' | 'enum'
  readonly unit: string | null
  readonly category: 'Preset Options' | 'Client Connection Defaults' | 'Reporting and Logging' | 'Resource Usage'
  readonly description: string
}

type Rest = Partial<Pick<SessionOption, 'kind' | 'unit' | 'category'>>

function option(name: string, value: string, description: string, rest: Rest = {}): SessionOption {
  return { name, value, description, kind: 'string', unit: null, category: 'Client Connection Defaults', ...rest }
}

const preset = { category: 'Preset Options' } as const
const presetNumber = { kind: 'integer', ...preset } as const
const flag = { kind: 'bool' } as const
const millis = { kind: 'integer', unit: 'ms' } as const

const list: readonly SessionOption[] = [
  option('application_name', '', 'Application name of the client.', { category: 'Reporting and Logging' }),
  option('array_nulls', 'on', 'Whether array input accepts NULL for null elements.', flag),
  option('block_size', '8192', 'Size of a disk block in bytes, the unit of relation sizes in pages.', presetNumber),
  option('bytea_output', 'hex', 'Output format of binary values.', { kind: 'enum' }),
  option('client_encoding', 'UTF8', 'Character encoding of the client.'),
  option('client_min_messages', 'notice', 'Lowest level of messages that are sent to the client.', { kind: 'enum' }),
  option('DateStyle', 'ISO,YMD', 'Format of dates and timestamps.'),
  option('default_table_access_method', 'heap', 'Table access method of new tables.'),
  option('default_tablespace', '', 'Tablespace of new tables.'),
  option('default_transaction_deferrable', 'off', 'Whether new transactions are deferrable.', flag),
  option('default_transaction_isolation', 'read committed', 'Isolation level of new transactions.', { kind: 'enum' }),
  option('default_transaction_read_only', 'off', 'Whether new transactions are read-only.', flag),
  option('extra_float_digits', '1', 'Digits of floating-point numbers: the shortest exact representation.', {
    kind: 'integer',
  }),
  option('idle_in_transaction_session_timeout', '0', 'Maximum idle time within a transaction.', millis),
  option('idle_session_timeout', '0', 'Maximum idle time outside a transaction.', millis),
  option('in_hot_standby', 'off', 'Whether the server is a hot standby.', { ...flag, ...preset }),
  option('integer_datetimes', 'on', 'Whether timestamps are stored as integers.', { ...flag, ...preset }),
  option('IntervalStyle', 'iso_8601', 'Format of intervals.', { kind: 'enum' }),
  option('is_superuser', 'on', 'Whether the user is a superuser.', { ...flag, ...preset }),
  option('jit', 'on', 'Whether queries are compiled to kernels.', flag),
  option('lc_collate', 'C', 'Collation order of strings: by code point.', preset),
  option('lc_ctype', 'C', 'Character classification and case conversion.', preset),
  option('lc_messages', 'C', 'Language of messages.'),
  option('lc_monetary', 'C', 'Format of monetary amounts.'),
  option('lc_numeric', 'C', 'Format of numbers.'),
  option('lc_time', 'C', 'Language of the names of days and months.'),
  option('lock_timeout', '0', 'Maximum wait for a lock.', millis),
  option('max_connections', '100', 'Maximum number of connections.', { kind: 'integer', category: 'Resource Usage' }),
  option('max_function_args', '100', 'Maximum number of function arguments.', presetNumber),
  option('max_identifier_length', '63', 'Maximum length of identifiers.', presetNumber),
  option('max_index_keys', '32', 'Maximum number of index columns.', presetNumber),
  option(
    'max_prepared_transactions',
    '0',
    'Maximum number of prepared transactions: they are not supported.',
    presetNumber,
  ),
  option('password_encryption', 'scram-sha-256', 'Algorithm that encrypts stored passwords.', {
    kind: 'enum',
    ...preset,
  }),
  option('row_security', 'on', 'Whether row security policies apply; there are none.', flag),
  option('search_path', '"$user", public', 'Schemas that are searched for unqualified names.'),
  option('server_encoding', 'UTF8', 'Character encoding of stored strings.', preset),
  option('server_version', '12.3 (questdb)', 'Server version.', preset),
  option('server_version_num', '123000', 'Server version as a number.', presetNumber),
  option('session_replication_role', 'origin', 'Replication role of the session.', { kind: 'enum' }),
  option('standard_conforming_strings', 'on', 'Whether backslashes are ordinary characters in strings.', flag),
  option('statement_timeout', '0', 'Maximum duration of a statement.', millis),
  option('synchronize_seqscans', 'on', 'Accepted for compatibility.', flag),
  option('synchronous_commit', 'on', 'Whether COMMIT waits until the log is synced to disk.', { kind: 'enum' }),
  option('TimeZone', 'UTC', 'Time zone of timestamps: always UTC.'),
  option('transaction_deferrable', 'off', 'Whether the current transaction is deferrable.', flag),
  option('transaction_isolation', 'read committed', 'Isolation level of the current transaction.', { kind: 'enum' }),
  option('transaction_read_only', 'off', 'Whether the current transaction is read-only.', flag),
  option('work_mem', '4096', 'Accepted for compatibility.', {
    kind: 'integer',
    unit: 'kB',
    category: 'Resource Usage',
  }),
  option('xmloption', 'content', 'Accepted for compatibility.', { kind: 'enum' }),
]

const byName = new Map(list.map((entry) => [entry.name.toLowerCase(), entry]))

const otherNames: Readonly<Record<string, string>> = {
  'time zone': 'timezone',
  'transaction isolation level': 'transaction_isolation',
  names: 'client_encoding',
}

/** The key under which a setting is stored. */
export function optionKey(written: string): string {
  const name = written.toLowerCase()
  return otherNames[name] ?? name
}

/** The setting as SHOW spells it, with its value; undefined for an unknown name that is not set either. */
export function sessionOption(
  written: string,
  { settings, user }: { readonly settings?: SessionSettings | undefined; readonly user: string },
): { readonly name: string; readonly value: string } | undefined {
  const key = optionKey(written)
  const known = byName.get(key)
  const value = setValue(key, settings) ?? known?.value ?? (key === 'session_authorization' ? user : undefined)
  return value === undefined ? undefined : { name: known?.name ?? key, value: withUnit(value, known?.unit ?? null) }
}

/** The value in the largest unit in which it is a whole number, as SHOW prints it. */
function withUnit(value: string, unit: string | null): string {
  const units = (unit === null ? undefined : largerUnits[unit]) ?? []
  const amount = /^\d+$/.test(value) ? Number(value) : 0
  const found = amount === 0 ? undefined : units.find(([size]) => amount % size === 0)
  return found === undefined ? value : `${amount / found[0]}${found[1]}`
}

const largerUnits: Readonly<Record<string, readonly (readonly [size: number, name: string])[]>> = {
  ms: [
    [86_400_000, 'd'],
    [3_600_000, 'h'],
    [60_000, 'min'],
    [1000, 's'],
    [1, 'ms'],
  ],
  kB: [
    [1_073_741_824, 'TB'],
    [1_048_576, 'GB'],
    [1024, 'MB'],
    [1, 'kB'],
  ],
}

/** The value that the session has set. For transaction_* the session's default_transaction_* applies, too. */
function setValue(key: string, settings: SessionSettings | undefined): string | undefined {
  return settings?.get(key) ?? (key.startsWith('transaction_') ? settings?.get(`default_${key}`) : undefined)
}

interface Asking {
  readonly settings?: SessionSettings | undefined
  readonly user: string
}

/** All settings with their values, including unknown ones that the session has set. */
export function allOptions(asking: Asking): readonly { name: string; value: string; description: string | null }[] {
  const others = [...(asking.settings ?? [])].filter(([key]) => !byName.has(key))
  return [
    ...list.map(({ name, value, unit, description }) => ({
      name,
      value: withUnit(setValue(name.toLowerCase(), asking.settings) ?? value, unit),
      description,
    })),
    ...others.map(([name, value]) => ({ name, value, description: null })),
  ]
}

export function settingRecords(asking: Asking): Record<string, Value>[] {
  return list.map(({ name, value, kind, unit, category, description }) => {
    const set = setValue(name.toLowerCase(), asking.settings)
    return {
      name,
      setting: set ?? value,
      unit,
      category,
      short_desc: description,
      extra_desc: null,
      context: category === 'Preset Options' ? 'internal' : 'user',
      vartype: kind,
      source: set === undefined ? 'default' : 'session',
      boot_val: value,
      reset_val: value,
      sourceline: null,
      pending_restart: false,
    }
  })
}
