// The result of planning a statement: plain data that the engine carries out, one variant for each kind of execution.

import type { BackupTable, CopyRequest, ResultColumn } from '../../api/statements.js'
import type { RewriteProgram, RowsInput, SchemaChange } from '../../storage/jobs/messages.js'
import type { Enumeration } from '../../storage/schema/schema.js'
import type { DataType } from '../../types/column-types.js'
import type { Query as AstQuery, ChangesInWith, Expression, Insert, Name, TableName, UserChange } from '../ast/ast.js'
import type { Query } from '../plan/plan.js'

/** A column that INSERT .. SELECT fills. The query's output columns have this order and these types. */
export interface TargetColumn {
  readonly columnId: number
  readonly name: string
  readonly type: DataType
  /** Type for a parameter in its place, where the column is shown with another type than it stores. */
  readonly wanted?: DataType
  /** The labels that are accepted as values. */
  readonly enumeration?: Enumeration
}

/** A column that a row omits, and the expression that it gets instead. */
export interface ColumnDefault {
  readonly target: TargetColumn
  readonly written: Expression
}

export interface Explained {
  /** Null if the heading is the complete text. */
  readonly query: Query | null
  readonly tableNames: readonly string[]
  readonly analyze: boolean
  readonly asJson: boolean
  /** Lines before those of the query, for INSERT and CREATE TABLE. */
  readonly heading: readonly string[]
}

/** A query whose rows are arguments of calls with side effects (side-effects.ts). */
export interface SideEffects {
  readonly query: Query
  readonly columns: readonly ResultColumn[]
  /**
   * For each result column, the number of query columns that are its arguments. The name is null if it is a plain
   * column.
   */
  readonly items: readonly { readonly name: string | null; readonly width: number; readonly position: number }[]
}

/**
 * Counts the values that a changed column type replaces by NULL. The query's row has the number of values, the first
 * one, and the timestamp of its row.
 */
export interface LostValues {
  readonly column: string
  readonly type: string
  readonly query: Query
}

/** A RETURNING clause. `name` is the reference to the table within its list. */
export interface Returning {
  readonly name: TableName
  readonly returning: AstQuery
  readonly columns: readonly ResultColumn[]
}

/** Values of the first column of an upsert's query. */
export const upsertActions = { insert: 1, update: 2, delete: 3 } as const
/** Id of that column among the query's target columns. */
export const actionColumnId = -4

/** The query that finds the changes of an upsert. */
export interface UpsertQuery {
  readonly query: Query
  /** Action, place, and the table's columns. */
  readonly columns: readonly TargetColumn[]
  readonly schemaVersion: number
}

export type UpsertSource =
  | { readonly kind: 'query'; readonly found: UpsertQuery }
  /** INSERT .. ON CONFLICT: the rows are collected first, and the query is planned over them. */
  | {
      readonly kind: 'rows'
      readonly insert: Extract<PlannedStatement, { kind: 'insert' | 'insertSelect' }>
      readonly statement: Insert
      /** Column ids of the keys that may conflict; one key for DO UPDATE. */
      readonly keys: readonly (readonly number[])[]
    }

