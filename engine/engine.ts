// The door of the engine: what pipeline, gateways and connectors may use. Nothing else of the engine is imported from
// outside, except types, errors and limits.

import type { KeyObject } from 'node:crypto'
import type { PasswordVerifier } from './base/password.js'
import type { Rights } from './base/rights.js'
import type { CsvBatch, CsvReject, CsvShape } from './csv/shape.js'
import type { budgets } from './memory/budgets.js'
import type { Figure, HistogramFigures } from './memory/figures.js'
import type { BinaryRows } from './pg/binary-rows.js'
import type { BindRun, BindShape } from './pg/bind-rows.js'
import type { BoundParameters } from './pg/collect-insert.js'
import type { Mark } from './pg/row-collector.js'
import type { Encoding } from './sql/exec/messages.js'
import type { Statement } from './sql/parse/ast.js'
import type { CacheCounts } from './storage/chunk-cache.js'
import type { LineReject, PackedRows, Receipt } from './storage/messages.js'
import type { PartitionUnit, TableVersion } from './storage/schema.js'
import type { ColumnType, DataType } from './types/column-types.js'
import type { Value } from './types/value.js'
import type { KafkaOrigin as KafkaPosition } from './wal/origin.js'

export type { CsvBatch, CsvColumn, CsvReject, CsvShape } from './csv/shape.js'
export type { HistogramFigures } from './memory/figures.js'
export type { BindShape } from './pg/bind-rows.js'
export type { BoundParameters } from './pg/collect-insert.js'
export { decodeParameter } from './pg/decode-value.js'
export type { Mark } from './pg/row-collector.js'
export type { Encoding, PgEncoding } from './sql/exec/messages.js'
export {
  falseShareDefault,
  type ParquetCodec,
  type ParquetEncoding,
  parquetCodec,
  parquetDefaults,
  parquetLevel,
} from './sql/exec/parquet-encoding.js'
export { type CopyResult, copyDatabase } from './storage/backup.js'
export { type CheckFinding, type CheckResult, checkDatabase } from './storage/check.js'
export type { LineReject, PackedColumn, PackedRows, Receipt } from './storage/messages.js'
export type { EngineHooks } from './threads/local-options.js'
export { type EngineOptions, openEngine } from './threads/open-engine.js'
export type { ConfiguredName } from './threads/user-catalog.js'
export type { KafkaOrigin as KafkaPosition } from './wal/origin.js'

/** Unit of the timestamps of a line-protocol request. */
export type LinePrecision = 'n' | 'u' | 'ms' | 's' | 'm' | 'h'

/**
 * Where the lines of a request come from, for a sender that can send them again. It is stored in the log frame of their
 * rows, so both survive a crash or neither does, and it is kept when the log is trimmed. The request is stored only when
 * `previous` is the stream's stored offset (-1: nothing is stored of it yet); otherwise nothing is, and the receipt says
 * `existed`. A request without rows moves the offset, too. Engine.positions() tells what is stored.
 *
 * On its way: packOrigin (storage/origins.ts) before the lines in the ingest ring, LineProgress.origin on the writer,
 * commitRows, wal/origin.ts in the frame, Origins at replay, a manifest record at the log's trim.
 */
export interface LineOrigin extends KafkaPosition {
  readonly previous: number
}

export interface LineRequest {
  /** Whole lines; the last one may lack its newline. Blocks are copied before the call's `taken` resolves. */
  readonly blocks: readonly Uint8Array[]
  readonly precision: LinePrecision
  /** true: one bad line and nothing is stored. false: rows before the bad line stay, or bad lines are skipped. */
  readonly atomic: boolean
  /** Go on behind a bad line; with atomic, to name all of them in the receipt. */
  readonly skipBadLines: boolean
  /** Shown in sys.connections and sys.rejects. */
  readonly connectionId: number
  /** Only with `atomic`. */
  readonly origin?: LineOrigin
}

export interface LineTicket {
  /** Resolves when the writer had room for the bytes: the only flow control. Rejects when the server cannot take more. */
  readonly taken: Promise<void>
  /** Resolves when the rows are as durable as the commit mode says. Receipt.error tells of a refused request. */
  readonly receipt: Promise<Receipt>
}

/** Who runs statements: its rights, its settings and what it may see. One per connection (or per HTTP request). */
export interface Session {
  readonly user: string
  readonly protocol: 'http' | 'pg' | 'internal'
  /** The way in takes no changes, whoever asks. */
  readonly readOnly: boolean
  /** Why, if it is not the server that takes no changes. */
  readonly readOnlyReason?: string
  readonly rights: Rights
  /** `SET query.trace = true` turns it on, for as long as the connection lives; absent: it cannot be turned on. */
  readonly trace?: { on: boolean }
  /** What SET has set, by name in lower case: SHOW, current_setting() and pg_settings read it, set_config() writes it. */
  readonly settings?: Map<string, string>
  /** Of the connection, for pg_backend_pid(). */
  readonly processId?: number
  /** Its rows are read by the session's statements as if they were stored. */
  readonly transaction?: OwnRows
}

