// Implements the consumer interface (consumer.ts) with kafkajs; the only module that uses it.
//
// Automatic commits of kafkajs are off. kafkajs retries a failed request only a few times; after that the consumer
// counts as failed, and the connector creates another one after a delay. Log messages of kafkajs go into the server's
// log, a repeated message once in ten minutes.

import { createRequire } from 'node:module'
import { checkServerIdentity } from 'node:tls'
import type { Admin, Batch, KafkaConfig, Consumer as KafkaConsumer, LogEntry, Producer } from 'kafkajs'
import type { Log } from '../../engine/base/log.js'
import { gzipCodec, lz4Codec, snappyCodec, zstdCodec } from './codecs.js'
import {
  type Bounds,
  type Consumer,
  type ConsumerEvents,
  type DeadLetter,
  type FetchedBatch,
  type FetchedRecord,
  placeKey,
  type TopicPartition,
} from './consumer.js'
import { decodeRecord } from './kafkajs-records.js'
import type { ClientOptions, TlsOptions } from './options.js'

const { CompressionCodecs, CompressionTypes, Kafka, logLevel } = loadKafkaJs()

Object.assign(CompressionCodecs, {
  [CompressionTypes.GZIP]: () => gzipCodec,
  [CompressionTypes.Snappy]: () => snappyCodec,
  [CompressionTypes.LZ4]: () => lz4Codec,
  [CompressionTypes.ZSTD]: () => zstdCodec,
})

const retry = { initialRetryTime: 300, maxRetryTime: 5000, retries: 4 }
const connectionTimeoutMs = 5000
const responseBytesMax = 8 * 1024 * 1024
const repeatMs = 600_000

/** Installs our record decoder before loading kafkajs; falls back to its own decoder. */
function loadKafkaJs(): typeof import('kafkajs') {
  const require = createRequire(import.meta.url)
  try {
    const path = require.resolve('kafkajs/src/protocol/recordBatch/record/v0/decoder')
    require(path)
    const loaded = require.cache[path]
    if (loaded !== undefined) loaded.exports = decodeRecord
  } catch (error) {
    // Another version may have moved the decoder; its own one is slower but equivalent.
    if ((error as NodeJS.ErrnoException).code !== 'MODULE_NOT_FOUND') throw error
  }
  return require('kafkajs') as typeof import('kafkajs')
}

/** Receives the log entries of kafkajs. */
export type ClientLog = (entry: LogEntry) => void

export interface KafkaJsOptions {
  readonly client: ClientOptions
  readonly allowedLagMs: number
  readonly log: ClientLog
}

export function kafkaJsConsumer(options: KafkaJsOptions): Consumer {
  return new KafkaJsConsumer(options)
}

class KafkaJsConsumer implements Consumer {
  readonly #options: KafkaJsOptions
  readonly #kafka: InstanceType<typeof Kafka>
  readonly #consumer: KafkaConsumer
  readonly #bounds = new Map<string, Bounds>()
  #producer: Promise<Producer> | null = null
  #topicsTimer: NodeJS.Timeout | null = null