export type PlannedStatement =
  /** SELECT, SHOW and EXPLAIN: returns rows. */
  | {
      readonly kind: 'query'
      readonly query: Query
      readonly columns: readonly ResultColumn[]
      /** Names of the tables in Query.tables. */
      readonly tableNames: readonly string[]
      /** The same text has the same plan as long as the tables keep their versions. */
      readonly cacheable: boolean
      /** Delay before the query starts, for pg_sleep(). */
      readonly sleepMs: number
      /** Set for EXPLAIN: the query to describe. `query` is then a placeholder until the text is known. */
      readonly explained?: Explained
      /** Set if the rows are results of calls with side effects. `query` is then a placeholder until they are known. */
      readonly acts?: SideEffects
      /** Set if another statement of its form was planned: where that one's positions are in this one. */
      readonly moved?: (position: number) => number
    }
  /** Changes that are carried out one after the other. Empty if there is nothing to do (IF EXISTS). */
  | {
      readonly kind: 'change'
      readonly changes: readonly SchemaChange[]
      /** Queries that count values lost by changed column types; run before the changes. */
      readonly losses?: readonly LostValues[]
      /** Sentences for the client, which gets them as notices. */
      readonly notes?: readonly string[]
      readonly tag: string
    }
  | { readonly kind: 'insert'; readonly rows: RowsInput; readonly tag: 'INSERT' }
  | {
      readonly kind: 'insertSelect'
      readonly tableId: number
      readonly query: Query
      readonly columns: readonly TargetColumn[]
      /** Further columns, whose rows get numbers of counters (engine/session/filled-rows.ts). */
      readonly numbered: readonly ColumnDefault[]
      /** Rows per transaction; null to let the engine choose. */
      readonly batchRows: number | null
      /** All rows form one transaction. */
      readonly atomic: boolean
      readonly tag: 'INSERT'
    }
  /** INSERT .. ON CONFLICT DO NOTHING: the rows are collected, and those with new keys are inserted. */
  | {
      readonly kind: 'insertNew'
      readonly insert: Extract<PlannedStatement, { kind: 'insert' | 'insertSelect' }>
      readonly tableId: number
      readonly tag: 'INSERT'
    }
  /**
   * INSERT .. RETURNING: the rows are collected, the list is planned over them (returning.ts), then they are stored.
   */
  | {
      readonly kind: 'insertReturning'
      readonly insert: Extract<PlannedStatement, { kind: 'insert' | 'insertSelect' | 'insertNew' }>
      readonly tableId: number
      readonly returning: Returning
      readonly tag: 'INSERT'
    }
  /**
   * MERGE, INSERT .. ON CONFLICT for a table with declared keys, and UPDATE of an enforced key (upsert.ts). The writer
   * checks the new rows.
   */
  | {
      readonly kind: 'upsert'
      readonly tableId: number
      readonly source: UpsertSource
      /** The list is planned over the added and changed rows, and the old values of deleted ones. */
      readonly returning: Returning | null
      readonly tag: 'INSERT' | 'MERGE' | 'UPDATE' | 'DELETE'
    }
  /**
   * Data changes in WITH (changes-in-with.ts). The statements are planned again when they run, since each can read the
   * rows of those before it.
   */
  | {
      readonly kind: 'withChanges'
      readonly statement: ChangesInWith
      /** Ids of all tables that the statements read or change. */
      readonly tables: readonly number[]
      /** Ids of the changed tables. */
      readonly targets: readonly number[]
      /** Of the result; null: only a number of rows. */
      readonly columns: readonly ResultColumn[] | null
      readonly tag: 'SELECT' | 'INSERT' | 'UPDATE' | 'DELETE' | 'MERGE'
    }
  /** The table is created first; ids of `columns` count from 0, as in the new schema. Nothing is done if it exists. */
  | {
      readonly kind: 'createTableAs'
      readonly change: Extract<SchemaChange, { kind: 'createTable' }>
      readonly query: Query
      readonly columns: readonly TargetColumn[]
      readonly batchRows: number | null
      readonly tag: 'CREATE TABLE AS'
    }
  /**
   * UPDATE and DELETE. `tables` are ids of the program's tables from index 1 on; their snapshots are added at
   * execution.
   */
  | {
      readonly kind: 'rewrite'
      readonly tableId: number
      readonly program: Omit<RewriteProgram, 'snapshots'>
      readonly tables: readonly number[]
      /** The list is planned over the changed rows. */
      readonly returning: Returning | null
      readonly tag: 'UPDATE' | 'DELETE'
    }
  /** REFRESH MATERIALIZED VIEW. `range`: the timestamps to store again; null for all. */
  | {
      readonly kind: 'refresh'
      readonly viewId: number
      readonly mode: 'full' | 'incremental' | 'range'
      readonly range: { readonly lo: bigint; readonly hi: bigint } | null
      readonly tag: 'REFRESH MATERIALIZED VIEW' | 'REFRESH LIVE VIEW'
    }
  | { readonly kind: 'checkpoint'; readonly action: 'flush' | 'create' | 'release'; readonly tag: 'CHECKPOINT' }
  | {
      readonly kind: 'backup'
      readonly action: 'database' | 'tables' | 'abort'
      readonly tables: readonly BackupTable[]
      readonly columns: readonly ResultColumn[]
      readonly tag: 'BACKUP'
    }
  | { readonly kind: 'copy'; readonly request: CopyRequest; readonly tag: 'COPY' }
  | { readonly kind: 'set'; readonly name: string; readonly values: readonly string[]; readonly tag: 'SET' }
  | { readonly kind: 'cancelQuery'; readonly queryId: bigint; readonly position: number; readonly tag: 'CANCEL QUERY' }
  | { readonly kind: 'user'; readonly users: readonly Name[]; readonly change: UserChange; readonly tag: string }
  | {
      readonly kind: 'connector'
      readonly name: string
      readonly action: 'pause' | 'resume'
      /** Position of the name in the text. */
      readonly position: number
      readonly tag: 'ALTER CONNECTOR'
    }
  /**
   * Accepted without effect on the engine (BEGIN, VACUUM, LISTEN, ...). The PostgreSQL gateway manages transactions
   * itself.
   */
  | { readonly kind: 'none'; readonly tag: string }
