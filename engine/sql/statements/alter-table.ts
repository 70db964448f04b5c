// Plans ALTER TABLE: checks each action against the schema and returns the schema changes that the writer carries out.

import { SqlError } from '../../base/errors.js'
import { nameCharactersMax } from '../../base/limits.js'
import type { ColumnChange, NewKey, SchemaChange } from '../../storage/jobs/messages.js'
import { partitionNamer, timestampsPerSecond } from '../../storage/schema/partition.js'
import {
  type ColumnSchema,
  findColumn,
  liveColumns,
  type PartitionUnit,
  requireColumn,
  resultTypeOf,
  type TableSchema,
  type TableVersion,
} from '../../storage/schema/schema.js'
import { isDay, isSpan, sameType, storedKind, typeText } from '../../types/column-types.js'
import { formatTimestamp } from '../../types/timestamp.js'
import { parseByPattern } from '../../types/timestamp-pattern.js'
import type * as ast from '../ast/ast.js'
import { bindCondition } from '../bind/expression.js'
import { writableTable } from '../bind/show.js'
import { compileExpression } from '../functions/registry/evaluate.js'
import { keyNamed, keysOfColumns, newKeys, renamedKey } from '../relations/keys.js'
import { optionOf } from '../relations/table-options.js'
import { defaultIndexCapacity, defaultSymbolCapacity } from '../relations/table-relations.js'
import { isWalTable } from '../relations/tables-relations.js'
import { viewAsTable } from '../relations/view-table.js'
import type { BindContext } from '../scope/bind-context.js'
import {
  columnExists,
  isChangeable,
  missingAlteredColumn,
  requireDedup,
  requireIncluded,
  requirePartitions,
  requireSymbol,
  requireWal,
} from './alter-checks.js'
import { combinedChange } from './alter-combined.js'
import { columnStorage } from './column-storage.js'
import {
  checkColumnName,
  checkTableName,
  columnOf,
  dedupKeysOf,
  powerOfTwo,
  storedType,
  symbolOptions,
} from './create-table.js'
import { declaredOf, sameDeclared } from './declared.js'
import { changedDefault } from './identity.js'
import type { PlannedStatement } from './planned.js'
import { castProgram } from './rewrite.js'
import { planAlterSequence } from './sequences.js'
import { retentionChanges } from './storage-policy.js'

export function planAlterTable(statement: ast.AlterTable, context: BindContext): PlannedStatement {
  const { table, actions } = statement
  // PostgreSQL's tools rename views with ALTER TABLE.
  const view = table.schema === null ? context.catalog.view(table.name) : undefined
  const [action] = actions
  if (view !== undefined && action?.kind === 'rename')
    return changed(renameTable(viewAsTable(view, context), action.newName, context))
  // Dumps of PostgreSQL use it for views and sequences, too.
  if (view !== undefined && action?.kind === 'set owner') return changed([])
  if (action?.kind === 'set owner' && isCounter(table, context)) return changed([])
  if (action?.kind === 'rename' && isCounter(table, context)) return renamedSequence(statement, action.newName, context)
  if (statement.ifExists && context.catalog.table(table.name) === undefined) return changed([])
  const version = writableTable(table, context)
  const changesFor = (one: ast.AlterAction, now: TableVersion) => changesOf(one, now, context, table.position)
  return changed(combinedChange(actions, version, changesFor, (types) => castProgram(version, types, context)))
}

function isCounter({ schema, name }: ast.TableName, { catalog }: BindContext): boolean {
  return schema === null && catalog.table(name) === undefined && catalog.counters?.last(name) !== undefined
}

/** ALTER TABLE .. RENAME of a sequence, which PostgreSQL accepts: tools rename a table and its sequence this way. */
function renamedSequence(statement: ast.AlterTable, newName: ast.TableName, context: BindContext): PlannedStatement {
  const { position, ifExists, table: sequence } = statement
  return planAlterSequence({ kind: 'alter sequence', position, ifExists, sequence, newName }, context)
}

function changed(changes: readonly SchemaChange[]): PlannedStatement {
  return { kind: 'change', changes, tag: 'ALTER TABLE' }
}

