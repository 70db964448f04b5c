// Tables as a session's transaction sees them. Whoever has no session sees what is stored.

import type { Session } from '../api/session.js'
import type { Catalog } from '../sql/catalog.js'
import { draftedCatalog, draftOf } from '../sql/scope/drafted-catalog.js'
import { isTaken } from '../sql/statements/sequences.js'
import type { TableVersion } from '../storage/schema/schema.js'
import type { CatalogView } from './catalog-view.js'

/** Its transaction has changed schemas: what is known of a text is not of its tables. */
export function hasDraft({ pending = [] }: Session): boolean {
  return pending.some(({ draft }) => draft !== undefined)
}

/** A table as the session's transaction sees it; whoever has no session sees hidden ones, too. */
export function seenTable(
  name: string,
  session: Session | undefined,
  catalog: Catalog,
  view: Pick<CatalogView, 'table'>,
): TableVersion | undefined {
  const draft = session === undefined ? null : draftOf(session.pending ?? [])
  return draft === null ? view.table(name) : draftedCatalog(catalog, draft).table(name)
}

export function seenById(
  id: number,
  { pending = [] }: Session,
  view: Pick<CatalogView, 'byId'>,
): TableVersion | undefined {
  const drafted = draftOf(pending)?.tables.get(id)
  return drafted === undefined ? view.byId(id) : (drafted.version ?? undefined)
}

/** A table, a view, a sequence or an enumeration. */
export function entryExists(
  name: string,
  session: Session | undefined,
  catalog: Catalog,
  view: Pick<CatalogView, 'table'>,
): boolean {
  const draft = session === undefined ? null : draftOf(session.pending ?? [])
  return draft === null ? view.table(name) !== undefined : isTaken(name, draftedCatalog(catalog, draft))
}
