// Syntax tree of SHOW. Import these types from ast.ts.

import type { Name, TableName } from './ast.js'

export type DatabaseObject = 'tables' | 'views' | 'materialized_views'

export type Show =
  | { readonly kind: 'show'; readonly position: number; readonly what: 'tables' | 'parameters' | 'all' | 'users' }
  /** Null: the session's user. */
  | { readonly kind: 'show'; readonly position: number; readonly what: 'user'; readonly user: Name | null }
  | {
      readonly kind: 'show'
      readonly position: number
      readonly what: 'columns' | 'partitions' | 'create table' | 'create view' | 'create materialized view'
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