export function changesOf(
  action: ast.AlterAction,
  version: TableVersion,
  context: BindContext,
  position: number,
): SchemaChange[] {
  const { schema } = version
  const alter = (changes: Extract<SchemaChange, { kind: 'alterTable' }>['changes']): SchemaChange[] => [
    { kind: 'alterTable', tableId: schema.id, changes },
  ]
  switch (action.kind) {
    case 'add columns':
      return addColumns(action, version, context)
    case 'drop columns':
      return dropColumns(action, version)
    case 'rename columns':
      return renameColumns(action, schema)
    case 'change type':
      return changeType(action, version, context)
    case 'rename':
      return renameTable(version, action.newName, context)
    case 'dedup enable':
      requireDedup(version, position)
      return alter(dedupChanges(dedupKeysOf(action.keys, schema.columns, schema.timestampId), action.skips, schema))
    case 'dedup disable':
      return alter(dedupChanges([], false, schema))
    case 'set ttl':
    case 'set policy':
    case 'change policy':
    case 'set lake':
      return alter(retentionChanges(action, schema))
    case 'set parameter':
      return alter(optionOf(action.option))
    case 'set type':
      if (schema.partitionBy === 'NONE') throw new SqlError('Cannot convert non-partitioned table', position)
      return alter({ bypassWalNext: !action.wal })
    case 'set format':
      if (action.format === 'parquet' && schema.partitionBy === 'NONE')
        throw new SqlError('FORMAT PARQUET is only supported on partitioned WAL tables', position)
      return []
    case 'partitions':
      return partitions(action, version, context)
    case 'resume wal':
    case 'suspend wal':
      requireWal(version, positionOfWord('wal', action.position, context))
      if (action.kind === 'resume wal') return []
      throw new SqlError('Cannot suspend table, database is not in dev mode', 0)
    case 'add key':
      return newKeys([action.key], schema, liveColumns(schema), context, true).map((key) => addedKey(schema, key))
    case 'rename constraint': {
      const { id: keyId, name } = renamedKey(action, schema, context)
      return [{ kind: 'renameKey', tableId: schema.id, keyId, name }]
    }
    case 'drop constraint': {
      const key = keyNamed(action.name.name, schema)
      return key === undefined ? [] : [{ kind: 'dropKey', tableId: schema.id, keyId: key.id }]
    }
    case 'squash partitions':
    case 'add constraint':
    case 'set owner':
      return []
    case 'set nullable':
      return setNullable(action, schema)
    case 'set default':
      return setDefault(action, schema, context)
    default:
      return storageChanges(action, version, position)
  }
}

/** Names `dedupSkips` only where it changes, so that the record of other changes is as older servers write it. */
function dedupChanges(dedupKeys: readonly number[], skips: boolean, { dedupSkips = false }: TableSchema) {
  return { dedupKeys, ...(skips === dedupSkips ? {} : { dedupSkips: skips }) }
}

/** Position of the next occurrence of the word. */
function positionOfWord(word: string, position: number, { sql }: BindContext): number {
  return Math.max(sql.toLowerCase().indexOf(word, position), position)
}

type StorageAction = Extract<
  ast.AlterAction,
  { kind: 'add index' | 'drop index' | 'set cache' | 'set symbol capacity' | 'set storage' }
>

/** Indexes, caches and capacities of symbols do not affect this storage. They are only recorded and shown. */
function storageChanges(action: StorageAction, version: TableVersion, position: number): SchemaChange[] {
  const { schema } = version
  switch (action.kind) {
    case 'add index': {
      const capacity = powerOfTwo(action.index.capacity ?? defaultIndexCapacity)
      const column = checkSymbol(action.column, schema, 'indexes are')
      requireIncluded(action.index, schema.columns)
      if (column.indexed !== undefined && !isWalTable(version))
        throw new SqlError(`column is already indexed [column=${column.name}]`, position)
      return columnOptions(schema, column, { indexed: { blockCapacity: capacity } })
    }
    case 'drop index': {
      const column = checkSymbol(action.column, schema, 'indexes are')
      if (column.indexed === undefined && !isWalTable(version))
        throw new SqlError(`column is not indexed [column=${column.name}]`, action.column.position)
      return columnOptions(schema, column, { indexed: null })
    }
    case 'set cache': {
      const column = checkSymbol(action.column, schema, 'cache is')
      const { capacity } = column.symbol ?? { capacity: defaultSymbolCapacity }
      return columnOptions(schema, column, { symbol: { capacity, cached: action.cache } })
    }
    case 'set storage': {
      const column = existingAltered(action.column, schema)
      return columnOptions(schema, column, { parquet: columnStorage(action.storage, action.column, column.type) })
    }
    case 'set symbol capacity': {
      const column = existingAltered(action.column, schema)
      requireSymbol(column, action.column.position)
      if (action.capacity < 2) throw new SqlError('min symbol capacity is 2', action.capacityPosition)
      const cached = column.symbol?.cached ?? true
      return columnOptions(schema, column, { symbol: { capacity: powerOfTwo(action.capacity), cached } })
    }
  }
}

