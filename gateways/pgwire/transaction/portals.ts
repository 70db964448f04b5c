// Closes the portals (running queries of the extended protocol) and SQL cursors of a session when they or their
// transaction end.

import type { PgSession, SqlCursor } from '../context.js'

/** Null: there is nothing to wait for. */
export type Waiting = Promise<void> | null

export function closePortals(pg: PgSession): Waiting {
  const closing: Promise<void>[] = []
  for (const { cursor } of pg.portals.values()) if (cursor !== null) closing.push(cursor.close())
  pg.portals.clear()
  return closing.length === 0 ? null : Promise.all(closing).then(() => {})
}

export async function closeCursors(pg: PgSession, which: (cursor: SqlCursor) => boolean): Promise<void> {
  for (const cursor of [...pg.cursors.values()]) {
    if (!which(cursor)) continue
    pg.cursors.delete(cursor.name)
    await cursor.rows?.close()
  }
}

/**
 * Ends cursors with their transaction; those WITH HOLD stay unless the transaction that declared them is rolled
 * back.
 */
export async function endCursors(pg: PgSession, retained: boolean): Promise<void> {
  await closeCursors(pg, ({ hold, isNew }) => !hold || (isNew && !retained))
  for (const cursor of pg.cursors.values()) cursor.isNew = false
}
