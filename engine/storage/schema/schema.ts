// The data model: schemas of tables, their parts (Parquet files), and versions, which are immutable states of a table
// that readers use. These are plain objects that are sent between threads by structured clone. Schemas are also stored
// as JSON in the write-ahead log and the manifest (the list of all files), descriptors of parts in the manifest.

import { assert } from '../../base/assert.js'
import { SqlError } from '../../base/errors.js'
import { type DataType, dataType, dateKinds, isDay, longKinds, textKinds, timeKinds } from '../../types/column-types.js'
import type { MaterializedSchema, SealedBuckets, StoredBuckets } from './materialized.js'

const partitionUnits = ['NONE', 'HOUR', 'DAY', 'WEEK', 'MONTH', 'YEAR'] as const
export type PartitionUnit = (typeof partitionUnits)[number]

export interface ColumnSchema {
  /**
   * Unique within the table and never reused, assigned upwards from 0. Also the Parquet field id. Below
   * tableColumnsMax.
   */
  readonly id: number
  readonly name: string
  readonly type: DataType
  /** Dropped columns keep their entry, so that ids remain dense. */
  readonly dropped: boolean
  /** Options of a SYMBOL in CREATE TABLE; kept for SHOW CREATE TABLE and table_columns(), without effect on storage. */
  readonly symbol?: { readonly capacity: number; readonly cached: boolean }
  readonly indexed?: { readonly blockCapacity: number }
  /** SQL text of the expression for rows of INSERT and COPY that omit the column. */
  readonly default?: string
  readonly declared?: DeclaredColumn
  /**
   * Of a materialized view: part of the state of an aggregate (sql/plan/view-states.ts), which readers of the view do not
   * see.
   */
  readonly state?: true
  /** Position among the columns if it differs from the id, for a column that replaced one with another type. */
  readonly place?: number
  readonly parquet?: ColumnStorage
}

/** PARQUET(..): how new parts store the column. What is absent follows from the column's values. */
export interface ColumnStorage {
  readonly encoding?: ColumnEncoding
  readonly codec?: ColumnCodec
  readonly level?: number
  readonly bloomFilter?: true
}

export const columnEncodings = ['plain', 'rle_dictionary', 'delta_length_byte_array', 'delta_binary_packed'] as const
export type ColumnEncoding = (typeof columnEncodings)[number]

/** With the least, the greatest and the default level; null: the codec has no levels. */
export const columnCodecs = {
  lz4_raw: null,
  zstd: [1, 22, 3],
  snappy: null,
  gzip: [1, 9, 6],
  brotli: [0, 11, 1],
  uncompressed: null,
} as const
export type ColumnCodec = keyof typeof columnCodecs

/**
 * The column's definition for PostgreSQL clients, shown by pg_catalog. Only an enumeration and `date` restrict values.
 */
export interface DeclaredColumn {
  /**
   * Name of the PostgreSQL type, if it differs from the default for the column's type. Values of `date` are truncated
   * to days when they are stored.
   */
  readonly type?: string
  /** As in pg_attribute.atttypmod: length + 4 for strings, digits of a second for timestamps. */
  readonly modifier?: number
  readonly notNull?: true
  /** GENERATED .. AS IDENTITY: INSERT numbers the rows, while the column's default is a sequence. */
  readonly identity?: 'always' | 'by default'
  /** The only strings that INSERT, UPDATE and COPY accept, if the type is an enumeration. */
  readonly enumeration?: Enumeration
  /** For lists of enumeration labels; for display only, values are not checked. */
  readonly elements?: Enumeration
  readonly comment?: string
}

