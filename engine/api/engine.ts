// Types of the engine's API: the interface Engine, which the other layers call, its observer and metrics, connectors,
// backups, and the schema changes and inserted rows of a transaction.

import type { CsvShape } from '../csv/shape.js'
import type { budgets } from '../memory/budgets.js'
import type { Histogram, MetricName } from '../memory/metrics.js'
import type { BinaryRows } from '../pg/binary-rows.js'
import type { BindShape } from '../pg/bind-rows.js'
import type { BoundParameters } from '../pg/collect-insert.js'
import type { Mark } from '../pg/row-collector.js'
import type { BindRun } from '../pg/row-window.js'
import type { CacheCounts } from '../storage/cache/chunk-slots.js'
import type { LineReject, PackedRows, Receipt } from '../storage/jobs/messages.js'
import type { Draft } from '../storage/schema/draft.js'
import type { KafkaPosition } from '../wal/source-position.js'
import type { CsvDecoding, CsvLoad, LineRequest, LineTicket, LoadOptions, TableShape } from './ingest.js'
import type { LakeCatalog } from './lake.js'
import type { OwnRows, ReadSnapshot, Session, UserDirectory } from './session.js'
import type {
  BackupService,
  ChangePreview,
  CheckedStatement,
  Copier,
  Description,
  ExecuteOptions,
  ParsedStatement,
  StatementResult,
  VirtualRelation,
} from './statements.js'

/** Callbacks for events; called on the main thread, must neither throw nor block. */
export interface EngineObserver {
  /** `session`: the one whose statement created it; null: line protocol did. Not called for internal sessions. */
  tableCreated(name: string, session: Session | null): void
  /** A statement, which may hold a secret, has ended, successfully or not; not called for internal sessions. */
  statementEnded(session: Session, sql: string, micros: number): void
}

/** Statistics of the engine; counts since the start. */
export interface EngineMetrics {
  readonly counts: Readonly<Record<MetricName, number>>
  /** Why writes are rejected now; null when they are not. */
  readonly writesRefused: string | null
  readonly commitSeconds: Histogram
  /** Bytes by budget. */
  readonly memory: Readonly<Record<keyof typeof budgets, { readonly used: number; readonly limit: number }>>
  readonly allocations: number
  readonly frees: number
  readonly cache: CacheCounts
  readonly tables: number
  /** Running queries. */
  readonly queries: number
  /** Table snapshots held by statements. */
  readonly readers: number
  /** Snapshots that were garbage-collected without being released. */
  readonly readerLeaks: number
}

/** A background source of rows, controlled by `ALTER CONNECTOR <name> PAUSE` and `RESUME`. */
export interface Connector {
  readonly name: string
  pause(): Promise<void>
  resume(): Promise<void>
}

export interface TransactionMark extends Mark {
  readonly loads: number
}

/** A schema change within a transaction; nothing of it is stored yet. */
export interface DraftedStatement {
  readonly tag: string
  /** The transaction's catalog after the statement. */
  readonly draft: Draft
  /** Ids of the tables that it truncates or drops. */
  readonly emptied: ReadonlySet<number>
  /** It changes rows of a table that is too large for the transaction. */
  readonly large: boolean
  /** Notices, as for a statement that runs at once. */
  readonly notes: readonly string[]
  /** Collects the rows of CREATE TABLE AS and returns how many; null: there are none. */
  readonly fill: ((into: NonNullable<ExecuteOptions['into']>) => Promise<number>) | null
}

/** Collects rows that are then stored as one transaction, over any number of tables. */
export interface RowTransaction extends OwnRows {
  /** Approximate size of the rows. */
  readonly bytes: number
  /** Tables of the rows, in lower case, except those of loads. */
  readonly tables: readonly string[]
  /** Further rows belong to tables as the transaction's draft defines them. */
  see(draft: Draft | null): void
  /** Takes over the rows of a later transaction, which must not include loads. */
  join(later: RowTransaction): void
  /** Adds the rows of INSERT .. VALUES, all or none; returns how many. Throws like execute. */
  insert(
    parsed: ParsedStatement,
    session: Session,
    bound: BoundParameters | null,
    types: Description['parameters'],
  ): number
  /**
   * Adds the rows of an INSERT of literals in bytes [start, end) without building a syntax tree; returns how many.
   * Returns -1 and does nothing when the statement needs the parser.
   */
  insertText(bytes: Buffer, start: number, end: number, session: Session): number | Promise<number>
  /** Adds the rows of Bind messages of a prepared INSERT, from `start` on (engine/pg/bind-rows.ts). */
  binds(
    parsed: ParsedStatement,
    session: Session,
    bytes: Buffer,
    start: number,
    shape: BindShape,
    syncs: boolean,
  ): BindRun
  /** Adds rows in columnar form; the caller has checked the right to write. */
  add(tableId: number, rows: PackedRows, bytes: number): void
  /**
   * Adds the rows of a load that has ended but is not committed: `commit` commits it together with all other rows,
   * discarding the rows closes it. These rows cannot be read before that.
   */
  register(load: CsvLoad, rows: number): void
  /** Number of rows of loads. */
  readonly registered: number
  /** Adds rows in the binary format of COPY; the caller has checked the right to write. */
  binaryRows(
    tableId: number,
    columns: TableShape['columns'],
    timestamp: string | null,
  ): Pick<BinaryRows, 'push' | 'end'>
  /**
   * Whether no table of the rows in memory requires them to stay there until commit. If one does, the transaction must
   * not get loads, as commit cannot store both together.
   */
  readonly spillable: boolean
  /**
   * Writes the rows from memory to parts that stay invisible until commit; earlier marks become invalid. Returns
   * false and does nothing when a table does not allow it.
   */
  spill(): Promise<boolean>
  mark(): TransactionMark
  /** Discards the rows after the mark. */
  backTo(mark: TransactionMark): void
  clear(): void
  /**
   * Stores the collected rows; null when there are none. The transaction is empty afterwards, even after a failure.
   */
  commit(): Promise<Receipt | null>
}

