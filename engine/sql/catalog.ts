// The catalog interface of the SQL front end: tables, views, sequences, enumerations, users, running queries and
// statistics, as plain data and look-up functions. The engine passes a catalog to each statement. Look-ups of names
// ignore case. Statistics describe the newest published version of each table.

import type { VirtualRelation } from '../api/statements.js'
import type { Rights } from '../base/rights.js'
import type { StorageWork } from '../memory/storage-work.js'
import type { RowTransaction } from '../memory/transactions.js'
import type { Enumeration, StoredSequence, TableVersion } from '../storage/schema/schema.js'
import type { DataType } from '../types/column-types.js'
import type { Value } from '../types/value.js'
import type { ParameterSlot } from './plan/plan.js'
import type { Counters } from './relations/counters.js'

/** Statistics of one partition of a table, unflushed rows included. */
export interface PartitionStatistics {
  /** `2024-03-14`, `2024-W11`, ..., or `default` for a table with PARTITION BY NONE. */
  readonly name: string
  readonly rows: number
  readonly bytes: number
  /** Bounds of the designated timestamp, in the table's unit; null without rows or without such a column. */
  readonly minTs: bigint | null
  readonly maxTs: bigint | null
}

export interface SchemaChange {
  /** Number of row transactions that precede the change. */
  readonly afterTxn: number
  /** Wall clock, microseconds since the epoch. */
  readonly micros: number
}

/** Statistics of a table that are not part of its version. */
export interface TableStatistics {
  readonly rows: number
  /** In the table's unit; null without rows or without a designated timestamp. */
  readonly minTs: bigint | null
  readonly maxTs: bigint | null
  readonly lastWriteMicros: number | null
  /** Number of the last row transaction that queries see. */
  readonly visibleTxn: number
  /** The schema changes that the engine still remembers, oldest first. */
  readonly schemaChanges: readonly SchemaChange[]
  /** UPDATE, DELETE, TRUNCATE and DROP PARTITION statements since the start. */
  readonly rewrites: number
  /** Rows replaced by deduplication since the start, as far as flushes and compactions have found them. */
  readonly repeats: number
  /** The last flushes and compactions, oldest first. */
  readonly storageWork: readonly StorageWork[]
  /** Partitions in time order. */
  readonly partitions: readonly PartitionStatistics[]
  /** Number of dictionary entries of each SYMBOL column, by column id. */
  readonly symbolCounts: ReadonlyMap<number, number>
  /** Ids of the SYMBOL columns that contain NULL. */
  readonly nullSymbols: ReadonlySet<number>
  /** The last row transactions that the engine still remembers, by their number within the table. */
  readonly transactions: ReadonlyMap<number, RowTransaction>
}

export interface ServerParameter {
  /** Name of the setting, for example `http.net.bind.to`. */
  readonly name: string
  readonly environmentName: string
  readonly value: string
  readonly source: 'default' | 'conf' | 'env'
  readonly sensitive: boolean
  readonly reloadable: boolean
}

/** A stored view: binding replaces its name by its query. */
export interface StoredView {
  /** Taken from the same range as table ids: the catalog stores a view as a table without columns. */
  readonly id: number
  readonly name: string
  readonly sql: string
  readonly createdMicros: number
}

/** A client connection that pg_stat_activity and pg_stat_ssl list as a backend. */
export interface Backend {
  /** The number that pg_backend_pid() returns in that session. */
  readonly processId: number
  readonly user: string
  readonly application: string
  /** `host:port` of the client. */
  readonly remoteAddress: string
  readonly connectedAtMicros: number
  readonly lastActiveAtMicros: number
  readonly state: string
  readonly tls: boolean
}

/** A query that is running. */
export interface QueryActivity {
  readonly queryId: number
  /** The number that pg_backend_pid() returns in its session; 0 for clients without a backend. */
  readonly processId: number
  readonly user: string
  readonly startMicros: number
  readonly sql: string
  /** Rows that its scans have read, and have to read; null or absent while that is not known. */
  readonly rowsRead?: { readonly read: number; readonly total: number } | null
}

export interface CredentialEntry {
  readonly kind: 'password' | 'rest token' | 'jwk token'
  /** Id of a token; null for other credentials. */
  readonly id: string | null
  readonly expiresMicros: number | null
}

export interface UserEntry {
  readonly name: string
  readonly enabled: boolean
  readonly rights: Rights
  readonly source: 'sql' | 'configuration'
  readonly credentials: readonly CredentialEntry[]
}

export interface Catalog {
  table(name: string): TableVersion | undefined
  /** All tables, ordered by id, without views. */
  tables(): readonly TableVersion[]
  /** The entry with this id: a table, a view, a sequence or an enumeration. */
  stored?(id: number): TableVersion | undefined
  /** Whether DROP ALL TABLES drops the table. */
  droppable?(name: string): boolean
  statistics(tableId: number): TableStatistics
  /** Counters of generated columns and of sequences; absent if the catalog has none. */
  readonly counters?: Counters
  /** The same object in all catalogs of an engine: caches for several statements belong to it. Absent: there are none. */
  readonly origin?: object
  /**
   * Relations registered by other layers, such as `sys.connections`. The relations of engine/sql/relations are not
   * included.
   */
  relation(name: string): VirtualRelation | undefined
  sequence?(name: string): StoredSequence | undefined
  sequences?(): readonly StoredSequence[]
  enumeration?(name: string): Enumeration | undefined
  enumerations?(): readonly Enumeration[]
  view(name: string): StoredView | undefined
  views(): readonly StoredView[]
  activity(): readonly QueryActivity[]
  backends?(): readonly Backend[]
  parameters(): readonly ServerParameter[]
  /** The users that the session may see. */
  users(): readonly UserEntry[]
}

/** Names of all tables and views, for suggestions. */
export function relationNames(catalog: Catalog): string[] {
  return [...catalog.tables().map(({ schema }) => schema.name), ...catalog.views().map(({ name }) => name)]
}

/** Value of a bind parameter. */
export interface Parameter {
  readonly value: Value
  readonly type: DataType
  /** Set while a statement is described: binding stores here the type that it infers for the parameter. */
  readonly slot?: ParameterSlot
  /** Of a constant that stands for a parameter: how the statement has it. */
  readonly text?: string
}
