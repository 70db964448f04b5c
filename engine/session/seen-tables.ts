// Looks up tables by name or id as a session sees them, which includes the schema changes of its open transaction.
// Without a session, tables are returned as they are stored.

import type { Session } from '../api/session.js'
import type { Catalog } from '../sql/catalog.js'
import { draftedCatalog, draftOf } from '../sql/scope/drafted-catalog.js'
import { isTaken } from '../sql/statements/sequences.js'
import type { TableVersion } from '../storage/schema/schema.js'
import type { CatalogView } from './catalog-view.js'

/** Whether the session's transaction has changed schemas, so that cached descriptions do not apply. */
export function hasDraft({ pending = [] }: Session): boolean {
  return pending.some(({ draft }) => draft !== undefined)
}

/** A table as the session sees it; without a session, hidden tables are visible, too. */
export function seenTable(
  name: string,
  session: Session | undefined,
  catalog: Catalog,
  view: Pick<CatalogView, 'table'>,
): TableVersion | undefined {
  const draft = session === undefined ? null : draftOf(session.pending ?? [])
  return draft === null ? view.table(name) : draftedCatalog(catalog, draft).table(name)
}

/** Tables by their ids, as the session sees them. */
export interface SeenTables {
  readonly byId: (id: number) => TableVersion | undefined
  /** Throws SqlError if the table was dropped. */
  readonly required: (id: number) => TableVersion
}

export function seenTables({ pending = [] }: Session, view: Pick<CatalogView, 'byId' | 'droppedNames'>): SeenTables {
  const byId = (id: number): TableVersion | undefined => {
    const drafted = draftOf(pending)?.tables.get(id)
    return drafted === undefined ? view.byId(id) : (drafted.version ?? undefined)
  }
  const required = (id: number): TableVersion => {
    const version = byId(id)
    if (version === undefined) throw view.droppedNames.error(id)
    return version
  }
  return { byId, required }
}

/** Whether the name is a table, view, sequence or enumeration. */
export function entryExists(
  name: string,
  session: Session | undefined,
  catalog: Catalog,
  view: Pick<CatalogView, 'table'>,
): boolean {
  const draft = session === undefined ? null : draftOf(session.pending ?? [])
  return draft === null ? view.table(name) !== undefined : isTaken(name, draftedCatalog(catalog, draft))
}
