// Goal: Kafka records in JSON become rows with the column types of their JSON Schema in a schema registry. The schema
// decides and not the notation of a value: a `number` that is written as 5 is a double, and an `integer` that is
// written as 5.0 is no double. Also: timestamps, decimals, nested objects, maps, alternatives, and references within a
// schema and to other schemas.

import { afterAll, beforeAll, expect, test } from 'vitest'
import { readValues, registered, startRegistry, type TestRegistry } from './registry-support.js'

const reading = {
  $id: 'http://plant/schemas/reading.json',
  type: 'object',
  properties: {
    id: { type: 'integer' },
    value: { type: 'number' },
    maybe: { oneOf: [{ type: 'null' }, { type: 'number' }] },
    either: { type: ['integer', 'null'] },
    note: { type: 'string' },
    on: { type: 'boolean' },
    at: { type: 'string', format: 'date-time' },
    day: { type: 'string', format: 'date' },
    stamp: { type: 'integer', title: 'org.apache.kafka.connect.data.Timestamp', 'connect.type': 'int64' },
    price: {
      ...{ type: 'number', title: 'org.apache.kafka.connect.data.Decimal', 'connect.type': 'bytes' },
      'connect.parameters': { scale: '2' },
    },
    whole: { type: 'number', 'connect.type': 'int64' },
    inner: { type: 'object', properties: { x: { type: 'number' }, x_y: { type: 'integer' } } },
    limits: { type: 'object', additionalProperties: { type: 'number' } },
    marks: { type: 'object', patternProperties: { '^n_': { type: 'number' }, '(': { type: 'number' } } },
    node: { $ref: '#/definitions/Node' },
    place: { $ref: 'place.json' },
    hall: { $ref: '/schemas/hall.json#/$defs/Hall' },
    all: { allOf: [{ properties: { a: { type: 'number' } } }, { properties: { b: { type: 'integer' } } }] },
    loop: { $ref: '#/definitions/Loop' },
    unknown: { $ref: 'nowhere.json' },
  },
  definitions: {
    Node: { type: 'object', properties: { v: { type: 'number' }, next: { $ref: '#/definitions/Node' } } },
    Loop: { anyOf: [{ $ref: '#/definitions/Loop' }, { $ref: '#/definitions/Loop' }, { type: 'number' }] },
  },
}

let registry: TestRegistry

beforeAll(async () => {
  const schemaType = 'JSON'
  const json = (schema: unknown) => ({ schema: JSON.stringify(schema), schemaType })
  registry = await startRegistry({
    '/schemas/ids/1': {
      ...json(reading),
      references: [
        { name: 'place.json', subject: 'place', version: 1 },
        { name: 'hall', subject: 'hall', version: 2 },
      ],
    },
    '/subjects/place/versions/1': json({ type: 'object', properties: { row: { type: 'number' } } }),
    '/subjects/hall/versions/2': json({
      $id: 'http://plant/schemas/hall.json',
      $defs: {
        Hall: { type: 'object', properties: { height: { $ref: '#/$defs/Metres' } } },
        Metres: { type: 'number' },
      },
    }),
    '/schemas/ids/2': json({ type: 'number' }),
    '/schemas/ids/3': json(true),
    '/schemas/ids/4': { schema: '{', schemaType },
    '/schemas/ids/5': { schema: '"string"' },
  })
})

afterAll(() => registry.close())

const read = (values: readonly Buffer[], changes = {}) =>
  readValues(registry, values, { valueFormat: 'json_schema', ...changes })

test.each([
  ['{"id":5,"value":5}', 'id=5i,value=5'],
  ['{"id":5.0,"value":5e0}', 'id=5i,value=5'],
  ['{"id":9007199254740993}', 'id=9007199254740993i'],
  ['{"maybe":7,"either":8}', 'maybe=7,either=8i'],
  ['{"maybe":null,"either":null,"on":true}', 'on=t'],
  ['{"note":"5","on":false}', 'note="5",on=f'],
  ['{"at":"2024-02-29T10:00:00.5Z","day":"2024-02-29"}', 'at=1709200800500000t,day=1709164800000000t'],
  ['{"stamp":1700000000123}', 'stamp=1700000000123000t'],
  ['{"price":"BNI="}', 'price=12.34'],
  ['{"price":12.34}', 'price=12.34'],
  ['{"whole":5}', 'whole=5i'],
  ['{"inner":{"x":1,"x_y":2}}', 'inner_x=1,inner_x_y=2i'],
  ['{"limits":{"low":1,"a_b":2}}', 'limits_low=1,limits_a_b=2'],
  ['{"marks":{"n_1":1,"other":2}}', 'marks_n_1=1,marks_other=2i'],
  ['{"node":{"v":1,"next":{"v":2,"next":{"v":3}}}}', 'node_v=1,node_next_v=2,node_next_next_v=3'],
  ['{"place":{"row":4},"hall":{"height":9}}', 'place_row=4,hall_height=9'],
  ['{"all":{"a":1,"b":2}}', 'all_a=1,all_b=2i'],
  ['{"loop":1,"unknown":2,"nowhere":3}', 'loop=1,unknown=2i,nowhere=3i'],
])('%s', async (text, fields) => {
  const { lines, bad } = await read([registered(1, text)])
  expect(bad).toEqual([])
  expect(lines).toEqual([`t ${fields}`])
})

test('with a prefix, as keys have one; values that are no objects', async () => {
  const { lines } = await read([registered(1, '{"value":5}')], { valuePrefix: 'v' })
  expect(lines).toEqual(['t v_value=5'])
  expect((await read([registered(2, '5')])).lines).toEqual(['t value=5'])
  expect((await read([registered(2, '5')], { valuePrefix: 'v' })).lines).toEqual(['t v=5'])
  expect((await read([registered(3, '{"a":5}')])).lines).toEqual(['t a=5i'])
})

test('the designated timestamp may have a type', async () => {
  const changes = { timestampFields: ['at'] }
  const { lines } = await read([registered(1, '{"id":1,"at":"2024-02-29T10:00:00Z"}')], changes)
  expect(lines).toEqual(['t id=1i 1709200800000000t'])
})

test.each([
  [registered(1, '{"id":'), 'invalid JSON: no value [offset=6]'],
  [Buffer.from('{"id":1}'), 'invalid JSON: the magic byte is missing'],
  [registered(1, '{"at":"yesterday"}'), "not a timestamp: 'yesterday'"],
  [registered(4, '{"id":1}'), 'the schema cannot be used: '],
  [registered(5, '"x"'), 'the schema is not a JSON Schema [type=AVRO]'],
])('bad record %#', async (value, reason) => {
  const { lines, bad } = await read([value, registered(1, '{"id":1}')])
  expect(bad.length).toBe(1)
  expect(bad[0]).toContain(reason)
  expect(lines).toEqual(['t id=1i'])
})
