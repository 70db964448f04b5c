// Goal: messages of QWP (columnar binary protocol over WebSocket) of every type and flag become rows. A message or a
// group of messages is stored entirely or not at all, unless the request allows the server to drop bad rows. Method:
// the code of the writer thread, which decodes them in production, runs over simulated files and gets messages that the
// test builds; some are written down as bytes.

import { describe, expect, test } from 'vitest'
import { int64Min } from '../../../engine/base/int64.js'
import { type ColumnSpec, qwpMessage, type WireValue } from '../../support/qwp-messages.js'
import { createFaultyDisk } from '../../support/simulator/faulty-files.js'
import { type HostOptions, WriterHost } from '../storage/writer-host.js'

const second = 1_000_000n

function host(options: Partial<HostOptions> = {}): WriterHost {
  const { files } = createFaultyDisk(1)
  files.makeDirectory('/db')
  return new WriterHost({ files, parts: new Map(), walSegmentBytes: 256 * 1024, ...options })
}

const hex = (text: string): Uint8Array => Uint8Array.from(Buffer.from(text.replaceAll(/\s+/g, ''), 'hex'))

const times = (count: number): ColumnSpec => ({
  name: '',
  type: 'TIMESTAMP',
  values: Array.from({ length: count }, (_, row) => BigInt(row + 1) * second),
})

describe('golden messages', () => {
  test('fixed-width columns and plain timestamps', () => {
    const writer = host()
    const receipt = writer.qwp([
      hex(`
        51 57 50 31  01  00  01 00  4a 00 00 00
        07 73 65 6e 73 6f 72 73  02  03
        02 69 64 05   05 76 61 6c 75 65 07   00 0a
        00  01 00 00 00 00 00 00 00  02 00 00 00 00 00 00 00
        00  cd cc cc cc cc cc f4 3f  9a 99 99 99 99 99 01 40
        00  00 e4 0b 54 02 00 00 00  80 1a 06 00 00 00 00 00`),
    ])
    expect(receipt).toMatchObject({ rows: 2, error: null, tables: [['sensors', 1]] })
    expect(writer.rows('sensors')).toEqual([
      { id: 1n, value: 1.3, timestamp: 10_000_000_000n },
      { id: 2n, value: 2.2, timestamp: 400_000n },
    ])
  })

  test('strings with NULL, symbols of the connection, compressed timestamps', () => {
    const writer = host()
    const receipt = writer.qwp([
      hex(`
        51 57 50 31  01  0c  01 00  58 00 00 00
        00 02  07 73 65 72 76 65 72 31  07 73 65 72 76 65 72 32
        01 74  04  03
        04 68 6f 73 74 09   04 6e 61 6d 65 0f   00 0a
        00  00 01 01 00
        01 02  00 00 00 00  03 00 00 00  06 00 00 00  09 00 00 00  66 6f 6f 62 61 72 62 61 7a
        00 01  40 42 0f 00 00 00 00 00  80 84 1e 00 00 00 00 00  09 00`),
    ])
    expect(receipt).toMatchObject({ rows: 4, error: null })
    expect(writer.rows('t')).toEqual([
      { host: 'server1', name: 'foo', timestamp: second },
      { host: 'server2', timestamp: 2n * second },
      { host: 'server2', name: 'bar', timestamp: 3n * second + 2n },
      { host: 'server1', name: 'baz', timestamp: 4n * second + 4n },
    ])
  })
})

const wide = (text: string): string => text.padStart(64, '0')

