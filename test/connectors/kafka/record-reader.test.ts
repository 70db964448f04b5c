// Goal: Kafka records in JSON, line protocol, CSV and plain text become the lines of line protocol that the connector's
// options require; a record that cannot become a row is rejected with a reason. The WebAssembly kernel for JSON gives
// the same lines as the general reader (a property test over random records).

import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { FetchedRecord } from '../../../connectors/kafka/consumer.js'
import type { MappingOptions } from '../../../connectors/kafka/options.js'
import { RecordReader } from '../../../connectors/kafka/record-reader.js'
import { mapping, record, textOf } from './kafka-support.js'

const place = { topic: 'machine-data', partition: 3 }

function read(records: readonly FetchedRecord[], changes: Partial<MappingOptions>, useKernel: boolean) {
  const reader = new RecordReader(mapping(changes), null, { useKernel })
  // Twice: the kernel has learned the keys of the first round.
  reader.read(place, records, 0, new Set())
  const block = reader.read(place, records, 0, new Set())
  return { lines: textOf(block.lines), bad: [...block.bad], counts: [...block.lineCounts], end: block.end }
}

/** The line of one record, or what is wrong with it; the same with and without kernel. */
function line(value: string | FetchedRecord, changes: Partial<MappingOptions> = {}): string {
  const one = typeof value === 'string' ? record(value) : value
  const [slow, fast] = [false, true].map((useKernel) => read([one], changes, useKernel))
  expect(fast).toEqual(slow)
  return slow?.bad[0]?.[1] ?? slow?.lines ?? ''
}

