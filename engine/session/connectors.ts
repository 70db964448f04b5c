// The list of connectors (such as the one for Kafka) by name, in which the statements that pause and resume a connector
// find it.

import type { Connector } from '../api/engine.js'
import { SqlError } from '../base/errors.js'
import type { Planned } from './plan-helpers.js'

export class Connectors {
  readonly #byName = new Map<string, Connector>()

  add(connector: Connector): void {
    this.#byName.set(connector.name, connector)
  }

  async alter({ name, action, position }: Planned<'connector'>): Promise<void> {
    const connector = this.#byName.get(name)
    if (connector === undefined) throw new SqlError(`connector does not exist [connector=${name}]`, position)
    await (action === 'pause' ? connector.pause() : connector.resume())
  }
}
