// What a dump is turned into, and how it is to be: plain data that crosses threads.

import type { PackedRows } from '../../engine/engine.js'
import type { DataType } from '../../engine/types/column-types.js'
import type { TimeUnit } from './times.js'

export interface DumpOptions {
  /** Names of the tables to take, as in SQLite; empty = all. */
  readonly tables: readonly string[]
  /** Designated timestamps, `column` or `table.column`; `none` for a table without; empty = to be found. */
  readonly timestamps: readonly string[]
  readonly partitionBy: string
  /** Of times that are numbers; null = told by their size. */
  readonly unit: TimeUnit | null
  /** Types of columns, by `column` or `table.column` in lower case. */
  readonly types: readonly { readonly column: string; readonly type: DataType }[]
  /** Rows that cannot be taken are left out; else the first one ends the import. */
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

/** Where the rows of a table go: types of an existing table win. */
export type ResolvedTable =
  | {
      readonly columns: readonly { readonly columnId: number; readonly type: DataType }[]
      /** Index of the column that must not be NULL, -1 without one. */
      readonly timestamp: number
    }
  | { readonly refused: string }

export interface DumpReport {
  /** Of the dump, from 1. */
  readonly line: number
  readonly table: string
  readonly reason: string
}

export type DumpEvent =
  /** Of the proposal with that number. */
  | { readonly kind: 'rows'; readonly table: number; readonly rows: PackedRows }
  /** Something could not be taken; `rows` of it were rows. */
  | { readonly kind: 'report'; readonly report: DumpReport; readonly rows: number }
  | { readonly kind: 'view'; readonly line: number; readonly name: string; readonly query: string }
  | { readonly kind: 'index'; readonly line: number; readonly table: number; readonly column: string }

export interface DecoderOptions extends DumpOptions {
  /** Makes the table, or finds it. */
  readonly resolve: (proposal: ProposedTable) => ResolvedTable
}

export type ToDumpWorker =
  | { readonly kind: 'block'; readonly bytes: Uint8Array; readonly last: boolean }
  | { readonly kind: 'resolved'; readonly table: ResolvedTable }

export type FromDumpWorker =
  | { readonly kind: 'events'; readonly events: readonly DumpEvent[] }
  | { readonly kind: 'resolve'; readonly proposal: ProposedTable }
  | { readonly kind: 'failed'; readonly message: string; readonly internal: boolean }
