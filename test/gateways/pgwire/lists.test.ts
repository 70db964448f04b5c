// Goal: one-dimensional lists of strings, integers, booleans, times, days and UUIDs are arrays for PostgreSQL clients,
// in text and binary format, however their values are inserted; columns of such types store strings. Expressions that
// make arrays of whole numbers are integer arrays until they are stored, then arrays of doubles. Columns of jsonb are
// reported as such, and rows are strings as PostgreSQL prints them.

import { Readable } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import { pipeline } from 'node:stream/promises'
import type pg from 'pg'
// @ts-expect-error it has no types
import { from as copyFrom, to as copyTo } from 'pg-copy-streams'
import postgres from 'postgres'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { TestServer } from '../../support/server.js'

const server = TestServer.shared()
let client: pg.Client
let sql: postgres.Sql

beforeAll(async () => {
  await server.start()
  const login = server.login
  client = await server.connect()
  sql = postgres({ ...login, max: 1 })
  await client.query('create table kept (id int, t text[], n int[], b bigint[], f float8[], j jsonb)')
})

afterAll(async () => {
  await sql?.end()
  await server.remove()
})

async function rowsOf(text: string, values: unknown[] = []): Promise<unknown[][]> {
  return (await client.query({ text, values, rowMode: 'array' })).rows
}

async function oidsOf(text: string): Promise<number[]> {
  return (await client.query(text)).fields.map(({ dataTypeID }) => dataTypeID)
}

const strings = ['a', 'b c', null, 'q"u\\', 'NULL', '', 'ü,{}']

test('values come back as they went in, by every way', async () => {
  const insert = { name: 'insert', text: 'insert into kept values ($1, $2, $3, $4, $5, $6)' }
  const values = [strings, [1, null, -3], ['9007199254740993'], [1.5], '{"k": 1}']
  for (let id = 1; id <= 3; id++) await client.query({ ...insert, values: [id, ...values] })
  await client.query(`insert into kept values
    (4, '{a, "b c" ,NULL,"q\\"u\\\\","NULL","",ü\\,\\{\\}}', array[1, null, -3], '{9007199254740993}', '{1.5}', '{"k": 1}')`)
  await client.query('insert into kept select 5, t, n, b, f, j from kept where id = 1')
  for (const form of ['text', 'csv', 'binary']) {
    const bytes = await buffer(
      client.query(copyTo(`copy (select * from kept where id = 1) to stdout (format ${form})`)),
    )
    await pipeline(Readable.from([bytes]), client.query(copyFrom(`copy kept from stdin (format ${form})`)))
  }
  const found = await rowsOf('select t, n, b, f, j from kept')
  expect(found).toEqual(
    Array.from({ length: 12 }, () => [strings, [1, null, -3], ['9007199254740993'], [1.5], { k: 1 }]),
  )
  expect(await oidsOf('select * from kept')).toEqual([23, 1009, 1007, 1016, 1022, 3802])
})

test('lists and jsonb have the binary form of PostgreSQL', async () => {
  const binary = async (values: string): Promise<string> => {
    const bytes = await buffer(client.query(copyTo(`copy (select ${values}) to stdout (format binary)`)))
    // The header, the number of values and the end are not of interest.
    return bytes.subarray(21, -2).toString('hex')
  }
  // Bytes; dimensions, whether there are NULLs, type of the elements, their number and the first index; bytes and
  // values.
  expect(await binary("'{a,NULL}'::text[]")).toBe(
    ['0000001d', '00000001', '00000001', '00000019', '00000002', '00000001', '00000001', '61', 'ffffffff'].join(''),
  )
  expect(await binary("'{258}'::int[]")).toBe(
    ['0000001c', '00000001', '00000000', '00000017', '00000001', '00000001', '00000004', '00000102'].join(''),
  )
  expect(await binary("'{}'::bigint[]")).toBe(['0000000c', '00000000', '00000000', '00000014'].join(''))
  expect(await binary(`'{"k":1}'::jsonb`)).toBe(['00000008', '01', Buffer.from('{"k":1}').toString('hex')].join(''))
})

