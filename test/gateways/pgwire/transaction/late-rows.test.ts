// Goal: a transaction that changes schemas and rows would write all rows of a table again at COMMIT. It is refused if
// buckets of a materialized view have outlived other rows of the table, since it would add these rows to them again. Other
// schema changes in a transaction keep the buckets that were sealed meanwhile.

import type pg from 'pg'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { TestServer } from '../../../support/server.js'

const server = TestServer.shared()
let client: pg.Client
let other: pg.Client

beforeAll(async () => {
  await server.start()
  client = await server.connect()
  other = await server.connect()
})

beforeEach(async () => {
  await client.query('rollback')
  await other.query('drop table if exists t cascade')
  await other.query('create table t (ts timestamp, n long) timestamp(ts) partition by hour')
  await other.query('create materialized view v refresh manual as (select ts, sum(n) s, count() c from t sample by 1d)')
  await other.query("insert into t values ('2024-01-01T00', 1), ('2024-01-01T01', 10), ('2024-01-03', 0)")
})

afterAll(() => server.remove())

const sealed = "alter table t drop partition list '2024-01-01T00'"
const refusal = /buckets of dropped rows cannot be changed in a transaction that also changes schemas \[table=t\]/

async function bucket(): Promise<unknown> {
  const { rows } = await other.query("select cast(s as int) s, cast(c as int) c from v where ts = '2024-01-01'")
  return rows
}

test.each(['alter table t add column x int', 'create table t_other (a int)'])('UPDATE beside %s', async (change) => {
  await other.query(sealed)
  await other.query("insert into t values ('2024-01-01T02', 100)")
  await client.query(`begin; ${change}; update t set n = n + 5000`)
  await expect(client.query('commit')).rejects.toThrow(refusal)
  expect(await bucket()).toEqual([{ s: 111, c: 3 }])
  await client.query('begin; update t set n = n + 5000; commit')
  expect(await bucket()).toEqual([{ s: 111, c: 3 }])
  await other.query('refresh materialized view v')
  expect(await bucket()).toEqual([{ s: 111, c: 3 }])
})

test('a live view does not refuse it', async () => {
  await other.query('drop materialized view v')
  await other.query(
    'create live view v flush every 60m start from beginning as select ts, n, lag(n) over (partition by n order by ts) p from t',
  )
  await other.query(sealed)
  await client.query('begin; alter table t add column x int; update t set n = n + 5000; commit')
  const { rows } = await other.query('select cast(sum(n) as int) s from t')
  expect(rows).toEqual([{ s: 10010 }])
})

test('buckets that were sealed while the transaction ran', async () => {
  await client.query('begin; alter table t add column x int')
  await other.query(sealed)
  await client.query('commit')
  expect(await bucket()).toEqual([{ s: 11, c: 2 }])
  await client.query('begin; truncate table t; commit')
  expect(await bucket()).toEqual([])
  const { rows } = await other.query("select sealed_buckets b from materialized_views() where view_name = 'v'")
  expect(rows).toEqual([{ b: null }])
})
