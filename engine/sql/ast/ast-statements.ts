// Syntax tree of statements that are not queries. Import these types from ast.ts, which states the invariants.

import type {
  CommonTable,
  Declaration,
  Expression,
  Join,
  Name,
  Query,
  TableName,
  TableSource,
  TypeName,
} from './ast.js'
import type {
  ColumnDefault,
  ColumnDefinition,
  ColumnStorageClause,
  ConstraintAction,
  ConstraintKind,
  KeyDefinition,
  Persistence,
} from './ast-constraints.js'
import type { AlterType, CreateType, DropType } from './ast-enumeration.js'
import type { ChangesInWith, Insert, Merge } from './ast-insert.js'
import type { CreateLive } from './ast-live-view.js'
import type { AlterIndex, Backup, Checkpoint, CreateIndex, Empty, Reindex, Remark, Vacuum } from './ast-maintenance.js'
import type { MaterializedStatement } from './ast-mat-view.js'
import type { LakeClause, RetentionAction, StoragePolicyClause, TimeToLive } from './ast-policy.js'
import type { AlterSequence, Counted, CreateSequence, DropSchema, DropSequence } from './ast-sequence.js'
import type { UserStatement } from './ast-users.js'

export type Statement =
  | Query
  | Explain
  | Insert
  | Merge
  | Update
  | Delete
  | ChangesInWith
  | CreateTable
  | CreateView
  | MaterializedStatement
  | CreateLive
  | CreateIndex
  | AlterIndex
  | DropTable
  | DropSchema
  | DropView
  | CreateSequence
  | AlterSequence
  | DropSequence
  | CreateType
  | AlterType
  | DropType
  | DropAllTables
  | RenameTable
  | TruncateTable
  | AlterTable
  | AlterView
  | SetOption
  | ResetOption
  | TransactionStatement
  | Deallocate
  | Discard
  | DeclareCursor
  | FetchCursor
  | CloseCursor
  | Prepare
  | Execute
  | Vacuum
  | Reindex
  | Checkpoint
  | Backup
  | AlterConnector
  | CancelQuery
  | Copy
  | UserStatement
  | ChannelStatement
  | Remark
  | Empty

export interface Explain {
  readonly kind: 'explain'
  readonly position: number
  readonly analyze: boolean
  /** `(format json)`: lower case; null without FORMAT. */
  readonly format: string | null
  readonly statement: Query | Insert | Merge | Update | Delete | CreateTable
}

// Rows --------------------------------------------------------------------------------------------------------------

export interface Assignment {
  readonly column: Name
  readonly value: Expression
}

interface RowsChange {
  readonly position: number
  readonly declarations: readonly Declaration[]
  readonly commonTables: readonly CommonTable[]
  readonly table: TableName
  readonly alias: Name | null
  /** FROM of UPDATE, USING of DELETE. */
  readonly from: TableSource | null
  readonly joins: readonly Join[]
  readonly where: Expression | null
  /** The RETURNING list, as in INSERT. */
  readonly returning: Query | null
}

export interface Update extends RowsChange {
  readonly kind: 'update'
  readonly assignments: readonly Assignment[]
}

export interface Delete extends RowsChange {
  readonly kind: 'delete'
}

// Tables and views --------------------------------------------------------------------------------------------------

export type PartitionUnit = 'none' | 'hour' | 'day' | 'week' | 'month' | 'year'

export interface SymbolOptions {
  readonly capacity: { readonly position: number; readonly value: number } | null
  readonly cache: boolean | null
}

export interface IndexOption {
  readonly position: number
  /** Rows of an index block; null for the default. */
  readonly capacity: number | null
  /** Columns of INCLUDE. */
  readonly included: readonly Name[]
}

export interface CreateTable extends Persistence {
  readonly kind: 'create table'
  readonly position: number
  readonly ifNotExists: boolean
  readonly table: TableName
  readonly source: CreateColumns | CreateLike | CreateAs
  readonly timestamp: Name | null
  readonly partitionBy: { readonly position: number; readonly unit: PartitionUnit } | null
  /** null: neither WAL nor BYPASS WAL is written. */
  readonly wal: { readonly position: number; readonly enabled: boolean } | null
  readonly ttl: TimeToLive | null
  readonly policy: StoragePolicyClause | null
  /** Null: neither LAKE ON nor LAKE OFF is written. */
  readonly lake: LakeClause | null
  /** null without a DEDUP clause; never empty. */
  readonly dedupKeys: readonly Name[] | null
  /** DEDUP SKIP. */
  readonly dedupSkips: boolean
  /** `index(col capacity 128)` after the columns. */
  readonly indexes: readonly { readonly column: Name; readonly index: IndexOption }[]
  /** `with maxUncommittedRows = 1000, o3MaxLag = 1s`. */
  readonly options: readonly TableOption[]
  readonly volume: { readonly position: number; readonly name: string } | null
}