describe('JSON', () => {
  test('types', () => {
    expect(line('{"a":1,"b":2.5,"c":"text","d":true,"e":false,"f":null,"g":-7}')).toBe(
      'machine-data a=1i,b=2.5,c="text",d=t,e=f,g=-7i\n',
    )
    expect(line('{"big":9223372036854775807,"low":-9223372036854775808,"more":9223372036854775808}')).toBe(
      'machine-data big=9223372036854775807i,low=-9223372036854775808,more=9223372036854775808\n',
    )
    expect(line(' {\n "a" : 1e3 , "b":\t-0.5E-2 } ')).toBe('machine-data a=1e3,b=-0.5E-2\n')
  })

  test('nested objects are flattened, prefixes come first', () => {
    expect(line('{"a":{"b":{"c":1},"d":2},"e":3,"f":{}}')).toBe('machine-data a_b_c=1i,a_d=2i,e=3i\n')
    expect(line('{"a":{"b":1}}', { valuePrefix: 'v' })).toBe('machine-data v_a_b=1i\n')
    expect(line('7', { valuePrefix: 'v' })).toBe('machine-data v=7i\n')
    expect(line('"x"')).toBe('machine-data value="x"\n')
  })

  test('texts with escapes, quotes and line ends', () => {
    expect(line('{"a":"q\\"\\\\\\n\\u0041\\ud83d\\ude00"}')).toBe(
      Buffer.from('machine-data a="q\\"\\\\\\\nA😀"\n').toString('latin1'),
    )
    expect(line('{"tags":"a b,c=d"}', { symbols: ['tags'] })).toBe('machine-data,tags=a\\ b\\,c\\=d\n')
  })

  test('names: what a column cannot hold becomes _', () => {
    expect(line('{"a.b-c":1,"with space":2,"x=y":3}')).toBe('machine-data a_b_c=1i,with\\ space=2i,x\\=y=3i\n')
  })

  test('symbols stand first, doubles have no i', () => {
    const changes = { symbols: ['id', 'n', 'ok'], doubles: ['t'] }
    expect(line('{"t":5,"id":"k1","n":7,"ok":true,"e":1}', changes)).toBe('machine-data,id=k1,n=7,ok=true t=5,e=1i\n')
    expect(line('{"id":"","t":1}', changes)).toBe('machine-data t=1\n')
  })

  test('arrays of numbers, of any depth', () => {
    const array = (shape: number[], values: number[]): string => {
      const bytes = Buffer.alloc(3 + shape.length * 4 + values.length * 8)
      bytes.set([14, 10, shape.length])
      shape.forEach((size, index) => bytes.writeUInt32LE(size, 3 + index * 4))
      values.forEach((value, index) => bytes.writeDoubleLE(value, 3 + shape.length * 4 + index * 8))
      return `==${bytes.toString('latin1')}`
    }
    expect(line('{"a":[1,2.5]}')).toBe(`machine-data a${array([2], [1, 2.5])}\n`)
    expect(line('{"a":[[1,2],[3,4]],"b":[]}')).toBe(`machine-data a${array([2, 2], [1, 2, 3, 4])},b${array([0], [])}\n`)
  })

  test.each([
    ['{"a":[1,[2]]}', 'an array of numbers and arrays'],
    ['{"a":[[1],[2,3]]}', 'an array whose rows differ in length'],
    ['{"a":["x"]}', 'an array of strings'],
    ['{"a":[null]}', 'an array of nulls'],
    ['{"a":[{"b":1}]}', 'an array of objects'],
  ])('%s is unsupported', (text, type) => {
    expect(line(text)).toBe(`unsupported type: ${type} [field=a]`)
    expect(line(`{"x":1,${text.slice(1)}`, { skipUnsupported: true })).toBe('machine-data x=1i\n')
  })

  test.each([
    ['', 'invalid JSON: no value [offset=0]'],
    ['{"a":1', 'invalid JSON: expected , [offset=6]'],
    ['{"a":01}', 'invalid JSON: expected , [offset=6]'],
    ['{"a":1}x', 'invalid JSON: characters after the value [offset=7]'],
    ['{a:1}', 'invalid JSON: expected " [offset=1]'],
    ['{"a":"x}', 'invalid JSON: an unterminated string [offset=8]'],
    ['{"a":"\u0001"}', 'invalid JSON: a control character in a string [offset=6]'],
    ['{"a":"\\x"}', 'invalid JSON: a bad escape [offset=8]'],
    ['{"a":tru}', 'invalid JSON: no value [offset=5]'],
    ['{"a":1,}', 'invalid JSON: expected " [offset=7]'],
    ['{}', 'the record has no column'],
    ['{"a":null}', 'the record has no column'],
    [`${'{"a":'.repeat(70)}1${'}'.repeat(70)}`, 'invalid JSON: objects are nested too deeply [offset=325]'],
  ])('%s is a bad record', (text, reason) => {
    expect(line(text)).toBe(reason)
  })

  test('an envelope gives its payload', () => {
    const text = '{"schema":{"type":"struct","fields":[]},"payload":{"a":{"b":1}}}'
    expect(line(text, { schemasEnabled: true })).toBe('machine-data a_b=1i\n')
    expect(line('{"a":1}', { schemasEnabled: true })).toBe("the record has no member 'payload'")
    expect(line('{"schema":null,"payload":7}', { schemasEnabled: true })).toBe('machine-data value=7i\n')
    expect(line('{"payload":{"a":1}}', { schemasEnabled: true })).toBe('machine-data a=1i\n')
    expect(line('{"schema":[],"payload":1}', { schemasEnabled: true })).toBe(
      'the schema of the envelope cannot be read',
    )
  })

  const connect = 'org.apache.kafka.connect.data'
  test.each<[string, object, unknown, string]>([
    ['timestamp', { type: 'int64', name: `${connect}.Timestamp` }, 1_700_000_000_123, 'f=1700000000123000t'],
    ['date', { type: 'int32', name: `${connect}.Date` }, 19_000, 'f=1641600000000000t'],
    ['time stays a number', { type: 'int32', name: `${connect}.Time` }, 5000, 'f=5000i'],
    [
      'micros',
      { type: 'int64', name: 'io.debezium.time.MicroTimestamp' },
      1_700_000_000_000_001,
      'f=1700000000000001t',
    ],
    ['nanos', { type: 'int64', name: 'io.debezium.time.NanoTimestamp' }, 1_700_000_000_000, 'f=1700000000t'],
    ['zoned', { type: 'string', name: 'io.debezium.time.ZonedTimestamp' }, '1970-01-01T00:00:01Z', 'f=1000000t'],
    ['decimal', { type: 'bytes', name: `${connect}.Decimal`, parameters: { scale: '2' } }, 'AMg=', 'f=2'],
    ['a negative one', { type: 'bytes', name: `${connect}.Decimal`, parameters: { scale: '2' } }, '/zg=', 'f=-2'],
    ['one in digits', { type: 'bytes', name: `${connect}.Decimal`, parameters: { scale: '2' } }, 2.25, 'f=2.25'],
    ['double', { type: 'double' }, 5, 'f=5'],
    ['int', { type: 'int32' }, 5, 'f=5i'],
    ['null', { type: 'int64', name: `${connect}.Timestamp` }, null, ''],
  ])('types that an envelope names: %s', (_name, type, value, wanted) => {
    const schema = {
      type: 'struct',
      fields: [
        { ...type, field: 'f' },
        { type: 'int32', field: 'z' },
      ],
    }
    const expected = `machine-data ${[wanted, 'z=1i'].filter((text) => text !== '').join()}\n`
    const payload = { f: value, z: 1 }
    expect(line(JSON.stringify({ schema, payload }), { schemasEnabled: true })).toBe(expected)
    expect(line(JSON.stringify({ payload, schema }), { schemasEnabled: true })).toBe(expected)
    const nested = { type: 'struct', fields: [{ ...schema, field: 'n' }] }
    const within = line(JSON.stringify({ schema: nested, payload: { n: payload } }), { schemasEnabled: true })
    expect(within).toBe(expected.replace(/(f|z)=/g, 'n_$1='))
  })

  test('an envelope: bytes have no column, the timestamp is a field, schemas change', () => {
    const of = (type: object, f: unknown): string =>
      JSON.stringify({ schema: { type: 'struct', fields: [{ ...type, field: 'f' }] }, payload: { f, z: 1 } })
    expect(line(of({ type: 'bytes' }, 'AAE='), { schemasEnabled: true })).toBe('unsupported type: bytes [field=f]')
    const time = { type: 'int64', name: `${connect}.Timestamp` }
    expect(line(of(time, 1000), { schemasEnabled: true, timestampFields: ['f'] })).toBe('machine-data z=1i 1000000t\n')
    const records = [of(time, 1), of({ type: 'int64' }, 2), of(time, 3), of({ type: 'double' }, 4)].map((text) =>
      record(text),
    )
    expect(read(records, { schemasEnabled: true }, true).lines).toBe(
      'machine-data f=1000t,z=1i\nmachine-data f=2i,z=1i\nmachine-data f=3000t,z=1i\nmachine-data f=4,z=1i\n',
    )
    expect(line('{"schema":null,"payload":null}', { schemasEnabled: true })).toBe('')
  })
})

