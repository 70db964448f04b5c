// CREATE, ALTER and DROP SEQUENCE, DROP SCHEMA. To be imported from ast.ts.

import type { Name, TableName } from './ast.js'

export interface CreateSequence {
  readonly kind: 'create sequence'
  readonly position: number
  readonly ifNotExists: boolean
  readonly sequence: TableName
  readonly options: SequenceOptions
}

export type SequenceType = 'smallint' | 'integer' | 'bigint'

/** null: not said. */
export interface SequenceOptions {
  readonly type: SequenceType
  readonly start: bigint | null
  readonly increment: bigint
  readonly minimum: bigint | null
  readonly maximum: bigint | null
  readonly cache: number
  readonly cycle: boolean
  /** By a column: the sequence is no part of it. */
  readonly owned: boolean
}

/** `alter sequence s restart with 5`; null: with its first number; neither this nor a name: it is about its owner. */
export interface AlterSequence {
  readonly kind: 'alter sequence'
  readonly position: number
  readonly ifExists: boolean
  readonly sequence: TableName
  readonly restart?: bigint | null
  readonly newName?: TableName
}

/** `serial`, `generated always as identity (sequence name s)`: INSERT gives a column the next number. */
export interface Counted {
  readonly kind: 'counted'
  /** null: `serial`. */
  readonly identity: 'always' | 'by default' | null
  /** null: it has the usual name. */
  readonly counter: string | null
}

export interface DropSequence {
  readonly kind: 'drop sequence'
  readonly position: number
  readonly ifExists: boolean
  readonly sequences: readonly TableName[]
}

/** The tables and views whose names begin with it. */
export interface DropSchema {
  readonly kind: 'drop schema'
  readonly position: number
  readonly ifExists: boolean
  readonly schemas: readonly Name[]
  readonly cascade: boolean
}
