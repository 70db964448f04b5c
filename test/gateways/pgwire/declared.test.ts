// Goal: the catalog, and the descriptions of results and parameters, show a column as PostgreSQL clients have declared
// it (type, length, NOT NULL), also after a restart and changes of the column; timestamps with time zone are returned
// with their zone, as text and binary. Constraints are ignored with a notice. Also: values of columns of times of day
// have one form, and decimals are rounded into columns of whole numbers.

import type pg from 'pg'
import postgres from 'postgres'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { TestServer } from '../../support/server.js'

const server = TestServer.shared()
let client: pg.Client

async function connect(): Promise<void> {
  client = await server.connect()
}

beforeAll(async () => {
  await server.start()
  await connect()
})

afterAll(() => server.remove())

/** `name type length nullable` of each column. */
async function columnsOf(table: string): Promise<string[]> {
  const { rows } = await client.query(
    `select column_name || ' ' || udt_name || ' ' || coalesce(character_maximum_length::text, '-') || ' ' || is_nullable c
     from information_schema.columns where table_name = $1 order by ordinal_position`,
    [table],
  )
  return rows.map(({ c }) => c)
}

async function oidsOf(sql: string): Promise<number[]> {
  return (await client.query(sql)).fields.map(({ dataTypeID }) => dataTypeID)
}

test('definitions stay as they were written', async () => {
  await client.query(`create table d (
    id bigint primary key, a varchar(50) not null, b text, c jsonb, d timestamp(3), e timestamp with time zone, f date, g time)`)
  const written = [
    'id int8 - NO',
    'a varchar 50 NO',
    'b text - YES',
    'c jsonb - YES',
    'd timestamp - YES',
    'e timestamptz - YES',
    'f date - YES',
    'g time - YES',
  ]
  expect(await columnsOf('d')).toEqual(written)
  const { rows } = await client.query(
    "select format_type(atttypid, atttypmod) f, attnotnull n from pg_attribute where attrelid = 'd'::regclass and attnum in (1, 2, 5)",
  )
  expect(rows).toEqual([
    { f: 'bigint', n: true },
    { f: 'character varying(50)', n: true },
    { f: 'timestamp(3) without time zone', n: false },
  ])
  const modifiers = async (sql: string): Promise<number[]> =>
    (await client.query(sql)).fields.map(({ dataTypeModifier }) => dataTypeModifier)
  expect(await modifiers("select a, b, d, a || 'x' e, max(d) f from d group by a, b, d")).toEqual([54, -1, 3, -1, -1])
  const sizes = (await client.query("select id, a, d, f::date, g, c, null::uuid u, '1 h'::interval i, true b from d"))
    .fields
  expect(sizes.map(({ dataTypeSize }) => dataTypeSize)).toEqual([8, -1, 8, 4, 8, -1, 16, 16, 1])
  await client.query('alter table d alter column a type varchar(60)')
  expect(await modifiers('select x.a, y.a from d x join (select * from d) y on x.id = y.id')).toEqual([64, 64])
  await client.query('alter table d alter column a type varchar(50)')
  await client.end()
  await server.restart()
  await connect()
  expect(await columnsOf('d')).toEqual(written)
  expect(await modifiers('select a from d')).toEqual([54])
})

test('changes of a column change what is shown', async () => {
  await client.query('create table c (a varchar(50) not null, b int, c text)')
  await client.query("insert into c values ('x', 1, 'y')")
  await client.query('alter table c alter column a type varchar(80)')
  await client.query('alter table c alter column b type varchar(9)')
  await client.query('alter table c alter column c set not null')
  expect(await columnsOf('c')).toEqual(['a varchar 80 NO', 'b varchar 9 YES', 'c text - NO'])
  await client.query('alter table c alter column a drop not null')
  await client.query('alter table c alter column a type text')
  expect(await columnsOf('c')).toEqual(['a text - YES', 'b varchar 9 YES', 'c text - NO'])
  expect((await client.query('select * from c')).rows).toEqual([{ a: 'x', b: '1', c: 'y' }])
})

