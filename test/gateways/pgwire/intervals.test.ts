// Goal: columns of PostgreSQL's type interval store time spans, however they are inserted, in text and binary format,
// and expressions over them are intervals for PostgreSQL clients; over HTTP they are numbers of microseconds.

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
  client = await server.connect({ types: { getTypeParser: () => String } })
  sql = postgres({ ...login, max: 1 })
})

afterAll(async () => {
  await sql?.end()
  await server.remove()
})

async function rowsOf(text: string, values: unknown[] = []): Promise<unknown[][]> {
  return (await client.query({ text, values, rowMode: 'array' })).rows
}

/** INTERVAL => microseconds i64 | days i32 | months i32 */
function binary(micros: bigint, days: number, months = 0): Buffer {
  const bytes = Buffer.alloc(16)
  bytes.writeBigInt64BE(micros)
  bytes.writeInt32BE(days, 8)
  bytes.writeInt32BE(months, 12)
  return bytes
}

const written = ['1 day 02:00:00', '-1 days -02:00:00', '00:00:00.000001', null]

test('values come back as they went in, by every way', async () => {
  await client.query("create table kept (id int, d interval default '1 hour')")
  const insert = { name: 'insert', text: 'insert into kept values ($1, $2)' }
  for (const value of written) await client.query({ ...insert, values: [1, value] })
  for (const value of [binary(7_200_000_000n, 1), binary(-7_200_000_000n, -1), binary(1n, 0), null])
    await client.query({ ...insert, values: [2, value] })
  await client.query(
    "insert into kept values (3, 'P1DT2H'), (3, interval '26 hours' * -1), (3, '1 us'::interval), (3, null)",
  )
  await client.query('insert into kept select 4, d from kept where id = 1')
  for (const form of ['text', 'csv', 'binary']) {
    const bytes = await buffer(
      client.query(copyTo(`copy (select 5, d from kept where id = 1) to stdout (format ${form})`)),
    )
    await pipeline(Readable.from([bytes]), client.query(copyFrom(`copy kept from stdin (format ${form})`)))
  }
  expect((await rowsOf('select d from kept')).flat()).toEqual(Array.from({ length: 7 }, () => written).flat())
  await client.query('insert into kept (id) values (6)')
  await client.query("update kept set d = $1 where id = 6 and d = '60 minutes'", ['3 hours'])
  expect(await rowsOf('select d from kept where id = 6')).toEqual([['03:00:00']])
  const { rows, fields } = await client.query({
    text: 'select d from kept where id = 1',
    binary: true,
  } as pg.QueryConfig)
  expect(fields.map(({ dataTypeID }) => dataTypeID)).toEqual([1186])
  expect(rows).toHaveLength(4)
  const list = await sql`select count(*)::int c from kept where id = 1 and d = any(${['1 us', '26:00']}::interval[])`
  expect([...list]).toEqual([{ c: 2 }])
})

test('what is computed of spans is an interval', async () => {
  await client.query('create table computed (id int, d interval, ts timestamp, n timestamp_ns)')
  await client.query(`insert into computed values
    (1, '1 day', '2024-01-01', '2024-01-01'), (2, '2 hours', '2024-01-02', '2024-01-02'), (3, null, null, null)`)
  const { rows, fields } = await client.query({
    text: `select sum(d), avg(d), min(d), max(d), max(d) - min(d), sum(d) * 1.5, sum(d) / 2, -max(d),
      max(d) + interval '1 hour', coalesce(max(d), '1 hour'), count(d) from computed`,
    rowMode: 'array',
  })
  expect(rows).toEqual([
    ['1 day 02:00:00', '13:00:00', '02:00:00', '1 day', '22:00:00', '1 day 15:00:00', '13:00:00', '-1 days'].concat(
      '1 day 01:00:00',
      '1 day',
      '2',
    ),
  ])
  expect(fields.map(({ dataTypeID }) => dataTypeID)).toEqual([...Array.from({ length: 10 }, () => 1186), 20])
  const windows = 'select sum(d) over (order by id) a, lag(d) over (order by id) b from computed where id < 3'
  expect(await rowsOf(windows)).toEqual([
    ['1 day', null],
    ['1 day 02:00:00', '1 day'],
  ])
  const times =
    "select ts + d, d + ts, ts - d, n + d, d::text || '', extract(epoch from d), extract(day from d) from computed"
  expect(await rowsOf(`${times} where id = 1`)).toEqual([
    ['2024-01-02 00:00:00.000000', '2024-01-02 00:00:00.000000', '2023-12-31 00:00:00.000000'].concat(
      '2024-01-02 00:00:00.000000',
      '1 day',
      '86400.000000',
      '1',
    ),
  ])
})

