// Connectors, such as one for Kafka, as seen by the engine's main thread. The class Connectors finds a connector by
// name for ALTER CONNECTOR .. PAUSE and RESUME. The class Positions remembers for each connector up to which position,
// such as a Kafka offset, the rows of its source are stored.

import type { Connector } from '../api/engine.js'
import { SqlError } from '../base/errors.js'
import type { Receipt } from '../storage/jobs/messages.js'
import { type KafkaPosition, keyConnector } from '../wal/source-position.js'
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

/**
 * How far each connector has stored its source, such as the stored offset of each Kafka partition, so that it can
 * continue there. The writer reports the positions of the log at its start; after that, each acknowledged request
 * advances one.
 */
export class Positions {
  readonly #connectors = new Map<string, Map<string, KafkaPosition>>()

  note({ connector, topic, partition, offset }: KafkaPosition): void {
    const streams = this.#connectors.get(connector) ?? new Map<string, KafkaPosition>()
    this.#connectors.set(connector, streams)
    streams.set(`${partition} ${topic}`, { connector, topic, partition, offset })
  }

  /** Records the position of a request that was acknowledged. */
  noteReceipt(sourcePosition: KafkaPosition, { error, existed }: Pick<Receipt, 'error' | 'existed'>): void {
    if (error === null && !existed && sourcePosition.connector !== keyConnector) this.note(sourcePosition)
  }

  of(connector: string): KafkaPosition[] {
    return [...(this.#connectors.get(connector)?.values() ?? [])]
  }
}
