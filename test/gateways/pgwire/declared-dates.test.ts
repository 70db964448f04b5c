// Goal: a column declared `date` over the PostgreSQL protocol contains whole days, however values are inserted.
// Results, comparisons, groups and the catalog agree with that, in text and binary format. DATE columns created over
// HTTP keep their time of day.

import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import type pg from 'pg'
// @ts-expect-error it has no types
import { from as copyFrom } from 'pg-copy-streams'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { TestServer } from '../../support/server.js'

const server = TestServer.shared()
const asStrings = { getTypeParser: () => (value: unknown) => value } as pg.CustomTypesConfig
let client: pg.Client

beforeAll(async () => {
  await server.start()
  client = await server.connect({ types: asStrings })
  await client.query('create table t (ts timestamp, d date, n int) timestamp(ts) partition by day')
  await client.query('create table k (n int primary key, d date default now())')
  await client.query('create table iv (ts timestamp, d date, n int)')
  await client.query(
    "insert into iv values ('2024-01-01 10:00:00', '2024-01-01 09:00', 1), ('2024-03-05 12:30:15.5', '2024-03-05', 2)",
  )
  await server.exec('create table h (ts timestamp, d date) timestamp(ts) partition by day')
  await server.exec("insert into h values ('2024-03-05T14:00:00Z', '2024-03-05T14:07:09.123Z')")
})

beforeEach(async () => {
  await client.query('truncate table t')
  await client.query('delete from k')
})

afterAll(async () => {
  await client?.end()
  await server.remove()
})

/** OID and values of the first column. */
async function column(text: string, values?: unknown[]): Promise<readonly [number, readonly unknown[]]> {
  const config = { text, rowMode: 'array' as const, ...(values === undefined ? {} : { values }) }
  const { fields, rows } = await client.query(config)
  return [fields[0]?.dataTypeID ?? 0, rows.map((row: unknown[]) => row[0])]
}

/** HTTP shows whatever is stored. */
async function stored(table = 't'): Promise<readonly unknown[]> {
  return (await server.rows(`select d from ${table}`)).flat()
}

const midnight = '2024-03-05T00:00:00.000Z'
const ts = "'2024-03-05 14:07:09.5'"

const inserted: readonly (readonly [way: string, statement: string, values: unknown[]])[] = [
  ['a literal', `insert into t values (${ts}, '2024-03-05 14:07:09', 1)`, []],
  ['a number', `insert into t values (${ts}, 1709647629000, 1)`, []],
  ['a constant expression', `insert into t values (${ts}, timestamp ${ts}, 1)`, []],
  ['a text parameter', `insert into t values (${ts}, $1, 1)`, ['2024-03-05 14:07:09.5']],
  ['a cast parameter', `insert into t values (${ts}, $1::timestamp, 1)`, ['2024-03-05 14:07:09.5']],
  ['a query of times', `insert into t select timestamp ${ts}, timestamp ${ts}, 1`, []],
  ['a query over a table', "insert into t select ts, ts, 1 from iv where n = 2 and ts > '2024-03-05'", []],
  ['a query of texts', `insert into t select ts, ${ts}::text, 1 from h`, []],
  ['a query of DATEs', 'insert into t select ts, d, 1 from h', []],
]

test.each(inserted)('%s loses its time of day', async (_way, statement, values) => {
  await client.query(statement, values)
  expect(await stored()).toEqual([midnight])
  expect(await column('select d from t group by d')).toEqual([1082, ['2024-03-05']])
  expect(await column("select n from t where d = '2024-03-05'")).toEqual([23, ['1']])
})

test('times before 1970 are of the day that they are in, and NULL stays', async () => {
  await client.query(`insert into t values (${ts}, '1969-12-30 23:59:59.999', 1), (${ts}, null, 2)`)
  expect(await stored()).toEqual(['1969-12-30T00:00:00.000Z', null])
})

test('UPDATE, ON CONFLICT, DEFAULT and RETURNING', async () => {
  await client.query(`insert into t values (${ts}, null, 1)`)
  for (const value of ['ts', "'2024-03-05 10:00'", "dateadd('h', 3, ts)"]) {
    await client.query(`update t set d = ${value}`)
    expect(await stored(), value).toEqual([midnight])
  }
  expect(await column("insert into k values (1, '2024-03-05 11:00') returning d")).toEqual([1082, ['2024-03-05']])
  await client.query(`create table u (ts timestamp, d date) timestamp(ts) partition by day wal dedup upsert keys(ts)`)
  for (const hour of ['11', '12'])
    await client.query(
      `insert into u values (${ts}, '2024-03-05 ${hour}:00') on conflict (ts) do update set d = excluded.d`,
    )
  expect(await stored('u')).toEqual([midnight])
  await client.query('delete from k')
  await client.query('insert into k (n) values (2)')
  await client.query('insert into k (n) select 3')
  for (const value of await stored('k')) expect(value).toMatch(/T00:00:00.000Z$/)
})

test('COPY of each form', async () => {
  const csv = '2024-03-05T14:07:09Z,2024-03-05T14:07:09Z,1\n'
  await pipeline(Readable.from([csv]), client.query(copyFrom('copy t from stdin (format csv)')))
  await pipeline(Readable.from([csv.replaceAll(',', '\t')]), client.query(copyFrom('copy t from stdin')))
  expect(await stored()).toEqual([midnight, midnight])
  const rows = Array.from({ length: 300_000 }, (_, n) => `2024-03-05T14:07:09Z,2024-03-05T14:07:09.123456Z,${n}\n`)
  await client.query('truncate table t')
  await pipeline(Readable.from([rows.join('')]), client.query(copyFrom('copy t from stdin (format csv)')))
  expect(await column("select count(*) from t where d = '2024-03-05'")).toEqual([20, ['300000']])
  expect(await server.rows('select distinct d from t')).toEqual([[midnight]])
})

