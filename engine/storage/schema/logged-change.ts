// Schema changes in the form in which log frames contain them: results, not statements, so that replay is
// deterministic.

import type { TableSchema } from './schema.js'

/** A change in a ddl frame, or in the ddl list of a rows frame. */
export type LoggedChange =
  | { readonly kind: 'schema'; readonly schema: TableSchema }
  | { readonly kind: 'drop'; readonly tableId: number }
  /** The statement that created the table has filled it. */
  | { readonly kind: 'finish'; readonly tableId: number }
  /** Removes rows up to the transaction. */
  | { readonly kind: 'truncate'; readonly tableId: number; readonly transaction: number }
