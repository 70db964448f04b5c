// Who may come in, as gateways see it: users that the configuration names and users that SQL has made.

import type { KeyObject } from 'node:crypto'
import type { PasswordVerifier } from '../../engine/base/password.js'
import type { Rights } from '../../engine/base/rights.js'

/** Somebody who has been let in. */
export interface Principal {
  readonly user: string
  readonly rights: Rights
}

/** A user that settings name. */
export interface ConfiguredUser extends Principal {
  readonly password: string
}

/** A user that SQL made and that may log in. */
export interface StoredUser extends Principal {
  /** Null: this user has no password. */
  readonly verifier: PasswordVerifier | null
}

/** The users of the engine; what is asked for is looked up at once. */
export interface UserDirectory {
  /** Grows with every change: what was remembered about users before it is stale. */
  readonly epoch: number
  user(name: string): StoredUser | undefined
  /** Whom a bearer token belongs to, if it is still good. */
  byToken(token: string): StoredUser | undefined
  /** Whom a key of line protocol belongs to, and with what its signatures are checked. */
  byLineKey(keyId: string): { readonly user: StoredUser; readonly key: KeyObject } | undefined
}

/** Nobody was made by SQL. */
export const noUsers: UserDirectory = {
  epoch: 0,
  user: () => undefined,
  byToken: () => undefined,
  byLineKey: () => undefined,
}
