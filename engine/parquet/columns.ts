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
//   maps, other lists              VARCHAR: JSON (nested-columns.ts)
//
// Times of day become integers in the unit of the file. Columns of other types are left out. With `exact` (a caller's
// option), INT and LONG are DECIMALs, which keep the smallest integers; in INT and LONG these represent NULL.

import { arrayDimensionsMax, structDepthMax } from '../base/limits.js'
import { type ColumnType, type DataType, dataType, typeText } from '../types/column-types.js'
import { type ForeignColumn, type ListLevels, physical } from './foreign-column.js'
import { type ForeignFile, type LeftOutColumn, pathSeparator } from './foreign-file.js'
import { leafOf, UnsupportedError } from './leaf-types.js'
import { nestedColumn } from './nested-columns.js'
import { type Element, isList, isStruct, repetitionOf, repetitions, SchemaTree } from './schema-tree.js'

export interface FileColumns {
  readonly columns: readonly ForeignColumn[]
  readonly leftOut: readonly LeftOutColumn[]
}

/** Throws SqlError if there is none that is supported, and with `exact` if one is not. */
export function foreignColumns(file: ForeignFile, elements: readonly Element[], exact: boolean): FileColumns {
  const { columns: found, leftOut, hasStructs } = columnsIn(file, elements, !exact)
  if (hasStructs) requireDistinctNames(file, found)
  const columns = exact ? found.map(asExact) : found
  const [first] = leftOut
  if (columns.length === 0 && first !== undefined) throw file.error(first.reason, { column: first.name })
  if (columns.length === 0) throw file.error('the file has no columns')
  return { columns, leftOut }
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
export function supportedColumns(file: ForeignFile, elements: readonly Element[]): readonly ForeignColumn[] {
  return columnsIn(file, elements, true).columns
}

function columnsIn(
  file: ForeignFile,
  elements: readonly Element[],
  lenient: boolean,
): FileColumns & { readonly hasStructs: boolean } {
  const tree = new SchemaTree(file, elements)
  const root = tree.next()
  const leftOut: LeftOutColumn[] = []
  const into = lenient ? leftOut : null
  const columns = Array.from({ length: tree.children(root) }, () => columnsOf(file, tree, top, into)).flat()
  if (!tree.ended) throw file.error('the schema is damaged')
  return { columns, leftOut, hasStructs: tree.hasStructs }
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

/** INT and LONG as DECIMAL, in which the smallest integers are not NULL. */
export function asExact(column: ForeignColumn): ForeignColumn {
  const { form, type } = column
  const digits = form === 'same' || form === 'widened' ? exactDigits[type.name] : undefined
  return digits === undefined ? column : { ...column, type: dataType('DECIMAL', digits), form: 'decimal' }
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

/**
 * The columns of the next element, several for a struct. `leftOut` gets those that are not supported; if it is null, they
 * are an error.
 */
function columnsOf(
  file: ForeignFile,
  tree: SchemaTree,
  above: Above,
  leftOut: LeftOutColumn[] | null,
): ForeignColumn[] {
  const before = tree.place()
  const element = tree.next()
  const name = `${above.name}${element.name}`
  const children = tree.children(element)
  if (children > 0 && isStruct(element) && above.depth < structDepthMax) {
    tree.hasStructs = true
    const definition = above.definition + (repetitionOf(element) === repetitions.optional ? 1 : 0)
    const path = `${above.path}${element.name}${pathSeparator}`
    const inner = { name: `${name}_`, path, definition, depth: above.depth + 1 }
    return Array.from({ length: children }, () => columnsOf(file, tree, inner, leftOut)).flat()
  }
  try {
    const simple = columnOf(file, tree, element, above)
    if (simple !== null) return [simple]
    tree.back(before)
    return [nestedColumn(file, tree, { name, path: `${above.path}${element.name}`, definition: above.definition })]
  } catch (error) {
    if (leftOut === null || !(error instanceof UnsupportedError)) throw error
    leftOut.push({ name, reason: error.reason })
    tree.skip(before)
    return []
  }
}

/** A value, or a list of numbers; null: the element is nested in another way. */
function columnOf(file: ForeignFile, tree: SchemaTree, first: Element, above: Above): ForeignColumn | null {
  let element = first
  const [name, path] = [`${above.name}${element.name}`, `${above.path}${element.name}`]
  const { field_id: id } = element
  const lists: ListLevels[] = []
  let { definition } = above
  for (let children = tree.children(element); ; children = tree.children(element)) {
    if (repetitionOf(element) === repetitions.optional) definition++
    if (repetitionOf(element) === repetitions.repeated) {
      lists.push({ exists: definition, filled: definition + 1 })
      definition++
    }
    if (children === 0) break
    if (children !== 1 || !isList(element) || lists.length >= arrayDimensionsMax) return null
    const repeated = tree.next()
    if (repetitionOf(repeated) !== repetitions.repeated) return null
    lists.push({ exists: definition, filled: definition + 1 })
    definition++
    const inner = tree.children(repeated)
    if (inner > 1) return null
    // Two-level list: the repeated element is the value itself.
    element = inner === 0 ? { ...repeated, repetition_type: repetitions.required } : tree.next()
    if (repetitionOf(element) === repetitions.repeated) return null
    if (inner === 0) break
  }
  const leaf = leafOf(file, element, name)
  if (lists.length > 0 && !listed.has(leaf.type.name)) return null
  const type = lists.length > 0 ? dataType('ARRAY', lists.length) : leaf.type
  const place = { name, path, leaf: tree.leaves++, definition, lists, fieldId: id ?? null }
  return { ...place, ...leaf, type, repetition: lists.length, nested: null }
}

const listed: ReadonlySet<string> = new Set(['INT', 'LONG', 'FLOAT', 'DOUBLE', 'SHORT', 'BYTE'])
