// Goal: DEFAULT expressions fill columns in every kind of insert over the PostgreSQL protocol: literals, long strings,
// batches of a prepared INSERT, COPY in text and binary format; an unsupported default is ignored with a notice. Serial
// and identity columns are numbered in the same cases, also after the server was killed.

import pg from 'pg'
// @ts-expect-error it has no types
import { from } from 'pg-copy-streams'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { TestServer } from '../../support/server.js'

const server = new TestServer(['query.threads=1', 'pg.readonly.user.enabled=true'])
let client: pg.Client
const notices: string[] = []

function clientFor(user: string): pg.Client {
  const [host = '', port = ''] = server.address('postgres').split(':')
  return new pg.Client({ host, port: Number(port), user, password: 'quest', database: 'qdb' })
}

async function connect(): Promise<void> {
  client = clientFor('admin')
  await client.connect()
  client.on('notice', ({ message }) => notices.push(message ?? ''))
}

beforeAll(async () => {
  await server.start()
  await connect()
  await client.query(
    "create table d (ts timestamp not null default now(), a int default 5, s symbol default 'x', v varchar) timestamp(ts)",
  )
})

afterAll(async () => {
  await client?.end()
  await server.remove()
})

/** What the way left behind, and the table empty. */
async function filled(): Promise<unknown[]> {
  const { rows } = await client.query("select v, a, s, ts > dateadd('h', -1, now()) fresh from d order by v")
  await client.query('truncate table d')
  return rows
}

const row = (v: string) => ({ v, a: 5, s: 'x', fresh: true })

test('literals, and a text of several concatenated literals', async () => {
  await client.query("insert into d (v) values ('a'), ('b')")
  expect(await filled()).toEqual([row('a'), row('b')])
  const long = 'l'.repeat(300)
  await client.query(`insert into d (v) values ${Array.from({ length: 1000 }, () => `('${long}')`).join()}`)
  const rows = await filled()
  expect(rows.length).toBe(1000)
  expect(rows[999]).toEqual(row(long))
})

test('a batch of a prepared INSERT', async () => {
  const insert = { name: 'batch', text: 'insert into d (v) values ($1)' }
  await Promise.all(['a', 'b', 'c', 'd'].map((v) => client.query({ ...insert, values: [v] })))
  expect(await filled()).toEqual(['a', 'b', 'c', 'd'].map(row))
})

test('COPY without the columns, text and binary', async () => {
  const copy = async (sql: string, data: Buffer): Promise<void> => {
    const stream = client.query(from(sql))
    await new Promise((resolve, reject) => stream.on('finish', resolve).on('error', reject).end(data))
  }
  await copy('copy d (v) from stdin', Buffer.from('a\nb\n'))
  const binary = Buffer.concat([
    Buffer.from('PGCOPY\n\xff\r\n\0', 'latin1'),
    Buffer.alloc(8),
    Buffer.from([0, 1, 0, 0, 0, 1, 99, 255, 255]),
  ])
  await copy('copy d (v) from stdin (format binary)', binary)
  expect(await filled()).toEqual(['a', 'b', 'c'].map(row))
})

test('COPY in binary takes days for times, as of a column that was made as a date', async () => {
  await client.query('create table days (day date)')
  const stream = client.query(from('copy days from stdin (format binary)'))
  const row = Buffer.from([0, 1, 0, 0, 0, 4, 0, 0, 0x1c, 0x89, 255, 255])
  const data = Buffer.concat([Buffer.from('PGCOPY\n\xff\r\n\0', 'latin1'), Buffer.alloc(8), row])
  await new Promise((resolve, reject) => stream.on('finish', resolve).on('error', reject).end(data))
  expect((await client.query('select day::varchar d from days')).rows[0].d).toMatch(/^2020-01-01/)
})

test('a default that is not known is left out', async () => {
  notices.length = 0
  await client.query("create table n (id long default nextval('nowhere_seq'::regclass), v int default 7)")
  await client.query('alter table n add column w long default next_value()')
  expect(notices.map((text) => text.slice(0, 32))).toEqual([
    'the default of "id" is ignored, ',
    'the default of "w" is ignored, r',
  ])
  await client.query('insert into n (id) values (1)')
  expect((await client.query('select * from n')).rows).toEqual([{ id: '1', v: 7, w: null }])
})

test('numbers without digits keep eighteen places, and are described as declared', async () => {
  await client.query('create table unbounded (a decimal, b numeric(10, 2), c double precision)')
  await client.query('alter table unbounded add column "E" numeric, add column f decimal(5)')
  await client.query('alter table unbounded alter column f type numeric')
  await client.query('insert into unbounded (a, "E") values (1.23456, $1)', [
    '-12345678901234567890.123456789012345678',
  ])
  expect((await client.query('select a, "E" e from unbounded')).rows).toEqual([
    { a: '1.234560000000000000', e: '-12345678901234567890.123456789012345678' },
  ])
  const told = `select format_type(atttypid, atttypmod) t from pg_attribute where attrelid = 'unbounded'::regclass
    and attnum > 0 order by attnum`
  const types = (await client.query(told)).rows.map(({ t }) => t)
  expect(types).toEqual(['numeric', 'numeric(10,2)', 'double precision', 'numeric', 'numeric'])
  await expect(client.query('insert into unbounded (a) values ($1)', ['123456789012345678901'])).rejects.toThrow()
})

