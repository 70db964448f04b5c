// Statements about users. To be imported from ast.ts.

import type { Right } from '../../base/rights.js'
import type { Name } from './ast.js'

export interface UserStatement {
  readonly kind: 'user'
  readonly position: number
  readonly users: readonly Name[]
  readonly change: UserChange
}

/** What becomes of a user. */
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
  /** A bearer token. `ttlMicros` null: it never ends. */
  | { readonly kind: 'create token'; readonly ttlMicros: number | null }
  /** One token by its id or itself; null: all of them. */
  | { readonly kind: 'drop token'; readonly token: string | null }
  /** A key of line protocol over TCP; null: make a pair. */
  | { readonly kind: 'create key'; readonly publicKey: { readonly x: string; readonly y: string } | null }
  | { readonly kind: 'drop key' }
