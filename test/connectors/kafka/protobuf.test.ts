// Goal: Kafka records in Protobuf become rows with the right types: every scalar type, nested messages, enums, oneofs,
// maps, repeated fields, well-known types, references, message indexes, proto2 and editions. Google's Protobuf library
// wrote the bytes of `whole` for the schema `reading`, so they are independent of the code under test.

import { afterAll, beforeAll, expect, test } from 'vitest'
import { type ProtoMessage, parseProto } from '../../../connectors/kafka/proto-text.js'
import { readValues, registered, startRegistry, type TestRegistry } from './registry-support.js'

const place = `syntax = "proto3";
package plant.common;
message Place { string hall = 1; sint32 row = 2; Kind kind = 3; }
enum Kind { KIND_UNKNOWN = 0; KIND_COLD = 1; }
`

const reading = `// A comment with "quotes" and { braces }.
syntax = "proto3";
package plant;
import "google/protobuf/timestamp.proto";
import "google/protobuf/wrappers.proto";
import "google/protobuf/struct.proto";
import public "place.proto";
option java_package = "org.plant"; /* option { } ; */
option (custom) = { text: "a;b" more { x: 1 } };

message Header {
  message Origin { int32 line = 1; string who = 2; }
  Origin origin = 1;
}

message Reading {
  reserved 100 to 110, 200;
  reserved "gone", 'lost';
  option deprecated = true;
  enum State { option allow_alias = true; STATE_OFF = 0; STATE_ON = 1; STATE_RUNNING = 1; STATE_BROKEN = -2; }
  message Tag { string key = 1; repeated Tag inner = 2; }
  int64 id = 1 [deprecated = true, (custom.field) = { a: [1, 2] }];
  int32 small = 2;
  uint64 big = 3;
  sint64 signed = 4;
  fixed32 f32 = 5;
  sfixed64 sf64 = 6;
  float single = 7;
  double value = 8;
  bool on = 9;
  string note = 10;
  State state = 11;
  optional int32 maybe = 12;
  oneof reason { string text = 13; int32 code = 14; common.Kind kind = 15; }
  map<string, double> limits = 16;
  map<int32, .plant.common.Place> places = 17;
  repeated double samples = 18;
  repeated int32 counts = 19 [packed = false];
  google.protobuf.Timestamp at = 20;
  google.protobuf.DoubleValue wrapped = 21;
  google.protobuf.Struct extra = 22;
  common.Place where = 23;
  Tag tag = 24;
  Header.Origin origin = 25;
}
service Readings { rpc Get (Header) returns (stream Reading) { option (x) = {}; } }
`

const whole = Buffer.from(
  `
  0881808080808080801010fbffffffffffffffff0118ffffffffffffffffff0120ffffffffff3f2d00286bee31f9ffffffffffffff3d00
  00003f410000000000001440480152076772c3b6c39f6558016000700782010e0a036c6f7711000000000000f8bf8a010f0803120b0a05
  6e6f72746810071801920118000000000000f03f000000000000044000000000000008c09801019801ac029801ffffffffffffffffff01
  a2010b0880e2cfaa06108094ef3aaa0100b201540a0e0a0161120911000000000000f83f0a1a0a016212152a130a080a016312031a0178
  0a070a0164120220010a070a0165120208000a1d0a0166121832160a0911000000000000f03f0a09110000000000000040ba01090a0573
  6f7574681018c201030a016bca0106080912026d65
  `.replace(/\s/g, ''),
  'hex',
)

const old = `
package old;
message Old {
  required int32 id = 1;
  optional string note = 2 [default = "none; }"];
  repeated group Point = 3 { optional double x = 1; optional double y = 2; }
  optional group Origin = 4 { required string name = 1; }
  extensions 100 to max;
  message Inner { optional int32 n = 1; }
  optional Inner inner = 5;
  repeated int32 packed = 6 [packed=true];
}
extend Old { optional int32 more = 100; }
`

const edition = `
edition = "2023";
option features.field_presence = IMPLICIT;
message New {
  int32 plain = 1;
  int32 told = 2 [features.field_presence = EXPLICIT];
  Part part = 3 [features = { message_encoding: DELIMITED }];
  message Part { string name = 1; }
}
`

let registry: TestRegistry

