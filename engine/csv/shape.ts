// What a CSV file is known to be before its rows are decoded, and what decoding yields. Plain data that crosses threads.

import type { PackedColumn } from '../storage/jobs/messages.js'
import type { Enumeration } from '../storage/schema/schema.js'
import type { DataType } from '../types/column-types.js'

export interface CsvColumn {
  readonly name: string
  readonly type: DataType
  /** How times are written, or what numbers count (types/file-time.ts); null: ISO 8601, numbers by their size. */
  readonly pattern: string | null
  /** The type is a guess: a value that it would not hold exactly is refused, so that the type gives way. */
  readonly guessed?: boolean
  /** The only texts that it takes. */
  readonly enumeration?: Enumeration | undefined
}

export interface CsvShape {
  /** One ASCII character. */
  readonly delimiter: number
  /** In the order of the fields of a line. */
  readonly columns: readonly CsvColumn[]
  /** Field of the designated timestamp, -1 without one. */
  readonly timestamp: number
  /** The first line has names. */
  readonly header: boolean
  /** PostgreSQL's text form of COPY: backslashes instead of quotes. */
  readonly copyText?: boolean
  /** COPY's: booleans are any of PostgreSQL's words for them. */
  readonly copied?: boolean
  /** What a line has behind its last column is passed over; else the line is refused. */
  readonly skipExtra?: boolean
  /** What stands for NULL, without quotes; else the empty field does. */
  readonly nullText?: string
  /** Number of the first line of the bytes within their file; absent: 1. */
  readonly firstLine?: number
}

export interface CsvReject {
  /** Of the file, from 1; of a record over several lines the first. */
  readonly line: number
  /** Index of the field; -1: the line itself is wrong. */
  readonly column: number
  readonly reason: string
  /** More fields than the file has columns. */
  readonly extra: boolean
  /**
   * `large`: a whole number that the column does not hold exactly. `cut`: a time with finer digits than the column has.
   * `beyond`: a number that no type of number holds.
   */
  readonly cause?: 'large' | 'cut' | 'beyond'
  /** The row is stored: its text is the number that stands for NULL, so it became NULL. */
  readonly kept?: boolean
}

export interface CsvBatch {
  readonly rows: number
  /** One for each column of the shape. */
  readonly columns: readonly PackedColumn[]
  /** In the order of lines; a rejected line is not among the rows, unless it is kept. */
  readonly rejects: readonly CsvReject[]
}

/** Rows of a file that are decoded and wait to become parts. */
export interface StagedGeneration {
  /** Of the GENERATION (memory/column-layout.ts); 0 when there are no rows. */
  readonly address: number
  readonly rows: number
  /** What is freed when its rows are in parts. */
  readonly allocations: readonly number[]
  /** By column id: texts that are new since the generation before, in the order of their numbers. */
  readonly symbols: readonly (readonly [columnId: number, texts: readonly string[]])[]
  /** Nothing follows. */
  readonly last: boolean
}
