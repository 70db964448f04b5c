// The portals of a session at their end.

import type { PgSession } from './context.js'

/** Null: there is nothing to wait for. */
export type Waiting = Promise<void> | null

export function closePortals(pg: PgSession): Waiting {
  const closing: Promise<void>[] = []
  for (const { cursor } of pg.portals.values()) if (cursor !== null) closing.push(cursor.close())
  pg.portals.clear()
  return closing.length === 0 ? null : Promise.all(closing).then(() => {})
}