export interface CreateColumns {
  readonly kind: 'columns'
  readonly columns: readonly ColumnDefinition[]
  /** Table-level keys. */
  readonly keys: readonly KeyDefinition[]
  /** Other table-level constraints; ignored. */
  readonly constraints: readonly ConstraintKind[]
}

export interface CreateLike {
  readonly kind: 'like'
  readonly table: TableName
  /** Whether keys are copied: false with EXCLUDING INDEXES or EXCLUDING ALL. */
  readonly keys: boolean
}

/** `as (select ..), cast(a as int), cast(s as symbol capacity 16)`. */
export interface CreateAs {
  readonly kind: 'as'
  readonly query: Query
  readonly casts: readonly ColumnDefinition[]
  /** `create atomic table`, `create batch 1000 o3MaxLag 1s table`. */
  readonly batch: Expression | null
}

export interface TableOption {
  readonly position: number
  /** As written. */
  readonly name: string
  readonly value: string
  readonly end: number
}

export interface CreateView {
  readonly kind: 'create view'
  readonly position: number
  readonly orReplace: boolean
  readonly ifNotExists: boolean
  readonly view: TableName
  /** Column names; empty for those of the query. `queryText` is the query as written. */
  readonly columns: readonly Name[]
  readonly query: Query
  readonly queryText: string
}

export interface DropTable {
  readonly kind: 'drop table'
  readonly position: number
  readonly ifExists: boolean
  readonly tables: readonly TableName[]
  readonly cascade: boolean
  /** Position of the first comma; null for a single table. */
  readonly listAt: number | null
}

export interface DropView {
  readonly kind: 'drop view'
  readonly position: number
  readonly materialized: boolean
  readonly live?: boolean
  readonly ifExists: boolean
  readonly view: TableName
  readonly cascade: boolean
}

interface DropAllTables {
  readonly kind: 'drop all tables'
  readonly position: number
}

export interface RenameTable {
  readonly kind: 'rename table'
  readonly position: number
  readonly table: TableName
  readonly newName: TableName
}

export interface TruncateTable {
  readonly kind: 'truncate'
  readonly position: number
  readonly ifExists: boolean
  readonly tables: readonly TableName[]
  readonly keepSymbolMaps: boolean
}

export interface AlterView {
  readonly kind: 'alter view'
  readonly position: number
  readonly view: TableName
  readonly query: Query
  readonly queryText: string
}

export interface AlterTable {
  readonly kind: 'alter table'
  readonly position: number
  readonly ifExists: boolean
  readonly table: TableName
  /** Several actions are applied atomically. */
  readonly actions: readonly AlterAction[]
}

export interface PartitionList {
  /** `list '2024-01-01', '2024-01-02'` */
  readonly list: readonly { readonly position: number; readonly name: string }[]
  /** `where ts < '2024'`; null with a list. */
  readonly where: Expression | null
}

export type AlterAction =
  | {
      readonly kind: 'add columns'
      readonly position: number
      readonly columns: readonly (ColumnDefinition & { readonly ifNotExists: boolean })[]
    }
  | {
      readonly kind: 'drop columns'
      readonly position: number
      readonly columns: readonly (Name & { readonly ifExists: boolean })[]
    }
  | {
      readonly kind: 'rename columns'
      readonly position: number
      readonly pairs: readonly { readonly column: Name; readonly newName: Name }[]
    }
  | {
      readonly kind: 'change type'
      readonly position: number // position of the last token of the type
      readonly column: Name
      readonly definition: Pick<ColumnDefinition, 'type' | 'symbol' | 'index'>
      /** Written with USING, as migrations do: it is no error if the column has the type already. */
      readonly again: boolean
    }
  | { readonly kind: 'add index'; readonly position: number; readonly column: Name; readonly index: IndexOption }
  | { readonly kind: 'drop index'; readonly position: number; readonly column: Name }
  | {
      readonly kind: 'set storage'
      readonly position: number
      readonly column: Name
      readonly storage: ColumnStorageClause
    }
  /** SET and DROP NOT NULL. As with CREATE TABLE, the catalog shows NOT NULL, and it is not enforced. */
  | { readonly kind: 'set nullable'; readonly position: number; readonly column: Name; readonly notNull: boolean }
  /** Null: the default is dropped. */
  | {
      readonly kind: 'set default'
      readonly position: number
      readonly column: Name
      readonly value: ColumnDefault | Counted | null
    }
  | { readonly kind: 'set cache'; readonly position: number; readonly column: Name; readonly cache: boolean }
  | {
      readonly kind: 'set symbol capacity'
      readonly position: number
      readonly column: Name
      readonly capacity: number
      readonly capacityPosition: number
    }
  | {
      readonly kind: 'dedup enable'
      readonly position: number
      readonly keys: readonly Name[]
      readonly skips: boolean
    }
  | { readonly kind: 'dedup disable'; readonly position: number }
  | RetentionAction
  | { readonly kind: 'set parameter'; readonly position: number; readonly option: TableOption }
  | { readonly kind: 'set type'; readonly position: number; readonly wal: boolean }
  | { readonly kind: 'set format'; readonly position: number; readonly format: 'parquet' | 'native' }
  | {
      readonly kind: 'partitions'
      readonly position: number
      readonly operation: 'drop' | 'force drop' | 'detach' | 'attach' | 'convert to parquet' | 'convert to native'
      readonly partitions: PartitionList
    }
  | { readonly kind: 'squash partitions'; readonly position: number }
  | ConstraintAction
  /** OWNER TO: ignored, since tables have no owner. */
  | { readonly kind: 'set owner'; readonly position: number }
  | { readonly kind: 'resume wal'; readonly position: number; readonly fromTransaction: Expression | null }
  | {
      readonly kind: 'suspend wal'
      readonly position: number
      readonly code: Expression | null
      readonly message: Expression | null
    }
  | { readonly kind: 'rename'; readonly position: number; readonly newName: TableName }