/** Rows that a session has sent and nobody else sees. */
export interface OwnRows {
  readonly rows: number
  /** Of one table, in their order; values by column. Throws ResourceError when there are too many. */
  own(version: TableVersion): readonly (readonly Value[])[]
}

/** Who else wants to know what happens; called on the main thread, must neither throw nor take long. */
export interface EngineObserver {
  /** `origin`: the protocol of the session whose statement made it, or `ilp`. */
  tableCreated(name: string, origin: Session['protocol'] | 'ilp'): void
  /** A statement that was carried out has ended, well or not; not called for sessions of the server's own. */
  statementEnded(session: Session, sql: string, micros: number): void
}

/** What there is to show of the engine; counts since the start. */
export interface EngineFigures {
  readonly counts: Readonly<Record<Figure, number>>
  readonly commitSeconds: HistogramFigures
  /** Bytes by budget. */
  readonly memory: Readonly<Record<keyof typeof budgets, { readonly used: number; readonly limit: number }>>
  readonly allocations: number
  readonly frees: number
  readonly cache: CacheCounts
  readonly tables: number
  /** Queries that run. */
  readonly queries: number
  /** Snapshots of tables that statements hold. */
  readonly readers: number
  /** Snapshots that were forgotten without being given back. */
  readonly readerLeaks: number
}

/** One statement of a text. Positions in errors are offsets into the whole text. */
export interface ParsedStatement {
  /** The whole text. */
  readonly text: string
  readonly start: number
  readonly end: number
  readonly statement: Statement
}

/** A user that SQL made and that may log in. */
export interface StoredUser {
  readonly user: string
  readonly rights: Rights
  /** Null: this user has no password. */
  readonly verifier: PasswordVerifier | null
}

/** The users that SQL made; what is asked for is looked up at once. */
export interface UserDirectory {
  /** Grows with every change: what was remembered about users before it is stale. */
  readonly epoch: number
  user(name: string): StoredUser | undefined
  /** Whom a bearer token belongs to, if it is still good. */
  byToken(token: string): StoredUser | undefined
  /** Whom a key of line protocol belongs to, and with what its signatures are checked. */
  byLineKey(keyId: string): { readonly user: StoredUser; readonly key: KeyObject } | undefined
  /** Called after every change: who is connected may have lost a right. */
  onChange(listener: () => void): void
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
  readonly signal: AbortSignal | null
  /** Answer with the plan instead of running. */
  readonly explain: boolean
  /** Statements without rows are refused with these words, before they have done anything. */
  readonly rowsOnly?: string
  /** Bound of encoded bytes that may wait for their reader. */
  readonly windowBytes?: number
}

export interface ResultColumn {
  readonly name: string
  readonly type: DataType
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
  /** The whole result, where it was there at once: whoever can, takes it instead of the above. */
  readonly ready: ReadyRows | null
  readonly compilerMs: number
  readonly cached: boolean
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
  readonly rows: () => readonly (readonly Value[])[]
}

/** A table as those who bring rows to it see it. */
export interface TableShape {
  readonly id: number
  readonly name: string
  readonly columns: readonly { readonly id: number; readonly name: string; readonly type: DataType }[]
  /** Name of the designated timestamp; null without one. */
  readonly timestamp: string | null
  readonly partitionBy: PartitionUnit
  /** Rows with the same keys replace each other. */
  readonly dedup: boolean
}

/** Something that brings rows by itself: `ALTER CONNECTOR <name> PAUSE` and `RESUME` reach it. */
export interface Connector {
  readonly name: string
  pause(): Promise<void>
  resume(): Promise<void>
}

export interface Validation {
  /** `SELECT`, or the kind of the statement. */
  readonly tag: string
  readonly columns: readonly ResultColumn[] | null
  readonly timestampIndex: number
}

export interface TransactionMark extends Mark {
  readonly loads: number
}