/** A declared PRIMARY KEY or UNIQUE constraint. Upserts use it, and clients find it in pg_catalog. */
export interface DeclaredKey {
  /** Unique within the table, from 1 on and below tableKeysMax. */
  readonly id: number
  readonly name: string
  readonly primary: boolean
  /** In key order. */
  readonly columnIds: readonly number[]
  /** NULLS NOT DISTINCT was declared. */
  readonly nullsEqual?: true
  /** ENFORCED: the writer refuses rows with the key of a stored row (storage/writer/writer-keys.ts). */
  readonly enforced?: true
}

/** The key that the writer enforces; undefined if there is none. */
export function enforcedKey({ keys = [] }: Pick<TableSchema, 'keys'>): DeclaredKey | undefined {
  return keys.find(({ enforced }) => enforced === true)
}

/** Whether the writer compares new rows with others, so that all of them must pass through it. */
export function comparesRows(schema: Pick<TableSchema, 'keys' | 'dedupKeys'>): boolean {
  return schema.dedupKeys.length > 0 || enforcedKey(schema) !== undefined
}

/** Whether rows of transactions up to this one, the last of a part or memtable, supersede no others by DEDUP. */
export function precedesDedup({ dedupAfter = 0 }: Pick<TableSchema, 'dedupAfter'>, transaction: number): boolean {
  return transaction <= dedupAfter
}

/** An enumeration created by CREATE TYPE .. AS ENUM. Its id is a table id. */
export interface Enumeration {
  readonly id: number
  readonly name: string
  readonly labels: readonly string[]
}

/** The column's type in query results. */
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

/** Ids of the columns whose values are truncated to days whenever they are stored. */
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
  return listKinds[declared] ?? textKinds.strings
}

const listKinds: Readonly<Record<string, number>> = {
  ...{ _int4: textKinds.ints, _int2: textKinds.ints, _int8: textKinds.longs, _bool: textKinds.bools },
  ...{ _timestamp: textKinds.times, _timestamptz: textKinds.zonedTimes, _date: textKinds.days, _uuid: textKinds.uuids },
}

export interface TableSchema {
  /** Unique during the life of the data directory; never reused. */
  readonly id: number
  readonly name: string
  /** Number of changes of the schema, which log frames refer to. */
  readonly version: number
  /** Set while the statement that created the table fills it. A start that finds it set drops the table. */
  readonly unfinished?: true
  readonly columns: readonly ColumnSchema[]
  /** Column id of the designated timestamp (TIMESTAMP or TIMESTAMP_NS); -1 without one. */
  readonly timestampId: number
  readonly partitionBy: PartitionUnit
  /** BYPASS WAL was declared; shown by SHOW CREATE TABLE, without effect on storage. */
  readonly bypassWal: boolean
  /** Set by SET TYPE; takes effect at the next start, as clients of this dialect expect. */
  readonly bypassWalNext?: boolean
  /** Column ids of DEDUP UPSERT KEYS, including the designated timestamp; empty: no deduplication. */
  readonly dedupKeys: readonly number[]
  /** DEDUP SKIP: of the rows with equal keys the first one stays. Otherwise it is the last one. */
  readonly dedupSkips?: boolean
  /**
   * Rows of transactions up to this one were stored before DEDUP was declared: they do not supersede each other. Absent:
   * there are none.
   */
  readonly dedupAfter?: number
  /** Absent if none was declared. */
  readonly keys?: readonly DeclaredKey[]
  readonly ttl: PartitionAge | null
  /** Absent or null: none. A table has this or a TTL. */
  readonly policy?: StoragePolicy | null
  /** Absent: the table is not in the lake, until it gets a storage policy. Null: it is never. */
  readonly lake?: LakeTable | null
  readonly maxUncommittedRows: number
  /** In microseconds. */
  readonly o3MaxLagMicros: number
  readonly createdMicros: number
  /** Parts of detached partitions: on disk, but not in the table. */
  readonly detached?: readonly DetachedPart[]
  /** SQL text of a view's query. A view is a catalog entry with the names and ids of tables, and without rows. */
  readonly view?: string
  /** Set for a materialized view, whose rows are those of its buckets that are stored. */
  readonly materialized?: MaterializedSchema
  /** Of a materialized view; absent: no bucket is stored. */
  readonly stored?: StoredBuckets
  /** Of a table with materialized views: their buckets that have outlived rows of the table. */
  readonly sealed?: readonly SealedBuckets[]
  /** Set for a sequence, which is a catalog entry without rows. */
  readonly sequence?: SequenceSchema
  /** Labels of an enumeration, which is a catalog entry without rows. */
  readonly labels?: readonly string[]
  /** Text of COMMENT ON TABLE; empty if none. */
  readonly comment?: string
}