function setDefault(
  { column, value }: Extract<ast.AlterAction, { kind: 'set default' }>,
  schema: TableSchema,
  context: BindContext,
): SchemaChange[] {
  const found = existingAltered(column, schema)
  return columnOptions(schema, found, changedDefault(value, found, schema.name, column.position, context))
}

function setNullable(
  { column, notNull }: Extract<ast.AlterAction, { kind: 'set nullable' }>,
  schema: TableSchema,
): SchemaChange[] {
  const found = existingAltered(column, schema)
  const { notNull: before, ...declared } = found.declared ?? {}
  if ((before === true) === notNull) return []
  return columnOptions(schema, found, { declared: notNull ? { ...declared, notNull } : declared })
}

type ColumnOptions = Omit<Extract<SchemaChange, { kind: 'alterColumn' }>, 'kind' | 'tableId' | 'columnId'>

function columnOptions({ id: tableId }: TableSchema, { id: columnId }: ColumnSchema, options: ColumnOptions) {
  return [{ kind: 'alterColumn', tableId, columnId, ...options } as const]
}

function checkSymbol(name: ast.Name, schema: TableSchema, what: string): ColumnSchema {
  const column = existingAltered(name, schema)
  if (column.type.name === 'SYMBOL') return column
  throw new SqlError(
    `${what} only supported for symbol type [column=${name.name}, type=${column.type.name}]`,
    name.position,
  )
}

function existingAltered(name: ast.Name, schema: TableSchema): ColumnSchema {
  const column = findColumn(schema, name.name)
  if (column === undefined) throw missingAlteredColumn(name, schema)
  return column
}

// Columns -----------------------------------------------------------------------------------------------------------

function addColumns(
  { columns }: Extract<ast.AlterAction, { kind: 'add columns' }>,
  version: TableVersion,
  context: BindContext,
): SchemaChange[] {
  const { schema } = version
  const added = columns.filter(({ name, ifNotExists }) => !ifNotExists || findColumn(schema, name) === undefined)
  const taken = new Set<string>()
  const changes = columns.flatMap(({ ifNotExists, ...definition }): ColumnChange[] => {
    const known = findColumn(schema, definition.name)
    const isKnown = known !== undefined || taken.has(definition.name.toLowerCase())
    if (isKnown && !ifNotExists) throw columnExists(definition)
    const column = columnOf(definition, schema.name, context)
    if (ifNotExists && known !== undefined && !sameType(known.type, column.type)) {
      const types = `[current type=${typeText(known.type)}, requested type=${typeText(column.type)}]`
      throw new SqlError(`column already exists with a different column type ${types}`, definition.type.position)
    }
    if (isKnown) return []
    const place = schema.columns.length + taken.size
    taken.add(column.name.toLowerCase())
    return [{ kind: 'addColumn', tableId: schema.id, column: { ...column, place }, ifNotExists }]
  })
  const keys = newKeys(keysOfColumns(added), schema, [...liveColumns(schema), ...added], context, true)
  return atOnce(schema, [...changes, ...keys.map((key) => addedKey(schema, key))])
}

function addedKey({ id: tableId }: TableSchema, key: NewKey): ColumnChange {
  return { kind: 'addKey', tableId, key }
}

/** All of the changes or none of them. */
function atOnce({ id: tableId }: TableSchema, changes: readonly ColumnChange[]): SchemaChange[] {
  return changes.length < 2 ? [...changes] : [{ kind: 'changeColumns', tableId, changes }]
}

function dropColumns(
  { columns }: Extract<ast.AlterAction, { kind: 'drop columns' }>,
  version: TableVersion,
): SchemaChange[] {
  const { schema } = version
  const dropped = new Set<number>()
  const changes = columns.flatMap(({ name, position, ifExists }): ColumnChange[] => {
    if (ifExists && findColumn(schema, name) === undefined) return []
    const { id } = requireColumn(schema, { name, position })
    if (dropped.has(id)) throw SqlError.columnMissing(name, position)
    dropped.add(id)
    if (id === schema.timestampId) {
      throw new SqlError(
        isWalTable(version) || schema.partitionBy === 'NONE'
          ? `cannot remove designated timestamp column [table=${schema.name}, column=${name}]`
          : 'cannot remove timestamp from partitioned table',
        0,
      )
    }
    return [{ kind: 'dropColumn', tableId: schema.id, columnId: id }]
  })
  return atOnce(schema, changes)
}

