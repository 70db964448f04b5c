// Goal: series of times and times of seconds take parameters whose types nobody has said.

import type pg from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { TestServer } from '../../support/server.js'

const server = new TestServer(['query.threads=1'])
let client: pg.Client

beforeAll(async () => {
  await server.start()
  client = await server.connect({ types: { getTypeParser: () => String } })
})

afterAll(() => server.remove())

async function valuesOf(text: string, values: unknown[]): Promise<unknown[]> {
  return (await client.query({ text, values, rowMode: 'array' })).rows.flat()
}

test('series of times, whatever comes with the execution', async () => {
  const times = ['2024-01-01 00:00:00.000000', '2024-01-01 12:00:00.000000', '2024-01-02 00:00:00.000000']
  const bounds = ['2024-01-01', '2024-01-02']
  const from = 'select * from generate_series($1::timestamp, $2::timestamp,'
  expect(await valuesOf(`${from} '12 hours')`, bounds)).toEqual(times)
  expect(await valuesOf(`${from} $3::interval)`, [...bounds, '12 hours'])).toEqual(times)
  expect(await valuesOf(`${from} $3::interval)`, [...bounds, '1 day'])).toEqual([times[0], times[2]])
  expect(await valuesOf("select count(*) from generate_series($1::date, $2::date, '1 day')", bounds)).toEqual(['2'])
})

test('to_timestamp takes seconds', async () => {
  expect(await valuesOf('select to_timestamp($1)', ['1700000000.5'])).toEqual(['2023-11-14 22:13:20.500000'])
  expect(await valuesOf('select to_timestamp($1)', [1_700_000_000])).toEqual(['2023-11-14 22:13:20.000000'])
  expect(await valuesOf('select to_timestamp($1)', ['2024-01-02'])).toEqual(['2024-01-02 00:00:00.000000'])
})

test('distances are compared with spans, and count days', async () => {
  expect(await valuesOf("select now() - $1::timestamp > interval '1 day'", ['2024-01-01'])).toEqual(['t'])
  const between = "date_part('day', timestamp '2024-03-31 12:00' - timestamp '2024-01-01')"
  expect(await valuesOf(`select ${between}`, [])).toEqual(['90'])
})

test('spans times a parameter beside days', async () => {
  const text = "select $1::timestamp + $2 * interval '2 days', $3::date + $4::int"
  expect(await valuesOf(text, ['2024-01-01', 3, '2024-01-31', 1])).toEqual(['2024-01-07 00:00:00.000000', '2024-02-01'])
})
