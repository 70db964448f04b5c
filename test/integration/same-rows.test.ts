// Goal: the stored rows are the same whether they are sent by line protocol, CSV, the PostgreSQL wire protocol or QWP:
// values of every type, the smallest and largest ones, special ones, and NULL. Method: one list of values, written in
// the form of each protocol, is stored in one table per protocol; /exec must return the same bytes for all tables.

import { once } from 'node:events'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parquetReadObjects } from 'hyparquet'
import type pg from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { WebSocket } from 'ws'
import type { WireType } from '../../engine/qwp/message.js'
import { readArrow } from '../support/arrow.js'
import { qwpMessage, type WireValue } from '../support/qwp-messages.js'
import { TestServer } from '../support/server.js'

const server = TestServer.shared()

beforeAll(() => server.start())
afterAll(() => server.remove())

interface Column {
  readonly name: string
  readonly type: string
  readonly wire: WireType
  readonly parameter?: number
  /** A value as text, which CSV and the wire protocol send, and as QWP sends it. */
  readonly values: readonly (readonly [string, WireValue] | null)[]
  /** The value of a field of line protocol. */
  readonly field: (text: string, value: WireValue) => string | Buffer
}

const quoted = (text: string): string => `"${text.replace(/[\\"]/g, (character) => `\\${character}`)}"`
const integer = (text: string): string => `${text}i`
const number = (text: string): string => text

const texts = ['Oslo', '', '日本語 😀', null, 'a,b "c" \\ = d'].map((text) =>
  text === null ? null : ([text, text] as const),
)

function integers(...values: readonly (bigint | number | null)[]): Column['values'] {
  return values.map((value) => (value === null ? null : [String(value), BigInt(value)]))
}

/** Times by their text; `unit` is the number of nanoseconds of a tick. */
function times(digits: number, unit: bigint, ...nanos: readonly (bigint | null)[]): Column['values'] {
  return nanos.map((value) => {
    if (value === null) return null
    const ticks = value / unit
    const perSecond = 1_000_000_000n / unit
    const fraction = ((ticks % perSecond) + perSecond) % perSecond
    const seconds = (ticks - fraction) / perSecond
    const day = new Date(Number(seconds) * 1000).toISOString().slice(0, 19)
    return [`${day}.${String(fraction).padStart(digits, '0')}Z`, ticks]
  })
}

const day = 1_709_251_200_123_456_789n
/** The end of the year 2261, and of the year 9999. */
const [lastNanos, lastTime] = [9_223_286_399_999_999_999n, 253_402_300_799_999_999_000n]

function arrayField(_text: string, value: WireValue): Buffer {
  const { values } = value as { values: number[] }
  const head = Buffer.from([0x3d, 14, 10, 1, 0, 0, 0, 0])
  head.writeUInt32LE(values.length, 4)
  return Buffer.concat([head, Buffer.from(Float64Array.from(values).buffer)])
}

