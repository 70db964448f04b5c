// The type of a system relation (columns and computed rows), and a compact notation for its columns: `name STRING, rows
// LONG, [extra] INT`. Brackets mark a hidden column.

import { assert } from '../../base/assert.js'
import { type ColumnType, columnTypes, type DataType, dataType } from '../../types/column-types.js'
import type { Value } from '../../types/value.js'
import type { RowIndex } from './row-index.js'

export interface RelationColumn {
  readonly name: string
  readonly type: DataType
  /** Excluded from `*`. */
  readonly hidden?: true
}

export interface SystemRelation {
  readonly columns: readonly RelationColumn[]
  /** The rows stay the same until the catalog changes, for all sessions of the dialect. */
  readonly lasting?: true
  readonly rows: () => readonly (readonly Value[])[]
  /** In the place of `rows`, where they are kept. */
  readonly index?: () => RowIndex
}

export function columnList(text: string): RelationColumn[] {
  return text.split(',').map((entry) => {
    const [written = '', type = ''] = entry.trim().split(/\s+/)
    assert(isColumnType(type), `B3: unknown type in a list of columns [entry=${entry}]`)
    const name = written.replace(/[[\]]/g, '')
    return name === written ? { name, type: dataType(type) } : { name, type: dataType(type), hidden: true }
  })
}

function isColumnType(name: string): name is ColumnType {
  return name in columnTypes
}

/** The value of a column without information: 0, false, empty or NULL. */
export function nothing({ name }: DataType): Value {
  switch (name) {
    case 'BOOLEAN':
      return false
    case 'CHAR':
      return ''
    case 'LONG':
      return 0n
    case 'BYTE':
    case 'SHORT':
    case 'INT':
    case 'FLOAT':
    case 'DOUBLE':
      return 0
    default:
      return null
  }
}

/** A row of the values by column name. Missing values are 0, false, empty or NULL. */
export function rowOf(columns: readonly RelationColumn[], values: Readonly<Record<string, Value>>): Value[] {
  return columns.map(({ name, type }) => {
    const value = values[name]
    return value === undefined ? nothing(type) : value
  })
}
