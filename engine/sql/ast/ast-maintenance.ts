// Syntax tree of statements about storage and metadata of tables: indexes, VACUUM, REINDEX, CHECKPOINT, BACKUP, COMMENT,
// SHOW, and statements that have no effect. Import these types from ast.ts.

import type { Name, TableName } from './ast.js'

/** CREATE INDEX: checked, but no index is created. */
export interface CreateIndex {
  readonly kind: 'create index'
  readonly position: number
  readonly unique: boolean
  readonly table: TableName
}

/** ALTER INDEX. Only keys have named indexes. */
export interface AlterIndex {
  readonly kind: 'alter index'
  readonly position: number
  readonly index: TableName
  /** null: any other action, which has no effect. */
  readonly newName: Name | null
}

/** A null table means all tables. */
export interface Vacuum {
  readonly kind: 'vacuum'
  readonly position: number
  readonly table: TableName | null
}

export interface Reindex {
  readonly kind: 'reindex'
  readonly position: number
  readonly table: TableName
  readonly columns: readonly Name[]
  readonly partitions: readonly { readonly position: number; readonly name: string }[]
}

/** Bare CHECKPOINT flushes all tables. `snapshot prepare|complete` are the former spellings of create and release. */
export interface Checkpoint {
  readonly kind: 'checkpoint'
  readonly position: number
  readonly action: 'flush' | 'create' | 'release'
}

/** BACKUP DATABASE, TABLE t and ABORT. */
export interface Backup {
  readonly kind: 'backup'
  readonly position: number
  readonly action: 'database' | 'tables' | 'abort'
  readonly tables: readonly TableName[]
}

/** COMMENT ON a table or column. An empty text removes the comment. */
export interface Comment {
  readonly kind: 'comment'
  readonly position: number
  readonly table: TableName
  readonly column: Name | null
  readonly text: string
}

export type Remark = Comment | NoOperation

/** LOCK, ANALYZE, COMMENT ON other objects and the like: accepted without effect. `command` is in lower case. */
export interface NoOperation {
  readonly kind: 'no operation'
  readonly position: number
  readonly command: string
  /** Tables that must exist, for LOCK and ANALYZE. */
  readonly tables?: readonly TableName[]
}

/** An empty statement: blanks and comments. (SHOW is a query body, so that its result is streamed.) */
export interface Empty {
  readonly kind: 'empty'
  readonly position: number
}

export type DatabaseObject = 'tables' | 'views' | 'materialized_views' | 'live_views'

export type Show =
  | { readonly kind: 'show'; readonly position: number; readonly what: 'tables' | 'parameters' | 'all' | 'users' }
  /** Null: the session's user. */
  | { readonly kind: 'show'; readonly position: number; readonly what: 'user'; readonly user: Name | null }
  | {
      readonly kind: 'show'
      readonly position: number
      readonly what:
        | 'columns'
        | 'partitions'
        | 'create table'
        | 'create view'
        | 'create materialized view'
        | 'create live view'
      readonly table: TableName
    }
  | {
      readonly kind: 'show'
      readonly position: number
      readonly what: 'create database'
      /** The kinds of objects whose statements are shown. */
      readonly objects: ReadonlySet<DatabaseObject>
    }
  /** `show server_version`, `show time zone`: lower case, words separated by one blank. */
  | { readonly kind: 'show'; readonly position: number; readonly what: 'option'; readonly option: Name }
