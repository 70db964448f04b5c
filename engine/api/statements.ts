// Types of statements and their results: execution options, result kinds, descriptions, virtual tables, and the
// interfaces of the code that carries out COPY and BACKUP.

import type { Encoding } from '../exec/run/messages.js'
import type { ForeignSource, ForeignTable } from '../parquet/foreign-file.js'
import type { Statement } from '../sql/ast/ast.js'
import type { PackedBatch } from '../storage/jobs/messages.js'
import type { ColumnType, DataType } from '../types/column-types.js'
import type { Value } from '../types/value.js'
import type { Session } from './session.js'

/** One statement of a string. Error positions are offsets into the whole string. */
export interface ParsedStatement {
  /** The whole string. */
  readonly text: string
  readonly start: number
  readonly end: number
  readonly statement: Statement
}

/**
 * The part of AbortSignal that the engine uses: signals that the result is no longer wanted. Listeners are called
 * once.
 */
export interface StopSignal {
  readonly aborted: boolean
  /** A string is a message for the client. */
  readonly reason: unknown
  addEventListener(type: 'abort', listener: () => void, options?: { readonly once: boolean }): void
  removeEventListener(type: 'abort', listener: () => void): void
}

/** Columns for a caller in the same process: `RowsResult.packed` replaces the blocks. */
interface ColumnsEncoding {
  readonly kind: 'columns'
}

export interface ExecuteOptions {
  readonly session: Session
  /** The statement, already parsed from the given SQL. */
  readonly parsed?: ParsedStatement
  readonly encoding: Encoding | ColumnsEncoding
  /** Values of $1, $2, ... */
  readonly parameters: readonly { readonly value: Value; readonly type: DataType }[]
  /** Result rows to skip, then to return (Infinity: all). */
  readonly skip: number
  readonly rowsMax: number
  /** Continue counting after rowsMax, so that `rows` is the size of the whole result. */
  readonly countAll: boolean
  /** Columns to return, by name, in that order; null: all. */
  readonly columns: readonly string[] | null
  /** 0: no deadline. */
  readonly timeoutMs: number
  readonly signal: StopSignal | null
  /** Return the plan instead of running it. */
  readonly explain: boolean
  /** Reject statements without rows with this message, before they have any effect. */
  readonly rowsOnly?: string
  /** Backpressure window: limit of encoded bytes that wait for the reader. */
  readonly windowBytes?: number
  /** MERGE and ON CONFLICT: count the changes and report their errors, but change nothing. */
  readonly isPreview?: boolean
  /** Receives the rows of INSERT .. SELECT instead of the table. */
  readonly into?: (tableId: number, batch: PackedBatch) => Promise<void>
}

export interface ResultColumn {
  readonly name: string
  readonly type: DataType
  /** For a plain table column: table and column as in pg_class and pg_attribute. */
  readonly baseColumn?: {
    readonly relation: number
    readonly attribute: number
    /** Length or precision of its type, where declared. */
    readonly modifier: number | undefined
  }
}

export interface RowsResult {
  readonly kind: 'rows'
  readonly columns: readonly ResultColumn[]
  /** Index of the designated timestamp; -1: none. */
  readonly timestampIndex: number
  /** Encoded blocks; each is a view of shared memory that is valid until the next one is requested. */
  readonly blocks: AsyncIterable<Uint8Array>
  /** Replaces `blocks` for the encoding 'values'. */
  readonly values: AsyncIterable<readonly (readonly Value[])[]>
  /** Replaces `blocks` for the encoding 'columns': rows in the order of `columns`, some thousand at a time. */
  readonly packed: AsyncIterable<PackedBatch>
  /** Settles after the last block. */
  readonly summary: Promise<{ readonly rows: number; readonly cut: boolean }>
  /**
   * Lower bound of the result's rows, before skip and limit, including rows that others may replace. Lets the caller
   * recognise a long result without waiting for it.
   */
  readonly rowsCertain: () => number
  /** The whole result if it was available at once; a caller that can use it need not read `blocks`. */
  readonly ready: ReadyRows | null
  readonly compilerMs: number
  readonly cached: boolean
  /** For INSERT .. RETURNING: the number of stored rows. */
  readonly inserted?: number
  /** For UPDATE and DELETE with RETURNING. */
  readonly changed?: 'UPDATE' | 'DELETE' | 'MERGE'
}

