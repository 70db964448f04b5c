// Maps the schema of a Parquet file that another program wrote to column types of this server.
//
//   BOOLEAN                        BOOLEAN
//   INT32                          INT; INT(8) BYTE, INT(16) and UINT(8) SHORT, UINT(32) LONG, DATE, DECIMAL
//   INT64                          LONG (larger values of UINT(64) are an error), TIMESTAMP, TIMESTAMP_NS, DECIMAL
//   INT96                          TIMESTAMP_NS
//   FLOAT DOUBLE                   FLOAT DOUBLE
//   BYTE_ARRAY                     VARCHAR for strings, JSON and enums, DECIMAL, else BINARY
//   FIXED_LEN_BYTE_ARRAY           UUID, FLOAT16 as FLOAT, DECIMAL, else BINARY
//   lists of numbers               DOUBLE[], lists of lists DOUBLE[][] ..
//   structs                        the columns <struct>_<field>
//
// Times of day become integers in the unit of the file. Maps and other lists are rejected by name. With `exact` (a
// caller's option), INT and LONG are DECIMALs, which keep the smallest integers; in INT and LONG these represent NULL.

import { SqlError } from '../base/errors.js'
import { arrayDimensionsMax, decimalDigitsMax, structDepthMax } from '../base/limits.js'
import type { ParquetTypes } from '../storage/part/parquet-thrift.js'
import { type ColumnType, type DataType, dataType, typeText, widthOf } from '../types/column-types.js'
import { type ForeignFile, pathSeparator } from './foreign-file.js'

/** How stored values are converted to values in memory. */
type Form =
  | 'same'
  | 'boolean'
  | 'i8'
  | 'i16'
  | 'unsigned 32'
  | 'unsigned 64'
  | 'days'
  | 'milliseconds'
  | 'int96'
  | 'half'
  | 'uuid'
  | 'decimal'
  | 'text'
  | 'bytes'
  | 'widened'

export interface ForeignColumn {
  readonly name: string
  /** The names of the structs that it is in, and its own. */
  readonly path: string
  readonly type: DataType
  /** Conversion of the values; the elements of arrays become DOUBLE. */
  readonly form: Form
  readonly physical: number
  /** Bytes of a value in the file; 0 for BOOLEAN and BYTE_ARRAY. */
  readonly bytes: number
  /** Index among the leaves of the schema. */
  readonly leaf: number
  /** Definition level of a value that is present. */
  readonly definition: number
  readonly lists: readonly ListLevels[]
  /** Identifies the column in an Iceberg table; null: the file does not say. */
  readonly fieldId: number | null
}

/** One dimension of an array: the definition levels from which on the list exists, and has an element. */
interface ListLevels {
  readonly exists: number
  readonly filled: number
}

export const physical = {
  ...{ boolean: 0, int32: 1, int64: 2, int96: 3, float: 4, double: 5, bytes: 6, fixed: 7 },
} as const

type Element = ParquetTypes.SchemaElement
type Leaf = Pick<ForeignColumn, 'type' | 'form' | 'physical' | 'bytes'>

/** Numbers of the format. */
const repetitions = { required: 0, optional: 1, repeated: 2 } as const
const converted = {
  ...{ map: 1, keyValue: 2, list: 3, utf8: 0, enum: 4, decimal: 5, date: 6, millis: 9, micros: 10, json: 19 },
  ...{ uint8: 11, uint16: 12, uint32: 13, uint64: 14, int8: 15, int16: 16 },
} as const

/** Throws SqlError for columns that are not supported. */
export function foreignColumns(file: ForeignFile, elements: readonly Element[], exact: boolean): ForeignColumn[] {
  const tree = new SchemaTree(file, elements)
  const root = tree.next()
  const found = Array.from({ length: tree.children(root) }, () => columnsOf(file, tree, top, false)).flat()
  if (tree.hasStructs) requireDistinctNames(file, found)
  const columns = exact ? found.map(asExact) : found
  if (!tree.ended) throw file.error('the schema is damaged')
  if (columns.length === 0) throw file.error('the file has no columns')
  return columns
}

