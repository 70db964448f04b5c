// Goal: decoding many Bind messages of the PostgreSQL protocol at once gives the same columns as decoding them one by
// one, and ends before the first message that is rejected. Method: random values in random formats; both decoders' rows
// are compared.

import fc from 'fast-check'
import { expect, test } from 'vitest'
import { SqlError } from '../../../engine/base/errors.js'
import { type BindShape, collectBinds } from '../../../engine/pg/bind-rows.js'
import type { InsertTargets } from '../../../engine/pg/collect-insert.js'
import { ColumnAppender } from '../../../engine/pg/column-appender.js'
import { ownedRows, RowCollector } from '../../../engine/pg/row-collector.js'
import { RowWindow } from '../../../engine/pg/row-window.js'
import { type ColumnType, dataType } from '../../../engine/types/column-types.js'
import { oids } from '../../../engine/types/pg-oids.js'
import { referenceKernels } from '../../reference/kernels.js'

interface Form {
  readonly column: ColumnType
  readonly oid: number
  readonly type: ColumnType
  readonly binary: boolean
  readonly values: fc.Arbitrary<Buffer | null>
}

const binary = (bytes: number, write: (target: Buffer, value: number) => void, values: fc.Arbitrary<number>) =>
  values.map((value) => {
    const target = Buffer.alloc(bytes)
    write(target, value)
    return target
  })
const text = (...strings: readonly string[]) => fc.constantFrom(...strings).map((value) => Buffer.from(value))

const ints = binary(
  4,
  (target, value) => target.writeInt32BE(value),
  fc.constantFrom(0, 7, -1, 2 ** 31 - 1, -(2 ** 31)),
)
const doubles = binary(8, (target, value) => target.writeDoubleBE(value), fc.double())
const longs = fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }).map((value) => {
  const target = Buffer.alloc(8)
  target.writeBigInt64BE(value)
  return target
})
/** Microseconds since 2000. */
const timestamps = fc
  .oneof(fc.bigInt({ min: -946_684_800_000_001n, max: 2n ** 52n }), fc.constantFrom(-(2n ** 63n), 2n ** 62n, 0n))
  .map((value) => {
    const target = Buffer.alloc(8)
    target.writeBigInt64BE(value)
    return target
  })
const words = text(
  ...[
    '',
    'a',
    'ABCD',
    'ABCE',
    'note 17',
    'note 18',
    'note 171',
    'é',
    'note é',
    '𝄞',
    'a longer text than the others have',
    '\xff',
  ],
)
const broken = fc.constantFrom(
  Buffer.from([0xff]),
  Buffer.from([65, 0]),
  Buffer.from('ab\0cde'),
  Buffer.from('abcdefg\0'),
)
const whole = text('0', '12', '-7', '123456789012345', '1234567890123456789', ' 5', '1e3', 'x')
const decimals = text('0', '1.5', '-0.25', '.5', '12345678901234.5', '1e300', 'NaN', '3', 'x')
const times = text(
  ...[
    '2024-01-02 03:04:05.6',
    '2024-01-02 03:04:59Z',
    '2024-01-02 03:04:60',
    '2024-01-02 03:04',
    '2024-01-02 03:05:59.000001',
  ],
  ...['2024-02-29 23:59:59.123456+00:00', '2024-13-01 00:00:00', '9999-12-31 00:00:00', '2024-01-02 03:04:05+01'],
  ...['1972-12-31 12:00:00', '2100-02-29', '2000-03-01 00:00:00.5+00', '1970-01-01 00:00:00'],
  ...['2024-02-29T00:00:00Z', '2023-02-29', '1969-12-31 00:00:00', '2024-01-01', '1704067200'],
)

