// Maps column types to the types of exported Parquet files, following the Parquet specification. Parts (the Parquet
// files of tables) use a lossless mapping instead (storage/part/parquet-types.ts).
//
//   DATE        INT32 with DATE: days; the time of day is truncated
//   IPv4        INT32, the bits of the address
//   GEOHASH     as in parts, each width with its INT annotation
//   DECIMAL     FIXED of as many bytes as the precision needs, big-endian
//   ARRAY       nested LISTs of DOUBLE, or BYTE_ARRAY for raw arrays: lengths u32 each, padding to 8, the doubles
//   INTERVAL    BYTE_ARRAY with STRING: its text
//   others      as in parts

import { nullKinds, rangeKinds } from '../../kernels/parquet.js'
import type { PlanColumn } from '../../sql/plan/plan.js'
import { type ParquetTypes, parquetThrift } from '../../storage/part/parquet-thrift.js'
import { type ColumnMapping, mappingOf, physicalTypes, schemaElementOf } from '../../storage/part/parquet-types.js'
import { type DataType, dataType } from '../../types/column-types.js'

/** How values are collected for a page. 'made': the bytes of each value are computed. */
export type GatherForm = 'fixed' | 'days' | 'symbol' | 'text' | 'made' | 'list'

export function gatherFormOf({ name }: DataType, rawArrays: boolean): GatherForm {
  switch (name) {
    case 'DATE':
      return 'days'
    case 'SYMBOL':
      return 'symbol'
    case 'STRING':
    case 'VARCHAR':
    case 'BINARY':
      return 'text'
    case 'ARRAY':
      return rawArrays ? 'made' : 'list'
    case 'INTERVAL':
    case 'DECIMAL':
      return 'made'
    default:
      return 'fixed'
  }
}

const days: ColumnMapping = {
  physical: 'INT32',
  memoryBytes: 4,
  diskBytes: 4,
  optional: true,
  nullKind: nullKinds.i32Minimum,
  conversion: 'none',
  range: rangeKinds.i32,
  summed: false,
}

/** The mapping of collected values. */
export function exportMappingOf(type: DataType): ColumnMapping {
  switch (type.name) {
    case 'DATE':
      return days
    case 'IPv4':
      return { ...mappingOf(type), range: rangeKinds.i32 }
    case 'INTERVAL':
      return mappingOf(dataType('VARCHAR'))
    case 'DECIMAL': {
      const bytes = decimalBytes(type.a)
      return { ...mappingOf(type), physical: 'FIXED', memoryBytes: bytes, diskBytes: bytes, range: -1 }
    }
    default:
      return mappingOf(type)
  }
}

/** Bytes of a signed number with this many digits: 1, 2, 4, 8, 16 or 32. */
export function decimalBytes(precision: number): number {
  const digits = [2, 4, 9, 18, 38]
  const doublings = digits.filter((most) => precision > most).length
  return 2 ** doublings
}

/** The column's elements in the file's schema, and the path to its leaf. `ids`: field ids; absent in plain exports. */
export function exportSchemaOf(
  { name, type }: PlanColumn,
  rawArrays: boolean,
  ids: readonly number[] = [],
): { readonly elements: ParquetTypes.SchemaElement[]; readonly path: string[] } {
  if (type.name === 'ARRAY' && !rawArrays) return listSchema(name, type.a, ids)
  return { elements: [elementOf(name, type, ids)], path: [name] }
}

/** Stored as INT32 of fewer bits, which Iceberg does not know. */
const integers: ReadonlySet<string> = new Set(['BYTE', 'SHORT', 'CHAR'])

function elementOf(name: string, type: DataType, [id]: readonly number[]): ParquetTypes.SchemaElement {
  const { types } = parquetThrift()
  const { LogicalType, DateType, IntType, ConvertedType } = types
  const { physical, memoryBytes } = exportMappingOf(type)
  const element = schemaElementOf(name, 0, type.name === 'INTERVAL' ? dataType('VARCHAR') : type)
  // Field ids belong to tables, not to results.
  const changes: Partial<Record<keyof ParquetTypes.SchemaElement, unknown>> = { field_id: id ?? null }
  if (type.name === 'DATE') {
    changes.type = physicalTypes[physical]
    changes.logicalType = new LogicalType({ DATE: new DateType() })
    changes.converted_type = ConvertedType.DATE
  } else if (type.name === 'DECIMAL') {
    changes.type = physicalTypes.FIXED
    changes.type_length = memoryBytes
  } else if (type.name === 'IPv4' || (id !== undefined && integers.has(type.name))) {
    changes.logicalType = null
    changes.converted_type = null
  } else if (type.name === 'GEOHASH' && memoryBytes >= 4) {
    const bitWidth = memoryBytes * 8
    changes.logicalType = new LogicalType({ INTEGER: new IntType({ bitWidth, isSigned: true }) })
    changes.converted_type = bitWidth === 32 ? ConvertedType.INT_32 : ConvertedType.INT_64
  }
  return Object.assign(element, changes)
}

/**
 * optional group NAME (LIST) { repeated group list { required element .. } } for each dimension, with doubles as
 * leaves.
 */
function listSchema(name: string, dimensions: number, ids: readonly number[]): ReturnType<typeof exportSchemaOf> {
  const { types } = parquetThrift()
  const { FieldRepetitionType, ConvertedType } = types
  const elements: ParquetTypes.SchemaElement[] = []
  const path: string[] = []
  for (let dimension = 0; dimension < dimensions; dimension++) {
    const groupName = dimension === 0 ? name : 'element'
    const group = new types.SchemaElement({
      name: groupName,
      num_children: 1,
      repetition_type: dimension === 0 ? FieldRepetitionType.OPTIONAL : FieldRepetitionType.REQUIRED,
    })
    group.logicalType = new types.LogicalType({ LIST: new types.ListType() })
    group.converted_type = ConvertedType.LIST
    identify(group, ids[dimension])
    elements.push(
      group,
      new types.SchemaElement({ name: 'list', num_children: 1, repetition_type: FieldRepetitionType.REPEATED }),
    )
    path.push(groupName, 'list')
  }
  const leaf = new types.SchemaElement({
    name: 'element',
    type: types.Type.DOUBLE,
    repetition_type: FieldRepetitionType.REQUIRED,
  })
  identify(leaf, ids[dimensions])
  return { elements: [...elements, leaf], path: [...path, 'element'] }
}

function identify(element: ParquetTypes.SchemaElement, id: number | undefined): void {
  if (id !== undefined) element.field_id = id
}
