// Rows of information_schema. In the relations tables, columns and views, clients of PostgreSQL also see the relations
// of the catalog itself, as the SQL standard requires. Clients of the native dialect (over HTTP) see the tables and
// views of the database alone.

import { typeText } from '../../types/column-types.js'
import { procedures } from '../functions/registry/all.js'
import type { RowRecord } from '../pg-catalog/catalog.js'
import { databaseName } from '../pg-catalog/database.js'
import { once } from '../pg-catalog/once.js'
import type { Procedure } from '../pg-catalog/procedures.js'
import { firstOid, formatType, type PgType } from '../pg-catalog/types.js'
import type { BindContext } from '../scope/bind-context.js'
import { type CatalogEntry, type EntryColumn, ownEntries, systemEntries } from './entries.js'
import { constraintColumnUsage, constraintTableUsage, keyColumnUsage, tableConstraints } from './key-rows.js'
import { isOwnSchema, schemasOf } from './namespaces.js'
import { type ListsOf, ofOwn, perEntry } from './record-lists.js'
import { counterNumbers, informationSequences } from './sequence-rows.js'

type Rows = (context: BindContext) => readonly RowRecord[]

const systemTables = once(() => systemEntries.map(tableRecord))
const systemColumns = once(() => systemEntries.flatMap(columnRecords))
const routineRecords = once(() => procedures().map(routineRecord))

const shownViews = perEntry(({ kind, schema, name, sql }: CatalogEntry) =>
  kind !== 'view'
    ? []
    : [
        {
          ...tableName(schema, name),
          view_definition: sql,
          check_option: 'NONE',
          is_updatable: 'NO',
          is_insertable_into: 'NO',
          is_trigger_updatable: 'NO',
          is_trigger_deletable: 'NO',
          is_trigger_insertable_into: 'NO',
        },
      ],
)
const ownTables = ofOwn((entry) => [tableRecord(entry)])
const ownColumns = ofOwn(columnRecords)
const characterSets = once(() => [characterSet])
const catalogNames = once(() => [{ catalog_name: databaseName }])

/** Relations whose rows depend on table schemas alone, so they are cached for each table. */
export const cachedInformation: Readonly<Record<string, ListsOf>> = {
  tables: (context) => [...ownTables(context), shownOfSystem(context, systemTables)],
  columns: (context) => [...ownColumns(context), shownOfSystem(context, systemColumns)],
  views: (context) => shownViews(shownEntries(context)),
  character_sets: () => [characterSets()],
  information_schema_catalog_name: () => [catalogNames()],
  routines: () => [routineRecords()],
  table_constraints: ofOwn(tableConstraints),
  key_column_usage: ofOwn(keyColumnUsage),
  constraint_column_usage: ofOwn(constraintColumnUsage),
  constraint_table_usage: ofOwn(constraintTableUsage),
}

/** Relations whose rows also depend on the session or on counters, so they are computed for each statement. */
export const sessionInformation: Readonly<Record<string, Rows>> = {
  schemata: ({ evaluation, ...context }) =>
    [...schemasOf(context).keys()].map((name) => ({
      catalog_name: databaseName,
      schema_name: name,
      schema_owner: evaluation.user,
    })),
  enabled_roles: ({ evaluation }) => [{ role_name: evaluation.user }],
  table_privileges: (context) => privilegeRecords(context),
  role_table_grants: (context) => privilegeRecords(context),
  sequences: informationSequences,
}

/** In the native dialect the last column's name ends in a blank. Recorded behaviour, on which clients depend. */
const characterSet: RowRecord = {
  character_set_name: 'UTF8',
  character_repertoire: 'UCS',
  form_of_use: 'UTF8',
  default_collate_catalog: 'public',
  default_collate_schema: 'public',
  default_collate_name: 'en_US.utf8',
  'default_collate_name ': 'en_US.utf8',
}

function shownOfSystem({ dialect }: BindContext, records: () => readonly RowRecord[]): readonly RowRecord[] {
  return dialect.postgresCatalog ? records() : []
}

function shownEntries(context: BindContext): readonly CatalogEntry[] {
  const own = ownEntries(context)
  return context.dialect.postgresCatalog ? [...own, ...systemEntries] : own
}

function tableName(schema: string, name: string): RowRecord {
  return { table_catalog: databaseName, table_schema: schema, table_name: name }
}

