// Settings of one Kafka connector: `kafka.<name>.<key>`. Any number of connectors may stand in a configuration. Keys are
// those of QuestDB's Kafka connector and of Kafka's own clients where the option is the same.

import type { SettingsTable } from './setting-row.js'

const MIB = 1024 ** 2

export const kafkaSettings = {
  enabled: {
    type: 'boolean',
    initial: 'true',
    says: 'Consume from the start on; otherwise the connector begins paused.',
  },
  'bootstrap.servers': {
    type: 'list',
    initial: '',
    says: 'Brokers to begin with, `host:port`, separated by commas. Required.',
  },
  topics: { type: 'list', initial: '', says: 'Topics, separated by commas. This or `topics.regex` is required.' },
  'topics.regex': {
    type: 'words',
    initial: '',
    says: 'Regular expression that the whole name of a topic matches; new topics are found after `metadata.max.age.ms`.',
  },
  'group.id': { type: 'words', initial: '', says: 'Consumer group; empty: `penstock-<name>`.' },
  'client.id': { type: 'words', initial: 'penstock', says: 'Name under which brokers know the client.' },
  'auto.offset.reset': {
    type: 'choice',
    initial: 'earliest',
    choices: ['earliest', 'latest'],
    says: 'Where a partition begins of which nothing is stored. What the group has committed does not count.',
  },
  'security.protocol': {
    type: 'choice',
    initial: 'PLAINTEXT',
    choices: ['PLAINTEXT', 'SSL', 'SASL_PLAINTEXT', 'SASL_SSL'],
    says: 'Whether connections use TLS (`SSL`) and SASL.',
  },
  'sasl.mechanism': {
    type: 'choice',
    initial: 'PLAIN',
    choices: ['PLAIN', 'SCRAM-SHA-256', 'SCRAM-SHA-512'],
    says: 'How SASL authenticates.',
  },
  'sasl.username': { type: 'words', initial: '', says: 'User of SASL.' },
  'sasl.password': { type: 'secret', initial: '', says: 'Password of SASL.' },
  'ssl.ca.location': {
    type: 'words',
    initial: '',
    says: 'PEM file of the authorities that brokers are checked against; empty: those of the runtime.',
  },
  'ssl.certificate.location': { type: 'words', initial: '', says: 'PEM file of the client certificate.' },
  'ssl.key.location': { type: 'words', initial: '', says: 'PEM file of its key.' },
  'ssl.key.password': { type: 'secret', initial: '', says: 'Password of the key.' },
  'ssl.endpoint.identification.algorithm': {
    type: 'choice',
    initial: 'https',
    choices: ['https', 'none'],
    says: '`https` checks that the certificate names the broker; `none` does not.',
  },
  table: {
    type: 'words',
    initial: '',
    says: 'Table name, with `${topic}`, `${key}` and `${partition}`; empty: the topic.',
  },
  'key.converter': {
    type: 'choice',
    initial: 'string',
    choices: ['string', 'json', 'avro', 'int', 'long', 'double', 'none'],
    aliases: 'connect',
    says: 'Format of keys.',
  },
  'value.converter': {
    type: 'choice',
    initial: 'json',
    choices: ['json', 'line', 'csv', 'avro', 'string'],
    aliases: 'connect',
    says: 'Format of values; `line` is line protocol. The class names of Kafka Connect are understood.',
  },
  'value.converter.schemas.enable': {
    type: 'boolean',
    initial: 'false',
    says: 'JSON records are envelopes of `schema` and `payload`: the payload is taken, with the types that the schema names.',
  },
  'value.converter.schema.registry.url': { type: 'words', initial: '', says: 'Schema registry that Avro needs.' },
  'value.converter.basic.auth.user.info': {
    type: 'secret',
    initial: '',
    says: '`user:password` for the schema registry.',
  },
  'value.csv.columns': {
    type: 'list',
    initial: '',
    says: 'Columns of CSV records, `name:type` each; types are string, symbol, long, double, boolean, timestamp. Required for `csv`.',
  },
  'value.csv.delimiter': {
    type: 'words',
    initial: ',',
    says: 'Character between the fields of CSV records; `tab` for a tab.',
  },
  'include.key': { type: 'boolean', initial: 'true', says: 'Keys become columns.' },
  'key.prefix': {
    type: 'words',
    initial: 'key',
    says: 'Column of a simple key, and the prefix of the columns of an object.',
  },
  'value.prefix': {
    type: 'words',
    initial: '',
    says: 'Prefix of the columns of values; the column of a simple value, else `value`.',
  },
  symbols: { type: 'list', initial: '', says: 'Columns that are SYMBOL.' },
  doubles: { type: 'list', initial: '', says: 'Columns whose integers are DOUBLE.' },
  'timestamp.field.name': {
    type: 'list',
    initial: '',
    says: 'Field of the designated timestamp; several, separated by commas, are joined and read by `timestamp.string.format`. Empty: the time of arrival.',
  },
  'timestamp.units': {
    type: 'choice',
    initial: 'auto',
    choices: ['auto', 'seconds', 'millis', 'micros', 'nanos'],
    says: 'Unit of timestamps that are numbers; `auto` tells by their size.',
  },
  'timestamp.kafka.native': {
    type: 'boolean',
    initial: 'false',
    says: 'The timestamp of the Kafka record is the designated timestamp.',
  },
  'timestamp.string.fields': { type: 'list', initial: '', says: 'Columns whose texts are timestamps.' },
  'timestamp.string.format': {
    type: 'words',
    initial: 'yyyy-MM-ddTHH:mm:ss.SSSUUUZ',
    says: 'Format of timestamps that are texts. The default reads every form of ISO 8601.',
  },
  'skip.unsupported.types': {
    type: 'boolean',
    initial: 'false',
    says: 'Values that no column can hold are left out; otherwise their record is rejected.',
  },
  'allowed.lag': {
    type: 'duration',
    initial: '1s',
    min: 1,
    max: 60_000,
    says: 'Brokers gather up to `fetch.min.bytes` for at most this time before they answer.',
  },
  'fetch.min.bytes': {
    type: 'size',
    initial: '1',
    min: 1,
    max: 64 * MIB,
    says: 'Bytes that brokers gather; 1 answers at the first record.',
  },
  'max.partition.fetch.bytes': {
    type: 'size',
    initial: '1m',
    min: 1024,
    max: 64 * MIB,
    says: 'Bytes of one partition in one answer.',
  },
  'session.timeout.ms': {
    type: 'duration',
    initial: '10s',
    min: 6000,
    max: 1_800_000,
    says: 'The group gives our partitions to others when it has not heard of us for so long.',
  },
  'metadata.max.age.ms': {
    type: 'duration',
    initial: '1m',
    min: 1000,
    says: 'How often topics are looked for that match `topics.regex`.',
  },
  'max.retries': {
    type: 'integer',
    initial: '-1',
    min: -1,
    says: 'Attempts after which the connector gives up (`ALTER CONNECTOR <name> RESUME` begins again); -1 never does.',
  },
  'retry.backoff.ms': {
    type: 'duration',
    initial: '3s',
    min: 10,
    says: 'Time before the first retry; it doubles up to a minute.',
  },
  'errors.deadletterqueue.topic.name': {
    type: 'words',
    initial: '',
    says: 'Topic for records that cannot be stored; they are in `sys.rejects` either way.',
  },
} as const satisfies SettingsTable
