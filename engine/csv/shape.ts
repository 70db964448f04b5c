// Types of the messages about decoding a CSV file. CsvShape has what a decoder must know before it starts: delimiter,
// columns with their types, header. CsvBatch and the other types are results: rows in columns, and rejected lines. All
// are plain data, because they are sent between threads.

import type { PackedColumn } from '../storage/jobs/messages.js'
import type { Enumeration } from '../storage/schema/schema.js'
import type { DataType } from '../types/column-types.js'

export interface CsvColumn {
  readonly name: string
  readonly type: DataType
  /** Timestamp pattern or unit of numbers (types/file-time.ts); null: ISO 8601, numbers by their magnitude. */
  readonly pattern: string | null
  /** The type was detected: a value that it cannot hold exactly is rejected, so that the type is widened. */
  readonly guessed?: boolean
  /** The only strings that the column accepts. */
  readonly enumeration?: Enumeration | undefined
}

export interface CsvShape {
  /** Code of one ASCII character. */
  readonly delimiter: number
  /** In the order of the fields in a line. */
  readonly columns: readonly CsvColumn[]
  /** Field of the designated timestamp; -1: none. */
  readonly timestamp: number
  /** The first line contains names. */
  readonly header: boolean
  /** PostgreSQL's text format of COPY: backslashes instead of quotes. */
  readonly copyText?: boolean
  /** For COPY: booleans may be any of PostgreSQL's words. */
  readonly copied?: boolean
  /** Ignore fields after the last column; otherwise the line is rejected. */
  readonly skipExtra?: boolean
  /** Unquoted string that represents NULL; default: the empty field. */
  readonly nullText?: string
  /** Number of the first line within the file; default: 1. */
  readonly firstLine?: number
}

export interface CsvReject {
  /** Line of the file, from 1; the first line of a multi-line record. */
  readonly line: number
  /** Index of the field; -1: the line itself is wrong. */
  readonly column: number
  readonly reason: string
  /** More fields than the file has columns. */
  readonly extra: boolean
  /**
   * `large`: an integer that the column cannot hold exactly. `cut`: a timestamp more precise than the column.
   * `beyond`: a number that no numeric type can hold. `digits`: digits with leading zeros in a column that was detected
   * as one of numbers.
   */
  readonly cause?: 'large' | 'cut' | 'beyond' | 'digits'
  /** The row is stored, but the value became NULL because it equals the number that represents NULL. */
  readonly retained?: boolean
}

export interface CsvBatch {
  readonly rows: number
  /** One per column of the shape. */
  readonly columns: readonly PackedColumn[]
  /** In line order; a rejected line is not among the rows unless it is kept. */
  readonly rejects: readonly CsvReject[]
}

/** Decoded rows of a file that wait to be written as parts. */
export interface StagedMemtable {
  /** Address of the MEMTABLE (memory/column-layout.ts); 0: no rows. */
  readonly address: number
  readonly rows: number
  /** Allocations to free when the rows are in parts. */
  readonly allocations: readonly number[]
  /** By column id: symbols that are new since the previous memtable, in code order. */
  readonly symbols: readonly (readonly [columnId: number, strings: readonly string[]])[]
  /** Nothing follows. */
  readonly last: boolean
}
