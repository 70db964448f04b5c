// Goal: materialized views of a real server. No interface can insert rows into a view. A transaction that reads a view
// sees its own changes and its snapshot. After kills at any time, a view has the result of its query over the base
// table. When rows of the base table have expired or their partitions were dropped, the view keeps their time buckets.

import { afterAll, beforeAll, expect, test } from 'vitest'
import { createRandom } from '../support/random.js'
import { TestServer } from '../support/server.js'

const server = new TestServer(['memory.bytes=512m', 'telemetry.enabled=false', 'query.view.rewrite=off'])
const query = 'select ts, sym, sum(n) n, count() c, first(n) f, avg(n) a from base sample by 1h'

beforeAll(async () => {
  await server.start()
  await server.rows('create table base (ts timestamp, sym symbol, n long) timestamp(ts) partition by day')
  await server.rows(`create materialized view hourly as (${query})`)
})
afterAll(() => server.remove())

const sorted = async (sql: string): Promise<string[]> =>
  (await server.rows(sql)).map((row) => JSON.stringify(row)).sort()

test('a view takes no rows', async () => {
  const refused = 'cannot modify materialized view'
  expect(await (await server.write('hourly,sym=a n=1i 1700000000000000000')).text()).toContain(refused)
  const form = new FormData()
  form.append('data', new Blob(['ts,sym,n\n2024-01-01T00:00:00Z,a,1\n']))
  const imported = await fetch(`http://${server.address('http')}/imp?name=hourly`, { method: 'POST', body: form })
  expect(await imported.text()).toContain(refused)
  const client = await server.connect()
  await expect(client.query('copy hourly from stdin')).rejects.toThrow(refused)
  await expect(client.query("insert into hourly (ts, sym) values ('2024-01-01', 'a')")).rejects.toThrow(refused)
  const bound = { text: 'insert into hourly (ts, sym) values ($1, $2)', values: ['2024-01-01', 'a'] }
  await expect(client.query(bound)).rejects.toThrow(refused)
  expect(await server.rows('select count() from hourly')).toEqual([[0]])
  await client.end()
})

test('transactions see their own changes and their snapshot', async () => {
  const [writer, reader] = [await server.connect(), await server.connect()]
  const count = async (client: typeof writer): Promise<number> =>
    Number((await client.query('select sum(c) c from hourly')).rows[0].c)
  await server.rows("insert into base values ('2024-01-01T00:10:00', 'a', 1)")
  await server.rows('refresh materialized view hourly')
  await reader.query('begin isolation level repeatable read')
  expect(await count(reader)).toBe(1)
  await writer.query('begin')
  await writer.query("insert into base values ('2024-01-01T00:20:00', 'a', 5)")
  expect(await count(writer)).toBe(2)
  await writer.query("delete from base where ts = '2024-01-01T00:10:00'")
  expect(await count(writer)).toBe(1)
  await expect(writer.query('refresh materialized view hourly')).rejects.toThrow('inside a transaction block')
  await writer.query('rollback')
  await writer.query('begin')
  await expect(writer.query(`create materialized view other as ${query}`)).rejects.toThrow('inside a transaction block')
  await writer.query('rollback')
  await server.rows("insert into base values ('2024-01-01T00:30:00', 'a', 7)")
  await server.rows('refresh materialized view hourly')
  expect(await count(reader)).toBe(1)
  await reader.query('commit')
  expect(await count(reader)).toBe(2)
  await Promise.all([writer.end(), reader.end()])
})

test('kills while rows are stored and refreshed', async () => {
  const random = createRandom(45)
  for (let round = 0; round < 3; round++) {
    const work = async (): Promise<void> => {
      for (let step = 0; step < 40; step++) {
        const ts = new Date(Date.UTC(2024, 0, 1) + random.below(3 * 24 * 3600 * 1000)).toISOString()
        await server.rows(`insert into base values ('${ts}', 'b', ${random.below(100)})`)
        if (random.chance(0.2)) await server.rows(`delete from base where ts < '${ts}' and n < ${random.below(50)}`)
        if (random.chance(0.3)) await server.rows(`refresh materialized view hourly ${random.pick(['', 'full'])}`)
      }
    }
    const working = work().catch(() => {})
    await new Promise((resolve) => setTimeout(resolve, 200 + random.below(1500)))
    await server.restart('SIGKILL')
    await working
    expect(await sorted('select * from hourly'), `round ${round}`).toEqual(await sorted(query))
    await server.rows('refresh materialized view hourly')
    expect(await sorted('select * from hourly'), `round ${round}, refreshed`).toEqual(await sorted(query))
  }
})

