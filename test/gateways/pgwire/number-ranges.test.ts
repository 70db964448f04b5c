// Goal: a number outside the range of its column is rejected with PostgreSQL's error code, however it is inserted or
// assigned. The same holds for parameters out of range, casts to SMALLINT or NUMERIC whose result is out of range,
// invalid dates, and a DECIMAL divided by zero. Other casts, and INT and LONG arithmetic that overflows, give NULL.
// Fractions are rounded as in PostgreSQL, and fields extracted from timestamps include their fraction. Over HTTP,
// fractions are truncated, these fields are whole, and a DECIMAL divided by zero is no error.

import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import type pg from 'pg'
// @ts-expect-error it has no types
import { from as copyFrom } from 'pg-copy-streams'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { TestServer } from '../../support/server.js'

const server = TestServer.shared()
let client: pg.Client

beforeAll(async () => {
  await server.start()
  client = await server.connect({ types: { getTypeParser: () => String } })
  await client.query(
    'create table nr (b byte, s smallint, i int, l bigint, f real, d float8, n numeric(6, 2), t timestamp, da date)',
  )
  await client.query('create table wide (l bigint, d float8, s text)')
  await client.query("insert into wide values (9999999999, 1e39, '1e39')")
})

beforeEach(async () => {
  await client.query('truncate table nr')
})

afterAll(async () => {
  await server.remove()
})

async function rowsOf(text: string, values: unknown[] = []): Promise<unknown[][]> {
  return (await client.query({ text, values, rowMode: 'array' })).rows as unknown[][]
}

async function codeOf(done: Promise<unknown>): Promise<string> {
  return done.then(
    () => 'taken',
    (error: pg.DatabaseError) => String(error.code),
  )
}

/** Values that are no column's, as texts. */
const beyond = [
  ...([
    ['b', '128'],
    ['s', '70000'],
    ['i', '9999999999'],
    ['l', '99999999999999999999'],
  ] as const),
  ...([
    ['f', '1e39'],
    ['f', '-3.5e38'],
    ['f', '1e-50'],
    ['d', '1e400'],
    ['d', '1e-400'],
    ['n', '10000'],
    ['n', '1e9'],
  ] as const),
]

test.each(beyond)('column %s has no %s, by no way in', async (column, value) => {
  const into = `insert into nr (${column}) values`
  expect(await codeOf(client.query(`${into} (${value})`)), 'literal').toMatch(/^22/)
  expect(await codeOf(client.query(`${into} ('${value}')`)), 'text').toBe('22003')
  expect(await codeOf(client.query(`${into} (1), (${value})`)), 'rows').toMatch(/^22/)
  expect(await codeOf(client.query(`${into} ($1)`, [value])), 'parameter').toBe('22003')
  expect(await codeOf(client.query(`insert into nr (${column}) select ${value}`)), 'query').toMatch(/^22/)
  const copied = pipeline(Readable.from([`${value}\n`]), client.query(copyFrom(`copy nr (${column}) from stdin`)))
  expect(await codeOf(copied), 'copy').toMatch(/^22/)
  for (const sql of [`${into} (${value})`, `${into} ('${value}')`, `insert into nr (${column}) select ${value}`])
    expect((await server.exec(sql)).status, sql).toBe(400)
  expect(await rowsOf('select * from nr')).toEqual([])
  await client.query(`insert into nr (${column}) values (1)`)
  expect(await codeOf(client.query(`update nr set ${column} = ${value}`)), 'update').toMatch(/^22/)
  expect(await codeOf(client.query(`update nr set ${column} = $1`, [value])), 'update').toBe('22003')
  expect((await server.exec(`update nr set ${column} = '${value}'`)).status).toBe(400)
  expect(await rowsOf(`select ${column}::text::float8 = 1 from nr`)).toEqual([['t']])
})

test('binary numbers beyond the column are refused', async () => {
  const double = (value: number): Buffer => {
    const bytes = Buffer.alloc(8)
    bytes.writeDoubleBE(value)
    return bytes
  }
  for (const column of ['b', 's', 'i', 'l', 'f', 'n'])
    expect(await codeOf(client.query(`insert into nr (${column}) values ($1::float8)`, [double(1e39)])), column).toBe(
      '22003',
    )
  const long = Buffer.from('00000002540be3ff', 'hex')
  for (const column of ['b', 's', 'i', 'n'])
    expect(await codeOf(client.query(`insert into nr (${column}) values ($1::int8)`, [long])), column).toBe('22003')
  await client.query('insert into nr (l, d, f) values ($1::int8, $2::float8, $3::float8)', [
    long,
    double(1e39),
    double(1e38),
  ])
  expect(await rowsOf('select l, d, f from nr')).toEqual([['9999999999', '1.0E39', '1.0E38']])
  expect(await rowsOf('select count(*) from nr')).toEqual([['1']])
})