test('equal lists are equal however they were written', async () => {
  expect(await rowsOf('select distinct t, n from kept')).toEqual([[strings, [1, null, -3]]])
  expect(await rowsOf('select count(*)::int from kept where t = $1 and n = $2', [strings, [1, null, -3]])).toEqual([
    [12],
  ])
  await expect(client.query("insert into kept (t) values ('a')")).rejects.toThrow('malformed array literal: "a"')
  await expect(client.query('insert into kept (t) values ($1)', ['a'])).rejects.toThrow('malformed array literal')
})

test('lists are changed and read by their elements', async () => {
  await client.query('update kept set t = $1, n = $2 where id = 2', [['x', 'y'], [7]])
  await client.query("update kept set t = array_append(t, 'z') where id = 2")
  expect(await rowsOf('select t, n, t[2], n[1], unnest(t) from kept where id = 2')).toEqual(
    ['x', 'y', 'z'].map((text) => [['x', 'y', 'z'], [7], 'y', 7, text]),
  )
  expect(await rowsOf("select id from kept where 'y' = any(t) and 7 = any(n)")).toEqual([[2]])
  expect(await oidsOf('select n[1], b[1], t[1] from kept')).toEqual([23, 20, 1043])
})

test('arguments are described as the columns are, and lists of a column as lists of it', async () => {
  const described = async (text: string): Promise<unknown> => (await sql.unsafe(text).describe()).types
  expect(await described('insert into kept values ($1, $2, $3, $4, $5, $6)')).toEqual([
    23, 1009, 1007, 1016, 1022, 3802,
  ])
  expect(await described('select 1 from kept where id = any($1) and t = $2')).toEqual([1007, 1009])
  expect(await described('select $1::text[], $2::int[], $3::bigint[], $4::uuid[]')).toEqual([1009, 1007, 1016, 2951])
  expect(await sql`select ${sql.array(['a', 'b'])}::text[] t, id from kept where id = any(${[2, 3]})`).toEqual([
    { t: ['a', 'b'], id: 2 },
    { t: ['a', 'b'], id: 3 },
  ])
})

test('expressions that make lists are described as lists', async () => {
  const made = "string_to_array('a,b', ','), array['a', 'b'], array_remove('{1,2}'::int[], '1'), array(select 'q')"
  expect(await rowsOf(`select ${made}`)).toEqual([[['a', 'b'], ['a', 'b'], [2], ['q']]])
  expect(await oidsOf(`select ${made}, array_agg(t[1]), '{}'::jsonb from kept`)).toEqual([
    ...[1009, 1009, 1007, 1009, 1009, 3802],
  ])
})

test('parameters that are said to be texts make a list of texts before they have values', async () => {
  const element = 'select (array[$1::text, $2::text])[$3::int]'
  expect(await rowsOf(element, ['a', 'b', 2])).toEqual([['b']])
  expect(await rowsOf('select array[$1::text, $2::varchar]', ['a', null])).toEqual([[['a', null]]])
  expect(await rowsOf('select array[$1, $2]', [1, 2.5])).toEqual([[[1, 2.5]]])
})

test('columns of lists of booleans, times, days and UUIDs are such arrays, in both forms', async () => {
  await client.query('create table others (b boolean[], t timestamp[], z timestamptz[], d date[], u uuid[])')
  const id = '6c1a3ba4-6a3b-4b5e-9b0f-3c6f0b1c2d3e'
  const values = ['{t,yes,f,NULL}', '{2024-01-02 03:04:05}', '{2024-01-02 03:04:05+02}', '{2024-02-29}', `{${id}}`]
  await client.query('insert into others values ($1, $2, $3, $4, $5)', values)
  expect(await oidsOf('select * from others')).toEqual([1000, 1115, 1185, 1182, 2951])
  const [row] = await sql`select * from others`.values()
  expect(await rowsOf('select b from others')).toEqual([[[true, true, false, null]]])
  await client.query('insert into others (b) values (array[true, null]::boolean[])')
  expect(await rowsOf('select b from others where t is null')).toEqual([[[true, null]]])
  expect(row?.[2]).toEqual([new Date('2024-01-02T01:04:05Z')])
  expect(row?.[4]).toEqual([id])
  const bytes = await buffer(
    client.query(copyTo('copy (select d from others where d is not null) to stdout (format binary)')),
  )
  expect(bytes.subarray(21, -2).toString('hex')).toBe(
    ['0000001c', '00000001', '00000000', '0000043a', '00000001', '00000001', '00000004', '00002279'].join(''),
  )
  for (const [column, value] of [
    ...[
      ['b', '{x}'],
      ['u', '{x}'],
      ['d', '{soon}'],
    ],
  ])
    await expect(client.query(`insert into others (${column}) values ($1)`, [value])).rejects.toThrow('inconvertible')
})