/** Of a partition's end, counted back from the newest row. */
export interface PartitionAge {
  readonly value: number
  readonly unit: 'HOUR' | 'DAY' | 'WEEK' | 'MONTH' | 'YEAR'
}

/** At which age partitions change their storage; null: never. */
export interface StoragePolicy {
  /** Shown only: parts are Parquet from the beginning. */
  readonly toParquet: PartitionAge | null
  readonly toRemote: PartitionAge | null
  /** Absent in policies of earlier versions. */
  readonly dropLocal?: PartitionAge | null
  /** The rows are removed; their objects follow. Absent in policies of earlier versions. */
  readonly dropRemote?: PartitionAge | null
  readonly enabled: boolean
}

/** A table that is also an Iceberg table in the object store (engine/lake). */
export interface LakeTable {
  /** Of the Iceberg table; random, so its objects never mix with those of another one. */
  readonly uuid: string
  /** Of Iceberg; absent: 2. */
  readonly formatVersion?: 3
  /** The Iceberg table that readers get until this one has its first snapshot. */
  readonly replaces?: string
}

/** The last version of the Iceberg table's metadata, or the last commit to an external catalog, that the manifest records. */
export interface LakePointer extends Pick<LakeTable, 'uuid'> {
  readonly version: number
  /** Of the table in an external catalog; absent: its metadata is in the object store. */
  readonly name?: string
}

/** A sequence. Numbers are strings, because schemas are stored as JSON. */
export interface SequenceSchema {
  readonly type: 'smallint' | 'integer' | 'bigint'
  readonly start: string
  readonly increment: string
  readonly minimum: string
  readonly maximum: string
  readonly cycle: boolean
  /** Minimum of numbers that are reserved at once. */
  readonly cache: number
  /** Numbers up to this one are reserved; null: none is. */
  readonly given: string | null
}

/** A sequence created by CREATE SEQUENCE. Its id is a table id. */
export interface StoredSequence {
  readonly id: number
  readonly name: string
  readonly sequence: SequenceSchema
}

/** Whether the entry is a table with rows, and not a view, sequence or enumeration. */
export function isTable({ view, sequence, labels }: Pick<TableSchema, 'view' | 'sequence' | 'labels'>): boolean {
  return view === undefined && sequence === undefined && labels === undefined
}

/** Throws SqlError for a materialized or live view, whose rows only a refresh changes. */
export function requireTable({ name, materialized }: Pick<TableSchema, 'name' | 'materialized'>, position = 0): void {
  if (materialized !== undefined) throw new SqlError(`cannot modify ${viewKind(materialized)} [view=${name}]`, position)
}

/**
 * Throws SqlError if the type of a column of these rows has changed since they were made: their values belong to the
 * old column, and would be lost.
 */
export function requireTypes({ name, columns }: TableSchema, own: readonly { readonly columnId: number }[]): void {
  for (const { columnId } of own) {
    const column = columns[columnId]
    assert(column !== undefined, 'S3: rows name columns by the ids of their table')
    if (column.dropped && columns.some((other) => !other.dropped && other.name === column.name))
      throw SqlError.tableChanged(name)
  }
}

export function viewKind({ live }: MaterializedSchema): 'live view' | 'materialized view' {
  return live === undefined ? 'materialized view' : 'live view'
}

