// Finds the table and columns for a table block, the rows for one table in a message of QWP (columnar protocol over
// WebSocket), and creates those that do not exist. The whole block is checked first, so that nothing is created for a
// block that is rejected. Returns the table and its column for each column of the block.

import { NetworkError, RowError } from '../base/errors.js'
import { decimalDigitsMax } from '../base/limits.js'
import { isColumnName, isTableName } from '../storage/schema/names.js'
import { type ColumnSchema, viewKind } from '../storage/schema/schema.js'
import type { NewColumn, NewTableDefaults, WriterCatalog } from '../storage/writer/writer-catalog.js'
import type { WriterTable } from '../storage/writer/writer-table.js'
import { type DataType, dataType } from '../types/column-types.js'
import type { TableBlock, WireColumn, WireType } from './message.js'

export interface TableSettings {
  readonly createTables: boolean
  readonly createColumns: boolean
  readonly defaults: NewTableDefaults
}

export interface PlannedColumn {
  readonly wire: WireColumn
  readonly schema: ColumnSchema
}

export interface TablePlan {
  readonly table: WriterTable
  readonly columns: readonly PlannedColumn[]
  /** The designated timestamp of the block; undefined: rows get the server's time. */
  readonly timestamp: WireColumn | undefined
}

/** Types of new columns. The type of an array or number follows from its values. */
const newTypes: Record<WireType, (column: WireColumn) => DataType> = {
  BOOLEAN: () => dataType('BOOLEAN'),
  BYTE: () => dataType('BYTE'),
  SHORT: () => dataType('SHORT'),
  INT: () => dataType('INT'),
  LONG: () => dataType('LONG'),
  FLOAT: () => dataType('FLOAT'),
  DOUBLE: () => dataType('DOUBLE'),
  SYMBOL: () => dataType('SYMBOL'),
  TIMESTAMP: () => dataType('TIMESTAMP'),
  TIMESTAMP_NANOS: () => dataType('TIMESTAMP_NS'),
  DATE: () => dataType('DATE'),
  UUID: () => dataType('UUID'),
  LONG256: () => dataType('LONG256'),
  GEOHASH: ({ parameter }) => dataType('GEOHASH', parameter),
  VARCHAR: () => dataType('VARCHAR'),
  DOUBLE_ARRAY: ({ parameter }) => dataType('ARRAY', parameter),
  LONG_ARRAY: ({ parameter }) => dataType('ARRAY', parameter),
  DECIMAL64: (column) => decimalType(column, 18),
  DECIMAL128: (column) => decimalType(column, 38),
  DECIMAL256: (column) => decimalType(column, decimalDigitsMax),
  CHAR: () => dataType('CHAR'),
  BINARY: () => dataType('BINARY'),
  IPv4: () => dataType('IPv4'),
}

/** Finds or creates table and columns, provisionally. Throws RowError, NetworkError. */
export function planTable(
  block: TableBlock,
  catalog: WriterCatalog,
  settings: TableSettings,
  nowMicros: number,
): TablePlan {
  const known = catalog.find(block.name)
  if (known?.schema.materialized !== undefined)
    throw new RowError(`cannot modify ${viewKind(known.schema.materialized)} [view=${block.name}]`, 0)
  if (known === undefined) checkNewTable(block.name, settings)
  const timestamp = timestampOf(block, known, settings)
  const fields = block.columns.filter((column) => column !== timestamp)
  const created = newColumns(block.name, fields, known, settings)
  const table = known ?? catalog.createProvisional(block.name, created, settings.defaults, nowMicros, typeOf(timestamp))
  if (known !== undefined && created.length > 0) catalog.addProvisional(known, created)
  return { table, columns: plannedColumns(table, fields), timestamp }
}

function typeOf(timestamp: WireColumn | undefined): DataType {
  return dataType(timestamp?.type === 'TIMESTAMP_NANOS' ? 'TIMESTAMP_NS' : 'TIMESTAMP')
}

function checkNewTable(name: string, { createTables }: TableSettings): void {
  if (!isTableName(name)) throw new NetworkError(`invalid table name [table=${name}]`)
  if (!createTables) throw new RowError(`table does not exist, creating new tables is disabled [table=${name}]`, 0)
}

/** The column without a name, or the one that is called like the designated timestamp. */
function timestampOf(
  { name, columns }: TableBlock,
  table: WriterTable | undefined,
  settings: TableSettings,
): WireColumn | undefined {
  const id = table?.schema.timestampId ?? 0
  const unnamed = columns.find((column) => column.name === '')
  if (table !== undefined && id < 0) {
    if (unnamed === undefined) return undefined
    throw new RowError(`the table has no designated timestamp [table=${name}]`, 0)
  }
  const lower = (table?.columnById(id).name ?? settings.defaults.timestampName).toLowerCase()
  const named = columns.find((column) => column.name.toLowerCase() === lower)
  if (named === undefined) return unnamed
  if (unnamed !== undefined) {
    throw new RowError(`the designated timestamp comes twice [table=${name}, column=${named.name}]`, 0)
  }
  if (table === undefined && named.type !== 'TIMESTAMP' && named.type !== 'TIMESTAMP_NANOS') {
    throw new RowError(`the designated timestamp has another type [table=${name}, column=${named.name}]`, 0)
  }
  return named
}

function newColumns(
  tableName: string,
  fields: readonly WireColumn[],
  table: WriterTable | undefined,
  { createColumns }: TableSettings,
): NewColumn[] {
  return fields.flatMap((column) => {
    const { name } = column
    if (table?.column(name.toLowerCase()) !== undefined || hasNoType(column)) return []
    if (!isColumnName(name)) throw new NetworkError(`invalid column name [table=${tableName}, column=${name}]`)
    if (table !== undefined && !createColumns) {
      throw new RowError(
        `column does not exist, creating new columns is disabled [table=${tableName}, column=${name}]`,
        0,
      )
    }
    return [{ name, type: newTypes[column.type](column) }]
  })
}

/** An array without a value does not tell its dimensions: its column is created later. */
function hasNoType({ type, values }: WireColumn): boolean {
  return (type === 'DOUBLE_ARRAY' || type === 'LONG_ARRAY') && values === 0
}

function decimalType({ name, parameter }: WireColumn, precision: number): DataType {
  if (parameter > precision) {
    throw new RowError(`a decimal has too many digits [column=${name}, scale=${parameter}, limit=${precision}]`, 0)
  }
  return dataType('DECIMAL', precision, parameter)
}

function plannedColumns(table: WriterTable, fields: readonly WireColumn[]): PlannedColumn[] {
  return fields.flatMap((wire) => {
    const schema = table.column(wire.name.toLowerCase())
    return schema === undefined ? [] : [{ wire, schema }]
  })
}
