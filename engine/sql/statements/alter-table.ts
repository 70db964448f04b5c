// ALTER TABLE: checks, then changes of the schema for the writer.

import { SqlError } from '../../base/errors.js'
import { nameBytesMax } from '../../base/limits.js'
import type { SchemaChange } from '../../storage/messages.js'
import {
  type ColumnSchema,
  findColumn,
  type PartitionUnit,
  type TableSchema,
  type TableVersion,
} from '../../storage/schema.js'
import { sameType } from '../../types/column-types.js'
import { parseByPattern } from '../../types/timestamp-pattern.js'
import type { BindContext } from '../bind/bind-context.js'
import { bindCondition } from '../bind/expression.js'
import { typeOfName } from '../bind/types.js'
import { compileExpression } from '../functions/evaluate.js'
import type * as ast from '../parse/ast.js'
import { checkColumnName, checkTableName, columnOf, dedupKeysOf, powerOfTwo, ttlOf } from './create-table.js'
import type { PlannedStatement } from './planned.js'
import { castProgram } from './rewrite.js'
import { tableOf } from './show.js'
import { optionOf } from './table-options.js'
import { defaultIndexCapacity, defaultSymbolCapacity } from './table-relations.js'
import { isWalTable } from './tables-relations.js'

export function planAlterTable(statement: ast.AlterTable, context: BindContext): PlannedStatement {
  const { table, action } = statement
  if (statement.ifExists && context.catalog.table(table.name) === undefined) return changed([])
  const version = tableOf(table, context)
  return changed(changesOf(action, version, context))
}

function changed(changes: readonly SchemaChange[]): PlannedStatement {
  return { kind: 'change', changes, tag: 'ALTER TABLE' }
}

function changesOf(action: ast.AlterAction, version: TableVersion, context: BindContext): SchemaChange[] {
  const { schema } = version
  const alter = (changes: Extract<SchemaChange, { kind: 'alterTable' }>['changes']): SchemaChange[] => [
    { kind: 'alterTable', tableId: schema.id, changes },
  ]
  switch (action.kind) {
    case 'add columns':
      return addColumns(action, version)
    case 'drop columns':
      return dropColumns(action, schema)
    case 'rename columns':
      return renameColumns(action, schema)
    case 'change type':
      return changeType(action, version, context)
    case 'rename':
      return renameTable(schema, action.newName, context)
    case 'dedup enable':
      return alter({ dedupKeys: dedupKeysOf(action.keys, schema.columns, schema.timestampId) })
    case 'dedup disable':
      return alter({ dedupKeys: [] })
    case 'set ttl':
      if (schema.partitionBy === 'NONE')
        throw new SqlError('cannot set TTL on a non-partitioned table', action.ttl.position)
      return alter({ ttl: ttlOf(action.ttl) })
    case 'set parameter':
      return alter(optionOf(action.option))
    case 'set type':
      return alter({ bypassWal: !action.wal })
    case 'partitions':
      return partitions(action, version, context)
    default:
      return symbolChanges(action, schema)
  }
}

type SymbolAction = Extract<
  ast.AlterAction,
  {
    kind:
      | 'add index'
      | 'drop index'
      | 'set cache'
      | 'set symbol capacity'
      | 'squash partitions'
      | 'resume wal'
      | 'suspend wal'
  }
>