test('spans are compared and sorted by their length', async () => {
  const ids = async (rest: string, values: unknown[] = []): Promise<unknown[]> =>
    (await rowsOf(`select id from computed where ${rest}`, values)).flat()
  expect(await ids("d > '1 hour' order by d")).toEqual(['2', '1'])
  expect(await ids("d between '1 hour' and interval '2 hours'")).toEqual(['2'])
  expect(await ids("d in ('24:00', '1 min')")).toEqual(['1'])
  expect(await ids('d < $1', ['3 hours'])).toEqual(['2'])
  expect(await ids('d = $1', [binary(0n, 1)])).toEqual(['1'])
  expect(await ids("ts - '2023-12-30'::timestamp - d < interval '2 days' order by id")).toEqual(['1'])
})

test('descriptions and the catalog show the type, and tables and views that are made of it keep it', async () => {
  const { types } = (await sql
    .unsafe('insert into computed (d) select $1 + d from computed where d > $2 and d * $3 < d')
    .describe()) as unknown as { types: readonly number[] }
  expect(types).toEqual([1186, 1186, 701])
  await client.query('create table made as (select d from computed)')
  await client.query('create view seen as select d, max(d) over () m from computed')
  const typesOf = 'select data_type from information_schema.columns where table_name'
  expect(await rowsOf(`${typesOf} = 'made'`)).toEqual([['interval']])
  expect(await rowsOf(`${typesOf} = 'seen'`)).toEqual([['interval'], ['interval']])
  await client.query('alter table made add column e interval')
  await client.query('alter table made alter column d type text')
  expect(await rowsOf('select * from made limit 1')).toEqual([['1 day', null]])
})

test('what is no span of one length is refused', async () => {
  const insert = (value: unknown): Promise<unknown> => client.query('insert into kept values (9, $1)', [value])
  await expect(insert('abc')).rejects.toMatchObject({ code: '22007' })
  await expect(insert('1 month')).rejects.toMatchObject({ code: '0A000' })
  await expect(insert(binary(0n, 0, 1))).rejects.toMatchObject({ code: '0A000' })
  await expect(client.query("select 'abc'::interval")).rejects.toMatchObject({ code: '22007' })
  await expect(client.query("select d + interval '1 month' from kept")).rejects.toMatchObject({ code: '0A000' })
  await expect(client.query("create table no (d interval default '1 mon')")).rejects.toMatchObject({ code: '0A000' })
})

test('over HTTP it is a number of microseconds', async () => {
  const url = `http://${server.address('http')}/exec?query=${encodeURIComponent('select d from kept limit 1')}`
  expect(await (await fetch(url)).json()).toMatchObject({
    columns: [{ name: 'd', type: 'LONG' }],
    dataset: [[93_600_000_000]],
  })
})

test('IntervalStyle iso_8601, which ActiveRecord sets, is heeded in texts of columns and results', async () => {
  const spans = "interval '1 day 02:03:04.5', interval '-1 day -02:00:00.25', interval '0', interval '90 s'"
  await client.query('set intervalstyle = iso_8601')
  expect(await rowsOf(`select ${spans}`)).toEqual([['P1DT2H3M4.5S', 'P-1DT-2H-0.25S', 'PT0S', 'PT1M30S']])
  await client.query("create table styled (d interval); insert into styled values ('P1DT2H')")
  expect(await rowsOf('select d from styled')).toEqual([['P1DT2H']])
  await expect(client.query('set intervalstyle = other')).rejects.toMatchObject({ code: '22023' })
  await client.query('set intervalstyle = postgres')
  expect(await rowsOf('select d from styled')).toEqual([['1 day 02:00:00']])
})
