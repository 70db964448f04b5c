// Rows of pg_catalog relations (pg_class, pg_attribute, pg_type, pg_proc, pg_stat_activity, ...), as tools for
// PostgreSQL read them, made from the database's catalog, the session and the server's activity. The columns are
// defined in pg-catalog/catalog.ts.

import { textArray } from '../../types/text-lists.js'
import type { Backend, QueryActivity } from '../catalog.js'
import { procedures } from '../functions/registry/all.js'
import type { RowRecord } from '../pg-catalog/catalog.js'
import { databaseName, databaseOid, ownerOid } from '../pg-catalog/database.js'
import { once } from '../pg-catalog/once.js'
import type { Procedure } from '../pg-catalog/procedures.js'
import { settingRecords } from '../pg-catalog/session-options.js'
import { formatType, pgRangeRecords, pgTypeNamed, pgTypeRecord, pgTypes } from '../pg-catalog/types.js'
import type { BindContext } from '../scope/bind-context.js'
import { commentRecords } from './comments.js'
import { type CatalogEntry, defaultOid, type EntryColumn, ownEntries, rowTypeOid, systemEntries } from './entries.js'
import { enumerationLabels, enumerationTypes } from './enumeration-rows.js'
import { btree, keyClasses, keyColumns, keyOwners, pgConstraint, pgIndex, pgIndexes, pgOpclass } from './key-rows.js'
import { isOwnSchema, namespaceOid, namespaces, schemasOf } from './namespaces.js'
import { type ListsOf, ofOwn } from './record-lists.js'
import { roleRecords, userRecords } from './roles.js'
import { pgSequence, pgSequences, sequenceClasses, sequenceOwners } from './sequence-rows.js'

type Rows = (context: BindContext) => readonly RowRecord[]

const encodingUtf8 = 6
const defaultTablespace = 1663
const heap = 2

// Rows about the catalog itself are made once.

const systemClasses = once(() => systemEntries.map(classRecord))
const systemAttributes = once(() => systemEntries.flatMap(attributeRecords))
const systemStatistics = once(() => systemEntries.flatMap(statisticRecords))
const typeRecords = once(() => pgTypes.map(pgTypeRecord))
const rangeRecords = once(pgRangeRecords)
const procedureRecords = once(() => procedures().map(procedureRecord))
const aggregateRecords = once(() =>
  procedures().flatMap(({ oid, kind }) => (kind === 'a' ? [{ aggfnoid: oid, aggkind: 'n' }] : [])),
)
const procedureDescriptions = once(() =>
  procedures().flatMap(({ oid, description }) =>
    description === null ? [] : [{ objoid: oid, classoid: 1255, objsubid: 0, description: description }],
  ),
)
const opclassRecords = once(pgOpclass)
const zoneAbbreviations = once(() => [{ abbrev: 'UTC', utc_offset: '00:00:00' }])
const zoneNames = once(() => [{ name: 'UTC', abbrev: 'UTC', utc_offset: '00:00:00' }])
const collations = once(() => [collation(100, 'default', 'd', -1), collation(950, 'C', 'c', -1)])
const tablespaces = once(() => [{ oid: defaultTablespace, spcname: 'pg_default', spcowner: ownerOid }])
const languages = once(() => [
  { oid: 12, lanname: 'internal', lanowner: ownerOid },
  { oid: 14, lanname: 'sql', lanowner: ownerOid, lanpltrusted: true },
])
const accessMethods = once(() => [
  { oid: heap, amname: 'heap', amtype: 't' },
  { oid: btree, amname: 'btree', amtype: 'i' },
])

/** Rows about tables and views, one list for each. */
const ownClasses = ofOwn((entry) => [classRecord(entry)])
const ownKeyClasses = ofOwn(keyClasses)
const ownAttributes = ofOwn(attributeRecords)
const ownKeyAttributes = ofOwn((entry) => keyColumns(entry).flatMap(attributeRecords))
const ownTypes = ofOwn((entry) => [rowTypeRecord(entry)])
const ownKeyOwners = ofOwn(keyOwners)
const ownStatistics = ofOwn(statisticRecords)