const columns: readonly Column[] = [
  {
    ...{ name: 'b', type: 'BOOLEAN', wire: 'BOOLEAN', field: number },
    values: [['true', true], ['false', false], ['true', true], null, ['false', false]],
  },
  { name: 'y', type: 'BYTE', wire: 'BYTE', field: integer, values: integers(5, -128, 127, null, 0) },
  { name: 's', type: 'SHORT', wire: 'SHORT', field: integer, values: integers(300, -32_768, 32_767, null, 0) },
  {
    ...{ name: 'i', type: 'INT', wire: 'INT', field: integer },
    values: integers(7, -2_147_483_647, 2_147_483_647, null, 0),
  },
  {
    ...{ name: 'l', type: 'LONG', wire: 'LONG', field: integer },
    values: integers(7, -9_223_372_036_854_775_807n, 9_223_372_036_854_775_807n, null, 0),
  },
  {
    ...{ name: 'f', type: 'FLOAT', wire: 'FLOAT', field: number },
    values: [
      ['1.5', 1.5],
      ['-3.4028234663852886E38', -3.4028234663852886e38],
      ['1.401298464324817E-45', 1.401298464324817e-45],
      null,
      ['-0.0', -0],
    ],
  },
  {
    ...{ name: 'd', type: 'DOUBLE', wire: 'DOUBLE', field: number },
    values: [['0.1', 0.1], ['-1.7976931348623157E308', -Number.MAX_VALUE], ['5e-324', 5e-324], null, ['-0.0', -0]],
  },
  {
    ...{ name: 'c', type: 'CHAR', wire: 'CHAR', field: quoted },
    values: [['x', 0x78n], ['!', 0x21n], ['€', 0x20acn], null, ['"', 0x22n]],
  },
  { name: 'k', type: 'SYMBOL', wire: 'SYMBOL', field: quoted, values: texts },
  { name: 'v', type: 'VARCHAR', wire: 'VARCHAR', field: quoted, values: texts },
  { name: 't', type: 'STRING', wire: 'VARCHAR', field: quoted, values: texts },
  {
    ...{ name: 'e', type: 'DATE', wire: 'DATE', field: (_text, value) => `${String(value)}000t` },
    values: times(3, 1_000_000n, day, 0n, lastTime, null, -1_000_000n),
  },
  {
    ...{ name: 'm', type: 'TIMESTAMP', wire: 'TIMESTAMP', field: (_text, value) => `${String(value)}t` },
    values: times(6, 1000n, day, 0n, lastTime, null, -1000n),
  },
  {
    ...{ name: 'n', type: 'TIMESTAMP_NS', wire: 'TIMESTAMP_NANOS', field: (_text, value) => `${String(value)}n` },
    values: times(9, 1n, day, 0n, lastNanos, null, -1n),
  },
  {
    ...{ name: 'u', type: 'UUID', wire: 'UUID', field: quoted },
    values: [
      '11111111-2222-3333-4444-555555555555',
      `${'0'.repeat(8)}-0000-0000-0000-${'0'.repeat(12)}`,
      'ffffffff-ffff-ffff-ffff-ffffffffffff',
      null,
      '80000000-0000-0000-8000-000000000001',
    ].map((text) => (text === null ? null : [text, BigInt(`0x${text.replaceAll('-', '')}`)])),
  },
  {
    ...{ name: 'w', type: 'LONG256', wire: 'LONG256', field: integer },
    values: ['0x07', '0x00', `0x${'f'.repeat(64)}`, null, `0x10${'0'.repeat(62)}`].map((text) =>
      text === null ? null : [text, BigInt(text)],
    ),
  },
  {
    ...{ name: 'p', type: 'IPv4', wire: 'IPv4', field: quoted },
    values: [
      ['1.2.3.4', 0x0102_0304n],
      ['0.0.0.1', 1n],
      ['255.255.255.255', 0xffff_ffffn],
      null,
      ['10.0.0.0', 0x0a00_0000n],
    ],
  },
  {
    ...{ name: 'g', type: 'GEOHASH(4c)', wire: 'GEOHASH', parameter: 20, field: quoted },
    values: [['0001', 1n], ['0000', 0n], ['zzzy', 0xf_fffen], null, ['s000', 0xc_0000n]],
  },
  {
    ...{ name: 'x', type: 'DECIMAL(18,3)', wire: 'DECIMAL64', parameter: 3, field: (text) => `${text}d` },
    values: ['12.345', '-999999999999999.999', '999999999999999.999', null, '0.000'].map((text) =>
      text === null ? null : [text, BigInt(text.replace('.', ''))],
    ),
  },
  {
    ...{ name: 'z', type: 'DECIMAL(76,2)', wire: 'DECIMAL256', parameter: 2, field: (text) => `${text}d` },
    values: ['1.25', `-${'9'.repeat(74)}.99`, `${'9'.repeat(74)}.99`, null, '0.01'].map((text) =>
      text === null ? null : [text, BigInt(text.replace('.', ''))],
    ),
  },
  {
    ...{ name: 'a', type: 'DOUBLE[]', wire: 'DOUBLE_ARRAY', field: arrayField },
    values: [[1.5, 2.5], [-Number.MAX_VALUE], [5e-324, 0, 1e300], null, [0]].map((values) =>
      values === null ? null : [`{${values.join(',')}}`, { shape: [values.length], values }],
    ),
  },
]

const rowTimes = [1_709_251_200_000_000n, 0n, 4_102_444_800_123_456n, 1_709_251_200_000_001n, 1_709_251_200_000_002n]
const isoOf = (micros: bigint): string =>
  `${new Date(Number(micros / 1000n)).toISOString().slice(0, 20)}${String(micros % 1_000_000n).padStart(6, '0')}Z`

const answers: Record<string, string> = {}

async function created(table: string): Promise<void> {
  const definitions = columns.map(({ name, type }) => `${name} ${type}`).join(', ')
  await server.rows(`create table ${table} (${definitions}, ts timestamp) timestamp(ts) partition by year`)
}

async function answerOf(table: string): Promise<void> {
  const { status, text } = await server.exec(`select * from ${table}`)
  expect(status, text).toBe(200)
  answers[table] = text.slice(text.indexOf('"columns"'))
}

test('line protocol', async () => {
  await created('by_line')
  const lines = rowTimes.map((time, row) => {
    const fields = columns.flatMap(({ name, values, field }) => {
      const value = values[row]
      return value === null || value === undefined
        ? []
        : [Buffer.concat([Buffer.from(`${name}=`), Buffer.from(field(...value))])]
    })
    const joined = fields.flatMap((field, index) => (index === 0 ? [field] : [Buffer.from(','), field]))
    // A row has a field, so the row of NULLs has an empty one.
    return Buffer.concat([
      Buffer.from('by_line '),
      ...(joined.length === 0 ? [Buffer.from('v=')] : joined),
      Buffer.from(` ${time}\n`),
    ])
  })
  const url = `http://${server.address('http')}/write?precision=u`
  const written = await fetch(url, { method: 'POST', body: Buffer.concat(lines) })
  expect(written.status, await written.text()).toBe(204)
  await answerOf('by_line')
})

