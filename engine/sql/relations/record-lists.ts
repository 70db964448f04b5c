// Rows of the catalog as lists, a list for each table or view. What is made of an entry of the catalog is made once: the
// entry of a table stays the same object until the table changes, in a draft of the catalog as well.
//
// Invariant: a list that is the same object has the same rows. relations.ts keeps what it makes of a list.

import type { RowRecord } from '../pg-catalog/catalog.js'
import type { BindContext } from '../scope/bind-context.js'
import { type CatalogEntry, ownEntries } from './entries.js'

export type RecordLists = readonly (readonly RowRecord[])[]
export type ListsOf = (context: BindContext) => RecordLists

/** `make`, whose results are kept as long as the entries are; the same results when the entries are the last ones. */
export function perEntry<Made>(make: (entry: CatalogEntry) => Made): (entries: readonly CatalogEntry[]) => Made[] {
  const known = new WeakMap<CatalogEntry, Made>()
  let last: { readonly entries: readonly CatalogEntry[]; readonly made: Made[] } = { entries: [], made: [] }
  const madeOf = (entry: CatalogEntry): Made => {
    const before = known.get(entry)
    if (before !== undefined) return before
    const made = make(entry)
    known.set(entry, made)
    return made
  }
  return (entries) => {
    if (entries !== last.entries) last = { entries, made: entries.map(madeOf) }
    return last.made
  }
}

/** Of all tables and views of the database. */
export function ofOwn(make: (entry: CatalogEntry) => readonly RowRecord[]): ListsOf {
  const lists = perEntry(make)
  return (context) => lists(ownEntries(context))
}
