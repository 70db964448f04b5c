// Columns of maps, of lists of anything but numbers, and of structs in lists, from Parquet files that other programs
// wrote. Each is a tree of nodes whose leaves are columns of the file; nested-reader.ts reads its rows as JSON.
//
//   optional group NAME (LIST) { repeated group list { element } }           list; older writers name these otherwise, or
//                                                                            omit the inner or the outer group
//   optional group NAME (MAP) { repeated group key_value { key; value } }    map
//   group NAME { fields }                                                    struct

import { nestedDepthMax } from '../base/limits.js'
import { type DataType, dataType } from '../types/column-types.js'
import { type ForeignColumn, leavesBelow, type NestedNode, physical } from './foreign-column.js'
import type { ForeignFile, NestedShape } from './foreign-file.js'
import { leafOf, UnsupportedError } from './leaf-types.js'
import { type Element, isList, isMap, repetitionOf, repetitions, type SchemaTree } from './schema-tree.js'

interface Place {
  readonly name: string
  readonly path: string
  readonly definition: number
}

interface Levels {
  readonly definition: number
  readonly repetition: number
}

interface Tools {
  readonly file: ForeignFile
  readonly tree: SchemaTree
  readonly name: string
}

/** The next element as a column of JSON. Throws SqlError for types that are not supported. */
export function nestedColumn(file: ForeignFile, tree: SchemaTree, { name, path, definition }: Place): ForeignColumn {
  const element = tree.next()
  const node = nodeOf({ file, tree, name }, element, { definition, repetition: 0 }, 0)
  const leaf = leavesBelow(node)[0]?.leaf ?? 0
  return {
    ...{ name, path, type: dataType('VARCHAR'), form: 'text', physical: physical.bytes, bytes: 0, leaf },
    ...{ definition, lists: [], repetition: 0, nested: node, fieldId: element.field_id ?? null },
  }
}

function nodeOf(tools: Tools, element: Element, levels: Levels, depth: number): NestedNode {
  const repetition = repetitionOf(element)
  if (repetition === repetitions.repeated) {
    const inner = below(levels)
    return { kind: 'list', ...listLevels(levels), element: presentNode(tools, element, inner, depth) }
  }
  const definition = levels.definition + (repetition === repetitions.optional ? 1 : 0)
  return presentNode(tools, element, { ...levels, definition }, depth)
}

/** The element where it is not NULL. */
function presentNode(tools: Tools, element: Element, levels: Levels, depth: number): NestedNode {
  const { file, tree, name } = tools
  if (depth > nestedDepthMax) throw new UnsupportedError(file, 'types are nested too deeply', name)
  const children = tree.children(element)
  if (children === 0) return leafNode(tools, element, levels)
  if (children === 1 && isList(element)) return listNode(tools, element, levels, depth)
  if (children === 1 && isMap(element)) return mapNode(tools, levels, depth)
  const fields = Array.from({ length: children }, () => {
    const field = tree.next()
    const node = nodeOf(tools, field, levels, depth + 1)
    return { name: field.name, fieldId: field.field_id ?? null, node }
  })
  return { kind: 'struct', exists: levels.definition, fields }
}

function leafNode({ file, tree, name }: Tools, element: Element, { definition, repetition }: Levels): NestedNode {
  const leaf = leafOf(file, element, name)
  const place = { name, path: '', leaf: tree.leaves++, definition, repetition, lists: [] }
  return { kind: 'leaf', column: { ...place, ...leaf, nested: null, fieldId: element.field_id ?? null } }
}

function listNode(tools: Tools, list: Element, levels: Levels, depth: number): NestedNode {
  const { tree } = tools
  const repeated = requireRepeated(tools)
  const children = tree.children(repeated)
  // Older writers repeat the element itself, by these rules of the format.
  const isElement = children !== 1 || repeated.name === 'array' || repeated.name === `${list.name}_tuple`
  const inner = below(levels)
  const element = isElement
    ? presentNode(tools, repeated, inner, depth + 1)
    : nodeOf(tools, tree.next(), inner, depth + 1)
  return { kind: 'list', ...listLevels(levels), element }
}

function mapNode(tools: Tools, levels: Levels, depth: number): NestedNode {
  const { file, tree, name } = tools
  const children = tree.children(requireRepeated(tools))
  if (children !== 1 && children !== 2) throw new UnsupportedError(file, 'a map has no keys and values', name)
  const inner = below(levels)
  const key = nodeOf(tools, tree.next(), inner, depth + 1)
  const value = children === 2 ? nodeOf(tools, tree.next(), inner, depth + 1) : null
  return { kind: 'map', ...listLevels(levels), key, value }
}

function requireRepeated({ file, tree, name }: Tools): Element {
  const element = tree.next()
  if (repetitionOf(element) === repetitions.repeated) return element
  throw new UnsupportedError(file, 'a list or a map has no repeated element', name)
}

function below({ definition, repetition }: Levels): Levels {
  return { definition: definition + 1, repetition: repetition + 1 }
}

function listLevels({ definition, repetition }: Levels): { exists: number; filled: number; repetition: number } {
  return { exists: definition, filled: definition + 1, repetition: repetition + 1 }
}

// Tables ------------------------------------------------------------------------------------------------------------

/**
 * The node as an Iceberg table has it, whose structs may have got other fields since; null: it is of another type.
 * `promote`: a leaf as one of a wider type.
 */
export function shapedNode(
  node: NestedNode,
  shape: NestedShape,
  promote: (column: ForeignColumn, type: DataType) => ForeignColumn | null,
): NestedNode | null {
  if (node.kind === 'leaf') {
    const column = shape.kind === 'value' ? promote(node.column, shape.type) : null
    return column === null ? null : { kind: 'leaf', column }
  }
  if (node.kind === 'struct') return shape.kind === 'struct' ? shapedStruct(node, shape, promote) : null
  if (node.kind === 'list') {
    const element = shape.kind === 'list' ? shapedNode(node.element, shape.element, promote) : null
    return element === null ? null : { ...node, element }
  }
  if (shape.kind !== 'map') return null
  const key = shapedNode(node.key, shape.key, promote)
  const value = node.value === null ? null : shapedNode(node.value, shape.value, promote)
  return key === null || (value === null && node.value !== null) ? null : { ...node, key, value }
}

function shapedStruct(
  struct: Extract<NestedNode, { kind: 'struct' }>,
  { fields }: Extract<NestedShape, { kind: 'struct' }>,
  promote: Parameters<typeof shapedNode>[2],
): NestedNode | null {
  const hasIds = struct.fields.some(({ fieldId }) => fieldId !== null)
  const own = fields.map(({ id, name, names, shape }) => {
    const found = struct.fields.find((field) => (hasIds ? field.fieldId === id : names.includes(field.name ?? '')))
    const node = found?.node == null ? null : shapedNode(found.node, shape, promote)
    return { field: { name, fieldId: id, node }, found }
  })
  if (own.some(({ field, found }) => found !== undefined && field.node === null)) return null
  const used = new Set(own.map(({ found }) => found))
  const hidden = struct.fields.filter((field) => !used.has(field)).map((field) => ({ ...field, name: null }))
  return { ...struct, fields: [...own.map(({ field }) => field), ...hidden] }
}
