// Maps each column type to the Parquet type by which parts, the Parquet files of tables, store it without loss. Parquet
// files that users export through `/exp` have another mapping.
//
//   BOOLEAN                 BOOLEAN required
//   BYTE SHORT CHAR         INT32 with INT(8) INT(16) UINT(16) required: a missing column reads 0
//   INT LONG                INT32 INT64 optional
//   IPv4                    INT32 with UINT(32) optional
//   DATE TIMESTAMP TIMESTAMP_NS   INT64 with TIMESTAMP(MILLIS, MICROS, NANOS, UTC) optional
//   FLOAT DOUBLE            FLOAT DOUBLE optional; any NaN is NULL
//   GEOHASH(bits)           INT32, with INT(8) or INT(16) up to 7 or 15 bits, or INT64 above 31 bits; optional
//   DECIMAL(p,s)            INT64, FIXED(16) or FIXED(32) with DECIMAL optional; fixed ones big-endian
//   UUID                    FIXED(16) with UUID optional, big-endian
//   LONG256                 FIXED(32) optional, in memory layout
//   SYMBOL STRING VARCHAR   BYTE_ARRAY with STRING optional
//   BINARY ARRAY            BYTE_ARRAY optional; an array in memory layout (shape and values)

import { assert } from '../../base/assert.js'
import { nullKinds, rangeKinds, widenKinds } from '../../kernels/parquet.js'
import { type ColumnType, type DataType, widthOf } from '../../types/column-types.js'
import { type ParquetTypes, parquetThrift } from './parquet-thrift.js'

export const physicalTypes = {
  BOOLEAN: 0,
  INT32: 1,
  INT64: 2,
  FLOAT: 4,
  DOUBLE: 5,
  BYTE_ARRAY: 6,
  FIXED: 7,
} as const

type Physical = keyof typeof physicalTypes

/** How a value is converted between memory and disk. */
type Conversion = 'none' | 'boolean' | 'i8' | 'i16' | 'u16' | 'reverse' | 'symbol' | 'text'

export interface ColumnMapping {
  readonly physical: Physical
  /** Bytes of a value in memory; 8 for entries of strings. */
  readonly memoryBytes: number
  /** Bytes of a value in a PLAIN page; 0 for booleans and strings. */
  readonly diskBytes: number
  readonly optional: boolean
  readonly nullKind: number
  readonly conversion: Conversion
  /** One of rangeKinds, or -1 if pages have no zone map. */
  readonly range: number
  /** Whether the part index stores sums of the pages. */
  readonly summed: boolean
}

/** Parquet's numbers of the encodings, as stored in files. */
export const encodings = {
  plain: 0,
  rle: 3,
  delta: 5,
  deltaLength: 6,
  dictionary: 8,
  byteStreamSplit: 9,
} as const

export const widenKindOf = { i8: widenKinds.i8, i16: widenKinds.i16, u16: widenKinds.u16 } as const

type Row = readonly [Physical, nullKind: number, Conversion, range: number]

const mappings: Readonly<Record<Exclude<ColumnType, 'GEOHASH' | 'DECIMAL' | 'INTERVAL'>, Row>> = {
  BOOLEAN: ['BOOLEAN', nullKinds.none, 'boolean', -1],
  BYTE: ['INT32', nullKinds.none, 'i8', rangeKinds.i32],
  SHORT: ['INT32', nullKinds.none, 'i16', rangeKinds.i32],
  CHAR: ['INT32', nullKinds.none, 'u16', rangeKinds.i32],
  INT: ['INT32', nullKinds.i32Minimum, 'none', rangeKinds.i32],
  LONG: ['INT64', nullKinds.i64Minimum, 'none', rangeKinds.i64],
  DATE: ['INT64', nullKinds.i64Minimum, 'none', rangeKinds.i64],
  TIMESTAMP: ['INT64', nullKinds.i64Minimum, 'none', rangeKinds.i64],
  TIMESTAMP_NS: ['INT64', nullKinds.i64Minimum, 'none', rangeKinds.i64],
  FLOAT: ['FLOAT', nullKinds.f32, 'none', rangeKinds.f32],
  DOUBLE: ['DOUBLE', nullKinds.f64, 'none', rangeKinds.f64],
  IPv4: ['INT32', nullKinds.i32Zero, 'none', rangeKinds.u32],
  UUID: ['FIXED', nullKinds.words16, 'reverse', -1],
  LONG256: ['FIXED', nullKinds.words32, 'none', -1],
  SYMBOL: ['BYTE_ARRAY', nullKinds.i32, 'symbol', -1],
  STRING: ['BYTE_ARRAY', nullKinds.entry, 'text', -1],
  VARCHAR: ['BYTE_ARRAY', nullKinds.entry, 'text', -1],
  BINARY: ['BYTE_ARRAY', nullKinds.entry, 'text', -1],
  ARRAY: ['BYTE_ARRAY', nullKinds.entry, 'text', -1],
}

