// Goal: GROUP BY of two string columns, all of whose pairs are distinct, succeeds within the memory limit, although
// each column is dictionary-encoded. Also: count(distinct ..) in SAMPLE BY equals the counts of a GROUP BY by time.
// Method: a server with too little memory for a hash table of all pairs, and a table on disk of 2 million rows.

import { afterAll, beforeAll, expect, test } from 'vitest'
import { TestServer } from '../support/server.js'

const rows = 2_000_000
const server = new TestServer(['memory.bytes=1g'])

beforeAll(async () => {
  await server.start()
  await server.rows('create table pairs (ts timestamp, v varchar, w varchar, i int) timestamp(ts) partition by day')
  await server.rows(
    `insert into pairs select (1704067200000000 + x * 100000)::timestamp, 'v' || (x % 601),
     case when x % 4003 = 0 then null else 'w' || (x % 4003) end, (x % 10)::int from long_sequence(${rows})`,
  )
  await server.rows('checkpoint')
})

afterAll(() => server.remove())

test('they are grouped and counted', async () => {
  const groups = 'select v, w, sum(i) s, count() c from pairs group by v, w'
  const [counted] = await server.rows(`select count(), sum(s), sum(c), max(c) from (${groups})`)
  expect(counted).toEqual([rows, rows * 4.5, rows, 1])
  const [distinct] = await server.rows('select sum(n), min(n), count() from (select v, count(distinct w) n from pairs)')
  expect(distinct).toEqual([rows - Math.floor(rows / 4003), expect.any(Number), 601])
})

test('counts of different texts in buckets, of many pairs and of few, are those of groups by time', async () => {
  for (const [unit, below, least] of [
    ['1h', 'v3', 5000],
    ['7s', 'v11', 20_000],
  ] as const) {
    const sampled = `select ts, v, count(distinct w) n, count(distinct i) d from pairs where v < '${below}' sample by ${unit}`
    const grouped = `select timestamp_floor('${unit}', ts) t, v, count(distinct w) n, count(distinct i) d from pairs where v < '${below}' group by t, v`
    const [[buckets, ...sums] = []] = await server.rows(
      `select count(), sum(n), sum(d), max(n), min(n) from (${sampled})`,
    )
    expect(buckets).toBeGreaterThan(least)
    expect([[buckets, ...sums]]).toEqual(
      await server.rows(`select count(), sum(n), sum(d), max(n), min(n) from (${grouped})`),
    )
  }
})
