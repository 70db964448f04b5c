// Types of a CSV import: its options and its result.

import type { Engine, EpochUnit, Session } from '../engine/engine.js'
import type { OptionWords } from './import-times.js'

export interface ImportOptions {
  readonly engine: Pick<Engine, 'csv' | 'execute' | 'load' | 'rejects' | 'rows' | 'table'>
  readonly session: Session
  readonly connectionId: number
  readonly name: string
  readonly overwrite: boolean
  readonly forceHeader: boolean
  /** The first line is a row; no header is detected. */
  readonly noHeader?: boolean
  /** False: fail if the table does not exist. */
  readonly create?: boolean
  /** Ignore fields after the last column. */
  readonly skipExtra: boolean
  /** Skip bad rows; otherwise the first one fails the import and nothing is stored. */
  readonly skipRows: boolean
  readonly partitionBy: string | null
  /** Column of the designated timestamp. Null: the only timestamp column; empty: none. */
  readonly timestamp: string | null
  /** Unit of numbers in that column; null or absent: detect from their magnitude. */
  readonly unit?: EpochUnit | null
  /** Names of the options in error messages; absent: those of HTTP. */
  readonly words?: OptionWords
  readonly delimiter: string | null
  /** Number of the first line; default: 1. */
  readonly firstLine?: number
  /** What the number of a line counts, in errors; default: `line`. */
  readonly place?: 'line' | 'row'
  /** Unquoted string that represents NULL; default: the empty field. */
  readonly nullText?: string | undefined
  /** Bytes decoded at a time. */
  readonly blockBytes: number
  /** Directory for a temporary file; without it, types of large files cannot be widened. */
  readonly spoolDirectory?: string
}

export interface ImportResult {
  readonly location: string
  readonly header: boolean
  readonly partitionBy: string
  readonly timestamp: string | null
  readonly warnings: readonly string[]
  readonly rowsImported: number
  readonly rowsRejected: number
  readonly columns: readonly {
    readonly name: string
    readonly type: string
    readonly size: number
    readonly errors: number
  }[]
  /** The first rejected lines. */
  readonly rejects: readonly { readonly line: number; readonly column: string; readonly reason: string }[]
}
