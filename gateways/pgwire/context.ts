// Types of a PostgreSQL session: the gateway's options and services, prepared statements, portals and session
// state.

import type { Clock } from '../../engine/base/clock.js'
import type { Log } from '../../engine/base/log.js'
import type {
  BindShape,
  BoundParameters,
  Description,
  Engine,
  ParsedStatement,
  PendingChange,
  ReadSnapshot,
  ResultColumn,
  RowTransaction,
  Session,
  TransactionMark,
} from '../../engine/engine.js'
import type { Authenticator } from '../common/auth.js'
import type { Connection, ConnectionRegistry } from '../common/connections.js'
import type { GatewayCounters } from '../common/metric.js'
import type { TlsKeys } from '../common/tls.js'
import type { BindMemory } from './protocol/bound-parameters.js'
import type { Inbound } from './protocol/inbound.js'
import type { TransactionStatus } from './protocol/messages.js'
import type { Outbound } from './protocol/outbound.js'
import type { Channels, Inbox, PendingRequest } from './transaction/channels.js'
import type { RowCursor, Rows } from './transaction/row-cursor.js'

type PgAuthentication = 'cleartext' | 'md5' | 'scram-sha-256'

export interface PgOptions {
  readonly connectionsMax: number
  /** 0 or less: no limit. */
  readonly connectionsPerAddressMax: number
  /** Rejects all changes. */
  readonly readOnly: boolean
  readonly authentication: PgAuthentication
  /** The PostgreSQL version reported to clients. */
  readonly serverVersion: string
  /** Rejects clients that do not use TLS. */
  readonly tlsRequired: boolean
  /** Deadline of statements whose session sets none; 0: no deadline. */
  readonly queryTimeoutMs: number
  readonly logQueries: boolean
  /** CREATE TABLE without a designated timestamp uses the first NOT NULL TIMESTAMP column. */
  readonly firstTimestamp: boolean
}

export interface PgServices {
  readonly engine: Engine
  readonly authenticator: Authenticator
  /** Null: no TLS. */
  readonly tls: TlsKeys | null
  readonly registry: ConnectionRegistry
  readonly counters: GatewayCounters
  readonly clock: Clock
  readonly log: Log
}

/** Settings as they were when the transaction began. */
interface BlockSettings {
  readonly before: ReadonlyMap<string, string>
  /** Previous values of settings changed by SET LOCAL; undefined: unset. */
  readonly local: Map<string, string | undefined>
}

/** Options for running one statement. */
export interface RunOptions {
  readonly bound: BoundParameters
  /** Types of the parameters. */
  readonly types: Description['parameters']
  /** Binary flags of the result columns, as in PgEncoding. */
  readonly binary: readonly boolean[]
  /** The columns as described to the client; planning again must yield the same ones. */
  readonly columns: readonly ResultColumn[] | null
  /**
   * The client fetches rows in portions: the statement deadline applies to each portion, and no time counts in
   * between.
   */
  readonly inParts?: boolean
}

/** A cursor created by DECLARE. */
export interface SqlCursor {
  readonly name: string
  readonly query: ParsedStatement
  readonly bound: BoundParameters
  readonly types: Description['parameters']
  /** When it was declared. */
  readonly micros: number
  readonly scroll: boolean
  readonly hold: boolean
  /** Default of FETCH: binary values. */
  readonly binary: boolean
  /** Declared in the open transaction, so ROLLBACK removes it. */
  isNew: boolean
  rows: RowCursor | null
  /** Number of those rows already read. */
  passed: number
  /** Current row, counted from 1; 0: before the first row. */
  at: number
  /** The cursor is after the last row, whose number is `at`. */
  ended: boolean
}

export interface Savepoint {
  readonly name: string
  readonly mark: TransactionMark
  /** Number of pending changes and of pending notifications at the savepoint. */
  readonly held: number
  readonly noted: number
  /** Cursors declared before the savepoint. */
  readonly cursors: ReadonlySet<SqlCursor>
}

/** What the messages of a batch are answered with, and for which batches. */
export interface BatchResponses {
  readonly tag: string
  readonly described: boolean
  /** Whether the response to Sync is included. */
  readonly ready: boolean
  /** The response to one message, and to many of them. */
  readonly one: Buffer
  readonly many: Buffer
}

