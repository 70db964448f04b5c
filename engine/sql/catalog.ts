// What the SQL front end sees of the database: plain data and look-ups, handed in by the engine for one statement.
// All names are looked up without case. The figures are those of the newest published versions.

import type { VirtualRelation } from '../api/statements.js'
import type { Rights } from '../base/rights.js'
import type { StorageWork } from '../memory/storage-work.js'
import type { RowTransaction } from '../memory/transactions.js'
import type { Enumeration, StoredSequence, TableVersion } from '../storage/schema/schema.js'
import type { DataType } from '../types/column-types.js'
import type { Value } from '../types/value.js'
import type { ParameterSlot } from './plan/plan.js'
import type { Counters } from './relations/counters.js'

/** One partition of a table, unflushed rows included. */
export interface PartitionFigures {
  /** `2024-03-14`, `2024-W11`, ..., `default` for NONE. */
  readonly name: string
  readonly rows: number
  readonly bytes: number
  /** Of the designated timestamp in the table's unit; null without rows or without such a column. */
  readonly minTs: bigint | null
  readonly maxTs: bigint | null
}

export interface SchemaChange {
  /** Transactions of rows before it. */
  readonly afterTxn: number
  /** Wall clock, microseconds since the epoch. */
  readonly micros: number
}

/** What is counted about a table besides its version. */
export interface TableFigures {
  readonly rows: number
  /** In the table's unit; null without rows or without a designated timestamp. */
  readonly minTs: bigint | null
  readonly maxTs: bigint | null
  readonly lastWriteMicros: number | null
  /** The last transaction of rows that queries see. */
  readonly visibleTxn: number
  /** Those that are remembered, oldest first. */
  readonly schemaChanges: readonly SchemaChange[]
  /** UPDATE, DELETE, TRUNCATE and DROP PARTITION statements since the start. */
  readonly rewrites: number
  /** Rows that rows with equal keys replaced since the start, as far as flushes and merges have found them. */
  readonly repeats: number
  /** The last flushes and merges, oldest first. */
  readonly storageWork: readonly StorageWork[]
  /** In time order. */
  readonly partitions: readonly PartitionFigures[]
  /** Entries of the dictionary of each SYMBOL column, by column id. */
  readonly symbolCounts: ReadonlyMap<number, number>
  /** Ids of the SYMBOL columns that are NULL somewhere. */
  readonly nullSymbols: ReadonlySet<number>
  /** What is remembered of the last transactions of rows, by their number within the table. */
  readonly transactions: ReadonlyMap<number, RowTransaction>
}

export interface ParameterFigures {
  /** `http.net.bind.to` */
  readonly name: string
  readonly environmentName: string
  readonly value: string
  readonly source: 'default' | 'conf' | 'env'
  readonly sensitive: boolean
  readonly reloadable: boolean
}

/** A stored view: its text is planned in place of its name. */
export interface StoredView {
  /** Among the ids of tables: a view is a table of the catalog without columns. */
  readonly id: number
  readonly name: string
  readonly sql: string
  readonly createdMicros: number
}

/** A connection that PostgreSQL's catalog lists as a backend: pg_stat_activity, pg_stat_ssl. */
export interface Backend {
  /** As pg_backend_pid() says. */
  readonly processId: number
  readonly user: string
  readonly application: string
  /** `host:port`. */
  readonly remoteAddress: string
  readonly connectedAtMicros: number
  readonly lastActiveAtMicros: number
  readonly state: string
  readonly tls: boolean
}

/** A query that runs now. */
export interface QueryFigures {
  readonly queryId: number
  /** As pg_backend_pid() says; 0 for clients without a backend. */
  readonly processId: number
  readonly user: string
  readonly startMicros: number
  readonly sql: string
}

export interface CredentialFigures {
  readonly kind: 'password' | 'rest token' | 'jwk token'
  /** Of a token; else null. */
  readonly id: string | null
  readonly expiresMicros: number | null
}

export interface UserFigures {
  readonly name: string
  readonly enabled: boolean
  readonly rights: Rights
  readonly source: 'sql' | 'configuration'
  readonly credentials: readonly CredentialFigures[]
}

export interface Catalog {
  table(name: string): TableVersion | undefined
  /** All tables, by id; no views. */
  tables(): readonly TableVersion[]
  /** Whatever is stored under the id, views and sequences as well. */
  stored?(id: number): TableVersion | undefined
  /** Computed at every call: asked only by statements that show it. */
  /** Whether DROP ALL TABLES takes it. */
  droppable?(name: string): boolean
  figures(tableId: number): TableFigures
  /** Of counted columns and sequences; absent: nothing is counted. */
  readonly counters?: Counters
  /** Relations registered by the layers above (`sys.connections`); not the ones that this layer makes itself. */
  relation(name: string): VirtualRelation | undefined
  sequence?(name: string): StoredSequence | undefined
  sequences?(): readonly StoredSequence[]
  enumeration?(name: string): Enumeration | undefined
  enumerations?(): readonly Enumeration[]
  view(name: string): StoredView | undefined
  views(): readonly StoredView[]
  activity(): readonly QueryFigures[]
  backends?(): readonly Backend[]
  parameters(): readonly ParameterFigures[]
  /** Those that who asks may see. */
  users(): readonly UserFigures[]
}

/** Value of a bind parameter. */
export interface Parameter {
  readonly value: Value
  readonly type: DataType
  /** While a statement is described: where the type goes that is wanted of the parameter. */
  readonly slot?: ParameterSlot
}
