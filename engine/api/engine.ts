// What the engine offers to those who hold it, and what they may ask to be told.

import type { CsvShape } from '../csv/shape.js'
import type { budgets } from '../memory/budgets.js'
import type { Figure, HistogramFigures } from '../memory/figures.js'
import type { BinaryRows } from '../pg/binary-rows.js'
import type { BindShape } from '../pg/bind-rows.js'
import type { BoundParameters } from '../pg/collect-insert.js'
import type { Mark } from '../pg/row-collector.js'
import type { BindRun } from '../pg/row-window.js'
import type { CacheCounts } from '../storage/cache/chunk-slots.js'
import type { LineReject, PackedRows, Receipt } from '../storage/jobs/messages.js'
import type { Draft } from '../storage/schema/draft.js'
import type { KafkaOrigin as KafkaPosition } from '../wal/origin.js'
import type { CsvDecoding, CsvLoad, LineRequest, LineTicket, LoadOptions, TableShape } from './ingest.js'
import type { OwnRows, ReadMoment, Session, UserDirectory } from './session.js'
import type {
  ChangePreview,
  CheckedStatement,
  Copier,
  Description,
  ExecuteOptions,
  ParsedStatement,
  StatementResult,
  VirtualRelation,
} from './statements.js'

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
  /** Why writes are refused now; null when they are not. */
  readonly writesRefused: string | null
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

/** Something that brings rows by itself: `ALTER CONNECTOR <name> PAUSE` and `RESUME` reach it. */
export interface Connector {
  readonly name: string
  pause(): Promise<void>
  resume(): Promise<void>
}

export interface TransactionMark extends Mark {
  readonly loads: number
}

/** A statement that changes schemas, within a transaction: nothing of it is stored. */
export interface DraftedStatement {
  readonly tag: string
  /** The catalog of the transaction behind it. */
  readonly draft: Draft
  /** Ids of the tables that it has emptied or dropped. */
  readonly emptied: ReadonlySet<number>
  /** It changes rows of a table that has too many for a transaction. */
  readonly large: boolean
  /** As of a statement that is carried out at once. */
  readonly notes: readonly string[]
  /** Gathers the rows of CREATE TABLE AS, answers how many; null: there are none. */
  readonly fill: ((into: NonNullable<ExecuteOptions['into']>) => Promise<number>) | null
}

/** Rows that are gathered until they are stored as one transaction, over any number of tables. */
export interface RowTransaction extends OwnRows {
  /** About what the rows take. */
  readonly bytes: number
  /** Tables that they are of, in lower case; those of rows that were adopted are not among them. */
  readonly tables: readonly string[]
  /** Rows to come are of tables as the transaction has drafted them. */
  see(draft: Draft | null): void
  /** Takes the rows of a later one, which adopted none. */
  join(later: RowTransaction): void
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
  insertText(bytes: Buffer, start: number, end: number, session: Session): number | Promise<number>
  /** Messages of a prepared INSERT whose parameters are its values, from `start` on: engine/pg/bind-rows.ts. */
  binds(
    parsed: ParsedStatement,
    session: Session,
    bytes: Buffer,
    start: number,
    shape: BindShape,
    syncs: boolean,
  ): BindRun
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

export interface Engine {
  /** Names who carries out COPY of files; without it COPY is refused. */
  copier(copier: Copier): void
  readonly users: UserDirectory
  /** Hands lines to the writer. Calls are served in their order; a request's blocks are never mixed with another's. */
  lines(request: LineRequest): LineTicket
  /** Parses, plans and starts one statement. Rejects with an error of base/errors.ts before any row was sent. */
  execute(sql: string, options: ExecuteOptions): Promise<StatementResult>
  /** What an UPDATE or DELETE of one table would change now; its session's transaction included. Throws like execute. */
  preview(statement: ParsedStatement, options: ExecuteOptions): Promise<ChangePreview>
  /** Parses and plans a statement without running it; columns are null when it has no rows. Throws like execute. */
  validate(sql: string, session: Session): CheckedStatement
  /** Divides a text into its statements; empty ones are left out. Throws SqlError. */
  parse(text: string): readonly ParsedStatement[]
  /** `oids`: PostgreSQL's types of $1, $2, ...; 0 where nobody has said. Throws like execute. */
  describe(statement: ParsedStatement, session: Session, oids: readonly number[]): Description
  begin(): RowTransaction
  /** Plans a statement that changes schemas into the draft of its session's transaction. Throws like execute. */
  draft(statement: ParsedStatement, options: ExecuteOptions): Promise<DraftedStatement>
  /** A table has so many rows that a transaction which changes schemas cannot change them. */
  isLarge(name: string, session: Session): boolean
  /** Stores the draft of the session's transaction with all of its rows and changes, or nothing; answers how many rows. */
  commitDraft(options: ExecuteOptions): Promise<number>
  /** The tables as they are now, for a session to read them so later; with `moment`, as they were then, held once more. */
  holdMoment(moment?: ReadMoment): ReadMoment
  relation(relation: VirtualRelation): void
  connector(connector: Connector): void
  /** Undefined when no such table exists, for the session's transaction if there is a session. */
  table(name: string, session?: Session): TableShape | undefined
  csv(shape: CsvShape): CsvDecoding
  load(options: LoadOptions): CsvLoad
  /** Stores rows as one transaction; resolves when they are as durable as the commit mode says. */
  rows(tableId: number, rows: readonly PackedRows[]): Promise<Receipt>
  /** Notes lines that were refused elsewhere, for sys.rejects. `stored`: the lines around them were kept. */
  rejects(connectionId: number, lines: readonly LineReject[], stored: boolean): void
  /** Views and sequences as well. */
  tableExists(name: string, session?: Session): boolean
  tableNames(): string[]
  /** How far the streams of a connector are stored, durably: what was answered, and what a restart has found. */
  positions(connector: string): readonly KafkaPosition[]
  figures(): EngineFigures
  /** From now on the chunk cache acts as if it were full, so that pages are read past it; or not any more. */
  actFullCache(isOn: boolean): void
  /** Writes are refused while the file system has less room. */
  refuseBelow(freeBytes: number): void
  /** Resolves when everything acknowledged is durable and all threads have ended. */
  close(): Promise<void>
}
