// The source position of a transaction's rows: a Kafka offset or an idempotency key. It is part of the rows' log frame
// (record), so both are durable together or not at all, which makes ingestion exactly-once.
//
// Layout, little-endian:
//
//   kafka             partition i32 | connector bytes u32 | offset u64 | connector | topic
//   idempotency key   the key; not written: a key is stored as `kafka`, with an empty connector and the key as topic
//   none              nothing

import { CorruptionError } from '../base/errors.js'
import { getU64, setU64, utf8, viewOf } from './frame.js'

/** Stored on disk: never renumber. */
export const sourcePositionKinds = { none: 0, kafka: 1, idempotencyKey: 2 } as const

export interface SourcePosition {
  readonly kind: number
  /** Kafka: encodeKafkaPosition. Idempotency key: UTF-8. None: empty. */
  readonly bytes: Uint8Array
}

/** The position up to which a connector has stored one partition of a topic. */
export interface KafkaPosition {
  /** Name of the connector, because two connectors may read the same topic, even of different clusters. */
  readonly connector: string
  readonly topic: string
  readonly partition: number
  /** Offset of the last message whose rows are in the transaction. */
  readonly offset: number
}

/**
 * Connector name of idempotency keys: a request with a key is a stream of one message, with the key as its topic.
 * Configured connectors have non-empty names.
 */
export const keyConnector = ''

const kafkaHeaderBytes = 16
const textEncoder = new TextEncoder()

export const noSourcePosition: SourcePosition = { kind: sourcePositionKinds.none, bytes: new Uint8Array(0) }

export function encodeKafkaPosition({ connector, topic, partition, offset }: KafkaPosition): SourcePosition {
  const connectorName = textEncoder.encode(connector)
  const topicName = textEncoder.encode(topic)
  const bytes = new Uint8Array(kafkaHeaderBytes + connectorName.length + topicName.length)
  const view = viewOf(bytes)
  view.setInt32(0, partition, true)
  view.setUint32(4, connectorName.length, true)
  setU64(view, 8, offset)
  bytes.set(connectorName, kafkaHeaderBytes)
  bytes.set(topicName, kafkaHeaderBytes + connectorName.length)
  return { kind: sourcePositionKinds.kafka, bytes }
}

export function decodeKafkaPosition({ bytes }: SourcePosition): KafkaPosition {
  if (bytes.length < kafkaHeaderBytes) throw new CorruptionError('kafka source position is too short', 'wal', 0)
  const view = viewOf(bytes)
  const topicAt = kafkaHeaderBytes + view.getUint32(4, true)
  if (bytes.length < topicAt) throw new CorruptionError('kafka source position is too short', 'wal', 0)
  return {
    connector: utf8(bytes.subarray(kafkaHeaderBytes, topicAt)),
    topic: utf8(bytes.subarray(topicAt)),
    partition: view.getInt32(0, true),
    offset: getU64(view, 8),
  }
}

export function describeSourcePosition(sourcePosition: SourcePosition): string[] {
  if (sourcePosition.kind === sourcePositionKinds.kafka) {
    const { connector, topic, partition, offset } = decodeKafkaPosition(sourcePosition)
    return [`kafka ${connector === '' ? '' : `${connector} `}${topic}-${partition} offset ${offset}`]
  }
  return sourcePosition.kind === sourcePositionKinds.idempotencyKey
    ? [`idempotency key ${utf8(sourcePosition.bytes)}`]
    : []
}
