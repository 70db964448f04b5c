// What the catalog has names for: tables and views of the database, and the relations of the catalog itself.

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

/** Oids of counters: below those of defaults. */
const firstCounterOid = 2 ** 29

export interface CatalogEntry {
  readonly oid: number
  readonly schema: string
  readonly name: string
  readonly kind: 'table' | 'view'
  readonly columns: readonly EntryColumn[]
  /** Rows in parts: an estimate, cheap to have. */
  readonly rows: number
  /** Bytes in parts. */
  readonly bytes: number
  /** Text of a view of the database. */
  readonly sql: string | null
  readonly keys: readonly EntryKey[]
}

export interface EntryKey extends Omit<TableKey, 'columnIds'> {
  /** Numbers of its columns in pg_attribute, in the order of the key. */
  readonly attributes: readonly number[]
}

export interface EntryColumn {
  readonly name: string
  readonly pgType: PgType
  readonly modifier: number
  /** Of the database's own tables and views. */
  readonly type: DataType | null
  /** Dimensions of an array. */
  readonly dimensions: number
  readonly notNull: boolean
  /** Text of the default; an identity has none. */
  readonly default: string | null
  readonly identity: NonNullable<DeclaredColumn['identity']> | null
}

/** Number of a default in pg_attrdef: beyond those of tables, functions and counters. */
export function defaultOid(table: number, index: number): number {
  return 2 ** 30 + ((table * tableColumnsMax + index) % 2 ** 30)
}

/** Number of the type of a table's rows in pg_type. */
export function rowTypeOid(table: number): number {
  return 2 ** 28 + (table % 2 ** 28)
}

/** Of the tables that statements have asked for: a version never changes, so that its entry is the same object. */
const entriesOfTables: Readonly<Record<Dialect['name'], WeakMap<TableVersion, CatalogEntry>>> = {
  native: new WeakMap(),
  postgres: new WeakMap(),
}
/** Of the statement that is being bound, by what all of its contexts share. */
const entriesOfStatement = new WeakMap<BindContext['work'], readonly CatalogEntry[]>()

/** Tables and views of the database. */
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
  const entries = sameAsLast([...tables, ...catalog.views().map((view) => viewEntry(view, context))])
  entriesOfStatement.set(context.work, entries)
  return entries
}

let lastEntries: readonly CatalogEntry[] = []

/** What is made of all entries is kept while they are the same ones. */
function sameAsLast(entries: readonly CatalogEntry[]): readonly CatalogEntry[] {
  const isSame = entries.length === lastEntries.length && entries.every((entry, index) => entry === lastEntries[index])
  if (!isSame) lastEntries = entries
  return lastEntries
}

function tableEntry({ schema, parts }: TableVersion, context: Pick<BindContext, 'dialect'>): CatalogEntry {
  return {
    oid: firstOid + schema.id,
    ...placed(schema.name, context),
    kind: 'table',
    columns: liveColumns(schema).map(ownColumn),
    rows: parts.reduce((sum, { rows }) => sum + rows, 0),
    bytes: parts.reduce((sum, { bytes }) => sum + bytes, 0),
    sql: null,
    keys: keysOfTable(schema, context).map(({ columnIds, ...key }) => {
      const attributes = attributesOf(schema)
      return { ...key, attributes: columnIds.map((id) => attributes.get(id)?.number ?? 0) }
    }),
  }
}

/** What a view gives depends on the tables below it. */
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
  /** From 1. */
  readonly number: number
  /** What was written behind the name of its type; of an interval PostgreSQL has another form. */
  readonly modifier: number | undefined
}

const attributesKnown = new WeakMap<TableSchema, ReadonlyMap<number, Attribute>>()

/** A table's columns as pg_attribute has them, by their ids. */
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

/** undefined when there is no relation of that name. A schema, and a database before it, are allowed. */
export function relationOid(written: string, context: BindContext): number | undefined {
  const { catalog } = context
  if (/^\s*\d+\s*$/.test(written)) return Number(written)
  const parts = nameParts(written)
  const name = parts[parts.length - 1] ?? ''
  const schema = parts[parts.length - 2]
  // Any other schema than these is a part of the name.
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
  /** Of the column, in pg_attribute and pg_attrdef. */
  readonly tableOid: number
  readonly attribute: number
  readonly type: DataType
  readonly isIdentity: boolean
}

const countersOfSchemas = new WeakMap<TableSchema, readonly ColumnCounter[]>()

/** Counters of columns are no entries of the catalog, but relations as PostgreSQL's tools see them. Sequences that a default names are theirs as well. */
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

/** Those that are no sequence. A table that was renamed may share its counter with one that took its name: it is the first's. */
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

// Defaults of columns as PostgreSQL shows them, whoever wrote them: mappers compare them with those that they would write.

/** Text of a default: `(now())` is `now()`, `'5'` of a number `5`, `'x'` of a text `'x'::text`. */
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

/** Words and calls without arguments: letters are as PostgreSQL has them, whoever wrote them. */
function inItsCase(text: string): string {
  if (/^(true|false|\w+\(\))$/i.test(text)) return text.toLowerCase()
  return /^(current_(date|time|timestamp|user)|localtime(stamp)?)$/i.test(text) ? text.toUpperCase() : text
}

function withoutParentheses(text: string): string {
  let rest = text.trim()
  while (isParenthesized(rest)) rest = rest.slice(1, -1).trim()
  return rest
}

/** Whether the first parenthesis ends with the text. */
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
