// The catalog as statements of a session see it: tables and views of the snapshot, relations of the layers above, and what
// the engine itself is doing.

import type { Session } from '../api/session.js'
import type { VirtualRelation } from '../api/statements.js'
import type { Catalog, QueryFigures } from '../sql/catalog.js'
import { type CounterOptions, Counters, counterOf } from '../sql/relations/counters.js'
import { liveColumns } from '../storage/schema/schema.js'
import type { HiddenTables } from './hidden-tables.js'
import type { LocalEngineOptions } from './local-options.js'
import { storedEnumeration, storedSequence, storedView, tableOnly, visibleTo } from './plan-helpers.js'
import { tableFigures } from './table-figures.js'
import type { UserCatalog } from './user-catalog.js'

export interface CatalogParts {
  readonly hidden: HiddenTables
  readonly relations: ReadonlyMap<string, VirtualRelation>
  readonly users: UserCatalog
  /** Statements that run or are being planned. */
  readonly activity: () => readonly QueryFigures[]
  /** Stores what a sequence has given. */
  readonly note: CounterOptions['store']
  /** Whose statement is being planned. */
  readonly asking: () => Session | null
}

export function localCatalog(
  { memory, view, systemTable, parameters }: LocalEngineOptions,
  { hidden, relations, users, activity, asking, note }: CatalogParts,
): Catalog {
  const sequence = (name: string) => storedSequence(view.table(name))
  const counters = new Counters({ columnOf: countedColumns(view), sequenceOf: sequence, store: note })
  return {
    counters,
    table: (name) => (hidden.hides(name) ? undefined : tableOnly(view.table(name))),
    tables: () =>
      view.tables().filter((version) => tableOnly(version) !== undefined && !hidden.hides(version.schema.name)),
    stored: (id) => view.byId(id),
    droppable: (name) => systemTable?.(name.toLowerCase()) === undefined,
    figures: (tableId) => tableFigures(memory, view, tableId),
    relation: (name) => relations.get(name.toLowerCase()),
    view: (name) => storedView(view.table(name)),
    sequence,
    sequences: () => view.tables().flatMap((version) => storedSequence(version) ?? []),
    enumeration: (name) => storedEnumeration(view.table(name)),
    enumerations: () => view.tables().flatMap((version) => storedEnumeration(version) ?? []),
    views: () => view.tables().flatMap((version) => storedView(version) ?? []),
    activity: () => visibleTo(asking(), activity()),
    users: () =>
      visibleTo(
        asking(),
        users.figures().map((figures) => ({ ...figures, user: figures.name })),
      ),
    parameters,
  }
}

/** Looks through all tables when the catalog has changed, and not for each number. */
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