/** A value of each type, how the column's type is called, and how a test reads it. */
type TypeCase = readonly [ColumnSpec['type'], WireValue, unknown, unknown, number]
const everyType: readonly TypeCase[] = [
  ['BOOLEAN', true, 1, 0, 0],
  ['BYTE', -5, -5, 0, 0],
  ['SHORT', -300, -300, 0, 0],
  ['INT', 123_456, 123_456, -0x8000_0000, 0],
  ['LONG', -(2n ** 62n), -(2n ** 62n), int64Min, 0],
  ['FLOAT', 1.5, 1.5, Number.NaN, 0],
  ['DOUBLE', -2.25, -2.25, Number.NaN, 0],
  ['SYMBOL', 'größe', 'größe', null, 0],
  ['TIMESTAMP', 5n, 5n, int64Min, 0],
  ['TIMESTAMP_NANOS', 6n, 6n, int64Min, 0],
  ['DATE', 7n, 7n, int64Min, 0],
  ['UUID', 0x0123_4567_89ab_cdefn, wide('123456789abcdef').slice(32), '80000000000000008000000000000000', 0],
  ['LONG256', 2n ** 200n, wide((2n ** 200n).toString(16)), '8000000000000000'.repeat(4), 0],
  ['GEOHASH', 0b10101n, 0b10101, -1, 5],
  ['VARCHAR', 'ä b', 'ä b', null, 0],
  [
    'DOUBLE_ARRAY',
    { shape: [2, 1], values: [1.5, 2] },
    '02000000020000000100000000000000000000000000f83f0000000000000040',
    null,
    0,
  ],
  ['LONG_ARRAY', { shape: [1], values: [7] }, '01000000010000000000000000001c40', null, 0],
  ['DECIMAL64', -12345n, -12345n, int64Min, 3],
  ['DECIMAL128', 10n ** 30n, wide((10n ** 30n).toString(16)).slice(32), `80${'0'.repeat(30)}`, 2],
  ['DECIMAL256', 10n ** 60n, wide((10n ** 60n).toString(16)), `80${'0'.repeat(62)}`, 1],
  ['CHAR', 'Ω', 'Ω'.charCodeAt(0), 0, 0],
  ['BINARY', Uint8Array.of(1, 0, 255), '0100ff', null, 0],
  ['IPv4', 0x7f00_0001, 0x7f00_0001, 0, 0],
]

/** What the host leaves out of rows. */
const isNothing = (value: unknown): boolean => value === null || value === int64Min || Number.isNaN(value)

describe('every type', () => {
  test.each(everyType)('%s, with and without NULL', (type, value, read, nothing, parameter) => {
    const writer = host()
    const column = (values: WireValue[]): ColumnSpec => ({ name: 'v', type, values, parameter })
    const full = writer.qwp([qwpMessage([{ name: 't', columns: [column([value, value]), times(2)] }])])
    expect(full).toMatchObject({ rows: 2, error: null })
    const sparse = writer.qwp([
      qwpMessage([{ name: 't', columns: [column([null, value, null, value]), times(4)] }], { gorilla: true }),
    ])
    expect(sparse).toMatchObject({ rows: 4, error: null, tables: [['t', 2]] })
    const values = writer.rows('t').map(({ v }) => v)
    const none = isNothing(nothing) ? undefined : nothing
    expect(values).toEqual([read, read, none, read, none, read])
  })

  test('a column that is NULL in every row of a new table is created', () => {
    const writer = host()
    const columns: ColumnSpec[] = [{ name: 'v', type: 'LONG', values: [null] }, times(1)]
    writer.qwp([qwpMessage([{ name: 't', columns }])])
    expect(writer.catalog.table('t')?.schema.columns.map(({ name }) => name)).toEqual(['v', 'timestamp'])
  })

  test('sentinels are NULL without a bitmap', () => {
    const writer = host()
    const columns: ColumnSpec[] = [
      { name: 'i', type: 'INT', values: [-0x8000_0000] },
      { name: 'g', type: 'GEOHASH', values: [0xffffn], parameter: 12 },
      { name: 'u', type: 'UUID', values: [(int64Min << 64n) | (2n ** 63n)] },
      { name: 'd', type: 'DECIMAL64', values: [int64Min], parameter: 2 },
      times(1),
    ]
    expect(writer.qwp([qwpMessage([{ name: 't', columns }])]).error).toBeNull()
    expect(writer.rows('t')).toEqual([
      { i: -0x8000_0000, g: -1, u: '80000000000000008000000000000000', timestamp: second },
    ])
  })
})

