// The table changes that the log records. A record has the result of a statement, not its text: the new schema, the id
// of a dropped or filled table, the row numbers (positions) of removed rows, or the transaction up to which TRUNCATE
// removes rows. So a replay gives the same result in every version of the server.

import type { TableSchema } from './schema.js'

/** A change in a ddl frame, or in the ddl list of a rows frame. */
export type LoggedChange =
  | { readonly kind: 'schema'; readonly schema: TableSchema }
  | { readonly kind: 'drop'; readonly tableId: number }
  /** The statement that created the table has filled it. */
  | { readonly kind: 'finish'; readonly tableId: number }
  /**
   * Rows that an upsert has replaced or deleted, as numbers of rows (memtable/removed-rows.ts): those of parts, and
   * those of the memtable that starts with the transaction `firstTxn`. Applied after the rows of the same frame.
   */
  | {
      readonly kind: 'remove'
      readonly tableId: number
      readonly parts: readonly (readonly [partId: number, rows: string])[]
      readonly firstTxn: number
      readonly rows: string
    }
  /** Removes rows up to the transaction, and of TRUNCATE the buckets of views that were sealed up to then. */
  | { readonly kind: 'truncate'; readonly tableId: number; readonly transaction: number; readonly unseals?: true }