test('QWP', async () => {
  await created('by_qwp')
  const wires = columns.map(({ name, wire, parameter, values }) => ({
    ...{ name, type: wire, values: values.map((value) => value?.[1] ?? null) },
    ...(parameter === undefined ? {} : { parameter }),
  }))
  const client = new WebSocket(`ws://${server.address('http')}/write/v4`, { perMessageDeflate: false })
  await once(client, 'open')
  client.send(qwpMessage([{ name: 'by_qwp', columns: [...wires, { name: '', type: 'TIMESTAMP', values: rowTimes }] }]))
  const [frame] = (await once(client, 'message')) as [Buffer]
  client.close()
  expect(frame.readUInt8(0), frame.toString('latin1')).toBe(0)
  await answerOf('by_qwp')
})

test('the PostgreSQL wire protocol', async () => {
  await created('by_pg')
  const client = await server.connect()
  const places = Array.from({ length: columns.length + 1 }, (_, index) => `$${index + 1}`).join(', ')
  for (const [row, time] of rowTimes.entries()) {
    const values = columns.map(({ values: all }) => all[row]?.[0] ?? null)
    await client.query(`insert into by_pg values (${places})`, [...values, isoOf(time)])
  }
  await answerOf('by_pg')
})

test('CSV', async () => {
  await created('by_csv')
  const cell = (text: string | null | undefined): string =>
    text === null || text === undefined ? '' : `"${text.replaceAll('"', '""')}"`
  const header = [...columns.map(({ name }) => name), 'ts'].join(',')
  const records = rowTimes.map((time, row) =>
    [...columns.map(({ values }) => cell(values[row]?.[0])), isoOf(time)].join(','),
  )
  const form = new FormData()
  form.append('data', new Blob([[header, ...records, ''].join('\n')]), 'by_csv')
  const url = `http://${server.address('http')}/imp?fmt=json&name=by_csv&forceHeader=true&atomicity=abort`
  const imported = await fetch(url, { method: 'POST', body: form })
  expect(await imported.json()).toMatchObject({ status: 'OK', rowsImported: rowTimes.length, rowsRejected: 0 })
  await answerOf('by_csv')
})

test('the rows are the same', () => {
  const { by_line: wanted, ...others } = answers
  expect(Object.keys(others)).toEqual(['by_qwp', 'by_pg', 'by_csv'])
  for (const [table, answer] of Object.entries(others)) expect(answer, table).toBe(wanted)
})

// The table of docs/sql/data-types.md.
test('infinite values leave as documented', async () => {
  const lines = ['Infinity', '-Infinity', 'NaN', '1.5'].map((text, row) => `infinite d=${text} ${row + 1}000`)
  const written = await fetch(`http://${server.address('http')}/write`, { method: 'POST', body: lines.join('\n') })
  expect(written.status).toBe(204)
  const query = 'select d from infinite'
  const exported = async (fmt: string): Promise<Buffer> => {
    const answer = await fetch(`http://${server.address('http')}/exp?${new URLSearchParams({ query, fmt })}`)
    return Buffer.from(await answer.arrayBuffer())
  }
  const shown = [[null], [null], [null], [1.5]]
  expect(await server.rows(query)).toEqual(shown)
  expect(await server.rows('select array[d] a from infinite')).toEqual(shown.map((row) => [row]))
  expect((await exported('csv')).toString()).toBe('"d"\r\n\r\n\r\n\r\n1.5\r\n')
  expect((await exported('ndjson')).toString()).toBe('{"d":null}\n{"d":null}\n{"d":null}\n{"d":1.5}\n')
  expect(readArrow(await exported('arrow'), ['f64'])).toEqual(shown)
  const stored = [Infinity, -Infinity, null, 1.5]
  const { buffer: file } = Uint8Array.from(await exported('parquet'))
  expect((await parquetReadObjects({ file })).map(({ d }) => d)).toEqual(stored)
  const client = await server.connect()
  for (const binary of [false, true]) {
    const asked: pg.QueryArrayConfig & { binary: boolean } = { text: query, binary, rowMode: 'array' }
    expect((await client.query(asked)).rows).toEqual(shown)
  }
  expect(await server.rows('select d::varchar from infinite where d is not null')).toEqual([
    ['Infinity'],
    ['-Infinity'],
    ['1.5'],
  ])
  const form = new FormData()
  form.append('data', new Blob([file]), 'infinite.parquet')
  await fetch(`http://${server.address('http')}/imp?name=brought`, { method: 'POST', body: form })
  expect(await server.rows('select d from brought where d is not null')).toEqual([[1.5]])
  mkdirSync(join(server.root, 'import'), { recursive: true })
  writeFileSync(join(server.root, 'import/infinite.parquet'), Buffer.from(file))
  await server.rows("create table selected as (select * from read_parquet('infinite.parquet'))")
  expect(await server.rows('select d::varchar from selected')).toEqual([['Infinity'], ['-Infinity'], [null], ['1.5']])
})
