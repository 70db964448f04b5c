// Schema changes as pure functions from schema to schema. They check what depends on the newest schema, such as
// duplicate names; statements have already checked syntax and types, with positions in the text.

import { RowError, SqlError } from '../../base/errors.js'
import { tableColumnsMax, tableKeysMax } from '../../base/limits.js'
import type { ColumnChange, NewKey, SchemaChange } from '../jobs/messages.js'
import { isColumnName, isTableName } from './names.js'
import { type ColumnSchema, type DeclaredKey, enforcedKey, findColumn, type TableSchema } from './schema.js'

type AnyChange =
  | ColumnChange
  | Extract<SchemaChange, { kind: 'changeColumns' | 'renameColumn' | 'renameTable' | 'alterTable' }>

/** The changed schema, or the same object if nothing changes. Throws SqlError. */
export function changeSchema(schema: TableSchema, change: AnyChange): TableSchema {
  switch (change.kind) {
    case 'addColumn':
      return addColumn(schema, change.column, change.ifNotExists)
    case 'dropColumn':
      return dropColumn(schema, change.columnId)
    case 'changeColumns':
      return changeColumns(schema, change.changes)
    case 'renameColumn':
      return renameColumn(schema, change.columnId, change.name)
    case 'alterColumn':
      return alterColumn(schema, change)
    case 'addKey':
      return next(withKey(schema, change.key))
    case 'renameKey':
      return withKeys(schema, (key) => [key.id === change.keyId ? { ...key, name: change.name } : key])
    case 'dropKey':
      return withKeys(schema, (key) => (key.id === change.keyId ? [] : [key]))
    case 'renameTable':
      if (!isTableName(change.name)) throw new SqlError(`invalid table name [name=${change.name}]`, 0)
      return next({ ...schema, name: change.name })
    case 'alterTable':
      return next({ ...schema, ...change.changes })
    default:
      throw new RowError('unknown schema change', 0)
  }
}

/** Applies all changes as one change, which increments the version once. */
export function changeColumns(schema: TableSchema, changes: readonly ColumnChange[]): TableSchema {
  const changed = changes.reduce(changeSchema, schema)
  return changed === schema ? schema : { ...changed, version: schema.version + 1 }
}

/**
 * The schema with the new columns at the positions of the old ones, which are dropped. Of PARQUET(..) and the options of
 * SYMBOL, new columns have what the same statement sets.
 */
export function retypedSchema(
  schema: TableSchema,
  { types, changes }: Pick<Extract<SchemaChange, { kind: 'changeTypes' }>, 'types' | 'changes'>,
  newId: number,
): TableSchema {
  const newIds = new Map(types.map(({ columnId }, index) => [columnId, newId + index]))
  const columns = schema.columns.map((column) => {
    if (newIds.has(column.id)) return { ...column, dropped: true }
    const old = schema.columns[types[column.id - newId]?.columnId ?? -1]
    if (old === undefined) return column
    const value = old.default === undefined ? {} : { default: old.default }
    const said = old.declared === undefined ? {} : { declared: old.declared }
    const set = optionsSet(changes, old.id, column.type.name === 'SYMBOL')
    return { ...column, ...value, ...said, ...set, name: old.name, dropped: false, place: old.place ?? old.id }
  })
  const renewed = (ids: readonly number[]): number[] => ids.map((id) => newIds.get(id) ?? id)
  const keys = schema.keys?.map((key) => ({ ...key, columnIds: renewed(key.columnIds) }))
  const dedupKeys = renewed(schema.dedupKeys)
  return { ...schema, version: schema.version + 1, columns, dedupKeys, ...(keys === undefined ? {} : { keys }) }
}

/** What the changes set for the column, the last of each. */
function optionsSet(
  changes: readonly ColumnChange[],
  columnId: number,
  isSymbol: boolean,
): Pick<ColumnSchema, 'parquet' | 'symbol' | 'indexed'> {
  const set: { -readonly [Key in 'parquet' | 'symbol' | 'indexed']?: ColumnSchema[Key] | null } = {}
  for (const change of changes) {
    if (change.kind !== 'alterColumn' || change.columnId !== columnId) continue
    const { parquet, symbol, indexed } = change
    if (parquet !== undefined) set.parquet = parquet
    if (isSymbol && symbol !== undefined) set.symbol = symbol
    if (isSymbol && indexed !== undefined) set.indexed = indexed
  }
  return {
    ...(set.parquet == null ? {} : { parquet: set.parquet }),
    ...(set.symbol == null ? {} : { symbol: set.symbol }),
    ...(set.indexed == null ? {} : { indexed: set.indexed }),
  }
}

function next(schema: TableSchema): TableSchema {
  return { ...schema, version: schema.version + 1 }
}

function addColumn(
  schema: TableSchema,
  column: Omit<ColumnSchema, 'id' | 'dropped'>,
  ifNotExists: boolean,
): TableSchema {
  if (findColumn(schema, column.name) !== undefined) {
    if (ifNotExists) return schema
    throw new SqlError(`column already exists [table=${schema.name}, column=${column.name}]`, 0)
  }
  if (!isColumnName(column.name)) throw new SqlError(`invalid column name [name=${column.name}]`, 0)
  if (schema.columns.length >= tableColumnsMax) throw new SqlError(`too many columns [limit=${tableColumnsMax}]`, 0)
  return next({ ...schema, columns: [...schema.columns, { ...column, id: schema.columns.length, dropped: false }] })
}

