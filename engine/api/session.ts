// Who runs statements, and the users there are.

import type { KeyObject } from 'node:crypto'
import type { PasswordVerifier } from '../base/password.js'
import type { Rights } from '../base/rights.js'
import type { Delete, Update } from '../sql/ast/ast.js'
import type { Draft } from '../storage/schema/draft.js'
import type { TableSnapshot, TableVersion } from '../storage/schema/schema.js'
import type { DataType } from '../types/column-types.js'
import type { Value } from '../types/value.js'

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
  /** set_config(): as SET does it, `local` for the transaction alone; absent: `settings` takes anything. */
  readonly configure?: (name: string, value: string, local: boolean) => void
  /** Cancels the statement of a session by its processId, or ends it; false: there is none, or it is not to be told. */
  readonly signal?: (processId: number, ends: boolean) => boolean
  /** pg_notify(); absent: nobody can be told. */
  readonly notify?: (channel: string, payload: string) => void
  /** pg_export_snapshot(): the id of the moment that the transaction reads; absent: there are no transactions. */
  readonly exportMoment?: () => string
  /** pg_listening_channels(). */
  readonly channels?: () => readonly string[]
  /** pg_prepared_statements and pg_cursors. */
  readonly named?: () => NamedStatements
  /** The last number that nextval() gave it: lastval(). */
  readonly numbers?: { last: bigint | null }
  /** Of the connection, for pg_backend_pid(). */
  readonly processId?: number
  /** Statements are looked at, and not carried out. */
  readonly describes?: boolean
  /** Its rows are read by the session's statements as if they were stored. */
  readonly transaction?: OwnRows
  /** Changes of its transaction that lie below those rows, oldest first: its statements see them, nobody else does. */
  readonly pending?: readonly PendingChange[]
  /** Its queries see tables as they were then; absent: as they are. */
  readonly moment?: ReadMoment
}

/** All tables as they were at one moment, for as long as it is held. */
export interface ReadMoment {
  /** Undefined: a table that was made later. */
  snapshotOf(tableId: number): TableSnapshot | undefined
  /** To be called once. */
  release(): void
}

/** What a session has prepared and declared. */
export interface NamedStatements {
  /** `oids`: of the parameters. */
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
  /** When it came. */
  readonly micros: number
}

/** A change that has not been carried out. */
export interface PendingChange {
  /** Its text and its parameters. */
  readonly sql: string
  readonly parameters: readonly { readonly value: Value; readonly type: DataType }[]
  /** Null: there are its rows alone, or a change of schemas. */
  readonly statement: Update | Delete | null
  /** Of a change of schemas: what all of them have made so far. */
  readonly draft?: Draft
  /** Of these: ids of tables that it has emptied. */
  readonly emptied?: ReadonlySet<number>
  /** Rows of the transaction that it finds there; null: none of them are its business. */
  readonly rows: OwnRows | null
}

/** Rows that a session has sent and nobody else sees. */
export interface OwnRows {
  readonly rows: number
  /** Of one table, in their order; values by column. Throws ResourceError when there are too many. */
  own(version: TableVersion): readonly (readonly Value[])[]
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
