// Reads from Parquet files that other programs wrote what a statement's planning needs: column names, types and row
// counts. Files that a statement reads together must have the same columns.

import { FileError, type SqlError } from '../base/errors.js'
import { type DataType, typeText } from '../types/column-types.js'
import { foreignColumns } from './columns.js'
import { readSchema } from './footer.js'
import { ForeignFile, type ForeignSource, foreignError, type LeftOutColumn } from './foreign-file.js'

interface ForeignShape {
  readonly name: string
  readonly type: DataType
}

export interface ForeignRelation {
  readonly columns: readonly ForeignShape[]
  readonly leftOut: readonly LeftOutColumn[]
  readonly rows: number
}

/** The columns of one or more files; `exact`: see columns.ts. Throws SqlError. */
export function relationOfFiles(sources: readonly ForeignSource[], exact: boolean): ForeignRelation {
  let first: readonly ForeignShape[] | null = null
  let rows = 0
  const leftOut: LeftOutColumn[] = []
  for (const source of sources) {
    const found = relationOfFile(source, exact)
    const { columns } = found
    rows += found.rows
    leftOut.push(...found.leftOut)
    first ??= columns
    const difference = differenceOf(first, columns, sources[0]?.name ?? '')
    if (difference !== null)
      throw foreignError(source, `${difference}: files that are read together must have the same columns`)
  }
  return { columns: first ?? [], leftOut, rows }
}

function relationOfFile(source: ForeignSource, exact: boolean): ForeignRelation {
  const file = openForeign(source)
  try {
    const { elements, rows } = readSchema(file)
    return { ...foreignColumns(file, elements, exact), rows }
  } finally {
    file.close()
  }
}

function differenceOf(
  first: readonly ForeignShape[],
  columns: readonly ForeignShape[],
  firstName: string,
): string | null {
  if (first.length !== columns.length) return `it has ${columns.length} columns, but ${firstName} has ${first.length}`
  const index = columns.findIndex(({ name, type }, at) => {
    const other = first[at]
    return other?.name !== name || typeText(other.type) !== typeText(type)
  })
  const column = columns[index]
  return column === undefined
    ? null
    : `its column ${index + 1} is ${column.name} ${typeText(column.type)}, unlike that of ${firstName}`
}

/** Opens a file. Errors do not show the path that the operating system reports, only the name in the statement. */
export function openForeign(source: ForeignSource): ForeignFile {
  try {
    return new ForeignFile(source)
  } catch (error) {
    throw error instanceof FileError ? unopened(source, error) : error
  }
}

function unopened(source: ForeignSource, { code }: FileError): SqlError {
  if (code === 'ENOTREG') return foreignError(source, 'it is not a regular file')
  return foreignError(source, code === 'ENOENT' ? 'it does not exist' : `it cannot be opened (${code})`)
}