/** A prepared statement, created by Parse or PREPARE. */
export interface Prepared {
  readonly name: string
  /** Null: an empty statement. */
  readonly statement: ParsedStatement | null
  /** The statement as sent and when; `bySql`: created by PREPARE. */
  readonly text: string
  readonly micros: number
  readonly bySql: boolean
  /** Parameter types that the client specified; 0: unspecified. */
  readonly oids: readonly number[]
  /** Computed on demand. */
  description: Description | null
  readonly memory: BindMemory
  /** For an INSERT that has been bound before: the form of a Bind that can join a batch. */
  shape: BindShape | null
  /** Those of its last batch; null: there was none. */
  responses: BatchResponses | null
  isRepeated: boolean
}

/** Consecutive Syncs with the same response that have not been answered. */
interface PendingSyncs {
  readonly fill: (message: Uint8Array) => void
  readonly count: number
  /** Messages sent before each ReadyForQuery. */
  readonly head: Uint8Array
}

/** A portal, created by Bind. */
export interface Portal {
  readonly name: string
  readonly prepared: Prepared
  bound: BoundParameters
  /** Types of the parameters. */
  types: Description['parameters']
  /** Binary flags of the result columns, as in PgEncoding. */
  binary: readonly boolean[]
  /** The running result; null before the first Execute. */
  cursor: Rows | null
  /** Command tag of the completed statement; a further Execute reports that the portal is done. */
  done: string | null
}

/** A change deferred until COMMIT (deferred-changes.ts). */
export interface DeferredChange {
  /** Rows that must be stored before the change runs; null: it does not depend on pending rows. */
  rows: RowTransaction | null
  /** Tables that it changes or whose rows it needs, in lower case. */
  readonly tables: ReadonlySet<string>
  /** Every name that occurs in the statement. */
  readonly names: ReadonlySet<string>
  /** A large UPDATE or DELETE that runs after the transaction's schema changes instead of together with them. */
  readonly deferred: boolean
  /** The change as the transaction's own statements see it. */
  readonly change: Omit<PendingChange, 'rows'>
  /** Throws the errors that can be detected before it runs. */
  readonly check: () => Promise<void> | void
  readonly run: () => Promise<unknown>
}

/** State of one client's session. */
export interface PgSession extends PgServices {
  readonly options: PgOptions
  readonly connection: Connection
  readonly inbound: Inbound
  readonly out: Outbound
  session: Session
  /** Values from SET, by setting name in lower case. */
  readonly settings: Map<string, string>
  /** Values from the startup message, which RESET restores. */
  readonly started: Map<string, string>
  readonly statements: Map<string, Prepared>
  /** Text of the statement being parsed, described or run; error positions refer to it. */
  text: string
  /** The statement of the last Bind. */
  lastBound: Prepared | null
  readonly portals: Map<string, Portal>
  /** Cursors created by DECLARE. */
  readonly cursors: Map<string, SqlCursor>
  status: TransactionStatus
  /**
   * Rows pending until COMMIT or, outside of a transaction, until Sync or the next statement that is not an INSERT.
   */
  transaction: RowTransaction
  /** Changes that COMMIT runs before it stores these rows, oldest first. */
  readonly held: DeferredChange[]
  /** Savepoints of the transaction, oldest first. */
  savepoints: Savepoint[]
  /** Position in the pending rows at the last unanswered Sync; null: there is none. */
  synced: TransactionMark | null
  readonly pendingSyncs: PendingSyncs[]
  readonly channels: Channels
  /** LISTEN and NOTIFY pending until the end of the transaction. */
  readonly noted: Map<string, PendingRequest>
  /** Notifications received and not yet sent to the client. */
  readonly inbox: Inbox
  /** Null: no transaction is open. */
  block: BlockSettings | null
  /** Snapshots exported by pg_export_snapshot() in any session, by id. */
  readonly snapshots: Map<string, ReadSnapshot>
  /** Ids of the snapshots that this session exported. */
  readonly exported: string[]
  /**
   * A multi-statement query is running; it is one implicit transaction unless one of its statements begins or ends
   * one.
   */
  isWithinText: boolean
  /** Some rows of the transaction are already stored. */
  isSplit: boolean
  /** The rows after the savepoints were too many to be rolled back separately. */
  lostSavepoints: boolean
  /** A statement of the transaction has taken effect at once. */
  tookEffect: boolean
  /**
   * The client waits for unsent responses: to Sync, to a simple query, or an error. Other responses wait for Flush
   * or Sync.
   */
  isAwaited: boolean
  /** No message of the extended protocol has arrived since the last Sync. */
  isIdle: boolean
  /** After an error of the extended protocol: skips all messages up to Sync. */
  skipping: boolean
  /** The running statement, which a cancel request or a disconnect aborts. */
  running: { abort(reason?: string): void } | null
}
