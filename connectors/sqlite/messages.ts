// Types of the messages between the import of a SQLite dump, on the main thread, and the worker that decodes the dump:
// its options, the tables and rows that the worker finds, and the replies. All are plain data.

import type { PackedRows } from '../../engine/engine.js'
import type { DataType } from '../../engine/types/column-types.js'
import type { TimeUnit } from './times.js'

export interface DumpOptions {
  /** Names of the tables to import, as in SQLite; empty: all. */
  readonly tables: readonly string[]
  /** Designated timestamps as `column` or `table.column`; `none`: without one; empty: detect. */
  readonly timestamps: readonly string[]
  readonly partitionBy: string
  /** Unit of numeric timestamps; null: detect from their magnitude. */
  readonly unit: TimeUnit | null
  /** Column types by `column` or `table.column` in lower case. */
  readonly types: readonly { readonly column: string; readonly type: DataType }[]
  /** Skip rows that cannot be stored; otherwise the first one ends the import. */
  readonly skipRows: boolean
}

export interface ProposedTable {
  /** Its name in SQLite. */
  readonly source: string
  readonly name: string
  readonly columns: readonly { readonly name: string; readonly type: DataType }[]
  readonly timestamp: string | null
  readonly partitionBy: string
}

/** The target of a table's rows; column types of an existing table take precedence. */
export type ResolvedTable =
  | {
      readonly columns: readonly { readonly columnId: number; readonly type: DataType }[]
      /** Index of the column that must not be NULL; -1: none. */
      readonly timestamp: number
    }
  | { readonly refused: string }

export interface DumpReport {
  /** Line of the dump, from 1. */
  readonly line: number
  readonly table: string
  readonly reason: string
}

export type DumpEvent =
  /** `table`: number of the proposal. */
  | { readonly kind: 'rows'; readonly table: number; readonly rows: PackedRows }
  /** Something was not imported, including `rows` rows. */
  | { readonly kind: 'report'; readonly report: DumpReport; readonly rows: number }
  | { readonly kind: 'view'; readonly line: number; readonly name: string; readonly query: string }
  | { readonly kind: 'index'; readonly line: number; readonly table: number; readonly column: string }

export interface DecoderOptions extends DumpOptions {
  /** Creates or finds the table. */
  readonly resolve: (proposal: ProposedTable) => ResolvedTable
}

export type ToDumpWorker =
  | { readonly kind: 'block'; readonly bytes: Uint8Array; readonly last: boolean }
  | { readonly kind: 'resolved'; readonly table: ResolvedTable }

export type FromDumpWorker =
  | { readonly kind: 'events'; readonly events: readonly DumpEvent[] }
  | { readonly kind: 'resolve'; readonly proposal: ProposedTable }
  | { readonly kind: 'failed'; readonly message: string; readonly internal: boolean }