describe('timestamps', () => {
  const steady = Array.from({ length: 2000 }, (_, row) => 1_700_000_000_000_000_000n + BigInt(row) * 1000n)
  const random = steady.map((value, row) => value + BigInt((row * 7919) % 100_003) * (row % 3 === 0 ? 1n : 20_011n))
  const wild = steady.map((value, row) => (row % 2 === 0 ? value : 3n))
  const far = [0n, 2n ** 61n, 2n ** 62n, 2n ** 62n + 2n ** 61n + 5n]

  test.each([
    ['steady', steady],
    ['with jitter', random],
    ['without a pattern', wild],
    ['far apart', far],
    ['two', steady.slice(0, 2)],
    ['one', steady.slice(0, 1)],
  ])('%s', (_name, values) => {
    const writer = host()
    const columns: ColumnSpec[] = [
      { name: 'v', type: 'TIMESTAMP_NANOS', values: values.map((value, row) => (row % 3 === 1 ? null : value)) },
      { name: '', type: 'TIMESTAMP_NANOS', values },
    ]
    const receipt = writer.qwp([qwpMessage([{ name: 't', columns }], { gorilla: true })])
    expect(receipt).toMatchObject({ rows: values.length, error: null })
    const rows = writer.rows('t')
    expect(rows.map(({ timestamp }) => timestamp)).toEqual(values)
    expect(rows.map(({ v }) => v)).toEqual(values.map((value, row) => (row % 3 === 1 ? undefined : value)))
  })

  test('rows without a designated timestamp get the server’s time', () => {
    const writer = host()
    writer.qwp([qwpMessage([{ name: 't', columns: [{ name: 'v', type: 'LONG', values: [1n] }] }])])
    const times: ColumnSpec = { name: '', type: 'TIMESTAMP', values: [null, second] }
    writer.qwp([qwpMessage([{ name: 't', columns: [{ name: 'v', type: 'LONG', values: [2n, 3n] }, times] }])])
    expect(writer.rows('t')).toEqual([
      { v: 1n, timestamp: 5n * second },
      { v: 2n, timestamp: 5n * second },
      { v: 3n, timestamp: second },
    ])
  })

  test('a time before 1970 is refused', () => {
    const columns: ColumnSpec[] = [{ name: '', type: 'TIMESTAMP', values: [-1n] }]
    const { error } = host().qwp([qwpMessage([{ name: 't', columns }])])
    expect(error).toMatchObject({ name: 'RowError', message: expect.stringContaining('before 1970') })
  })
})