// Session -----------------------------------------------------------------------------------------------------------

export interface SetOption {
  readonly kind: 'set'
  readonly position: number
  /** Lower case: `query.trace`, `time zone`, `transaction isolation level`. */
  readonly name: string
  /** The values as strings, written as words, strings or numbers. */
  readonly values: readonly string[]
  /** SET LOCAL: until the transaction ends. */
  readonly local: boolean
  /** Modes of SET TRANSACTION and SET SESSION CHARACTERISTICS; null for any other SET. */
  readonly modes: TransactionModes | null
}

interface ResetOption {
  readonly kind: 'reset'
  readonly position: number
  readonly name: string
}

export interface TransactionStatement {
  readonly kind: 'transaction'
  readonly position: number
  readonly action:
    | ('begin' | 'commit' | 'rollback' | 'savepoint' | 'release' | 'rollback to')
    | ('prepare' | 'commit prepared' | 'rollback prepared')
  /** Name of a savepoint or prepared transaction; `start` for START TRANSACTION, with its own tag; else null. */
  readonly name: string | null
  readonly modes: TransactionModes
  readonly chain: boolean
}

/** Values as the settings transaction_* and default_transaction_* have them. Modes that are not written are absent. */
export type TransactionModes = ReadonlyMap<'isolation' | 'read_only' | 'deferrable', string>

/** A null name means all. */
interface Deallocate {
  readonly kind: 'deallocate'
  readonly position: number
  readonly name: string | null
}

interface Discard {
  readonly kind: 'discard'
  readonly position: number
  readonly what: string
}

export interface DeclareCursor {
  readonly kind: 'declare cursor'
  readonly position: number
  readonly name: string
  readonly scroll: boolean
  readonly hold: boolean
  readonly binary: boolean
  readonly query: Query
}

/** `fetch forward 100 from c`; null rows means all. */
export interface FetchCursor {
  readonly kind: 'fetch'
  readonly position: number
  readonly name: string
  readonly direction: 'forward' | 'backward' | 'absolute' | 'relative'
  readonly rows: number | null
  /** MOVE instead of FETCH: no rows are sent. */
  readonly move: boolean
}

interface CloseCursor {
  readonly kind: 'close'
  readonly position: number
  readonly name: string | null
}

interface Prepare {
  readonly kind: 'prepare'
  readonly position: number
  readonly name: string
  readonly types: readonly TypeName[]
  readonly statement: Statement
  readonly statementText: string
}

interface Execute {
  readonly kind: 'execute'
  readonly position: number
  readonly name: string
  readonly args: readonly Expression[]
}

/** `alter connector name pause|resume`. */
export interface AlterConnector {
  readonly kind: 'alter connector'
  readonly position: number
  readonly connector: Name
  readonly action: 'pause' | 'resume'
}

export interface CancelQuery {
  readonly kind: 'cancel query'
  readonly position: number
  readonly id: Expression
}

export interface Copy {
  readonly kind: 'copy'
  readonly position: number
  readonly source: CopyTable | Query | CopyJob
  readonly columns: readonly Name[]
  readonly direction: 'from' | 'to' | 'cancel'
  /** A file name, or the client's connection (STDIN, STDOUT). */
  readonly target:
    | { readonly kind: 'file'; readonly position: number; readonly name: string }
    | { readonly kind: 'connection'; readonly position: number }
  /** `with header true format csv` or `(format csv, header)`. Names are lower case; a missing value is 'true'. */
  readonly options: readonly CopyOption[]
}

interface CopyTable {
  readonly kind: 'table'
  readonly table: TableName
}

/** `copy '<id>' cancel` */
interface CopyJob {
  readonly kind: 'job'
  readonly position: number
  readonly id: string
}

export interface CopyOption {
  readonly position: number
  readonly name: string
  readonly value: string
  readonly values: readonly string[]
}

/** A LISTEN, UNLISTEN or NOTIFY statement. */
export interface ChannelStatement {
  readonly kind: 'channel'
  readonly position: number
  readonly action: 'listen' | 'unlisten' | 'notify'
  /** Null: all channels (`unlisten *`). */
  readonly channel: string | null
  readonly payload: string
}
