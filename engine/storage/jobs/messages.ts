// Types of the messages between the main thread and the writer thread, and of the jobs that the writer delegates to
// query threads through the main thread. All are sent by structured clone. Line protocol and QWP have no messages here:
// they go through a ring buffer in shared memory (memory/ring.ts).

import type { ErrorRecord } from '../../base/errors.js'
import type { VisibleRows } from '../../memory/column-layout.js'
import type { Query } from '../../sql/plan/plan.js'
import type { DataType } from '../../types/column-types.js'
import type { Value } from '../../types/value.js'
import type { KafkaPosition } from '../../wal/source-position.js'
import type { UserRecord } from '../manifest/users.js'
import type { Sealing, StoredBuckets } from '../schema/materialized.js'
import type {
  ColumnSchema,
  ColumnStorage,
  DeclaredColumn,
  DeclaredKey,
  LakePointer,
  PartDescriptor,
  TableSchema,
  TableSnapshot,
  TableVersion,
} from '../schema/schema.js'

/**
 * A change of the catalog or of one table. The writer applies changes and rows in one order, which is also that of the
 * log.
 */
export type SchemaChange =
  | {
      readonly kind: 'createTable'
      readonly schema: Omit<TableSchema, 'id' | 'version'>
      readonly ifNotExists: boolean
    }
  | { readonly kind: 'dropTable'; readonly tableId: number }
  /** The statement that created the table has stored all its rows. */
  | { readonly kind: 'finishTable'; readonly tableId: number }
  | { readonly kind: 'renameTable'; readonly tableId: number; readonly name: string }
  | { readonly kind: 'truncateTable'; readonly tableId: number }
  | ColumnChange
  /** The changes of one ALTER TABLE statement, applied atomically. */
  | { readonly kind: 'changeColumns'; readonly tableId: number; readonly changes: readonly ColumnChange[] }
  | { readonly kind: 'renameColumn'; readonly tableId: number; readonly columnId: number; readonly name: string }
  /** TTL, DEDUP, parameters and the like: replaces members of the schema. */
  | {
      readonly kind: 'alterTable'
      readonly tableId: number
      readonly changes: Partial<
        Pick<
          TableSchema,
          | 'dedupKeys'
          | 'dedupSkips'
          | 'ttl'
          | 'policy'
          | 'lake'
          | 'maxUncommittedRows'
          | 'o3MaxLagMicros'
          | 'bypassWalNext'
          | 'sequence'
          | 'labels'
          | 'comment'
          | 'materialized'
          | 'stored'
        >
      >
    }
  /**
   * `program` casts columns into new ones (writer-type.ts), one for each of `types`; `changes` are applied with them.
   */
  | {
      readonly kind: 'changeTypes'
      readonly tableId: number
      readonly types: readonly NewType[]
      readonly changes: readonly ColumnChange[]
      readonly program: RewriteProgram
    }
  | {
      readonly kind: 'partitions'
      readonly tableId: number
      readonly operation: 'drop' | 'detach' | 'attach'
      readonly partitions: readonly string[]
      /** Of DROP for a table with materialized views. The receipt says `isStale` if the table has changed since. */
      readonly sealing?: Sealing
    }

export interface NewType {
  readonly columnId: number
  readonly type: DataType
}

/** A key over columns that are named, because columns added by the same statement have no ids yet. */
export interface NewKey extends Pick<DeclaredKey, 'name' | 'primary' | 'nullsEqual' | 'enforced'> {
  readonly columns: readonly string[]
}

/** A change of one column or key. Several of them are applied in order. */
export type ColumnChange =
  | {
      readonly kind: 'addColumn'
      readonly tableId: number
      readonly column: Omit<ColumnSchema, 'id' | 'dropped'>
      readonly ifNotExists: boolean
    }
  | { readonly kind: 'dropColumn'; readonly tableId: number; readonly columnId: number }
  /** Options of a column; null removes the index, the default or PARQUET(..). */
  | {
      readonly kind: 'alterColumn'
      readonly tableId: number
      readonly columnId: number
      readonly symbol?: NonNullable<ColumnSchema['symbol']>
      readonly indexed?: NonNullable<ColumnSchema['indexed']> | null
      readonly default?: string | null
      readonly declared?: DeclaredColumn
      readonly parquet?: ColumnStorage | null
    }
  | { readonly kind: 'addKey'; readonly tableId: number; readonly key: NewKey }
  | { readonly kind: 'renameKey'; readonly tableId: number; readonly keyId: number; readonly name: string }
  | { readonly kind: 'dropKey'; readonly tableId: number; readonly keyId: number }

