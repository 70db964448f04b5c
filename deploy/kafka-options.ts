// Derives the options of Kafka connectors from the settings, and checks that these are consistent.

import { readFileSync } from 'node:fs'
import {
  type CsvColumn,
  type KafkaOptions,
  type MappingOptions,
  registryFormats,
  type SaslOptions,
  type TlsOptions,
} from '../connectors/kafka/options.js'
import type { SettingsTable } from './settings/setting-row.js'
import { type KafkaSettings, type LoadedSettings, SettingsError } from './settings/settings.js'

const csvTypes = ['string', 'symbol', 'long', 'double', 'boolean', 'timestamp'] as const
/** The default format, which stands for every form of ISO 8601. */
const isoFormat = 'yyyy-MM-ddTHH:mm:ss.SSSUUUZ'

/** Throws SettingsError if settings of a connector contradict each other. */
export function kafkaOptions({ families }: LoadedSettings<SettingsTable>): KafkaOptions[] {
  return [...families.kafka].map(([name, settings]) => connectorOptions(name, settings))
}

function connectorOptions(name: string, settings: KafkaSettings): KafkaOptions {
  const wrong = (message: string): SettingsError => new SettingsError(`kafka.${name}: ${message}`)
  const topicPattern = settings['topics.regex']
  if (settings['bootstrap.servers'].length === 0) throw wrong('bootstrap.servers is missing')
  const oneOfBoth = settings.topics.length > 0 !== (topicPattern !== '')
  if (!oneOfBoth) throw wrong('either topics or topics.regex is to be set')
  const offsetsInLake = settings['offsets.in.lake']
  if (
    offsetsInLake &&
    (settings.table === '' || settings.table.includes('${') || settings['value.converter'] === 'line')
  )
    throw wrong(
      'offsets.in.lake needs one table for all records: set table, without parameters, and another format than line',
    )
  if (offsetsInLake && settings['auto.offset.reset'] === 'latest')
    throw wrong('offsets.in.lake needs auto.offset.reset=earliest: a partition begins with its first record')
  return {
    name,
    enabled: settings.enabled,
    client: {
      brokers: settings['bootstrap.servers'],
      topics: settings.topics,
      topicPattern,
      groupId: settings['group.id'] === '' ? `penstock-${name}` : settings['group.id'],
      clientId: settings['client.id'],
      offsetReset: settings['auto.offset.reset'],
      tls: tlsOptions(settings, wrong),
      sasl: saslOptions(settings, wrong),
      fetchMinBytes: settings['fetch.min.bytes'],
      partitionFetchBytes: settings['max.partition.fetch.bytes'],
      sessionTimeoutMs: settings['session.timeout.ms'],
      metadataMaxAgeMs: settings['metadata.max.age.ms'],
    },
    mapping: mappingOptions(settings, wrong),
    registry: {
      url: settings['value.converter.schema.registry.url'],
      credentials: settings['value.converter.basic.auth.user.info'],
    },
    widenNumbers: settings['widen.numbers'],
    allowedLagMs: settings['allowed.lag'],
    maxRetries: settings['max.retries'],
    retryBackoffMs: settings['retry.backoff.ms'],
    deadLetterTopic: settings['errors.deadletterqueue.topic.name'],
    offsetsInLake,
  }
}

type Wrong = (message: string) => SettingsError

function mappingOptions(settings: KafkaSettings, wrong: Wrong): MappingOptions {
  const valueFormat = settings['value.converter']
  const keyFormat = settings['key.converter']
  const timestampFields = settings['timestamp.field.name']
  const format = settings['timestamp.string.format']
  const csvColumns = settings['value.csv.columns'].map((text) => csvColumn(text, wrong))
  if (settings['timestamp.kafka.native'] && timestampFields.length > 0) {
    throw wrong('timestamp.field.name and timestamp.kafka.native exclude each other')
  }
  if (valueFormat === 'csv' && csvColumns.length === 0) throw wrong('value.csv.columns is missing')
  const isRegistered = registryFormats.some((format) => format === valueFormat || format === keyFormat)
  if (isRegistered && settings['value.converter.schema.registry.url'] === '') {
    throw wrong('value.converter.schema.registry.url is missing')
  }
  return {
    table: settings.table,
    keyFormat,
    valueFormat,
    schemasEnabled: settings['value.converter.schemas.enable'],
    includeKey: settings['include.key'],
    keyPrefix: settings['key.prefix'],
    valuePrefix: settings['value.prefix'],
    symbols: settings.symbols,
    doubles: settings.doubles,
    timestampFields,
    timestampUnits: settings['timestamp.units'],
    timestampNative: settings['timestamp.kafka.native'],
    timestampStringFields: settings['timestamp.string.fields'],
    timestampFormat: format === isoFormat ? '' : format,
    skipUnsupported: settings['skip.unsupported.types'],
    csvColumns,
    csvDelimiter: delimiterOf(settings['value.csv.delimiter'], wrong),
    recordColumns: settings['offsets.in.lake'],
  }
}

function csvColumn(text: string, wrong: Wrong): CsvColumn {
  const [name = '', typeName = 'string'] = text.split(':').map((part) => part.trim())
  const type = csvTypes.find((known) => known === typeName)
  if (type === undefined || name === '') throw wrong(`value.csv.columns: '${text}' is not name:type`)
  return { name, type }
}

function delimiterOf(text: string, wrong: Wrong): string {
  const delimiter = text === 'tab' || text === '\\t' ? '\t' : text
  if (delimiter.length !== 1 || delimiter === '"' || delimiter === '\n') throw wrong(`value.csv.delimiter: '${text}'`)
  return delimiter
}

function tlsOptions(settings: KafkaSettings, wrong: Wrong): TlsOptions | null {
  const files = ['ssl.ca.location', 'ssl.certificate.location', 'ssl.key.location'] as const
  if (!settings['security.protocol'].endsWith('SSL')) {
    const set = files.find((key) => settings[key] !== '')
    if (set !== undefined) throw wrong(`${set} needs security.protocol SSL or SASL_SSL`)
    return null
  }
  const [ca = '', certificate = '', key = ''] = files.map((name) => fileText(settings[name], name, wrong))
  if ((certificate === '') !== (key === ''))
    throw wrong('a client certificate needs its key, and a key its certificate')
  const verifyHost = settings['ssl.endpoint.identification.algorithm'] === 'https'
  return { ca, certificate, key, keyPassword: settings['ssl.key.password'], verifyHost }
}

function fileText(path: string, key: string, wrong: Wrong): string {
  if (path === '') return ''
  try {
    return readFileSync(path, 'utf8')
  } catch {
    throw wrong(`the file of ${key} cannot be read: ${path}`)
  }
}

function saslOptions(settings: KafkaSettings, wrong: Wrong): SaslOptions | null {
  const username = settings['sasl.username']
  if (!settings['security.protocol'].startsWith('SASL')) {
    if (username !== '') throw wrong('sasl.username needs security.protocol SASL_PLAINTEXT or SASL_SSL')
    return null
  }
  if (username === '') throw wrong('sasl.username is missing')
  const mechanisms = { PLAIN: 'plain', 'SCRAM-SHA-256': 'scram-sha-256', 'SCRAM-SHA-512': 'scram-sha-512' } as const
  return { mechanism: mechanisms[settings['sasl.mechanism']], username, password: settings['sasl.password'] }
}
