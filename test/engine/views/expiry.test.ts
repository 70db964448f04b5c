// Goal: a materialized view whose query no longer binds does not stop the TTL of other tables, nor its own. Method: the
// broken view is created first, then a table with a TTL and a view over it; the test waits for rows to expire, and the
// view of that table keeps its buckets.

import { expect, test } from 'vitest'
import { engineClient } from '../../sql/clients.js'

test('a broken view stops no TTL', async () => {
  const client = await engineClient(true)
  const until = async (sql: string, expected: string): Promise<void> => {
    for (let tries = 0; tries < 200 && (await client.rows(sql)) !== expected; tries++)
      await new Promise((resolve) => setTimeout(resolve, 100))
    expect(await client.rows(sql)).toBe(expected)
  }
  await client.rows('create table a (ts timestamp, x double) timestamp(ts) partition by day')
  await client.rows(
    'create materialized view va refresh manual as (select ts, max(x) m from a sample by 1h) partition by day ttl 7 days',
  )
  await client.rows('create table b (ts timestamp, x double) timestamp(ts) partition by day ttl 2 days')
  await client.rows('create materialized view vb refresh manual as (select ts, max(x) m from b sample by 1h)')
  await client.rows("insert into a select dateadd('d', x::int, '2024-01-01'), x from long_sequence(5)")
  await client.rows('refresh materialized view va')
  await client.rows('alter table a rename column x to y')
  await client.rows("insert into a values ('2024-01-10T12:00:00', 1)")
  await client.rows("insert into b select dateadd('d', x::int, '2024-01-01'), x from long_sequence(5)")
  await until('select min(ts) from b', '["2024-01-04T00:00:00.000000Z"]')
  expect(await client.rows('select count() from vb')).toBe('[5]')
  await until('select /*+ view_stored */ min(ts) from va', '["2024-01-03T00:00:00.000000Z"]')
  await client.close()
}, 120_000)
