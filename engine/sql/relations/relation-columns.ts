// Relations of the system, and lists of their columns in one line: `name STRING, rows LONG, [extra] INT`.

import { assert } from '../../base/assert.js'
import { type ColumnType, columnTypes, type DataType, dataType } from '../../types/column-types.js'
import type { Value } from '../../types/value.js'

export interface RelationColumn {
  readonly name: string
  readonly type: DataType
  /** Not part of `*`. */
  readonly hidden?: true
}

export interface SystemRelation {
  readonly columns: readonly RelationColumn[]
  /** Its rows are the same until the catalog changes, for every session of the dialect. */
  readonly lasting?: true
  readonly rows: () => readonly (readonly Value[])[]
}

export function columnList(text: string): RelationColumn[] {
  return text.split(',').map((entry) => {
    const [written = '', type = ''] = entry.trim().split(/\s+/)
    assert(isColumnType(type), `unknown type in a list of columns [entry=${entry}]`)
    const name = written.replace(/[[\]]/g, '')
    return name === written ? { name, type: dataType(type) } : { name, type: dataType(type), hidden: true }
  })
}

function isColumnType(name: string): name is ColumnType {
  return name in columnTypes
}

/** What a column says that nothing is known of: 0, false, empty or NULL. */
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

/** Values by column name as a row; what is not said is 0, false, empty or NULL. */
export function rowOf(columns: readonly RelationColumn[], values: Readonly<Record<string, Value>>): Value[] {
  return columns.map(({ name, type }) => {
    const value = values[name]
    return value === undefined ? nothing(type) : value
  })
}