test('CSV import, line protocol, and statements over HTTP', async () => {
  const body = new FormData()
  body.append('data', new Blob(['ts,d,n\n2024-03-05T14:07:09.000000Z,2024-03-05T14:07:09.000Z,1\n']), 't.csv')
  const { status } = await fetch(`http://${server.address('http')}/imp?name=t`, { method: 'POST', body })
  expect(status).toBe(200)
  await server.write('t d=1709647629000000t,n=2i 1709647629000000000\nt d=1709647629000000t,n=3i 1709647629000000001\n')
  await server.untilRows('select count() from t', [[3]])
  await server.exec("insert into t values ('2024-03-05T15:00:00Z', '2024-03-05T15:00:00Z', 4)")
  expect(await stored()).toEqual([midnight, midnight, midnight, midnight])
})

test('within a transaction, and behind a change of the type', async () => {
  await client.query('begin')
  await client.query(`insert into t select timestamp ${ts}, timestamp ${ts}, 1`)
  await client.query(`insert into t values (${ts}, $1, 2)`, ['2024-03-05 09:00'])
  expect(await column("select count(*) from t where d = date '2024-03-05'")).toEqual([20, ['2']])
  await client.query('commit')
  expect(await stored()).toEqual([midnight, midnight])
  await client.query('create table retyped as (select ts as d, n from iv)')
  await client.query('alter table retyped alter column d type date')
  expect(await stored('retyped')).toEqual(['2024-01-01T00:00:00.000Z', midnight])
  expect(await column('select d from retyped')).toEqual([1082, ['2024-01-01', '2024-03-05']])
})

const days: readonly (readonly [sql: string, values: readonly unknown[]])[] = [
  ['select d from iv', ['2024-01-01', '2024-03-05']],
  ['select max(d) from iv', ['2024-03-05']],
  ['select min(d) from iv', ['2024-01-01']],
  ['select d from iv group by d order by d desc', ['2024-03-05', '2024-01-01']],
  ['select d from (select * from iv) x', ['2024-01-01', '2024-03-05']],
  ['with x as (select d from iv) select d from x', ['2024-01-01', '2024-03-05']],
  ['select d from iv union select d from iv order by 1', ['2024-01-01', '2024-03-05']],
  ["select d from iv union all select date '2020-01-01'", ['2024-01-01', '2024-03-05', '2020-01-01']],
  ['select (select max(d) from iv)', ['2024-03-05']],
  ['select d + 1 from iv', ['2024-01-02', '2024-03-06']],
  ['select d - 1 from iv', ['2023-12-31', '2024-03-04']],
  ['select case when n = 1 then d end from iv', ['2024-01-01', null]],
  ["select coalesce(d, date '2020-01-01') from iv", ['2024-01-01', '2024-03-05']],
  ['select greatest(d, d) from iv', ['2024-01-01', '2024-03-05']],
  ['select max(d) over () from iv', ['2024-03-05', '2024-03-05']],
]

test.each(days)('%s', async (sql, values) => {
  expect(await column(sql)).toEqual([1082, values])
})

test('what is no date in PostgreSQL is none here', async () => {
  expect(await column("select d - date '2024-01-01' from iv")).toEqual([23, ['0', '64']])
  expect(await column('select d::text from iv')).toEqual([1043, ['2024-01-01', '2024-03-05']])
  expect((await column('select d::timestamp from iv'))[0]).toBe(1114)
  expect((await column('select coalesce(d, ts) from iv'))[0]).toBe(1114)
})

test('views and tables of queries', async () => {
  await client.query('create view days_seen as (select d, n from iv)')
  expect(await column('select d from days_seen')).toEqual([1082, ['2024-01-01', '2024-03-05']])
  await client.query('create table copied as (select d from iv)')
  const told = `select atttypid::int from pg_attribute where attname = 'd' and attrelid = 'copied'::regclass`
  expect(await column(told)).toEqual([23, ['1082']])
})

test('a date in binary is days since 2000', async () => {
  const day = Buffer.alloc(4)
  day.writeInt32BE(8830)
  await client.query('create table bd (d date, n int)')
  for (const n of [1, 2, 3])
    await client.query({ name: 'same', text: 'insert into bd (d, n) values ($1, $2)', values: [day, n] })
  expect(await column("select d from bd where d = '2024-03-05'")).toEqual([
    1082,
    ['2024-03-05', '2024-03-05', '2024-03-05'],
  ])
  expect((await column('select d from bd where d = $1', [day]))[1].length).toBe(3)
  const binary = { text: 'select d from bd where n = $1', values: [2], binary: true, rowMode: 'array' as const }
  expect((await client.query(binary)).rows).toEqual([[day.toString('latin1')]])
})

test('HTTP shows a DATE, and DATE columns that it makes keep their time of day', async () => {
  const { body } = await server.exec('select d from iv limit 1')
  expect(body.columns).toEqual([{ name: 'd', type: 'DATE' }])
  expect(await column('select d from h')).toEqual([1114, ['2024-03-05 14:07:09.123']])
  expect(await stored('h')).toEqual(['2024-03-05T14:07:09.123Z'])
})