  constructor(options: KafkaJsOptions) {
    const { client, allowedLagMs } = options
    this.#options = options
    this.#kafka = new Kafka(configOf(options))
    this.#consumer = this.#kafka.consumer({
      groupId: client.groupId,
      sessionTimeout: client.sessionTimeoutMs,
      heartbeatInterval: Math.max(500, Math.floor(client.sessionTimeoutMs / 10)),
      allowAutoTopicCreation: false,
      minBytes: client.fetchMinBytes,
      maxBytes: Math.max(responseBytesMax, client.partitionFetchBytes),
      maxBytesPerPartition: client.partitionFetchBytes,
      maxWaitTimeInMs: allowedLagMs,
      retry: { ...retry, restartOnFailure: async () => false },
    })
  }

  async start(events: ConsumerEvents): Promise<void> {
    const consumer = this.#consumer
    consumer.on(consumer.events.GROUP_JOIN, ({ payload }) => {
      const places = Object.entries(payload.memberAssignment).flatMap(([topic, partitions]) =>
        partitions.map((partition) => ({ topic, partition })),
      )
      events.assigned(places)
    })
    consumer.on(consumer.events.REBALANCING, () => events.reassigning())
    consumer.on(consumer.events.CRASH, ({ payload }) => events.failed(payload.error))
    await consumer.connect()
    const { topics, topicPattern } = this.#options.client
    const wanted = topicPattern === '' ? topics : await this.#matching(topicPattern)
    if (wanted.length === 0) throw new Error(`no topic matches ${topicPattern}`)
    await this.#fetchBounds(wanted)
    await consumer.subscribe({ topics: [...wanted], fromBeginning: true })
    await consumer.run({
      autoCommit: false,
      eachBatchAutoResolve: false,
      eachBatch: async ({ batch, heartbeat, resolveOffset, isRunning, isStale }) => {
        if (!isRunning() || isStale()) return
        await events.batch(fetchedBatch(batch), heartbeat)
        resolveOffset(batch.lastOffset())
      },
    })
    if (topicPattern !== '') this.#watchTopics(wanted, events)
  }

  seek(place: TopicPartition, offset: number): void {
    this.#consumer.seek({ topic: place.topic, partition: place.partition, offset: String(offset) })
  }

  pause(places: readonly TopicPartition[]): void {
    this.#consumer.pause(places.map(({ topic, partition }) => ({ topic, partitions: [partition] })))
  }

  resume(places: readonly TopicPartition[]): void {
    this.#consumer.resume(places.map(({ topic, partition }) => ({ topic, partitions: [partition] })))
  }

  knownBounds({ topic, partition }: TopicPartition): Bounds | undefined {
    return this.#bounds.get(placeKey({ topic, partition }))
  }

  async bounds(place: TopicPartition): Promise<Bounds> {
    await this.#fetchBounds([place.topic])
    const found = this.knownBounds(place)
    if (found === undefined)
      throw new Error(`the brokers do not have the partition [${place.topic}-${place.partition}]`)
    return found
  }

  async #fetchBounds(topics: readonly string[]): Promise<void> {
    await this.#asAdmin(async (admin) => {
      for (const topic of topics) {
        for (const { partition, low, high } of await admin.fetchTopicOffsets(topic)) {
          this.#bounds.set(placeKey({ topic, partition }), { first: Number(low), end: Number(high) })
        }
      }
    })
  }

  async commit(offsets: readonly (TopicPartition & { readonly offset: number })[]): Promise<void> {
    await this.#consumer.commitOffsets(
      offsets.map(({ topic, partition, offset }) => ({ topic, partition, offset: String(offset) })),
    )
  }

  async send(topic: string, records: readonly DeadLetter[]): Promise<void> {
    this.#producer ??= this.#connectedProducer()
    try {
      const producer = await this.#producer
      const messages = records.map(({ key, value, headers }) => ({
        key: asBuffer(key),
        value: asBuffer(value),
        headers,
      }))
      await producer.send({ topic, messages, acks: -1 })
    } catch (error) {
      const failed = this.#producer
      this.#producer = null
      failed?.then((producer) => producer.disconnect()).catch(() => {})
      throw error
    }
  }

  async stop(): Promise<void> {
    if (this.#topicsTimer !== null) clearInterval(this.#topicsTimer)
    await this.#consumer.disconnect()
    const producer = await this.#producer?.catch(() => null)
    await producer?.disconnect()
  }

  async #connectedProducer(): Promise<Producer> {
    const producer = this.#kafka.producer({ allowAutoTopicCreation: true })
    await producer.connect()
    return producer
  }

  async #matching(pattern: string): Promise<string[]> {
    const expression = new RegExp(`^(?:${pattern})$`)
    const topics = await this.#asAdmin((admin) => admin.listTopics())
    return topics.filter((topic) => expression.test(topic)).sort()
  }

  /** Watches for new topics that match the pattern; the group is then joined again with them. */
  #watchTopics(known: readonly string[], events: ConsumerEvents): void {
    const { topicPattern, metadataMaxAgeMs } = this.#options.client
    const look = async (): Promise<void> => {
      const found = await this.#matching(topicPattern)
      if (found.some((topic) => !known.includes(topic))) events.outdated()
    }
    this.#topicsTimer = setInterval(() => void look().catch(() => {}), metadataMaxAgeMs)
  }

  async #asAdmin<Result>(work: (admin: Admin) => Promise<Result>): Promise<Result> {
    const admin = this.#kafka.admin()
    try {
      await admin.connect()
      return await work(admin)
    } finally {
      await admin.disconnect().catch(() => {})
    }
  }
}

function fetchedBatch(batch: Batch & { readonly fetchedOffset?: string }): FetchedBatch {
  return {
    topic: batch.topic,
    partition: batch.partition,
    records: batch.messages as readonly FetchedRecord[],
    fetchedOffset: Number(batch.fetchedOffset ?? batch.firstOffset() ?? 0),
    nextOffset: Number(batch.lastOffset()) + 1,
    highWatermark: Number(batch.highWatermark),
  }
}

function asBuffer(bytes: Uint8Array | null): Buffer | null {
  return bytes === null ? null : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length)
}

function configOf({ client, log }: KafkaJsOptions): KafkaConfig {
  const { sasl, tls } = client
  return {
    clientId: client.clientId,
    brokers: [...client.brokers],
    connectionTimeout: connectionTimeoutMs,
    retry,
    logLevel: logLevel.WARN,
    logCreator: () => log,
    ...(tls === null ? {} : { ssl: tlsOptions(tls) }),
    ...(sasl === null ? {} : { sasl: { mechanism: sasl.mechanism, username: sasl.username, password: sasl.password } }),
  } as KafkaConfig
}

function tlsOptions({ ca, certificate, key, keyPassword, verifyHost }: TlsOptions): NonNullable<KafkaConfig['ssl']> {
  return {
    ...(ca === '' ? {} : { ca: [ca] }),
    ...(certificate === '' ? {} : { cert: certificate }),
    ...(key === '' ? {} : { key }),
    ...(keyPassword === '' ? {} : { passphrase: keyPassword }),
    checkServerIdentity: verifyHost ? checkServerIdentity : () => undefined,
  }
}

/** Logs each message once in ten minutes, with its error, across all clients. */
export function clientLog(log: Log, logger: string): ClientLog {
  const seen = new Map<string, number>()
  return ({ log: { message, error } }) => {
    const text = typeof error === 'string' && error !== '' ? `${message}: ${error}` : message
    const now = performance.now()
    if (now - (seen.get(text) ?? Number.NEGATIVE_INFINITY) < repeatMs) return
    if (seen.size > 1000) seen.clear()
    seen.set(text, now)
    log('W', logger, text)
  }
}
