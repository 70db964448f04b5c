// Goal: for clients of the PostgreSQL protocol, the difference of two timestamps is an interval, with the type and the
// values of PostgreSQL 15. Also: LONG256 values can be assigned to string columns.

import type pg from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { TestServer } from '../../support/server.js'

const server = TestServer.shared()
let client: pg.Client

beforeAll(async () => {
  await server.start()
  client = await server.connect({ types: { getTypeParser: () => (value: unknown) => value } as pg.CustomTypesConfig })
  await client.query('create table iv (ts timestamp, d date, l int)')
  await client.query(
    "insert into iv values ('2024-01-01 10:00:00', '2024-01-01', 1), ('2024-03-05 12:30:15.5', '2024-03-05', 2)",
  )
})

afterAll(async () => {
  await client?.end()
  await server.remove()
})

/** OID and values of the first column. */
async function column(text: string): Promise<readonly [number, readonly unknown[]]> {
  const { fields, rows } = await client.query({ text, rowMode: 'array' })
  return [fields[0]?.dataTypeID ?? 0, rows.map((row: unknown[]) => row[0])]
}

const spans: readonly (readonly [sql: string, oid: number, values: readonly unknown[]])[] = [
  ['select max(ts) - min(ts) from iv', 1186, ['64 days 02:30:15.5']],
  ['select (max(ts) - min(ts))::interval from iv', 1186, ['64 days 02:30:15.5']],
  ["select interval '1 day' + (max(ts) - min(ts)) from iv", 1186, ['65 days 02:30:15.5']],
  ["select (max(ts) - min(ts)) + interval '1 day' from iv", 1186, ['65 days 02:30:15.5']],
  ["select ts - timestamp '2024-01-01' from iv", 1186, ['10:00:00', '64 days 12:30:15.5']],
  ["select timestamp '2024-01-01' - ts from iv", 1186, ['-10:00:00', '-64 days -12:30:15.5']],
  ["select ts - '2024-01-01'::timestamp from iv", 1186, ['10:00:00', '64 days 12:30:15.5']],
  ["select ts - date '2024-01-01' from iv", 1186, ['10:00:00', '64 days 12:30:15.5']],
  ["select timestamp '2024-01-02' - timestamp '2024-01-01'", 1186, ['1 day']],
  ["select to_char(max(ts) - min(ts), 'HH24:MI:SS') from iv", 1043, ['02:30:15']],
  [
    'select to_char((max(ts) - min(ts))::interval, \'DD "days" HH24:MI:SS.MS\') from iv',
    1043,
    ['64 days 02:30:15.500'],
  ],
  ["select to_char(ts - timestamp '2024-01-02', 'HH24:MI') from iv where l = 1", 1043, ['-14:00']],
  ["select date_part('day', max(ts) - min(ts))::int from iv", 23, ['64']],
  ["select l from iv where ts - timestamp '2024-01-01' > interval '1 day'", 23, ['2']],
  ["select max(ts - timestamp '2024-01-01') from iv", 1186, ['64 days 12:30:15.5']],
  ['select ts + (max(ts) over () - ts) from iv', 1114, ['2024-03-05 12:30:15.500000', '2024-03-05 12:30:15.500000']],
]

test.each(spans)('%s', async (sql, oid, values) => {
  expect(await column(sql)).toEqual([oid, values])
})

test('a pattern of dates prints no interval', async () => {
  await expect(client.query("select to_char(max(ts) - min(ts), 'Mon') from iv")).rejects.toThrow(/interval value/)
})

test('LONG256 goes into texts', async () => {
  await client.query('create table l (a long256, s varchar)')
  await client.query("insert into l (a) values ('0x01')")
  await client.query('insert into l (s) select a from l')
  await client.query("update l set s = a where s is null and a = '0x01'")
  expect(await column('select s from l')).toEqual([1043, ['0x01', '0x01']])
})
