// Derives the form of a line of line protocol, its shape: the columns in order, with the bytes between the values, such
// as `,region=`. The general parser parses the first line of each shape. From the shape a template is made, by which
// the WebAssembly kernel (kernels/ilp.ts) decodes later lines that differ in their values only.

import { assert, nonNull } from '../base/assert.js'
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

/**
 * Kernel kinds by column type. CHAR, UUID and similar types take the general path, as do arrays, whose shape is
 * checked.
 */
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

/** The shape's columns in line order; undefined when the kernel does not support such lines. */
export function learnShape(
  bytes: Uint8Array,
  start: number,
  line: ParsedLine,
  table: WriterTable,
): ShapeColumn[] | undefined {
  const columns: ShapeColumn[] = []
  let keyStart = start
  for (let index = 0; index < line.count; index++) {
    const entity = nonNull(line.entities[index])
    const column = table.column(entity.name.toLowerCase())
    if (column === undefined || column.id === table.schema.timestampId) return undefined
    const kind = kindOf(entity, column.type)
    assert(keyStart <= entity.start, 'P2: values of a line follow each other')
    const key = bytes.slice(keyStart, entity.start)
    if (kind === undefined || key.includes(newline)) return undefined
    if (columns.some(({ id }) => id === column.id)) return undefined
    columns.push({ id: column.id, type: column.type, key, kind })
    keyStart = entity.end
  }
  return columns
}

/** Lines with the same key have the same shape. */
export function shapeKey(columns: readonly ShapeColumn[]): string {
  return columns.map(({ key }) => decoder.decode(key)).join('\n')
}

/** A symbol extends to its separator, so it must be a tag: a field has quotes or a suffix. */
function kindOf(entity: LineEntity, type: DataType): IlpKind | undefined {
  if (entity.kind === 'tag') return type.name === 'SYMBOL' ? ilpKinds.symbol : undefined
  return kindsByType[type.name]
}