/** Behind a kill. */
async function restart(): Promise<void> {
  const lost = new Promise((resolve) => client.once('error', resolve))
  await server.end('SIGKILL')
  await lost
  await server.start()
  await connect()
}

test('counted columns are numbered by every way, with RETURNING, and go on behind a kill', async () => {
  notices.length = 0
  await client.query('create table c (id serial, ts timestamp, v int) timestamp(ts) partition by day')
  expect(notices).toEqual([expect.stringContaining('"id" is numbered by INSERT and COPY')])
  const insert = { name: 'counted', text: 'insert into c (ts, v) values ($1, $2) returning id' }
  for (const id of [1, 2]) expect((await client.query({ ...insert, values: ['2024-01-01', 0] })).rows).toEqual([{ id }])
  const plain = { name: 'plain', text: 'insert into c (ts, v) values ($1, $2)' }
  await Promise.all([1, 2, 3].map((v) => client.query({ ...plain, values: ['2024-01-02', v] })))
  const stream = client.query(from('copy c (ts, v) from stdin'))
  await new Promise((resolve, reject) => stream.on('finish', resolve).on('error', reject).end('2024-01-03\t9\n'))
  expect((await client.query('select id, v from c')).rows.map(({ id }: { id: number }) => id)).toEqual([
    1, 2, 3, 4, 5, 6,
  ])
  await restart()
  expect((await client.query({ ...insert, values: ['2024-01-04', 0] })).rows).toEqual([{ id: 7 }])
})

test('counted columns are never NULL, and the catalog says so', async () => {
  await client.query('create table told (a serial, b bigint generated by default as identity, c int)')
  await client.query('alter table told add column d smallserial')
  const { rows } = await client.query({
    text: `select column_name, is_nullable, attnotnull from information_schema.columns, pg_attribute
      where table_name = 'told' and attrelid = 'told'::regclass and attname = column_name order by attnum`,
    rowMode: 'array',
  })
  expect(rows).toEqual([
    ['a', 'NO', true],
    ['b', 'NO', true],
    ['c', 'YES', false],
    ['d', 'NO', true],
  ])
  await client.query('insert into told (c) values (5)')
  await client.query('insert into told (c, b) values (6, default)')
  expect((await client.query('select a, b, c, d from told')).rows).toEqual([
    { a: 1, b: '1', c: 5, d: 1 },
    { a: 2, b: '2', c: 6, d: 2 },
  ])
})

test('who may not write does not count either', async () => {
  const reader = clientFor('user')
  await reader.connect()
  for (const sql of ["select setval('c_id_seq', 70)", "select nextval('c_id_seq')"])
    await expect(reader.query(sql)).rejects.toMatchObject({ code: '42501' })
  expect((await reader.query("select currval('c_id_seq') n")).rows).toEqual([{ n: '7' }])
  await reader.end()
})

test('columns of one counter go on behind the largest number', async () => {
  await client.query('alter table c rename to older')
  await client.query('create table c (id serial, ts timestamp) timestamp(ts) partition by day')
  const idIn = async (table: string): Promise<number> =>
    (await client.query(`insert into ${table} (ts) values ('2024-01-05') returning id`)).rows[0].id
  const [inNew, inOlder] = [await idIn('c'), await idIn('older')]
  await idIn('c')
  expect(inOlder).toBeGreaterThan(inNew)
  const last = await idIn('older')
  await restart()
  expect(await idIn('c')).toBe(last + 1)
})

test('a DECIMAL is the default of a DOUBLE, and a type may be said again', async () => {
  await client.query("create table decimals (ts timestamp, x double precision default '1.25'::numeric, t varchar(20))")
  await client.query("insert into decimals (ts) values ('2024-01-01')")
  expect((await client.query('select x from decimals')).rows).toEqual([{ x: 1.25 }])
  expect((await client.query('alter table decimals alter column t type varchar(255)')).command).toBe('ALTER')
})

test('FLOAT of more bits than 24 is a DOUBLE, as pandas writes it', async () => {
  await client.query('create table bits (ts timestamp, a float(53), b float(24), c float)')
  await client.query("insert into bits values ('2024-01-01', 0.1, 0.5, 0.5)")
  const { rows, fields } = await client.query('select a, b, c from bits')
  expect(rows).toEqual([{ a: 0.1, b: 0.5, c: 0.5 }])
  expect(fields.map(({ dataTypeID }) => dataTypeID)).toEqual([701, 700, 700])
})
