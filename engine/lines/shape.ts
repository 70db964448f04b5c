// Shapes: what a line looks like besides its values. A shape that the template kernel can take is learnt from a line
// that the general parser has read: the bytes before each value are predicted literally.

import { type IlpKind, ilpKinds } from '../kernels/ilp.js'
import type { WriterTable } from '../storage/writer/writer-table.js'
import type { DataType } from '../types/column-types.js'
import type { LineEntity, ParsedLine } from './line.js'

export interface ShapeColumn {
  readonly id: number
  readonly type: DataType
  readonly key: Uint8Array
  readonly kind: IlpKind
}

const newline = 10
const decoder = new TextDecoder('latin1')

/** Kinds by column type. CHAR, UUID and the like take the general path; so do arrays, whose dimensions are checked. */
const kindsByType: Partial<Record<DataType['name'], IlpKind>> = {
  BOOLEAN: ilpKinds.boolean,
  BYTE: ilpKinds.i8,
  SHORT: ilpKinds.i16,
  INT: ilpKinds.i32,
  LONG: ilpKinds.i64,
  FLOAT: ilpKinds.f32,
  DOUBLE: ilpKinds.f64,
  TIMESTAMP: ilpKinds.micros,
  TIMESTAMP_NS: ilpKinds.nanos,
  DATE: ilpKinds.millis,
  STRING: ilpKinds.text,
  VARCHAR: ilpKinds.text,
}

/** The shape's columns in the order of the line; undefined when the kernel cannot take such lines. */
export function learnShape(
  bytes: Uint8Array,
  start: number,
  line: ParsedLine,
  table: WriterTable,
): ShapeColumn[] | undefined {
  const columns: ShapeColumn[] = []
  let keyStart = start
  for (let index = 0; index < line.count; index++) {
    const entity = line.entities[index] as LineEntity
    const column = table.column(entity.name.toLowerCase())
    if (column === undefined || column.id === table.schema.timestampId) return undefined
    const kind = kindOf(entity, column.type)
    const key = bytes.slice(keyStart, entity.start)
    if (kind === undefined || key.includes(newline)) return undefined
    if (columns.some(({ id }) => id === column.id)) return undefined
    columns.push({ id: column.id, type: column.type, key, kind })
    keyStart = entity.end
  }
  return columns
}

/** Two lines with the same text have the same shape. */
export function shapeKey(columns: readonly ShapeColumn[]): string {
  return columns.map(({ key }) => decoder.decode(key)).join('\n')
}

/** A symbol is read up to its separator, so it must be a tag: a field has quotes or a suffix. */
function kindOf(entity: LineEntity, type: DataType): IlpKind | undefined {
  if (entity.kind === 'tag') return type.name === 'SYMBOL' ? ilpKinds.symbol : undefined
  return kindsByType[type.name]
}