test('columns beyond the column that they go into are refused', async () => {
  for (const [column, source] of [
    ...([
      ['s', 'l'],
      ['i', 'l'],
      ['n', 'l'],
      ['f', 'd'],
      ['i', 'd'],
      ['l', 'd'],
      ['n', 'd'],
      ['b', 'l'],
    ] as const),
    ...([
      ['f', 's'],
      ['n', 's'],
    ] as const),
  ]) {
    expect(await codeOf(client.query(`insert into nr (${column}) select ${source} from wide`)), column).toBe('22003')
    expect((await server.exec(`insert into nr (${column}) select ${source} from wide`)).status).toBe(400)
  }
  expect(await rowsOf('select * from nr')).toEqual([])
})

test('casts beyond the type', async () => {
  const refused: readonly (readonly [string, unknown[]?])[] = [
    ...([
      ['select 70000::int2'],
      ["select '70000'::smallint"],
      ['select l::int2 from wide'],
      ['select d::int2 from wide'],
    ] as const),
    ['select (-32769)::int2'],
    ['select $1::int2', ['70000']],
    ['select $1::int4', ['9999999999']],
    ['select $1::int8', ['99999999999999999999']],
    ['select $1::float4', ['1e39']],
    ['select $1::float8', ['1e400']],
    ['select $1::numeric(6, 2)', ['12345.6']],
    ['select 12345.6::numeric(6, 2)'],
    ["select '12345.6'::numeric(6, 2)"],
    ['select $1::int8::int2', [Buffer.from('00000002540be3ff', 'hex')]],
  ]
  for (const [text, values] of refused) expect(await codeOf(client.query(text, values)), text).toBe('22003')
  // What no INT, LONG, FLOAT and DATE holds is NULL: a column alike.
  expect(await rowsOf("select 9999999999::int4, '9999999999'::int, 1e39::real, 1e39::int8")).toEqual([
    [null, null, null, null],
  ])
  expect(await rowsOf('select l::int4, s::int, d::real, d::int8 from wide')).toEqual([[null, null, null, null]])
})

test('times that are none', async () => {
  for (const type of ['date', 'timestamp', 'timestamptz']) {
    expect(await codeOf(client.query(`select $1::${type}`, ['2024-13-01'])), type).toBe('22008')
    expect(await codeOf(client.query(`select $1::${type}`, ['2024-02-30 10:00:00'])), type).toBe('22008')
    expect(await codeOf(client.query(`select $1::${type}`, ['abc'])), type).toBe('22007')
  }
  for (const column of ['t', 'da']) {
    expect(await codeOf(client.query(`insert into nr (${column}) values ('2024-13-01')`))).toBe('22008')
    expect(await codeOf(client.query(`insert into nr (${column}) values ($1)`, ['2024-02-30']))).toBe('22008')
    expect(await codeOf(client.query(`insert into nr (${column}) values ('abc')`))).toBe('22007')
  }
})

test('fractions are rounded on their way into whole numbers, over HTTP they are cut', async () => {
  await client.query(
    'insert into nr (l, i, s, b) values (1.5, 2.5, -2.5, 0.5), (1.5::float8, 2.5::float8, -2.5::float8, 0.5::float8)',
  )
  await client.query('insert into nr (l, i, s, b) select 1.5, 2.5, -2.5, 0.5')
  await client.query('insert into nr (l, i, s, b) select d, d + 1, -d, d from (select 1.5::float8 d) x')
  await client.query('insert into nr (l, i, s, b) values ($1::float8, $2::float8, $3::numeric, $4::numeric)', [
    ...['1.5', '2.5', '-2.5', '0.5'],
  ])
  expect(await rowsOf('select l, i, s, b from nr')).toEqual([
    ['2', '3', '-3', '1'],
    ['2', '2', '-2', '0'],
    ['2', '3', '-3', '1'],
    ['2', '2', '-2', '2'],
    ['2', '2', '-3', '1'],
  ])
  await client.query('update nr set l = 3.5, i = 4.5::float8, s = i + 0.5')
  expect(await rowsOf('select distinct l, i from nr')).toEqual([['4', '4']])
  expect(await rowsOf('select s from nr')).toEqual([['4'], ['2'], ['4'], ['2'], ['2']])
  expect(await codeOf(client.query('insert into nr (s) values (32767.5)'))).toBe('22003')
  await client.query('truncate table nr')
  await server.exec('insert into nr (l, i, s, b) values (1.5, 2.5, -2.5, 0.5)')
  await server.exec('insert into nr (l, i, s, b) select 1.5, 2.5, -2.5, 0.5')
  expect(await rowsOf('select distinct l, i, s, b from nr')).toEqual([['1', '2', '-2', '0']])
})