/** Relations whose rows depend on schemas and parts of tables alone, so they are cached for each table. */
export const cachedRows: Readonly<Record<string, ListsOf>> = {
  pg_class: (context) => [...ownClasses(context), ...ownKeyClasses(context), sequenceClasses(context), systemClasses()],
  pg_attribute: (context) => [...ownAttributes(context), ...ownKeyAttributes(context), systemAttributes()],
  pg_index: ofOwn(pgIndex),
  pg_indexes: ofOwn(pgIndexes),
  pg_constraint: ofOwn(pgConstraint),
  pg_opclass: () => [opclassRecords()],
  pg_attrdef: ofOwn(defaultRecords),
  pg_namespace: (context) => [[...schemasOf(context)].map(([nspname, oid]) => ({ oid, nspname, nspowner: ownerOid }))],
  pg_type: (context) => [typeRecords(), enumerationTypes(context), ...ownTypes(context)],
  pg_enum: (context) => [enumerationLabels(context)],
  pg_range: () => [rangeRecords()],
  pg_proc: () => [procedureRecords()],
  pg_aggregate: () => [aggregateRecords()],
  pg_description: (context) => [...commentRecords(context), procedureDescriptions()],
  pg_depend: (context) => [sequenceOwners(context), ...ownKeyOwners(context)],
  pg_stat_all_tables: (context) => [...ownStatistics(context), systemStatistics()],
  pg_stat_user_tables: ownStatistics,
  pg_stat_sys_tables: () => [systemStatistics()],
  pg_statio_user_tables: ownStatistics,
  pg_timezone_abbrevs: () => [zoneAbbreviations()],
  pg_timezone_names: () => [zoneNames()],
  pg_collation: () => [collations()],
  pg_tablespace: () => [tablespaces()],
  pg_language: () => [languages()],
  pg_am: () => [accessMethods()],
}

/**
 * Relations whose rows also depend on the session or on the server's activity, so they are computed for each statement.
 */
export const sessionRows: Readonly<Record<string, Rows>> = {
  pg_database: ({ evaluation }) => [databaseRecord(evaluation.user)],
  pg_roles: roleRecords,
  pg_authid: roleRecords,
  pg_user: userRecords,
  pg_shadow: userRecords,
  pg_settings: ({ evaluation }) => settingRecords(evaluation),
  pg_tables: (context) =>
    everyEntry(context, 'table').map(({ name, schema }) => ({
      schemaname: schema,
      tablename: name,
      tableowner: context.evaluation.user,
    })),
  pg_views: (context) =>
    everyEntry(context, 'view').map(({ name, schema, sql }) => ({
      schemaname: schema,
      viewname: name,
      viewowner: context.evaluation.user,
      definition: sql,
    })),
  pg_matviews: (context) =>
    everyEntry(context, 'materialized view').map(({ name, schema, sql }) => ({
      schemaname: schema,
      matviewname: name,
      matviewowner: context.evaluation.user,
      hasindexes: false,
      ispopulated: true,
      definition: sql,
    })),
  pg_sequence: pgSequence,
  pg_sequences: pgSequences,
  pg_stat_activity: activityRecords,
  pg_stat_ssl: sslRecords,
  pg_prepared_statements: preparedRecords,
  pg_cursors: cursorRecords,
  pg_stat_database: () => [{ datid: databaseOid, datname: databaseName }],
}

function everyEntry(context: BindContext, kind: CatalogEntry['kind']): CatalogEntry[] {
  return [...ownEntries(context), ...systemEntries].filter((entry) => entry.kind === kind)
}

const relationKinds = { table: 'r', view: 'v', 'materialized view': 'm' } as const

function classRecord({ oid, schema, name, kind, columns, rows, bytes, keys }: CatalogEntry): RowRecord {
  return {
    oid,
    relname: name,
    relnamespace: namespaceOid(schema),
    reltype: isOwnSchema(schema) ? rowTypeOid(oid) : 0,
    relowner: ownerOid,
    relam: kind === 'view' ? 0 : heap,
    relfilenode: kind === 'view' ? 0 : oid,
    relpages: Math.ceil(bytes / 8192),
    // Unflushed rows are not counted. Without flushed rows the value is -1, as for a table that was never analysed.
    reltuples: rows > 0 ? rows : -1,
    relpersistence: 'p',
    relkind: relationKinds[kind],
    relnatts: columns.length,
    relhasindex: keys.length > 0,
    relispopulated: true,
    relreplident: isOwnSchema(schema) ? 'd' : 'n',
  }
}

/** The row type that PostgreSQL has for each table. */
function rowTypeRecord({ oid, schema, name }: CatalogEntry): RowRecord {
  return {
    ...recordType,
    ...{ oid: rowTypeOid(oid), typname: name, typnamespace: namespaceOid(schema), typrelid: oid },
    ...{ typtype: 'c', typcategory: 'C', typarray: 0 },
  }
}

const recordType = pgTypeRecord(pgTypeNamed('record'))

function attributeRecords({ oid, columns }: Pick<CatalogEntry, 'oid' | 'columns'>): RowRecord[] {
  return columns.map((column, index) => attributeRecord(oid, column, index))
}

function defaultRecords({ oid, columns }: CatalogEntry): RowRecord[] {
  return columns.flatMap(({ default: adbin }, index) =>
    adbin === null ? [] : [{ oid: defaultOid(oid, index), adrelid: oid, adnum: index + 1, adbin, adsrc: adbin }],
  )
}

