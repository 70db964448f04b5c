// Reports records that cannot become rows: to sys.rejects and, if configured, unchanged to the dead-letter topic,
// with the headers that Kafka Connect uses.

import type { Consumer, TopicPartition } from './consumer.js'
import type { EngineClient } from './engine-client.js'
import type { KafkaOptions } from './options.js'
import type { BadRecord } from './partition-stream.js'

const recordsPerSend = 500

export class DeadLetters {
  count = 0
  readonly #options: KafkaOptions
  readonly #engine: EngineClient
  readonly #consumer: () => Consumer | null

  constructor(options: KafkaOptions, engine: EngineClient, consumer: () => Consumer | null) {
    this.#options = options
    this.#engine = engine
    this.#consumer = consumer
  }

  /** Rejects when the topic does not accept them; then none of them is reported in sys.rejects either. */
  async report(place: TopicPartition, bad: readonly BadRecord[]): Promise<void> {
    const { deadLetterTopic } = this.#options
    if (deadLetterTopic !== '') {
      for (let from = 0; from < bad.length; from += recordsPerSend) {
        await this.#send(deadLetterTopic, place, bad.slice(from, from + recordsPerSend))
      }
    }
    this.count += bad.length
    this.#engine.rejects(
      bad.map(({ record, reason, table }) => ({ ...place, offset: Number(record.offset), table, reason })),
    )
  }

  async #send(topic: string, place: TopicPartition, bad: readonly BadRecord[]): Promise<void> {
    const consumer = this.#consumer()
    if (consumer === null) throw new Error('the brokers cannot be reached')
    const records = bad.map(({ record, reason }) => ({
      key: record.key,
      value: record.value,
      headers: {
        '__connect.errors.topic': place.topic,
        '__connect.errors.partition': String(place.partition),
        '__connect.errors.offset': String(record.offset),
        '__connect.errors.connector.name': this.#options.name,
        '__connect.errors.exception.message': reason,
      },
    }))
    await consumer.send(topic, records)
  }
}
