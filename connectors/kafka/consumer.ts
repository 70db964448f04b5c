// The Kafka client interface that the connector uses, small enough to fake in tests. kafkajs-client.ts implements
// it.

export interface TopicPartition {
  readonly topic: string
  readonly partition: number
}

export function placeKey({ topic, partition }: TopicPartition): string {
  return `${partition} ${topic}`
}

/** A record as kafkajs returns it: offsets and timestamps are numbers or decimal strings. */
export interface FetchedRecord {
  readonly key: Uint8Array | null
  readonly value: Uint8Array | null
  readonly offset: string | number
  /** Milliseconds. */
  readonly timestamp: string | number
}

export interface FetchedBatch extends TopicPartition {
  readonly records: readonly FetchedRecord[]
  /**
   * Offset that was requested; `endOffset` follows the last one of the batch, including offsets without records.
   */
  readonly fetchedOffset: number
  readonly nextOffset: number
  /** End of the partition. */
  readonly highWatermark: number
}

export interface ConsumerEvents {
  /** The group assigned exactly these partitions. Seeks within the call apply to the first fetch. */
  assigned(partitions: readonly TopicPartition[]): void
  /** The group assigns partitions anew. */
  reassigning(): void
  /** The batch is consumed when the promise resolves; the next one of the partition follows it. */
  batch(batch: FetchedBatch, heartbeat: () => Promise<void>): Promise<void>
  /** New topics exist that this consumer does not know; a new consumer must be created. */
  outdated(): void
  /** The client has given up and must be stopped. */
  failed(error: Error): void
}

/** First available offset, and the one after the last. */
export interface Bounds {
  readonly first: number
  readonly end: number
}

export interface DeadLetter {
  readonly key: Uint8Array | null
  readonly value: Uint8Array | null
  readonly headers: Readonly<Record<string, string>>
}

export interface Consumer {
  /** Resolves when the group is joined. Rejects when the brokers cannot be reached or reject the client. */
  start(events: ConsumerEvents): Promise<void>
  seek(place: TopicPartition, offset: number): void
  pause(places: readonly TopicPartition[]): void
  resume(places: readonly TopicPartition[]): void
  /** Bounds that were fetched before start() resolved; undefined when they were not requested. */
  knownBounds(place: TopicPartition): Bounds | undefined
  bounds(place: TopicPartition): Promise<Bounds>
  /** Commits the offsets after the last stored records to the group, for monitoring. */
  commit(offsets: readonly (TopicPartition & { readonly offset: number })[]): Promise<void>
  send(topic: string, records: readonly DeadLetter[]): Promise<void>
  stop(): Promise<void>
}
