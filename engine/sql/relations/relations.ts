// The relations of pg_catalog and information_schema: combines their columns with the rows that rows.ts and the files
// *-rows.ts make, and caches the result.
//
// Clients of the PostgreSQL dialect see PostgreSQL's columns. Clients of the native dialect (over HTTP) see, for some
// relations, other columns (pg-catalog/recorded-columns.ts). PostgreSQL's remaining columns are then hidden from `*`
// but can be named.

import { type DataType, dataType } from '../../types/column-types.js'
import type { Value } from '../../types/value.js'
import type { RowRecord } from '../pg-catalog/catalog.js'
import { type PgRelation, pgRelation, systemColumns } from '../pg-catalog/catalog.js'
import { once } from '../pg-catalog/once.js'
import { recordedCatalog, recordedInformation } from '../pg-catalog/recorded-columns.js'
import { ownTypeRecords } from '../pg-catalog/types.js'
import type { BindContext } from '../scope/bind-context.js'
import { cachedInformation, ownColumnRecords, sessionInformation } from './information-rows.js'
import type { RecordLists } from './record-lists.js'
import type { RelationColumn, SystemRelation } from './relation-columns.js'
import { columnList, nothing } from './relation-columns.js'
import { RowIndex } from './row-index.js'
import { cachedRows, sessionRows } from './rows.js'

const typesOfColumns = once(ownTypeRecords)

export interface CatalogRequest {
  /** null: an unqualified name of pg_catalog. */
  readonly schema: string | null
  readonly name: string
  /** Written as a function: `pg_type()`. */
  readonly called: boolean
  readonly context: BindContext
}

/** The relation of that name; undefined if there is none. */
export function catalogRelation({ schema, name, called, context }: CatalogRequest): SystemRelation | undefined {
  if (schema === 'information_schema') return informationRelation(name, context)
  if (schema !== null && schema !== 'pg_catalog') return undefined
  const relation = pgRelation('pg_catalog', name)
  if (relation === undefined) return undefined
  const columns = columnsOf(relation, recordedCatalog[name], context)
  if (called && name === 'pg_type') return made(columns, () => [typesOfColumns()])
  const ofSession = sessionRows[name]
  if (ofSession !== undefined) return made(columns, () => [ofSession(context)], relation)
  return { ...made(columns, () => cachedRows[name]?.(context) ?? [], relation), lasting: true }
}

function informationRelation(name: string, context: BindContext): SystemRelation | undefined {
  if (name === 'questdb_columns')
    return made(columnList(recordedInformation['columns'] ?? ''), () => ownColumnRecords(context))
  const relation = pgRelation('information_schema', name)
  if (relation === undefined) return undefined
  const columns = columnsOf(relation, recordedInformation[name], context)
  const named = name === 'character_sets' && !context.dialect.postgresCatalog ? withTrailingBlank(columns) : columns
  const ofSession = sessionInformation[name]
  if (ofSession !== undefined) return made(named, () => [ofSession(context)], relation)
  return { ...made(named, () => cachedInformation[name]?.(context) ?? [], relation), lasting: true }
}

/** The last column's name ends in a blank. Recorded behaviour, on which clients depend. */
function withTrailingBlank(columns: readonly RelationColumn[]): RelationColumn[] {
  return columns.map((column) =>
    column.name === 'default_collate_name' ? { ...column, name: `${column.name} ` } : column,
  )
}

/** Columns of former versions of PostgreSQL that clients still read by name. */
const formerColumns: Readonly<Record<string, string>> = {
  pg_class: 'relhasoids BOOLEAN',
  pg_constraint: 'consrc STRING',
  pg_attrdef: 'adsrc STRING',
  pg_proc: 'proisagg BOOLEAN, proiswindow BOOLEAN',
  pg_database: 'datlastsysoid INT',
}

const knownColumns = new Map<string, readonly RelationColumn[]>()

function columnsOf(
  relation: PgRelation,
  recorded: string | undefined,
  { dialect }: BindContext,
): readonly RelationColumn[] {
  const key = `${relation.oid} ${dialect.postgresCatalog}`
  const columns = knownColumns.get(key) ?? allColumns(relation, dialect.postgresCatalog ? undefined : recorded)
  knownColumns.set(key, columns)
  return columns
}

