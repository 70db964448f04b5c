// Builds the rows of a catalog relation as one list for each table or view, and caches each list. When one table
// changes, only its list is built again: the catalog object of an unchanged table stays the same object, also in the
// catalog of a transaction, and is the key of the cache.
//
// Invariant: the same list object always has the same rows. relations.ts caches what it derives from a list.

import type { RowRecord } from '../pg-catalog/catalog.js'
import type { BindContext } from '../scope/bind-context.js'
import { type CatalogEntry, ownEntries } from './entries.js'

export type RecordLists = readonly (readonly RowRecord[])[]
export type ListsOf = (context: BindContext) => RecordLists

/** Wraps `make` to cache its result for each entry, and the array of the results for each list of entries. */
export function perEntry<Made>(make: (entry: CatalogEntry) => Made): (entries: readonly CatalogEntry[]) => Made[] {
  const known = new WeakMap<CatalogEntry, Made>()
  const lists = new WeakMap<readonly CatalogEntry[], Made[]>()
  const madeOf = (entry: CatalogEntry): Made => {
    const before = known.get(entry)
    if (before !== undefined) return before
    const made = make(entry)
    known.set(entry, made)
    return made
  }
  return (entries) => {
    const before = lists.get(entries)
    if (before !== undefined) return before
    const made = entries.map(madeOf)
    lists.set(entries, made)
    return made
  }
}

/** Lists of rows for all tables and views of the database. */
export function ofOwn(make: (entry: CatalogEntry) => readonly RowRecord[]): ListsOf {
  const lists = perEntry(make)
  return (context) => lists(ownEntries(context))
}
