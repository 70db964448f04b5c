// Schemas as a transaction has changed them: nothing of it is stored before COMMIT, when the writer takes all of it together
// with the transaction's rows (writer-transaction.ts). A draft is never changed: each change makes the next one, so that a
// savepoint is the draft that there was.
//
// Ids of tables are the writer's from the beginning; ids of columns follow from the schema, which must be the same at COMMIT
// as it was when the transaction changed it first.

import { SqlError } from '../../base/errors.js'
import { tableColumnsMax } from '../../base/limits.js'
import { sameType } from '../../types/column-types.js'
import type { SchemaChange } from '../jobs/messages.js'
import { finishedSchema, isTable, type SequenceSchema, type TableSchema, type TableVersion } from './schema.js'
import { changeColumns, changeSchema, retypedSchema } from './schema-change.js'

export interface DraftTable {
  /** As the transaction's statements see it; null: it is dropped. */
  readonly version: TableVersion | null
  /** What it was made from; null: the transaction made the table. */
  readonly base: TableVersion | null
  /** The rows that are stored go. */
  readonly emptied: boolean
  /** COMMIT writes its rows anew, as the transaction sees them. */
  readonly rebuilt: boolean
  /** Columns that stand for others of another type: the old ids by the new ones. */
  readonly retyped: ReadonlyMap<number, number>
}

/** By the ids of the tables that the transaction has changed. */
export interface Draft {
  readonly tables: ReadonlyMap<number, DraftTable>
  /** What sequences of the transaction's own have given: shared by all of its drafts, since no number is given twice. */
  readonly given: Map<number, SequenceSchema>
}

export interface DraftSource {
  /** Undefined: nothing of that id is stored. */
  readonly stored: (tableId: number) => TableVersion | undefined
  /** For a table that the transaction makes. */
  readonly newId: () => number
}

export function emptyDraft(): Draft {
  return { tables: new Map(), given: new Map() }
}

/** With one more change. Throws SqlError. */
export function draftAfter(draft: Draft, change: SchemaChange, source: DraftSource): Draft {
  if (change.kind === 'createTable') return created(draft, change, source.newId())
  const before = draftTable(draft, change.tableId, source)
  const after = changedTable(before, change)
  return after === before ? draft : withTable(draft, change.tableId, after)
}

/** The tables whose rows COMMIT writes anew, besides those that it has to. */
export function withRebuilt(draft: Draft, tableIds: readonly number[], source: Pick<DraftSource, 'stored'>): Draft {
  return tableIds.reduce((now, id) => withTable(now, id, { ...draftTable(now, id, source), rebuilt: true }), draft)
}

function withTable(draft: Draft, id: number, table: DraftTable): Draft {
  return { ...draft, tables: new Map([...draft.tables, [id, table]]) }
}

function draftTable({ tables }: Draft, id: number, { stored }: Pick<DraftSource, 'stored'>): DraftTable {
  const known = tables.get(id)
  if (known !== undefined) return known
  const base = stored(id)
  if (base === undefined) throw new SqlError(`table does not exist [id=${id}]`, 0)
  return { version: base, base, emptied: false, rebuilt: false, retyped: new Map() }
}

function created(draft: Draft, { schema }: Extract<SchemaChange, { kind: 'createTable' }>, id: number): Draft {
  const whole: TableSchema = { ...schema, id, version: 1 }
  const version: TableVersion = { version: 0, schema: whole, parts: [], generations: [], dictionaries: [] }
  return withTable(draft, id, { version, base: null, emptied: false, rebuilt: false, retyped: new Map() })
}

function changedTable(table: DraftTable, change: Exclude<SchemaChange, { kind: 'createTable' }>): DraftTable {
  const { version } = table
  if (version === null) throw new SqlError(`table does not exist [id=${change.tableId}]`, 0)
  switch (change.kind) {
    case 'dropTable':
      return { ...table, version: null, emptied: true, rebuilt: false }
    case 'truncateTable':
      return { ...table, emptied: true, rebuilt: false }
    case 'partitions':
      throw new SqlError('partitions cannot be dropped, detached or attached within a transaction', 0)
    case 'changeTypes':
      return retypedTable(table, version, change)
    case 'finishTable':
      return withSchema(table, version, finishedSchema(version.schema))
    case 'alterTable':
      return withSchema(table, version, changeSchema(version.schema, change), losesKeys(version.schema, change.changes))
    default:
      return withSchema(table, version, changeSchema(version.schema, change))
  }
}

/** `rewrites`: rows that are there have to be written anew. */
function withSchema(table: DraftTable, version: TableVersion, schema: TableSchema, rewrites = false): DraftTable {
  if (schema === version.schema) return table
  return { ...table, version: { ...version, schema }, rebuilt: table.rebuilt || rewrites }
}

/** Whether rows that are repeated by the keys of now would be seen again. */
export function losesKeys({ dedupKeys }: TableSchema, changes: { readonly dedupKeys?: readonly number[] }): boolean {
  const { dedupKeys: keys } = changes
  return keys !== undefined && dedupKeys.length > 0 && keys.join() !== dedupKeys.join()
}

function retypedTable(
  table: DraftTable,
  version: TableVersion,
  { types, changes }: Extract<SchemaChange, { kind: 'changeTypes' }>,
): DraftTable {
  const { schema } = version
  const changed = changeColumns(schema, changes)
  if (types.every(({ columnId, type }) => sameType(schema.columns[columnId]?.type ?? type, type)))
    return withSchema(table, version, changed)
  const newId = changed.columns.length
  if (newId + types.length > tableColumnsMax) throw new SqlError(`too many columns [limit=${tableColumnsMax}]`, 0)
  const reserved = types.map(({ columnId, type }, index) => {
    const name = schema.columns[columnId]?.name ?? ''
    return { id: newId + index, name, type, dropped: true }
  })
  const whole = { ...changed, version: changed.version + 1, columns: [...changed.columns, ...reserved] }
  const retyped = new Map([...table.retyped, ...types.map(({ columnId }, index) => [newId + index, columnId] as const)])
  return { ...withSchema(table, version, retypedSchema(whole, types, newId), true), retyped }
}

/** The tables among them, those that are dropped left out. */
export function draftVersions({ tables }: Draft): TableVersion[] {
  return [...tables.values()].flatMap(({ version }) => (version === null ? [] : [version]))
}

/** Its rows, if it has any, are to be carried over to the table that COMMIT leaves. */
export function keepsRows({ version, rebuilt }: DraftTable): boolean {
  return version !== null && rebuilt && isTable(version.schema)
}

/** Refuses to go on where somebody else has changed the table since. Throws SqlError. */
export function demandUnchanged({ base }: DraftTable, stored: TableVersion | undefined): void {
  if (base === null || stored?.schema.version === base.schema.version) return
  throw changedMeanwhile(base.schema.name)
}

export function changedMeanwhile(name: string): SqlError {
  return new SqlError(`the table has changed meanwhile, try the transaction again [table=${name}]`, 0)
}