/** Indexes, caches and capacities of symbols are promises about storage that this one has no use for: they are only shown. */
function symbolChanges(action: SymbolAction, schema: TableSchema): SchemaChange[] {
  switch (action.kind) {
    case 'squash partitions':
    case 'resume wal':
      return []
    case 'suspend wal':
      throw new SqlError('Cannot suspend table, database is not in dev mode', 0)
    case 'add index': {
      const capacity = powerOfTwo(action.index.capacity ?? defaultIndexCapacity)
      return columnOptions(schema, checkSymbol(action.column, schema, 'indexes are'), {
        indexed: { blockCapacity: capacity },
      })
    }
    case 'drop index':
      return columnOptions(schema, checkSymbol(action.column, schema, 'indexes are'), { indexed: null })
    case 'set cache': {
      const column = checkSymbol(action.column, schema, 'cache is')
      const { capacity } = column.symbol ?? { capacity: defaultSymbolCapacity }
      return columnOptions(schema, column, { symbol: { capacity, cached: action.cache } })
    }
    case 'set symbol capacity': {
      const column = checkSymbol(action.column, schema, 'symbol capacity is')
      if (action.capacity < 2) throw new SqlError('min symbol capacity is 2', action.capacityPosition)
      const cached = column.symbol?.cached ?? true
      return columnOptions(schema, column, { symbol: { capacity: powerOfTwo(action.capacity), cached } })
    }
  }
}

type ColumnOptions = Omit<Extract<SchemaChange, { kind: 'alterColumn' }>, 'kind' | 'tableId' | 'columnId'>

function columnOptions({ id: tableId }: TableSchema, { id: columnId }: ColumnSchema, options: ColumnOptions) {
  return [{ kind: 'alterColumn', tableId, columnId, ...options } as const]
}

function checkSymbol({ name, position }: ast.Name, schema: TableSchema, what: string): ColumnSchema {
  const column = existing(name, position, schema)
  if (column.type.name === 'SYMBOL') return column
  throw new SqlError(`${what} only supported for symbol type [column=${name}, type=${column.type.name}]`, position)
}

function existing(name: string, position: number, schema: TableSchema): ColumnSchema {
  const column = findColumn(schema, name)
  if (column === undefined) throw SqlError.columnMissing(name, position)
  return column
}

// Columns -----------------------------------------------------------------------------------------------------------

/** One column at a time for WAL tables, as clients of this dialect know it: several are no single transaction. */
function addColumns(
  { columns, ifNotExists }: Extract<ast.AlterAction, { kind: 'add columns' }>,
  version: TableVersion,
): SchemaChange[] {
  const { schema } = version
  if (columns.length > 1 && isWalTable(version)) {
    const { name, version: structure } = schema
    throw new SqlError(
      `statement is either no-op, or contains multiple transactions, such as 'alter table add column col1, col2', and currently not supported for WAL tables [table=${name}, oldStructureVersion=${structure - 1}, newStructureVersion=${structure - 1 + columns.length}]`,
      columns[1]?.position ?? 0,
    )
  }
  const taken = new Set<string>()
  return columns.flatMap((definition): SchemaChange[] => {
    const column = columnOf(definition)
    const isKnown = findColumn(schema, column.name) !== undefined || taken.has(column.name.toLowerCase())
    if (isKnown && ifNotExists) return []
    if (isKnown) throw new SqlError(`column '${column.name}' already exists`, definition.position)
    const place = schema.columns.length + taken.size
    taken.add(column.name.toLowerCase())
    return [{ kind: 'addColumn', tableId: schema.id, column: { ...column, place }, ifNotExists }]
  })
}

function dropColumns(
  { columns, ifExists }: Extract<ast.AlterAction, { kind: 'drop columns' }>,
  schema: TableSchema,
): SchemaChange[] {
  return columns.flatMap(({ name, position }): SchemaChange[] => {
    if (ifExists && findColumn(schema, name) === undefined) return []
    const { id } = existing(name, position, schema)
    if (id === schema.timestampId) {
      throw new SqlError(`cannot remove designated timestamp column [table=${schema.name}, column=${name}]`, 0)
    }
    return [{ kind: 'dropColumn', tableId: schema.id, columnId: id }]
  })
}

function renameColumns(
  { pairs }: Extract<ast.AlterAction, { kind: 'rename columns' }>,
  schema: TableSchema,
): SchemaChange[] {
  return pairs.map(({ column, newName }): SchemaChange => {
    const { id } = existing(column.name, column.position, schema)
    checkColumnName(newName.name, newName.position)
    const other = findColumn(schema, newName.name)
    if (other !== undefined && other.id !== id) throw new SqlError(' column already exists', newName.position)
    return { kind: 'renameColumn', tableId: schema.id, columnId: id, name: newName.name }
  })
}

