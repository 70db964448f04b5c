// What the connector needs of a Kafka client: small enough for a scripted one in tests. kafkajs-client.ts is the real one.

export interface TopicPartition {
  readonly topic: string
  readonly partition: number
}

/** As kafkajs hands records on: offsets and times are numbers, or decimal texts. */
export interface FetchedRecord {
  readonly key: Uint8Array | null
  readonly value: Uint8Array | null
  readonly offset: string | number
  /** Milliseconds. */
  readonly timestamp: string | number
}

export interface FetchedBatch extends TopicPartition {
  readonly records: readonly FetchedRecord[]
  /** Of the first record that was asked for, and behind the last one of the batch, those without records included. */
  readonly fetchedOffset: number
  readonly nextOffset: number
  /** End of the partition. */
  readonly highWatermark: number
}

export interface ConsumerEvents {
  /** The group has given us these partitions, and no others. Seeks made within the call count for the first fetch. */
  assigned(partitions: readonly TopicPartition[]): void
  /** The batch is taken when the promise resolves; the next one of the partition begins behind it. */
  batch(batch: FetchedBatch, heartbeat: () => Promise<void>): Promise<void>
  /** There are topics that this consumer does not know of: another one is to be made. */
  outdated(): void
  /** The client has given up; it is to be stopped. */
  failed(error: Error): void
}

/** First offset that is there, and the one behind the last. */
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
  /** Resolves when the group is joined. Rejects when the brokers cannot be reached or refuse us. */
  start(events: ConsumerEvents): Promise<void>
  seek(place: TopicPartition, offset: number): void
  pause(places: readonly TopicPartition[]): void
  resume(places: readonly TopicPartition[]): void
  /** What bounds() would have said before start() resolved; undefined when nobody asked. */
  knownBounds(place: TopicPartition): Bounds | undefined
  bounds(place: TopicPartition): Promise<Bounds>
  /** Tells the group, for others to see, how far we are: offsets behind the last stored record. */
  commit(offsets: readonly (TopicPartition & { readonly offset: number })[]): Promise<void>
  send(topic: string, letters: readonly DeadLetter[]): Promise<void>
  stop(): Promise<void>
}