describe('symbols of the connection', () => {
  const symbols = (ids: number[]): ColumnSpec => ({ name: 's', type: 'SYMBOL', values: ids.map(String), ids })
  const message = (first: number, strings: string[], ids: number[]): Uint8Array =>
    qwpMessage(ids.length === 0 ? [] : [{ name: 't', columns: [symbols(ids), times(ids.length)] }], {
      delta: { first, strings },
    })
  const stored = (writer: WriterHost): unknown[] => writer.rows('t').map(({ s }) => s)

  test('are sent once', () => {
    const writer = host()
    writer.qwp([message(0, ['a', 'b'], [0, 1])])
    writer.qwp([message(2, ['c'], [2, 0])])
    writer.qwp([message(3, [], [1])])
    expect(stored(writer)).toEqual(['a', 'b', 'c', 'a', 'b'])
  })

  test('of a rejected message stay', () => {
    const writer = host()
    writer.qwp([message(0, ['a'], [0])])
    const bad = { name: 't', columns: [symbols([1]), { name: 'timestamp', type: 'UUID', values: [1n] } as ColumnSpec] }
    expect(writer.qwp([qwpMessage([bad], { delta: { first: 1, strings: ['b'] } })]).error?.name).toBe('RowError')
    expect(writer.qwp([message(2, [], [1])])).toMatchObject({ rows: 1, error: null })
    expect(stored(writer)).toEqual(['a', 'b'])
  })

  test('with a gap are asked for again', () => {
    const writer = host()
    writer.qwp([message(0, ['a'], [0])])
    expect(writer.qwp([message(2, ['c'], [2])]).error).toMatchObject({ name: 'GapError' })
    expect(writer.qwp([message(0, ['a', 'b', 'c'], [2])]).error).toBeNull()
    expect(stored(writer)).toEqual(['a', 'c'])
  })

  test('may be sent again with other strings', () => {
    const writer = host()
    writer.qwp([message(0, ['a', 'b', 'c'], [0, 1, 2])])
    writer.qwp([message(0, ['x', 'y'], [0, 1, 2])])
    expect(stored(writer)).toEqual(['a', 'b', 'c', 'x', 'y', 'c'])
  })

  test('are those of one connection, until it is closed', () => {
    const writer = host()
    writer.qwp([message(0, ['a'], [0])], { connectionId: 1 })
    writer.qwp([message(0, ['b'], [0])], { connectionId: 2 })
    writer.qwp([message(1, [], [0])], { connectionId: 1 })
    writer.writer.receive({ kind: 'forgetConnection', connectionId: 1 })
    expect(writer.qwp([message(1, [], [0])], { connectionId: 1 }).error?.name).toBe('GapError')
    expect(stored(writer)).toEqual(['a', 'b', 'a'])
  })

  test('that no entry has are refused', () => {
    const writer = host()
    expect(writer.qwp([message(0, ['a'], [1])]).error).toMatchObject({ name: 'NetworkError' })
  })

  test('share one budget of memory', () => {
    const writer = host({ settings: { symbolBytesMax: 64 * 1024 } })
    const strings = Array.from({ length: 2000 }, (_, index) => `symbol ${index} ${'x'.repeat(40)}`)
    const { error } = writer.qwp([message(0, strings, [0])])
    expect(error).toMatchObject({ name: 'ResourceError', message: expect.stringContaining('qwp.symbols.bytes.max') })
    writer.writer.receive({ kind: 'forgetConnection', connectionId: 1 })
    expect(writer.qwp([message(0, ['a'], [0])], { connectionId: 2 }).error).toBeNull()
  })

  test('are stored in a column of strings', () => {
    const writer = host()
    const columns: ColumnSpec[] = [{ name: 's', type: 'VARCHAR', values: ['v'] }, times(1)]
    writer.qwp([qwpMessage([{ name: 't', columns }])])
    writer.qwp([message(0, ['a', 'b'], [1, 0, 1])])
    expect(stored(writer)).toEqual(['v', 'b', 'a', 'b'])
  })
})

