// Produces records for a real Kafka: JSON of ten fields, numbered consecutively, distributed over the partitions.

import kafkajs, { type Kafka as KafkaClient, type KafkaConfig } from 'kafkajs'

const { Kafka, logLevel } = kafkajs

const recordsPerBatch = 4000
const statuses = ['running normally', 'waiting', 'in maintenance']
const sites = ['berlin', 'paris', 'rome', 'oslo']

export function kafkaClient(broker: string, config: Partial<KafkaConfig> = {}): KafkaClient {
  return new Kafka({ clientId: 'load', brokers: [broker], logLevel: logLevel.NOTHING, ...config })
}

/** Record number `id`: ten fields, about 190 bytes. */
function readingOf(id: number): string {
  const millis = 1_700_000_000_000 + id
  return `{"id":${id},"device":"device-${id % 1000}","site":"${sites[id % 4]}","temperature":${20 + (id % 977) / 97},"humidity":${(id % 100) / 3},"pressure":${1000.5 + (id % 50)},"ok":${id % 7 !== 0},"count":${id % 65536},"status":"${statuses[id % 3]}","ts":${millis}}`
}

/** What a connector needs to read them. */
export function readingSettings(connector: string, broker: string, topic: string): string[] {
  const settings = {
    'bootstrap.servers': broker,
    topics: topic,
    table: 'readings',
    symbols: 'device,site',
    doubles: 'temperature,humidity,pressure',
    'timestamp.field.name': 'ts',
  }
  return Object.entries(settings).map(([key, value]) => `kafka.${connector}.${key}=${value}`)
}

export async function createTopic(client: KafkaClient, topic: string, partitions: number): Promise<void> {
  const admin = client.admin()
  await admin.connect()
  await admin.createTopics({
    topics: [{ topic, numPartitions: partitions, replicationFactor: 1 }],
    waitForLeaders: false,
  })
  for (let attempt = 0; ; attempt++) {
    const known = await admin.fetchTopicMetadata({ topics: [topic] }).catch(() => null)
    if (known?.topics[0]?.partitions.length === partitions) break
    if (attempt === 200) throw new Error(`the topic was not made [topic=${topic}]`)
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
  await admin.disconnect()
}

export interface Load {
  readonly topic: string
  readonly partitions: number
  readonly from: number
  readonly to: number
  readonly textOf?: (id: number) => string
}

/** Sends records from..to-1; each batch goes to the next partition. */
export async function produce(
  client: KafkaClient,
  { topic, partitions, from, to, textOf = readingOf }: Load,
): Promise<void> {
  const producer = client.producer()
  await producer.connect()
  for (let id = from, batch = 0; id < to; id += recordsPerBatch, batch++) {
    const count = Math.min(recordsPerBatch, to - id)
    const messages = Array.from({ length: count }, (_, index) => ({
      partition: batch % partitions,
      value: textOf(id + index),
    }))
    await producer.send({ topic, messages, acks: 1 })
  }
  await producer.disconnect()
}