function allColumns(
  { name, schema, kind, columns }: PgRelation,
  recorded: string | undefined,
): readonly RelationColumn[] {
  const shown =
    recorded !== undefined
      ? columnList(recorded)
      : columns.map((column): RelationColumn => ({ name: column.name, type: column.type }))
  const former = schema === 'pg_catalog' ? formerColumns[name] : undefined
  const others = [
    ...columns,
    ...(former === undefined ? [] : columnList(former)),
    ...(kind === 'table' ? systemColumns : []),
  ]
  const known = new Set(shown.map((column) => column.name))
  const hidden = others.filter((column) => !known.has(column.name))
  return [...shown, ...hidden.map((column): RelationColumn => ({ name: column.name, type: column.type, hidden: true }))]
}

function made(columns: readonly RelationColumn[], lists: () => RecordLists, relation?: PgRelation): SystemRelation {
  // Unknown values are 0 in a table and NULL in a view.
  const isView = relation?.kind === 'view'
  const own = { tableoid: relation?.oid ?? 0 }
  const known = knownRows(columns)
  const rowsOf = (records: readonly RowRecord[]): readonly Row[] => {
    const before = known.get(records)
    if (before !== undefined) return before
    const rows = records.map((record) => columns.map((column) => cellOf(column, record, isView, own)))
    known.set(records, rows)
    return rows
  }
  const index = (): RowIndex => joined(columns, lists(), rowsOf)
  return { columns, rows: () => index().rows, index }
}

type Row = readonly Value[]

interface JoinedLists {
  readonly lists: RecordLists
  readonly index: RowIndex
}

const lastJoined = new WeakMap<readonly RelationColumn[], JoinedLists>()

/** The concatenated rows of all lists. Returns the previous index if the lists are the same. */
function joined(
  columns: readonly RelationColumn[],
  lists: RecordLists,
  rowsOf: (records: readonly RowRecord[]) => readonly Row[],
): RowIndex {
  const filled = lists.filter(({ length }) => length > 0)
  const last = lastJoined.get(columns)
  if (last?.lists.length === filled.length && filled.every((list, index) => list === last.lists[index]))
    return last.index
  const index = new RowIndex(([] as Row[]).concat(...filled.map(rowsOf)))
  lastJoined.set(columns, { lists: filled, index })
  return index
}

/** Cached rows of lists: most rows describe the catalog itself, or tables that have not changed. */
const rowsOfColumns = new WeakMap<readonly RelationColumn[], WeakMap<readonly RowRecord[], readonly Row[]>>()

function knownRows(columns: readonly RelationColumn[]): WeakMap<readonly RowRecord[], readonly Row[]> {
  const known = rowsOfColumns.get(columns) ?? new WeakMap<readonly RowRecord[], readonly Row[]>()
  rowsOfColumns.set(columns, known)
  return known
}

function cellOf({ name, type }: RelationColumn, record: RowRecord, isView: boolean, own: RowRecord): Value {
  const value = record[name] ?? own[name]
  if (value === undefined) return isView && type.name !== 'LONG' ? nothing(nullable(type)) : nothing(type)
  return value === null ? null : converted(value, type)
}

/** A type with NULL as its empty value, where one exists. */
function nullable(type: DataType): DataType {
  return ['INT', 'FLOAT', 'DOUBLE'].includes(type.name) ? dataType('STRING') : type
}

/** Converts a value to the column's type, since some recorded columns differ from PostgreSQL's. */
function converted(value: Value, { name }: DataType): Value {
  switch (typeof value) {
    case 'number':
      if (name === 'BOOLEAN') return value !== 0
      return name === 'STRING' ? String(value) : name === 'LONG' ? BigInt(value) : value
    case 'string':
      if (name === 'BOOLEAN') return value === 'YES'
      return name === 'INT' ? value.charCodeAt(0) : value
    case 'boolean':
      return name === 'STRING' ? (value ? 'YES' : 'NO') : value
    default:
      return value
  }
}