describe('timestamps', () => {
  const timestampFields = ['ts']
  test.each([
    ['1700000000', 'auto', '1700000000000000000n'],
    ['1700000000123', 'auto', '1700000000123000000n'],
    ['1700000000123456', 'auto', '1700000000123456000n'],
    ['1700000000123456789', 'auto', '1700000000123456789n'],
    ['1700000000', 'millis', '1700000000000000n'],
    ['1700000000.25', 'seconds', '1700000000250000000n'],
    ['1.7e12', 'millis', '1700000000000000000n'],
    ['0', 'auto', '0n'],
    ['"2023-11-14T22:13:20.123456Z"', 'auto', '1700000000123456t'],
    ['"2023-11-14 22:13:20"', 'auto', '1700000000000000t'],
    ['"2023-11-14T23:13:20+01:00"', 'auto', '1700000000000000t'],
    ['"2024-02-29T00:00:00.1Z"', 'auto', '1709164800100000t'],
  ] as const)('%s in %s', (text, timestampUnits, expected) => {
    expect(line(`{"ts":${text},"v":1}`, { timestampFields, timestampUnits })).toBe(`machine-data v=1i ${expected}\n`)
  })

  test.each([
    ['-5', 'timestamp before 1970-01-01: -5'],
    ['true', 'not a timestamp: true [field=ts]'],
    ['null', 'the timestamp is null [field=ts]'],
    ['"2023-02-29T00:00:00Z"', "not a timestamp: '2023-02-29T00:00:00Z' [format=ISO 8601]"],
    ['"soon"', "not a timestamp: 'soon' [format=ISO 8601]"],
    ['99999999999999999999', 'timestamp is too large: 99999999999999999999'],
  ])('%s is none', (text, reason) => {
    expect(line(`{"ts":${text},"v":1}`, { timestampFields })).toBe(reason)
  })

  test('by format, of several fields, of other columns', () => {
    const format = { timestampFormat: 'yyyyMMddHHmmss' }
    expect(line('{"ts":"20231114221320","v":1}', { timestampFields, ...format })).toBe(
      'machine-data v=1i 1700000000000000t\n',
    )
    const composed = { timestampFields: ['day', 'time'], ...format }
    expect(line('{"time":"221320","v":1,"day":20231114}', composed)).toBe('machine-data v=1i 1700000000000000t\n')
    expect(line('{"v":1,"day":20231114}', composed)).toBe('a part of the timestamp is missing [field=time]')
    expect(line('{"at":"2023-11-14T22:13:20Z","v":1}', { timestampStringFields: ['at'] })).toBe(
      'machine-data at=1700000000000000t,v=1i\n',
    )
  })

  test('of the Kafka record', () => {
    expect(line('{"v":1}', { timestampNative: true })).toBe('machine-data v=1i 1700000000123000000n\n')
  })
})

