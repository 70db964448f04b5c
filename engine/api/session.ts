// Types of the engine's API for sessions: a client's session, the rows and changes that its open transaction has not
// committed, the snapshot that its transaction reads, and the list of users.

import type { KeyObject } from 'node:crypto'
import type { PasswordVerifier } from '../base/password.js'
import { allRights, type Rights } from '../base/rights.js'
import type { Delete, Update } from '../sql/ast/ast.js'
import { type Dialect, nativeDialect } from '../sql/dialect.js'
import type { Draft } from '../storage/schema/draft.js'
import type { TableSnapshot, TableVersion } from '../storage/schema/schema.js'
import type { DataType } from '../types/column-types.js'
import type { Value } from '../types/value.js'

/** The context of statements: rights, settings and visible data. One per connection (or per HTTP request). */
export interface Session {
  readonly user: string
  /** For logs and metrics only: behaviour depends on the dialect. */
  readonly protocol: 'http' | 'pg' | 'internal'
  /** Chosen by the gateway. */
  readonly dialect: Dialect
  /** A session of the server itself: it sees hidden tables, and its statements are neither reported nor cached. */
  readonly internal?: true
  /** Rejects changes, whatever the user's rights. */
  readonly readOnly: boolean
  /** Why, unless the server itself is read-only. */
  readonly readOnlyReason?: string
  readonly rights: Rights
  /** `SET query.trace = true` turns it on for the connection; absent: not supported. */
  readonly trace?: { on: boolean }
  /**
   * Values from SET, by name in lower case; SHOW, current_setting() and pg_settings read them, set_config() writes
   * them.
   */
  readonly settings?: Map<string, string>
  /** Implements set_config() like SET, with `local` for SET LOCAL; absent: `settings` accepts anything. */
  readonly configure?: (name: string, value: string, local: boolean) => void
  /**
   * Cancels the statement of the session with that processId, or ends the session; false: not found or not
   * permitted.
   */
  readonly signal?: (processId: number, ends: boolean) => boolean
  /** Implements pg_notify(); absent: not supported. */
  readonly notify?: (channel: string, payload: string) => void
  /**
   * Implements pg_export_snapshot(): returns the id of the transaction's snapshot; absent: there are no
   * transactions.
   */
  readonly exportSnapshot?: () => string
  /** Implements pg_listening_channels(). */
  readonly channels?: () => readonly string[]
  /** Content of pg_prepared_statements and pg_cursors. */
  readonly named?: () => NamedStatements
  /** The last number that nextval() returned in this session, for lastval(). */
  readonly numbers?: { last: bigint | null }
  /** Process id of the connection, for pg_backend_pid(). */
  readonly processId?: number
  /** Set while a statement is planned again: what the earlier attempts have begun (NotReadyError). */
  readonly planning?: object | undefined
  /** Statements are only described, not run. */
  readonly describes?: boolean
  /** Uncommitted rows that the session's statements read as if they were stored. */
  readonly transaction?: OwnRows
  /** Uncommitted changes that precede those rows, oldest first, visible to the session's statements only. */
  readonly pending?: readonly PendingChange[]
  /** Set for the statements of a refresh: they may write the view, and read it as its query over the ranges. */
  readonly refreshes?: ViewRefresh
  /** The snapshot that its queries read; absent: the current data. */
  readonly snapshot?: ReadSnapshot
}

/** Whole buckets of a materialized view that are stored again, as ranges of the designated timestamp. */
export interface ViewRefresh {
  readonly viewId: number
  readonly ranges: readonly { readonly lo: bigint; readonly hi: bigint }[]
  /** Views are read as their queries: the snapshot has only the rows of the base that are to be merged into the view. */
  readonly added?: true
  /** The ranges are sealed buckets, which cannot be computed. */
  readonly sealed?: true
  /** Of a live view: the rows of the base that its query reads for them. Absent: those of the ranges. */
  readonly inputs?: ViewRefresh['ranges']
}

/** A session for the server's own statements. */
export function internalSession(user: string): Session {
  return { user, protocol: 'internal', dialect: nativeDialect, internal: true, readOnly: false, rights: allRights }
}

/** A read snapshot of all tables, valid until it is released. */
export interface ReadSnapshot {
  /** Undefined: the table was created later. */
  snapshotOf(tableId: number): TableSnapshot | undefined
  /** Call once. */
  release(): void
}

/** Prepared statements and cursors of a session. */
export interface NamedStatements {
  /** `oids`: parameter types. */
  readonly prepared: readonly (NamedStatement & { readonly oids: readonly number[]; readonly bySql: boolean })[]
  readonly cursors: readonly (NamedStatement & {
    readonly hold: boolean
    readonly binary: boolean
    readonly scroll: boolean
  })[]
}

interface NamedStatement {
  readonly name: string
  readonly text: string
  /** When it was created. */
  readonly micros: number
}

/** A change that has not been applied. */
export interface PendingChange {
  /** Its SQL and parameters. */
  readonly sql: string
  readonly parameters: readonly { readonly value: Value; readonly type: DataType }[]
  /** Null: only rows, or a schema change. */
  readonly statement: Update | Delete | null
  /** For a schema change: the draft after all changes so far. */
  readonly draft?: Draft
  /** For a schema change: ids of the tables that it has truncated. */
  readonly emptied?: ReadonlySet<number>
  /** Rows of the transaction that precede it and that it affects; null: none. */
  readonly rows: OwnRows | null
}

/** Uncommitted rows that only the session itself sees. */
export interface OwnRows {
  readonly rows: number
  /** Rows of one table, in order, with values by column. Throws ResourceError when there are too many. */
  own(version: TableVersion): readonly (readonly Value[])[]
}

/** A user created by SQL who may log in. */
export interface StoredUser {
  readonly user: string
  readonly rights: Rights
  /** Null: the user has no password. */
  readonly verifier: PasswordVerifier | null
}

/** Directory of users created by SQL; lookups are synchronous. */
export interface UserDirectory {
  /** Incremented by every change: cached user data of an older epoch is stale. */
  readonly epoch: number
  user(name: string): StoredUser | undefined
  /** The owner of a bearer token, if it is still valid. */
  byToken(token: string): StoredUser | undefined
  /** The owner of a line-protocol key, and the key that verifies signatures. */
  byLineKey(keyId: string): { readonly user: StoredUser; readonly key: KeyObject } | undefined
  /** Called after every change, since connected users may have lost rights. */
  onChange(listener: () => void): void
}
