// Goal: settings of Kafka connectors from file, environment and command line become options of the connectors;
// contradictory settings end the start with an error that names the connector.

import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { kafkaOptions } from '../../deploy/kafka-options.js'
import { loadSettings, type SettingsSources } from '../../deploy/settings/settings.js'

const basic = 'kafka.plant.bootstrap.servers = a:9092, b:9092\nkafka.plant.topics = t1,t2\n'

function options(text: string, sources: Partial<SettingsSources> = {}) {
  const loaded = loadSettings({ file: { path: 'server.conf', text }, environment: {}, assignments: [], ...sources })
  expect(loaded.warnings).toEqual([])
  return kafkaOptions(loaded)
}

test('several connectors by name', () => {
  const environment = { PENSTOCK_KAFKA_PLANT_GROUP_ID: 'g1', PENSTOCK_KAFKA_MORE_TOPICS_REGEX: 'x.*' }
  const assignments = ['kafka.more.bootstrap.servers=c:1', 'kafka.more.value.converter=line']
  const [plant, more, ...rest] = options(basic, { environment, assignments })
  expect(rest).toEqual([])
  expect(plant).toMatchObject({
    name: 'plant',
    client: { brokers: ['a:9092', 'b:9092'], topics: ['t1', 't2'], groupId: 'g1', tls: null, sasl: null },
    mapping: { valueFormat: 'json', keyFormat: 'string', keyPrefix: 'key', includeKey: true, timestampFormat: '' },
    maxRetries: -1,
  })
  expect(more).toMatchObject({
    name: 'more',
    client: { topicPattern: 'x.*', groupId: 'penstock-more' },
    mapping: { valueFormat: 'line' },
  })
})

test('the mapping of a Kafka Connect configuration', () => {
  const text = `${basic}
kafka.plant.value.converter = org.apache.kafka.connect.json.JsonConverter
kafka.plant.key.converter = org.apache.kafka.connect.converters.LongConverter
kafka.plant.symbols = a, b
kafka.plant.timestamp.field.name = date,time
kafka.plant.timestamp.string.format = yyyyMMdd
kafka.plant.allowed.lag = 250
kafka.plant.retry.backoff.ms = 3000
`
  expect(options(text)[0]).toMatchObject({
    mapping: {
      ...{ valueFormat: 'json', keyFormat: 'long', symbols: ['a', 'b'] },
      ...{ timestampFields: ['date', 'time'], timestampFormat: 'yyyyMMdd' },
    },
    ...{ allowedLagMs: 250, retryBackoffMs: 3000 },
  })
})

test('TLS and SASL, with secrets in files', () => {
  const folder = mkdtempSync(join(tmpdir(), 'penstock-kafka-'))
  writeFileSync(join(folder, 'ca.pem'), 'CA')
  writeFileSync(join(folder, 'password'), 'secret\n')
  const text = `${basic}
kafka.plant.security.protocol = SASL_SSL
kafka.plant.sasl.mechanism = SCRAM-SHA-256
kafka.plant.sasl.username = me
kafka.plant.sasl.password.file = ${join(folder, 'password')}
kafka.plant.ssl.ca.location = ${join(folder, 'ca.pem')}
kafka.plant.ssl.endpoint.identification.algorithm = none
`
  expect(options(text)[0]?.client).toMatchObject({
    sasl: { mechanism: 'scram-sha-256', username: 'me', password: 'secret' },
    tls: { ca: 'CA', certificate: '', verifyHost: false },
  })
})

test.each([
  ['kafka.plant.topics = t', 'kafka.plant: bootstrap.servers is missing'],
  ['kafka.plant.bootstrap.servers = a', 'kafka.plant: either topics or topics.regex is to be set'],
  [`${basic}kafka.plant.topics.regex = x`, 'kafka.plant: either topics or topics.regex is to be set'],
  [
    `${basic}kafka.plant.topic = x`,
    'unknown setting: kafka.plant.topic, perhaps kafka.plant.topics is meant [file=server.conf, line=3]',
  ],
  [`${basic}kafka.plant.value.converter = x.Y`, "bad value of kafka.plant.value.converter: 'x.Y'"],
  [`${basic}kafka.plant.value.converter = csv`, 'kafka.plant: value.csv.columns is missing'],
  [`${basic}kafka.plant.value.converter = avro`, 'kafka.plant: value.converter.schema.registry.url is missing'],
  [`${basic}kafka.plant.value.csv.columns = a:int`, "kafka.plant: value.csv.columns: 'a:int' is not name:type"],
  [`${basic}kafka.plant.sasl.username = a`, 'kafka.plant: sasl.username needs security.protocol'],
  [`${basic}kafka.plant.ssl.ca.location = a`, 'kafka.plant: ssl.ca.location needs security.protocol'],
  [`${basic}kafka.plant.symbols = a,,b`, 'expected strings separated by commas'],
  [
    `${basic}kafka.plant.timestamp.field.name = a\nkafka.plant.timestamp.kafka.native = true`,
    'timestamp.field.name and timestamp.kafka.native exclude each other',
  ],
])('%j', (text, message) => {
  expect(() => options(text)).toThrow(message)
})

test('offsets in the lake need one table, and begin with the first record', () => {
  const text = `${basic}kafka.plant.offsets.in.lake = true\n`
  expect(() => options(text)).toThrow('kafka.plant: offsets.in.lake needs one table for all records')
  const named = `${text}kafka.plant.table = readings\n`
  expect(options(named)[0]).toMatchObject({ offsetsInLake: true })
  expect(() => options(`${named}kafka.plant.auto.offset.reset = latest\n`)).toThrow(
    'kafka.plant: offsets.in.lake needs auto.offset.reset=earliest',
  )
})