beforeAll(async () => {
  const schemaType = 'PROTOBUF'
  registry = await startRegistry({
    '/schemas/ids/1': {
      ...{ schema: reading, schemaType },
      references: [{ name: 'place.proto', subject: 'plant/place', version: 3 }],
    },
    '/subjects/plant%2Fplace/versions/3': { schema: place, schemaType },
    '/schemas/ids/2': { schema: old, schemaType },
    '/schemas/ids/3': { schema: edition, schemaType },
    '/schemas/ids/4': { schema: 'message Broken { int32 = 1; }', schemaType },
    '/schemas/ids/5': { schema: 'message Lost {\n other.Thing thing = 1; }', schemaType },
    '/schemas/ids/6': { schema: '{"type":"string"}' },
    '/schemas/ids/7': {
      ...{ schema: 'import "google/type/date.proto"; import "confluent/type/decimal.proto";', schemaType },
    },
    '/schemas/ids/8': {
      schema: `syntax = "proto3"; import "google/type/date.proto"; import "confluent/type/decimal.proto";
        message Bill { google.type.Date day = 1; confluent.type.Decimal sum = 2; google.protobuf.Duration took = 3;
          bytes raw = 4; }`,
      schemaType,
    },
  })
})

afterAll(() => registry.close())

/** One message, with the indexes of its type; [0] is written as a single 0. */
function value(id: number, indexes: readonly number[], bytes: string | Buffer): Buffer {
  const content = typeof bytes === 'string' ? Buffer.from(bytes.replaceAll(' ', ''), 'hex') : bytes
  return registered(id, Buffer.concat([Buffer.from(indexes.map((index) => index * 2)), content]))
}

const read = (values: readonly Buffer[], changes = {}) =>
  readValues(registry, values, { valueFormat: 'protobuf', ...changes })

const skipping = { skipUnsupported: true }

test('values of every type, as the Protobuf library writes them', async () => {
  const { text: line, bad } = await read([value(1, [1, 1], whole)], { timestampFields: ['at'], ...skipping })
  expect(bad).toEqual([])
  expect(line).toContain(
    't id=1152921504606846977i,small=-5i,big=18446744073709551615,signed=-1099511627776i,f32=4000000000i,sf64=-7i,' +
      `single=0.5,value=5,on=t,note="${Buffer.from('größe').toString('latin1')}",state="STATE_ON",maybe=0i,code=7i,` +
      'limits_low=-1.5,places_3_hall="north",places_3_row=-4i,places_3_kind="KIND_COLD",',
  )
  expect(line).toContain('wrapped=0,extra_a=1.5,extra_b_c="x",extra_b_d=t,extra_f=')
  expect(line).toMatch(/,where_hall="south",where_row=12i,where_kind="KIND_UNKNOWN",tag_key="k",/)
  expect(line).toMatch(/,origin_line=9i,origin_who="me" 1700000000123456t\n$/)
})

test('arrays of numbers', async () => {
  const { text } = await read([value(1, [1, 1], whole)], skipping)
  const array = (numbers: readonly number[]): string => {
    const bytes = Buffer.from([14, 10, 1, numbers.length, 0, 0, 0, ...new Array(numbers.length * 8).fill(0)])
    for (const [index, number] of numbers.entries()) bytes.writeDoubleLE(number, 7 + index * 8)
    return bytes.toString('latin1')
  }
  expect(text).toContain(`,samples==${array([1, 2.5, -3])},counts==${array([1, 300, -1])},at=`)
})

test('absent fields are their defaults, or NULL where the schema tells absent ones apart', async () => {
  const { lines, bad } = await read([value(1, [1, 1], '6a00 a201060880e2cfaa06')], { timestampFields: ['at'] })
  expect(bad).toEqual([])
  expect(lines).toEqual([
    't id=0i,small=0i,big=0i,signed=0i,f32=0i,sf64=0i,single=0,value=0,on=f,note="",state="STATE_OFF",text=""' +
      ' 1700000000000000t',
  ])
})

test('the last member of a oneof and the last value of a field count; messages are merged', async () => {
  // text = "x", code = 5, where { hall: "a" }, small = 1, where { row: 1 }, small = 2, an unknown field
  const bytes = '6a0178 7005 ba01030a0161 1001 ba01021002 1002 9a06026162'
  const { lines } = await read([value(1, [1, 1], bytes)])
  expect(lines[0]).toContain(',small=2i,')
  expect(lines[0]).toContain(',code=5i,where_hall="a",where_row=1i,')
  expect(lines[0]).not.toContain('text=')
})

