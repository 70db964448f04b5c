// Lists of columns in one line: `name STRING, rows LONG`.

import { assert } from '../../base/assert.js'
import { type ColumnType, columnTypes, dataType } from '../../types/column-types.js'
import type { RelationColumn } from './relations.js'

export function columnList(text: string): RelationColumn[] {
  return text.split(',').map((entry) => {
    const [name = '', type = ''] = entry.trim().split(/\s+/)
    assert(isColumnType(type), `unknown type in a list of columns [entry=${entry}]`)
    return { name, type: dataType(type) }
  })
}

function isColumnType(name: string): name is ColumnType {
  return name in columnTypes
}
