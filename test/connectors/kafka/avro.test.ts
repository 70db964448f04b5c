// Goal: Avro records become rows of the right types, each schema is fetched from the registry once, and an unavailable
// registry delays records but does not reject them.

import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import avsc from 'avsc'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { RecordReader } from '../../../connectors/kafka/record-reader.js'
import { RegistryError, schemaRegistry } from '../../../connectors/kafka/schema-registry.js'
import { mapping, record, textOf } from './kafka-support.js'

const schemas: Readonly<Record<number, object>> = {
  1: {
    type: 'record',
    name: 'Reading',
    fields: [
      { name: 'id', type: 'long' },
      { name: 'n', type: 'int' },
      { name: 'v', type: 'double' },
      { name: 'f', type: 'float' },
      { name: 'ok', type: 'boolean' },
      { name: 'kind', type: { type: 'enum', name: 'Kind', symbols: ['A', 'B'] } },
      { name: 'note', type: ['null', 'string', 'long'] },
      { name: 'at', type: { type: 'long', logicalType: 'timestamp-micros' } },
      { name: 'day', type: { type: 'int', logicalType: 'date' } },
      { name: 'tags', type: { type: 'map', values: 'int' } },
      { name: 'grid', type: { type: 'array', items: { type: 'array', items: 'double' } } },
    ],
  },
  2: { type: 'record', name: 'Blob', fields: [{ name: 'raw', type: 'bytes' }, { name: 'v', type: 'int' }] }, // biome-ignore format: short
  3: { type: 'long' },
  4: { type: 'record', name: 'At', fields: [{ name: 'at', type: { type: 'long', logicalType: 'timestamp-nanos' } }] },
}

const requested: string[] = []
let server: Server
let url = ''
/** Answers of this status instead of schemas. */
let status = 0

beforeAll(async () => {
  server = createServer((request, response) => {
    requested.push(request.url ?? '')
    const id = Number(/^\/schemas\/ids\/(\d+)$/.exec(request.url ?? '')?.[1])
    const schema = schemas[id]
    response.statusCode = status === 0 ? (schema === undefined && id !== 8 ? 404 : 200) : status
    response.end(
      JSON.stringify(id === 8 ? { schema: '{}', schemaType: 'PROTOBUF' } : { schema: JSON.stringify(schema) }),
    )
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
})

afterAll(() => {
  server.close()
})

function encoded(id: number, value: unknown): Buffer {
  const type = avsc.Type.forSchema(schemas[id] as never, { wrapUnions: true })
  return Buffer.concat([Buffer.from([0, 0, 0, 0, id]), type.toBuffer(value)])
}

const whole = {
  ...{ id: 5, n: 7, v: 5, f: 0.5, ok: true, kind: 'B', note: { string: 'x' }, at: 1_700_000_000_000_001, day: 19_675 },
  ...{ tags: { a: 1, b: 2 }, grid: [[1, 2]] },
}

async function read(values: readonly Buffer[], changes = {}) {
  const options = mapping({ valueFormat: 'avro', timestampFields: ['at'], ...changes })
  const reader = new RecordReader(options, schemaRegistry({ url, credentials: '' }))
  const records = values.map((value) => record(value))
  await reader.prepare(records)
  const { lines, bad } = reader.read({ topic: 't', partition: 0 }, records, 0, new Set())
  return { text: textOf(lines), bad: [...bad.values()], reader, records }
}

test('values by their types', async () => {
  const { text, bad } = await read([encoded(1, whole), encoded(1, { ...whole, note: null, id: 2 ** 52 })])
  expect(bad).toEqual([])
  const [first = '', second = ''] = text.split(' 1700000000000001t\n')
  expect(first).toMatch(
    /^t id=5i,n=7i,v=5,f=0.5,ok=t,kind="B",note="x",day=1699920000000000t,tags_a=1i,tags_b=2i,grid==/,
  )
  expect(second).toMatch(/^t id=4503599627370496i,n=7i,v=5,f=0.5,ok=t,kind="B",day=/)
})

/** Zigzag and seven bits a byte. */
function longValue(id: number, value: bigint): Buffer {
  const bytes = [0, 0, 0, 0, id]
  let rest = value < 0n ? -2n * value - 1n : 2n * value
  for (; rest > 127n; rest >>= 7n) bytes.push(Number(rest & 127n) | 128)
  return Buffer.from([...bytes, Number(rest)])
}

test('64 bits are kept', async () => {
  const values = [2n ** 63n - 1n, -(2n ** 63n) + 1n].map((value) => longValue(3, value))
  const { text, bad } = await read(values, { timestampFields: [] })
  expect(bad).toEqual([])
  expect(text).toBe('t value=9223372036854775807i\nt value=-9223372036854775807i\n')
  const nanos = await read([longValue(4, 1_700_000_000_123_456_789n)], { timestampFields: [] })
  expect(nanos.text).toBe('t at=1700000000123456t\n')
})

test('bytes are unsupported, or left out', async () => {
  const value = encoded(2, { raw: Buffer.from('x'), v: 1 })
  expect((await read([value])).bad).toEqual(['unsupported type: bytes [field=raw]'])
  expect((await read([value], { skipUnsupported: true, timestampFields: [] })).text).toBe('t v=1i\n')
})

test.each([
  [Buffer.from('{"v":1}'), 'invalid Avro: the magic byte is missing'],
  [Buffer.from([0, 0, 0, 0, 1, 2]), 'invalid Avro: truncated buffer'],
  [Buffer.from([0, 0, 0, 0, 9, 2]), 'the schema registry does not have the schema'],
  [Buffer.from([0, 0, 0, 0, 8, 2]), 'the schema is not an Avro schema [type=PROTOBUF]'],
])('bad record %#', async (value, reason) => {
  const { bad, text } = await read([value, encoded(2, { raw: Buffer.alloc(0), v: 1 })], {
    ...{ skipUnsupported: true, timestampFields: [] },
  })
  expect(bad.length).toBe(1)
  expect(bad[0]).toContain(reason)
  expect(text).toBe('t v=1i\n')
})

test('a registry that is away is waited for; a schema is asked for once', async () => {
  status = 500
  await expect(read([encoded(2, { raw: Buffer.alloc(0), v: 1 })])).rejects.toThrow(RegistryError)
  status = 0
  requested.length = 0
  const { reader, records } = await read([encoded(3, 5), encoded(3, 6), encoded(3, 7)], { timestampFields: [] })
  await reader.prepare(records)
  expect(requested).toEqual(['/schemas/ids/3'])
  const nowhere = schemaRegistry({ url: 'http://127.0.0.1:1', credentials: '' })
  await expect(nowhere.schema(1, 'AVRO')).rejects.toThrow(RegistryError)
})
