// Tells which types of values INSERT and UPDATE accept for a column of a given type; the binder reports others as
// errors. Numbers of wider types are accepted, and the conversion checks the range of each value. The table follows the
// behaviour that existing clients of the native dialect (over HTTP) expect, and adds PostgreSQL's assignment casts for
// its clients.

import type { ColumnType, DataType } from '../../../types/column-types.js'

const numbers = ['BYTE', 'SHORT', 'INT', 'LONG', 'FLOAT', 'DOUBLE'] as const
const times = ['TIMESTAMP', 'TIMESTAMP_NS'] as const
const strings = ['STRING', 'VARCHAR', 'SYMBOL'] as const
/** A string is parsed as the column's type. BOOLEAN and CHAR: clients of PostgreSQL write 't' and '1'. */
const ofText = [
  ...strings,
  ...numbers,
  ...times,
  'BOOLEAN',
  'CHAR',
  'DATE',
  'UUID',
  'LONG256',
  'IPv4',
  'GEOHASH',
  'ARRAY',
  'DECIMAL',
] as const
const ofSymbol = [...strings, ...times, 'UUID', 'GEOHASH', 'ARRAY', 'DECIMAL'] as const

const targets: Readonly<Record<ColumnType, readonly ColumnType[]>> = {
  BOOLEAN: ['BOOLEAN'],
  SYMBOL: ofSymbol,
  UUID: ['STRING', 'VARCHAR', 'UUID'],
  LONG256: ['STRING', 'VARCHAR', 'LONG256'],
  IPv4: ['STRING', 'VARCHAR', 'IPv4'],
  GEOHASH: ['GEOHASH'],
  ARRAY: ['ARRAY'],
  DECIMAL: [...numbers, 'DECIMAL'],
  BINARY: ['BINARY'],
  INTERVAL: [],
  BYTE: [...numbers, ...times, 'CHAR', 'DATE', 'DECIMAL'],
  SHORT: [...numbers, ...times, 'CHAR', 'DATE', 'DECIMAL'],
  CHAR: [...strings, ...numbers, ...times, 'BOOLEAN', 'CHAR', 'DATE', 'DECIMAL', 'GEOHASH'],
  INT: [...numbers, ...times, 'DATE', 'DECIMAL'],
  LONG: [...numbers, ...times, 'CHAR', 'DATE', 'DECIMAL'],
  FLOAT: [...numbers, ...times, 'CHAR', 'DATE', 'DECIMAL'],
  DOUBLE: [...numbers, 'CHAR', 'DECIMAL'],
  STRING: ofText,
  VARCHAR: ofText,
  DATE: [...numbers, ...times, 'CHAR', 'DATE'],
  TIMESTAMP: [...numbers, ...times, 'CHAR', 'DATE'],
  TIMESTAMP_NS: [...numbers, ...times, 'CHAR', 'DATE'],
}

/** Types that PostgreSQL's clients may store in a string column as text, since PostgreSQL has assignment casts. */
const ofAnyText: ReadonlySet<ColumnType> = new Set([
  ...strings,
  ...numbers,
  ...times,
  'BOOLEAN',
  'DATE',
  'DECIMAL',
  'UUID',
])

export function isAssignedAsText(from: DataType, to: DataType): boolean {
  return ofAnyText.has(from.name) && (strings as readonly ColumnType[]).includes(to.name)
}

/** Geohashes may lose precision but not gain it; arrays keep their number of dimensions. */
export function isInsertable(from: DataType, to: DataType): boolean {
  if (!targets[from.name].includes(to.name)) return false
  if (from.name === 'GEOHASH') return from.a >= to.a
  return from.name !== 'ARRAY' || from.a === to.a
}