/** The values of one column as bytes, which the message owns. */
export type PackedColumn =
  /** In memory layout. */
  | { readonly kind: 'fixed'; readonly bytes: Uint8Array }
  /** Strings and arrays: lengths (-1 NULL), and the bytes concatenated. */
  | { readonly kind: 'strings'; readonly lengths: Int32Array; readonly bytes: Uint8Array }
  /** SYMBOL: indexes (-1 NULL) into a list of strings, each preceded by its length u32. */
  | { readonly kind: 'symbols'; readonly ids: Int32Array; readonly strings: Uint8Array; readonly count: number }

/** A batch of some thousand rows in columnar form. */
export interface PackedRows {
  readonly rows: number
  readonly columns: readonly { readonly columnId: number; readonly type: DataType; readonly values: PackedColumn }[]
}

/** A packed batch on its way to the writer, and the approximate memory that it takes. */
export interface PackedBatch {
  readonly packed: PackedRows
  readonly bytes: number
}

/** Rows for one table in columnar form. The values already have the types of the columns. */
export interface RowsInput {
  readonly tableId: number
  readonly rows: number
  readonly columns: readonly { readonly columnId: number; readonly type: DataType; readonly values: readonly Value[] }[]
  /** Rows of a refresh, which alone may be stored in a materialized view. */
  readonly refreshes?: true
  /** Instead of `columns`: the rows in packed batches. */
  readonly packed?: readonly PackedRows[]
  /** The packed batches as one shared block, while they are sent to the writer: packed-block.ts. */
  readonly block?: SharedArrayBuffer
}

/** The query and assignments of an UPDATE or DELETE, or of a change of a column's type (rewrite.ts). */
export interface RewriteProgram {
  readonly action: 'update' | 'delete'
  /** The query that finds the rows and computes their new values. Its table 0 is the target. */
  readonly query: Query
  /** Snapshots of the query's other tables, from table 1 on. */
  readonly snapshots: readonly TableSnapshot[]
  /** Ids of the assigned columns, in the order of the query's output. */
  readonly assigned: readonly number[]
  /** Number of output columns after the assigned ones that are returned for each changed row (RETURNING). */
  readonly returned: number
  /** The value of now(). */
  readonly nowMicros: number
  /** Id of the cancellation flag (memory/cancel-flags.ts). */
  readonly stopId?: number
  /** Rows that sealed buckets of views lack are left as they are; otherwise the receipt says `isLate` if there are any. */
  readonly skipsLate?: true
}

/** A table whose schema or contents a transaction replaces. */
export interface DraftedTable {
  readonly tableId: number
  /** Version of the stored schema that the transaction started from; 0: the transaction creates the table. */
  readonly base: number
  /** The table's name at that time, for errors. */
  readonly name: string
  /** Null: the table is dropped. */
  readonly schema: TableSchema | null
  /** The existing rows are removed before the rows of the transaction are added. */
  readonly emptied: boolean
  /** TRUNCATE has removed them: buckets of views that outlived others go, too. */
  readonly truncated: boolean
  /**
   * The contents that the transaction has read: the last row transaction and the number of rewrites must still match.
   */
  readonly read: { readonly transaction: number; readonly rewrites: number } | null
}

/** The rows that an upsert removes, as its snapshot has them. Row numbers ascend. */
export interface Removal {
  /** Version of the schema for which the statement was planned. */
  readonly schemaVersion: number
  /** The last transaction of the snapshot. */
  readonly transaction: number
  readonly parts: readonly (readonly [partId: number, rows: Uint32Array])[]
  readonly memtables: readonly (readonly [memtableId: number, rows: Uint32Array])[]
  /** Added rows that nobody sees: the old values of deleted rows. A commit without rows would not become visible. */
  readonly hidden: Uint32Array
}

/** The new rows of a table, and those that they replace; null: none. */
export interface TableReplacement {
  readonly input: RowsInput
  readonly removal: Removal | null
  /** The table is a materialized view, to whose sealed buckets late rows of its base are added. */
  readonly late?: LateAddition
  /** Removes also rows that sealed buckets of views lack. */
  readonly removesLate?: true
}

interface LateAddition {
  readonly baseId: number
  /** The parts with these rows. The base must have them still. */
  readonly parts: readonly number[]
  /** The view's new record of stored buckets, for the same log record. */
  readonly stored: StoredBuckets
}

/** Staged parts of a table, with the rows of a bulk load. A transaction may have several loads of a table. */
export interface LoadedParts {
  readonly tableId: number
  /** Ids of the columns that have values. */
  readonly columnIds: readonly number[]
  readonly parts: readonly PartDescriptor[]
}

