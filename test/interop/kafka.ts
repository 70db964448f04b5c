// `node dist/test/interop/kafka.js [--kafka 4.3.1] [--port n]`: tests the features of the Kafka connector with a real
// broker, but with few records: TLS and SCRAM, a broker that starts late, every compression, keys, Avro, JSON Schema
// and Protobuf with a registry, columns of whole numbers that become DOUBLE, line protocol, CSV, topics by pattern,
// dead letters, pause and resume, and offsets of the consumer group that another client has set wrongly, which the
// connector must ignore. Does nothing without Java and Maven.

import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import avsc from 'avsc'
import kafkajs, { type Kafka as KafkaClient } from 'kafkajs'
// Brings the codecs along.
import '../../connectors/kafka/kafkajs-client.js'
import { varint } from '../../engine/engine.js'
import { canRunKafka, KafkaBroker } from '../support/kafka-broker.js'
import { createTopic, kafkaClient } from '../support/kafka-load.js'
import { TestServer } from '../support/server.js'

const { CompressionTypes } = kafkajs
const { values } = parseArgs({
  options: { kafka: { type: 'string', default: '4.3.1' }, port: { type: 'string', default: '17110' } },
})

const user = 'admin'
const password = 'admin-secret'
const scram = `org.apache.kafka.common.security.scram.ScramLoginModule required username="${user}" password="${password}";`

const properties = [
  'ssl.keystore.type=PEM',
  'ssl.keystore.location={folder}/broker.pem',
  'ssl.truststore.type=PEM',
  'ssl.truststore.location={folder}/ca.pem',
  'sasl.enabled.mechanisms=SCRAM-SHA-512',
  'sasl.mechanism.inter.broker.protocol=SCRAM-SHA-512',
  `listener.name.client.scram-sha-512.sasl.jaas.config=${scram}`,
]

/** An authority, and a certificate of it for the broker's address. */
function makeCertificates(folder: string): void {
  const openssl = (...args: string[]): void => {
    execFileSync('openssl', args, { cwd: folder, stdio: 'ignore' })
  }
  const key = ['-newkey', 'rsa:2048', '-nodes', '-days', '2']
  openssl('req', '-x509', ...key, '-keyout', 'ca.key', '-out', 'ca.pem', '-subj', '/CN=test authority')
  const name = ['-subj', '/CN=broker', '-addext', 'subjectAltName=IP:127.0.0.1']
  openssl('req', '-newkey', 'rsa:2048', '-nodes', '-keyout', 'broker.key', '-out', 'broker.csr', ...name)
  const sign = ['-CA', 'ca.pem', '-CAkey', 'ca.key', '-CAcreateserial', '-days', '2', '-copy_extensions', 'copy']
  openssl('x509', '-req', '-in', 'broker.csr', '-out', 'broker.crt', ...sign)
  execFileSync('sh', ['-c', 'cat broker.key broker.crt ca.pem > broker.pem'], { cwd: folder })
}

const location = {
  type: 'record',
  name: 'Location',
  namespace: 'plant',
  fields: [
    { name: 'hall', type: 'string' },
    { name: 'row', type: 'int' },
  ],
}
const reading = {
  type: 'record',
  name: 'Reading',
  namespace: 'plant',
  fields: [
    { name: 'id', type: 'long' },
    { name: 'value', type: 'double' },
    { name: 'note', type: ['null', 'string'] },
    { name: 'at', type: { type: 'long', logicalType: 'timestamp-millis' } },
    { name: 'where', type: 'plant.Location' },
    { name: 'samples', type: { type: 'array', items: 'double' } },
    { name: 'price', type: { type: 'bytes', logicalType: 'decimal', precision: 9, scale: 2 } },
  ],
}

const typedReading = {
  type: 'object',
  properties: {
    id: { type: 'integer' },
    value: { type: 'number' },
    note: { type: 'string' },
    at: { type: 'string', format: 'date-time' },
    where: { $ref: 'place.json' },
  },
}
const place = { type: 'object', properties: { hall: { type: 'string' }, row: { type: 'integer' } } }

const protoReading = `syntax = "proto3";
package plant;
import "google/protobuf/timestamp.proto";
import "place.proto";
message First { int32 unused = 1; }
message Reading {
  int64 id = 1;
  double value = 2;
  optional string note = 3;
  google.protobuf.Timestamp at = 4;
  common.Place where = 5;
}`
const protoPlace = `syntax = "proto3";
package plant.common;
message Place { string hall = 1; int32 row = 2; }`

