// What the main thread says to the writer and hears from it, and the jobs that the writer gives to query threads
// (the main thread passes them on). Everything here crosses threads by structured clone. Bulk bytes travel in the
// ingest ring instead (memory/ring.ts).

import type { ErrorRecord } from '../../base/errors.js'
import type { Query } from '../../sql/plan/plan.js'
import type { DataType } from '../../types/column-types.js'
import type { Value } from '../../types/value.js'
import type { KafkaOrigin } from '../../wal/origin.js'
import type { UserRecord } from '../manifest/users.js'
import type {
  ColumnSchema,
  DeclaredColumn,
  DeclaredKey,
  PartDescriptor,
  TableSchema,
  TableSnapshot,
  TableVersion,
} from '../schema/schema.js'

/** A serial change of the catalog or of one table. Names are resolved by the writer, in WAL order. */
export type SchemaChange =
  | {
      readonly kind: 'createTable'
      readonly schema: Omit<TableSchema, 'id' | 'version'>
      readonly ifNotExists: boolean
    }
  | { readonly kind: 'dropTable'; readonly tableId: number }
  /** The statement that makes the table has stored all its rows. */
  | { readonly kind: 'finishTable'; readonly tableId: number }
  | { readonly kind: 'renameTable'; readonly tableId: number; readonly name: string }
  | { readonly kind: 'truncateTable'; readonly tableId: number }
  | ColumnChange
  /** Of one ALTER TABLE: all or none. */
  | { readonly kind: 'changeColumns'; readonly tableId: number; readonly changes: readonly ColumnChange[] }
  | { readonly kind: 'renameColumn'; readonly tableId: number; readonly columnId: number; readonly name: string }
  /** TTL, DEDUP, parameters and the like: members replaced in the schema. */
  | {
      readonly kind: 'alterTable'
      readonly tableId: number
      readonly changes: Partial<
        Pick<
          TableSchema,
          | 'dedupKeys'
          | 'ttl'
          | 'maxUncommittedRows'
          | 'o3MaxLagMicros'
          | 'bypassWalNext'
          | 'sequence'
          | 'labels'
          | 'comment'
        >
      >
    }
  /** `program` casts columns into new ones (writer-type.ts), one for each of `types`; `changes` come with them. */
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
    }

export interface NewType {
  readonly columnId: number
  readonly type: DataType
}

/** Columns by name: those of the same statement have no ids before it. */
export interface NewKey extends Pick<DeclaredKey, 'name' | 'primary' | 'nullsEqual'> {
  readonly columns: readonly string[]
}

/** Of one column or key; several are done one behind the other. */
export type ColumnChange =
  | {
      readonly kind: 'addColumn'
      readonly tableId: number
      readonly column: Omit<ColumnSchema, 'id' | 'dropped'>
      readonly ifNotExists: boolean
    }
  | { readonly kind: 'dropColumn'; readonly tableId: number; readonly columnId: number }
  /** Options of a SYMBOL column; null takes the index or the default away. */
  | {
      readonly kind: 'alterColumn'
      readonly tableId: number
      readonly columnId: number
      readonly symbol?: NonNullable<ColumnSchema['symbol']>
      readonly indexed?: NonNullable<ColumnSchema['indexed']> | null
      readonly default?: string | null
      readonly declared?: DeclaredColumn
    }
  | { readonly kind: 'addKey'; readonly tableId: number; readonly key: NewKey }
  | { readonly kind: 'renameKey'; readonly tableId: number; readonly keyId: number; readonly name: string }
  | { readonly kind: 'dropKey'; readonly tableId: number; readonly keyId: number }

/** Values of one column as bytes, owned by the message. */
export type PackedColumn =
  /** As in memory. */
  | { readonly kind: 'fixed'; readonly bytes: Uint8Array }
  /** Texts and arrays: a length each (-1 NULL), the bytes one after the other. */
  | { readonly kind: 'texts'; readonly lengths: Int32Array; readonly bytes: Uint8Array }
  /** SYMBOL: indexes (-1 NULL) into texts that lie one after the other, each behind its length u32. */
  | { readonly kind: 'symbols'; readonly ids: Int32Array; readonly texts: Uint8Array; readonly count: number }

/** Some thousand rows, column by column. */
export interface PackedRows {
  readonly rows: number
  readonly columns: readonly { readonly columnId: number; readonly type: DataType; readonly values: PackedColumn }[]
}

/** Packed rows on their way, and about how much memory they take. */
export interface PackedPiece {
  readonly packed: PackedRows
  readonly bytes: number
}

