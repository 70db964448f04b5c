// Goal: small queries run inline on the main thread, with the same results as on a query thread; larger ones are passed
// to a query thread. Method: two engines with the same tables, one of which runs all queries on query threads; the
// member `ready` of a result tells how the query ran.

import { beforeAll, describe, expect, test } from 'vitest'
import type { RowsResult } from '../../../engine/engine.js'
import { budgets } from '../../../engine/memory/budgets.js'
import { InlineEngine } from '../../support/inline-engine.js'
import { createFaultyDisk } from '../../support/simulator/faulty-files.js'
import { executeOptions } from '../../support/test-engine.js'

/** Columns of a table that is not small as a whole. */
function numbered(seconds: string): string {
  const numbers = Array.from({ length: 10 }, (_, column) => `x::int n${column}`)
  return `dateadd('s', (${seconds})::int, '2024-05-01T00:00:00Z') ts, x % 7 m, ${numbers.join(', ')}`
}

const tables = [
  'create table small (ts timestamp, host symbol, value double) timestamp(ts) partition by day',
  "insert into small select dateadd('m', x::int, '2024-05-01T00:00:00Z'), 'h' || (x % 7), x / 4.0 from long_sequence(900)",
  'create table large (ts timestamp, n long, text varchar) timestamp(ts) partition by day',
  "insert into large select dateadd('s', x::int, '2024-05-01T00:00:00Z'), x, 'text ' || x from long_sequence(40000)",
  'create table stored (ts timestamp, n long) timestamp(ts) partition by day',
  "insert into stored select dateadd('m', x::int, '2024-05-01T00:00:00Z'), x from long_sequence(3000)",
  `create table ordered as (select ${numbered('x')} from long_sequence(50000)) timestamp(ts)`,
  `create table shuffled as (select ${numbered('x * 7919 % 50000')} from long_sequence(50000)) timestamp(ts)`,
]

const smallOnes = [
  'select 1',
  'select 1 + x, x::string from long_sequence(20)',
  "select * from small where ts = '2024-05-01T03:00:00Z'",
  "select * from small where host = 'h3' and value > 100",
  'select * from small latest on ts partition by host',
  'select host, avg(value), count() from small order by host',
  "select ts, max(value) from small where ts in '2024-05-01T02' sample by 10m",
  'select a.host, b.value from small a join small b on (a.ts = b.ts) where a.value < 3',
  'select * from small where value > (select avg(value) from small) order by value desc limit 5',
  'select * from large limit 7',
  'select n, text from large limit -3',
  'select count() from small',
  // Rows in order are found by their time.
  "select * from ordered where ts = '2024-05-01T01:02:03Z'",
  "select m, sum(n3) from ordered where ts in '2024-05-01T10' order by m",
]

const large = [
  'select count(n), max(text) from large',
  'select count() from small a cross join small b',
  'select sum(x) from long_sequence(1000000)',
  "select * from shuffled where ts = '2024-05-01T01:02:03Z'",
  "select m, sum(n3) from ordered where ts in '2024-05' order by m",
  // Few rows, and yet much work.
  "select max(length(upper(rpad('x', 1000, 'y' || x)))) from long_sequence(50)",
  "select sum(length(concat(rpad('x', 5000, 'y'), x))) from long_sequence(50)",
  'select max(upper(host)) from small a cross join long_sequence(3)',
]

let engine: InlineEngine
let handing: InlineEngine

async function made(small: boolean): Promise<InlineEngine> {
  const { files } = createFaultyDisk()
  files.makeDirectory('/db')
  files.syncDirectory('/')
  const inline = new InlineEngine({ files, inline: small })
  await inline.settle()
  for (const sql of tables) await inline.run(sql)
  return inline
}

beforeAll(async () => {
  engine = await made(true)
  handing = await made(false)
})

async function isSmall(sql: string): Promise<boolean> {
  const result = (await engine.until(engine.engine.execute(sql, executeOptions))) as RowsResult
  const iterator = result.values[Symbol.asyncIterator]()
  await engine.until(iterator.next())
  await iterator.return?.()
  await engine.settle()
  return result.ready !== null
}

describe('a small query', () => {
  test.each(smallOnes)('%s', async (sql) => {
    const before = engine.allocator.used(budgets.queries)
    expect(await isSmall(sql)).toBe(true)
    expect(await engine.rows(sql)).toEqual(await handing.rows(sql))
    expect(engine.allocator.used(budgets.queries)).toBe(before)
  })
})

test.each(large)('%s is handed over', async (sql) => {
  expect(await isSmall(sql)).toBe(false)
  expect(await engine.rows(sql)).toEqual(await handing.rows(sql))
})

test('pages that nobody has read yet are left to a query thread', async () => {
  await engine.run('checkpoint')
  await engine.settle()
  const sql = "select n from stored where ts > '2024-05-02T12:00:00Z' and n % 10 = 0"
  expect(await isSmall(sql)).toBe(false)
  // The pages are in the cache, and the attempts have rested.
  for (let run = 0; run < 5 && !(await isSmall(sql)); run++);
  expect(await isSmall(sql)).toBe(true)
  expect(await engine.rows(sql)).toEqual(await handing.rows(sql))
})

describe('of many rows', () => {
  const hosts =
    "create table hosts as (select dateadd('s', x::int, '2024-05-01T00:00:00Z') ts, 'h' || x % 500 host, x::int n, x::varchar t from long_sequence(100000)), cast(host as symbol) timestamp(ts) partition by day"

  beforeAll(async () => {
    for (const inline of [engine, handing]) {
      await inline.run(hosts)
      await inline.run('checkpoint')
      await inline.settle()
    }
  })

  // Generated code reads them in no time, once it is there; pages list them by symbol, once they do.
  test.each([
    'select host, sum(n), max(ts) from hosts where n > 70000 order by host',
    'select count(), sum(n) from hosts where n % 7 = 3',
    "select * from hosts where host = 'h77' and n > 100",
  ])('%s is small at a later sight', async (sql) => {
    let runs = 0
    for (; runs < 40 && !(await isSmall(sql)); runs++);
    expect(runs).toBeLessThan(40)
    expect(await engine.rows(sql)).toEqual(await handing.rows(sql))
  })

  test.each([
    "select count() from hosts where t like '%77%'",
    'select host, count_distinct(n) from hosts order by host',
  ])('%s is handed over', async (sql) => {
    for (let run = 0; run < 5; run++) expect(await isSmall(sql)).toBe(false)
    expect(await engine.rows(sql)).toEqual(await handing.rows(sql))
  })
})

test('parts that nobody has opened yet are found all at once', async () => {
  await engine.run('create table days (ts timestamp, n long) timestamp(ts) partition by day')
  await engine.run("insert into days select dateadd('h', x::int, '2024-05-01T00:00:00Z'), x from long_sequence(200)")
  await engine.run('checkpoint')
  await engine.settle()
  const sql = 'select * from days limit -5'
  expect(await isSmall(sql)).toBe(false)
  let runs = 1
  for (; runs < 4 && !(await isSmall(sql)); runs++);
  expect(runs).toBeLessThan(4)
  expect(await engine.rows(sql)).toEqual([196, 197, 198, 199, 200].map((n) => [expect.anything(), BigInt(n)]))
})
