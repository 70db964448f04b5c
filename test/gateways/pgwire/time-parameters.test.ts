// Goal: over the PostgreSQL protocol, parameters without a declared type work in generate_series() over timestamps,
// to_timestamp(), arithmetic with intervals, and INSERT of timestamps into columns of times of day.

import type pg from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { TestServer } from '../../support/server.js'
import { int16, int32, message, RawClient } from './raw-client.js'

const server = TestServer.shared()
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

test('a moment in a column of times of day leaves its time there, as a constant and as a column', async () => {
  await client.query('create table shifts (n int, t time, ts timestamp, ns timestamp_ns, d date)')
  await client.query(
    "insert into shifts values (0, null, '2024-01-01T10:11:12.5', '1969-12-31T23:59:59', '2024-01-02')",
  )
  await client.query("insert into shifts (n, t) values (2, timestamp '2024-01-01 10:11:12.5')")
  await client.query("insert into shifts (n, t) values (3, timestamp '1969-12-31 23:59:59')")
  for (const column of ['ts', 'ns', 'd', 'null::timestamp'])
    await client.query(`insert into shifts (n, t) select 4, ${column} from shifts where n = 0`)
  await client.query('update shifts set t = ts where n = 0')
  expect(await valuesOf('select t from shifts order by n, t desc', [])).toEqual([
    '10:11:12.5',
    '10:11:12.5',
    '23:59:59',
    '23:59:59',
    '10:11:12.5',
    '00:00:00',
    null,
  ])
})

test('a bound moment does, too: by text and in binary, one by one and in batches', async () => {
  const raw = new RawClient(server.login.port)
  await raw.logIn()
  await client.query('create table turns (n int, t time)')
  raw.send('P', 'i\0insert into turns values ($1, $2)\0', int16(2), int32(23), int32(1114))
  raw.send('P', 'u\0update turns set t = $1 where n = $2\0', int16(2), int32(1114), int32(23))
  const bind = (name: string, format: number, ...values: readonly Buffer[]): Buffer => {
    const fields = values.flatMap((value) => [int32(value.length), value])
    return message('B', `\0${name}\0`, int16(1), int16(format), int16(values.length), ...fields, int16(0))
  }
  const execute = message('E', '\0', int32(0))
  const written = (text: string) => Buffer.from(text)
  const moment = Buffer.from('fffffffffffffffe', 'hex')
  const batch = Array.from({ length: 50 }, (_, n) => [
    ...[bind('i', 0, written(String(n)), written(`2024-01-01 10:11:${12 + (n % 3)}.5`)), execute],
    ...[bind('i', 1, int32(n + 100), moment), execute],
  ]).flat()
  const alike = Array.from({ length: 50 }, (_, n) => [bind('i', 1, int32(n + 200), moment), execute]).flat()
  const update = [bind('u', 0, written('1969-12-31 23:59:58'), written('0')), execute]
  raw.socket.write(Buffer.concat([...batch, ...alike, ...update, message('S')]))
  await raw.until('Z')
  raw.socket.destroy()
  expect(await valuesOf('select t, count(*) c from turns group by t order by t', [])).toEqual([
    ...['10:11:12.5', '16', '10:11:13.5', '17', '10:11:14.5', '16'],
    ...['23:59:58', '1', '23:59:59.999998', '100'],
  ])
})
