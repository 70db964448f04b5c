// ForeignFile: an open Parquet file that another program wrote. It checks all offsets and lengths in the file against
// the file's size before they are used. Every error in the file is reported as an SqlError with the file's name as in
// the statement, and the place within the file.

import { SqlError } from '../base/errors.js'
import { type File, openRegularFile } from '../base/files.js'

/** A file as a statement names it. */
export interface ForeignSource {
  /** The name in error messages. */
  readonly name: string
  readonly path: string
  /** Position of the name in the statement. */
  readonly position: number
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