test('times with their zone', async () => {
  await client.query('create table z (p timestamp, z timestamptz)')
  await client.query("insert into z values ('2024-01-01', '2024-01-01 02:00:00+02'), (null, null)")
  expect(await oidsOf('select p, z, p::timestamptz, z::timestamp from z')).toEqual([1114, 1184, 1184, 1114])
  const made = "select date_trunc('day', z), max(z), z + interval '1 day', coalesce(z, p), z at time zone 'UTC' from z"
  expect(await oidsOf(made)).toEqual([1184, 1184, 1184, 1184, 1114])
  const text = await client.query({ text: 'select p, z, now()::timestamptz > z n from z', rowMode: 'array', types })
  expect(text.rows).toEqual([
    ['2024-01-01 00:00:00.000000', '2024-01-01 00:00:00.000000+00', 't'],
    [null, null, 'f'],
  ])
  const binary = await client.query({ text: 'select z from z', binary: true } as pg.QueryConfig)
  expect(binary.rows[0]).toEqual({ z: new Date('2024-01-01T00:00:00Z') })
  // An array keeps the kernel out.
  const mixed = await client.query({ text: 'select z, array[1.0] from z', rowMode: 'array', types })
  expect(mixed.rows[0]).toEqual(['2024-01-01 00:00:00.000000+00', '{1.0}'])
  await client.query('create table y as (select z, z::timestamp p from z)')
  expect(await columnsOf('y')).toEqual(['z timestamptz - YES', 'p timestamp - YES'])
  const grouped = await client.query('select z::timestamptz k, count(*)::int n from z group by z order by k')
  expect(grouped.rows).toEqual([
    { k: null, n: 1 },
    { k: new Date('2024-01-01T00:00:00Z'), n: 1 },
  ])
})

test('a parameter of a zone is described with it', async () => {
  const { fields, rows } = await client.query('select $1::timestamptz z', ['2024-01-01 00:00:00+01'])
  expect(fields.map(({ dataTypeID }) => dataTypeID)).toEqual([1184])
  expect(rows).toEqual([{ z: new Date('2023-12-31T23:00:00Z') }])
})

test('parameters are described as their columns', async () => {
  await client.query('create table p (z timestamptz, j json, t timestamp)')
  const sql = postgres({ ...server.login, max: 1 })
  const described = async (text: string): Promise<readonly number[]> => {
    const { types } = (await sql.unsafe(text).describe()) as unknown as { types: readonly number[] }
    return types
  }
  expect(await described('insert into p values ($1, $2, $3)')).toEqual([1184, 114, 1114])
  expect(await described('update p set z = $1, j = $2 where z > $3')).toEqual([1184, 114, 1184])
  await sql.end()
})

test('JSON is described as JSON', async () => {
  await client.query('create table j (a json, b json, c text)')
  const values = [JSON.stringify({ k: [1] }), '[2]', '{}']
  const made = await client.query('insert into j values ($1, $2, $3) returning a, b, c', values)
  expect(made.rows).toEqual([{ a: { k: [1] }, b: [2], c: '{}' }])
  await client.query('begin')
  await client.query("insert into j (a) values ('5')")
  const own = await client.query(
    "select coalesce(a, '{}') a, b from j where a = '5' or b = '[2]' union all select b, a from j",
  )
  expect(own.rows).toContainEqual({ a: 5, b: null })
  await client.query('rollback')
  expect(await oidsOf("select a, b, c, '{}'::jsonb, a::text from j")).toEqual([114, 114, 1043, 3802, 1043])
  expect((await client.query('select json_agg(a) l from j')).rows).toEqual([{ l: [{ k: [1] }] }])
})

test('constraints are not enforced, with a notice of each kind', async () => {
  const notices: string[] = []
  client.on('notice', ({ message }) => notices.push((message ?? '').split(':')[0] ?? ''))
  const taken = async (sql: string): Promise<string[]> => {
    notices.length = 0
    await client.query(sql)
    return [...notices]
  }
  const [keys, foreign, checks] = [
    'keys are shown to clients and not enforced',
    'foreign keys are ignored',
    'CHECK constraints are ignored',
  ]
  expect(
    await taken(`create table k (
      a int constraint a_given not null, b int references d (id) on delete cascade on update set null deferrable initially deferred,
      c int check (c > 0 and (c % 2) = 0), "check" int, "unique" int unique,
      constraint k_pk primary key (a, b), unique nulls not distinct (c), check (b <> c),
      constraint k_fk foreign key (b) references public.d (id) match full on delete no action not valid)`),
  ).toEqual([keys, checks, foreign])
  expect(await columnsOf('k')).toEqual([
    'a int4 - NO',
    'b int4 - NO',
    'c int4 - YES',
    'check int4 - YES',
    'unique int4 - YES',
  ])
  expect(
    await taken('alter table k add constraint f foreign key (c) references d deferrable initially deferred'),
  ).toEqual([foreign])
  expect(await taken('alter table k add constraint c check ("check" in (1, 2))')).toEqual([checks])
  expect(await taken('alter table k add column x int references d (id)')).toEqual([foreign])
  expect(await taken('alter table k drop constraint if exists c cascade')).toEqual([
    'no key has that name, and other constraints are not kept',
  ])
  await expect(client.query('create table l (a int, constraint x)')).rejects.toMatchObject({ position: '36' })
  await expect(client.query('create table l (a int references d on delete)')).rejects.toMatchObject({ code: '42601' })
})

