// Rows of pg_catalog and information_schema about the keys of tables (table-keys.ts): indexes, constraints, their
// columns, definitions and operator classes, as PostgreSQL's tools read them.

import { quoteIdent } from '../../types/identifier.js'
import type { RowRecord } from '../pg-catalog/catalog.js'
import { databaseName, ownerOid } from '../pg-catalog/database.js'
import type { PgType } from '../pg-catalog/types.js'
import type { BindContext } from '../scope/bind-context.js'
import { type CatalogEntry, type EntryColumn, type EntryKey, ownEntries } from './entries.js'
import { namespaceOid, namespaces } from './namespaces.js'
import { perEntry } from './record-lists.js'

export const btree = 403

interface Place {
  readonly entry: CatalogEntry
  readonly key: EntryKey
  readonly columns: readonly EntryColumn[]
}

function rowsOf(entry: CatalogEntry): Place[] {
  return entry.keys.map((key) => ({
    entry,
    key,
    columns: key.attributes.flatMap((attribute) => entry.columns[attribute - 1] ?? []),
  }))
}

/** Rows of pg_class for the indexes of the keys. */
export function keyClasses(entry: CatalogEntry): RowRecord[] {
  return rowsOf(entry).map(({ entry: { schema, rows }, key: { oid, name, attributes } }) => ({
    ...{ oid, relname: name, relnamespace: namespaceOid(schema), relowner: ownerOid, relam: btree },
    ...{ relfilenode: oid, reltuples: rows, relpersistence: 'p', relkind: 'i', relnatts: attributes.length },
    ...{ relispopulated: true, relreplident: 'n' },
  }))
}

/** Columns of the indexes, for pg_attribute. */
export function keyColumns(entry: CatalogEntry): { readonly oid: number; readonly columns: readonly EntryColumn[] }[] {
  return rowsOf(entry).map(({ key: { oid }, columns }) => ({
    oid,
    columns: columns.map((column) => ({ ...column, default: null, notNull: false })),
  }))
}

export function pgIndex(entry: CatalogEntry): RowRecord[] {
  return rowsOf(entry).map(({ entry, key: { oid, primary, nullsEqual, attributes }, columns }) => ({
    ...{ indexrelid: oid, indrelid: entry.oid, indnatts: attributes.length, indnkeyatts: attributes.length },
    ...{ indisunique: true, indnullsnotdistinct: nullsEqual, indisprimary: primary, indimmediate: true },
    ...{ indisvalid: true, indisready: true, indislive: true, indkey: attributes.join(' ') },
    indcollation: columns.map(({ pgType }) => pgType.collation).join(' '),
    indclass: columns.map(({ pgType }) => operatorClass(pgType)).join(' '),
    indoption: columns.map(() => 0).join(' '),
  }))
}

export function pgConstraint(entry: CatalogEntry): RowRecord[] {
  return rowsOf(entry).map(({ entry, key: { oid, name, primary, attributes } }) => ({
    ...{ oid, conname: name, connamespace: namespaceOid(entry.schema), contype: primary ? 'p' : 'u' },
    ...{ convalidated: true, conrelid: entry.oid, conindid: oid, conislocal: true, connoinherit: true },
    ...{ confupdtype: ' ', confdeltype: ' ', confmatchtype: ' ', conkey: `{${attributes.join(',')}}` },
  }))
}

export function pgIndexes(entry: CatalogEntry): RowRecord[] {
  return rowsOf(entry).map((place) => ({
    ...{ schemaname: place.entry.schema, tablename: place.entry.name, indexname: place.key.name },
    indexdef: indexText(place),
  }))
}

const classes = { pg_class: 1259, pg_constraint: 2606 } as const

/** Rows of pg_depend: an index depends on its constraint, a constraint on its columns. */
export function keyOwners(entry: CatalogEntry): RowRecord[] {
  return rowsOf(entry).flatMap(({ entry, key: { oid, attributes } }) => {
    const constraint = { classid: classes.pg_constraint, objid: oid, objsubid: 0 }
    const index = { classid: classes.pg_class, objid: oid, objsubid: 0 }
    return [
      { ...index, refclassid: classes.pg_constraint, refobjid: oid, refobjsubid: 0, deptype: 'i' },
      ...attributes.map((refobjsubid) => {
        return { ...constraint, refclassid: classes.pg_class, refobjid: entry.oid, refobjsubid, deptype: 'a' }
      }),
    ]
  })
}

// Definitions -------------------------------------------------------------------------------------------------------

function columnList(columns: readonly EntryColumn[]): string {
  return `(${columns.map(({ name }) => quoteIdent(name)).join(', ')})`
}

function indexText({ entry, key, columns }: Place): string {
  const table = `${quoteIdent(entry.schema)}.${quoteIdent(entry.name)}`
  const nulls = key.nullsEqual ? ' NULLS NOT DISTINCT' : ''
  return `CREATE UNIQUE INDEX ${quoteIdent(key.name)} ON ${table} USING btree ${columnList(columns)}${nulls}`
}

