// Finds the columns of an Iceberg table in one of its Parquet files: by their field ids, or by the table's name mapping
// in files without ids. The file may be older than a change of the column's type.

import type { ParquetTypes } from '../storage/part/parquet-thrift.js'
import { type DataType, typeText } from '../types/column-types.js'
import { promoted, supportedColumns } from './columns.js'
import type { ForeignColumn } from './foreign-column.js'
import type { ForeignFile, TableColumn } from './foreign-file.js'
import { shapedNode } from './nested-columns.js'

interface NamedColumn {
  readonly name: string
  readonly type: DataType
  readonly field?: TableColumn
}

export class TableColumns {
  readonly #file: ForeignFile
  readonly #columns: readonly ForeignColumn[]
  readonly #hasIds: boolean

  constructor(file: ForeignFile, elements: readonly ParquetTypes.SchemaElement[]) {
    this.#file = file
    this.#columns = supportedColumns(file, elements)
    this.#hasIds = elements.some(({ field_id: id }) => id !== null && id !== undefined)
  }

  /** With the type of the table; undefined: the file is from before the column. Throws SqlError. */
  find({ name, type, field }: NamedColumn): ForeignColumn | undefined {
    const column = field === undefined ? undefined : this.#columnOf(field, name)
    if (column === undefined) return undefined
    const adapted = promoted(column, type)
    const shape = field?.shape ?? null
    if (adapted !== null && (adapted.nested === null) === (shape === null)) {
      if (adapted.nested === null || shape === null) return adapted
      const nested = shapedNode(adapted.nested, shape, promoted)
      if (nested !== null) return { ...adapted, nested }
    }
    throw this.#file.error(`its type is ${typeText(column.type)}, but the table's is ${typeText(type)}`, {
      column: name,
    })
  }

  #columnOf({ id, paths }: TableColumn, name: string): ForeignColumn | undefined {
    if (this.#hasIds) return this.#columns.find(({ fieldId }) => fieldId === id)
    if (paths === null) throw this.#file.error('it has no field ids, and its table no name mapping', { column: name })
    return this.#columns.find(({ path }) => paths.includes(path))
  }
}
