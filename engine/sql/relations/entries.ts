// Describes the relations that PostgreSQL's catalog lists (the tables and views of the database, and the catalog's own)
// as objects with oid, schema, name, columns and keys. rows.ts and the files *-rows.ts format these objects as rows of
// pg_class, pg_attribute and so on.

import { tableColumnsMax } from '../../base/limits.js'
import { type DeclaredColumn, liveColumns, type TableSchema, type TableVersion } from '../../storage/schema/schema.js'
import type { DataType } from '../../types/column-types.js'
import { nameParts, quoteIdent } from '../../types/identifier.js'
import type { StoredView } from '../catalog.js'
import type { Dialect } from '../dialect.js'
import { pgRelations } from '../pg-catalog/catalog.js'
import {
  enumerationType,
  firstOid,
  labelsType,
  type PgType,
  pgTypeNamed,
  pgTypeOf,
  typeModifier,
} from '../pg-catalog/types.js'
import type { BindContext } from '../scope/bind-context.js'
import { counterOf } from './counters.js'
import { placed } from './namespaces.js'
import { keysOfTable, type TableKey } from './table-keys.js'

/** Oids of column counters: below those of defaults. */
const firstCounterOid = 2 ** 29

export interface CatalogEntry {
  readonly oid: number
  readonly schema: string
  readonly name: string
  readonly kind: 'table' | 'view' | 'materialized view'
  readonly columns: readonly EntryColumn[]
  /** Rows in parts: an estimate that is cheap to compute. */
  readonly rows: number
  /** Bytes in parts. */
  readonly bytes: number
  /** Query text of a view. */
  readonly sql: string | null
  readonly keys: readonly EntryKey[]
}

export interface EntryKey extends Omit<TableKey, 'columnIds'> {
  /** Attribute numbers of the key's columns in pg_attribute, in the order of the key. */
  readonly attributes: readonly number[]
}

export interface EntryColumn {
  readonly name: string
  readonly pgType: PgType
  readonly modifier: number
  /** Type of the column; null for relations of the catalog. */
  readonly type: DataType | null
  /** Number of dimensions of an array type. */
  readonly dimensions: number
  readonly notNull: boolean
  /** Text of the default; null for identity columns. */
  readonly default: string | null
  readonly identity: NonNullable<DeclaredColumn['identity']> | null
}

/** Oid of a default in pg_attrdef: above those of tables, functions and counters. */
export function defaultOid(table: number, index: number): number {
  return 2 ** 30 + ((table * tableColumnsMax + index) % 2 ** 30)
}

/** Oid of a table's row type in pg_type. */
export function rowTypeOid(table: number): number {
  return 2 ** 28 + (table % 2 ** 28)
}

/** Cached entries by table version: a version is immutable, so its entry stays the same object. */
const entriesOfTables: Readonly<Record<Dialect['name'], WeakMap<TableVersion, CatalogEntry>>> = {
  native: new WeakMap(),
  postgres: new WeakMap(),
}
/** Cached entries of the statement that is being bound, by an object that all its contexts share. */
const entriesOfStatement = new WeakMap<BindContext['work'], readonly CatalogEntry[]>()

/** Entries of the tables and views of the database. */
export function ownEntries(context: BindContext): readonly CatalogEntry[] {
  const before = entriesOfStatement.get(context.work)
  if (before !== undefined) return before
  const { catalog } = context
  const known = entriesOfTables[context.dialect.name]
  const tables = catalog.tables().map((version) => {
    const before = known.get(version)
    if (before !== undefined) return before
    const entry = tableEntry(version, context)
    known.set(version, entry)
    return entry
  })
  const made = [...tables, ...catalog.views().map((view) => viewEntry(view, context))]
  const entries = sameAsLast(made, context)
  entriesOfStatement.set(context.work, entries)
  return entries
}

/** The last list of each dialect, by the origin of the catalog. */
const lastLists = new WeakMap<object, Map<Dialect['name'], readonly CatalogEntry[]>>()

/**
 * Returns the engine's previous list if the entries are the same, because results derived from a list are cached by its
 * identity.
 */
function sameAsLast(
  entries: readonly CatalogEntry[],
  { catalog: { origin }, dialect }: BindContext,
): readonly CatalogEntry[] {
  if (origin === undefined) return entries
  const lists = lastLists.get(origin) ?? new Map<Dialect['name'], readonly CatalogEntry[]>()
  lastLists.set(origin, lists)
  const last = lists.get(dialect.name)
  if (last?.length === entries.length && entries.every((entry, index) => entry === last[index])) return last
  lists.set(dialect.name, entries)
  return entries
}