/** Rows for one table, column by column. Values are converted to the column's type already. */
export interface RowsInput {
  readonly tableId: number
  readonly rows: number
  readonly columns: readonly { readonly columnId: number; readonly type: DataType; readonly values: readonly Value[] }[]
  /** Instead of columns: the rows, piece by piece. */
  readonly packed?: readonly PackedRows[]
  /** These, on their way to the writer: packed-block.ts. */
  readonly block?: SharedArrayBuffer
}

/** What is to be done to the rows of a table (rewrite.ts). */
export interface RewriteProgram {
  readonly action: 'update' | 'delete'
  /** Table 0 is the target. */
  readonly query: Query
  /** Of the query's tables from 1 on. */
  readonly snapshots: readonly TableSnapshot[]
  /** Ids of the assigned columns, in the order of the query's output. */
  readonly assigned: readonly number[]
  /** So many columns behind them are sent back of each row that is changed. */
  readonly returned: number
  /** What now() gives. */
  readonly nowMicros: number
  /** By which it is told to end (memory/stop-words.ts). */
  readonly stopId?: number
}

/** One table of a transaction that changes schemas. */
export interface DraftedTable {
  readonly tableId: number
  /** Of the stored schema that the transaction began with; 0: it has made the table. */
  readonly base: number
  /** For errors: as the table was called then. */
  readonly name: string
  /** Null: it is dropped. */
  readonly schema: TableSchema | null
  /** Its rows go, before those of the transaction come. */
  readonly emptied: boolean
  /** It must hold what the transaction has read of it: the last transaction of rows, and how often rows were changed. */
  readonly read: { readonly transaction: number; readonly rewrites: number } | null
}

export type ToWriter =
  | { readonly kind: 'change'; readonly requestId: number; readonly change: SchemaChange }
  /** One transaction over all its tables. */
  | { readonly kind: 'rows'; readonly requestId: number; readonly tables: readonly RowsInput[] }
  /** Ids for tables that a transaction is going to make: the receipt has the first. */
  | { readonly kind: 'tableIds'; readonly requestId: number; readonly count: number }
  /** Schemas and rows of one transaction, all of it or nothing. */
  | {
      readonly kind: 'transaction'
      readonly requestId: number
      readonly drafts: readonly DraftedTable[]
      readonly tables: readonly RowsInput[]
    }
  /** UPDATE or DELETE: a serial change of the table; the receipt's rows are those that were changed. */
  | { readonly kind: 'rewrite'; readonly requestId: number; readonly tableId: number; readonly program: RewriteProgram }
  /** Prepares parts that `adopt` names: the receipt has what their job needs. */
  | {
      readonly kind: 'stage'
      readonly requestId: number
      readonly tableId: number
      readonly symbols: readonly (readonly [columnId: number, texts: readonly string[]])[]
    }
  /** Staged parts become the table's, as one transaction. */
  | {
      readonly kind: 'adopt'
      readonly requestId: number
      readonly tableId: number
      readonly columnIds: readonly number[]
      readonly parts: readonly PartDescriptor[]
    }
  /** Staged parts that nobody wants. */
  | { readonly kind: 'discard'; readonly parts: readonly PartDescriptor[] }
  /** A reader wants dictionaries of a table, by their addresses, that were given back. */
  | {
      readonly kind: 'holdSymbols'
      readonly requestId: number
      readonly tableId: number
      readonly dictionaries: readonly number[]
    }
  /** Flush every table; answered when their parts are durable and named. */
  | { readonly kind: 'checkpoint'; readonly requestId: number }
  /** Replaces the file of the users. */
  | { readonly kind: 'users'; readonly requestId: number; readonly bytes: Uint8Array }
  /** Pin a version of all tables for a copy; answered when backup/ names it. */
  | { readonly kind: 'pin'; readonly requestId: number }
  | { readonly kind: 'unpin'; readonly requestId: number }
  /** Of the table's versions `below` that one, the main thread holds snapshots of those `held` alone. */
  | {
      readonly kind: 'released'
      readonly tableId: number
      readonly below: number
      readonly held: readonly number[]
    }
  | { readonly kind: 'jobDone'; readonly jobId: number; readonly result: JobResult }
  | { readonly kind: 'jobFailed'; readonly jobId: number; readonly error: ErrorRecord }
  | { readonly kind: 'close'; readonly requestId: number }

