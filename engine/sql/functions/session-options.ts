// Options that drivers of the PostgreSQL world read by SHOW, current_setting() and pg_settings. They are what this server
// does, not what a session has set. Tools of this dialect recognise the server by its version's text.

interface SessionOption {
  /** Column that SHOW names. */
  readonly column: string
  readonly value: string
}

const option = (column: string, value: string): SessionOption => ({ column, value })

export const sessionOptions: Readonly<Record<string, SessionOption>> = {
  server_version: option('server_version', '12.3 (questdb)'),
  server_version_num: option('server_version_num', '123000'),
  standard_conforming_strings: option('standard_conforming_strings', 'on'),
  search_path: option('search_path', '"$user", public'),
  datestyle: option('DateStyle', 'ISO,YMD'),
  timezone: option('TimeZone', 'UTC'),
  client_encoding: option('client_encoding', 'UTF8'),
  server_encoding: option('server_encoding', 'UTF8'),
  transaction_isolation: option('transaction_isolation', 'read committed'),
  default_transaction_isolation: option('default_transaction_isolation', 'read committed'),
  default_transaction_read_only: option('default_transaction_read_only', 'off'),
  transaction_read_only: option('transaction_read_only', 'off'),
  integer_datetimes: option('integer_datetimes', 'on'),
  intervalstyle: option('IntervalStyle', 'iso_8601'),
  bytea_output: option('bytea_output', 'hex'),
  extra_float_digits: option('extra_float_digits', '1'),
  statement_timeout: option('statement_timeout', '0'),
  lock_timeout: option('lock_timeout', '0'),
  lc_collate: option('lc_collate', 'C'),
  lc_ctype: option('lc_ctype', 'C'),
  lc_monetary: option('lc_monetary', 'C'),
  lc_numeric: option('lc_numeric', 'C'),
  lc_time: option('lc_time', 'C'),
  application_name: option('application_name', ''),
  block_size: option('block_size', '8192'),
  max_connections: option('max_connections', '100'),
  is_superuser: option('is_superuser', 'on'),
  in_hot_standby: option('in_hot_standby', 'off'),
}

const otherNames: Readonly<Record<string, string>> = {
  'time zone': 'timezone',
  'transaction isolation level': 'transaction_isolation',
}

/** undefined for an unknown name; names compare without case. */
export function sessionOption(name: string): SessionOption | undefined {
  const wanted = name.toLowerCase()
  return sessionOptions[otherNames[wanted] ?? wanted]
}
