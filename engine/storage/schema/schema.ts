// What a table is: plain objects that cross threads by structured clone and go to disk as JSON.

import { type DataType, dataType, dateKinds, isDay, longKinds, textKinds, timeKinds } from '../../types/column-types.js'

const partitionUnits = ['NONE', 'HOUR', 'DAY', 'WEEK', 'MONTH', 'YEAR'] as const
export type PartitionUnit = (typeof partitionUnits)[number]

export interface ColumnSchema {
  /** Unique within the table for ever, assigned upwards from 0; also the Parquet field id. Below tableColumnsMax. */
  readonly id: number
  readonly name: string
  readonly type: DataType
  /** Dropped columns keep their entry, so that ids stay dense. */
  readonly dropped: boolean
  /** What CREATE TABLE said of a SYMBOL; kept for SHOW CREATE TABLE and table_columns(), without effect on storage. */
  readonly symbol?: { readonly capacity: number; readonly cached: boolean }
  readonly indexed?: { readonly blockCapacity: number }
  /** Text of the expression that INSERT and COPY fill the column with where they do not name it. */
  readonly default?: string
  readonly declared?: DeclaredColumn
  /** Where the column stands among the others, when not by its id: it stands for one whose type was changed. */
  readonly place?: number
}

/** What the column's definition said for clients of PostgreSQL, shown again by its catalog; nothing of it limits values but an enumeration and `date`. */
export interface DeclaredColumn {
  /** Name of PostgreSQL's type, where it is another than the column's type stands for. `date`: values lose their time of day when they are stored. */
  readonly type?: string
  /** As pg_attribute has it: of texts the length and 4, of times the digits of a second. */
  readonly modifier?: number
  readonly notNull?: true
  /** GENERATED .. AS IDENTITY: INSERT numbers the column, as long as its default asks a counter. */
  readonly identity?: 'always' | 'by default'
  /** The only texts that INSERT, UPDATE and COPY take, where the type is an enumeration. */
  readonly enumeration?: Enumeration
  /** What the elements of a list are labels of: shown only, no text is held to them. */
  readonly elements?: Enumeration
  readonly comment?: string
}

/** PRIMARY KEY or UNIQUE as it was declared: clients of PostgreSQL find it in the catalog, and no row is held to it. */
export interface DeclaredKey {
  /** Unique within the table, from 1 on and below tableKeysMax. */
  readonly id: number
  readonly name: string
  readonly primary: boolean
  /** In the order of the key. */
  readonly columnIds: readonly number[]
  /** NULLS NOT DISTINCT was written. */
  readonly nullsEqual?: true
}

/** What CREATE TYPE .. AS ENUM made; its id is among those of tables. */
export interface Enumeration {
  readonly id: number
  readonly name: string
  readonly labels: readonly string[]
}

/** The type of the column in results. */
export function resultTypeOf({ type, declared }: Pick<ColumnSchema, 'type' | 'declared'>): DataType {
  if (declared?.type === 'timestamptz') return dataType(type.name, timeKinds.zoned)
  if (declared?.type === 'interval' && type.name === 'LONG') return dataType(type.name, longKinds.span)
  if (declared?.type === 'date' && type.name === 'DATE') return dataType('DATE', dateKinds.day)
  if (declared?.elements !== undefined) return dataType('STRING', textKinds.labels, declared.elements.id)
  const kind = declared?.type === undefined ? undefined : kindOf(declared.type)
  return kind === undefined || type.name !== 'STRING' ? type : dataType(type.name, kind)
}

const noIds: readonly number[] = []
const dayIds = new WeakMap<TableSchema, readonly number[]>()

/** Ids of the columns whose values lose their time of day: every way into them ends there, whatever it has made of its values. */
export function dayColumns(schema: TableSchema): readonly number[] {
  const known = dayIds.get(schema)
  if (known !== undefined) return known
  const found = schema.columns.filter((column) => !column.dropped && isDay(resultTypeOf(column))).map(({ id }) => id)
  const ids = found.length === 0 ? noIds : found
  dayIds.set(schema, ids)
  return ids
}

function kindOf(declared: string): number | undefined {
  if (declared === 'json' || declared === 'jsonb' || declared === 'time') return textKinds[declared]
  if (!declared.startsWith('_')) return undefined
  return listKinds[declared] ?? textKinds.texts
}

const listKinds: Readonly<Record<string, number>> = {
  ...{ _int4: textKinds.ints, _int2: textKinds.ints, _int8: textKinds.longs, _bool: textKinds.bools },
  ...{ _timestamp: textKinds.times, _timestamptz: textKinds.zonedTimes, _date: textKinds.days, _uuid: textKinds.uuids },
}

