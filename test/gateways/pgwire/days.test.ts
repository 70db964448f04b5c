// Goal: `ts::date` is a date for PostgreSQL clients: without a time of day, in text and binary format, with arithmetic
// in days.

import type pg from 'pg'
import postgres from 'postgres'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { TestServer } from '../../support/server.js'

const server = TestServer.shared()
const dateOid = 1082
let client: pg.Client
let sql: postgres.Sql

beforeAll(async () => {
  await server.start()
  const login = server.login
  client = await server.connect({ types: { getTypeParser: () => String } })
  sql = postgres({ ...login, max: 1 })
  await client.query('create table seen (ts timestamp, d date, s symbol) timestamp(ts)')
  await client.query(`insert into seen values ('2024-03-05T14:07:09.5Z', '2024-03-05T14:00:00Z', 'a'),
    ('2024-03-05T23:59:59.999999Z', null, 'b'), ('2024-03-06T00:00:00Z', '2024-03-06', 'c')`)
})

afterAll(async () => {
  await sql?.end()
  await server.remove()
})

async function answer(text: string, values: unknown[] = []): Promise<[number[], unknown[][]]> {
  const { fields, rows } = await client.query({ text, values, rowMode: 'array' })
  return [fields.map(({ dataTypeID }) => dataTypeID), rows]
}

async function valuesOf(text: string, values: unknown[] = []): Promise<unknown[]> {
  return (await answer(text, values))[1].flat()
}

test('casts to date have no time of day', async () => {
  expect(await answer('select ts::date, cast(d as date) from seen order by ts')).toEqual([
    [dateOid, dateOid],
    [
      ['2024-03-05', '2024-03-05'],
      ['2024-03-05', null],
      ['2024-03-06', '2024-03-06'],
    ],
  ])
  expect(
    await answer("select '2024-03-05 14:07:09'::date, date '1969-12-31', null::date, date(ts) from seen limit 1"),
  ).toEqual([[dateOid, dateOid, dateOid, dateOid], [['2024-03-05', '1969-12-31', null, '2024-03-05']]])
  expect(await answer('select d from seen limit 1')).toEqual([[dateOid], [['2024-03-05']]])
})

test('rows are found and grouped by day', async () => {
  expect(await valuesOf("select s from seen where ts::date = '2024-03-05' order by s")).toEqual(['a', 'b'])
  expect(
    await valuesOf('select s from seen where (ts at time zone $1)::date = $2::date', ['UTC', '2024-03-06']),
  ).toEqual(['c'])
  expect(await valuesOf('select s from seen where ts::date = $1 order by s', ['2024-03-05'])).toEqual(['a', 'b'])
  expect(await answer('select ts::date day, count(*) from seen group by 1 order by 1')).toEqual([
    [dateOid, 20],
    [
      ['2024-03-05', '2'],
      ['2024-03-06', '1'],
    ],
  ])
  expect(await answer('select max(ts::date), coalesce(null, min(ts::date)) from seen')).toEqual([
    [dateOid, dateOid],
    [['2024-03-06', '2024-03-05']],
  ])
})

test('days are counted, and are texts without a time', async () => {
  expect(
    await answer("select date '2024-03-05' - date '2024-02-28', date '2024-03-05' + 3, 1 + ts::date from seen limit 1"),
  ).toEqual([[23, dateOid, dateOid], [['6', '2024-03-08', '2024-03-06']]])
  expect(
    await answer("select (date '2024-03-05' + interval '1 hour')::text, date '2024-03-05' + interval '1 hour'"),
  ).toEqual([[1043, 1114], [['2024-03-05T01:00:00.000000Z', '2024-03-05 01:00:00.000000']]])
  expect(
    await valuesOf(`select ts::date::text, 'on ' || ts::date, json_build_object('d', ts::date), to_char(ts::date, 'DD.MM.')
    from seen limit 1`),
  ).toEqual(['2024-03-05', 'on 2024-03-05', '{"d" : "2024-03-05"}', '05.03.'])
  expect(
    await valuesOf('select current_date = now()::date, current_date - 1 < now(), current_date - current_date'),
  ).toEqual(['t', 't', '0'])
  const days = "select d - date '2024-03-01', date '2024-04-01' - d from seen order by ts"
  expect(await valuesOf(days)).toEqual(['4', '27', null, null, '5', '26'])
})

test('a driver takes and gives days', async () => {
  const [row] = await sql`select ts::date d from seen where ts::date = ${new Date('2024-03-06')}::date`
  expect(row?.['d']).toEqual(new Date('2024-03-06'))
})

test('tables that are made of days show a date', async () => {
  await client.query('create table of_days as (select ts::date d, s from seen)')
  expect(
    await valuesOf(
      "select data_type from information_schema.columns where table_name = 'of_days' and column_name = 'd'",
    ),
  ).toEqual(['date'])
})
