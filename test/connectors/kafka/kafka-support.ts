// Helpers for tests of the Kafka connector: options, records, and lines as text.

import type { FetchedRecord } from '../../../connectors/kafka/consumer.js'
import type { KafkaOptions, MappingOptions } from '../../../connectors/kafka/options.js'

export function mapping(changes: Partial<MappingOptions> = {}): MappingOptions {
  return {
    table: '',
    keyFormat: 'string',
    valueFormat: 'json',
    schemasEnabled: false,
    includeKey: true,
    keyPrefix: 'key',
    valuePrefix: '',
    symbols: [],
    doubles: [],
    timestampFields: [],
    timestampUnits: 'auto',
    timestampNative: false,
    timestampStringFields: [],
    timestampFormat: '',
    skipUnsupported: false,
    csvColumns: [],
    csvDelimiter: ',',
    recordColumns: false,
    ...changes,
  }
}

export function kafkaOptions(changes: Partial<KafkaOptions> = {}): KafkaOptions {
  return {
    name: 'plant',
    enabled: true,
    client: {
      ...{ brokers: ['broker:9092'], topics: ['ticks'], topicPattern: '', groupId: 'g', clientId: 'c' },
      ...{ offsetReset: 'earliest', tls: null, sasl: null, fetchMinBytes: 1, partitionFetchBytes: 1024 },
      ...{ sessionTimeoutMs: 30_000, metadataMaxAgeMs: 60_000 },
    },
    mapping: mapping(),
    registry: { url: '', credentials: '' },
    ...{ widenNumbers: false, allowedLagMs: 10, maxRetries: -1, retryBackoffMs: 1, deadLetterTopic: '' },
    offsetsInLake: false,
    ...changes,
  }
}

export function record(value: string | Uint8Array | null, changes: Partial<FetchedRecord> = {}): FetchedRecord {
  return {
    key: null,
    value: typeof value === 'string' ? Buffer.from(value) : value,
    offset: '0',
    timestamp: '1700000000123',
    ...changes,
  }
}

/** Lines as text; bytes of binary values show as characters. */
export function textOf(lines: Uint8Array): string {
  return Buffer.from(lines).toString('latin1')
}
