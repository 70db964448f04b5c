// A statement on its way in, and what it answers.

import type { Encoding } from '../exec/run/messages.js'
import type { ForeignSource } from '../parquet/foreign-file.js'
import type { Statement } from '../sql/ast/ast.js'
import type { PackedPiece } from '../storage/jobs/messages.js'
import type { ColumnType, DataType } from '../types/column-types.js'
import type { Value } from '../types/value.js'
import type { Session } from './session.js'

/** One statement of a text. Positions in errors are offsets into the whole text. */
export interface ParsedStatement {
  /** The whole text. */
  readonly text: string
  readonly start: number
  readonly end: number
  readonly statement: Statement
}

/** What an AbortSignal and lighter things tell: that nobody waits for the answer any more. Listeners are called once. */
export interface StopSignal {
  readonly aborted: boolean
  /** A text is for the client. */
  readonly reason: unknown
  addEventListener(type: 'abort', listener: () => void, options?: { readonly once: boolean }): void
  removeEventListener(type: 'abort', listener: () => void): void
}

export interface ExecuteOptions {
  readonly session: Session
  /** The statement, parsed already from the text that is given. */
  readonly parsed?: ParsedStatement
  readonly encoding: Encoding
  /** Values of $1, $2, ... */
  readonly parameters: readonly { readonly value: Value; readonly type: DataType }[]
  /** Result rows to skip, then to send (Infinity = all). */
  readonly skip: number
  readonly rowsMax: number
  /** Go on counting behind rowsMax, so that `rows` is the size of the whole result. */
  readonly countAll: boolean
  /** Columns to send, by name, in that order; null = all. */
  readonly columns: readonly string[] | null
  /** 0 = no deadline. */
  readonly timeoutMs: number
  readonly signal: StopSignal | null
  /** Answer with the plan instead of running. */
  readonly explain: boolean
  /** Statements without rows are refused with these words, before they have done anything. */
  readonly rowsOnly?: string
  /** Bound of encoded bytes that may wait for their reader. */
  readonly windowBytes?: number
  /** Takes the rows of INSERT .. SELECT instead of the table. */
  readonly into?: (tableId: number, piece: PackedPiece) => Promise<void>
}

export interface ResultColumn {
  readonly name: string
  readonly type: DataType
  /** Of a column of a table that is not computed: as pg_class and pg_attribute have them. */
  readonly origin?: {
    readonly relation: number
    readonly attribute: number
    /** The length or the digits of its type, where they were written. */
    readonly modifier: number | undefined
  }
}

export interface RowsResult {
  readonly kind: 'rows'
  readonly columns: readonly ResultColumn[]
  /** Index of the designated timestamp, -1 without one. */
  readonly timestampIndex: number
  /** Encoded blocks; a view of shared memory that stays valid until the next one is asked for. */
  readonly blocks: AsyncIterable<Uint8Array>
  /** Of encoding 'values' instead of blocks. */
  readonly values: AsyncIterable<readonly (readonly Value[])[]>
  /** Settles behind the last block. */
  readonly summary: Promise<{ readonly rows: number; readonly cut: boolean }>
  /**
   * Rows that are there to come, before skipping and limits; those count that others replace. Whoever writes a long answer
   * need not wait to see whether it is short.
   */
  readonly rowsCertain: () => number
  /** The whole result, where it was there at once: whoever can, takes it instead of the above. */
  readonly ready: ReadyRows | null
  readonly compilerMs: number
  readonly cached: boolean
  /** Of INSERT .. RETURNING: how many rows it has stored. */
  readonly inserted?: number
  /** Of UPDATE and DELETE with RETURNING. */
  readonly changed?: 'UPDATE' | 'DELETE'
}

/** What an UPDATE or DELETE is going to change. */
export interface ChangePreview {
  readonly rows: number
  /** Of RETURNING. */
  readonly result: RowsResult | null
}

/** A result in one piece. */
export interface ReadyRows {
  readonly blocks: readonly Buffer[]
  readonly rows: number
  readonly cut: boolean
}

/** DDL, INSERT and other statements without rows. */
export interface DoneResult {
  readonly kind: 'done'
  /** `CREATE TABLE`, `INSERT`, `UPDATE`, `SET`, ...: the command tag of the wire protocol without its counts. */
  readonly tag: string
  /** Rows inserted, updated or deleted; 0 for the rest. */
  readonly rows: number
  /** What the client should know of it, in sentences: values that became NULL. */
  readonly notes?: readonly string[]
  readonly compilerMs: number
}

export interface PlanResult {
  readonly kind: 'plan'
  readonly lines: readonly string[]
  readonly compilerMs: number
}

export type StatementResult = RowsResult | DoneResult | PlanResult

/** A relation whose rows the caller makes at the moment of the query (sys.connections, ...). */
export interface VirtualRelation {
  readonly name: string
  readonly columns: readonly { readonly name: string; readonly type: ColumnType }[]
  /** Called with one text, which it must have: `files('a')`. */
  readonly takesText?: true
  readonly rows: (text?: string) => readonly (readonly Value[])[]
  /**
   * Of a relation whose rows and columns are those of Parquet files: the ones that its text names, one at least. Who asks
   * must have the right to write, as for COPY FROM. Throws SqlError.
   */
  readonly files?: (text: string, position: number) => readonly ForeignSource[]
}

export interface Validation {
  /** `SELECT`, or the kind of the statement. */
  readonly tag: string
  readonly columns: readonly ResultColumn[] | null
  readonly timestampIndex: number
}

export interface CheckedStatement extends Validation {
  /** In the words of other servers of this dialect: `DROP` of tables and views, `CREATE AS SELECT`. */
  readonly queryType: string
}

/** What is known of a statement before its parameters have values. */
export interface Description extends Validation {
  /** Types of $1, $2, ..., those that were not said as the statement wants them, with PostgreSQL's numbers. */
  readonly parameters: readonly { readonly type: DataType; readonly oid: number }[]
}

interface CopyFile {
  /** As written: its place is up to who carries the copy out. */
  readonly file: string
  readonly filePosition: number
  readonly position: number
  /** Names lower case, words joined by a blank: `format`, `on error`, `partition by`. */
  readonly options: ReadonlyMap<string, string>
}

/** COPY between a file and a table or the rows of a query. */
export type CopyRequest =
  | (CopyFile & { readonly direction: 'from'; readonly table: string })
  | (CopyFile & { readonly direction: 'to'; readonly query: string })

/** Gives the number of rows. */
export type Copier = (
  request: CopyRequest,
  options: Pick<ExecuteOptions, 'session' | 'signal' | 'timeoutMs'>,
) => Promise<number>
