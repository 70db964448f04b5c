// What an unreadable statement had named before its mistake. Existing clients know that a missing table or column is
// told first; the parser knows no catalog, so the mistake carries these names to whoever does.

import { SqlError } from '../../base/errors.js'
import type { Cursor } from './cursor.js'

export interface Mention {
  /**
   * 'type': of a new column; 'view': of ALTER VIEW; 'column': of DROP and RENAME; 'added column': of ADD COLUMN; 'altered column': of
   * ALTER COLUMN, 'symbol column' where it sets a capacity; 'partitions' and 'dedup': what only some tables have; 'wal': of RESUME WAL.
   */
  readonly kind:
    | 'type'
    | 'view'
    | 'table'
    | 'column'
    | 'added column'
    | 'altered column'
    | 'symbol column'
    | 'partitions'
    | 'dedup'
    | 'wal'
  readonly name: string
  readonly position: number
}

export class UnreadableError extends SqlError {
  readonly mentions: readonly Mention[]

  constructor({ message, position }: SqlError, mentions: readonly Mention[]) {
    super(message, position)
    this.mentions = mentions
  }
}

export function mention<Named extends { readonly name: string; readonly position: number }>(
  { mentions }: Cursor,
  kind: Mention['kind'],
  named: Named,
): Named {
  mentions.push({ kind, name: named.name, position: named.position })
  return named
}

/** Runs a parser; a mistake leaves with what the statement named before. */
export function withMentions<Result>(cursor: Cursor, parse: (cursor: Cursor) => Result): Result {
  try {
    return parse(cursor)
  } catch (error) {
    throw error instanceof SqlError && cursor.mentions.length > 0 ? new UnreadableError(error, cursor.mentions) : error
  }
}
