// A column of a Parquet file that another program wrote, and how its values are stored. Lists of numbers are arrays. Any
// other nested value, such as a map, is a tree of nodes over several leaves of the schema, and is shown as JSON.

import { type DataType, widthOf } from '../types/column-types.js'

/** How stored values are converted to values in memory. */
export type Form =
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
  /** Index among the leaves of the schema; of a nested column, that of its first leaf. */
  readonly leaf: number
  /** Definition level of a value that is present. */
  readonly definition: number
  readonly lists: readonly ListLevels[]
  /** Repetition level of a value in its innermost list; 0 outside of lists. */
  readonly repetition: number
  /** Of a column whose values are JSON texts; null: of any other. */
  readonly nested: NestedNode | null
  /** Identifies the column in an Iceberg table; null: the file does not say. */
  readonly fieldId: number | null
}

/** One dimension of an array: the definition levels from which on the list exists, and has an element. */
export interface ListLevels {
  readonly exists: number
  readonly filled: number
}

/**
 * A part of a nested value. `exists` is the definition level from which on it is not NULL, `filled` the one from which on
 * a list or map has an element; `repetition` is the level of its second element and those after it.
 */
export type NestedNode =
  | { readonly kind: 'leaf'; readonly column: ForeignColumn }
  | { readonly kind: 'struct'; readonly exists: number; readonly fields: readonly NestedField[] }
  | (NestedList & { readonly kind: 'list'; readonly element: NestedNode })
  /** Null: the map has keys alone. */
  | (NestedList & { readonly kind: 'map'; readonly key: NestedNode; readonly value: NestedNode | null })

interface NestedList {
  readonly exists: number
  readonly filled: number
  readonly repetition: number
}

interface NestedField {
  /** Null: it is read for its levels alone, and not shown. */
  readonly name: string | null
  readonly fieldId: number | null
  /** Null: the file lacks the field, which is NULL. */
  readonly node: NestedNode | null
}

export const physical = {
  ...{ boolean: 0, int32: 1, int64: 2, int96: 3, float: 4, double: 5, bytes: 6, fixed: 7 },
} as const

/** The columns of the leaves that the column consists of. */
export function leavesOf(column: ForeignColumn): readonly ForeignColumn[] {
  return column.nested === null ? [column] : leavesBelow(column.nested)
}

export function leavesBelow(node: NestedNode): readonly ForeignColumn[] {
  switch (node.kind) {
    case 'leaf':
      return [node.column]
    case 'struct':
      return node.fields.flatMap((field) => (field.node === null ? [] : leavesBelow(field.node)))
    case 'list':
      return leavesBelow(node.element)
    case 'map':
      return [...leavesBelow(node.key), ...(node.value === null ? [] : leavesBelow(node.value))]
  }
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
