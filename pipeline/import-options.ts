// What an import of a CSV file is asked for, and what it answers.

import type { Engine, EpochUnit, Session } from '../engine/engine.js'
import type { OptionWords } from './import-times.js'

export interface ImportOptions {
  readonly engine: Pick<Engine, 'csv' | 'execute' | 'load' | 'rejects' | 'rows' | 'table'>
  readonly session: Session
  readonly connectionId: number
  readonly name: string
  readonly overwrite: boolean
  readonly forceHeader: boolean
  /** The first line is a row, whatever it looks like. */
  readonly noHeader?: boolean
  /** False: rows go into a table that exists, or nowhere. */
  readonly create?: boolean
  /** What lines have behind their last column is passed over. */
  readonly skipExtra: boolean
  /** Bad rows are skipped; else the first one ends the import and nothing stays. */
  readonly skipRows: boolean
  readonly partitionBy: string | null
  /** The column of the designated timestamp. Null: the only column of times, empty: none. */
  readonly timestamp: string | null
  /** What the numbers of that column count; null or absent: told by their size. */
  readonly unit?: EpochUnit | null
  /** How errors name the options; absent: as HTTP does. */
  readonly words?: OptionWords
  readonly delimiter: string | null
  /** What stands for NULL, without quotes; else the empty field does. */
  readonly nullText?: string | undefined
  /** Bytes that are decoded at one time. */
  readonly blockBytes: number
  /** For a temporary file; without one, types of large files do not widen. */
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