test('message indexes: the first message, another one, and a nested one', async () => {
  const { lines, bad } = await read([
    value(1, [0], '0a020803'),
    value(1, [2, 0, 0], '0803'),
    value(1, [2, 1, 0], '0a0178'),
    value(1, [1, 7], '0803'),
    value(1, [2, 1, 5], '0803'),
    registered(1, Buffer.from([1])),
    registered(1, Buffer.from([2, 1])),
  ])
  expect(lines).toEqual(['t origin_line=3i,origin_who=""', 't line=3i,who=""', 't key="x"'])
  expect(bad).toEqual([
    'the schema has no such message [index=7]',
    'the schema has no such message [index=5]',
    'invalid Protobuf: wrong message indexes',
    'the schema has no such message [index=-1]',
  ])
})

test('proto2: groups, packed numbers and presence', async () => {
  // id = 1, Point { x: 1 }, Origin { name: "o" }, inner { n: 4 }, packed = [1, 2], extension 100
  const bytes = '0801 1b09000000000000f03f1c 230a016f24 2a020804 32020102 a00607'
  const { text, bad } = await read([value(2, [0], bytes), value(2, [2, 0, 0], '0805')], skipping)
  expect(bad).toEqual([])
  expect(text).toMatch(/^t id=1i,origin_name="o",inner_n=4i,packed==/)
  expect(text).toMatch(/\nt n=5i\n$/)
  const whole = await read([value(2, [0], bytes)])
  expect(whole.bad).toEqual(['unsupported type: an array of messages [field=point]'])
})

test('editions: presence and groups by features', async () => {
  const { lines } = await read([value(3, [0], '1b0a01781c'), value(3, [0], '1000')])
  expect(lines).toEqual(['t plain=0i,part_name="x"', 't plain=0i,told=0i'])
})

test('types of Google and Confluent that need no reference', async () => {
  const bytes = '0a07 08e80f 1002 181d 1206 0a0204d2 1802 1a04 0805 1007'.replaceAll(' ', '')
  const { lines, bad } = await read([value(8, [0], bytes), value(8, [0], '0a0308e80f22020102')], skipping)
  expect(bad).toEqual(['the record has no column'])
  expect(lines).toEqual([`t day=${Date.UTC(2024, 1, 29) * 1000}t,sum=12.34,took_seconds=5i,took_nanos=7i`])
})

test.each([
  ['0a', 'invalid Protobuf: a value is cut off'],
  ['0a05 0803', 'invalid Protobuf: a value is cut off'],
  ['08', 'invalid Protobuf: a value is cut off'],
  ['10ffffffffffffffffffff01', 'invalid Protobuf: a varint is too long'],
  ['0005', 'invalid Protobuf: a field has the number 0'],
  ['0f', 'invalid Protobuf: the wire type 7 has no meaning here'],
  ['0b', 'invalid Protobuf: a group does not end'],
  ['0a04 120201ff', 'a string is not UTF-8'],
])('bad bytes %#', async (bytes, reason) => {
  const { lines, bad } = await read([value(1, [0], bytes), value(1, [2, 0, 0], '0803')])
  expect(bad).toEqual([reason])
  expect(lines).toEqual(['t line=3i,who=""'])
})

test('messages within each other, too deep', async () => {
  let bytes = Buffer.from('0a0178', 'hex')
  for (let depth = 0; depth < 70; depth++) {
    const length = bytes.length < 128 ? [bytes.length] : [(bytes.length & 127) | 128, bytes.length >> 7]
    bytes = Buffer.concat([Buffer.from([0x12, ...length]), bytes])
  }
  const { bad } = await read([value(1, [2, 1, 0], bytes)], skipping)
  expect(bad).toEqual(['messages are nested too deeply'])
})

test('schemas that cannot be used', async () => {
  const { bad } = await read([4, 5, 6, 7, 9].map((id) => value(id, [0], '0801')))
  expect(bad).toEqual([
    "the schema cannot be used: unexpected '=' [line=1]",
    'the schema cannot be used: the type is unknown, and no reference of the schema defines it [type=other.Thing]',
    'the schema is not a Protobuf schema [type=AVRO]',
    'the schema has no message',
    `the schema registry does not have the schema [url=${registry.url}/schemas/ids/9]`,
  ])
})

test('fields whose types and names are words of the language', () => {
  const { messages } = parseProto(`
    message Odd {
      optional string message = 1; repeated int32 repeated = 0x2; map<string, string> map = 3; int32 option = 04;
      reserved.Kind reserved = 5; oneof oneof { string enum = 7; } export message Inner {}
    }`)
  const [odd] = messages as [ProtoMessage]
  expect(odd.fields.map(({ name, type, number }) => `${type} ${name} ${number}`)).toEqual([
    ...['string message 1', 'int32 repeated 2', 'string map 3', 'int32 option 4', 'reserved.Kind reserved 5'],
    'string enum 7',
  ])
})
