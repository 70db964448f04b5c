// Maps the columns of a table to those of its Iceberg table: names, field ids and types, and the SQL expressions by
// which a query computes the values of the data files.
//
//   BOOLEAN                    boolean
//   BYTE SHORT CHAR INT        int; CHAR as its UTF-16 code unit
//   LONG                       long
//   FLOAT DOUBLE               float double
//   DATE TIMESTAMP             timestamptz (microseconds)
//   TIMESTAMP_NS               timestamptz_ns in format version 3; in version 2 timestamptz, and in a helper column the
//                              nanoseconds beyond its microseconds: int
//   STRING VARCHAR SYMBOL      string
//   UUID IPv4 GEOHASH          string: their text
//   BINARY                     binary
//   LONG256                    fixed[32]: four 64-bit words, little-endian, the lowest first
//   DECIMAL(p,s)               decimal(p,s) up to 38 digits, else string
//   DOUBLE[]..                 list<double>, nested for each further dimension
//
// Field ids follow from column ids, which are never reused:
//
//   column             id + 1
//   element of a list  1,000,000 + id, and 10,000,000 more for each further dimension
//   helper column      2,000,000 + id

import { type ColumnSchema, liveColumns, type TableSchema } from '../storage/schema/schema.js'
import type { DataType } from '../types/column-types.js'

interface IcebergList {
  readonly type: 'list'
  readonly 'element-id': number
  readonly element: IcebergType
  readonly 'element-required': boolean
}

export type IcebergType = string | IcebergList

export interface IcebergField {
  readonly id: number
  readonly name: string
  readonly required: false
  readonly type: IcebergType
}

export interface LakeColumn {
  readonly field: IcebergField
  /** The expression of its values. */
  readonly sql: string
  /** Its own and those of the elements of its lists. */
  readonly fieldIds: readonly number[]
  /** The field has a wider type than the values in the file, whose bounds are then left out. */
  readonly isWidened?: boolean
}

const elementIds = 1_000_000
const helperIds = 2_000_000
const dimensionIds = 10_000_000
const decimalDigitsMax = 38
const textTypes: ReadonlySet<string> = new Set(['UUID', 'IPv4'])

/** The columns in the order of SELECT *. */
export function lakeColumns(schema: TableSchema): LakeColumn[] {
  const live = liveColumns(schema)
  const taken = new Set(live.map(({ name }) => name.toLowerCase()))
  const hasNanos = formatVersionOf(schema) === 3
  return live.flatMap((column) => {
    const own = lakeColumn(column, hasNanos)
    return column.type.name === 'TIMESTAMP_NS' && !hasNanos ? [own, restColumn(column, taken)] : [own]
  })
}

/** Of the Iceberg table. */
export function formatVersionOf({ lake }: Pick<TableSchema, 'lake'>): 2 | 3 {
  return lake?.formatVersion ?? 2
}

export function fieldIdOf({ id }: Pick<ColumnSchema, 'id'>): number {
  return id + 1
}

/** The query for all rows of a table, whose columns are those of the Iceberg table. */
export function lakeQuery(schema: TableSchema, columns: readonly LakeColumn[]): string {
  const list = columns.map(({ sql, field }) => `${sql} ${quoted(field.name)}`)
  return `select ${list.join()} from ${quoted(schema.name)}`
}

function quoted(name: string): string {
  return `"${name.replaceAll('"', '""')}"`
}

/** `hasNanos`: the format version has a type for nanoseconds. */
function lakeColumn(column: ColumnSchema, hasNanos: boolean): LakeColumn {
  const { id, name, type } = column
  const dimensions = type.name === 'ARRAY' ? type.a : 0
  const ids = Array.from({ length: dimensions }, (_, dimension) => elementIds + id + dimension * dimensionIds)
  const isNanos = hasNanos && type.name === 'TIMESTAMP_NS'
  return {
    field: { id: fieldIdOf(column), name, required: false, type: isNanos ? 'timestamptz_ns' : typeOf(type, ids) },
    sql: isNanos ? quoted(name) : sqlOf(type, quoted(name)),
    fieldIds: [fieldIdOf(column), ...ids],
  }
}

/** The nanoseconds of a TIMESTAMP_NS that microseconds lack. */
function restColumn({ id, name }: ColumnSchema, taken: Set<string>): LakeColumn {
  let own = `${name}_nanos`
  while (taken.has(own.toLowerCase())) own = `${own}_`
  taken.add(own.toLowerCase())
  const column = quoted(name)
  const sql = `cast(cast(${column} as long) - cast(cast(${column} as timestamp) as long) * 1000 as int)`
  const field: IcebergField = { id: helperIds + id, name: own, required: false, type: 'int' }
  return { field, sql, fieldIds: [field.id] }
}

function typeOf(type: DataType, elements: readonly number[]): IcebergType {
  switch (type.name) {
    case 'BOOLEAN':
      return 'boolean'
    case 'BYTE':
    case 'SHORT':
    case 'CHAR':
    case 'INT':
      return 'int'
    case 'LONG':
      return 'long'
    case 'FLOAT':
      return 'float'
    case 'DOUBLE':
      return 'double'
    case 'DATE':
    case 'TIMESTAMP':
    case 'TIMESTAMP_NS':
      return 'timestamptz'
    case 'BINARY':
      return 'binary'
    case 'LONG256':
      return 'fixed[32]'
    case 'DECIMAL':
      return type.a <= decimalDigitsMax ? `decimal(${type.a}, ${type.b})` : 'string'
    case 'ARRAY':
      return listType(elements)
    default:
      return 'string'
  }
}

function listType([id = 0, ...inner]: readonly number[]): IcebergList {
  const element = inner.length === 0 ? 'double' : listType(inner)
  return { type: 'list', 'element-id': id, element, 'element-required': true }
}

function sqlOf(type: DataType, column: string): string {
  if (textTypes.has(type.name)) return `cast(${column} as varchar)`
  // The text of a GEOHASH that is NULL is empty.
  if (type.name === 'GEOHASH') return `case when ${column} is not null then cast(${column} as varchar) end`
  if (type.name === 'DATE' || type.name === 'TIMESTAMP_NS') return `cast(${column} as timestamp)`
  if (type.name === 'DECIMAL' && type.a > decimalDigitsMax) return `cast(${column} as varchar)`
  return column
}