/** A schema registry with a schema of each format, which refers to another. */
async function startRegistry(): Promise<{ url: string; stop: () => void }> {
  const server = createServer((request, response) => {
    const references = [{ name: 'plant.Location', subject: 'location', version: 1 }]
    const answers: Readonly<Record<string, object>> = {
      '/schemas/ids/7': { schema: JSON.stringify(reading), references },
      '/subjects/location/versions/1': { schema: JSON.stringify(location) },
      '/schemas/ids/8': {
        ...{ schema: JSON.stringify(typedReading), schemaType: 'JSON' },
        references: [{ name: 'place.json', subject: 'json-place', version: 1 }],
      },
      '/subjects/json-place/versions/1': { schema: JSON.stringify(place), schemaType: 'JSON' },
      '/schemas/ids/9': {
        ...{ schema: protoReading, schemaType: 'PROTOBUF' },
        references: [{ name: 'place.proto', subject: 'proto-place', version: 1 }],
      },
      '/subjects/proto-place/versions/1': { schema: protoPlace, schemaType: 'PROTOBUF' },
    }
    const authorized = request.headers.authorization === `Basic ${Buffer.from('me:secret').toString('base64')}`
    const answer = authorized ? answers[request.url ?? ''] : undefined
    response.statusCode = authorized ? (answer === undefined ? 404 : 200) : 401
    response.end(JSON.stringify(answer ?? {}))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, stop: () => server.close() }
}

function avroRecord(id: number): Buffer {
  const registry = {}
  avsc.Type.forSchema(location as never, { registry })
  const type = avsc.Type.forSchema(reading as never, { registry, wrapUnions: true })
  const value = {
    ...{ id, value: 5, note: id % 2 === 0 ? null : { string: `note ${id}` }, at: 1_700_000_000_000 + id },
    ...{ where: { hall: 'north', row: id }, samples: [1, 2.5], price: Buffer.from([0x04, 0xd2]) },
  }
  return Buffer.concat([Buffer.from([0, 0, 0, 0, 7]), type.toBuffer(value)])
}

function typedRecord(id: number): Buffer {
  const at = new Date(1_700_000_000_000 + id).toISOString()
  const note = id % 2 === 0 ? {} : { note: `note ${id}` }
  const value = { id, value: 5, ...note, at, where: { hall: 'north', row: id } }
  return Buffer.concat([Buffer.from([0, 0, 0, 0, 8]), Buffer.from(JSON.stringify(value))])
}

/** The second message of the schema, field by field. */
function protoRecord(id: number): Buffer {
  const text = (field: number, bytes: Uint8Array): Buffer =>
    Buffer.concat([Buffer.of(field * 8 + 2, bytes.length), bytes])
  const value = Buffer.alloc(9)
  value.writeUInt8(2 * 8 + 1, 0)
  value.writeDoubleLE(5, 1)
  return Buffer.concat([
    Buffer.from([0, 0, 0, 0, 9, 2, 2]),
    Buffer.concat([Buffer.of(8), varint(id), value]),
    id % 2 === 0 ? Buffer.alloc(0) : text(3, Buffer.from(`note ${id}`)),
    text(4, Buffer.concat([Buffer.of(8), varint(1_700_000_000), Buffer.of(16), varint(id * 1_000_000)])),
    text(5, Buffer.concat([text(1, Buffer.from('north')), Buffer.of(16, id)])),
  ])
}

function settings(broker: KafkaBroker, registry: string): string[] {
  const common = {
    'bootstrap.servers': broker.address,
    'security.protocol': 'SASL_SSL',
    'sasl.mechanism': 'SCRAM-SHA-512',
    'sasl.username': user,
    'sasl.password': password,
    'ssl.ca.location': join(broker.folder, 'ca.pem'),
    'session.timeout.ms': '6s',
    'retry.backoff.ms': '500ms',
    'metadata.max.age.ms': '1s',
  }
  const connectors: Readonly<Record<string, Readonly<Record<string, string>>>> = {
    json: {
      'topics.regex': 'json-.*',
      table: 'readings_${partition}',
      symbols: 'key,device',
      'timestamp.field.name': 'ts',
      'errors.deadletterqueue.topic.name': 'dead',
    },
    avro: {
      topics: 'avro',
      'value.converter': 'io.confluent.connect.avro.AvroConverter',
      'value.converter.schema.registry.url': registry,
      'value.converter.basic.auth.user.info': 'me:secret',
      'timestamp.field.name': 'at',
    },
    typed: {
      topics: 'typed',
      'value.converter': 'io.confluent.connect.json.JsonSchemaConverter',
      'value.converter.schema.registry.url': registry,
      'value.converter.basic.auth.user.info': 'me:secret',
      'timestamp.field.name': 'at',
    },
    proto: {
      topics: 'proto',
      'value.converter': 'io.confluent.connect.protobuf.ProtobufConverter',
      'value.converter.schema.registry.url': registry,
      'value.converter.basic.auth.user.info': 'me:secret',
      'timestamp.field.name': 'at',
    },
    wide: { topics: 'wide', 'widen.numbers': 'true' },
    lines: { topics: 'lines', 'value.converter': 'line' },
    csv: {
      topics: 'csv',
      'value.converter': 'csv',
      'value.csv.columns': 'ts:timestamp,device:symbol,t:double',
      'timestamp.field.name': 'ts',
    },
  }
  return Object.entries(connectors).flatMap(([name, own]) =>
    Object.entries({ ...common, ...own }).map(([key, value]) => `kafka.${name}.${key}=${value}`),
  )
}

async function send(client: KafkaClient, topic: string, strings: readonly (string | Buffer)[], more: object = {}) {
  const producer = client.producer()
  await producer.connect()
  const messages = strings.map((value, index) => ({ key: `k${index}`, value, partition: 0 }))
  await producer.send({ topic, messages, ...more })
  await producer.disconnect()
}

function say(text: string): void {
  process.stdout.write(`${text}\n`)
}

async function compressions(client: KafkaClient, server: TestServer): Promise<void> {
  const types = [
    CompressionTypes.None,
    CompressionTypes.GZIP,
    CompressionTypes.Snappy,
    CompressionTypes.LZ4,
    CompressionTypes.ZSTD,
  ]
  await createTopic(client, 'json-a', 1)
  for (const [index, compression] of types.entries()) {
    const strings = Array.from(
      { length: 200 },
      (_, n) => `{"device":"d${n % 5}","v":${index * 200 + n},"ts":1700000000}`,
    )
    await send(client, 'json-a', strings, { compression })
  }
  const sql = 'select count(), sum(v), count_distinct(key), count_distinct(device) from readings_0'
  await server.untilRows(sql, [[1000, 499_500, 200, 5]], 60_000)
  say('JSON with every compression, keys, a table by partition')
}

async function deadLetters(client: KafkaClient, server: TestServer): Promise<void> {
  await send(client, 'json-a', ['{"v":1', '{"v":"text","ts":1700000000}', '{"v":7,"ts":1700000000}'])
  await server.untilRows('select count() from readings_0', [[1001]])
  const rejects = 'select connector, topic, partition, offset, table_name from sys.rejects order by offset'
  await server.untilRows(rejects, [
    ['json', 'json-a', 0, 1000, ''],
    ['json', 'json-a', 0, 1001, 'readings_0'],
  ])
  const consumer = client.consumer({ groupId: 'letters' })
  await consumer.connect()
  await consumer.subscribe({ topics: ['dead'], fromBeginning: true })
  const letters: string[] = []
  await new Promise<void>((resolve) => {
    void consumer.run({
      eachMessage: async ({ message }) => {
        letters.push(`${message.value} ${message.headers?.['__connect.errors.offset']}`)
        if (letters.length === 2) resolve()
      },
    })
  })
  await consumer.disconnect()
  expectSame(letters, ['{"v":1 1000', '{"v":"text","ts":1700000000} 1001'])
  say('bad records are in sys.rejects and in the dead-letter topic')
}

function expectSame(found: unknown, wanted: unknown): void {
  const [left, right] = [JSON.stringify(found), JSON.stringify(wanted)]
  if (left !== right) throw new Error(`wanted ${right}, found ${left}`)
}

async function formats(client: KafkaClient, server: TestServer): Promise<void> {
  await send(
    client,
    'avro',
    Array.from({ length: 10 }, (_, id) => avroRecord(id)),
  )
  const avro = 'select count(), sum(id), sum(value), count(note), max(where_row), min(price), max(timestamp) from avro'
  await server.untilRows(avro, [[10, 45, 50, 5, 9, 12.34, '2023-11-14T22:13:20.009000Z']], 60_000)
  for (const [topic, recordOf] of [['typed', typedRecord] as const, ['proto', protoRecord] as const]) {
    const records = Array.from({ length: 10 }, (_, id) => recordOf(id))
    await send(client, topic, records)
    const sql = `select count(), sum(id), sum(value), count(note), max(where_row), max(timestamp) from ${topic}`
    await server.untilRows(sql, [[10, 45, 50, 5, 9, '2023-11-14T22:13:20.009000Z']], 60_000)
    const types = `select "type" from table_columns('${topic}') where "column" in ('id', 'value') order by "column"`
    expectSame(await server.rows(types), [['LONG'], ['DOUBLE']])
  }
  await send(client, 'lines', [
    'weather,city=Oslo t=3.5\nweather,city=Rome t=20.5 1700000000000000000\n',
    'weather t=1',
  ])
  await server.untilRows('select count(), sum(t), count(city) from weather', [[3, 25, 2]])
  await send(client, 'csv', ['1700000000000,d1,5\n1700000001000,"d 2",6.5\n', '1700000002000,d1,'])
  await server.untilRows('select count(), sum(t), count_distinct(device) from csv', [[3, 11.5, 2]])
  say('Avro, JSON Schema and Protobuf with a registry, line protocol, CSV')
}

async function widened(client: KafkaClient, server: TestServer): Promise<void> {
  await send(client, 'wide', ['{"v":1}', '{"v":2}'])
  await server.untilRows('select count(), sum(v) from wide', [[2, 3]], 60_000)
  await send(client, 'wide', ['{"v":3}', '{"v":0.5}', '{"v":4}'])
  await server.untilRows('select count(), sum(v) from wide', [[5, 10.5]], 60_000)
  const types = `select "type" from table_columns('wide') where "column" = 'v'`
  expectSame(await server.rows(types), [['DOUBLE']])
  say('a column of whole numbers becomes DOUBLE')
}

async function pattern(client: KafkaClient, server: TestServer): Promise<void> {
  await createTopic(client, 'json-b', 1)
  await send(client, 'json-b', ['{"v":100000,"ts":1700000000}'])
  await server.untilRows('select count() from readings_0', [[1002]], 60_000)
  say('a new topic that matches the pattern')
}

/** While it is paused, the group's offset is set far ahead and back: nothing is lost and nothing comes twice. */
async function pauses(client: KafkaClient, server: TestServer): Promise<void> {
  await server.rows('alter connector json pause')
  expectSame(await server.rows("select state from sys.connectors where name = 'json'"), [['paused']])
  await send(client, 'json-a', ['{"v":8,"ts":1700000000}'])
  const admin = client.admin()
  await admin.connect()
  const partitions = [{ partition: 0, offset: '1004' }]
  await admin.setOffsets({ groupId: 'penstock-json', topic: 'json-a', partitions })
  await server.rows('alter connector json resume')
  await server.untilRows('select count() from readings_0', [[1003]], 60_000)
  await server.rows('alter connector json pause')
  await admin.setOffsets({ groupId: 'penstock-json', topic: 'json-a', partitions: [{ partition: 0, offset: '0' }] })
  await admin.disconnect()
  await server.restart()
  await send(client, 'json-a', ['{"v":9,"ts":1700000000}'])
  await server.untilRows('select count() from readings_0', [[1004]], 60_000)
  say('pause and resume; offsets of the group are not believed')
}

async function run(): Promise<void> {
  const format = ['--add-scram', `SCRAM-SHA-512=[name=${user},password=${password}]`]
  const port = Number(values.port)
  const options = { version: values.kafka, port, properties, protocol: 'SASL_SSL', formatArguments: format } as const
  const broker = new KafkaBroker(options)
  makeCertificates(broker.folder)
  const registry = await startRegistry()
  const server = new TestServer(settings(broker, registry.url))
  try {
    await server.start()
    await server.untilRows("select state from sys.connectors where name = 'csv'", [['retrying']])
    await broker.start()
    const ca = [readFileSync(join(broker.folder, 'ca.pem'), 'utf8')]
    const sasl = { mechanism: 'scram-sha-512', username: user, password } as const
    const client = kafkaClient(broker.address, { ssl: { ca }, sasl })
    for (const topic of ['avro', 'typed', 'proto', 'wide', 'lines', 'csv', 'dead']) await createTopic(client, topic, 1)
    await compressions(client, server)
    await server.untilRows("select count() from sys.connectors where state = 'running'", [[7]], 90_000)
    say('a broker that comes late, TLS and SCRAM')
    await deadLetters(client, server)
    await formats(client, server)
    await widened(client, server)
    await pattern(client, server)
    await pauses(client, server)
  } finally {
    registry.stop()
    await server.remove()
    await broker.remove()
  }
}

if (!canRunKafka()) {
  process.stdout.write('skipped: Java and Maven are needed\n')
} else await run()
