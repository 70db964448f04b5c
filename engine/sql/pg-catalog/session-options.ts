// Settings of a session that PostgreSQL drivers read by SHOW, current_setting() and pg_settings, with their values: the
// one that the session has set, or a constant that describes how this server behaves. Also the result of version(), by
// which tools for the native dialect recognise the server.

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
  option('application_name', '', 'Name of the client.', { category: 'Reporting and Logging' }),
  option('array_nulls', 'on', 'NULL in lists is written NULL.', flag),
  option('block_size', '8192', 'Size of a block, as sizes in pages count it.', presetNumber),
  option('bytea_output', 'hex', 'Form of binary values.', { kind: 'enum' }),
  option('client_encoding', 'UTF8', 'Encoding of texts.'),
  option('client_min_messages', 'notice', 'Least level of messages that are sent.', { kind: 'enum' }),
  option('DateStyle', 'ISO,YMD', 'Form of dates.'),
  option('default_table_access_method', 'heap', 'How tables are kept.'),
  option('default_tablespace', '', 'Where tables are kept.'),
  option('default_transaction_deferrable', 'off', 'Whether transactions may wait.', flag),
  option('default_transaction_isolation', 'read committed', 'Isolation of transactions.', { kind: 'enum' }),
  option('default_transaction_read_only', 'off', 'Whether transactions only read.', flag),
  option('extra_float_digits', '1', 'Digits of floating-point numbers: the shortest exact text.', { kind: 'integer' }),
  option('idle_in_transaction_session_timeout', '0', 'Longest idle time within a transaction.', millis),
  option('idle_session_timeout', '0', 'Longest idle time outside of transactions.', millis),
  option('in_hot_standby', 'off', 'Whether the server follows another one.', { ...flag, ...preset }),
  option('integer_datetimes', 'on', 'Times are whole numbers.', { ...flag, ...preset }),
  option('IntervalStyle', 'iso_8601', 'Form of intervals.', { kind: 'enum' }),
  option('is_superuser', 'on', 'Whether the user has every right.', { ...flag, ...preset }),
  option('jit', 'on', 'Whether kernels are made for queries.', flag),
  option('lc_collate', 'C', 'Order of texts: by code point.', preset),
  option('lc_ctype', 'C', 'Classes of characters.', preset),
  option('lc_messages', 'C', 'Language of messages.'),
  option('lc_monetary', 'C', 'Form of amounts of money.'),
  option('lc_numeric', 'C', 'Form of numbers.'),
  option('lc_time', 'C', 'Names of days and months.'),
  option('lock_timeout', '0', 'Longest wait for a lock.', millis),
  option('max_connections', '100', 'Most connections.', { kind: 'integer', category: 'Resource Usage' }),
  option('max_function_args', '100', 'Most arguments of a function.', presetNumber),
  option('max_identifier_length', '63', 'Longest name.', presetNumber),
  option('max_index_keys', '32', 'Most columns of an index.', presetNumber),
  option('max_prepared_transactions', '0', 'Transactions that wait for COMMIT PREPARED: none can.', presetNumber),
  option('password_encryption', 'scram-sha-256', 'Form in which passwords are kept.', { kind: 'enum', ...preset }),
  option('row_security', 'on', 'Whether policies of rows apply; there are none.', flag),
  option('search_path', '"$user", public', 'Schemas whose names need no prefix.'),
  option('server_encoding', 'UTF8', 'Encoding of stored texts.', preset),
  option('server_version', '12.3 (questdb)', 'Version as clients expect it.', preset),
  option('server_version_num', '123000', 'Version as a number.', presetNumber),
  option('session_replication_role', 'origin', 'Role in replication.', { kind: 'enum' }),
  option('standard_conforming_strings', 'on', 'A backslash is a plain character in strings.', flag),
  option('statement_timeout', '0', 'Longest time of a statement.', millis),
  option('synchronize_seqscans', 'on', 'Accepted for compatibility.', flag),
  option('synchronous_commit', 'on', 'Whether a commit waits for the disk.', { kind: 'enum' }),
  option('TimeZone', 'UTC', 'Zone of timestamps: they are in UTC, always.'),
  option('transaction_deferrable', 'off', 'Whether the transaction may wait.', flag),
  option('transaction_isolation', 'read committed', 'Isolation of the transaction.', { kind: 'enum' }),
  option('transaction_read_only', 'off', 'Whether the transaction only reads.', flag),
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