test('arithmetic beyond INT and LONG is NULL in statements that store it, BYTE and SHORT refuse it', async () => {
  await client.query('insert into nr (b, s, i, l) values (127, 32767, 2147483647, 9223372036854775807)')
  for (const column of ['b', 's'])
    expect(await codeOf(client.query(`update nr set ${column} = ${column} + 1`)), column).toBe('22003')
  await client.query('update nr set i = i + 1, l = l * 2')
  expect(await rowsOf('select b, s, i, l from nr')).toEqual([['127', '32767', null, null]])
})

test('parts of times have their fraction, those of HTTP are whole', async () => {
  const ts = "'2024-01-01T00:00:01.123456Z'::timestamp"
  const times = `select ${ts} ts, '2024-01-01T00:00:02.123456789Z'::timestamp_ns ns, '1969-12-31T23:59:59.5Z'::timestamp old`
  const parts = async (list: string): Promise<unknown[]> => (await rowsOf(`select ${list} from (${times}) t`)).flat()
  expect(await parts('extract(epoch from ts), extract(epoch from ns), extract(epoch from old)')).toEqual([
    ...['1704067201.123456', '1704067202.123456', '-0.500000'],
  ])
  expect(await parts('extract(second from ts), extract(milliseconds from ns), extract(microseconds from old)')).toEqual(
    [...['1.123456', '2123.456', '59500000']],
  )
  expect(await parts("date_part('epoch', ts), date_part('second', ns), date_part('hour', ts)")).toEqual([
    ...['1.704067201123456E9', '2.123456', '0'],
  ])
  expect(await parts('extract(epoch from ns - ts), extract(second from ts - ns), extract(day from ns - ts)')).toEqual([
    ...['1.000000', '-1.000000', '0'],
  ])
  expect(await parts('to_timestamp(floor(extract(epoch from ts) / 300) * 300)')).toEqual(['2024-01-01 00:00:00.000000'])
  const { body } = await server.exec(
    `select extract(epoch from ts), extract(second from ts), extract(epoch from ns - ts), extract(epoch from ns - ${ts}) from (${times})`,
  )
  expect(body.dataset).toEqual([[1704067201, 1, 1, 1]])
})

/** A DECIMAL on one side, and a column, a literal or a parameter of zero on the other. */
const byZero = ['1 / m', 'm / m', 'm / i', 'l / m', 'm % m', 's % m', 'mod(m, m)', '1::numeric / i', 'm / (i - i)']

test.each(byZero)('%s is an error where the divisor is zero', async (expression) => {
  await client.query('create table zero (i int, s smallint, l bigint, d float8, m numeric(18, 3))')
  try {
    await client.query('insert into zero values (0, 0, 0, 0, 0), (null, null, null, null, null)')
    expect(await codeOf(client.query(`select ${expression} from zero`))).toBe('22012')
    expect(await codeOf(client.query(`select sum(${expression}) from zero`))).toBe('22012')
    expect(await codeOf(client.query(`select 1 from zero where ${expression} > 0`))).toBe('22012')
    expect(await codeOf(client.query(`update zero set m = ${expression}`))).toBe('22012')
    // A condition keeps zeros away, and nothing is divided by NULL.
    const guarded = `case when m <> 0 then ${expression} end`
    expect(await rowsOf(`select ${guarded} from zero`)).toEqual([[null], [null]])
    expect(await rowsOf(`select 1 from zero where m <> 0 and ${expression} > 0`)).toEqual([])
    expect((await server.exec(`select ${expression} from zero`)).status).toBe(200)
  } finally {
    await client.query('drop table zero')
  }
})

test('a parameter of zero divides no DECIMAL; integers and doubles divided by zero are NULL', async () => {
  expect(await codeOf(client.query('select 1m / $1::numeric', ['0.00']))).toBe('22012')
  expect(await codeOf(client.query('select 1m % $1::int', [0]))).toBe('22012')
  expect(await codeOf(client.query('select n / 0 from nr'))).toBe('22012')
  expect(await rowsOf('select 1 / (1 - 1), 1.5 / (1 - 1), mod(1, 1 - 1), null::numeric / 0')).toEqual([
    [null, null, null, null],
  ])
  expect(await rowsOf('select mod(7.5::numeric, 2), 7.5::numeric % 2, 7::numeric / 2')).toEqual([
    ['1.5', '1.5', '3.500000000000000000'],
  ])
})
