// Checks of ALTER TABLE that throw SqlError: for missing or existing columns, columns that must be of type SYMBOL,
// tables that must have a WAL or partitions, and tables that cannot have DEDUP keys.

import { SqlError } from '../../base/errors.js'
import { type ColumnSchema, enforcedKey, type TableSchema, type TableVersion } from '../../storage/schema/schema.js'
import type { DataType } from '../../types/column-types.js'
import { isNumber, isText } from '../../types/convert.js'
import type * as ast from '../ast/ast.js'
import { isWalTable } from '../relations/tables-relations.js'

export function missingAlteredColumn(
  { name, position }: { readonly name: string; readonly position: number },
  schema: TableSchema,
): SqlError {
  return new SqlError(`column '${name}' does not exist in table '${schema.name}'`, position)
}

export function columnExists({ name, position }: { readonly name: string; readonly position: number }): SqlError {
  return new SqlError(`column '${name}' already exists`, position)
}

export function requireSymbol({ name, type }: Pick<ColumnSchema, 'name' | 'type'>, position: number): void {
  if (type.name !== 'SYMBOL') throw new SqlError(`column '${name}' is not of symbol type`, position)
}

export function requireWal(version: TableVersion, position: number): void {
  if (!isWalTable(version)) throw new SqlError(`${version.schema.name} is not a WAL table.`, position)
}

export function requirePartitions({ partitionBy }: TableSchema, position: number): void {
  if (partitionBy === 'NONE') throw new SqlError('table is not partitioned', position)
}

export function requireDedup(version: TableVersion, position: number): void {
  if (version.schema.timestampId < 0) throw new SqlError('deduplication needs a designated timestamp', position)
  if (version.schema.partitionBy === 'NONE') throw new SqlError('deduplication needs partitions', position)
  if (!isWalTable(version)) throw new SqlError('deduplication is only supported for WAL tables', position)
  if (enforcedKey(version.schema) !== undefined)
    throw new SqlError('a table with PRIMARY KEY .. ENFORCED cannot have DEDUP keys', position)
}

/** The columns of INCLUDE must be columns of the table. */
export function requireIncluded(index: ast.IndexOption | null, columns: readonly { readonly name: string }[]): void {
  for (const { name, position } of index?.included ?? []) {
    if (!columns.some((column) => column.name.toLowerCase() === name.toLowerCase()))
      throw SqlError.columnMissing(name, position)
  }
}

/** Numbers, booleans and timestamps, most of whose values convert to each other. */
const numbers: ReadonlySet<string> = new Set(
  'BOOLEAN BYTE SHORT INT LONG FLOAT DOUBLE DATE TIMESTAMP TIMESTAMP_NS'.split(' '),
)
/** Types that neither convert to nor from any other. */
const opaque: ReadonlySet<string> = new Set(['BINARY', 'ARRAY'])

/** Whether values of one type convert to the other. A conversion that would make the whole column NULL is an error. */
export function isChangeable(from: DataType, to: DataType): boolean {
  if (opaque.has(from.name) || opaque.has(to.name)) return false
  if (from.name === to.name) return from.name !== 'GEOHASH' || from.a > to.a
  if (from.name === 'CHAR' || to.name === 'CHAR') return isText(from) && isText(to)
  if (isText(from) || isText(to)) return true
  if (from.name === 'DECIMAL' || to.name === 'DECIMAL') return isNumber(from) && isNumber(to)
  return numbers.has(from.name) && numbers.has(to.name)
}
