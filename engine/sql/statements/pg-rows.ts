// Rows of pg_catalog: what the catalog holds, as tools of the PostgreSQL world read it. Columns are in pg-columns.ts.

import { liveColumns } from '../../storage/schema.js'
import type { DataType } from '../../types/column-types.js'
import type { Value } from '../../types/value.js'
import type { BindContext } from '../bind/bind-context.js'
import { viewColumns } from '../bind/from.js'
import { aggregateFunctions, scalarFunctions } from '../functions/all.js'
import { pgTypeOf, pgTypeRecord, pgTypes } from '../functions/pg-types.js'
import { sessionOptions } from '../functions/session-options.js'

export type RowRecord = Readonly<Record<string, Value>>

/** Oid of the one role, the owner of everything. */
export const ownerOid = 10
const catalogOid = 11
export const publicOid = 2200
const informationOid = 13_000
const databaseOid = 1
/** Oids of tables and views: their ids behind this. */
const firstOid = 16_384
const firstFunctionOid = 100_000
const encodingUtf8 = 6
export const databaseName = 'qdb'

/** A table or a view with its columns. */
export interface CatalogEntry {
  readonly oid: number
  readonly name: string
  readonly kind: 'table' | 'view'
  readonly columns: readonly { readonly name: string; readonly type: DataType }[]
  /** Rows in parts: an estimate, cheap to have. */
  readonly rows: number
  readonly indexed: boolean
  /** Of a view. */
  readonly sql: string | null
}

export function catalogEntries({ catalog, evaluation }: BindContext): CatalogEntry[] {
  const tables = catalog.tables().map(
    ({ schema, parts }): CatalogEntry => ({
      oid: firstOid + schema.id,
      name: schema.name,
      kind: 'table',
      columns: liveColumns(schema),
      rows: parts.reduce((sum, part) => sum + part.rows, 0),
      indexed: false,
      sql: null,
    }),
  )
  const views = catalog.views().map(
    (view): CatalogEntry => ({
      oid: firstOid + view.id,
      name: view.name,
      kind: 'view',
      columns: viewColumns(view, catalog, evaluation),
      rows: 0,
      indexed: false,
      sql: view.sql,
    }),
  )
  return [...tables, ...views]
}

/** Oids of the catalog's own relations, as `'pg_class'::regclass` names them. */
const systemOids: Readonly<Record<string, number>> = {
  pg_type: 1247,
  pg_attribute: 1249,
  pg_proc: 1255,
  pg_class: 1259,
  pg_database: 1262,
  pg_attrdef: 2604,
  pg_constraint: 2606,
  pg_description: 2609,
  pg_index: 2610,
  pg_namespace: 2615,
  pg_trigger: 2620,
  pg_shdescription: 2396,
  pg_authid: 1260,
  pg_roles: 1260,
  pg_extension: 3079,
}

/** undefined when there is no relation of that name. Quotes and the schema before the name are allowed. */
export function relationOid(name: string, { catalog }: BindContext): number | undefined {
  const parts = name.replaceAll('"', '').split('.')
  const last = parts[parts.length - 1] ?? ''
  const id = catalog.table(last)?.schema.id ?? catalog.view(last)?.id
  if (id !== undefined && parts[parts.length - 2] !== 'pg_catalog') return firstOid + id
  return systemOids[last.toLowerCase()]
}

type Rows = (context: BindContext) => readonly RowRecord[]