function renameColumns(
  { pairs }: Extract<ast.AlterAction, { kind: 'rename columns' }>,
  schema: TableSchema,
): SchemaChange[] {
  return pairs.map(({ column, newName }): SchemaChange => {
    const { id } = requireColumn(schema, { name: column.name, position: column.position })
    if (id === schema.timestampId)
      throw new SqlError(`cannot rename designated timestamp column [table=${schema.name}, column=${column.name}]`, 0)
    checkColumnName(newName.name, newName.position)
    if (newName.name === column.name)
      throw new SqlError('new column name is identical to existing name', newName.position)
    if (findColumn(schema, newName.name) !== undefined) throw new SqlError(' column already exists', newName.position)
    return { kind: 'renameColumn', tableId: schema.id, columnId: id, name: newName.name }
  })
}

function changeType(
  { column, definition, position: last, again }: Extract<ast.AlterAction, { kind: 'change type' }>,
  version: TableVersion,
  context: BindContext,
): SchemaChange[] {
  const { schema } = version
  const found = existingAltered(column, schema)
  const declaredType = storedType(definition.type, context)
  const type = storedKind(declaredType)
  if (found.id === schema.timestampId)
    throw new SqlError('cannot change type of designated timestamp column', definition.type.position)
  const declared = declaredOf(definition.type, type, found.declared ?? {}, context) ?? {}
  requireIncluded(definition.index, schema.columns)
  const changed = {
    ...(sameDeclared(declared, found.declared) ? {} : { declared }),
    ...(type.name === 'SYMBOL' ? symbolOptions(definition, true) : {}),
  }
  const changes = Object.keys(changed).length === 0 ? [] : columnOptions(schema, found, changed)
  // Object mappers for PostgreSQL declare a column again with all its properties.
  if (sameType(found.type, type) && (again || context.dialect.repeatedDeclarations)) return changes
  if (sameType(found.type, type))
    throw new SqlError(`column '${column.name}' type is already '${typeText(type)}'`, last)
  if (isSpan(declaredType) || !isChangeable(found.type, type)) {
    const types = `[existing=${typeText(found.type)}, new=${isSpan(declaredType) ? 'interval' : typeText(type)}]`
    throw new SqlError(`incompatible column type change ${types}`, last)
  }
  const tableId = schema.id
  const types = [{ columnId: found.id, type }]
  const shown = resultTypeOf({ type, declared })
  const cast = [{ columnId: found.id, type: isDay(shown) ? shown : type }]
  return [{ kind: 'changeTypes', tableId, types, changes, program: castProgram(version, cast, context) }]
}

export function renameTable(
  version: TableVersion,
  newName: ast.Name | ast.TableName,
  { catalog }: BindContext,
): SchemaChange[] {
  const { schema } = version
  const { name } = newName
  if (name.length > nameCharactersMax || /[/\\]/.test(name))
    throw new SqlError(`invalid table name [table=${name}]`, newName.position)
  checkTableName(name, newName.position)
  const other = catalog.table(name)
  if ((other !== undefined && other.schema.id !== schema.id) || catalog.view(name) !== undefined) {
    throw new SqlError(
      isWalTable(version)
        ? `cannot rename table, new name is already in use [table=${schema.name}, toTableName=${name}]`
        : 'Rename target exists',
      newName.position,
    )
  }
  return [{ kind: 'renameTable', tableId: schema.id, name }]
}

// Partitions --------------------------------------------------------------------------------------------------------

const partitionPatterns: Record<PartitionUnit, string> = {
  NONE: '',
  HOUR: "yyyy-MM-dd'T'HH",
  DAY: 'yyyy-MM-dd',
  WEEK: "YYYY-'W'ww",
  MONTH: 'yyyy-MM',
  YEAR: 'yyyy',
}

type PartitionAction = Extract<ast.AlterAction, { kind: 'partitions' }>