test('columns of tables are known by their numbers in the catalog, computed ones by none', async () => {
  await client.query('create table origins (ts timestamp, gone int, n int, s symbol) timestamp(ts) partition by day')
  await client.query('alter table origins drop column gone')
  const { rows } = await client.query(
    "select attrelid, attname, attnum from pg_attribute where attrelid = 'origins'::regclass and attnum > 0",
  )
  const named = new Map(rows.map(({ attrelid, attname, attnum }) => [`${attrelid} ${attnum}`, attname]))
  const origins = async (text: string, values: unknown[] = []): Promise<string> =>
    (await client.query(text, values)).fields
      .map(({ tableID, columnID }) => named.get(`${tableID} ${columnID}`) ?? `${tableID}/${columnID}`)
      .join(' ')
  expect(await origins('select * from origins')).toBe('ts n s')
  expect(await origins('select n + 1, s as other, n from origins where n > $1 order by ts limit 2', [1])).toBe(
    '0/0 s n',
  )
  expect(await origins('select o.s, count(*), max(n) from origins o group by s')).toBe('s 0/0 0/0')
  expect(await origins('select distinct x.n, y.s from origins x join origins y on x.n = y.n')).toBe('n s')
  expect(await origins('select s, row_number() over (order by n) from (select n, s from origins)')).toBe('s 0/0')
  expect(await origins('select n from origins union all select n from origins')).toBe('0/0')
  expect(await origins('select x, x from long_sequence(1)')).toBe('0/0 0/0')
})

test('a DATE that HTTP makes has a time of day, one of the wire protocol is a day', async () => {
  await server.exec('create table dates (a date, b varchar(7) not null)')
  await client.query('alter table dates add column c date')
  expect(await columnsOf('dates')).toEqual(['a timestamp - YES', 'b varchar 7 NO', 'c date - YES'])
})

test('times of day are described as such, and so are parameters for them', async () => {
  await client.query('create table days (d date, t time, n int)')
  await client.query(
    "insert into days values ('2024-02-29', '10:11:12.5', 1), ('1969-12-31', '00:00', 2), (null, null, 3)",
  )
  expect(await oidsOf('select d, t, max(d), min(t), coalesce(d, d) from days')).toEqual([1082, 1083, 1082, 1083, 1082])
  const all = 'select d, t from days where n > $1 order by n'
  const strings = await client.query({ text: all, values: [0], rowMode: 'array', types })
  expect(strings.rows).toEqual([
    ['2024-02-29', '10:11:12.5'],
    ['1969-12-31', '00:00:00'],
    [null, null],
  ])
  const found = 'select n from days where d = $1 and t = $2'
  expect((await client.query(found, ['2024-02-29', '10:11:12.5'])).rows).toEqual([{ n: 1 }])
  await client.query('create table more_days as (select * from days)')
  expect(await columnsOf('more_days')).toEqual(['d date - YES', 't time - YES', 'n int4 - YES'])
  const sql = postgres({ ...server.login, max: 1 })
  const { types: described } = (await sql.unsafe('insert into days values ($1, $2, 5)').describe()) as unknown as {
    types: readonly number[]
  }
  expect(described).toEqual([1082, 1083])
  await sql.end()
})

test('columns of oid are shown as such', async () => {
  await client.query('create table large (o oid, n int)')
  expect(await columnsOf('large')).toEqual(['o oid - YES', 'n int4 - YES'])
})

/** Strings as they come. */
const types = { getTypeParser: () => (value: string) => value }

