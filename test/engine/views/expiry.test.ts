// Goal: neither a materialized view whose query no longer binds nor a live view with long frames stops the TTL of a table
// or materialized view, nor DROP PARTITION while rows keep arriving. Method: the view is created, then a TTL; the test
// waits for rows to expire, and the views keep what they have of these rows.

import { afterAll, beforeAll, expect, test } from 'vitest'
import { type EngineClient, engineClient } from '../../sql/clients.js'

let client: EngineClient

beforeAll(async () => {
  client = await engineClient(true)
})

afterAll(() => client.close())

async function until(sql: string, expected: string): Promise<void> {
  for (let tries = 0; tries < 200 && (await client.rows(sql)) !== expected; tries++)
    await new Promise((resolve) => setTimeout(resolve, 100))
  expect(await client.rows(sql)).toBe(expected)
}

test('a broken view stops no TTL', async () => {
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
}, 120_000)

const frames = {
  rows: 'lag(n) over (partition by k order by ts)',
  range: 'sum(n) over (partition by k order by ts range 30 day preceding)',
  anchored: 'sum(n) over w',
}

for (const [kind, column] of Object.entries(frames))
  test(`a live view stops no TTL of the materialized view that it reads [frame=${kind}]`, async () => {
    const [table, finer, live] = [`t_${kind}`, `m_${kind}`, `l_${kind}`]
    await client.rows(`create table ${table} (ts timestamp, k symbol) timestamp(ts) partition by day`)
    await client.rows(
      `create materialized view ${finer} as (select ts, k, count() n from ${table} sample by 1h) partition by day`,
    )
    const query = `select ts, k, n, ${column} x from ${finer} window w as (partition by k order by ts anchor expression date_trunc('month', ts))`
    await client.rows(`create live view ${live} flush every 60m start from beginning as ${query}`)
    // Seldom written: no later row is without need of this one.
    await client.rows(`insert into ${table} values ('2024-01-01T00:30', 'rare')`)
    await client.rows(
      `insert into ${table} select dateadd('h', x::int * 12, '2024-01-01'), 'often' from long_sequence(18)`,
    )
    const over = `select * from ${live} where ts < '2024-01-10'`
    const before = await client.rows(over)
    await client.rows(`alter materialized view ${finer} set ttl 3 days`)
    await until(`select min(ts) from ${finer}`, '["2024-01-07T00:00:00.000000Z"]')
    expect(await client.rows(over)).toBe(before)
    // The newest bucket goes on.
    await client.rows(`insert into ${table} values ('2024-01-10T00:10', 'often'), ('2024-01-10T01:10', 'often')`)
    expect(await client.rows(`select ts, n from ${live} where ts >= '2024-01-09T12:00'`)).toBe(
      '["2024-01-09T12:00:00.000000Z",1],["2024-01-10T00:00:00.000000Z",2],["2024-01-10T01:00:00.000000Z",1]',
    )
  }, 120_000)

test('late rows that keep arriving do not stop DROP PARTITION', async () => {
  await client.rows('create table tardy (ts timestamp, k symbol, n long) timestamp(ts) partition by day')
  await client.rows(
    'create live view tardy_gaps flush every 60m start from beginning as select ts, k, n, lag(n) over (partition by k order by ts) p from tardy',
  )
  await client.rows(
    'create materialized view tardy_days refresh manual as (select ts, sum(n) s, count() c from tardy sample by 1d)',
  )
  await client.rows(
    "insert into tardy values ('2024-01-01', 'rare', 1), ('2024-01-01T06', 'often', 2), ('2024-01-03', 'often', 3)",
  )
  const before = await client.rows("select k, n, p from tardy_gaps where ts in '2024-01-01T06'")
  let [count, isDone] = [0, false]
  const arriving = Array.from({ length: 3 }, async () => {
    while (!isDone) {
      const second = ++count
      await client.rows(`insert into tardy values (dateadd('s', ${second}, '2024-01-01T12'), 'late', 10)`)
    }
  })
  while (count < 20) await new Promise((resolve) => setTimeout(resolve, 1))
  const dropped = client.rows("alter table tardy drop partition list '2024-01-01'").finally(() => {
    isDone = true
  })
  await Promise.all([dropped, ...arriving])
  const days = `[${3 + count * 10},${2 + count}]`
  expect(await client.rows("select s, c from tardy_days where ts = '2024-01-01'")).toBe(days)
  await client.rows('refresh materialized view tardy_days')
  expect(await client.rows("select s, c from tardy_days where ts = '2024-01-01'")).toBe(days)
  expect(await client.rows("select k, n, p from tardy_gaps where ts in '2024-01-01T06'")).toBe(before)
}, 120_000)

test('rows that keep arriving do not stop DROP PARTITION of a table with a live view', async () => {
  await client.rows('create table busy (ts timestamp, k symbol, n long) timestamp(ts) partition by day')
  await client.rows(
    'create live view gaps flush every 60m start from beginning as select ts, k, n, lag(n) over (partition by k order by ts) p from busy',
  )
  // All later rows may need the row of the key that is seldom written.
  await client.rows("insert into busy values ('2024-01-01', 'rare', 1), ('2024-01-01T06', 'often', 2)")
  let [count, isDone] = [0, false]
  const arriving = Array.from({ length: 4 }, async () => {
    while (!isDone)
      await client.rows(`insert into busy values (dateadd('s', ${++count}, '2024-01-02'), 'often', ${count})`)
  })
  while (count < 20) await new Promise((resolve) => setTimeout(resolve, 1))
  const dropped = client.rows("alter table busy drop partition list '2024-01-01'").finally(() => {
    isDone = true
  })
  await Promise.all([dropped, ...arriving])
  expect(await client.rows("select k, n, p from gaps where ts in '2024-01-01'")).toBe(
    '["rare",1,null],["often",2,null]',
  )
  expect(await client.rows('select count() from gaps')).toBe(`[${count + 2}]`)
}, 120_000)