describe('requests', () => {
  const longs = (name: string, ...values: bigint[]) => ({
    name,
    columns: [{ name: 'v', type: 'LONG', values } as ColumnSpec, times(values.length)],
  })
  const bad = { name: 'b', columns: [{ name: 'v', type: 'UUID', values: [1n] } as ColumnSpec, times(1)] }

  test('several tables of a message are one transaction', () => {
    const writer = host()
    const receipt = writer.qwp([qwpMessage([longs('a', 1n), longs('b', 2n, 3n), longs('a', 4n)])])
    expect(receipt).toMatchObject({
      rows: 4,
      tables: [
        ['a', 1],
        ['b', 1],
      ],
    })
    expect(writer.rows('a').map(({ v }) => v)).toEqual([1n, 4n])
  })

  test('a message is stored as a whole or not at all', () => {
    const writer = host()
    writer.qwp([qwpMessage([longs('b', 1n)])])
    const { error } = writer.qwp([qwpMessage([longs('a', 1n), longs('b', 2n), bad])])
    expect(error).toMatchObject({ name: 'RowError', message: 'table: b; column: v; a UUID is no LONG [row=1]' })
    expect(writer.catalog.table('a')).toBeUndefined()
    expect(writer.rows('b')).toHaveLength(1)
  })

  test('a group is stored as a whole or not at all', () => {
    const writer = host()
    const group = (last: Uint8Array) =>
      Array.from({ length: 200 }, (_, index) => qwpMessage([longs('b', BigInt(index))], { defer: true })).concat(last)
    expect(writer.qwp(group(qwpMessage([bad]))).error?.name).toBe('RowError')
    expect(writer.catalog.table('b')).toBeUndefined()
    expect(writer.qwp(group(qwpMessage([])))).toMatchObject({ rows: 200, tables: [['b', 1]] })
    expect(writer.rows('b').map(({ v }) => v)).toEqual(Array.from({ length: 200 }, (_, index) => BigInt(index)))
  })

  test('strings of a group outlive their messages', () => {
    const writer = host()
    const message = (text: string) =>
      qwpMessage([{ name: 't', columns: [{ name: 's', type: 'VARCHAR', values: [text] }, times(1)] }])
    writer.qwp(['a'.repeat(5000), 'b'.repeat(5000), 'c'].map(message))
    expect(writer.rows('t').map(({ s }) => String(s)[0])).toEqual(['a', 'b', 'c'])
  })

  test('short messages of a group are the rows of a long one, with other columns in each', () => {
    const writer = host()
    const expected: Record<string, unknown>[] = []
    const messages = Array.from({ length: 3000 }, (_, index) => {
      const rows = index % 17 === 0 ? 300 : 1 + (index % 3)
      // The times neither ascend nor descend.
      const values = Array.from({ length: rows }, (_, row) => BigInt(1 + ((index * 7919 + row) % 100_003)) * second)
      const texts = values.map((_, row) => (row % 2 === 0 ? `${index}-${row}` : null))
      const columns: ColumnSpec[] = [{ name: '', type: 'TIMESTAMP', values }]
      if (index % 2 === 0) columns.push({ name: 's', type: 'VARCHAR', values: texts })
      if (index % 5 === 0) columns.push({ name: 'k', type: 'SYMBOL', values: values.map(() => `k${index % 7}`) })
      values.forEach((timestamp, row) =>
        expected.push({
          ...(index % 2 === 0 && row % 2 === 0 ? { s: texts[row] } : {}),
          ...(index % 5 === 0 ? { k: `k${index % 7}` } : {}),
          timestamp,
        }),
      )
      return qwpMessage([{ name: 't', columns }])
    })
    expect(writer.qwp(messages)).toMatchObject({ rows: expected.length, error: null })
    expect(writer.rows('t')).toEqual(expected)
  })

  test('a group has a limit of rows', () => {
    const writer = host({ settings: { uncommittedRowsMax: 10 } })
    const message = qwpMessage([longs('a', 1n, 2n, 3n, 4n)])
    expect(writer.qwp([message, message])).toMatchObject({ rows: 8, error: null })
    const { error } = writer.qwp([message, message, message])
    expect(error?.message).toContain('setting=qwp.max.uncommitted.rows')
    expect(writer.rows('a')).toHaveLength(8)
  })

  test('bad values are dropped with their rows, if the request says so', () => {
    const writer = host()
    writer.qwp([qwpMessage([{ name: 't', columns: [{ name: 'b', type: 'BYTE', values: [1] }, times(1)] }])])
    const columns: ColumnSpec[] = [
      { name: 'b', type: 'LONG', values: [2n, 200n, null, 3n, -129n] },
      { name: 's', type: 'VARCHAR', values: ['p', 'q', 'r', 's', 't'] },
      { name: '', type: 'TIMESTAMP', values: [5n, 4n, 3n, -2n, 1n] },
    ]
    const receipt = writer.qwp([qwpMessage([{ name: 't', columns }])], { partial: true })
    expect(receipt).toMatchObject({ rows: 2, rejected: 3, error: null })
    expect(receipt.rejects.map(({ line, message }) => `${line}: ${message}`)).toEqual([
      '2: table: t, column: b; the value is out of range',
      '5: table: t, column: b; the value is out of range',
      '4: table: t, designated timestamp before 1970-01-01 is not allowed',
    ])
    expect(writer.rows('t').map(({ b, s, timestamp }) => [b, s, timestamp])).toEqual([
      [1, undefined, second],
      [2, 'p', 5n],
      [0, 'r', 3n],
    ])
  })

  test('the times of dropped rows are not those of the request', () => {
    const writer = host()
    writer.qwp([qwpMessage([{ name: 't', columns: [{ name: 'b', type: 'BYTE', values: [1] }, times(1)] }])])
    const message = (value: bigint, time: bigint) =>
      qwpMessage([
        {
          name: 't',
          columns: [
            { name: 'b', type: 'LONG', values: [value] },
            { name: '', type: 'TIMESTAMP', values: [time] },
          ],
        },
      ])
    const receipt = writer.qwp([message(200n, 9n * second), message(2n, 2n * second), message(3n, 3n * second)], {
      partial: true,
    })
    expect(receipt).toMatchObject({ rows: 2, rejected: 1, error: null })
    expect(writer.rows('t').map(({ b, timestamp }) => [b, timestamp])).toEqual([
      [1, second],
      [2, 2n * second],
      [3, 3n * second],
    ])
  })

  test('a message of symbols alone is acknowledged', () => {
    expect(host().qwp([qwpMessage([], { delta: { first: 0, strings: ['a'] }, defer: true })])).toMatchObject({
      rows: 0,
      error: null,
      tables: [],
    })
  })
})