test('the catalog shows columns as they were written, also of a query', async () => {
  await client.query('create table of_query as (select t, n, j from kept)')
  await client.query('create table more (v varchar(5)[], s smallint[], u uuid[], c jsonb)')
  const { rows } = await client.query(
    `select string_agg(column_name || ' ' || data_type || ' ' || udt_name, ', ') c from information_schema.columns
     where table_name in ('of_query', 'more') group by table_name order by table_name`,
  )
  expect(rows).toEqual([
    { c: 'v ARRAY _varchar, s ARRAY _int2, u ARRAY _uuid, c jsonb jsonb' },
    { c: 't ARRAY _text, n ARRAY _int4, j jsonb jsonb' },
  ])
  const formats =
    "select format_type(atttypid, atttypmod) f, attndims d from pg_attribute where attrelid = 'of_query'::regclass"
  expect((await client.query(`${formats} and attnum = 2`)).rows).toEqual([{ f: 'integer[]', d: 1 }])
})

test('a written list is cast element by element', async () => {
  const made = "array[1, n[1]]::int[] a, array[$1, 'y']::text[] b, array[id, '7']::bigint[] c, array[]::int[] d"
  const { rows, fields } = await client.query(`select ${made} from kept where id = 4`, ['x'])
  expect(rows).toEqual([{ a: [1, 1], b: ['x', 'y'], c: ['4', '7'], d: [] }])
  expect(fields.map(({ dataTypeID }) => dataTypeID)).toEqual([1007, 1009, 1016, 1007])
  // As Prisma asks what a path of JSON holds.
  expect(
    await rowsOf('select id from kept where (j#>array[$1]::text[])::jsonb::text = $2 and id = 4', ['k', '1']),
  ).toEqual([[4]])
})

test('arrays of whole numbers are such, in both forms, until something else is made of them', async () => {
  const whole = `array[1, 2] a, array[1, null, 3000000000] b, (select array_agg(x::int) from long_sequence(3)) c,
    (select array_agg(x) filter (where x > 1) from long_sequence(3)) d, array[[1, 2], [3, 4]] e, array[1] || 2 f,
    (array[1, 2, 3])[2:] g, (array[1, 2])[2] h, case when true then array[1] else array[3000000000] end i`
  expect(await oidsOf(`select ${whole}`)).toEqual([1007, 1016, 1007, 1016, 1007, 1007, 1007, 23, 1016])
  const values = [
    [1, 2],
    ['1', null, '3000000000'],
    [1, 2, 3],
    ['2', '3'],
    [
      [1, 2],
      [3, 4],
    ],
    [1, 2],
    [2, 3],
    2,
    ['1'],
  ]
  expect(await rowsOf(`select ${whole}`)).toEqual([values])
  const mixed = `array[1, 2.5] a, array[2] * 0.5 b, array[1, 2]::float8[] c, array_append(array[1], 0.5) d,
    coalesce(array[0.5], array[1]) e`
  expect(await oidsOf(`select ${mixed}`)).toEqual([1022, 1022, 1022, 1022, 1022])
  expect(await rowsOf(`select ${mixed}`)).toEqual([[[1, 2.5], [1], [1, 2], [1, 0.5], [0.5]]])
  expect(await rowsOf('select array[1] a union all select array[0.5]')).toEqual([[[1]], [[0.5]]])
  expect(await oidsOf('select * from unnest(array[1, 2]) a, unnest(array[3000000000]) b')).toEqual([23, 20])
})

