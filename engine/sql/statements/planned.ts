// What planning a statement yields: plain data that the engine carries out.

import type { CopyRequest, ResultColumn } from '../../api/statements.js'
import type { RewriteProgram, RowsInput, SchemaChange } from '../../storage/jobs/messages.js'
import type { Enumeration } from '../../storage/schema/schema.js'
import type { DataType } from '../../types/column-types.js'
import type { Query as AstQuery, Expression, Name, TableName, UserChange } from '../ast/ast.js'
import type { Query } from '../plan/plan.js'

/** A column that INSERT .. SELECT fills; the query's output columns are in this order and already of these types. */
export interface TargetColumn {
  readonly columnId: number
  readonly name: string
  readonly type: DataType
  /** Of a parameter in its place, where the column is shown as more than it stores. */
  readonly wanted?: DataType
  /** The only texts that it takes. */
  readonly enumeration?: Enumeration
}

/** A column that a row does not name, and what it has instead. */
export interface ColumnDefault {
  readonly target: TargetColumn
  readonly written: Expression
}

export interface Explained {
  /** Null: the heading says it all. */
  readonly query: Query | null
  readonly tableNames: readonly string[]
  readonly analyze: boolean
  readonly asJson: boolean
  /** Lines before the query's own: of INSERT and CREATE TABLE. */
  readonly heading: readonly string[]
}

/** A query whose rows are carried out (acting.ts). */
export interface Acting {
  readonly query: Query
  readonly columns: readonly ResultColumn[]
  /** Of each result column how many columns of the query are its arguments; the name is null where it is that column itself. */
  readonly items: readonly { readonly name: string | null; readonly width: number; readonly position: number }[]
}

/** Values that a column's new type makes NULL: one row says how many, the first of them, and the timestamp of its row. */
export interface LostValues {
  readonly column: string
  readonly type: string
  readonly query: Query
}

/** RETURNING: `name` is where the list names the table. */
export interface Returning {
  readonly name: TableName
  readonly returning: AstQuery
  readonly columns: readonly ResultColumn[]
}

export type PlannedStatement =
  /** SELECT, SHOW and EXPLAIN: rows come back. */
  | {
      readonly kind: 'query'
      readonly query: Query
      readonly columns: readonly ResultColumn[]
      /** Of the tables in Query.tables. */
      readonly tableNames: readonly string[]
      /** The same text gives the same plan while the tables that it names keep their versions. */
      readonly cacheable: boolean
      /** pg_sleep(): it begins so much later. */
      readonly sleepMs: number
      /** Of EXPLAIN, whose rows are words about this query; `query` then is what stands for them until it is known. */
      readonly explained?: Explained
      /** What is done with the rows of another query; `query` then is what stands for the results until they are known. */
      readonly acts?: Acting
    }
  /** Serial changes, in this order, each awaited before the next. Empty: nothing to do (IF EXISTS). */
  | {
      readonly kind: 'change'
      readonly changes: readonly SchemaChange[]
      /** Of new types of columns; asked before the changes. */
      readonly losses?: readonly LostValues[]
      readonly tag: string
    }
  | { readonly kind: 'insert'; readonly rows: RowsInput; readonly tag: 'INSERT' }
  | {
      readonly kind: 'insertSelect'
      readonly tableId: number
      readonly query: Query
      readonly columns: readonly TargetColumn[]
      /** Columns besides, of which each row gets a new number (engine/session/filled-rows.ts). */
      readonly numbered: readonly ColumnDefault[]
      /** Rows of one transaction; null = as many as are good. */
      readonly batchRows: number | null
      /** All rows are one transaction. */
      readonly atomic: boolean
      readonly tag: 'INSERT'
    }
  /** INSERT .. ON CONFLICT DO NOTHING: the rows are gathered, and those whose keys are new are inserted. */
  | {
      readonly kind: 'insertNew'
      readonly insert: Extract<PlannedStatement, { kind: 'insert' | 'insertSelect' }>
      readonly tableId: number
      readonly tag: 'INSERT'
    }
  /** INSERT .. RETURNING: the rows are gathered, then its list is planned over them (returning.ts), then they are stored. */
  | {
      readonly kind: 'insertReturning'
      readonly insert: Extract<PlannedStatement, { kind: 'insert' | 'insertSelect' | 'insertNew' }>
      readonly tableId: number
      readonly returning: Returning
      readonly tag: 'INSERT'
    }
  /** The table is made first; `columns` ids count from 0 as the new schema's. Nothing is done if it existed. */
  | {
      readonly kind: 'createTableAs'
      readonly change: Extract<SchemaChange, { kind: 'createTable' }>
      readonly query: Query
      readonly columns: readonly TargetColumn[]
      readonly batchRows: number | null
      readonly tag: 'CREATE TABLE AS'
    }
  /** UPDATE and DELETE. `tables`: ids of the program's tables from 1 on; their snapshots are missing yet. */
  | {
      readonly kind: 'rewrite'
      readonly tableId: number
      readonly program: Omit<RewriteProgram, 'snapshots'>
      readonly tables: readonly number[]
      /** Its list is planned over the rows that come back. */
      readonly returning: Returning | null
      readonly tag: 'UPDATE' | 'DELETE'
    }
  | { readonly kind: 'checkpoint'; readonly action: 'flush' | 'create' | 'release'; readonly tag: 'CHECKPOINT' }
  | { readonly kind: 'copy'; readonly request: CopyRequest; readonly tag: 'COPY' }
  | { readonly kind: 'set'; readonly name: string; readonly values: readonly string[]; readonly tag: 'SET' }
  | { readonly kind: 'cancelQuery'; readonly queryId: bigint; readonly position: number; readonly tag: 'CANCEL QUERY' }
  | { readonly kind: 'user'; readonly users: readonly Name[]; readonly change: UserChange; readonly tag: string }
  | {
      readonly kind: 'connector'
      readonly name: string
      readonly action: 'pause' | 'resume'
      /** Of the name in the text. */
      readonly position: number
      readonly tag: 'ALTER CONNECTOR'
    }
  /** Accepted, without effect on the engine (BEGIN, VACUUM, LISTEN, ...). The wire protocol keeps its own transactions. */
  | { readonly kind: 'none'; readonly tag: string }
