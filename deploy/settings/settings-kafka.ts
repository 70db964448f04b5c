// Table of the settings of one Kafka connector: `kafka.<name>.<key>`. A configuration may define any number of
// connectors. Keys match QuestDB's Kafka connector and Kafka's own clients where the option is the same.

import type { SettingsTable } from './setting-row.js'

const MIB = 1024 ** 2

export const kafkaSettings = {
  enabled: {
    type: 'boolean',
    initial: 'true',
    description: 'Start consuming with the server; otherwise the connector starts paused.',
  },
  'bootstrap.servers': {
    type: 'list',
    initial: '',
    description: 'Bootstrap brokers, `host:port`, separated by commas. Required.',
  },
  topics: {
    type: 'list',
    initial: '',
    description: 'Topics, separated by commas. This or `topics.regex` is required.',
  },
  'topics.regex': {
    type: 'words',
    initial: '',
    description:
      'Regular expression that must match the whole topic name; new topics are detected after `metadata.max.age.ms`.',
  },
  'group.id': { type: 'words', initial: '', description: 'Consumer group; empty: `penstock-<name>`.' },
  'client.id': { type: 'words', initial: 'penstock', description: 'Client name that brokers see.' },
  'auto.offset.reset': {
    type: 'choice',
    initial: 'earliest',
    choices: ['earliest', 'latest'],
    description: 'Where to start a partition without a stored offset. Offsets committed by the group are ignored.',
  },
  'offsets.in.lake': {
    type: 'boolean',
    initial: 'false',
    description:
      'Keep offsets in the Iceberg table of `table` (`LAKE ON`, `lake.catalog.url`), so that servers of one group divide the partitions and each record is in it once. Rows get the columns `kafka_topic`, `kafka_partition` and `kafka_offset`.',
  },
  'security.protocol': {
    type: 'choice',
    initial: 'PLAINTEXT',
    choices: ['PLAINTEXT', 'SSL', 'SASL_PLAINTEXT', 'SASL_SSL'],
    description: 'Whether connections use TLS (`SSL`) and SASL.',
  },
  'sasl.mechanism': {
    type: 'choice',
    initial: 'PLAIN',
    choices: ['PLAIN', 'SCRAM-SHA-256', 'SCRAM-SHA-512'],
    description: 'SASL mechanism.',
  },
  'sasl.username': { type: 'words', initial: '', description: 'SASL user.' },
  'sasl.password': { type: 'secret', initial: '', description: 'SASL password.' },
  'ssl.ca.location': {
    type: 'words',
    initial: '',
    description: 'PEM file of the certificate authorities for broker certificates; empty: those of the runtime.',
  },
  'ssl.certificate.location': { type: 'words', initial: '', description: 'PEM file of the client certificate.' },
  'ssl.key.location': { type: 'words', initial: '', description: 'PEM file of the private key.' },
  'ssl.key.password': { type: 'secret', initial: '', description: 'Password of the key.' },
  'ssl.endpoint.identification.algorithm': {
    type: 'choice',
    initial: 'https',
    choices: ['https', 'none'],
    description: "`https` verifies that the certificate matches the broker's name; `none` does not.",
  },
  table: {
    type: 'words',
    initial: '',
    description: 'Table name, with `${topic}`, `${key}` and `${partition}`; empty: the topic.',
  },
  'key.converter': {
    type: 'choice',
    initial: 'string',
    choices: ['string', 'json', 'avro', 'json_schema', 'protobuf', 'int', 'long', 'double', 'none'],
    aliases: 'connect',
    description: 'Format of keys.',
  },
  'value.converter': {
    type: 'choice',
    initial: 'json',
    choices: ['json', 'line', 'csv', 'avro', 'json_schema', 'protobuf', 'string'],
    aliases: 'connect',
    description: 'Format of values; `line` is line protocol. Class names of Kafka Connect converters are accepted.',
  },
  'value.converter.schemas.enable': {
    type: 'boolean',
    initial: 'false',
    description:
      'JSON records are envelopes of `schema` and `payload`: the payload is stored, with the types of the schema.',
  },
  'value.converter.schema.registry.url': {
    type: 'words',
    initial: '',
    description: 'URL of the schema registry; required for `avro`, `json_schema` and `protobuf`.',
  },
  'value.converter.basic.auth.user.info': {
    type: 'secret',
    initial: '',
    description: '`user:password` for the schema registry.',
  },
  'value.csv.columns': {
    type: 'list',
    initial: '',
    description:
      'Columns of CSV records, `name:type` each; types are string, symbol, long, double, boolean, timestamp. Required for `csv`.',
  },
  'value.csv.delimiter': {
    type: 'words',
    initial: ',',
    description: 'Character between the fields of CSV records; `tab` for a tab.',
  },
  'include.key': { type: 'boolean', initial: 'true', description: 'Store keys as columns.' },
  'key.prefix': {
    type: 'words',
    initial: 'key',
    description: 'Column of a simple key; column prefix of an object.',
  },
  'value.prefix': {
    type: 'words',
    initial: '',
    description: 'Column prefix of values; for a simple value its column, by default `value`.',
  },
  symbols: { type: 'list', initial: '', description: 'Columns of type SYMBOL.' },
  doubles: { type: 'list', initial: '', description: 'Columns whose integers are stored as DOUBLE.' },
  'widen.numbers': {
    type: 'boolean',
    initial: 'false',
    description:
      'When a number with a fraction arrives for a column of whole numbers (BYTE, SHORT, INT, LONG), change the type of the column to DOUBLE; otherwise its record is rejected. Whole numbers above 2^53 lose digits.',
  },
  'timestamp.field.name': {
    type: 'list',
    initial: '',
    description:
      'Field of the designated timestamp; several, separated by commas, are concatenated and parsed with `timestamp.string.format`. Empty: the time of arrival.',
  },
  'timestamp.units': {
    type: 'choice',
    initial: 'auto',
    choices: ['auto', 'seconds', 'millis', 'micros', 'nanos'],
    description: 'Unit of numeric timestamps; `auto` detects it from their magnitude.',
  },
  'timestamp.kafka.native': {
    type: 'boolean',
    initial: 'false',
    description: 'Use the timestamp of the Kafka record as designated timestamp.',
  },
  'timestamp.string.fields': { type: 'list', initial: '', description: 'Columns whose strings are timestamps.' },
  'timestamp.string.format': {
    type: 'words',
    initial: 'yyyy-MM-ddTHH:mm:ss.SSSUUUZ',
    description: 'Format of timestamp strings. The default accepts every form of ISO 8601.',
  },
  'skip.unsupported.types': {
    type: 'boolean',
    initial: 'false',
    description: 'Skip values that no column type can hold; otherwise their record is rejected.',
  },
  'allowed.lag': {
    type: 'duration',
    initial: '1s',
    min: 1,
    max: 60_000,
    description: 'How long brokers wait for `fetch.min.bytes` before they respond.',
  },
  'fetch.min.bytes': {
    type: 'size',
    initial: '1',
    min: 1,
    max: 64 * MIB,
    description: 'Bytes that brokers collect before they respond; 1 responds at the first record.',
  },
  'max.partition.fetch.bytes': {
    type: 'size',
    initial: '1m',
    min: 1024,
    max: 64 * MIB,
    description: 'Bytes of one partition in one response.',
  },
  'session.timeout.ms': {
    type: 'duration',
    initial: '10s',
    min: 6000,
    max: 1_800_000,
    description: 'The group reassigns partitions after this time without a heartbeat.',
  },
  'metadata.max.age.ms': {
    type: 'duration',
    initial: '1m',
    min: 1000,
    description: 'How often to look for topics that match `topics.regex`.',
  },
  'max.retries': {
    type: 'integer',
    initial: '-1',
    min: -1,
    description:
      'Attempts after which the connector gives up (`ALTER CONNECTOR <name> RESUME` starts it again); -1: never.',
  },
  'retry.backoff.ms': {
    type: 'duration',
    initial: '3s',
    min: 10,
    description: 'Delay before the first retry; it doubles up to a minute.',
  },
  'errors.deadletterqueue.topic.name': {
    type: 'words',
    initial: '',
    description: 'Dead-letter topic for records that cannot be stored; they are reported in `sys.rejects` either way.',
  },
} as const satisfies SettingsTable
