// What the parts of a session share: what it was opened with, and its state.

import type { Clock } from '../../engine/base/clock.js'
import type { Log } from '../../engine/base/log.js'
import type {
  BindShape,
  BoundParameters,
  Description,
  Engine,
  ParsedStatement,
  PendingChange,
  ReadMoment,
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
import type { Channels, Inbox, Noted } from './transaction/channels.js'
import type { RowCursor, Rows } from './transaction/row-cursor.js'

type PgAuthentication = 'cleartext' | 'md5' | 'scram-sha-256'

export interface PgOptions {
  readonly connectionsMax: number
  /** 0 and less: no limit. */
  readonly connectionsPerAddressMax: number
  /** Nobody may change anything. */
  readonly readOnly: boolean
  readonly authentication: PgAuthentication
  /** Of PostgreSQL, as clients are told. */
  readonly serverVersion: string
  /** Clients that do not encrypt are sent away. */
  readonly tlsRequired: boolean
  /** Deadline of statements whose session sets none; 0 = none. */
  readonly queryTimeoutMs: number
  readonly logQueries: boolean
  /** CREATE TABLE without a designated timestamp takes the first NOT NULL TIMESTAMP column. */
  readonly firstTimestamp: boolean
}

export interface PgServices {
  readonly engine: Engine
  readonly authenticator: Authenticator
  /** Null: nothing is encrypted. */
  readonly tls: TlsKeys | null
  readonly registry: ConnectionRegistry
  readonly counters: GatewayCounters
  readonly clock: Clock
  readonly log: Log
}

/** Settings as they were when a transaction began. */
interface BlockSettings {
  readonly before: ReadonlyMap<string, string>
  /** Set for the transaction alone: as they were; undefined: not at all. */
  readonly local: Map<string, string | undefined>
}

/** How a statement is run. */
export interface RunOptions {
  readonly bound: BoundParameters
  /** Of the parameters. */
  readonly types: Description['parameters']
  /** As PgEncoding has it. */
  readonly binary: readonly boolean[]
  /** Of the columns, when the statement has been described: planning it again must give the same. */
  readonly columns: readonly ResultColumn[] | null
  /** The client takes rows a part at a time: each part has the time of a statement, and none passes in between. */
  readonly inParts?: boolean
}

/** What DECLARE leaves behind. */
export interface SqlCursor {
  readonly name: string
  readonly query: ParsedStatement
  readonly bound: BoundParameters
  readonly types: Description['parameters']
  /** When it was declared. */
  readonly micros: number
  readonly scroll: boolean
  readonly hold: boolean
  /** Values are binary where FETCH does not say. */
  readonly binary: boolean
  /** Its transaction is open: ROLLBACK takes it back. */
  isNew: boolean
  rows: RowCursor | null
  /** Of those rows. */
  passed: number
  /** The row on which it stands, counted from 1; 0: before the first one. */
  at: number
  /** It stands behind the last row, which is `at`. */
  ended: boolean
}

export interface Savepoint {
  readonly name: string
  readonly mark: TransactionMark
  /** So many changes waited, and so many notifications. */
  readonly held: number
  readonly noted: number
  /** Those that were declared before it. */
  readonly cursors: ReadonlySet<SqlCursor>
}

/** What Parse leaves behind. */
export interface Prepared {
  readonly name: string
  /** Null: an empty statement. */
  readonly statement: ParsedStatement | null
  /** As it was sent, and when; `bySql`: by PREPARE. */
  readonly text: string
  readonly micros: number
  readonly bySql: boolean
  /** As the client said, 0 for what it did not say. */
  readonly oids: readonly number[]
  /** Made when it is asked for. */
  description: Description | null
  readonly memory: BindMemory
  /** Of an INSERT that has been bound before: what a Bind that can be taken in a run looks like. */
  shape: BindShape | null
  isRepeated: boolean
}

/** Syncs of one kind that have not been answered. */
interface UnansweredSyncs {
  readonly fill: (message: Uint8Array) => void
  readonly count: number
  /** What is answered before each one. */
  readonly head: Uint8Array
}

/** What Bind leaves behind. */
export interface Portal {
  readonly name: string
  readonly prepared: Prepared
  bound: BoundParameters
  /** Of the parameters. */
  types: Description['parameters']
  /** As PgEncoding has it. */
  binary: readonly boolean[]
  /** Rows under way; null before the first Execute. */
  cursor: Rows | null
  /** The tag that ended it; a further Execute is told that it is over. */
  done: string | null
}

/** A change that waits for COMMIT: held-changes.ts. */
export interface HeldChange {
  /** Rows that it is to find stored; null: none that wait are its business. */
  rows: RowTransaction | null
  /** What it changes, and what its rows are of, in lower case. */
  readonly tables: ReadonlySet<string>
  /** Every name within it. */
  readonly names: ReadonlySet<string>
  /** An UPDATE or DELETE of so many rows that it is carried out behind changes of schemas, not with them. */
  readonly late: boolean
  /** As the transaction's own statements see it. */
  readonly change: Omit<PendingChange, 'rows'>
  /** Throws what can be told of it before it runs. */
  readonly check: () => void
  readonly run: () => Promise<unknown>
}

/** One client. */
export interface PgSession extends PgServices {
  readonly options: PgOptions
  readonly connection: Connection
  readonly inbound: Inbound
  readonly out: Outbound
  session: Session
  /** What SET has set, by its name in lower case. */
  readonly settings: Map<string, string>
  /** What the start-up message has set: RESET goes back to it. */
  readonly started: Map<string, string>
  readonly statements: Map<string, Prepared>
  /** Of the statement that is parsed, described or carried out: positions of errors are places in it. */
  text: string
  /** What the last Bind named. */
  lastBound: Prepared | null
  readonly portals: Map<string, Portal>
  /** Of DECLARE. */
  readonly cursors: Map<string, SqlCursor>
  status: TransactionStatus
  /** Rows that wait for COMMIT, or outside of a transaction for the next statement that is no INSERT, or Sync. */
  transaction: RowTransaction
  /** What COMMIT carries out before it stores these rows, oldest first. */
  readonly held: HeldChange[]
  /** Of the transaction, oldest first; `held`: changes that waited, `noted`: notifications. */
  savepoints: Savepoint[]
  /** Behind the rows of the last Sync that has not been answered; null: there is none. */
  synced: TransactionMark | null
  readonly unanswered: UnansweredSyncs[]
  readonly channels: Channels
  /** LISTEN and NOTIFY that wait for the end of the transaction. */
  readonly noted: Map<string, Noted>
  /** Notifications that have come. */
  readonly inbox: Inbox
  /** Null: no transaction is open. */
  block: BlockSettings | null
  /** Of all sessions, by their ids: what pg_export_snapshot() has given. */
  readonly moments: Map<string, ReadMoment>
  /** Ids of those that are this session's. */
  readonly exported: string[]
  /** A text of several statements is carried out, which are one transaction where none of them begins or ends one. */
  isWithinText: boolean
  /** Rows of the transaction are stored already. */
  isSplit: boolean
  /** Rows behind savepoints were too many to be taken back alone. */
  lostSavepoints: boolean
  /** A statement of the transaction has taken effect at once. */
  tookEffect: boolean
  /** Answers wait to be sent that the client waits for: to Sync or a text, or an error. The rest waits for Flush or Sync. */
  isAwaited: boolean
  /** No message of the extended protocol has come since the last Sync. */
  isResting: boolean
  /** After an error of the extended protocol: everything up to Sync is passed over. */
  skipping: boolean
  /** Of the statement that runs: a cancel request or the end of the connection aborts it. */
  running: { abort(reason?: string): void } | null
}
