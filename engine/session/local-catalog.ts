// The catalog as the statements of a session see it: tables, views, virtual relations of the gateways and the server,
// sequences, enumerations, users and running statements. Tables that a setting hides, and users and statements that the
// session may not see, are missing.

import type { Session } from '../api/session.js'
import type { VirtualRelation } from '../api/statements.js'
import type { Catalog, QueryActivity } from '../sql/catalog.js'
import { type CounterOptions, Counters, counterOf } from '../sql/relations/counters.js'
import { liveColumns } from '../storage/schema/schema.js'
import type { EngineHooks, LocalEngineOptions } from './local-options.js'
import { storedEnumeration, storedSequence, storedView, tableOnly, visibleTo } from './plan-helpers.js'
import { tableStatistics } from './table-statistics.js'
import type { UserCatalog } from './user-catalog.js'

export interface CatalogParts {
  readonly relations: ReadonlyMap<string, VirtualRelation>
  readonly users: UserCatalog
  /** The running statements. */
  readonly activity: () => Iterable<QueryActivity>
  /** Stores the state of a sequence. */
  readonly note: CounterOptions['store']
}

/** The session that asks, and the statement being planned, which sees itself among the running statements. */
interface Asker {
  readonly session: Session
  readonly planned: QueryActivity | null
}

/** null: no session; it sees no sessions, and no tables that a setting hides. */
export type CatalogOf = (asker: Asker | null) => Catalog

export function localCatalog(
  { memory, view, systemTable, parameters, backends }: LocalEngineOptions,
  { relations, users, activity, note }: CatalogParts,
): CatalogOf {
  const sequence = (name: string) => storedSequence(view.table(name))
  const counters = new Counters({ columnOf: countedColumns(view), sequenceOf: sequence, store: note })
  const shared = {
    counters,
    origin: view,
    stored: (id: number) => view.byId(id),
    droppable: (name: string) => systemTable?.(name.toLowerCase()) === undefined,
    statistics: (tableId: number) => tableStatistics(memory, view, tableId),
    relation: (name: string) => relations.get(name.toLowerCase()),
    view: (name: string) => storedView(view.table(name)),
    sequence,
    sequences: () => view.tables().flatMap((version) => storedSequence(version) ?? []),
    enumeration: (name: string) => storedEnumeration(view.table(name)),
    enumerations: () => view.tables().flatMap((version) => storedEnumeration(version) ?? []),
    views: () => view.tables().flatMap((version) => storedView(version) ?? []),
    parameters,
    ...(backends === undefined ? {} : { backends }),
  }
  const catalogFor: CatalogOf = (asker) => {
    const session = asker?.session ?? null
    const hides = (name: string): boolean => isHidden(name, session, systemTable)
    const planned = asker?.planned ?? null
    return {
      ...shared,
      table: (name) => (hides(name) ? undefined : tableOnly(view.table(name))),
      tables: () => view.tables().filter((version) => tableOnly(version) !== undefined && !hides(version.schema.name)),
      activity: () => visibleTo(session, [...activity(), ...(planned === null ? [] : [planned])]),
      users: () =>
        visibleTo(
          session,
          users.entries().map((entry) => ({ ...entry, user: entry.name })),
        ),
    }
  }
  const ofNobody = catalogFor(null)
  return (asker) => (asker === null ? ofNobody : catalogFor(asker))
}

/** Whether a setting hides this table of the server itself from sessions other than the server's own. */
export function isHidden(name: string, session: Session | null, systemTable: EngineHooks['systemTable']): boolean {
  return session?.internal !== true && systemTable?.(name.toLowerCase()) === 'hidden'
}

/** Finds the column of a sequence; the index over all tables is rebuilt only after catalog changes. */
function countedColumns(view: LocalEngineOptions['view']): CounterOptions['columnOf'] {
  let epoch = -1
  const found = new Map<string, string>()
  return (name) => {
    if (epoch !== view.epoch) {
      epoch = view.epoch
      found.clear()
      for (const { schema } of view.tables()) {
        for (const column of liveColumns(schema)) {
          const counter = counterOf(column)?.toLowerCase()
          if (counter !== undefined && !found.has(counter)) found.set(counter, `${schema.id} ${column.id}`)
        }
      }
    }
    return found.get(name)
  }
}