export interface TableSchema {
  /** Unique over the life of the data directory; never reused. */
  readonly id: number
  readonly name: string
  /** Counts changes of this object; WAL frames name it. */
  readonly version: number
  /** A statement is filling the table that it made: a start that finds it so drops it. */
  readonly unfinished?: true
  readonly columns: readonly ColumnSchema[]
  /** Column id of the designated timestamp (TIMESTAMP or TIMESTAMP_NS); -1 without one. */
  readonly timestampId: number
  readonly partitionBy: PartitionUnit
  /** BYPASS WAL was written: shown again by SHOW CREATE TABLE; storage is the same. */
  readonly bypassWal: boolean
  /** SET TYPE was said: holds from the next start on, as clients of this dialect know it. */
  readonly bypassWalNext?: boolean
  /** Column ids of DEDUP UPSERT KEYS, the designated timestamp among them; empty = off. */
  readonly dedupKeys: readonly number[]
  /** Absent where none was declared. */
  readonly keys?: readonly DeclaredKey[]
  readonly ttl: { readonly value: number; readonly unit: 'HOUR' | 'DAY' | 'WEEK' | 'MONTH' | 'YEAR' } | null
  readonly maxUncommittedRows: number
  /** Microseconds. */
  readonly o3MaxLagMicros: number
  readonly createdMicros: number
  /** Parts of detached partitions: on disk, and not in the table. */
  readonly detached?: readonly DetachedPart[]
  /** Text of a view's query: an entry of the catalog that shares names and ids with tables and never has rows. */
  readonly view?: string
  /** An entry of the same kind that gives numbers. */
  readonly sequence?: SequenceSchema
  /** Of an enumeration, an entry of the same kind. */
  readonly labels?: readonly string[]
  /** What COMMENT ON TABLE said; empty: nothing. */
  readonly comment?: string
}

/** Numbers as texts: schemas go to disk as JSON. */
export interface SequenceSchema {
  readonly type: 'smallint' | 'integer' | 'bigint'
  readonly start: string
  readonly increment: string
  readonly minimum: string
  readonly maximum: string
  readonly cycle: boolean
  /** Numbers that are noted as given at once, at least. */
  readonly cache: number
  /** All numbers up to this one may have been given; null: none has. */
  readonly given: string | null
}

/** What CREATE SEQUENCE made; its id is among those of tables. */
export interface StoredSequence {
  readonly id: number
  readonly name: string
  readonly sequence: SequenceSchema
}

/** Whether it may have rows: views, sequences and enumerations are entries of the catalog without any. */
export function isTable({ view, sequence, labels }: Pick<TableSchema, 'view' | 'sequence' | 'labels'>): boolean {
  return view === undefined && sequence === undefined && labels === undefined
}

/** Columns that exist now, in the order that SELECT * shows. */
export function liveColumns(schema: TableSchema): ColumnSchema[] {
  const live = schema.columns.filter((column) => !column.dropped)
  if (live.every(({ place }) => place === undefined)) return live
  return live.sort((x, y) => (x.place ?? x.id) - (y.place ?? y.id))
}

/** The live column of that name; names match without case, as everywhere in this field. */
export function findColumn(schema: TableSchema, name: string): ColumnSchema | undefined {
  const wanted = name.toLowerCase()
  return schema.columns.find((column) => !column.dropped && column.name.toLowerCase() === wanted)
}

/** An immutable Parquet file that holds rows of one partition, sorted by the designated timestamp. */
export interface PartDescriptor {
  /** Unique over the life of the data directory. */
  readonly id: number
  /** Path below the database directory, with forward slashes. */
  readonly file: string
  /** Partition name: `2024-03-14`, `2024-W11`, ..., `default` for NONE. */
  readonly partition: string
  readonly rows: number
  readonly bytes: number
  /** Of the designated timestamp in the table's unit; 0n without one. */
  readonly minTs: bigint
  readonly maxTs: bigint
  /** Table transactions whose rows the part holds, inclusive. */
  readonly minTxn: number
  readonly maxTxn: number
  /** Ids of the columns in the file; others read as null. */
  readonly columnIds: readonly number[]
  /** Of these the SYMBOL columns with a NULL; absent where there is none, and in parts of earlier versions. */
  readonly nullSymbolIds?: readonly number[]
}

/** A part in a schema, which goes to disk as JSON. */
export type DetachedPart = Omit<PartDescriptor, 'minTs' | 'maxTs'> & { readonly minTs: string; readonly maxTs: string }

interface GenerationRef {
  readonly id: number
  /** Address of the GENERATION structure (layout.ts). */
  readonly address: number
}

/** Statements that changed the schema: a change of a column's type made its new column first, which stands for the old one. */
export function schemaStatements({ version, columns }: TableSchema): number {
  return version - 1 - columns.filter(({ id, place }) => place !== undefined && place < id).length
}

/** Everything that a reader of a table needs besides row counts. Immutable; replaced as a whole. */
export interface TableVersion {
  readonly version: number
  readonly schema: TableSchema
  readonly parts: readonly PartDescriptor[]
  /** Oldest first; the last one is open, the others are frozen and being flushed. */
  readonly generations: readonly GenerationRef[]
  /** Dictionary address by column id of each SYMBOL column: pairs [columnId, address]. */
  readonly dictionaries: readonly (readonly [number, number])[]
  /** Transactions up to this one are in parts, or their rows are gone. */
  readonly flushedTxn?: number
  /** Statements since the start that changed or removed rows: transactions that no row tells of. */
  readonly rewrites?: number
  /** Rows of parts and flushed generations that rows with equal keys replaced, since the start. */
  readonly repeats?: number
}

/** What one query sees of one table: the version and how far each generation was visible, taken under one sequence. */
export interface TableSnapshot {
  readonly version: TableVersion
  /** Visible rows per entry of version.generations. */
  readonly visibleRows: readonly number[]
}

/** The schema of a table that is filled. Its version stays: no statement has changed it. */
export function finishedSchema({ unfinished: _, ...schema }: TableSchema): TableSchema {
  return schema
}