test('arrays of whole numbers have the binary form of PostgreSQL, and are stored as doubles', async () => {
  const bytes = await buffer(
    client.query(copyTo('copy (select array[258, null], array[3000000000]) to stdout (format binary)')),
  )
  const ints = [
    '00000020',
    '00000001',
    '00000001',
    '00000017',
    '00000002',
    '00000001',
    '00000004',
    '00000102',
    'ffffffff',
  ]
  const longs = ['00000020', '00000001', '00000000', '00000014', '00000001', '00000001', '00000008', '00000000b2d05e00']
  expect(bytes.subarray(21, -2).toString('hex')).toBe([...ints, ...longs].join(''))
  expect(await sql`select array[${7}::int, 8] a, array_agg(x::int) b from long_sequence(2)`).toEqual([
    { a: [7, 8], b: [1, 2] },
  ])
  await client.query('create table made as (select array[1, 2] a from long_sequence(1))')
  expect(await oidsOf('select a from made')).toEqual([1022])
})

test('rows are texts as PostgreSQL prints them', async () => {
  await client.query('create table rowed (a int, b text)')
  await client.query(`insert into rowed values (1, 'x'), (1, 'x y'), (2, null)`)
  expect(await rowsOf('select rowed from rowed')).toEqual([['(1,x)'], ['(1,"x y")'], ['(2,)']])
  expect(await rowsOf('select r.a, s from rowed r left join rowed s on s.a = r.a + 1 order by r.a limit 2, 3')).toEqual(
    [[2, null]],
  )
  const { fields, rows } = await client.query(
    `select row(true, 1.5::float8, null, '', 'a"b\\c', date '2024-01-01'), (1, 2) as p`,
  )
  expect(fields.map(({ name }) => name)).toEqual(['row', 'p'])
  expect(rows).toEqual([{ row: '(t,1.5,,"","a""b\\\\c",2024-01-01)', p: '(1,2)' }])
  expect(await rowsOf('select count(distinct (a, b))::int, count(distinct r)::int from rowed r')).toEqual([[3, 3]])
  expect(await rowsOf('select a as rowed, b from rowed limit 1')).toEqual([[1, 'x']])
  await client.query('drop table rowed')
})

test('lists of booleans, times, days and UUIDs are such arrays', async () => {
  const rows = `(values (true, '2024-01-02T03:04:05.6Z'::timestamp), (false, null)) v(b, t)`
  const list = `select array_agg(b) b, array_agg(t) t, array_agg(distinct t::date) d, array[true, null] l,
    array['11111111-1111-1111-1111-111111111111'::uuid] u, array['2024-01-01'::timestamptz] z, array(select b from ${rows}) s from ${rows}`
  expect(await oidsOf(list)).toEqual([1000, 1115, 1182, 1000, 2951, 1185, 1000])
  const [found] = await rowsOf(list)
  expect(found?.[0]).toEqual([true, false])
  expect(found?.slice(3, 5)).toEqual([[true, null], ['11111111-1111-1111-1111-111111111111']])
  const strings = { text: list, rowMode: 'array' as const, types: { getTypeParser: () => (value: string) => value } }
  const [written] = (await client.query(strings as unknown as pg.QueryArrayConfig)).rows
  expect(written?.slice(1, 3)).toEqual(['{"2024-01-02 03:04:05.600000",NULL}', '{2024-01-02,NULL}'])
  expect(written?.[5]).toBe('{"2024-01-01 00:00:00.000000+00"}')
  const bytes = await buffer(
    client.query(
      copyTo(`copy (select array[true, null], array['2000-01-01T00:00:01Z'::timestamp]) to stdout (format binary)`),
    ),
  )
  const bools = ['0000001d', '00000001', '00000001', '00000010', '00000002', '00000001', '00000001', '01', 'ffffffff']
  const times = ['00000020', '00000001', '00000000', '0000045a', '00000001', '00000001', '00000008', '00000000000f4240']
  expect(bytes.subarray(21, -2).toString('hex')).toBe([...bools, ...times].join(''))
  expect(await rowsOf('select (array[true, false])[2], true = any(array[false, true]), to_json(array[true])')).toEqual([
    [false, true, [true]],
  ])
})