/** The columns that exist, in the order of SELECT *. */
export function liveColumns(schema: TableSchema): ColumnSchema[] {
  const live = schema.columns.filter(({ dropped, state }) => !dropped && state === undefined)
  if (live.every(({ place }) => place === undefined)) return live
  return live.sort((x, y) => (x.place ?? x.id) - (y.place ?? y.id))
}

/** The columns that parts have: the live ones, then the states of a materialized view. */
export function storedColumns(schema: TableSchema): ColumnSchema[] {
  return [...liveColumns(schema), ...schema.columns.filter(({ dropped, state }) => !dropped && state === true)]
}

/** The existing column of that name. Names are case-insensitive. */
export function findColumn(schema: TableSchema, name: string): ColumnSchema | undefined {
  const wanted = name.toLowerCase()
  return schema.columns.find(
    ({ dropped, state, name: own }) => !dropped && state === undefined && own.toLowerCase() === wanted,
  )
}

/** The column of this name. Throws SqlError if there is none. */
export function requireColumn(
  schema: TableSchema,
  { name, position }: { name: string; position: number },
): ColumnSchema {
  const column = findColumn(schema, name)
  if (column !== undefined) return column
  const known = liveColumns(schema).map((other) => other.name)
  throw SqlError.columnMissing(name, position, known)
}

/** A part: an immutable Parquet file with rows of one partition, sorted by the designated timestamp. */
export interface PartDescriptor {
  /** Unique during the life of the data directory. */
  readonly id: number
  /** Path below the database directory, with forward slashes. */
  readonly file: string
  /** Partition name: `2024-03-14`, `2024-W11`, ..., `default` for NONE. */
  readonly partition: string
  readonly rows: number
  readonly bytes: number
  /** Range of the designated timestamp in the table's unit; 0n without one. */
  readonly minTs: bigint
  readonly maxTs: bigint
  /** Range of the table transactions whose rows the part contains, inclusive. */
  readonly minTxn: number
  readonly maxTxn: number
  /** Ids of the columns in the file; other columns read as null. */
  readonly columnIds: readonly number[]
  /** SYMBOL columns with a NULL; absent if there are none, and in parts of earlier versions. */
  readonly nullSymbolIds?: readonly number[]
  /** Rows that upserts have removed, as the manifest has them: memtable/removed-rows.ts. */
  readonly removedRows?: string
  /** The verified copy of the file in the object store. */
  readonly remote?: RemoteCopy
  /** Set by a compaction of a table with materialized views, if the part has all rows of these parts and no others. */
  readonly merged?: readonly MergedPart[]
}

/** A part that was joined into another one: schema/merged-parts.ts. Timestamps are strings, for JSON. */
export type MergedPart = readonly [id: number, minTs: string, maxTs: string, merged?: readonly MergedPart[]]

export interface RemoteCopy {
  /** Relative to the prefix of the store. */
  readonly key: string
  /** CRC-32 of the whole file. */
  readonly checksum: number
  /** The local file was dropped: its sidecar (part/sidecar.ts) is what is left on this disk. */
  readonly only?: true
}

/** Whether the rows of the part are only in the object store. */
export function isRemoteOnly({ remote }: Pick<PartDescriptor, 'remote'>): boolean {
  return remote?.only === true
}

/** What this disk has of the part: its file, or the sidecar of a part that is only in the object store. */
export function localFileOf(part: Pick<PartDescriptor, 'file' | 'remote'>): string {
  return isRemoteOnly(part) ? sidecarFileOf(part) : part.file
}

export function sidecarFileOf({ file }: Pick<PartDescriptor, 'file'>): string {
  return file.replace(/\.parquet$/, '.sidecar')
}

/** A part as a schema contains it, in JSON types. */
export interface DetachedPart extends Omit<PartDescriptor, 'minTs' | 'maxTs'> {
  readonly minTs: string
  readonly maxTs: string
  /** Ids of views with buckets that were sealed while the part was detached, without its rows. */
  readonly lackedBy?: readonly number[]
}

