// Syntax tree of table and column constraints, and of the keyword TEMPORARY, which is accepted without effect. Import
// these types from ast.ts, which states the invariants of the syntax tree.

import type { Name } from './ast.js'

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