const forms: readonly Form[] = [
  { column: 'TIMESTAMP', oid: oids.timestamp, type: 'TIMESTAMP', binary: false, values: times },
  { column: 'TIMESTAMP', oid: oids.varchar, type: 'STRING', binary: false, values: times },
  { column: 'TIMESTAMP', oid: oids.timestamp, type: 'TIMESTAMP', binary: true, values: timestamps },
  { column: 'TIMESTAMP_NS', oid: oids.timestamp, type: 'TIMESTAMP', binary: false, values: times },
  { column: 'DOUBLE', oid: oids.float8, type: 'DOUBLE', binary: true, values: fc.oneof(doubles, ints) },
  { column: 'DOUBLE', oid: oids.float8, type: 'DOUBLE', binary: false, values: decimals },
  { column: 'FLOAT', oid: oids.float8, type: 'DOUBLE', binary: true, values: doubles },
  { column: 'LONG', oid: oids.int8, type: 'LONG', binary: true, values: fc.oneof(longs, ints) },
  { column: 'LONG', oid: oids.int4, type: 'INT', binary: true, values: ints },
  { column: 'LONG', oid: oids.varchar, type: 'STRING', binary: false, values: whole },
  { column: 'INT', oid: oids.int4, type: 'INT', binary: true, values: ints },
  { column: 'INT', oid: oids.int4, type: 'INT', binary: false, values: whole },
  { column: 'SHORT', oid: oids.int4, type: 'INT', binary: true, values: ints },
  { column: 'VARCHAR', oid: oids.text, type: 'STRING', binary: false, values: fc.oneof(words, broken) },
  { column: 'VARCHAR', oid: oids.varchar, type: 'STRING', binary: true, values: words },
  { column: 'SYMBOL', oid: oids.varchar, type: 'STRING', binary: false, values: fc.oneof(words, broken) },
  { column: 'VARCHAR', oid: oids.int4, type: 'INT', binary: true, values: ints },
  { column: 'BOOLEAN', oid: oids.bool, type: 'BOOLEAN', binary: false, values: text('t', 'false', 'maybe') },
]

const int16 = (value: number): Buffer => Buffer.from([value >> 8, value & 255])
const int32 = (value: number): Buffer => {
  const bytes = Buffer.alloc(4)
  bytes.writeInt32BE(value)
  return bytes
}
const message = (type: string, ...parts: readonly Buffer[]): Buffer => {
  const body = Buffer.concat(parts)
  return Buffer.concat([Buffer.from(type), int32(body.length + 4), body])
}
const execute = message('E', Buffer.from([0]), int32(1))
const sync = message('S')

function columnOf(form: Form, index: number) {
  return { columnId: index, name: `c${index}`, type: dataType(form.column), required: index === 0 }
}

const wireType = (form: Form) => ({ oid: form.oid, type: dataType(form.type) })

/** Rows one by one, up to the first one that is refused. */
function oneByOne(chosen: readonly Form[], rows: readonly (readonly (Buffer | null)[])[]) {
  const columns = chosen.map((form, index) => new ColumnAppender(columnOf(form, index)))
  let taken = 0
  try {
    for (const row of rows) {
      for (const [index, value] of row.entries()) {
        const { binary: isBinary } = chosen[index] as Form
        if (value === null) columns[index]?.missing()
        else columns[index]?.parameter(value, 0, value.length, isBinary, wireType(chosen[index] as Form), index)
      }
      taken++
    }
  } catch (error) {
    if (!(error instanceof SqlError)) throw error
  }
  for (const column of columns) column.truncate(taken)
  return { taken, packed: columns.map((column) => column.packed()) }
}

const cases = fc
  .tuple(fc.constantFrom(...forms.slice(0, 4)), fc.array(fc.constantFrom(...forms), { maxLength: 4 }))
  .chain(([first, others]) => {
    const chosen = [first, ...others]
    const row = fc.tuple(...chosen.map(({ values }) => fc.option(values, { freq: 12 })))
    return fc.tuple(fc.constant(chosen), fc.array(row, { minLength: 1, maxLength: 60 }), fc.constantFrom(0, 1, 2))
  })