function changeType(
  { column, definition }: Extract<ast.AlterAction, { kind: 'change type' }>,
  version: TableVersion,
  context: BindContext,
): SchemaChange[] {
  const { schema } = version
  const found = findColumn(schema, column.name)
  if (found === undefined)
    throw new SqlError(`column '${column.name}' does not exist in table '${schema.name}'`, column.position)
  const type = typeOfName(definition.type)
  if (type === undefined)
    throw new SqlError(`unsupported column type: ${definition.type.name}`, definition.type.position)
  if (found.id === schema.timestampId)
    throw new SqlError('cannot change type of designated timestamp column', definition.type.position)
  if (sameType(found.type, type))
    throw new SqlError(`column '${column.name}' type is already '${type.name}'`, definition.type.position)
  const program = castProgram(version, found.name, type, context)
  return [{ kind: 'changeType', tableId: schema.id, columnId: found.id, type, program }]
}

export function renameTable(
  schema: TableSchema,
  newName: ast.Name | ast.TableName,
  { catalog }: BindContext,
): SchemaChange[] {
  const { name } = newName
  if (Buffer.byteLength(name) > nameBytesMax || /[/\\]/.test(name))
    throw new SqlError(`invalid table name [table=${name}]`, newName.position)
  checkTableName(name, newName.position)
  const other = catalog.table(name)
  if ((other !== undefined && other.schema.id !== schema.id) || catalog.view(name) !== undefined) {
    throw new SqlError(
      `cannot rename table, new name is already in use [table=${schema.name}, toTableName=${name}]`,
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

function partitions(
  action: Extract<ast.AlterAction, { kind: 'partitions' }>,
  version: TableVersion,
  context: BindContext,
): SchemaChange[] {
  const { schema } = version
  if (schema.partitionBy === 'NONE') {
    const word = context.sql.toLowerCase().indexOf('partition', action.position)
    throw new SqlError('table is not partitioned', Math.max(word, action.position))
  }
  const names = partitionNames(action.partitions, action.operation === 'attach', version, context)
  const named = (operation: 'drop' | 'detach' | 'attach'): SchemaChange[] =>
    names.length === 0 ? [] : [{ kind: 'partitions', tableId: schema.id, operation, partitions: names }]
  switch (action.operation) {
    case 'drop':
    case 'force drop':
      return named('drop')
    case 'detach':
    case 'attach':
      return named(action.operation)
    case 'convert to parquet':
    case 'convert to native':
      // Partitions are Parquet files in any case.
      return []
  }
}

function partitionNames(
  { list, where }: ast.PartitionList,
  attaching: boolean,
  version: TableVersion,
  context: BindContext,
): string[] {
  const { schema } = version
  const known = context.catalog.figures(schema.id).partitions
  if (where === null) {
    const pattern = partitionPatterns[schema.partitionBy]
    const names = list.map(({ name, position }) => {
      if (parseByPattern(name, 'TIMESTAMP', pattern) === null)
        throw new SqlError(`'${pattern}' expected, found [ts=${name}]`, position)
      return name
    })
    return attaching ? names : names.filter((name) => known.some((partition) => partition.name === name))
  }
  const timestamp = schema.columns.find(({ id }) => id === schema.timestampId)
  if (timestamp === undefined) return []
  const columns = [{ source: schema.name, name: timestamp.name, type: timestamp.type, index: 0 }]
  const condition = bindCondition(where, { context, columns, aggregates: null, windows: null })
  const evaluate = compileExpression(condition, { ...context.evaluation, subqueries: [] })
  return known
    .filter(({ minTs, maxTs }) => minTs !== null && evaluate([minTs]) === true && evaluate([maxTs]) === true)
    .map(({ name }) => name)
}