function tableRecord({ schema, name, kind }: CatalogEntry): RowRecord {
  const writable = kind === 'table' && isOwnSchema(schema)
  return {
    ...tableName(schema, name),
    table_type: kind === 'table' ? 'BASE TABLE' : kind.toUpperCase(),
    is_insertable_into: writable ? 'YES' : 'NO',
    is_typed: 'NO',
  }
}

function columnRecords({ schema, name, kind, columns }: CatalogEntry): RowRecord[] {
  const writable = kind === 'table' && isOwnSchema(schema)
  return columns.map((column, index) => ({
    ...tableName(schema, name),
    column_name: column.name,
    ordinal_position: index + 1,
    column_default: column.default,
    is_nullable: column.notNull ? 'NO' : 'YES',
    data_type: dataTypeName(column.pgType),
    ...typeColumns(column.pgType, column.modifier),
    udt_catalog: databaseName,
    udt_schema: column.pgType.oid >= firstOid ? 'public' : 'pg_catalog',
    udt_name: column.pgType.name,
    dtd_identifier: String(index + 1),
    is_self_referencing: 'NO',
    ...identityColumns(column),
    is_generated: 'NEVER',
    is_updatable: writable ? 'YES' : 'NO',
  }))
}

function identityColumns({ identity, type }: EntryColumn): RowRecord {
  if (identity === null || type === null) return { is_identity: 'NO', identity_cycle: 'NO' }
  const { start, increment, minimum, maximum } = counterNumbers({ type }, 0n)
  return {
    ...{ is_identity: 'YES', identity_generation: identity.toUpperCase(), identity_cycle: 'NO', identity_start: start },
    ...{ identity_increment: increment, identity_minimum: minimum, identity_maximum: maximum },
  }
}

function dataTypeName({ oid, category, sqlName, kind }: PgType): string {
  if (kind === 'e') return 'USER-DEFINED'
  return category === 'A' && sqlName.endsWith('[]') ? 'ARRAY' : sqlName || formatType(oid, null)
}

const binaryDigits: Readonly<Record<string, number>> = { int2: 16, int4: 32, int8: 64, float4: 24, float8: 53 }

function typeColumns({ name, category }: PgType, modifier: number): RowRecord {
  const digits = binaryDigits[name]
  if (digits !== undefined) {
    const scale = name.startsWith('int') ? 0 : null
    return { numeric_precision: digits, numeric_precision_radix: 2, numeric_scale: scale }
  }
  if (name === 'numeric' && modifier >= 0) {
    const [precision, scale] = [(modifier - 4) >> 16, (modifier - 4) & 0xffff]
    return { numeric_precision: precision, numeric_precision_radix: 10, numeric_scale: scale }
  }
  if ((name === 'bpchar' || name === 'varchar') && modifier >= 0)
    return { character_maximum_length: modifier - 4, character_octet_length: (modifier - 4) * 4 }
  if (name === 'varchar' || name === 'text') return { character_octet_length: 1_073_741_824 }
  if (category === 'D' || category === 'T')
    return { datetime_precision: name === 'date' ? 0 : modifier >= 0 ? modifier : 6 }
  return {}
}

/** Columns with the type names of the native dialect and ordinal positions that count from 0. */
export const ownColumnRecords = ofOwn(({ schema, name, columns }) =>
  columns.map((column, index) => ({
    ...tableName(schema, name),
    column_name: column.name,
    ordinal_position: index,
    is_nullable: 'yes',
    data_type: column.type === null ? '' : typeText(column.type),
  })),
)

const privileges = ['INSERT', 'SELECT', 'UPDATE', 'DELETE', 'TRUNCATE'] as const

function privilegeRecords(context: BindContext): RowRecord[] {
  const { user } = context.evaluation
  return ownEntries(context).flatMap(({ schema, name }) =>
    privileges.map((privilege) => ({
      grantor: user,
      grantee: user,
      ...tableName(schema, name),
      privilege_type: privilege,
      is_grantable: 'YES',
      with_hierarchy: privilege === 'SELECT' ? 'YES' : 'NO',
    })),
  )
}

function routineRecord({ oid, name, gives, kind, volatility }: Procedure): RowRecord {
  return {
    specific_catalog: databaseName,
    specific_schema: 'pg_catalog',
    specific_name: `${name}_${oid}`,
    routine_catalog: databaseName,
    routine_schema: 'pg_catalog',
    routine_name: name,
    routine_type: kind === 'f' ? 'FUNCTION' : null,
    data_type: formatType(gives, null),
    type_udt_schema: 'pg_catalog',
    is_deterministic: volatility === 'pure' ? 'YES' : 'NO',
    security_type: 'INVOKER',
  }
}
