// Derives the form of lines of line protocol of one table, its shape: the tags and fields in an order, with their names
// on the wire. The general parser parses a line whose columns the shape does not have, and the shape is extended by them.
// From the shape a template is made, by which the WebAssembly kernel (kernels/ilp.ts) decodes later lines.

import { assert, nonNull } from '../base/assert.js'
import { type IlpKey, type IlpKind, ilpKinds } from '../kernels/ilp.js'
import type { WriterTable } from '../storage/writer/writer-table.js'
import type { DataType } from '../types/column-types.js'
import type { LineEntity, ParsedLine } from './line.js'

export interface ShapeColumn extends IlpKey {
  readonly id: number
  readonly type: DataType
}

export interface LineShape {
  /** Of the table, as on the wire. */
  readonly name: Uint8Array
  readonly tags: readonly ShapeColumn[]
  readonly fields: readonly ShapeColumn[]
}

const newline = 10
const space = 32
const comma = 44

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

/** The shape of the line at `start`; undefined when the kernel does not support such lines. */
export function learnShape(
  bytes: Uint8Array,
  start: number,
  line: ParsedLine,
  table: WriterTable,
): LineShape | undefined {
  const columns: ShapeColumn[] = []
  const ids = new Set<number>()
  let keyStart = line.nameEnd
  for (let index = 0; index < line.count; index++) {
    const entity = nonNull(line.entities[index])
    const column = table.column(entity.name.toLowerCase())
    if (column === undefined || column.id === table.schema.timestampId || ids.has(column.id)) return undefined
    ids.add(column.id)
    const kind = kindOf(entity, column.type)
    assert(keyStart < entity.start, 'P2: values of a line follow each other')
    const key = bytes.slice(keyStart + 1, entity.start)
    if (kind === undefined || !isPlain(key)) return undefined
    columns.push({ id: column.id, type: column.type, key, kind })
    keyStart = entity.end
  }
  const name = bytes.slice(start, line.nameEnd)
  if (columns.length === 0 || name.includes(newline)) return undefined
  const tagCount = columns.filter(({ kind }) => kind === ilpKinds.symbol).length
  return { name, tags: columns.slice(0, tagCount), fields: columns.slice(tagCount) }
}

/** A surplus comma before the name is part of the key. */
function isPlain(key: Uint8Array): boolean {
  return key[0] !== space && key[0] !== comma && !key.includes(newline)
}

/** A symbol extends to its separator, so it must be a tag: a field has quotes or a suffix. */
function kindOf(entity: LineEntity, type: DataType): IlpKind | undefined {
  if (entity.kind === 'tag') return type.name === 'SYMBOL' ? ilpKinds.symbol : undefined
  return kindsByType[type.name]
}

/** The shape with the columns of the line, named as in the line; the same object if it has them already. */
export function extendShape(known: LineShape, line: LineShape): LineShape {
  const tags = extendColumns(known.tags, line.tags)
  const fields = extendColumns(known.fields, line.fields)
  const isKnown = tags === known.tags && fields === known.fields && isSame(known.name, line.name)
  return isKnown ? known : { name: line.name, tags, fields }
}

/** New columns are inserted behind those that precede them in the line. */
function extendColumns(known: readonly ShapeColumn[], line: readonly ShapeColumn[]): readonly ShapeColumn[] {
  const byId = new Map(known.map((column) => [column.id, column]))
  if (line.every(({ id, key }) => isSame(byId.get(id)?.key, key))) return known
  const columns = [...known]
  let next = 0
  for (const column of line) {
    const at = columns.findIndex(({ id }) => id === column.id)
    columns.splice(at < 0 ? next : at, at < 0 ? 0 : 1, column)
    next = (at < 0 ? next : at) + 1
  }
  return columns
}

function isSame(one: Uint8Array | undefined, other: Uint8Array): boolean {
  return one?.length === other.length && one.every((byte, index) => byte === other[index])
}