export function rowsOf(parts: readonly Pick<PartDescriptor, 'rows'>[]): number {
  return parts.reduce((sum, { rows }) => sum + rows, 0)
}

/** Which rows a detached part has. */
export function extentOf(part: DetachedPart): Pick<PartDescriptor, 'minTs' | 'maxTs' | 'maxTxn'> {
  return { minTs: BigInt(part.minTs), maxTs: BigInt(part.maxTs), maxTxn: part.maxTxn }
}

interface MemtableRef {
  readonly id: number
  /** Address of the MEMTABLE structure (memory/column-layout.ts). */
  readonly address: number
}

/**
 * Number of statements that changed the schema. A change of a column's type counts once, although it adds a column
 * first.
 */
export function schemaStatements({ version, columns, stored }: TableSchema): number {
  return (
    version - 1 - (stored?.changes ?? 0) - columns.filter(({ id, place }) => place !== undefined && place < id).length
  )
}

/** A table version: all that a reader needs of a table except row counts. Immutable; replaced as a whole. */
export interface TableVersion {
  readonly version: number
  readonly schema: TableSchema
  readonly parts: readonly PartDescriptor[]
  /** Memtables, oldest first. The last one is open, the others are frozen and being flushed. */
  readonly memtables: readonly MemtableRef[]
  /** Dictionaries of the SYMBOL columns: [columnId, address]. */
  readonly dictionaries: readonly (readonly [number, number])[]
  /** Transactions up to this one are in parts, or their rows were removed. */
  readonly flushedTxn?: number
  /** Number of statements since the start that changed or removed rows, which leave no trace in transactions. */
  readonly rewrites?: number
  /**
   * Set once an upsert has removed rows since the start, or parts have removed rows: address and number of the marks of
   * each such part (memtable/removed-rows.ts).
   */
  readonly removals?: readonly (readonly [partId: number, address: number, count: number])[]
  /** Number of rows in parts and flushed memtables superseded by rows with equal keys, since the start. */
  readonly repeats?: number
  /** Absent: no metadata of the Iceberg table is recorded. */
  readonly lake?: LakePointer
}

/** A read snapshot of a table: its version and the visible rows of each memtable, taken under one sequence lock. */
export interface TableSnapshot {
  readonly version: TableVersion
  /** Visible rows per entry of version.memtables. */
  readonly visibleRows: readonly number[]
  /** Removals of rows by later transactions are not visible; absent: all are. */
  readonly transaction?: number
}

/**
 * The schema of a table after the statement that created it has filled it. The version stays, as no statement changed
 * it.
 */
export function finishedSchema({ unfinished: _, ...schema }: TableSchema): TableSchema {
  return schema
}

/** The schema of an emptied table: buckets that were sealed up to the transaction do not outlive a TRUNCATE. */
export function emptiedSchema(schema: TableSchema, transaction = Number.POSITIVE_INFINITY): TableSchema {
  if (schema.sealed === undefined) return schema
  const { sealed: before, ...rest } = schema
  const sealed = before.flatMap((one) => {
    const ranges = one.ranges.filter(([, , sealedAt]) => sealedAt > transaction)
    return ranges.length === 0 ? [] : [{ ...one, ranges }]
  })
  return sealed.length === 0 ? rest : { ...rest, sealed }
}

const dictionaryAddresses = new WeakMap<TableVersion, ReadonlyMap<number, number>>()

/** Addresses of the dictionaries by column id. Every query asks for them, so each version has one map. */
export function dictionariesOf(version: TableVersion): ReadonlyMap<number, number> {
  const known = dictionaryAddresses.get(version)
  if (known !== undefined) return known
  const made = new Map(version.dictionaries)
  dictionaryAddresses.set(version, made)
  return made
}