function tableEntry({ schema, parts }: TableVersion, context: Pick<BindContext, 'dialect'>): CatalogEntry {
  return {
    oid: firstOid + schema.id,
    ...placed(schema.name, context),
    kind: schema.materialized === undefined ? 'table' : 'materialized view',
    columns: liveColumns(schema).map(ownColumn),
    rows: parts.reduce((sum, { rows }) => sum + rows, 0),
    bytes: parts.reduce((sum, { bytes }) => sum + bytes, 0),
    sql: schema.materialized?.sql ?? null,
    keys: keysOfTable(schema, context).map(({ columnIds, ...key }) => {
      const attributes = attributesOf(schema)
      return { ...key, attributes: columnIds.map((id) => attributes.get(id)?.number ?? 0) }
    }),
  }
}

/** Not cached by view: its columns depend on the tables that it reads. */
function viewEntry(view: StoredView, context: BindContext): CatalogEntry {
  return {
    oid: firstOid + view.id,
    ...placed(view.name, context),
    kind: 'view',
    columns: context.viewShape(view).columns.map(ownColumn),
    rows: 0,
    bytes: 0,
    sql: view.sql,
    keys: [],
  }
}

export interface Attribute {
  /** Counted from 1. */
  readonly number: number
  /**
   * Type modifier: the parameters after the type name, such as the length of varchar(n). PostgreSQL encodes that of an
   * interval differently.
   */
  readonly modifier: number | undefined
}

const attributesKnown = new WeakMap<TableSchema, ReadonlyMap<number, Attribute>>()

/** The columns of a table as pg_attribute numbers them, by column id. */
export function attributesOf(schema: TableSchema): ReadonlyMap<number, Attribute> {
  const known = attributesKnown.get(schema)
  if (known !== undefined) return known
  const made = new Map(
    liveColumns(schema).map(({ id, declared }, index) => {
      const modifier = declared?.type === 'interval' ? undefined : declared?.modifier
      return [id, { number: index + 1, modifier }]
    }),
  )
  attributesKnown.set(schema, made)
  return made
}

interface OwnColumn {
  readonly name: string
  readonly type: DataType
  readonly declared?: DeclaredColumn
  readonly default?: string
}

function ownColumn({ name, type, declared, default: value }: OwnColumn): EntryColumn {
  const pgType = pgTypeOfColumn(type, declared)
  const identity = (value === undefined ? undefined : declared?.identity) ?? null
  return {
    name,
    pgType,
    modifier: declared?.modifier ?? (declared?.type === undefined ? typeModifier(type) : -1),
    type,
    notNull: declared?.notNull === true,
    dimensions: type.name === 'ARRAY' ? type.a : declared?.type?.startsWith('_') === true ? 1 : 0,
    default: value === undefined || identity !== null ? null : shownDefault(value, pgType),
    identity,
  }
}

function pgTypeOfColumn(type: DataType, declared: DeclaredColumn | undefined): PgType {
  if (declared?.enumeration !== undefined) return enumerationType(declared.enumeration)
  if (declared?.elements !== undefined) return labelsType(declared.elements)
  return declared?.type === undefined ? pgTypeOf(type) : pgTypeNamed(declared.type)
}

/** Entries of the catalog's own relations. */
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
    notNull: false,
    dimensions: column.pgType.category === 'A' ? 1 : 0,
    default: null,
    identity: null,
  })),
  rows: 0,
  bytes: 0,
  sql: null,
  keys: [],
}))

const systemOids = new Map(systemEntries.map(({ schema, name, oid }) => [`${schema}.${name}`, oid]))

/**
 * Oid of the relation of that name; undefined if there is none. The name may be qualified by schema, or by database and
 * schema.
 */
export function relationOid(written: string, context: BindContext): number | undefined {
  const { catalog } = context
  if (/^\s*\d+\s*$/.test(written)) return Number(written)
  const parts = nameParts(written)
  const name = parts[parts.length - 1] ?? ''
  const schema = parts[parts.length - 2]
  // Any other prefix is part of the name.
  const own = schema === undefined || schema === 'public' ? name : `${schema}.${name}`
  const id = catalog.table(own)?.schema.id ?? catalog.view(own)?.id ?? catalog.sequence?.(own)?.id
  if (id !== undefined) return firstOid + id
  const counter = ownCounters({ catalog }).find((found) => found.name.toLowerCase() === own.toLowerCase())
  if (counter !== undefined) return counter.oid
  const keys = catalog.tables().flatMap((version) => {
    const { schema: place } = placed(version.schema.name, context)
    return place === (schema ?? 'public') ? keysOfTable(version.schema, context) : []
  })
  const index = keys.find((found) => found.name.toLowerCase() === name.toLowerCase())
  if (index !== undefined) return index.oid
  return systemOids.get(`${schema ?? 'pg_catalog'}.${name}`)
}

export interface ColumnCounter {
  readonly oid: number
  readonly name: string
  readonly table: string
  readonly column: string
  /** Of its column, in pg_attribute and pg_attrdef. */
  readonly tableOid: number
  readonly attribute: number
  readonly type: DataType
  readonly isIdentity: boolean
}