describe('keys and tables', () => {
  const keyed = (key: string | Buffer): FetchedRecord => record('{"v":1}', { key: Buffer.from(key) })

  test('a simple key is a column', () => {
    expect(line(keyed('k"1'))).toBe('machine-data key="k\\"1",v=1i\n')
    expect(line(keyed('k 1'), { keyPrefix: 'id', symbols: ['id'] })).toBe('machine-data,id=k\\ 1 v=1i\n')
    expect(line(keyed('k'), { includeKey: false })).toBe('machine-data v=1i\n')
    expect(line(keyed('k'), { keyFormat: 'none' })).toBe('machine-data v=1i\n')
    expect(line(keyed('\u0000\u0000\u0000\u0007'), { keyFormat: 'int' })).toBe('machine-data key=7i,v=1i\n')
    expect(line(keyed('123'), { keyFormat: 'long' })).toBe('the key is not of format long [bytes=3]')
    expect(line(keyed(Buffer.from([0xff])))).toBe('a string is not UTF-8')
  })

  test('a key that is an object has columns with the prefix', () => {
    expect(line(keyed('{"id":7}'), { keyFormat: 'json' })).toBe('machine-data key_id=7i,v=1i\n')
    expect(line(keyed('{"id":7}'), { keyFormat: 'json', keyPrefix: '' })).toBe('machine-data id=7i,v=1i\n')
  })

  test.each([
    ['${topic}_${partition}', 'machine-data_3'],
    ['t-${key}', 't-k1'],
    ['plain', 'plain'],
    ['a b', 'a\\ b'],
  ])('%s', (table, expected) => {
    expect(line(keyed('k1'), { table, includeKey: false })).toBe(`${expected} v=1i\n`)
  })

  test('a template that is none', () => {
    expect(() => new RecordReader(mapping({ table: '${nope}' }), null)).toThrow("unknown parameter 'nope'")
    expect(() => new RecordReader(mapping({ table: '${topic' }), null)).toThrow('missing }')
  })

  test('no key in a name is null', () => {
    expect(line('{"v":1}', { table: '${key}' })).toBe('null v=1i\n')
  })
})

describe('other formats', () => {
  test('line protocol: as it is, its lines counted', () => {
    const values = ['a v=1i\nb v=2i\n', 'c v="x\\\ny" 5', '', 'd v=1i\n\n']
    const { lines, counts, bad } = read(
      values.map((value) => record(value)),
      { valueFormat: 'line' },
      true,
    )
    expect(lines).toBe('a v=1i\nb v=2i\nc v="x\\\ny" 5\nd v=1i\n\n')
    expect(counts).toEqual([2, 1, 0, 2])
    expect(bad).toEqual([])
    expect(line('d v="cut\\', { valueFormat: 'line' })).toBe('the last line is cut off')
  })

  test('CSV: columns by the options', () => {
    const csvColumns = [
      { name: 'ts', type: 'timestamp' },
      { name: 'id', type: 'symbol' },
      { name: 't', type: 'double' },
      { name: 'n', type: 'long' },
      { name: 'ok', type: 'boolean' },
      { name: 'note', type: 'string' },
    ] as const
    const changes = { valueFormat: 'csv', csvColumns, timestampFields: ['ts'] } as const
    expect(line('1700000000000,k1,5,7,true,"a ""b"", c"\n1700000000001,k2,,8,f,\n', changes)).toBe(
      'machine-data,id=k1 t=5,n=7i,ok=t,note="a \\"b\\", c" 1700000000000000000n\n' +
        'machine-data,id=k2 n=8i,ok=f 1700000000001000000n\n',
    )
    expect(line('1700000000000,k1,x', changes)).toBe("not a double: 'x' [field=t]")
    expect(line('1,2,3,4,true,6,7', changes)).toBe('the row has 7 fields, the connector has 6 columns')
    expect(line('1,"x', changes)).toBe('invalid CSV: unterminated quote [offset=2]')
  })

  test('a text is one column', () => {
    expect(line('plain', { valueFormat: 'string' })).toBe('machine-data value="plain"\n')
  })
})

test('records around a bad one, and tombstones', () => {
  const values = ['{"a":1}', '{"a":', null, '{"a":"\\u0041"}', '{"a":3}', '{"b":3}']
  const records = values.map((value, index) => record(value, { offset: String(index) }))
  for (const useKernel of [true, false]) {
    const { lines, bad, counts } = read(records, {}, useKernel)
    expect(lines.split('\n').length).toBe(5)
    expect(bad).toEqual([[1, 'invalid JSON: no value [offset=5]']])
    expect(counts).toEqual([1, 0, 0, 1, 1, 1])
  }
})

