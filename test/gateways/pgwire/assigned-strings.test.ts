// Goal: for clients of the PostgreSQL protocol, string columns accept numbers, timestamps and booleans, as in
// PostgreSQL; for clients of HTTP they reject them, as in QuestDB's dialect. Columns of lists, JSON and times of day
// reject them for all clients. Also: a string that PostgreSQL reads as bytea can be assigned to a bytea column.

import type pg from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { TestServer } from '../../support/server.js'

const server = TestServer.shared()
let client: pg.Client

beforeAll(async () => {
  await server.start()
  client = await server.connect()
})

afterAll(() => server.remove())

async function stringsOf(table: string): Promise<string> {
  const { rows } = await client.query({ text: `select v from ${table} order by n`, rowMode: 'array' })
  return rows.flat().join(' ')
}

test('INSERT and UPDATE, as constants, as columns and as parameters', async () => {
  await client.query('create table schema_migrations (version varchar(40) not null primary key)')
  await client.query('insert into schema_migrations (version) values (20240101000000)')
  await client.query('create table t (v text, n int, d double, s symbol)')
  await client.query("insert into t (n, v) values (1, 1), (2, -1.5), (3, true), (4, timestamp '2024-01-01 10:00')")
  await client.query("insert into t (n, v) values (5, date '2024-01-02'), (6, 1.50::numeric(10, 2))")
  expect(await stringsOf('t')).toBe('1 -1.5 true 2024-01-01T10:00:00.000000Z 2024-01-02 1.50')
  await client.query('insert into t (n, v, s) select n + 10, n, n from t where n = 1')
  await client.query('insert into t (n, v) select n + 10, n > 1 from t where n = 2')
  await client.query('update t set v = n where n = 1')
  await client.query('update t set v = 7 where n = 2')
  await client.query('update t set v = n > 4 where n = 3')
  await client.query(
    'prepare p (int, double precision, boolean) as insert into t (n, v) values (21, $1), (22, $2), (23, $3)',
  )
  await client.query('execute p (8, 2.5, false)')
  await client.query('prepare q (int) as update t set v = $1 where n = 4')
  await client.query('execute q (9)')
  expect(await stringsOf('t')).toBe('1 7 false 9 2024-01-02 1.50 1 true 8 2.5 false')
})

test('HTTP, lists and times of day refuse them', async () => {
  await client.query('create table u (v text, l text[], t time, j json)')
  const { body } = await server.exec('insert into u (v) values (1)')
  expect(body.error).toBe('inconvertible types: INT -> STRING [from=1, to=v]')
  for (const column of ['l', 't', 'j']) {
    await expect(client.query(`insert into u (${column}) values (1)`)).rejects.toMatchObject({ code: '42804' })
    await expect(client.query(`update u set ${column} = 1`)).rejects.toMatchObject({ code: '42804' })
  }
  await client.query('prepare r (boolean) as insert into u (l) values ($1)')
  await expect(client.query('execute r (true)')).rejects.toMatchObject({ code: '42804' })
})

test('a text of bytes is taken for a column of them; an infinite time is refused, not NULL', async () => {
  await client.query('create table w (n int, b bytea)')
  await client.query("insert into w select 1, '\\x01'")
  await client.query("insert into w (n, b) select n + 1, '\\x02' from w")
  const { rows } = await client.query({ text: 'select b from w order by n', rowMode: 'array' })
  expect(rows).toEqual([[Buffer.of(1)], [Buffer.of(2)]])
  await expect(client.query("insert into w (n, b) select 3, 'x'")).rejects.toMatchObject({ code: '42804' })
  for (const time of ["'infinity'::timestamp", "timestamptz '-infinity'", "'Infinity'::date"])
    await expect(client.query(`select ${time}`)).rejects.toMatchObject({ code: '22007' })
})
