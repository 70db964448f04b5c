// The catalog as the session's open transaction sees it: the stored catalog with the transaction's schema changes on
// top.

import type { PendingChange } from '../../api/session.js'
import { type Draft, type DraftTable, draftVersions, requireUnchanged } from '../../storage/schema/draft.js'
import { isTable, liveColumns, type TableVersion } from '../../storage/schema/schema.js'
import type { Catalog, TableStatistics } from '../catalog.js'
import { type Counters, counterOf } from '../relations/counters.js'

/** The draft of the last schema change of the transaction; null if it has changed no schema. */
export function draftOf(pending: readonly PendingChange[]): Draft | null {
  return pending.findLast(({ draft }) => draft !== undefined)?.draft ?? null
}

export function draftedCatalog(catalog: Catalog, draft: Draft | null): Catalog {
  if (draft === null || draft.tables.size === 0) return catalog
  const named = new Map(draftVersions(draft).map((version) => [version.schema.name.toLowerCase(), version]))
  const isStored = (id: number): boolean => !draft.tables.has(id)
  const drafted = (name: string): TableVersion | undefined => {
    const version = named.get(name.toLowerCase())
    if (version !== undefined)
      requireUnchanged(draft.tables.get(version.schema.id) as DraftTable, stored(catalog, version))
    return version
  }
  /** The entry as the transaction changed it, or the stored entry. */
  const entry = <Found extends { readonly id: number }>(
    name: string,
    own: (version: TableVersion) => Found | undefined,
    other: Found | undefined,
  ): Found | undefined => {
    const version = drafted(name)
    if (version !== undefined) return own(version)
    return other !== undefined && isStored(other.id) ? other : undefined
  }
  const entries = <Found extends { readonly id: number }>(
    own: (version: TableVersion) => Found | undefined,
    others: readonly Found[],
  ): Found[] => {
    const all = [...others.filter(({ id }) => isStored(id)), ...[...named.values()].flatMap((it) => own(it) ?? [])]
    return all.sort((x, y) => x.id - y.id)
  }
  const asTable = (version: TableVersion | undefined) =>
    version === undefined || !isTable(version.schema) ? undefined : { id: version.schema.id, version }
  const counters = catalog.counters === undefined ? undefined : draftedCounters(catalog.counters, draft, named)
  return {
    ...catalog,
    ...(counters === undefined ? {} : { counters }),
    table: (name) => entry(name, asTable, asTable(catalog.table(name)))?.version,
    tables: () =>
      entries(
        asTable,
        catalog.tables().flatMap((version) => asTable(version) ?? []),
      ).map(({ version }) => version),
    statistics: (id) => (draft.tables.get(id)?.base === null ? noStatistics : catalog.statistics(id)),
    view: (name) => entry(name, viewOf, catalog.view(name)),
    views: () => entries(viewOf, catalog.views()),
    sequence: (name) => entry(name, (version) => sequenceOf(version, draft), catalog.sequence?.(name)),
    sequences: () => entries((version) => sequenceOf(version, draft), catalog.sequences?.() ?? []),
    enumeration: (name) => entry(name, enumerationOf, catalog.enumeration?.(name)),
    enumerations: () => entries(enumerationOf, catalog.enumerations?.() ?? []),
  }
}

/** The version that is stored now. */
function stored(catalog: Catalog, { schema: { id } }: TableVersion): TableVersion | undefined {
  return catalog.stored?.(id)
}

type Entry<Kind extends 'view' | 'sequence' | 'enumeration'> = ReturnType<NonNullable<Catalog[Kind]>>

function viewOf({ schema }: TableVersion): Entry<'view'> {
  const { id, name, view, createdMicros } = schema
  return view === undefined ? undefined : { id, name, sql: view, createdMicros }
}

function sequenceOf({ schema }: TableVersion, { given }: Draft): Entry<'sequence'> {
  const { id, name, sequence } = schema
  return sequence === undefined ? undefined : { id, name, sequence: given.get(id) ?? sequence }
}

function enumerationOf({ schema }: TableVersion): Entry<'enumeration'> {
  const { id, name, labels } = schema
  return labels === undefined ? undefined : { id, name, labels }
}

/** Counters that store the values of sequences created in the transaction in its draft. */
function draftedCounters(counters: Counters, draft: Draft, named: ReadonlyMap<string, TableVersion>): Counters {
  return counters.within({
    columnOf: (name) => {
      for (const { schema } of named.values())
        for (const column of liveColumns(schema))
          if (counterOf(column)?.toLowerCase() === name) return `${schema.id} ${column.id}`
      return undefined
    },
    sequenceOf: (name) => {
      const version = named.get(name)
      return version === undefined ? undefined : sequenceOf(version, draft)
    },
    store: (id, sequence) => {
      if (draft.tables.get(id)?.base !== null) return undefined
      draft.given.set(id, sequence)
      return Promise.resolve()
    },
  })
}

const noStatistics: TableStatistics = {
  ...{ rows: 0, minTs: null, maxTs: null, lastWriteMicros: null, visibleTxn: 0, schemaChanges: [] },
  ...{ rewrites: 0, repeats: 0, storageWork: [], partitions: [] },
  ...{ symbolCounts: new Map(), nullSymbols: new Set<number>(), transactions: new Map() },
}
