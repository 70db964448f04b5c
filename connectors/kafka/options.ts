// What a Kafka connector is told: plain data, so that it can be handed to the connector's thread. Names are those of the
// settings `kafka.<name>.*`, which are those of QuestDB's Kafka connector where the option is the same.

export type TimestampUnits = 'auto' | 'seconds' | 'millis' | 'micros' | 'nanos'
type KeyFormat = 'string' | 'json' | 'avro' | 'int' | 'long' | 'double' | 'none'
type ValueFormat = 'json' | 'line' | 'csv' | 'avro' | 'string'

export interface KafkaOptions {
  /** In settings, SQL and the origins of rows: whoever renames a connector begins anew. */
  readonly name: string
  readonly enabled: boolean
  readonly client: ClientOptions
  readonly mapping: MappingOptions
  readonly registry: RegistryOptions
  /** The broker gathers records up to this time before it answers. */
  readonly allowedLagMs: number
  /** Attempts after which the connector gives up; -1: never. */
  readonly maxRetries: number
  readonly retryBackoffMs: number
  /** Empty: bad records are only noted in sys.rejects. */
  readonly deadLetterTopic: string
}

export interface ClientOptions {
  readonly brokers: readonly string[]
  readonly topics: readonly string[]
  /** A regular expression instead of `topics`; empty without one. */
  readonly topicPattern: string
  readonly groupId: string
  readonly clientId: string
  /** Where a partition begins of which nothing is stored. */
  readonly offsetReset: 'earliest' | 'latest'
  readonly tls: TlsOptions | null
  readonly sasl: SaslOptions | null
  readonly fetchMinBytes: number
  readonly partitionFetchBytes: number
  readonly sessionTimeoutMs: number
  /** How often the topics of a pattern are looked for. */
  readonly metadataMaxAgeMs: number
}

/** PEM texts. */
export interface TlsOptions {
  readonly ca: string
  readonly certificate: string
  readonly key: string
  readonly keyPassword: string
  readonly verifyHost: boolean
}

export interface SaslOptions {
  readonly mechanism: 'plain' | 'scram-sha-256' | 'scram-sha-512'
  readonly username: string
  readonly password: string
}

export interface RegistryOptions {
  /** Empty: Avro cannot be read. */
  readonly url: string
  /** `user:password`; empty: none. */
  readonly credentials: string
}

export interface CsvColumn {
  readonly name: string
  readonly type: 'string' | 'symbol' | 'long' | 'double' | 'boolean' | 'timestamp'
}

export interface MappingOptions {
  /** Table name with `${topic}`, `${key}`, `${partition}`; empty: the topic. */
  readonly table: string
  readonly keyFormat: KeyFormat
  readonly valueFormat: ValueFormat
  /** A JSON value is an envelope {schema, payload}. */
  readonly schemasEnabled: boolean
  readonly includeKey: boolean
  readonly keyPrefix: string
  readonly valuePrefix: string
  readonly symbols: readonly string[]
  readonly doubles: readonly string[]
  /** One: a field. Several: their texts joined and read by the format. None: the time of arrival. */
  readonly timestampFields: readonly string[]
  readonly timestampUnits: TimestampUnits
  /** The timestamp of the Kafka record. */
  readonly timestampNative: boolean
  readonly timestampStringFields: readonly string[]
  /** Pattern of timestamps in texts; empty: ISO 8601. */
  readonly timestampFormat: string
  readonly skipUnsupported: boolean
  readonly csvColumns: readonly CsvColumn[]
  readonly csvDelimiter: string
}
