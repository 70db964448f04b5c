// Uncommitted schema changes of a transaction (DDL is transactional). A draft has the tables as the transaction's
// statements see them. Nothing is stored before COMMIT, when the writer applies the draft together with the
// transaction's rows (writer-transaction.ts). Drafts are immutable: each change returns a new one, so a savepoint is an
// earlier draft.
//
// Table ids are reserved at the writer at once. Column ids follow from the schema, so COMMIT fails if the stored schema
// has changed since the transaction's first change of the table.

import { SqlError } from '../../base/errors.js'
import { tableColumnsMax } from '../../base/limits.js'
import { type DataType, sameType } from '../../types/column-types.js'
import type { SchemaChange } from '../jobs/messages.js'
import {
  emptiedSchema,
  finishedSchema,
  isTable,
  type SequenceSchema,
  type TableSchema,
  type TableVersion,
} from './schema.js'
import { changeColumns, changeSchema, retypedSchema } from './schema-change.js'

export interface DraftTable {
  /** As the transaction's statements see it; null: dropped. */
  readonly version: TableVersion | null
  /** The stored version it derives from; null: the transaction created the table. */
  readonly base: TableVersion | null
  /** Whether COMMIT removes the stored rows. */
  readonly emptied: boolean
  /** Whether COMMIT rewrites the rows as the transaction sees them. */
  readonly rebuilt: boolean
  /** Columns that replace others with another type: old ids by new ids. */
  readonly retyped: ReadonlyMap<number, number>
}

/** Contains the tables that the transaction has changed, by id. */
export interface Draft {
  readonly tables: ReadonlyMap<number, DraftTable>
  /** State of sequences that the transaction created. All its drafts share it, since no number may be drawn twice. */
  readonly given: Map<number, SequenceSchema>
}

export interface DraftSource {
  /** Undefined if no table with that id is stored. */
  readonly stored: (tableId: number) => TableVersion | undefined
  /** Id for a table that the transaction creates. */
  readonly newId: () => number
}

export function emptyDraft(): Draft {
  return { tables: new Map(), given: new Map() }
}

/** The draft after one more change. Throws SqlError. */
export function draftAfter(draft: Draft, change: SchemaChange, source: DraftSource): Draft {
  if (change.kind === 'createTable') return created(draft, change, source.newId())
  const before = draftTable(draft, change.tableId, source)
  const after = changedTable(before, change)
  return after === before ? draft : withTable(draft, change.tableId, after)
}

/** Marks further tables whose rows COMMIT must rewrite. */
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
  if (schema.materialized !== undefined)
    throw new SqlError('CREATE MATERIALIZED VIEW cannot run within a transaction', 0)
  const whole: TableSchema = { ...schema, id, version: 1 }
  const version: TableVersion = { version: 0, schema: whole, parts: [], memtables: [], dictionaries: [] }
  return withTable(draft, id, { version, base: null, emptied: false, rebuilt: false, retyped: new Map() })
}

