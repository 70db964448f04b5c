// Plans CREATE TABLE in all forms: builds the schema and checks it, with the errors that existing clients expect.

import { SqlError } from '../../base/errors.js'
import { nameCharactersMax, tableColumnsMax } from '../../base/limits.js'
import type { NewKey, SchemaChange } from '../../storage/jobs/messages.js'
import {
  type ColumnSchema,
  type DeclaredColumn,
  liveColumns,
  type PartitionUnit,
  type TableSchema,
} from '../../storage/schema/schema.js'
import { withKey } from '../../storage/schema/schema-change.js'
import {
  type ColumnType,
  type DataType,
  dataType,
  isDay,
  isJson,
  isList,
  isSpan,
  isTimeOfDay,
  isZoned,
  longKinds,
  storedKind,
  textKinds,
  typeText,
} from '../../types/column-types.js'
import { typeName } from '../../types/compare.js'
import { isTime } from '../../types/convert.js'
import type * as ast from '../ast/ast.js'
import { bindQuery } from '../bind/query.js'
import { relationNames } from '../catalog.js'
import { nativeDialect } from '../dialect.js'
import { pgTypeOf } from '../pg-catalog/types.js'
import { isOwnCounter } from '../relations/counters.js'
import { copiedKeys, keysOfColumns, newKeys, requireEnforceable } from '../relations/keys.js'
import { applyOptions, defaultMaxUncommittedRows, defaultO3MaxLagMicros } from '../relations/table-options.js'
import { defaultIndexCapacity, defaultSymbolCapacity } from '../relations/table-relations.js'
import type { BindContext } from '../scope/bind-context.js'
import { typeHint, typeOfName, unboundedDigits } from '../typing/types.js'
import { requireIncluded } from './alter-checks.js'
import { columnStorage } from './column-storage.js'
import { declaredOf, enumerationOf, isUnboundedNumber } from './declared.js'
import { checkedDefault } from './defaults.js'
import { countedColumn } from './identity.js'
import { batchRowsOf } from './insert.js'
import type { PlannedStatement } from './planned.js'
import { queryOf } from './query-statement.js'
import { newLake, newRetention } from './storage-policy.js'
import { isNullColumn, targetProjection } from './target.js'

type NewSchema = Omit<TableSchema, 'id' | 'version'>

export function planCreateTable(statement: ast.CreateTable, context: BindContext): PlannedStatement {
  const { table, ifNotExists, source } = statement
  checkTableName(table.name, table.position, 'Could not create table, ')
  if (statement.volume !== null)
    throw new SqlError(`volume alias is not allowed [alias=${statement.volume.name}]`, statement.volume.position)
  if (context.catalog.view(table.name) !== undefined)
    throw new SqlError('view or materialized view with the requested name already exists', table.position)
  const schema =
    source.kind === 'as'
      ? null
      : source.kind === 'like'
        ? likeSchema(statement, source, context)
        : columnsSchema(statement, source, context)
  const existing = context.catalog.table(table.name)
  if (existing !== undefined && !ifNotExists) throw SqlError.tableExists(table.position)
  if (existing !== undefined) return { kind: 'change', changes: [], tag: 'CREATE TABLE' }
  if (schema === null) return planCreateAs(statement, source as ast.CreateAs, context)
  return { kind: 'change', changes: [{ kind: 'createTable', schema, ifNotExists }], tag: 'CREATE TABLE' }
}