/** What an UPDATE or DELETE would change. */
export interface ChangePreview {
  readonly rows: number
  /** Result of RETURNING. */
  readonly result: RowsResult | null
}

/** A complete result. */
export interface ReadyRows {
  readonly blocks: readonly Buffer[]
  readonly rows: number
  readonly cut: boolean
}

/** Result of DDL, INSERT and other statements without rows. */
export interface DoneResult {
  readonly kind: 'done'
  /** `CREATE TABLE`, `INSERT`, `UPDATE`, `SET`, ...: the command tag of the wire protocol without counts. */
  readonly tag: string
  /** Rows inserted, updated or deleted; otherwise 0. */
  readonly rows: number
  /** Notices for the client, for example about values that became NULL. */
  readonly notes?: readonly string[]
  readonly compilerMs: number
}

export interface PlanResult {
  readonly kind: 'plan'
  readonly lines: readonly string[]
  readonly compilerMs: number
}

export type StatementResult = RowsResult | DoneResult | PlanResult

/** A virtual table whose rows the caller computes when it is queried (sys.connections, ...). */
export interface VirtualRelation {
  readonly name: string
  readonly columns: readonly { readonly name: string; readonly type: ColumnType }[]
  /** Requires one string argument: `files('a')`. */
  readonly takesText?: true
  readonly rows: (text?: string) => readonly (readonly Value[])[]
  /**
   * For a virtual table over Parquet files: returns the files that its argument refers to, at least one. Querying it
   * needs the right to write, like COPY FROM. Throws SqlError.
   */
  readonly files?: (text: string, position: number) => readonly ForeignSource[]
  /** For a virtual table over a table that other programs wrote. Throws NotReadyError or SqlError. */
  readonly table?: (text: string, position: number) => ForeignTable
}

export interface Validation {
  /** `SELECT`, or the kind of the statement. */
  readonly tag: string
  readonly columns: readonly ResultColumn[] | null
  readonly timestampIndex: number
}

export interface CheckedStatement extends Validation {
  /** The name that other servers of this dialect use: `DROP` for tables and views, `CREATE AS SELECT`. */
  readonly queryType: string
}

/** What is known of a statement before its parameters are bound. */
export interface Description extends Validation {
  /** Types of $1, $2, ... with PostgreSQL OIDs; the statement determines the unspecified ones. */
  readonly parameters: readonly { readonly type: DataType; readonly oid: number }[]
}

interface CopyFile {
  /** As written in the statement; the Copier resolves it. */
  readonly file: string
  readonly filePosition: number
  readonly position: number
  /** Names in lower case, words joined by a space: `format`, `on error`, `partition by`. */
  readonly options: ReadonlyMap<string, string>
}

/** COPY between a file and a table or query. */
export type CopyRequest =
  | (CopyFile & { readonly direction: 'from'; readonly table: string })
  | (CopyFile & { readonly direction: 'to'; readonly query: string })

export interface BackupTable {
  readonly id: number
  readonly name: string
}

/** Carries out BACKUP: knows where backups go. Times are microseconds of the epoch. */
export interface BackupService {
  /**
   * Begins a backup of all tables, or of these, and returns when it began. The backup goes on in the background. Throws
   * ResourceError while another one runs.
   */
  start(tables: readonly BackupTable[] | null): Promise<number>
  /** Ends the running backup and returns when it began; null: none was running. */
  abort(): Promise<number | null>
}

/** Runs a COPY and returns the number of rows. */
export type Copier = (
  request: CopyRequest,
  options: Pick<ExecuteOptions, 'session' | 'signal' | 'timeoutMs'>,
) => Promise<number>