export type ToWriter =
  | { readonly kind: 'change'; readonly requestId: number; readonly change: SchemaChange }
  /** Rows of one transaction, for all its tables. */
  | { readonly kind: 'rows'; readonly requestId: number; readonly tables: readonly RowsInput[] }
  /** Reserves ids for tables that a transaction will create; the receipt has the first id. */
  | { readonly kind: 'tableIds'; readonly requestId: number; readonly count: number }
  /** Schemas and rows of one transaction, applied atomically. */
  | {
      readonly kind: 'transaction'
      readonly requestId: number
      readonly drafts: readonly DraftedTable[]
      readonly tables: readonly RowsInput[]
    }
  /** Upserts and data changes of WITH: rows of the tables are replaced, deleted and added, as one transaction. */
  | { readonly kind: 'replace'; readonly requestId: number; readonly tables: readonly TableReplacement[] }
  /** UPDATE or DELETE: a serial change of the table. The receipt's row count is the number of changed rows. */
  | { readonly kind: 'rewrite'; readonly requestId: number; readonly tableId: number; readonly program: RewriteProgram }
  /**
   * Prepares parts that a 'registerParts' message will register. The receipt has the ids and symbols for their job.
   */
  | {
      readonly kind: 'stage'
      readonly requestId: number
      readonly tableId: number
      readonly symbols: readonly (readonly [columnId: number, strings: readonly string[]])[]
    }
  /** Registers staged parts with their tables, as one transaction. */
  | { readonly kind: 'registerParts'; readonly requestId: number; readonly loads: readonly LoadedParts[] }
  /** Removes staged parts that are not registered. */
  | { readonly kind: 'discard'; readonly parts: readonly PartDescriptor[] }
  /** A QWP connection is closed: its symbols are not needed any more. */
  | { readonly kind: 'forgetConnection'; readonly connectionId: number }
  /** A reader needs evicted dictionaries of a table, which are identified by their addresses. */
  | {
      readonly kind: 'holdSymbols'
      readonly requestId: number
      readonly tableId: number
      readonly dictionaries: readonly number[]
    }
  /** Flushes one table, or every table. The receipt is sent when the parts are durable and in the manifest. */
  | { readonly kind: 'checkpoint'; readonly requestId: number; readonly tableId?: number }
  /** Replaces the file of users. */
  | { readonly kind: 'users'; readonly requestId: number; readonly bytes: Uint8Array }
  /** Pins a version of all tables for a backup. The receipt is sent when backup/ names it. */
  | { readonly kind: 'pin'; readonly requestId: number }
  | { readonly kind: 'unpin'; readonly requestId: number }
  /** Of the table's versions below `below`, the main thread has snapshots only of those in `held`. */
  | {
      readonly kind: 'released'
      readonly tableId: number
      readonly below: number
      readonly held: readonly number[]
    }
  /** Readers see the rows of the last 'published' with such rows. */
  | { readonly kind: 'shown' }
  | { readonly kind: 'jobDone'; readonly jobId: number; readonly result: JobResult }
  | { readonly kind: 'jobFailed'; readonly jobId: number; readonly error: ErrorRecord }
  /** A part is in the object store, too. Not answered: the next version of the table shows it. */
  | {
      readonly kind: 'uploaded'
      readonly tableId: number
      readonly partId: number
      readonly remote: NonNullable<PartDescriptor['remote']>
    }
  /** The object store has this version of an Iceberg table. Not answered: the next version of the table shows it. */
  | { readonly kind: 'lakeCommitted'; readonly tableId: number; readonly lake: LakePointer }
  | { readonly kind: 'close'; readonly requestId: number }

/** A rejected line of a request. */
export interface LineReject {
  /** One-based line of the request. */
  readonly line: number
  readonly message: string
  /** The table that the line names, if that part of the line was valid. */
  readonly table: string
  /** The beginning of the line, for requests that store their valid lines. */
  readonly text?: string
  /** The Kafka record that contained the line. */
  readonly record?: KafkaPosition
}

