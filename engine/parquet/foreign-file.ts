// ForeignFile: an open Parquet file that another program wrote. A read beyond its end is an error. Every error in the
// file is reported as an SqlError with the file's name as in the statement, and the place within the file. Also
// contains the types by which an Iceberg table describes its files.

import { SqlError } from '../base/errors.js'
import { type File, openRegularFile } from '../base/files.js'
import type { ColumnCondition } from '../types/bounds.js'
import type { DataType } from '../types/column-types.js'
import type { Value } from '../types/value.js'

/** A file as a statement names it. */
export interface ForeignSource {
  /** The name in error messages. */
  readonly name: string
  readonly path: string
  /** Position of the name in the statement. */
  readonly position: number
  /** Of a data file of an Iceberg table. */
  readonly data?: TableData
}

/** What an Iceberg table says about one of its data files. */
export interface TableData {
  /** The file as files of deletes name it. */
  readonly uri: string
  readonly positions: readonly DeleteSource[]
  /** Several data files may have the same list. */
  readonly equality: readonly DeleteSource[]
  /** Equality deletes with a higher one apply. */
  readonly sequence: number
  /** Values of columns that the file lacks, by field id. */
  readonly values: ReadonlyMap<number, Value>
}

/**
 * Deleted rows: a Parquet file with the columns file_path and pos, a deletion vector within a file, or a Parquet file of
 * values that deleted rows have.
 */
export interface DeleteSource extends ForeignSource {
  readonly vector: { readonly offset: number; readonly bytes: number } | null
  /** Null: the file has positions. */
  readonly equality: EqualityDelete | null
}

export interface EqualityDelete {
  /** Files of the same columns and partition have the same. */
  readonly group: string
  readonly sequence: number
  readonly columns: readonly { readonly name: string; readonly type: DataType; readonly field: TableColumn }[]
}

/** Between the names in a path, as no name has it: the field `b` of the struct `a` is not the column `a_b`. */
export const pathSeparator = '\0'

/** A column of an Iceberg table, as its data files have it. */
export interface TableColumn {
  readonly id: number
  /** Of rows in files that lack the column. */
  readonly initial: Value
  /** Paths of the column in files without field ids; null: they are not known. */
  readonly paths: readonly string[] | null
  /** Of a column of JSON; null: of any other. */
  readonly shape: NestedShape | null
}

/** The type of a nested column, as an Iceberg table has it. */
export type NestedShape =
  | { readonly kind: 'value'; readonly type: DataType }
  | {
      readonly kind: 'struct'
      readonly fields: readonly NestedShapeField[]
    }
  | { readonly kind: 'list'; readonly element: NestedShape }
  | { readonly kind: 'map'; readonly key: NestedShape; readonly value: NestedShape }

interface NestedShapeField {
  readonly id: number
  readonly name: string
  /** In files without field ids. */
  readonly names: readonly string[]
  readonly shape: NestedShape
}

/** A column that cannot be read, and why. */
export interface LeftOutColumn {
  readonly name: string
  readonly reason: string
}

/** An Iceberg table that other programs wrote. Its columns are known before its files. */
export interface ForeignTable {
  readonly columns: readonly { readonly name: string; readonly type: DataType; readonly field: TableColumn }[]
  readonly leftOut: readonly LeftOutColumn[]
  /** Before any condition. */
  readonly rows: number
  readonly find: FindFiles
}

/**
 * The local files that may have rows for all conditions, whose columns are those of the table, and at most how many.
 * Throws NotReadyError until they are there, or SqlError.
 */
export type FindFiles = (conditions: readonly ColumnCondition[]) => {
  readonly files: readonly ForeignSource[]
  readonly rows: number
}

export interface ForeignPlace {
  readonly column?: string
  readonly group?: number
  readonly offset?: number
}

export class ForeignFile {
  readonly size: number
  readonly #file: File
  readonly #source: ForeignSource

  constructor(source: ForeignSource) {
    this.#source = source
    this.#file = openRegularFile(source.path)
    this.size = this.#file.size()
  }

  /** Reads until the target is full. */
  read(target: Uint8Array, offset: number, place: ForeignPlace = {}): void {
    if (this.#file.read(target, offset) !== target.length)
      throw this.error('unexpected end of the file', { ...place, offset })
  }

  error(message: string, place: ForeignPlace = {}): SqlError {
    return foreignError(this.#source, message, place)
  }

  close(): void {
    this.#file.close()
  }
}

export function foreignError(source: ForeignSource, message: string, place: ForeignPlace = {}): SqlError {
  const { column, group, offset } = place
  const where = [
    `file=${source.name}`,
    ...(column === undefined ? [] : [`column=${column}`]),
    ...(group === undefined ? [] : [`row group=${group}`]),
    ...(offset === undefined ? [] : [`offset=${offset}`]),
  ]
  return new SqlError(`Parquet file cannot be read: ${message} [${where.join(', ')}]`, source.position)
}