/** Also drops declared keys that include the column. */
function dropColumn(schema: TableSchema, columnId: number): TableSchema {
  const without = withColumn(droppable(schema, columnId), columnId, { dropped: true })
  if (schema.keys === undefined) return without
  return { ...without, keys: schema.keys.filter(({ columnIds }) => !columnIds.includes(columnId)) }
}

/** Throws if the column is a DEDUP key or the designated timestamp. */
function droppable(schema: TableSchema, columnId: number): TableSchema {
  const column = liveColumn(schema, columnId)
  if (columnId === schema.timestampId) {
    throw new SqlError(`cannot drop the designated timestamp [column=${column.name}]`, 0)
  }
  if (schema.dedupKeys.includes(columnId)) throw new SqlError(`cannot drop a dedup key [column=${column.name}]`, 0)
  const key = enforcedKey(schema)
  if (key?.columnIds.includes(columnId) === true)
    throw new SqlError(`cannot drop a column of an enforced key [column=${column.name}, key=${key.name}]`, 0)
  return schema
}

function renameColumn(schema: TableSchema, columnId: number, name: string): TableSchema {
  liveColumn(schema, columnId)
  const holder = findColumn(schema, name)
  if (holder !== undefined && holder.id !== columnId) {
    throw new SqlError(`column already exists [table=${schema.name}, column=${name}]`, 0)
  }
  if (!isColumnName(name)) throw new SqlError(`invalid column name [name=${name}]`, 0)
  return withColumn(schema, columnId, { name })
}

function alterColumn(
  schema: TableSchema,
  { columnId, symbol, indexed, default: value, declared, parquet }: Extract<ColumnChange, { kind: 'alterColumn' }>,
): TableSchema {
  const { indexed: before, default: valueBefore, parquet: storedBefore, ...column } = liveColumn(schema, columnId)
  const retained = indexed === undefined ? before : (indexed ?? undefined)
  const valueRetained = value === undefined ? valueBefore : (value ?? undefined)
  const storage = parquet === undefined ? storedBefore : (parquet ?? undefined)
  const changed = {
    ...column,
    ...(storage === undefined ? {} : { parquet: storage }),
    ...(symbol === undefined ? {} : { symbol }),
    ...(declared === undefined ? {} : { declared }),
    ...(retained === undefined ? {} : { indexed: retained }),
    ...(valueRetained === undefined ? {} : { default: valueRetained }),
  }
  return next({ ...schema, columns: schema.columns.map((other) => (other.id === columnId ? changed : other)) })
}

/** Adds a declared key; columns of a primary key become NOT NULL. Throws SqlError. */
export function withKey<Schema extends Pick<TableSchema, 'name' | 'columns' | 'keys'>>(
  schema: Schema,
  { columns: names, ...key }: NewKey,
): Schema {
  const { keys = [] } = schema
  if (key.primary && keys.some(({ primary }) => primary)) throw severalPrimary(schema.name)
  const columnIds = names.map((name) => {
    const wanted = name.toLowerCase()
    const column = schema.columns.find((one) => !one.dropped && one.name.toLowerCase() === wanted)
    if (column === undefined) throw new SqlError(`column "${name}" named in key does not exist`, 0)
    return column.id
  })
  const made: DeclaredKey = { id: freeKeyId(keys), ...key, columnIds }
  if (!key.primary) return { ...schema, keys: [...keys, made] }
  const columns = schema.columns.map((column) =>
    columnIds.includes(column.id) ? { ...column, declared: { ...column.declared, notNull: true as const } } : column,
  )
  return { ...schema, columns, keys: [...keys, made] }
}

export function severalPrimary(table: string, position = 0): SqlError {
  return new SqlError(`multiple primary keys for table "${table}" are not allowed`, position)
}

function freeKeyId(keys: readonly DeclaredKey[]): number {
  let id = 1
  while (keys.some((key) => key.id === id)) id++
  if (id >= tableKeysMax) throw new SqlError(`too many keys [limit=${tableKeysMax - 1}]`, 0)
  return id
}

function withKeys(schema: TableSchema, change: (key: DeclaredKey) => readonly DeclaredKey[]): TableSchema {
  return next({ ...schema, keys: (schema.keys ?? []).flatMap(change) })
}

function liveColumn(schema: TableSchema, columnId: number): ColumnSchema {
  const column = schema.columns[columnId]
  if (column === undefined || column.dropped) {
    throw new SqlError(`column does not exist [table=${schema.name}, id=${columnId}]`, 0)
  }
  return column
}

function withColumn(schema: TableSchema, columnId: number, members: Partial<ColumnSchema>): TableSchema {
  const columns = schema.columns.map((column) => (column.id === columnId ? { ...column, ...members } : column))
  return next({ ...schema, columns })
}