test('kills while partitions are dropped: no bucket loses rows', async () => {
  const random = createRandom(46)
  const days = 12
  await server.rows('create table long (ts timestamp, sym symbol, n long) timestamp(ts) partition by day')
  await server.rows(
    'create materialized view daily refresh manual deferred as (select ts, sym, sum(n) n, count() c from long sample by 6h)',
  )
  await server.rows(
    `insert into long select dateadd('h', (x - 1)::int, '2024-01-01'::timestamp), case when x % 2 = 0 then 'a' else 'b' end, x from long_sequence(${24 * days})`,
  )
  const last = `'2024-01-${days}'`
  const expected = await sorted(
    `select * from (select ts, sym, sum(n) n, count() c from long sample by 6h) where ts < ${last}`,
  )
  for (let round = 0; round < 4; round++) {
    const work = async (): Promise<void> => {
      for (let day = 1; day < days; day++) {
        await server.rows(`insert into long values ('2024-01-${days}T20:00:00', 'c', 1)`)
        await server.rows(`alter table long drop partition where ts < '2024-01-${String(1 + day).padStart(2, '0')}'`)
      }
    }
    const working = work().catch(() => {})
    await new Promise((resolve) => setTimeout(resolve, 20 + random.below(400)))
    await server.restart('SIGKILL')
    await working
    expect(await sorted(`select * from daily where ts < ${last}`), `round ${round}`).toEqual(expected)
  }
  await server.rows(`alter table long drop partition where ts < ${last}`)
  expect(await server.rows(`select count() from long where ts < ${last}`)).toEqual([[0]])
  expect(await sorted(`select * from daily where ts < ${last}`)).toEqual(expected)
})

test('a TTL of the table leaves the buckets; a TTL of the view removes them', async () => {
  await server.rows('create table short (ts timestamp, n long) timestamp(ts) partition by day ttl 2 days')
  await server.rows(
    'create materialized view by_hour as (select ts, sum(n) n from short sample by 1h) partition by day',
  )
  await server.rows(
    'create materialized view by_six refresh manual as (select ts, sum(n) n from short sample by 6h) partition by day ttl 4 days',
  )
  await server.rows('create materialized view by_month as (select ts, count() c from short sample by 1M)')
  await server.rows(
    "insert into short select dateadd('h', (x - 1)::int, '2024-01-26'::timestamp), x from long_sequence(240)",
  )
  // 31 January is in the bucket of a month that is over; those of February wait for its end.
  await server.untilRows('select min(ts) from short', [['2024-02-01T00:00:00.000000Z']])
  expect(await server.rows('select count(), sum(n), min(ts) from by_hour')).toEqual([
    [240, 28920, '2024-01-26T00:00:00.000000Z'],
  ])
  await server.untilRows('select min(ts) from by_six', [['2024-01-31T00:00:00.000000Z']])
  expect(await server.rows('select c from by_month')).toEqual([[144], [96]])
  // Late rows of times that have expired.
  await server.rows("insert into short values ('2024-01-26T00:00:00', 1000), ('2024-02-04T23:10:00', 5)")
  await server.rows('refresh materialized view by_six full')
  expect(await server.rows('select min(ts), count() from by_six')).toEqual([['2024-01-31T00:00:00.000000Z', 20]])
  await server.restart('SIGKILL')
  expect(await server.rows('select min(ts), count() from by_six')).toEqual([['2024-01-31T00:00:00.000000Z', 20]])
  expect(await server.rows('select count(), sum(n) from by_hour')).toEqual([[240, 29925]])
  // Later rows let the rest of February go.
  await server.rows("insert into short values ('2024-03-05T00:00:00', 1)")
  await server.untilRows('select count() from short', [[1]])
  expect(await server.rows('select c from by_month')).toEqual([[145], [97], [1]])
  expect(await server.rows('select count(), sum(n) from by_hour')).toEqual([[241, 29926]])
  await server.untilRows('select count() from by_six', [[1]])
})
