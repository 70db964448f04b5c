// Options of a Kafka connector: plain data that can be sent to its thread. The names are those of the settings
// `kafka.<name>.*`, which match QuestDB's Kafka connector where the option is the same.

export type TimestampUnits = 'auto' | 'seconds' | 'millis' | 'micros' | 'nanos'
/** Values in the wire format of schema registries. */
export const registryFormats = ['avro', 'json_schema', 'protobuf'] as const
export type RegistryFormat = (typeof registryFormats)[number]
type KeyFormat = 'string' | 'json' | 'int' | 'long' | 'double' | 'none' | RegistryFormat
type ValueFormat = 'json' | 'line' | 'csv' | 'string' | RegistryFormat

export interface KafkaOptions {
  /**
   * Identifies the connector in settings, SQL and stored offsets; a renamed connector starts from the beginning.
   */
  readonly name: string
  readonly enabled: boolean
  readonly client: ClientOptions
  readonly mapping: MappingOptions
  readonly registry: RegistryOptions
  /** A column of whole numbers becomes DOUBLE when a number with a fraction arrives. */
  readonly widenNumbers: boolean
  /** How long the broker may collect records before it responds to a fetch. */
  readonly allowedLagMs: number
  /** Attempts after which the connector gives up; -1: never. */
  readonly maxRetries: number
  readonly retryBackoffMs: number
  /** Empty: bad records are reported in sys.rejects only. */
  readonly deadLetterTopic: string
  /** Servers of the group append to one Iceberg table, whose snapshots have the offsets. */
  readonly offsetsInLake: boolean
}

/** Columns that say from which record a row is, if the mapping has `recordColumns`. */
export const recordColumns = { topic: 'kafka_topic', partition: 'kafka_partition', offset: 'kafka_offset' } as const

export interface ClientOptions {
  readonly brokers: readonly string[]
  readonly topics: readonly string[]
  /** A regular expression instead of `topics`; empty: none. */
  readonly topicPattern: string
  readonly groupId: string
  readonly clientId: string
  /** Where to start a partition without a stored offset. */
  readonly offsetReset: 'earliest' | 'latest'
  readonly tls: TlsOptions | null
  readonly sasl: SaslOptions | null
  readonly fetchMinBytes: number
  readonly partitionFetchBytes: number
  readonly sessionTimeoutMs: number
  /** How often to look for topics that match the pattern. */
  readonly metadataMaxAgeMs: number
}

/** Certificates and keys as PEM strings. */
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
  /** Empty: the formats that need one are not available. */
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
  /** JSON values are envelopes {schema, payload}. */
  readonly schemasEnabled: boolean
  readonly includeKey: boolean
  readonly keyPrefix: string
  readonly valuePrefix: string
  readonly symbols: readonly string[]
  readonly doubles: readonly string[]
  /** One: that field. Several: their concatenated values, parsed by the format. None: the time of arrival. */
  readonly timestampFields: readonly string[]
  readonly timestampUnits: TimestampUnits
  /** Use the timestamp of the Kafka record. */
  readonly timestampNative: boolean
  readonly timestampStringFields: readonly string[]
  /** Pattern of timestamp strings; empty: ISO 8601. */
  readonly timestampFormat: string
  readonly skipUnsupported: boolean
  readonly csvColumns: readonly CsvColumn[]
  readonly csvDelimiter: string
  /** Rows have the columns that `recordColumns` names. */
  readonly recordColumns: boolean
}

/** Of the timestamps in lines. */
export function precisionOf({ mapping }: KafkaOptions): 'n' | 'u' | 'ms' | 's' {
  const precisions = { auto: 'n', nanos: 'n', micros: 'u', millis: 'ms', seconds: 's' } as const
  return precisions[mapping.timestampUnits]
}