const badTableCharacters = /[?,'"\\/:()+*%~\ufeff]/

function hasControls(name: string): boolean {
  return [...name].some((character) => character < ' ' || character === '\u007f')
}

export function checkTableName(name: string, position: number, doing = ''): void {
  if (name === '.') throw new SqlError("'.' is an invalid table name", position)
  if (name.includes('..')) throw new SqlError("'.' is not allowed", position)
  if (
    name === '' ||
    name.startsWith('.') ||
    name.endsWith('.') ||
    badTableCharacters.test(name) ||
    hasControls(name) ||
    name.length > nameCharactersMax ||
    name.trim() !== name
  ) {
    throw new SqlError(`${doing}invalid table name [table=${name}]`, position)
  }
}

const badColumnCharacters = /[?.,'"\\/:()+\-*%~\ufeff]/

export function checkColumnName(name: string, position: number): void {
  if (!isColumnName(name)) throw new SqlError(' new column name contains invalid characters', position)
}

function isColumnName(name: string): boolean {
  return !(name === '' || badColumnCharacters.test(name) || hasControls(name) || name.length > nameCharactersMax)
}

// Columns -----------------------------------------------------------------------------------------------------------

/** The column type for a type name. */
export function storedType(
  written: ast.TypeName,
  { catalog, dialect }: Pick<BindContext, 'catalog' | 'dialect'>,
): DataType {
  if (isUnboundedNumber(written, dialect)) return dataType('DECIMAL', ...unboundedDigits)
  const type = typeOfName(written) ?? typeOfEnumeration(written, catalog)
  if (written.name === 'cursor') throw new SqlError(`non-persisted type: ${written.name}`, written.position)
  // An INTERVAL of two timestamps cannot be stored. In a column the type means a span of time.
  if (type?.name === 'INTERVAL') return dataType('LONG', longKinds.span)
  if (type === undefined)
    throw new SqlError(`unsupported column type: ${written.name}`, written.position, typeHint(written.name))
  return type
}

/** SYMBOL for an enumeration, a list of strings for an array of it; undefined for any other type. */
function typeOfEnumeration(written: ast.TypeName, catalog: BindContext['catalog']): DataType | undefined {
  if (enumerationOf(written, catalog) === undefined) return undefined
  return written.dimensions > 0 ? dataType('STRING', textKinds.strings) : dataType('SYMBOL')
}

/** The schema of a column of CREATE TABLE or ADD COLUMN. */
export function columnOf(
  definition: ast.ColumnDefinition,
  table: string,
  context: BindContext,
): Omit<ColumnSchema, 'id' | 'dropped'> {
  const column = { ...typedColumn(definition, context), ...storageOf(definition, context) }
  // SHOW CREATE TABLE and dumps write the default explicitly.
  const isWritten = definition.defaultValue !== null && isOwnCounter(definition.defaultValue.text, table, column.name)
  const counted: ast.Counted | null = isWritten
    ? { kind: 'counted', identity: null, counter: null }
    : definition.counted
  if (counted !== null) return { ...column, ...countedColumn(counted, column, table, definition.position) }
  const value = checkedDefault(definition.defaultValue, column, context)
  return value === undefined ? column : { ...column, default: value }
}

function storageOf(
  { storage, type, ...name }: ast.ColumnDefinition,
  context: BindContext,
): Pick<ColumnSchema, 'parquet'> {
  const parquet = storage === null ? null : columnStorage(storage, name, storedKind(storedType(type, context)))
  return parquet === null ? {} : { parquet }
}

function typedColumn(definition: ast.ColumnDefinition, context: BindContext): Omit<ColumnSchema, 'id' | 'dropped'> {
  const { name, position } = definition
  checkColumnName(name, position)
  const written = storedType(definition.type, context)
  const type = storedKind(written)
  // PostgreSQL reports numbered columns as NOT NULL.
  const flags: Partial<DeclaredColumn> = definition.notNull || definition.counted ? { notNull: true } : {}
  const declared = declaredOf(definition.type, type, flags, context)
  const retained = declared === undefined ? {} : { declared }
  if (type.name !== 'SYMBOL') return { name, type, ...retained }
  return { name, type, ...retained, ...symbolOptions(definition) }
}

/** The options of a SYMBOL column. `written`: only those that are written. */
export function symbolOptions(
  { symbol: { capacity, cache }, index }: Pick<ast.ColumnDefinition, 'symbol' | 'index'>,
  written = false,
): Pick<ColumnSchema, 'symbol' | 'indexed'> {
  if (capacity !== null && capacity.value < 2) throw new SqlError('min symbol capacity is 2', capacity.position)
  const symbol = { capacity: powerOfTwo(capacity?.value ?? defaultSymbolCapacity), cached: cache ?? true }
  return {
    ...(written && capacity === null && cache === null ? {} : { symbol }),
    ...(index === null ? {} : { indexed: { blockCapacity: powerOfTwo(index.capacity ?? defaultIndexCapacity) } }),
  }
}

export function powerOfTwo(value: number): number {
  return 2 ** Math.ceil(Math.log2(Math.max(2, value)))
}

/** The declared type of a column made from a query's result, so that clients of PostgreSQL see the same type. */
function declaredOfResult(type: DataType): Pick<ColumnSchema, 'declared'> {
  if (isZoned(type)) return { declared: { type: 'timestamptz' } }
  return isDay(type) || isSpan(type) || isTimeOfDay(type) || isJson(type) || isList(type)
    ? { declared: { type: pgTypeOf(type).name } }
    : {}
}

function numbered(columns: readonly Omit<ColumnSchema, 'id' | 'dropped'>[]): ColumnSchema[] {
  return columns.map((column, id) => ({ id, dropped: false, ...column }))
}

function checkColumns(definitions: readonly { readonly name: string; readonly position: number }[]): void {
  if (definitions.length > tableColumnsMax)
    throw new SqlError(`too many columns [max=${tableColumnsMax}]`, definitions[0]?.position ?? 0)
  const taken = new Set<string>()
  for (const { name, position } of definitions) {
    if (taken.has(name.toLowerCase())) throw new SqlError(`Duplicate column [name=${name}]`, position)
    taken.add(name.toLowerCase())
  }
}

function columnsSchema(
  statement: ast.CreateTable,
  { columns: definitions, keys }: ast.CreateColumns,
  context: BindContext,
): NewSchema {
  checkColumns(definitions)
  const { name } = statement.table
  const columns = numbered(definitions.map((definition) => columnOf(definition, name, context)))
  for (const { index } of definitions) requireIncluded(index, columns)
  const schema = schemaOf(statement, withIndexes(columns, statement), context)
  const declared = [...keysOfColumns(definitions), ...keys]
  requireEnforceable(declared, schema)
  return withKeys(schema, newKeys(declared, { name }, columns, context))
}

function withKeys(schema: NewSchema, keys: readonly NewKey[]): NewSchema {
  return keys.reduce(withKey, schema)
}

/** `index(a capacity 128)` after the columns. */
function withIndexes(columns: readonly ColumnSchema[], { indexes }: ast.CreateTable): ColumnSchema[] {
  for (const { column } of indexes) {
    const found = columns.find(({ name }) => name.toLowerCase() === column.name.toLowerCase())
    if (found === undefined) throw SqlError.columnMissing(column.name, column.position)
    if (found.type.name !== 'SYMBOL')
      throw new SqlError(
        `indexes are supported only for SYMBOL columns [columnName=${column.name}, columnType=${typeText(found.type)}]`,
        column.position,
      )
  }
  return columns.map((column) => {
    const entry = indexes.find((candidate) => candidate.column.name.toLowerCase() === column.name.toLowerCase())
    if (entry === undefined) return column
    return { ...column, indexed: { blockCapacity: powerOfTwo(entry.index.capacity ?? defaultIndexCapacity) } }
  })
}

// The table ---------------------------------------------------------------------------------------------------------

function schemaOf(statement: ast.CreateTable, columns: readonly ColumnSchema[], context: BindContext): NewSchema {
  const { timestamp, partitionBy, wal } = statement
  const timestampId = timestamp === null ? -1 : timestampColumn(columns, timestamp, statement.source.kind === 'as')
  const unit = (partitionBy?.unit ?? 'none').toUpperCase() as PartitionUnit
  if (timestampId < 0 && unit !== 'NONE') {
    throw new SqlError('partitioning is possible only on tables with designated timestamps', partitionBy?.position ?? 0)
  }
  if (wal?.enabled === true && unit === 'NONE')
    throw new SqlError('WAL Write Mode can only be used on partitioned tables', wal.position)
  const base: NewSchema = {
    name: statement.table.name,
    columns,
    timestampId,
    partitionBy: unit,
    bypassWal: wal?.enabled === false,
    dedupKeys: statement.dedupKeys === null ? [] : dedupKeysOf(statement.dedupKeys, columns, timestampId),
    ...(statement.dedupSkips ? { dedupSkips: true } : {}),
    ...newRetention(statement, unit),
    maxUncommittedRows: defaultMaxUncommittedRows,
    o3MaxLagMicros: defaultO3MaxLagMicros,
    createdMicros: Number(context.evaluation.nowMicros),
  }
  return { ...base, ...applyOptions(statement.options) }
}

function timestampColumn(columns: readonly ColumnSchema[], { name, position }: ast.Name, ofQuery: boolean): number {
  const column = columns.find((candidate) => candidate.name.toLowerCase() === name.toLowerCase())
  if (column === undefined) {
    const message = ofQuery ? "designated timestamp column doesn't exist" : 'invalid designated timestamp column'
    throw new SqlError(`${message} [name=${name}]`, position)
  }
  if (!isTime(column.type)) {
    const columnName = ofQuery ? '' : `, columnName=${name}`
    throw new SqlError(`TIMESTAMP column expected [actual=${typeText(column.type)}${columnName}]`, position)
  }
  return column.id
}

/** Column ids of DEDUP UPSERT KEYS, in column order. */
export function dedupKeysOf(
  keys: readonly ast.Name[],
  columns: readonly ColumnSchema[],
  timestampId: number,
): number[] {
  const ids = keys.map(({ name, position }) => {
    const column = columns.find(
      (candidate) => !candidate.dropped && candidate.name.toLowerCase() === name.toLowerCase(),
    )
    if (column === undefined) throw new SqlError(`deduplicate key column not found [column=${name}]`, position)
    if (column.type.name === 'ARRAY')
      throw new SqlError(
        `dedup key columns cannot include ARRAY [column=${name}, type=${typeText(column.type)}]`,
        position,
      )
    return column.id
  })
  if (timestampId < 0 || !ids.includes(timestampId)) {
    throw new SqlError('deduplicate key list must include dedicated timestamp column', keys[0]?.position ?? 0)
  }
  return [...new Set(ids)].sort((a, b) => a - b)
}

function likeSchema(
  statement: ast.CreateTable,
  { table: like, keys: withItsKeys }: ast.CreateLike,
  context: BindContext,
): NewSchema {
  const version = context.catalog.table(like.name)
  if (version === undefined) throw SqlError.tableMissing(like.name, like.position, relationNames(context.catalog))
  const { schema } = version
  const live = liveColumns(schema)
  const renumbered = new Map(live.map(({ id }, index) => [id, index]))
  const idOf = (id: number): number => renumbered.get(id) ?? -1
  const { name } = statement.table
  const made: NewSchema = {
    name,
    columns: live.map((column, id) => ({ ...column, id })),
    timestampId: idOf(schema.timestampId),
    partitionBy: schema.partitionBy,
    bypassWal: schema.bypassWal,
    dedupKeys: schema.dedupKeys.map(idOf),
    ...(schema.dedupSkips === true ? { dedupSkips: true } : {}),
    ttl: schema.ttl,
    ...(schema.policy == null ? {} : { policy: schema.policy }),
    ...(schema.lake === undefined ? {} : { lake: schema.lake && newLake(schema.lake.formatVersion) }),
    maxUncommittedRows: schema.maxUncommittedRows,
    o3MaxLagMicros: schema.o3MaxLagMicros,
    createdMicros: Number(context.evaluation.nowMicros),
  }
  return withItsKeys ? withKeys(made, copiedKeys(schema, name, context)) : made
}

// CREATE TABLE AS ---------------------------------------------------------------------------------------------------

export function planCreateAs(
  statement: ast.CreateTable,
  { query, casts, batch }: ast.CreateAs,
  context: BindContext,
): Extract<PlannedStatement, { kind: 'createTableAs' }> {
  const relation = bindQuery(query, context)
  const untyped = relation.plan.columns.find((_, index) => isNullColumn(relation.plan, index))
  const definitions = relation.plan.columns.map(({ name, type }) => ({
    name,
    type: storable(type),
    shown: type,
    position: query.position,
  }))
  checkColumns(definitions)
  for (const cast of casts) checkCast(cast, definitions, untyped?.name)
  if (untyped !== undefined && !casts.some(({ name }) => name.toLowerCase() === untyped.name.toLowerCase()))
    throw new SqlError(`cannot create NULL-type column, please use type cast, e.g. ${untyped.name}::type`, 0)
  const columns = numbered(
    definitions.map(({ name, type, shown }) => {
      const cast = casts.find((candidate) => candidate.name.toLowerCase() === name.toLowerCase())
      if (cast !== undefined) return { ...columnOf(cast, statement.table.name, context), name }
      if (!isColumnName(name))
        throw new SqlError(`invalid column name [name=${name}, position=0]`, statement.table.position)
      // Recorded behaviour: a column that is indexed after the query is reported as not cached.
      const cached = !statement.indexes.some(({ column }) => column.name.toLowerCase() === name.toLowerCase())
      return type.name === 'SYMBOL'
        ? { name, type, symbol: { capacity: defaultSymbolCapacity, cached } }
        : { name, type, ...declaredOfResult(shown) }
    }),
  )
  const own =
    statement.timestamp === null && relation.order === 'ascending' ? columns[relation.timestampIndex] : undefined
  const timestamp = own === undefined ? statement.timestamp : { ...own, position: 0, quoted: true }
  const schema = schemaOf({ ...statement, timestamp }, withIndexes(columns, statement), context)
  const targets = schema.columns.map(({ id, name, type }) => ({ columnId: id, name, type }))
  const change: Extract<SchemaChange, { kind: 'createTable' }> = {
    kind: 'createTable',
    schema,
    ifNotExists: statement.ifNotExists,
  }
  const plan = targetProjection(relation, targets, [query.position], nativeDialect)
  const batchRows = batchRowsOf(batch, context)
  return {
    kind: 'createTableAs',
    change,
    batchRows,
    query: queryOf(plan, -1, context),
    columns: targets,
    tag: 'CREATE TABLE AS',
  }
}

/** Groups of column types within which CAST converts columns. */
const castGroups: readonly (readonly ColumnType[])[] = [
  ['BYTE', 'SHORT', 'CHAR', 'INT', 'LONG', 'FLOAT', 'DOUBLE', 'DATE', 'TIMESTAMP', 'TIMESTAMP_NS', 'DECIMAL'],
  ['STRING', 'VARCHAR', 'SYMBOL'],
]

function checkCast(
  { name, position, type: written }: ast.ColumnDefinition,
  columns: readonly { readonly name: string; readonly type: DataType }[],
  untyped: string | undefined,
): void {
  const column = columns.find((candidate) => candidate.name.toLowerCase() === name.toLowerCase())
  if (column === undefined) throw new SqlError(`CAST column doesn't exist [column=${name}]`, position)
  const to = typeOfName(written)
  if (to === undefined || to.name === column.type.name || column.name === untyped) return
  const group = castGroups.find((types) => types.includes(to.name))
  if (group?.includes(column.type.name) === true) return
  throw new SqlError(
    `unsupported cast [column=${column.name}, from=${typeName(column.type)}, to=${typeName(to)}]`,
    position,
  )
}

/** Types that only results can have become STRING. */
function storable(type: DataType): DataType {
  return type.name === 'INTERVAL' ? dataType('STRING') : storedKind(type)
}
