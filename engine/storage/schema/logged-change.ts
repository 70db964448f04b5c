// Changes of schemas as frames of the log have them: results, never statements.

import type { TableSchema } from './schema.js'

/** What a ddl frame, or the ddl list of a rows frame, says. */
export type LoggedChange =
  | { readonly kind: 'schema'; readonly schema: TableSchema }
  | { readonly kind: 'drop'; readonly tableId: number }
  /** The statement that made the table has filled it. */
  | { readonly kind: 'finish'; readonly tableId: number }
  /** Rows up to the transaction are gone. */
  | { readonly kind: 'truncate'; readonly tableId: number; readonly transaction: number }