/** The result of a request. */
export interface Receipt {
  readonly requestId: number
  readonly rows: number
  readonly rejects: readonly LineReject[]
  /** Number of rejected lines; `rejects` may be a shorter list. */
  readonly rejected: number
  /** Set if nothing of the request was stored. */
  readonly error: ErrorRecord | null
  /** End of the request's last frame in the log; 0 if nothing was written. */
  readonly lsn: number
  /**
   * createTable with ifNotExists: the table existed. Lines with a source position: they do not continue the stored
   * position of their stream.
   */
  readonly existed: boolean
  /** Of QWP: the tables with rows, and their transactions. */
  readonly tables?: readonly (readonly [name: string, transaction: number])[]
  readonly staged?: StagedReply
  /** Response to 'tableIds'. */
  readonly firstTableId?: number
  /** Response to 'replace' and to sealing: the table has changed since the snapshot, so try again. */
  readonly isStale?: true
  /**
   * Response to 'replace', with `isStale`, and to 'rewrite': the statement would change rows that sealed buckets of
   * views lack. They are to be added to these first.
   */
  readonly isLate?: true
  /** Response to 'rewrite': the rows of RETURNING. */
  readonly returned?: readonly (readonly Value[])[]
}

/** Response to 'stage'. `symbolIds` has the ids of the strings of each column, in the order of the request. */
interface StagedReply {
  readonly firstPartId: number
  readonly symbolIds: readonly (readonly [columnId: number, ids: Int32Array])[]
  readonly version: TableVersion
}

export type FromWriter =
  /** `positions`: the stored source position of each stream. */
  | {
      readonly kind: 'ready'
      readonly versions: readonly TableVersion[]
      readonly positions: readonly KafkaPosition[]
      readonly users: readonly UserRecord[]
    }
  /**
   * Versions are sent before the receipts that depend on them. `dropped` lists ids of tables. The rows of `visible`
   * become visible together with the versions; if there are any, 'shown' is the response.
   */
  | {
      readonly kind: 'published'
      readonly versions: readonly TableVersion[]
      readonly dropped: readonly number[]
      readonly visible: readonly VisibleRows[]
      readonly receipts: readonly Receipt[]
    }
  | { readonly kind: 'job'; readonly jobId: number; readonly job: Job }
  | { readonly kind: 'sync'; readonly descriptor: number; readonly lsn: number }
  /** The log cannot be written, even in a new segment. The writer keeps trying. */
  | { readonly kind: 'logFailed'; readonly error: ErrorRecord }
  | { readonly kind: 'fatal'; readonly error: ErrorRecord }

/** Number of part ids reserved for a flush, from firstPartId on. */
export const partIdsPerFlush = 1_048_576
/** A flush of at most this many rows is short, so the sync of its parts may wait for a group of other flushes. */
export const smallFlushRows = 65_536

/** Work that query threads do for the writer. */
export type Job =
  /** Sorts the first `rows` rows of a frozen memtable and writes them as parts, one or more per partition. */
  | {
      readonly kind: 'flush'
      readonly version: TableVersion
      readonly memtable: number
      readonly rows: number
      readonly minTxn: number
      readonly maxTxn: number
      readonly firstPartId: number
      /** Partitions whose rows are skipped, because they are being dropped or detached. */
      readonly leaving?: ReadonlySet<string>
    }
  /**
   * Compaction: joins parts that are adjacent in transaction order, into one part per slice of about `sliceRows` rows.
   */
  | {
      readonly kind: 'merge'
      readonly version: TableVersion
      readonly parts: readonly PartDescriptor[]
      readonly firstPartId: number
      readonly sliceRows: number
    }
  /** Rewrites the parts in which the program changes rows; without a program, those with superseded rows. */
  | {
      readonly kind: 'rewrite'
      readonly version: TableVersion
      /** Schema of the new parts. */
      readonly schema: TableSchema
      readonly parts: readonly PartDescriptor[]
      /** Part ids from here on, one per part. */
      readonly firstPartId: number
      readonly program: RewriteProgram | null
    }

/**
 * Writes the rows of an import as parts, and frees their memory. `symbolIds` maps the import's own symbol numbers, by
 * column id, to ids of the table's dictionaries.
 */
export interface StageWork {
  readonly kind: 'stage'
  readonly version: TableVersion
  readonly memtable: number
  readonly rows: number
  readonly firstPartId: number
  readonly symbolIds: readonly (readonly [columnId: number, ids: Int32Array])[]
  readonly allocations: readonly number[]
}

export interface JobResult {
  readonly parts: readonly PartDescriptor[]
  /** Of a rewrite: ids of the parts that the new ones replace, and the number of changed rows. */
  readonly replaced?: readonly number[]
  readonly rows?: number
  /** Of a rewrite that stopped early: strings by column id that must first be added to the table's dictionaries. */
  readonly newSymbols?: readonly (readonly [number, readonly string[]])[]
  /** Of a rewrite: the rows of RETURNING. */
  readonly returned?: readonly (readonly Value[])[]
}
