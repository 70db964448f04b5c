// Syntax tree of CREATE LIVE VIEW. ALTER, DROP and REFRESH have the nodes of materialized views, with `live` set.
// Import these types from ast.ts.

import type { Name, Query, TableName } from './ast.js'
import type { CreateTable } from './ast-statements.js'

export interface CreateLive {
  readonly kind: 'create live view'
  readonly position: number
  readonly ifNotExists: boolean
  readonly view: TableName
  readonly flushEvery: LiveLength
  readonly inMemory: LiveLength | null
  readonly partitionBy: CreateTable['partitionBy']
  readonly start: LiveStart
  readonly query: Query
  readonly queryText: string
}

/** `100ms`, `5s`, `1h` */
export interface LiveLength {
  readonly position: number
  readonly text: string
}

/** START FROM: `timestamp` is null for BEGINNING and NOW. */
export interface LiveStart {
  readonly position: number
  readonly kind: 'now' | 'beginning' | 'timestamp'
  readonly timestamp: Pick<Name, 'position' | 'name'> | null
}