function partitions(action: PartitionAction, version: TableVersion, context: BindContext): SchemaChange[] {
  const { schema } = version
  const { operation } = action
  const isConversion = operation === 'convert to parquet' || operation === 'convert to native'
  const word = isConversion ? (operation === 'convert to parquet' ? 'parquet' : 'native') : 'partition'
  requirePartitions(schema, positionOfWord(word, action.position, context))
  const named = partitionNames(action.partitions, schema, context)
  const known = context.catalog.statistics(schema.id).partitions
  // Tables with WAL ignore missing partitions, as clients of this dialect expect.
  if (!isWalTable(version)) requireKnown(action, named, version, context)
  const names = named.map(({ name }) => name)
  // Partitions are Parquet files already.
  if (isConversion) return []
  const touched = operation === 'attach' ? names : names.filter((name) => known.some((one) => one.name === name))
  const change = operation === 'attach' || operation === 'detach' ? operation : 'drop'
  return touched.length === 0
    ? []
    : [{ kind: 'partitions', tableId: schema.id, operation: change, partitions: touched }]
}

interface NamedPartition {
  readonly name: string
  readonly position: number
}

/** Throws for missing partitions. Only for tables without WAL, which execute a statement before the response. */
function requireKnown(
  { operation, position, partitions: { where } }: PartitionAction,
  named: readonly NamedPartition[],
  { schema }: TableVersion,
  context: BindContext,
): void {
  if (where !== null && named.length === 0) {
    const after = positionOfWord('where', position, context) + 'where'.length
    const blanks = /^\s*/.exec(context.sql.slice(after))?.[0].length ?? 0
    throw new SqlError('no partitions matched WHERE clause', after + blanks)
  }
  const known = context.catalog.statistics(schema.id).partitions
  const detached = new Set(schema.detached?.map(({ partition }) => partition))
  for (const { name, position: at } of named) {
    const index = known.findIndex((partition) => partition.name === name)
    const timestamp = parseByPattern(name, 'TIMESTAMP', partitionPatterns[schema.partitionBy]) ?? 0n
    const place = `partitionTimestamp=${formatTimestamp(timestamp, 'TIMESTAMP')}, partitionBy=${schema.partitionBy}`
    const fail = (verb: string, status: string): never => {
      throw new SqlError(`could not ${verb} partition [table=${schema.name}, ${status}${place}]`, at)
    }
    switch (operation) {
      case 'drop':
      case 'force drop':
        if (index < 0) fail('remove', '')
        break
      case 'detach':
        if (index < 0) fail('detach', 'detachStatus=DETACH_ERR_MISSING_PARTITION, ')
        if (index === known.length - 1) fail('detach', 'detachStatus=DETACH_ERR_ACTIVE, ')
        break
      case 'attach':
        if (index >= 0) fail('attach', 'detachStatus=ATTACH_ERR_PARTITION_EXISTS, ')
        if (!detached.has(name)) fail('attach', 'detachStatus=ATTACH_ERR_MISSING_PARTITION, ')
        break
      default: {
        const what = operation === 'convert to parquet' ? 'partition to parquet' : 'parquet partition to native'
        if (index < 0)
          throw new SqlError(
            `cannot convert ${what}, partition does not exist [table=${schema.name}, partition=${name}]`,
            0,
          )
      }
    }
  }
}

/** A partition name. A week may be named by any of its days. */
function partitionName(written: string, position: number, schema: TableSchema): string {
  const pattern = partitionPatterns[schema.partitionBy]
  if (parseByPattern(written, 'TIMESTAMP', pattern) !== null) return written
  if (schema.partitionBy !== 'WEEK') throw new SqlError(`'${pattern}' expected, found [ts=${written}]`, position)
  const day = parseByPattern(written, 'TIMESTAMP', 'yyyy-MM-dd')
  if (day === null) throw new SqlError(`'YYYY-Www' or 'yyyy-MM-dd' expected, found [ts=${written}]`, position)
  return partitionNamer(schema)((day * timestampsPerSecond(schema)) / 1_000_000n)
}

function partitionNames(
  { list, where }: ast.PartitionList,
  schema: TableSchema,
  context: BindContext,
): NamedPartition[] {
  if (where === null) {
    return list.map(({ name, position }) => ({ name: partitionName(name, position, schema), position }))
  }
  const timestamp = schema.columns.find(({ id }) => id === schema.timestampId)
  if (timestamp === undefined) return []
  const columns = [{ source: schema.name, name: timestamp.name, type: timestamp.type, index: 0 }]
  const condition = bindCondition(where, { context, columns, aggregates: null, windows: null })
  const evaluate = compileExpression(condition, { ...context.evaluation, subqueries: [] })
  return context.catalog
    .statistics(schema.id)
    .partitions.filter(({ minTs, maxTs }) => minTs !== null && evaluate([minTs]) === true && evaluate([maxTs]) === true)
    .map(({ name }) => ({ name, position: where.position }))
}
