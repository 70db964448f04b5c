// Who may come in, as gateways see it: users that the settings name. Those that SQL has made are the engine's.

import type { Rights } from '../../engine/base/rights.js'
import type { UserDirectory } from '../../engine/engine.js'

/** Somebody who has been let in. */
export interface Principal {
  readonly user: string
  readonly rights: Rights
}

/** A user that settings name. */
export interface ConfiguredUser extends Principal {
  readonly password: string
}

/** Nobody was made by SQL. */
export const noUsers: UserDirectory = {
  epoch: 0,
  user: () => undefined,
  byToken: () => undefined,
  byLineKey: () => undefined,
  onChange: () => {},
}
