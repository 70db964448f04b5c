// Constraints of tables and columns, and how long a table lasts. To be imported from ast.ts, which states the invariants.

import type { Name } from './ast.js'

/** PRIMARY KEY or UNIQUE. */
export interface KeyOption {
  readonly position: number
  /** null: it gets one. */
  readonly name: Name | null
  readonly primary: boolean
  /** NULLS NOT DISTINCT. */
  readonly nullsEqual: boolean
}

export interface KeyDefinition extends KeyOption {
  readonly columns: readonly Name[]
}

/** What else other databases hold rows to. */
export type ConstraintKind = 'foreign key' | 'check'

/** Of ALTER TABLE. */
export type ConstraintAction =
  | { readonly kind: 'add key'; readonly position: number; readonly key: KeyDefinition }
  /** They mean nothing here. */
  | { readonly kind: 'add constraint'; readonly position: number; readonly constraint: ConstraintKind }
  /** Of a key; no other is kept. */
  | { readonly kind: 'drop constraint'; readonly position: number; readonly name: Name }
  | { readonly kind: 'rename constraint'; readonly position: number; readonly name: Name; readonly newName: Name }

export interface Lasting {
  /** So it was called: the table is one like others. */
  readonly temporary?: boolean
}
