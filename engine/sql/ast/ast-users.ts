// Syntax tree of statements about users, their rights, tokens and keys. Import these types from ast.ts.

import type { Right } from '../../base/rights.js'
import type { Name } from './ast.js'

export interface UserStatement {
  readonly kind: 'user'
  readonly position: number
  readonly users: readonly Name[]
  readonly change: UserChange
}

/** The change that a statement makes to its users. */
export type UserChange =
  | {
      readonly kind: 'create'
      readonly ifNotExists: boolean
      readonly password: string | null
      readonly rights: readonly Right[]
    }
  | { readonly kind: 'drop'; readonly ifExists: boolean }
  | { readonly kind: 'password'; readonly password: string | null }
  | { readonly kind: 'enable'; readonly enabled: boolean }
  | { readonly kind: 'rights'; readonly given: boolean; readonly rights: readonly Right[] }
  /** Creates a bearer token. A null `ttlMicros` means that it does not expire. */
  | { readonly kind: 'create token'; readonly ttlMicros: number | null }
  /** Drops one token, given by its id or the token itself; null: all tokens. */
  | { readonly kind: 'drop token'; readonly token: string | null }
  /** Sets the key for line protocol over TCP; null: generates a key pair. */
  | { readonly kind: 'create key'; readonly publicKey: { readonly x: string; readonly y: string } | null }
  | { readonly kind: 'drop key' }