const constraintDefinitionsOf = perEntry((entry) =>
  rowsOf(entry).map(({ key: { oid, primary, nullsEqual }, columns }) => {
    const words = primary ? 'PRIMARY KEY' : nullsEqual ? 'UNIQUE NULLS NOT DISTINCT' : 'UNIQUE'
    return [oid, `${words} ${columnList(columns)}`] as const
  }),
)

/** Results of pg_get_constraintdef(), by the constraint's oid. */
export function constraintDefinitions(context: BindContext): (readonly [number, string])[] {
  return constraintDefinitionsOf(ownEntries(context)).flat()
}

const indexDefinitionsOf = perEntry((entry) =>
  rowsOf(entry).flatMap((place) => [
    [`${place.key.oid} 0`, indexText(place)] as const,
    ...place.columns.map(({ name }, index) => [`${place.key.oid} ${index + 1}`, quoteIdent(name)] as const),
  ]),
)

/** Results of pg_get_indexdef(), by index oid and column number; column 0 is the whole definition. */
export function indexDefinitions(context: BindContext): (readonly [string, string])[] {
  return indexDefinitionsOf(ownEntries(context)).flat()
}

// information_schema ------------------------------------------------------------------------------------------------

function tableOf({ schema, name }: CatalogEntry): RowRecord {
  return { table_catalog: databaseName, table_schema: schema, table_name: name }
}

function constraintOf({ entry, key }: Place): RowRecord {
  return { constraint_catalog: databaseName, constraint_schema: entry.schema, constraint_name: key.name }
}

export function tableConstraints(entry: CatalogEntry): RowRecord[] {
  return rowsOf(entry).map((place) => ({
    ...constraintOf(place),
    ...tableOf(place.entry),
    ...{ constraint_type: place.key.primary ? 'PRIMARY KEY' : 'UNIQUE', is_deferrable: 'NO', initially_deferred: 'NO' },
    enforced: place.key.enforced ? 'YES' : 'NO',
    nulls_distinct: place.key.primary ? null : place.key.nullsEqual ? 'NO' : 'YES',
  }))
}

export function keyColumnUsage(entry: CatalogEntry): RowRecord[] {
  return rowsOf(entry).flatMap((place) =>
    place.columns.map(({ name: column_name }, index) => ({
      ...constraintOf(place),
      ...tableOf(place.entry),
      ...{ column_name, ordinal_position: index + 1, position_in_unique_constraint: null },
    })),
  )
}

export function constraintColumnUsage(entry: CatalogEntry): RowRecord[] {
  return rowsOf(entry).flatMap((place) =>
    place.columns.map(({ name: column_name }) => ({ ...tableOf(place.entry), column_name, ...constraintOf(place) })),
  )
}

export function constraintTableUsage(entry: CatalogEntry): RowRecord[] {
  return rowsOf(entry).map((place) => ({ ...tableOf(place.entry), ...constraintOf(place) }))
}

// Operator classes --------------------------------------------------------------------------------------------------

/** Default operator classes of B-tree indexes: oid, name, family and type. */
const operatorClasses = [
  [10_000, 'array_ops', 397, 2277],
  [10_069, 'enum_ops', 3522, 3500],
  [10_003, 'bool_ops', 424, 16],
  [10_004, 'bpchar_ops', 426, 1042],
  [10_006, 'bytea_ops', 428, 17],
  [3122, 'date_ops', 434, 1082],
  [10_012, 'float4_ops', 1970, 700],
  [3123, 'float8_ops', 1970, 701],
  [10_015, 'inet_ops', 1974, 869],
  [1979, 'int2_ops', 1976, 21],
  [1978, 'int4_ops', 1976, 23],
  [3124, 'int8_ops', 1976, 20],
  [10_022, 'interval_ops', 1982, 1186],
  [10_088, 'jsonb_ops', 4033, 3802],
  [3125, 'numeric_ops', 1988, 1700],
  [1981, 'oid_ops', 1989, 26],
  [3126, 'text_ops', 1994, 25],
  [10_038, 'time_ops', 1996, 1083],
  [3128, 'timestamp_ops', 434, 1114],
  [3127, 'timestamptz_ops', 434, 1184],
  [10_041, 'timetz_ops', 2000, 1266],
  [10_065, 'uuid_ops', 2968, 2950],
] as const

const classByType = new Map<number, number>(operatorClasses.map(([oid, , , type]) => [type, oid]))
const arrayClass = 10_000
const enumClass = 10_069
const textClass = 3126

function operatorClass({ oid, category, kind }: PgType): number {
  if (kind === 'e') return enumClass
  return classByType.get(oid) ?? (category === 'A' ? arrayClass : textClass)
}

export function pgOpclass(): RowRecord[] {
  return operatorClasses.map(([oid, opcname, opcfamily, opcintype]) => ({
    ...{ oid, opcmethod: btree, opcname, opcnamespace: namespaces.pg_catalog, opcowner: ownerOid },
    ...{ opcfamily, opcintype, opcdefault: true, opckeytype: 0 },
  }))
}