function requireDistinctNames(file: ForeignFile, columns: readonly ForeignColumn[]): void {
  const names = new Set<string>()
  for (const { name } of columns) {
    if (names.has(name.toLowerCase())) throw file.error('two columns have the name', { column: name })
    names.add(name.toLowerCase())
  }
}

/**
 * The columns of types that are supported. The others of an Iceberg table's file may be of columns that it has dropped.
 */
export function supportedColumns(file: ForeignFile, elements: readonly Element[]): ForeignColumn[] {
  const tree = new SchemaTree(file, elements)
  const root = tree.next()
  const columns = Array.from({ length: tree.children(root) }, () => columnsOf(file, tree, top, true)).flat()
  if (!tree.ended) throw file.error('the schema is damaged')
  return columns
}

export function leafCount(elements: readonly Element[]): number {
  return elements.filter(({ num_children: count }) => !count).length
}

/** The column as one of a type that it may have been promoted to; null: it is no such type. */
export function promoted(column: ForeignColumn, type: DataType): ForeignColumn | null {
  const { type: own, physical: kind, bytes, lists } = column
  if (typeText(own) === typeText(type)) return column
  if (lists.length > 0) return null
  const isInteger = kind === physical.int32 && (own.name === 'INT' || own.name === 'SHORT' || own.name === 'BYTE')
  if (isInteger && type.name === 'INT') return { ...column, type, form: 'same' }
  if (isInteger && type.name === 'LONG') return { ...column, type, form: 'widened' }
  if (own.name === 'FLOAT' && kind === physical.float && type.name === 'DOUBLE')
    return { ...column, type, form: 'widened' }
  const isWider = own.name === 'DECIMAL' && type.name === 'DECIMAL' && own.b === type.b && own.a <= type.a
  if (isWider) return { ...column, type }
  if (kind === physical.fixed && bytes === 16 && own.name === 'BINARY' && type.name === 'UUID')
    return { ...column, type, form: 'uuid' }
  return kind === physical.bytes && own.name === 'BINARY' && type.name === 'VARCHAR'
    ? { ...column, type, form: 'text' }
    : null
}

const exactDigits: Readonly<Partial<Record<ColumnType, number>>> = { INT: 10, LONG: 19 }

function asExact(column: ForeignColumn): ForeignColumn {
  const digits = column.form === 'same' ? exactDigits[column.type.name] : undefined
  return digits === undefined ? column : { ...column, type: dataType('DECIMAL', digits), form: 'decimal' }
}

/** The elements of a schema in depth-first order. */
class SchemaTree {
  readonly #file: ForeignFile
  readonly #elements: readonly Element[]
  #at = 0
  leaves = 0
  hasStructs = false

  constructor(file: ForeignFile, elements: readonly Element[]) {
    this.#file = file
    this.#elements = elements
  }

  get ended(): boolean {
    return this.#at === this.#elements.length
  }

  next(): Element {
    const element = this.#elements[this.#at++]
    if (element === undefined || typeof element.name !== 'string') throw this.#file.error('the schema is damaged')
    return element
  }