/** Rows that are gathered until they are stored as one transaction, over any number of tables. */
export interface RowTransaction extends OwnRows {
  /** About what the rows take. */
  readonly bytes: number
  /** The rows of INSERT .. VALUES, all or none; answers how many. Throws like execute. */
  insert(
    parsed: ParsedStatement,
    session: Session,
    bound: BoundParameters | null,
    types: Description['parameters'],
  ): number
  /**
   * The rows of an INSERT of literals that is all of bytes [start, end), without a syntax tree; answers how many. -1, and
   * nothing has happened: the text has to be parsed.
   */
  insertText(bytes: Buffer, start: number, end: number, session: Session): number
  /** Messages of a prepared INSERT whose parameters are its values, from `start` on: engine/pg/bind-rows.ts. */
  binds(parsed: ParsedStatement, session: Session, bytes: Buffer, start: number, shape: BindShape): BindRun
  /** Rows that are columns already; the caller has checked that the session may write. */
  add(tableId: number, rows: PackedRows, bytes: number): void
  /**
   * Rows of a load that has ended and is not committed: `commit` commits it, whatever forgets its rows closes it. Such
   * rows cannot be read before.
   */
  adopt(load: CsvLoad, rows: number): void
  /** Rows that were adopted. */
  readonly adopted: number
  /** Rows in the binary form of COPY; the caller has checked that the session may write. */
  binaryRows(
    tableId: number,
    columns: TableShape['columns'],
    timestamp: string | null,
  ): Pick<BinaryRows, 'push' | 'end'>
  /**
   * Moves the rows out of the memory, into parts that nobody sees before they are committed; marks from before mean
   * nothing any more. False: a table does not allow it, and nothing has happened.
   */
  spill(): Promise<boolean>
  mark(): TransactionMark
  /** Forgets what came behind the mark. */
  backTo(mark: TransactionMark): void
  clear(): void
  /** Stores what was gathered; null when there was nothing. Empty afterwards, whatever becomes of it. */
  commit(): Promise<Receipt | null>
}

/** What is known of a statement before its parameters have values. */
export interface Description extends Validation {
  /** Types of $1, $2, ..., those that were not said as the statement wants them, with PostgreSQL's numbers. */
  readonly parameters: readonly { readonly type: DataType; readonly oid: number }[]
}

/** Decodes one CSV file on a query thread, block by block. */
export interface CsvDecoding {
  /** One call at a time. */
  decode(block: Uint8Array, last: boolean): Promise<readonly CsvBatch[]>
  /** Call once, at the end. */
  close(): void
}

/** A file that becomes parts of a table, however large it is. Nothing of it is in the table before it is committed. */
export interface CsvLoad {
  /** The bytes are copied; resolves when there is room for more. Rejects with what ended the load. */
  write(chunk: Uint8Array): Promise<void>
  /** Nothing follows; resolves when all rows are in parts. */
  end(): Promise<void>
  /** The rows become the table's, as one transaction that is durable when this resolves. */
  commit(): Promise<Receipt>
  /** Gives everything back; call at the end, whatever it was. */
  close(): Promise<void>
}

export interface LoadOptions {
  readonly tableId: number
  readonly shape: CsvShape
  /** Of the table, by field. */
  readonly columnIds: readonly number[]
  readonly blockBytes: number
  /** What a block held, in the order of the file; an error that it throws ends the load. */
  readonly onDecoded: (rows: number, rejects: readonly CsvReject[]) => void
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

export interface Engine {
  /** Names who carries out COPY of files; without it COPY is refused. */
  copier(copier: Copier): void
  readonly users: UserDirectory
  /** Hands lines to the writer. Calls are served in their order; a request's blocks are never mixed with another's. */
  lines(request: LineRequest): LineTicket
  /** Parses, plans and starts one statement. Rejects with an error of base/errors.ts before any row was sent. */
  execute(sql: string, options: ExecuteOptions): Promise<StatementResult>
  /** Parses and plans a statement without running it; columns are null when it has no rows. Throws like execute. */
  validate(sql: string, session: Session): Validation
  /** Divides a text into its statements; empty ones are left out. Throws SqlError. */
  parse(text: string): readonly ParsedStatement[]
  /** `oids`: PostgreSQL's types of $1, $2, ...; 0 where nobody has said. Throws like execute. */
  describe(statement: ParsedStatement, session: Session, oids: readonly number[]): Description
  begin(): RowTransaction
  relation(relation: VirtualRelation): void
  connector(connector: Connector): void
  /** Undefined when no such table exists. */
  table(name: string): TableShape | undefined
  csv(shape: CsvShape): CsvDecoding
  load(options: LoadOptions): CsvLoad
  /** Stores rows as one transaction; resolves when they are as durable as the commit mode says. */
  rows(tableId: number, rows: readonly PackedRows[]): Promise<Receipt>
  /** Notes lines that were refused elsewhere, for sys.rejects. `stored`: the lines around them were kept. */
  rejects(connectionId: number, lines: readonly LineReject[], stored: boolean): void
  tableExists(name: string): boolean
  tableNames(): string[]
  /** How far the streams of a connector are stored, durably: what was answered, and what a restart has found. */
  positions(connector: string): readonly KafkaPosition[]
  figures(): EngineFigures
  /** Writes are refused while the file system has less room. */
  refuseBelow(freeBytes: number): void
  /** Resolves when everything acknowledged is durable and all threads have ended. */
  close(): Promise<void>
}