export interface Backups {
  /** Registers the implementation of BACKUP; without it the statement is rejected. */
  register(service: BackupService): void
  /**
   * Keeps the files of the current version of all tables as they are, until the returned function is called. CHECKPOINT
   * CREATE and RELEASE are refused meanwhile. Rejects with ResourceError while a checkpoint is kept.
   */
  pin(): Promise<() => Promise<void>>
}

export interface Engine {
  readonly backups: Backups
  /** Registers the implementation of COPY with files; without it such a COPY is rejected. */
  copier(copier: Copier): void
  readonly users: UserDirectory
  /** Tables that are Iceberg tables in the object store. */
  readonly lake: LakeCatalog
  /** Sends lines to the writer. Calls are served in order; blocks of different requests are never interleaved. */
  lines(request: LineRequest): LineTicket
  /** A connection of QWP is closed, and the receipts of all its requests are here. */
  forgetConnection(connectionId: number): void
  /** Parses, plans and starts one statement. Rejects with an error of base/errors.ts before any row is returned. */
  execute(sql: string, options: ExecuteOptions): Promise<StatementResult>
  /** Like execute, but a result that is there at once needs no promise. May also throw at once. */
  run(sql: string, options: ExecuteOptions): StatementResult | Promise<StatementResult>
  /**
   * Returns what an UPDATE or DELETE of one table would change now, including its session's transaction. Throws
   * like execute.
   */
  preview(statement: ParsedStatement, options: ExecuteOptions): Promise<ChangePreview>
  /**
   * Parses and plans a statement without running it; columns are null when it returns no rows. Throws like execute.
   */
  validate(sql: string, session: Session): CheckedStatement
  /** Splits a string into its statements; empty ones are omitted. Throws SqlError. */
  parse(text: string): readonly ParsedStatement[]
  /** `oids`: PostgreSQL type OIDs of $1, $2, ...; 0: unspecified. Throws like execute. */
  describe(statement: ParsedStatement, session: Session, oids: readonly number[]): Description
  begin(): RowTransaction
  /** Applies a schema change to the draft of its session's transaction. Throws like execute. */
  draft(statement: ParsedStatement, options: ExecuteOptions): Promise<DraftedStatement>
  /** Whether a table is too large to be changed by a transaction that changes schemas. */
  isLarge(name: string, session: Session): boolean
  /**
   * Stores the draft of the session's transaction with all rows and changes, or nothing; returns the number of
   * rows.
   */
  commitDraft(options: ExecuteOptions): Promise<number>
  /** Takes a read snapshot of all tables; with `snapshot`, holds that snapshot once more. */
  holdSnapshot(snapshot?: ReadSnapshot): ReadSnapshot
  relation(relation: VirtualRelation): void
  connector(connector: Connector): void
  /** Undefined when no such table exists, as seen by the session's transaction if there is one. */
  table(name: string, session?: Session): TableShape | undefined
  csv(shape: CsvShape): CsvDecoding
  load(options: LoadOptions): CsvLoad
  /** Stores rows as one transaction; resolves when they are as durable as the commit mode requires. */
  rows(tableId: number, rows: readonly PackedRows[]): Promise<Receipt>
  /** Reports lines that were rejected elsewhere to sys.rejects. `stored`: the lines around them were stored. */
  rejects(connectionId: number, lines: readonly LineReject[], stored: boolean): void
  /** Includes views and sequences. */
  tableExists(name: string, session?: Session): boolean
  tableNames(): string[]
  /** Durable positions of a connector's streams, including those recovered after a restart. */
  positions(connector: string): readonly KafkaPosition[]
  metrics(): EngineMetrics
  /** Rejects writes while the file system has less free space. */
  refuseBelow(freeBytes: number): void
  /** Resolves when everything acknowledged is durable and all threads have ended. */
  close(): Promise<void>
}