  place(): { readonly at: number; readonly leaves: number } {
    return { at: this.#at, leaves: this.leaves }
  }

  /** Behind the element at the place, and all below it. */
  skip({ at, leaves }: { readonly at: number; readonly leaves: number }): void {
    this.#at = at
    this.leaves = leaves
    for (let left = 1; left > 0; left--) {
      const children = this.children(this.next())
      left += children
      if (children === 0) this.leaves++
    }
  }

  children({ num_children: count }: Element): number {
    const children = count ?? 0
    if (children < 0 || children > this.#elements.length - this.#at) throw this.#file.error('the schema is damaged')
    return children
  }
}

/** The structs that a column is in. */
interface Above {
  /** What its name begins with. */
  readonly name: string
  /** What its path begins with. */
  readonly path: string
  /** Definition level of a value of the innermost one. */
  readonly definition: number
  readonly depth: number
}

const top: Above = { name: '', path: '', definition: 0, depth: 0 }

/** The columns of the next element, several for a struct. `lenient`: those that are not supported are left out. */
function columnsOf(file: ForeignFile, tree: SchemaTree, above: Above, lenient: boolean): ForeignColumn[] {
  const before = tree.place()
  try {
    const element = tree.next()
    const children = tree.children(element)
    if (children === 0 || !isStruct(element) || above.depth >= structDepthMax)
      return [columnOf(file, tree, element, above)]
    tree.hasStructs = true
    const definition = above.definition + (repetitionOf(element) === repetitions.optional ? 1 : 0)
    const [name, path] = [`${above.name}${element.name}_`, `${above.path}${element.name}${pathSeparator}`]
    const inner = { name, path, definition, depth: above.depth + 1 }
    return Array.from({ length: children }, () => columnsOf(file, tree, inner, lenient)).flat()
  } catch (error) {
    if (!lenient || !(error instanceof SqlError)) throw error
    tree.skip(before)
    return []
  }
}

function columnOf(file: ForeignFile, tree: SchemaTree, first: Element, above: Above): ForeignColumn {
  let element = first
  const [name, path] = [`${above.name}${element.name}`, `${above.path}${element.name}`]
  const { field_id: id } = element
  const nested = (): Error =>
    file.error('nested types are not supported, except structs and lists of numbers', { column: name })
  const lists: ListLevels[] = []
  let { definition } = above
  for (let children = tree.children(element); ; children = tree.children(element)) {
    if (repetitionOf(element) === repetitions.optional) definition++
    if (repetitionOf(element) === repetitions.repeated) {
      lists.push({ exists: definition, filled: definition + 1 })
      definition++
    }
    if (children === 0) break
    if (children !== 1 || !isList(element) || lists.length >= arrayDimensionsMax) throw nested()
    const repeated = tree.next()
    if (repetitionOf(repeated) !== repetitions.repeated) throw nested()
    lists.push({ exists: definition, filled: definition + 1 })
    definition++
    const inner = tree.children(repeated)
    if (inner > 1) throw nested()
    // Two-level list: the repeated element is the value itself.
    element = inner === 0 ? { ...repeated, repetition_type: repetitions.required } : tree.next()
    if (repetitionOf(element) === repetitions.repeated) throw nested()
    if (inner === 0) break
  }
  const leaf = leafOf(file, element, name)
  const place = { name, path, leaf: tree.leaves++, definition, lists, fieldId: id ?? null }
  if (lists.length === 0) return { ...place, ...leaf }
  if (!['INT', 'LONG', 'FLOAT', 'DOUBLE', 'SHORT', 'BYTE'].includes(leaf.type.name)) throw nested()
  return { ...place, ...leaf, type: dataType('ARRAY', lists.length) }
}

function repetitionOf({ repetition_type: repetition }: Element): number {
  return Number(repetition ?? repetitions.required)
}

function isList({ converted_type: type, logicalType }: Element): boolean {
  return type === converted.list || isSet(logicalType?.LIST)
}

function isStruct(element: Element): boolean {
  const { converted_type: type, logicalType } = element
  if (repetitionOf(element) === repetitions.repeated || isList(element)) return false
  return type !== converted.map && type !== converted.keyValue && !isSet(logicalType?.MAP)
}

function isSet(value: unknown): boolean {
  return value !== null && value !== undefined
}

function leafOf(file: ForeignFile, element: Element, column: string): Leaf {
  const kind = Number(element.type)
  const make = (type: DataType, form: Form, bytes: number): Leaf => ({ type, form, physical: kind, bytes })
  if (isDecimal(element)) return decimalOf(file, element, column)
  switch (kind) {
    case physical.boolean:
      return make(dataType('BOOLEAN'), 'boolean', 0)
    case physical.int32:
      return make(...int32Of(element), 4)
    case physical.int64:
      return make(...int64Of(element), 8)
    case physical.int96:
      return make(dataType('TIMESTAMP_NS'), 'int96', 12)
    case physical.float:
      return make(dataType('FLOAT'), 'same', 4)
    case physical.double:
      return make(dataType('DOUBLE'), 'same', 8)
    case physical.bytes:
      return isText(element) ? make(dataType('VARCHAR'), 'text', 0) : make(dataType('BINARY'), 'bytes', 0)
    case physical.fixed: {
      const bytes = fixedBytes(file, element, column)
      if (isSet(element.logicalType?.UUID) && bytes === 16) return make(dataType('UUID'), 'uuid', bytes)
      if (isSet(element.logicalType?.FLOAT16) && bytes === 2) return make(dataType('FLOAT'), 'half', bytes)
      return make(dataType('BINARY'), 'bytes', bytes)
    }
    default:
      throw file.error('the type of the column is not supported', { column })
  }
}

function fixedBytes(file: ForeignFile, { type_length: bytes }: Element, column: string): number {
  if (bytes === undefined || bytes === null || bytes < 1 || bytes > 1024 * 1024)
    throw file.error(`values of ${bytes} bytes are not supported`, { column })
  return bytes
}

function int32Of({ logicalType, converted_type: type }: Element): [DataType, Form] {
  if (isSet(logicalType?.DATE) || type === converted.date) return [dataType('DATE'), 'days']
  const integer = logicalType?.INTEGER
  const bits = isSet(integer) ? Number(integer?.bitWidth) : 0
  const isSigned = integer?.isSigned === true
  if (type === converted.int8 || (bits === 8 && isSigned)) return [dataType('BYTE'), 'i8']
  if (type === converted.uint8 || bits === 8) return [dataType('SHORT'), 'i16']
  if (type === converted.int16 || (bits === 16 && isSigned)) return [dataType('SHORT'), 'i16']
  if (type === converted.uint32 || (bits === 32 && !isSigned)) return [dataType('LONG'), 'unsigned 32']
  return [dataType('INT'), 'same']
}

function int64Of({ logicalType, converted_type: type }: Element): [DataType, Form] {
  const unit = logicalType?.TIMESTAMP?.unit
  if (isSet(unit?.NANOS)) return [dataType('TIMESTAMP_NS'), 'same']
  if (isSet(unit?.MILLIS) || type === converted.millis) return [dataType('TIMESTAMP'), 'milliseconds']
  if (isSet(unit?.MICROS) || type === converted.micros) return [dataType('TIMESTAMP'), 'same']
  const integer = logicalType?.INTEGER
  const isUnsigned = type === converted.uint64 || (isSet(integer) && integer?.isSigned === false)
  return [dataType('LONG'), isUnsigned ? 'unsigned 64' : 'same']
}

function isText({ logicalType, converted_type: type }: Element): boolean {
  if (type === converted.utf8 || type === converted.enum || type === converted.json) return true
  return isSet(logicalType?.STRING) || isSet(logicalType?.ENUM) || isSet(logicalType?.JSON)
}

function isDecimal({ logicalType, converted_type: type }: Element): boolean {
  return isSet(logicalType?.DECIMAL) || type === converted.decimal
}

function decimalOf(file: ForeignFile, element: Element, column: string): Leaf {
  const { logicalType, type } = element
  const precision = Number(logicalType?.DECIMAL?.precision ?? element.precision)
  const scale = Number(logicalType?.DECIMAL?.scale ?? element.scale ?? 0)
  const fits = precision >= 1 && precision <= decimalDigitsMax && scale >= 0 && scale <= precision
  if (!fits) throw file.error(`DECIMAL(${precision},${scale}) is not supported`, { column })
  const kind = Number(type)
  const bytes = decimalBytes[kind] ?? (kind === physical.fixed ? fixedBytes(file, element, column) : -1)
  if (bytes < 0) throw file.error('the type of the column is not supported', { column })
  return { type: dataType('DECIMAL', precision, scale), form: 'decimal', physical: kind, bytes }
}

const decimalBytes: Readonly<Record<number, number>> = {
  [physical.int32]: 4,
  [physical.int64]: 8,
  [physical.bytes]: 0,
}

/** Bytes of a decoded value before its conversion. */
export function rawBytes({ physical: kind, bytes }: ForeignColumn): number {
  if (kind === physical.boolean) return 1
  return kind === physical.bytes ? 8 : bytes
}

/** Bytes of a value in memory; for arrays, of an element. */
export function valueBytes({ type, lists }: ForeignColumn): number {
  return lists.length > 0 ? 8 : widthOf(type)
}
