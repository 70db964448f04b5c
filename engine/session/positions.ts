// Positions: how far each connector has stored its source, such as the stored offset of each Kafka partition, so that
// the connector can continue there. The writer reports the positions of the log at its start; after that, each
// acknowledged request advances one.

import type { Receipt } from '../storage/jobs/messages.js'
import type { KafkaOrigin as KafkaPosition } from '../wal/origin.js'
import { keyConnector } from '../wal/origin.js'

export class Positions {
  readonly #connectors = new Map<string, Map<string, KafkaPosition>>()

  note({ connector, topic, partition, offset }: KafkaPosition): void {
    const streams = this.#connectors.get(connector) ?? new Map<string, KafkaPosition>()
    this.#connectors.set(connector, streams)
    streams.set(`${partition} ${topic}`, { connector, topic, partition, offset })
  }

  /** Records the position of a request that was acknowledged. */
  noteReceipt(origin: KafkaPosition, { error, existed }: Pick<Receipt, 'error' | 'existed'>): void {
    if (error === null && !existed && origin.connector !== keyConnector) this.note(origin)
  }

  of(connector: string): KafkaPosition[] {
    return [...(this.#connectors.get(connector)?.values() ?? [])]
  }
}