describe('conversions', () => {
  const cases: readonly (readonly [ColumnSpec, ColumnSpec, unknown])[] = [
    [{ name: 'v', type: 'INT', values: [0] }, { name: 'v', type: 'LONG', values: [7n] }, 7],
    [{ name: 'v', type: 'LONG', values: [0n] }, { name: 'v', type: 'BYTE', values: [-7] }, -7n],
    [{ name: 'v', type: 'LONG', values: [0n] }, { name: 'v', type: 'INT', values: [-0x8000_0000] }, undefined],
    [{ name: 'v', type: 'DOUBLE', values: [0] }, { name: 'v', type: 'SHORT', values: [7] }, 7],
    [{ name: 'v', type: 'FLOAT', values: [0] }, { name: 'v', type: 'DOUBLE', values: [0.5] }, 0.5],
    [{ name: 'v', type: 'DOUBLE', values: [0] }, { name: 'v', type: 'FLOAT', values: [0.5] }, 0.5],
    [{ name: 'v', type: 'TIMESTAMP', values: [0n] }, { name: 'v', type: 'TIMESTAMP_NANOS', values: [7999n] }, 7n],
    [{ name: 'v', type: 'TIMESTAMP_NANOS', values: [0n] }, { name: 'v', type: 'TIMESTAMP', values: [7n] }, 7000n],
    [{ name: 'v', type: 'TIMESTAMP', values: [0n] }, { name: 'v', type: 'DATE', values: [7n] }, 7000n],
    [{ name: 'v', type: 'DATE', values: [0n] }, { name: 'v', type: 'TIMESTAMP', values: [7999n] }, 7n],
    [{ name: 'v', type: 'SYMBOL', values: ['a'] }, { name: 'v', type: 'VARCHAR', values: ['b'] }, 'b'],
    [{ name: 'v', type: 'IPv4', values: [1] }, { name: 'v', type: 'VARCHAR', values: ['127.0.0.1'] }, 0x7f00_0001],
    [
      { name: 'v', type: 'GEOHASH', values: [1n], parameter: 5 },
      { name: 'v', type: 'GEOHASH', values: [0b11111_00000n], parameter: 10 },
      31,
    ],
    [
      { name: 'v', type: 'DECIMAL128', values: [1n], parameter: 3 },
      { name: 'v', type: 'DECIMAL64', values: [15n], parameter: 1 },
      wide((1500).toString(16)).slice(32),
    ],
  ]

  test.each(cases)('of %o to a column of %o', (first, then, value) => {
    const writer = host()
    writer.qwp([qwpMessage([{ name: 't', columns: [first, times(1)] }])])
    expect(writer.qwp([qwpMessage([{ name: 't', columns: [then, times(1)] }])]).error).toBeNull()
    expect(writer.rows('t')[1]?.v).toEqual(value)
  })
})
