// What the catalog has names for: tables and views of the database, and the relations of the catalog itself.

import { liveColumns } from '../../storage/schema.js'
import type { DataType } from '../../types/column-types.js'
import type { BindContext } from '../bind/bind-context.js'
import { pgRelations } from './catalog.js'
import { nameParts, quoteIdent } from './names.js'
import { type PgType, pgTypeOf, typeModifier } from './types.js'

/** Oids of tables, views and sequences: their ids behind this. */
export const firstOid = 16_384

const counterOid = 2 ** 31 - 2

export const namespaces = { pg_catalog: 11, public: 2200, information_schema: 13_000 } as const
export type Schema = keyof typeof namespaces

export interface CatalogEntry {
  readonly oid: number
  readonly schema: Schema
  readonly name: string
  readonly kind: 'table' | 'view'
  readonly columns: readonly EntryColumn[]
  /** Rows in parts: an estimate, cheap to have. */
  readonly rows: number
  /** Bytes in parts. */
  readonly bytes: number
  /** Text of a view of the database. */
  readonly sql: string | null
}

export interface EntryColumn {
  readonly name: string
  readonly pgType: PgType
  readonly modifier: number
  /** Of the database's own tables and views. */
  readonly type: DataType | null
  /** Dimensions of an array. */
  readonly dimensions: number
  /** Text of the default. */
  readonly default: string | null
}

/** Tables and views of the database. */
export function ownEntries({ catalog, viewShape }: BindContext): CatalogEntry[] {
  const tables = catalog.tables().map(
    ({ schema, parts }): CatalogEntry => ({
      oid: firstOid + schema.id,
      schema: 'public',
      name: schema.name,
      kind: 'table',
      columns: liveColumns(schema).map(ownColumn),
      rows: parts.reduce((sum, { rows }) => sum + rows, 0),
      bytes: parts.reduce((sum, { bytes }) => sum + bytes, 0),
      sql: null,
    }),
  )
  const views = catalog.views().map(
    (view): CatalogEntry => ({
      oid: firstOid + view.id,
      schema: 'public',
      name: view.name,
      kind: 'view',
      columns: viewShape(view).columns.map(ownColumn),
      rows: 0,
      bytes: 0,
      sql: view.sql,
    }),
  )
  return [...tables, ...views]
}

interface OwnColumn {
  readonly name: string
  readonly type: DataType
  readonly default?: string
}

function ownColumn({ name, type, default: value }: OwnColumn): EntryColumn {
  return {
    name,
    pgType: pgTypeOf(type),
    modifier: typeModifier(type),
    type,
    dimensions: type.name === 'ARRAY' ? type.a : 0,
    default: value === undefined ? null : shownDefault(value),
  }
}

/** Mappers know a counted column by the words that PostgreSQL has for it. */
function shownDefault(text: string): string {
  return text.replace(/^(nextval\('(?:[^']|'')*')\)$/, '$1::regclass)')
}

/** The relations of the catalog itself. */
export const systemEntries: readonly CatalogEntry[] = pgRelations.map(({ oid, schema, name, kind, columns }) => ({
  oid,
  schema,
  name,
  kind,
  columns: columns.map((column) => ({
    name: column.name,
    pgType: column.pgType,
    modifier: -1,
    type: null,
    dimensions: column.pgType.category === 'A' ? 1 : 0,
    default: null,
  })),
  rows: 0,
  bytes: 0,
  sql: null,
}))

const systemOids = new Map(systemEntries.map(({ schema, name, oid }) => [`${schema}.${name}`, oid]))

/** undefined when there is no relation of that name. A schema, and a database before it, are allowed. */
export function relationOid(written: string, { catalog }: BindContext): number | undefined {
  if (/^\s*\d+\s*$/.test(written)) return Number(written)
  const parts = nameParts(written)
  const name = parts[parts.length - 1] ?? ''
  const schema = parts[parts.length - 2]
  // Any other schema than these is a part of the name.
  const own = schema === undefined || schema === 'public' ? name : `${schema}.${name}`
  const id = catalog.table(own)?.schema.id ?? catalog.view(own)?.id ?? catalog.sequence?.(own)?.id
  if (id !== undefined) return firstOid + id
  // The counter of a column is no relation: a number that none has.
  if (catalog.counters?.last(own) !== undefined) return counterOid
  return systemOids.get(`${schema ?? 'pg_catalog'}.${name}`)
}

/** Names of relations by oid, as `oid::regclass` shows them. */
export function relationNames({ catalog }: BindContext): ReadonlyMap<number, string> {
  const names = new Map<number, string>()
  for (const { oid, schema, name } of systemEntries)
    names.set(oid, schema === 'pg_catalog' ? name : `${schema}.${quoteIdent(name)}`)
  for (const { schema } of catalog.tables()) names.set(firstOid + schema.id, quoteIdent(schema.name))
  for (const { id, name } of [...catalog.views(), ...(catalog.sequences?.() ?? [])])
    names.set(firstOid + id, quoteIdent(name))
  return names
}