test('blocks end when they are full', () => {
  const reader = new RecordReader(mapping(), null)
  const records = Array.from({ length: 20_000 }, (_, index) => record(`{"a":${index},"b":"${'x'.repeat(200)}"}`))
  const ends: number[] = []
  let rows = 0
  for (let at = 0; at < records.length; at = ends.at(-1) as number) {
    const block = reader.read(place, records, at, new Set())
    ends.push(block.end)
    rows += textOf(block.lines).split('\n').length - 1
    expect(block.lines.length).toBeLessThan(1.5 * 1024 * 1024)
    expect(block.end - at).toBeLessThanOrEqual(8192)
  }
  expect(rows).toBe(20_000)
})

describe('the kernel', () => {
  const names = ['a', 'ts', 'sym', 'dbl', 'at', 'a long name of more than sixteen bytes', 'x.y', 'nest', 'é']
  const text = fc.oneof(
    fc.string({ maxLength: 20 }),
    fc.constantFrom('a b', 'x=y', 'plain', '2024-05-06T07:08:09.123Z'),
  )
  const leaf = fc.oneof(
    fc.integer(),
    fc.double({ noNaN: true, noDefaultInfinity: true }),
    fc.boolean(),
    fc.constant(null),
    text,
    fc.constantFrom(1700000000000, 1700000000, 17, 0, -1),
    fc.array(fc.integer(), { maxLength: 3 }),
  )
  const value = fc.letrec((tie) => ({
    value: fc.oneof({ depthSize: 'small', withCrossShrink: true }, leaf, tie('object')),
    object: fc.dictionary(fc.constantFrom(...names), tie('value'), { maxKeys: 6 }),
  })).object
  const options: Partial<MappingOptions>[] = [
    {},
    {
      symbols: ['sym', 'nest_sym', 'key'],
      doubles: ['dbl', 'a'],
      timestampFields: ['ts'],
      timestampStringFields: ['at'],
    },
    { timestampNative: true, valuePrefix: 'v', table: '${topic}.${key}' },
    { timestampFields: ['nest_ts'], timestampUnits: 'millis', timestampFormat: 'yyyy', skipUnsupported: true },
  ]

  test('gives the lines of the reader', () => {
    const records = fc.array(fc.tuple(value, fc.option(text), fc.constantFrom(0, 1)), { maxLength: 30 })
    fc.assert(
      fc.property(records, fc.constantFrom(...options), (values, changes) => {
        const fetched = values.map(([object, key, indent]) =>
          record(JSON.stringify(object, null, indent), { key: key === null ? null : Buffer.from(key) }),
        )
        expect(read(fetched, changes, true)).toEqual(read(fetched, changes, false))
      }),
      { numRuns: 80 },
    )
  })

  test('leaves what is damaged to the reader', () => {
    const whole = '{"a":1,"sym":"x y","nest":{"ts":1700000000000,"b":-1.5e3,"c":true},"at":"2024-05-06T07:08:09Z"}'
    const damaged = fc.tuple(
      fc.nat(whole.length),
      fc.nat(3),
      fc.constantFrom('', '"', '}', '\\', '0', '\u0001', ' ', '{'),
    )
    fc.assert(
      fc.property(damaged, fc.constantFrom(...options), ([at, cut, put], changes) => {
        const fetched = [record(whole), record(whole.slice(0, at) + put + whole.slice(at + cut)), record(whole)]
        expect(read(fetched, changes, true)).toEqual(read(fetched, changes, false))
      }),
      { numRuns: 250 },
    )
  })
})

test('rows say from which record they are, if they have another column', () => {
  const reader = new RecordReader(mapping({ recordColumns: true, symbols: ['s'] }), null)
  const records = [
    record('{"s":"a","v":1}', { offset: '7' }),
    record('{}', { offset: '8' }),
    record('{"Kafka_Offset":1}', { offset: '9' }),
    record('{"v":2}', { offset: '10' }),
  ]
  const { lines, bad } = reader.read({ topic: 'my ticks', partition: 3 }, records, 0, new Set())
  expect(textOf(lines)).toBe(
    'my\\ ticks,s=a,kafka_topic=my\\ ticks v=1i,kafka_partition=3i,kafka_offset=7i\n' +
      'my\\ ticks,kafka_topic=my\\ ticks v=2i,kafka_partition=3i,kafka_offset=10i\n',
  )
  expect([...bad]).toEqual([
    [1, 'the record has no column'],
    [2, 'the column has the offsets of records [field=Kafka_Offset]'],
  ])
})