function changedTable(table: DraftTable, change: Exclude<SchemaChange, { kind: 'createTable' }>): DraftTable {
  const { version } = table
  if (version === null) throw new SqlError(`table does not exist [id=${change.tableId}]`, 0)
  switch (change.kind) {
    case 'dropTable':
      return { ...table, version: null, emptied: true, rebuilt: false }
    case 'truncateTable':
      return { ...table, version: { ...version, schema: unsealed(version.schema) }, emptied: true, rebuilt: false }
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

function unsealed(schema: TableSchema): TableSchema {
  const emptied = emptiedSchema(schema)
  return emptied === schema ? schema : { ...emptied, version: schema.version + 1 }
}

/** `rewrites`: whether existing rows must be rewritten. */
function withSchema(table: DraftTable, version: TableVersion, schema: TableSchema, rewrites = false): DraftTable {
  if (schema === version.schema) return table
  return { ...table, version: { ...version, schema }, rebuilt: table.rebuilt || rewrites }
}

/** Whether rows that the present DEDUP keys have superseded would become visible again. */
export function losesKeys(schema: TableSchema, changes: Partial<Pick<TableSchema, DedupMember>>): boolean {
  return schema.dedupKeys.length > 0 && changesDedup(schema, { ...schema, ...changes })
}

type DedupMember = 'dedupKeys' | 'dedupSkips'

/** Whether other rows are duplicates, or other duplicates stay. */
export function changesDedup(before: Pick<TableSchema, DedupMember>, after: Pick<TableSchema, DedupMember>): boolean {
  const skips = (schema: Pick<TableSchema, DedupMember>): boolean => schema.dedupSkips === true
  return before.dedupKeys.join() !== after.dedupKeys.join() || skips(before) !== skips(after)
}

/** The new schema of a table whose last transaction this is. Rows that are stored before DEDUP is declared all stay. */
export function withDedupStart(before: TableSchema, after: TableSchema, transaction: number): TableSchema {
  if (!changesDedup(before, after)) return after
  const { dedupAfter: _, ...rest } = after
  return after.dedupKeys.length === 0 || transaction === 0 ? rest : { ...rest, dedupAfter: transaction }
}

function retypedTable(
  table: DraftTable,
  version: TableVersion,
  change: Extract<SchemaChange, { kind: 'changeTypes' }>,
): DraftTable {
  const { types, changes } = change
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
  return { ...withSchema(table, version, retypedSchema(whole, change, newId), true), retyped }
}

/** The versions of the changed tables, without dropped ones. */
export function draftVersions({ tables }: Draft): TableVersion[] {
  return [...tables.values()].flatMap(({ version }) => (version === null ? [] : [version]))
}

/** Whether COMMIT copies the table's rows to its new version. */
export function keepsRows({ version, rebuilt }: DraftTable): boolean {
  return version !== null && rebuilt && isTable(version.schema)
}

/**
 * Whether rows may become one if COMMIT writes them again: rows with equal keys that precede DEDUP, which all stay, or
 * rows whose keys become equal.
 */
export function losesRepeats({ base, version, emptied, retyped }: DraftTable): boolean {
  if (base === null || version === null || emptied || version.schema.dedupKeys.length === 0) return false
  const { columns } = version.schema
  const original = (id: number): number => {
    const old = retyped.get(id)
    if (old === undefined) return id
    return isDistinctAs(columns[old]?.type, columns[id]?.type) ? original(old) : id
  }
  const dedupKeys = version.schema.dedupKeys.map(original)
  return base.schema.dedupAfter !== undefined || changesDedup(base.schema, { ...version.schema, dedupKeys })
}

/** Names of types; different values of one are different values of those after it. */
const distinctTypes = [
  ['BYTE', 'SHORT', 'INT', 'LONG'],
  ['BYTE', 'SHORT', 'INT', 'DOUBLE'],
  ['FLOAT', 'DOUBLE'],
]
const textTypes = new Set(['STRING', 'VARCHAR', 'SYMBOL'])
const printedTypes = new Set([...textTypes, 'BOOLEAN', 'BYTE', 'SHORT', 'INT', 'LONG', 'CHAR', 'UUID', 'IPV4'])

function isDistinctAs(from: DataType | undefined, to: DataType | undefined): boolean {
  if (from === undefined || to === undefined) return false
  if (printedTypes.has(from.name) && textTypes.has(to.name)) return true
  return distinctTypes.some((names) => {
    const place = names.indexOf(from.name)
    return place >= 0 && names.indexOf(to.name, place) >= 0
  })
}

/** Throws SqlError if another transaction has changed the table since. */
export function requireUnchanged({ base }: DraftTable, stored: TableVersion | undefined): void {
  if (base === null || stored?.schema.version === base.schema.version) return
  throw changedMeanwhile(base.schema.name)
}

export function changedMeanwhile(name: string): SqlError {
  return new SqlError(`the table has changed meanwhile, try the transaction again [table=${name}]`, 0)
}
