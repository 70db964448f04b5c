// Syntax tree of column definitions, of table and column constraints, and of the keyword TEMPORARY, which is accepted
// without effect. Import these types from ast.ts, which states the invariants of the syntax tree.

import type { Expression, IndexOption, Name, SymbolOptions, TypeName } from './ast.js'
import type { Counted } from './ast-sequence.js'

/** PRIMARY KEY or UNIQUE. */
export interface KeyOption {
  readonly position: number
  /** null: the name is derived. */
  readonly name: Name | null
  readonly primary: boolean
  /** Written as NULLS NOT DISTINCT. */
  readonly nullsEqual: boolean
  /** Written as ENFORCED. */
  readonly enforced: boolean
}

export interface KeyDefinition extends KeyOption {
  readonly columns: readonly Name[]
}

/** Constraints that are parsed and ignored. */
export type ConstraintKind = 'foreign key' | 'check'

/** Actions of ALTER TABLE about constraints. */
export type ConstraintAction =
  | { readonly kind: 'add key'; readonly position: number; readonly key: KeyDefinition }
  /** Accepted and ignored. */
  | { readonly kind: 'add constraint'; readonly position: number; readonly constraint: ConstraintKind }
  /** Drops a key. No other constraints are stored. */
  | { readonly kind: 'drop constraint'; readonly position: number; readonly name: Name }
  | { readonly kind: 'rename constraint'; readonly position: number; readonly name: Name; readonly newName: Name }

export interface Persistence {
  /** Written as TEMPORARY. The table is an ordinary one nevertheless. */
  readonly temporary?: boolean
}

/** PARQUET(..): how a column is stored. */
export interface ColumnStorageClause {
  /** Null: DEFAULT, or not given. */
  readonly encoding: Name | null
  readonly codec: {
    readonly name: Name
    readonly level: { readonly position: number; readonly value: number } | null
  } | null
  readonly bloomFilter: boolean
}

export interface ColumnDefinition {
  readonly position: number
  readonly name: string
  readonly quoted: boolean
  readonly type: TypeName
  readonly symbol: SymbolOptions
  readonly index: IndexOption | null
  readonly notNull: boolean
  /** Keys on this column alone. */
  readonly keys: readonly KeyOption[]
  /** Other constraints declared with the column; ignored. */
  readonly constraints: readonly ConstraintKind[]
  /** `serial`, `generated .. as identity`: INSERT fills the column from a counter. */
  readonly counted: Counted | null
  readonly defaultValue: ColumnDefault | null
  readonly storage: ColumnStorageClause | null
}

export interface ColumnDefault {
  readonly expression: Expression
  /** As written. */
  readonly text: string
}
