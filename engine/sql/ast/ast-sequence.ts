// Syntax tree of CREATE, ALTER and DROP SEQUENCE, of serial and identity columns, and of DROP SCHEMA. Import these
// types from ast.ts.

import type { Name, TableName } from './ast.js'

export interface CreateSequence {
  readonly kind: 'create sequence'
  readonly position: number
  readonly ifNotExists: boolean
  readonly sequence: TableName
  readonly options: SequenceOptions
}

export type SequenceType = 'smallint' | 'integer' | 'bigint'

/** null: the default. */
export interface SequenceOptions {
  readonly type: SequenceType
  readonly start: bigint | null
  readonly increment: bigint
  readonly minimum: bigint | null
  readonly maximum: bigint | null
  readonly cache: number
  readonly cycle: boolean
  /** Written with OWNED BY, which is ignored. */
  readonly owned: boolean
}

/**
 * `alter sequence s restart with 5`. A null number restarts with the first one. Without restart and new name it is
 * OWNER TO or OWNED BY, which has no effect.
 */
export interface AlterSequence {
  readonly kind: 'alter sequence'
  readonly position: number
  readonly ifExists: boolean
  readonly sequence: TableName
  readonly restart?: bigint | null
  readonly newName?: TableName
}

/** `serial` or `generated always as identity (sequence name s)`: INSERT fills the column from a counter. */
export interface Counted {
  readonly kind: 'counted'
  /** null: `serial`. */
  readonly identity: 'always' | 'by default' | null
  /** null: the counter has the default name. */
  readonly counter: string | null
}

export interface DropSequence {
  readonly kind: 'drop sequence'
  readonly position: number
  readonly ifExists: boolean
  readonly sequences: readonly TableName[]
}

/** Drops the tables and views whose names have the schema as their prefix. */
export interface DropSchema {
  readonly kind: 'drop schema'
  readonly position: number
  readonly ifExists: boolean
  readonly schemas: readonly Name[]
  readonly cascade: boolean
}