const geohashRows: Readonly<Record<number, Row>> = {
  1: ['INT32', nullKinds.i8, 'i8', rangeKinds.i32],
  2: ['INT32', nullKinds.i16, 'i16', rangeKinds.i32],
  4: ['INT32', nullKinds.i32, 'none', rangeKinds.i32],
  8: ['INT64', nullKinds.i64, 'none', rangeKinds.i64],
}

const decimalRows: Readonly<Record<number, Row>> = {
  8: ['INT64', nullKinds.i64Minimum, 'none', rangeKinds.i64],
  16: ['FIXED', nullKinds.decimal16, 'reverse', -1],
  32: ['FIXED', nullKinds.decimal32, 'reverse', -1],
}

const summedTypes: ReadonlySet<string> = new Set(['SHORT', 'INT', 'LONG', 'FLOAT', 'DOUBLE'])

export function mappingOf(type: DataType): ColumnMapping {
  const memoryBytes = widthOf(type)
  const [physical, nullKind, conversion, range] = rowOf(type, memoryBytes)
  const optional = nullKind !== nullKinds.none
  const summed = summedTypes.has(type.name)
  return {
    ...{ physical, memoryBytes, diskBytes: diskBytesOf(physical, memoryBytes), optional, nullKind, conversion, range },
    summed,
  }
}

function rowOf(type: DataType, width: number): Row {
  assert(type.name !== 'INTERVAL', 'R1: an INTERVAL is never stored')
  if (type.name !== 'GEOHASH' && type.name !== 'DECIMAL') return mappings[type.name]
  const row = (type.name === 'GEOHASH' ? geohashRows : decimalRows)[width]
  assert(row !== undefined, 'R1: a parameterised type has one of its widths')
  return row
}

function diskBytesOf(physical: Physical, memoryBytes: number): number {
  if (physical === 'INT32' || physical === 'FLOAT') return 4
  if (physical === 'INT64' || physical === 'DOUBLE') return 8
  return physical === 'FIXED' ? memoryBytes : 0
}

/** The column's element in the schema of the Parquet file. */
export function schemaElementOf(name: string, fieldId: number, type: DataType): ParquetTypes.SchemaElement {
  const { types } = parquetThrift()
  const mapping = mappingOf(type)
  const element = new types.SchemaElement({
    name,
    type: physicalTypes[mapping.physical] as number as ParquetTypes.Type,
    repetition_type: mapping.optional ? types.FieldRepetitionType.OPTIONAL : types.FieldRepetitionType.REQUIRED,
    field_id: fieldId,
  })
  if (mapping.physical === 'FIXED') element.type_length = mapping.memoryBytes
  annotate(element, type, mapping)
  return element
}

/** Adds the logical type, and the converted type for older readers. */
function annotate(element: ParquetTypes.SchemaElement, type: DataType, mapping: ColumnMapping): void {
  const { types } = parquetThrift()
  const logical = new types.LogicalType({})
  const integer = (bitWidth: number, isSigned: boolean, converted: ParquetTypes.ConvertedType) => {
    logical.INTEGER = new types.IntType({ bitWidth, isSigned })
    element.converted_type = converted
  }
  const timestamp = (unit: ParquetTypes.TimeUnit) => {
    logical.TIMESTAMP = new types.TimestampType({ isAdjustedToUTC: true, unit })
  }
  switch (type.name) {
    case 'BYTE':
      integer(8, true, types.ConvertedType.INT_8)
      break
    case 'SHORT':
      integer(16, true, types.ConvertedType.INT_16)
      break
    case 'CHAR':
      integer(16, false, types.ConvertedType.UINT_16)
      break
    case 'IPv4':
      integer(32, false, types.ConvertedType.UINT_32)
      break
    case 'GEOHASH':
      if (mapping.memoryBytes === 1) integer(8, true, types.ConvertedType.INT_8)
      if (mapping.memoryBytes === 2) integer(16, true, types.ConvertedType.INT_16)
      break
    case 'DATE':
      timestamp(new types.TimeUnit({ MILLIS: new types.MilliSeconds() }))
      element.converted_type = types.ConvertedType.TIMESTAMP_MILLIS
      break
    case 'TIMESTAMP':
      timestamp(new types.TimeUnit({ MICROS: new types.MicroSeconds() }))
      element.converted_type = types.ConvertedType.TIMESTAMP_MICROS
      break
    case 'TIMESTAMP_NS':
      timestamp(new types.TimeUnit({ NANOS: new types.NanoSeconds() }))
      break
    case 'UUID':
      logical.UUID = new types.UUIDType()
      break
    case 'DECIMAL':
      logical.DECIMAL = new types.DecimalType({ precision: type.a, scale: type.b })
      element.converted_type = types.ConvertedType.DECIMAL
      element.precision = type.a
      element.scale = type.b
      break
    case 'SYMBOL':
    case 'STRING':
    case 'VARCHAR':
      logical.STRING = new types.StringType()
      element.converted_type = types.ConvertedType.UTF8
      break
    default:
      return
  }
  if (Object.values(logical).some((value) => value !== null && value !== undefined)) element.logicalType = logical
}