function attributeRecord(oid: number, column: EntryColumn, index: number): RowRecord {
  const { name, pgType, modifier, dimensions } = column
  return {
    attrelid: oid,
    attname: name,
    atttypid: pgType.oid,
    attstattarget: -1,
    attlen: pgType.length,
    attnum: index + 1,
    attndims: dimensions,
    attcacheoff: -1,
    atttypmod: modifier,
    attbyval: pgType.byValue,
    attalign: pgType.align,
    attstorage: pgType.storage,
    attcompression: '',
    attnotnull: column.notNull,
    atthasdef: column.default !== null,
    attidentity: column.identity === null ? '' : column.identity === 'always' ? 'a' : 'd',
    attgenerated: '',
    attislocal: true,
    attcollation: pgType.collation,
  }
}

const volatilities = { pure: 'i', statement: 's', row: 'v' } as const

function procedureRecord({ oid, name, kind, volatility, takes, more, gives }: Procedure): RowRecord {
  const all = more === 0 ? takes : [...takes, more]
  return {
    oid,
    proname: name,
    pronamespace: namespaces.pg_catalog,
    proowner: ownerOid,
    prolang: 12,
    procost: 1,
    provariadic: more,
    prokind: kind,
    proisstrict: true,
    provolatile: volatilities[volatility],
    proparallel: 's',
    pronargs: all.length,
    prorettype: gives,
    proargtypes: all.join(' '),
    prosrc: name,
  }
}

function databaseRecord(user: string): RowRecord {
  return {
    oid: databaseOid,
    datname: databaseName,
    datdba: ownerOid,
    encoding: encodingUtf8,
    datcollate: 'en_US.UTF-8',
    datctype: 'en_US.UTF-8',
    datallowconn: true,
    datconnlimit: -1,
    dattablespace: defaultTablespace,
    datlocprovider: 'c',
    datacl: `{=Tc/${user},${user}=CTc/${user}}`,
  }
}

function collation(oid: number, name: string, provider: string, encoding: number): RowRecord {
  return {
    oid,
    collname: name,
    collnamespace: namespaces.pg_catalog,
    collowner: ownerOid,
    collprovider: provider,
    collisdeterministic: true,
    collencoding: encoding,
  }
}

function statisticRecords({ oid, schema, name, kind, rows }: CatalogEntry): RowRecord[] {
  if (kind !== 'table') return []
  return [{ relid: oid, schemaname: schema, relname: name, n_live_tup: BigInt(rows) }]
}

// pg_stat_activity: every backend with its current statement, and the running statements of other clients.

function activityRecords({ catalog }: BindContext): RowRecord[] {
  const running = catalog.activity()
  const sessions = (catalog.backends?.() ?? []).map(backendRecord)
  const known = new Set(sessions.map(({ pid }) => pid))
  return [
    ...sessions.map((session) => ({
      ...session,
      ...statementOf(running.find((one) => one.processId === session.pid)),
    })),
    ...running
      .filter(({ processId }) => !known.has(processId))
      .map((one) => ({ ...everybody, ...statementOf(one), pid: one.queryId, usename: one.user })),
  ]
}

const everybody = {
  datid: databaseOid,
  datname: databaseName,
  leader_pid: null,
  usesysid: ownerOid,
  backend_type: 'client backend',
}

function backendRecord(backend: Backend): RowRecord & { readonly pid: number } {
  const { processId, user, application, remoteAddress, state } = backend
  const colon = remoteAddress.lastIndexOf(':')
  return {
    ...everybody,
    pid: processId,
    usename: user,
    application_name: application,
    client_addr: remoteAddress.slice(0, colon).replace(/^\[|\]$/g, ''),
    client_port: Number(remoteAddress.slice(colon + 1)),
    backend_start: BigInt(backend.connectedAtMicros),
    state_change: BigInt(backend.lastActiveAtMicros),
    state: state === 'querying' ? 'active' : state,
    query: '',
  }
}

/** Rows of pg_stat_ssl. */
function sslRecords({ catalog }: BindContext): RowRecord[] {
  return (catalog.backends?.() ?? []).map(({ processId, tls }) => ({ pid: processId, ssl: tls }))
}

function statementOf(activity: QueryActivity | undefined): RowRecord {
  if (activity === undefined) return {}
  const { queryId, startMicros, sql } = activity
  const start = BigInt(startMicros)
  return { query_start: start, state_change: start, state: 'active', query_id: BigInt(queryId), query: sql }
}

// pg_prepared_statements and pg_cursors: the prepared statements and cursors of the session.

function preparedRecords({ named }: BindContext): RowRecord[] {
  return (named?.().prepared ?? []).map(({ name, text, micros, oids, bySql }) => ({
    name,
    statement: text,
    prepare_time: BigInt(micros),
    parameter_types: textArray(oids.map((oid) => formatType(oid, null))),
    from_sql: bySql,
    generic_plans: 0n,
    custom_plans: 0n,
  }))
}

function cursorRecords({ named }: BindContext): RowRecord[] {
  return (named?.().cursors ?? []).map(({ name, text, micros, hold, binary, scroll }) => ({
    name,
    statement: text,
    is_holdable: hold,
    is_binary: binary,
    is_scrollable: scroll,
    creation_time: BigInt(micros),
  }))
}