test.each([false, true])('runs of Bind messages, by the kernel or its reference (%s)', (useReference) => {
  const window = new RowWindow(useReference ? (memory) => referenceKernels(memory).rows : undefined)
  fc.assert(
    fc.property(cases, ([chosen, rows, syncs]) => {
      // 0: no Sync, 1: one behind the last message, 2: one behind each.
      const head = (formats: readonly Buffer[]): Buffer =>
        Buffer.concat([Buffer.from('\0s\0'), int16(chosen.length), ...formats, int16(chosen.length)])
      const formats = chosen.map(({ binary }) => int16(Number(binary)))
      const prefix = head(formats)
      const suffix = int16(0)
      const parts = rows.map((row, index) => {
        // Of a NULL any.
        const own = row.map((value, column) =>
          value === null ? int16((index + column) % 2) : (formats[column] as Buffer),
        )
        const values = row.flatMap((value) => (value === null ? [int32(-1)] : [int32(value.length), value]))
        const isSynced = syncs === 2 || (syncs === 1 && index === rows.length - 1)
        return Buffer.concat([message('B', head(own), ...values, suffix), execute, ...(isSynced ? [sync] : [])])
      })
      const shape: BindShape = {
        ...{ prefix, suffix, tuples: 1, formats: 5 },
        types: chosen.map(wireType),
        binary: chosen.map((form) => form.binary),
      }
      const columns = chosen.map(columnOf)
      const targets = { columns, key: 'k', version: { schema: { id: 1 } } } as unknown as InsertTargets
      const collector = new RowCollector()
      const bytes = Buffer.concat([Buffer.from('before'), ...parts])
      const run = collectBinds(window, bytes, 6, shape, true, targets, collector)
      const expected = oneByOne(chosen, rows)
      expect(run.binds).toBe(expected.taken)
      const whole = Buffer.concat([Buffer.from('before'), ...parts.slice(0, run.binds)]).length
      const isLast = syncs === 1 && rows.length > 1 && run.binds === rows.length
      expect(run.at).toBe(run.binds === 0 ? 6 : whole - (isLast ? sync.length : 0))
      if (run.binds === 0) return
      const [borrowed] = collector.takeBorrowed()
      const owned = borrowed?.packed.map(ownedRows)
      for (const { values } of borrowed?.packed[0]?.columns ?? []) spoil(values)
      collectBinds(window, bytes, 6, shape, true, targets, collector)
      for (const packed of [owned, collector.take()[0]?.packed])
        expect(packed?.[0]?.columns.map(({ values }) => normal(values))).toEqual(expected.packed.map(normal))
    }),
    { numRuns: 500 },
  )
})

test('a symbol that many messages have is stored once', () => {
  const chosen = forms.filter(({ column, binary }) => column === 'SYMBOL' || (column === 'TIMESTAMP' && binary))
  const texts = Array.from({ length: 40 }, (_, row) => `s${row % 7}`)
  const prefix = Buffer.concat([Buffer.from('\0s\0'), int16(2), int16(1), int16(0), int16(2)])
  const messages = texts.flatMap((text) => {
    const values = [int32(8), Buffer.alloc(8, 1), int32(text.length), Buffer.from(text)]
    return [message('B', prefix, ...values, int16(0)), execute]
  })
  const shape: BindShape = {
    ...{ prefix, suffix: int16(0), tuples: 1, formats: 5 },
    types: chosen.map(wireType),
    binary: chosen.map(({ binary }) => binary),
  }
  const targets = {
    columns: chosen.map(columnOf),
    key: 'k',
    version: { schema: { id: 1 } },
  } as unknown as InsertTargets
  const collector = new RowCollector()
  expect(collectBinds(new RowWindow(), Buffer.concat(messages), 0, shape, true, targets, collector).binds).toBe(40)
  const [, symbols] = collector.take()[0]?.packed[0]?.columns ?? []
  if (symbols?.values.kind !== 'symbols') throw new Error('the column has no symbols')
  expect(normal(symbols.values)).toEqual(texts.map((text) => Buffer.from(text).toString('hex')))
  expect(symbols.values.strings.length).toBe(7 * 6)
})

/** As the next rows of a collector do with borrowed columns. */
function spoil(values: ReturnType<ColumnAppender['packed']>): void {
  if (values.kind === 'symbols') values.ids.fill(-2)
  if (values.kind === 'strings') values.lengths.fill(-2)
  if (values.kind === 'symbols') values.strings.fill(255)
  else values.bytes.fill(255)
}

/** Symbols as texts: a dictionary may hold texts of refused rows. */
function normal(values: ReturnType<ColumnAppender['packed']>): unknown {
  if (values.kind === 'fixed') return Buffer.from(values.bytes).toString('hex')
  if (values.kind === 'strings') return [Array.from(values.lengths), Buffer.from(values.bytes).toString('hex')]
  const strings: string[] = []
  const bytes = Buffer.from(values.strings)
  for (let at = 0; at < bytes.length; at += 4 + bytes.readUInt32LE(at)) {
    strings.push(bytes.toString('hex', at + 4, at + 4 + bytes.readUInt32LE(at)))
  }
  return Array.from(values.ids, (id) => (id < 0 ? null : strings[id]))
}