test('what an UPDATE of the transaction has set is described as before', async () => {
  await client.query('create table held (id int, a text[], n int[], j jsonb, z timestamptz, t time)')
  await client.query(`insert into held values (1, '{a}', '{1}', '{"a":1}', '2024-01-01', '10:00:00')`)
  const oids = await oidsOf('select * from held')
  await client.query('begin')
  await client.query(`update held set a = '{b}', n = '{2}', j = '[2]', z = '2025-01-01', t = '11:00:00' where id = 1`)
  expect(await oidsOf('select * from held')).toEqual(oids)
  const rows = [{ id: 1, a: ['b'], n: [2], j: [2], z: new Date('2025-01-01T00:00:00Z'), t: '11:00:00' }]
  expect((await client.query('select * from held')).rows).toEqual(rows)
  await client.query('commit')
  expect((await client.query('select * from held')).rows).toEqual(rows)
})

test('what jsonb functions make is jsonb, and times of day are times', async () => {
  const made = ["jsonb_build_object('a', 1)", 'jsonb_build_array(1)', 'to_jsonb(1)', 'jsonb_agg(1)']
  for (const call of made) {
    expect(await oidsOf(`select ${call}`), call).toEqual([3802])
    expect(await oidsOf(`select ${call.replace('jsonb', 'json')}`), call).toEqual([114])
  }
  expect(await oidsOf("select '2024-01-01T10:11:12Z'::timestamp::time")).toEqual([1083])
})

test('UPDATE takes a parameter that its client declares as numeric for any number', async () => {
  await client.query('create table counts (a bigint, i int, s smallint, d double, r float)')
  await client.query('insert into counts values (1, 1, 1, 1, 1)')
  const sql = postgres({ ...server.login, max: 1 })
  const numeric = (text: string) => sql.typed(text, 1700)
  await sql`update counts set a = ${numeric('1795630667255')}, i = ${numeric('12')}, s = ${numeric('-3')}`
  await sql`update counts set d = ${numeric('1.5')}, r = ${numeric('2.5')}`
  expect((await client.query('select * from counts')).rows).toEqual([
    { a: '1795630667255', i: 12, s: -3, d: 1.5, r: 2.5 },
  ])
  await sql.end()
})

test('times of day have one form, whichever way they come in', async () => {
  await client.query('create table hours (id int, t time)')
  await client.query("insert into hours values (1, '9:30'), (2, '9:30:00'), (3, '09:30 am'::time)")
  for (const name of ['', 'hour']) {
    await client.query({ name, text: 'insert into hours values ($1, $2)', values: [4, '9:30'] })
  }
  await client.query("insert into hours select 5, '9:30' from hours where id = 1")
  await client.query("update hours set t = '9:3' || '0' where id = 2")
  const { rows, fields } = await client.query(
    "select t, $1::time c, count(*)::int n from hours where t = '09:30:00' group by t",
    ['7:05'],
  )
  expect(rows).toEqual([{ t: '09:30:00', c: '07:05:00', n: 6 }])
  expect(fields.map(({ dataTypeID }) => dataTypeID)).toEqual([1083, 1083, 23])
  const found = async (condition: string, values: unknown[] = []): Promise<unknown> =>
    (await client.query({ text: `select count(*)::int n from hours where ${condition}`, values })).rows[0]?.n
  for (const condition of ["t = '9:30'", "t between '9:00' and '11:00'", "t in ('8:00', '9:30')", "'10:00' > t"])
    expect(await found(condition), condition).toBe(6)
  expect(await found('t >= $1 and t < $2', ['9:30', '10:00'])).toBe(6)
  expect(await found("t not between '9:00' and '9:29:59.5' and extract(minute from t) = 30")).toBe(6)
  for (const text of [
    "insert into hours values (1, 'x')",
    "select 1 from hours where t > 'noon'",
    "update hours set t = '25:00'",
    "select '9:75'::time",
  ])
    await expect(client.query(text), text).rejects.toMatchObject({ code: '22007' })
})

test('decimals are rounded into columns of whole numbers', async () => {
  await client.query('create table whole (id int, l bigint, s smallint, d double precision)')
  await client.query('insert into whole values (1, 2.5::numeric, -2.5::numeric, 1.25::numeric)')
  await client.query(
    'insert into whole select 2, 7.49::numeric, 7.5::numeric(4, 1), 1::numeric from whole where id = 1',
  )
  await client.query('update whole set l = s * 1.5::numeric where id = 2')
  expect((await client.query('select l::text l, s, d from whole order by id')).rows).toEqual([
    { l: '3', s: -3, d: 1.25 },
    { l: '12', s: 8, d: 1 },
  ])
  const large = client.query('insert into whole (id, s) values (3, 32767.5::numeric)')
  await expect(large).rejects.toMatchObject({ code: '22003' })
})