const countersOfSchemas = new WeakMap<TableSchema, readonly ColumnCounter[]>()

/**
 * Column counters, also those whose default names a sequence. The catalog stores no entry for a counter, but
 * PostgreSQL's tools expect a relation.
 */
export function columnCounters({ catalog }: Pick<BindContext, 'catalog'>): ColumnCounter[] {
  return catalog.tables().flatMap(({ schema }) => {
    const known = countersOfSchemas.get(schema) ?? countersOf(schema)
    countersOfSchemas.set(schema, known)
    return known
  })
}

function countersOf(schema: TableSchema): ColumnCounter[] {
  return liveColumns(schema).flatMap((column, index): ColumnCounter[] => {
    const name = counterOf(column)
    const oid = firstCounterOid + ((schema.id * tableColumnsMax + column.id) % firstCounterOid)
    const place = { tableOid: firstOid + schema.id, attribute: index + 1, type: column.type }
    const isIdentity = column.declared?.identity !== undefined
    return name === null ? [] : [{ oid, name, table: schema.name, column: column.name, ...place, isIdentity }]
  })
}

/**
 * Column counters that are no sequence. A renamed table may share the name of its counter with a new table; the first
 * one owns it.
 */
export function ownCounters({ catalog }: Pick<BindContext, 'catalog'>): ColumnCounter[] {
  const found = new Map<string, ColumnCounter>()
  for (const counter of columnCounters({ catalog })) {
    const key = counter.name.toLowerCase()
    if (!found.has(key) && catalog.sequence?.(counter.name) === undefined) found.set(key, counter)
  }
  return [...found.values()]
}

/** Names of relations by oid, as `oid::regclass` shows them. */
export function relationNames(context: BindContext): ReadonlyMap<number, string> {
  const { catalog } = context
  const names = new Map<number, string>()
  const qualified = (schema: string, name: string): string =>
    schema === 'public' ? quoteIdent(name) : `${quoteIdent(schema)}.${quoteIdent(name)}`
  const written = (whole: string): string => {
    const { schema, name } = placed(whole, context)
    return qualified(schema, name)
  }
  for (const { oid, schema, name } of systemEntries)
    names.set(oid, schema === 'pg_catalog' ? name : `${schema}.${quoteIdent(name)}`)
  for (const { schema } of catalog.tables()) {
    names.set(firstOid + schema.id, written(schema.name))
    const place = placed(schema.name, context).schema
    for (const { oid, name } of keysOfTable(schema, context)) names.set(oid, qualified(place, name))
  }
  for (const { oid, name } of ownCounters({ catalog })) names.set(oid, quoteIdent(name))
  for (const { id, name } of catalog.views()) names.set(firstOid + id, written(name))
  for (const { id, name } of catalog.sequences?.() ?? []) names.set(firstOid + id, quoteIdent(name))
  return names
}

// Defaults of columns as PostgreSQL prints them: object mappers compare them with the defaults that they would create.

/**
 * Text of a default: `(now())` becomes `now()`; `'5'` of a numeric column becomes `5`, `'x'` of a text column
 * `'x'::text`.
 */
function shownDefault(written: string, { category, sqlName }: PgType): string {
  const text = withoutParentheses(written)
  const counter = /^nextval\('((?:[^']|'')*)'\)$/.exec(text)?.[1]
  if (counter !== undefined) return `nextval('${quoteIdent(counter)}'::regclass)`
  const literal = /^'((?:[^']|'')*)'$/.exec(text)?.[1]
  if (literal === undefined) return inItsCase(text)
  if (category === 'N' && /^(\d+\.?\d*|\.\d+)$/.test(literal)) return literal
  if (category === 'B' && /^(t|true|y|yes|on|1)$/i.test(literal)) return 'true'
  if (category === 'B' && /^(f|false|n|no|off|0)$/i.test(literal)) return 'false'
  return `${text}::${sqlName}`
}

/** Keywords and calls without arguments, in PostgreSQL's upper or lower case. */
function inItsCase(text: string): string {
  if (/^(true|false|\w+\(\))$/i.test(text)) return text.toLowerCase()
  return /^(current_(date|time|timestamp|user)|localtime(stamp)?)$/i.test(text) ? text.toUpperCase() : text
}

function withoutParentheses(text: string): string {
  let rest = text.trim()
  while (isParenthesized(rest)) rest = rest.slice(1, -1).trim()
  return rest
}

/** Whether the opening parenthesis at the start is closed at the end of the text. */
function isParenthesized(text: string): boolean {
  if (!text.startsWith('(')) return false
  let depth = 0
  for (const { 0: token, index } of text.matchAll(/'(?:[^']|'')*'|"(?:[^"]|"")*"|[()]/g)) {
    if (token === '(') depth++
    else if (token === ')') depth--
    if (depth === 0 && token === ')') return index === text.length - 1
  }
  return false
}