/** A rejected or failed line of a request. */
export interface LineReject {
  /** One-based line of the request. */
  readonly line: number
  readonly message: string
  /** The table that the line names, if it could be read. */
  readonly table: string
  /** How the line begins, of requests that store the others. */
  readonly text?: string
  /** The record that held the line. */
  readonly record?: KafkaOrigin
}

/** What became of a request. */
export interface Receipt {
  readonly requestId: number
  readonly rows: number
  readonly rejects: readonly LineReject[]
  /** How many lines were refused: the list ends at a limit. */
  readonly rejected: number
  /** Set when nothing of the request was stored. */
  readonly error: ErrorRecord | null
  /** WAL position behind the request's last frame; 0 when nothing was written. */
  readonly lsn: number
  /** createTable with ifNotExists: it existed. Lines with an origin: they do not follow what is stored of their stream. */
  readonly existed: boolean
  readonly staged?: StagedAnswer
  /** Of 'tableIds'. */
  readonly firstTableId?: number
  /** Of a rewrite: what its program returns. */
  readonly returned?: readonly (readonly Value[])[]
}

/** Of 'stage': ids of the texts by column id, in their order. */
interface StagedAnswer {
  readonly firstPartId: number
  readonly symbolIds: readonly (readonly [columnId: number, ids: Int32Array])[]
  readonly version: TableVersion
}

export type FromWriter =
  /** `positions`: how far streams are stored. */
  | {
      readonly kind: 'ready'
      readonly versions: readonly TableVersion[]
      readonly positions: readonly KafkaOrigin[]
      readonly users: readonly UserRecord[]
    }
  /** Versions come before the receipts that depend on them. A dropped table is named by its id. */
  | {
      readonly kind: 'published'
      readonly versions: readonly TableVersion[]
      readonly dropped: readonly number[]
      readonly receipts: readonly Receipt[]
    }
  | { readonly kind: 'job'; readonly jobId: number; readonly job: Job }
  | { readonly kind: 'sync'; readonly descriptor: number; readonly lsn: number }
  /** The log cannot be written now, as a fresh segment could not either: the writer goes on trying. */
  | { readonly kind: 'logFailed'; readonly error: ErrorRecord }
  | { readonly kind: 'fatal'; readonly error: ErrorRecord }

/** Ids that a flush may use: firstPartId and up. */
export const partIdsPerFlush = 1_048_576
/** A flush of so few rows is quick: its parts may wait to be synced together with those of others. */
export const smallFlushRows = 65_536

/** Work that query threads do for the writer. */
export type Job =
  /** Sort a frozen generation's first `rows` rows and write them as parts, one or more a partition. */
  | {
      readonly kind: 'flush'
      readonly version: TableVersion
      readonly generation: number
      readonly rows: number
      readonly minTxn: number
      readonly maxTxn: number
      readonly firstPartId: number
      /** Partitions whose rows are left out. */
      readonly leaving?: ReadonlySet<string>
    }
  /** Join parts that are adjacent in transaction order: into one, or one a slice of about so many rows. */
  | {
      readonly kind: 'merge'
      readonly version: TableVersion
      readonly parts: readonly PartDescriptor[]
      readonly firstPartId: number
      readonly sliceRows: number
    }
  /** Write those of the parts anew in which the program changes rows; without a program, those with repeated keys. */
  | {
      readonly kind: 'rewrite'
      readonly version: TableVersion
      /** Of the new parts. */
      readonly schema: TableSchema
      readonly parts: readonly PartDescriptor[]
      /** Ids from here on, one a part. */
      readonly firstPartId: number
      readonly program: RewriteProgram | null
    }

/** A flush of rows of an import; its memory is freed then. Ids by column id replace the numbers of symbols. */
export interface StageWork {
  readonly kind: 'stage'
  readonly version: TableVersion
  readonly generation: number
  readonly rows: number
  readonly firstPartId: number
  readonly symbolIds: readonly (readonly [columnId: number, ids: Int32Array])[]
  readonly allocations: readonly number[]
}

export interface JobResult {
  readonly parts: readonly PartDescriptor[]
  /** Of a rewrite: ids of the parts that the new ones replace, and how many rows the program changed. */
  readonly replaced?: readonly number[]
  readonly rows?: number
  /** Of a rewrite that did nothing: texts, by column id, that the table's dictionaries must have first. */
  readonly newSymbols?: readonly (readonly [number, readonly string[]])[]
  /** Of a rewrite: what its program returns. */
  readonly returned?: readonly (readonly Value[])[]
}
