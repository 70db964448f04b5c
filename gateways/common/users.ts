// Types of authenticated principals and of users that the settings configure. The engine stores users created by
// SQL.

import type { Rights } from '../../engine/base/rights.js'
import type { UserDirectory } from '../../engine/engine.js'

/** An authenticated client. */
export interface Principal {
  readonly user: string
  readonly rights: Rights
}

/** A user that the settings configure. */
export interface ConfiguredUser extends Principal {
  readonly password: string
}

/** A directory without users. */
export const noUsers: UserDirectory = {
  epoch: 0,
  user: () => undefined,
  byToken: () => undefined,
  byLineKey: () => undefined,
  onChange: () => {},
}