export const pgRows: Readonly<Record<string, Rows>> = {
  pg_class: (context) => catalogEntries(context).map(classRecord),
  pg_namespace: () => [
    namespace('pg_catalog', catalogOid),
    namespace('public', publicOid),
    namespace('information_schema', informationOid),
  ],
  pg_type: () => pgTypes.map(pgTypeRecord),
  pg_attribute: (context) => catalogEntries(context).flatMap(attributeRecords),
  pg_attrdef: (context) =>
    catalogEntries(context).flatMap(({ oid, columns }) =>
      columns.map((_, index) => ({ adrelid: oid, adnum: index + 1, adbin: '', oid: 0 })),
    ),
  pg_database: () => [databaseRecord],
  pg_roles: ({ evaluation }) => [roleRecord(evaluation.user)],
  pg_authid: ({ evaluation }) => [roleRecord(evaluation.user)],
  pg_user: ({ evaluation }) => [
    { usename: evaluation.user, usesysid: ownerOid, usecreatedb: true, usesuper: true, passwd: '********' },
  ],
  pg_settings: () => Object.values(sessionOptions).map(settingRecord),
  pg_tables: (context) =>
    catalogEntries(context)
      .filter(({ kind }) => kind === 'table')
      .map(({ name }) => ({ schemaname: 'public', tablename: name, tableowner: context.evaluation.user })),
  pg_views: (context) =>
    context.catalog.views().map(({ name, sql }) => ({
      schemaname: 'public',
      viewname: name,
      viewowner: context.evaluation.user,
      definition: sql,
    })),
  pg_am: () => [
    { oid: 2, amname: 'heap', amtype: 't' },
    { oid: 403, amname: 'btree', amtype: 'i' },
  ],
  pg_proc: functionRecords,
  pg_stat_activity: activityRecords,
  pg_stat_user_tables: (context) =>
    catalogEntries(context).map(({ oid, name, rows }) => ({
      relid: oid,
      schemaname: 'public',
      relname: name,
      n_live_tup: BigInt(rows),
    })),
  pg_tablespace: () => [{ oid: 1663, spcname: 'pg_default', spcowner: ownerOid }],
  pg_collation: () => [
    {
      oid: 100,
      collname: 'default',
      collnamespace: catalogOid,
      collowner: ownerOid,
      collprovider: 'd',
      collencoding: -1,
    },
  ],
  pg_timezone_names: () => [{ name: 'UTC', abbrev: 'UTC', utc_offset: '00:00:00' }],
}

function classRecord({ oid, name, kind, columns, rows }: CatalogEntry): RowRecord {
  return {
    oid,
    relname: name,
    relnamespace: publicOid,
    relowner: ownerOid,
    reltuples: rows,
    relpersistence: 'p',
    relkind: kind === 'table' ? 'r' : 'v',
    relnatts: columns.length,
    relispopulated: true,
    relreplident: 'd',
    tableoid: systemOids['pg_class'] ?? 0,
  }
}

function namespace(name: string, oid: number): RowRecord {
  return { nspname: name, oid, nspowner: ownerOid, tableoid: systemOids['pg_namespace'] ?? 0 }
}

function attributeRecords({ oid, columns }: CatalogEntry): RowRecord[] {
  return columns.map(({ name, type }, index) => {
    const pgType = pgTypeOf(type)
    return {
      attrelid: oid,
      attname: name,
      attnum: index + 1,
      atttypid: pgType.oid,
      atttypmod: type.name === 'DECIMAL' ? ((type.a << 16) | type.b) + 4 : -1,
      attlen: pgType.length,
      attndims: type.name === 'ARRAY' ? type.a : 0,
      attstattarget: -1,
      attislocal: true,
    }
  })
}

const databaseRecord: RowRecord = {
  oid: databaseOid,
  datname: databaseName,
  datdba: ownerOid,
  encoding: encodingUtf8,
  datcollate: 'en_US.UTF-8',
  datctype: 'en_US.UTF-8',
  datallowconn: true,
  datconnlimit: -1,
  dattablespace: 1663,
  datlocprovider: 'c',
}

function roleRecord(user: string): RowRecord {
  return {
    rolname: user,
    rolsuper: true,
    rolinherit: true,
    rolcreaterole: false,
    rolcreatedb: false,
    rolcanlogin: true,
    rolconnlimit: -1,
    rolpassword: '********',
    rolbypassrls: true,
    oid: ownerOid,
  }
}

function settingRecord({ column, value }: { readonly column: string; readonly value: string }): RowRecord {
  return {
    name: column,
    setting: value,
    category: 'Client Connection Defaults',
    context: 'internal',
    vartype: 'string',
    source: 'default',
    boot_val: value,
    reset_val: value,
    sourceline: null,
  }
}

function functionRecords(): RowRecord[] {
  const names = new Map<string, 'f' | 'a'>()
  for (const { name } of scalarFunctions) if (/^[a-z]\w*$/i.test(name)) names.set(name, 'f')
  for (const { name } of aggregateFunctions) names.set(name, 'a')
  return [...names].map(([name, kind], index) => ({
    oid: firstFunctionOid + index,
    proname: name,
    pronamespace: catalogOid,
    proowner: ownerOid,
    prokind: kind,
    provolatile: 'i',
    prorettype: 1043,
  }))
}

function activityRecords({ catalog }: BindContext): RowRecord[] {
  return catalog.activity().map(({ queryId, user, startMicros, sql }) => ({
    datid: databaseOid,
    datname: databaseName,
    pid: queryId,
    leader_pid: null,
    usesysid: ownerOid,
    usename: user,
    query_start: BigInt(startMicros),
    state_change: BigInt(startMicros),
    state: 'active',
    query_id: BigInt(queryId),
    query: sql,
    backend_type: 'client backend',
  }))
}
