// Builds the SQL statements that create and change tables from the contents of the forms (table-forms.ts).

import { quoted } from '../../common/sql-text.js'

export interface NewColumn {
  readonly name: string
  readonly type: string
  /** Whether the column is a key of DEDUP. */
  readonly key: boolean
}

export interface NewTable {
  readonly name: string
  readonly columns: readonly NewColumn[]
  /** Name of the designated timestamp; empty: none. */
  readonly timestamp: string
  readonly partitionBy: string
  /** A number with a unit, such as `30 DAYS`; empty: rows are kept. */
  readonly ttl: string
}

export const columnTypes: readonly string[] = [
  ...['SYMBOL', 'DOUBLE', 'LONG', 'INT', 'TIMESTAMP', 'VARCHAR', 'BOOLEAN', 'BYTE', 'SHORT', 'FLOAT', 'CHAR', 'DATE'],
  ...['TIMESTAMP_NS', 'STRING', 'UUID', 'IPv4', 'LONG256', 'DOUBLE[]', 'DECIMAL(18,4)', 'GEOHASH(8c)', 'BINARY'],
]

export const partitionUnits: readonly string[] = ['HOUR', 'DAY', 'WEEK', 'MONTH', 'YEAR', 'NONE']

export function createTableSql({ name, columns, timestamp, partitionBy, ttl }: NewTable): string {
  const named = columns.filter((column) => column.name !== '')
  const lines = named.map((column) => `  ${quoted(column.name)} ${column.type}`)
  const keys = named.filter(({ key, name: column }) => key || column === timestamp).map((column) => quoted(column.name))
  const isTimed = timestamp !== ''
  const parts = [
    ...(isTimed ? [`TIMESTAMP(${quoted(timestamp)})`, `PARTITION BY ${partitionBy}`] : []),
    ...(isTimed && ttl !== '' && partitionBy !== 'NONE' ? [`TTL ${ttl}`] : []),
    // The designated timestamp is always a key.
    ...(isTimed && named.some(({ key }) => key) ? [`DEDUP UPSERT KEYS(${keys.join(', ')})`] : []),
  ]
  return `CREATE TABLE ${quoted(name)} (\n${lines.join(',\n')}\n)${parts.map((part) => ` ${part}`).join('')};`
}

export type Change =
  | { readonly kind: 'add'; readonly column: string; readonly type: string }
  | { readonly kind: 'rename'; readonly column: string; readonly to: string }
  | { readonly kind: 'type'; readonly column: string; readonly type: string }
  | { readonly kind: 'drop'; readonly column: string }
  | { readonly kind: 'ttl'; readonly ttl: string }
  | { readonly kind: 'rename-table'; readonly to: string }

export function alterTableSql(table: string, change: Change): string {
  const head = `ALTER TABLE ${quoted(table)}`
  switch (change.kind) {
    case 'add':
      return `${head} ADD COLUMN ${quoted(change.column)} ${change.type};`
    case 'rename':
      return `${head} RENAME COLUMN ${quoted(change.column)} TO ${quoted(change.to)};`
    case 'type':
      return `${head} ALTER COLUMN ${quoted(change.column)} TYPE ${change.type};`
    case 'drop':
      return `${head} DROP COLUMN ${quoted(change.column)};`
    case 'ttl':
      return `${head} SET TTL ${change.ttl === '' ? '0h' : change.ttl};`
    case 'rename-table':
      return `RENAME TABLE ${quoted(table)} TO ${quoted(change.to)};`
  }
}
