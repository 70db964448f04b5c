// Statements about how tables are stored. To be imported from ast.ts.

import type { Name, TableName } from './ast.js'

/** Looked at, and nothing is made. */
export interface CreateIndex {
  readonly kind: 'create index'
  readonly position: number
  readonly unique: boolean
  readonly table: TableName
}

/** Of a key; no other index has a name. */
export interface AlterIndex {
  readonly kind: 'alter index'
  readonly position: number
  readonly index: TableName
  /** null: whatever else it says, which means nothing here. */
  readonly newName: Name | null
}

/** table null: all. */
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

/** Bare CHECKPOINT flushes everything; `snapshot prepare|complete` are the old words for create and release. */
export interface Checkpoint {
  readonly kind: 'checkpoint'
  readonly position: number
  readonly action: 'flush' | 'create' | 'release'
}

/** Of a table, or of one of its columns; an empty text takes it away. */
export interface Comment {
  readonly kind: 'comment'
  readonly position: number
  readonly table: TableName
  readonly column: Name | null
  readonly text: string
}

export type Remark = Comment | NoOperation

/** LOCK, COMMENT ON other objects, ANALYZE: accepted, nothing is done. `command` is lower case. */
export interface NoOperation {
  readonly kind: 'no operation'
  readonly position: number
  readonly command: string
  /** Those that have to be there, of LOCK and ANALYZE. */
  readonly tables?: readonly TableName[]
}
