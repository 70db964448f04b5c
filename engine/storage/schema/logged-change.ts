// The types of schema changes as the log stores them: as the resulting schema or the id of the dropped table, not as
// the statement, so that a replay gives the same result in every version of the server.

import type { TableSchema } from './schema.js'

/** A change in a ddl frame, or in the ddl list of a rows frame. */
export type LoggedChange =
  | { readonly kind: 'schema'; readonly schema: TableSchema }
  | { readonly kind: 'drop'; readonly tableId: number }
  /** The statement that created the table has filled it. */
  | { readonly kind: 'finish'; readonly tableId: number }
  /** Removes rows up to the transaction. */
  | { readonly kind: 'truncate'; readonly tableId: number; readonly transaction: number }
