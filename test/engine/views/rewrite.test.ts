// Goal: a query that the planner answers from stored buckets of materialized views returns what it returns without
// them, and EXPLAIN shows which queries are. Method: random changes of a table with views (late rows, updates, deletes,
// DEDUP, dropped and detached partitions, changes of columns, flushes, refreshes); after each of them random queries by
// time and keys run twice: as they are, and with one more aggregate that no view has, which stops the rewrite.
//
//   VIEW_SEED=7 npx vitest run test/engine/views/rewrite.test.ts            replays one seed
//   VIEW_SEEDS=50 VIEW_STEPS=200 VIEW_QUERIES=5 npx vitest ...              a long run

import { afterAll, beforeAll, expect, test } from 'vitest'
import { type EngineClient, engineClient } from '../../sql/clients.js'
import { createRandom, type Random } from '../../support/random.js'
import { expectClose } from './close-rows.js'
import { randomChanges } from './random-changes.js'

const only = process.env['VIEW_SEED']
const seeds = only === undefined ? Number(process.env['VIEW_SEEDS'] ?? 2) : 1
const first = Number(only ?? 1)
const steps = Number(process.env['VIEW_STEPS'] ?? 15)
const queriesEach = Number(process.env['VIEW_QUERIES'] ?? 4)

let client: EngineClient

beforeAll(async () => {
  client = await engineClient(true)
})

afterAll(() => client.close())

const aggregates = [
  ...['count() c', 'count(d) cd', 'sum(n) sn', 'min(d) lo', 'max(d) hi', 'avg(d) mean', 'sum(d) sd', 'max(ts) newest'],
  ...['first(d) o', 'last(n) l', 'avg(n) mean_n', 'stddev(d) dev', 'var_pop(n) spread', 'corr(d, n) rel'],
  ...['count_distinct(n) kinds', 'count(distinct s) texts', 'median(d) middle', 'percentile_disc(n, 0.9) most'],
  ...[
    'min(s) least',
    'last(s) newest_s',
    'bool_or(n > 900) any_n',
    'count_if(d < 10) few',
    'avg(cast(n as decimal(18, 3))) mean_m',
  ],
]
const views = [
  `select ts, sym, ${aggregates.join(', ')} from # sample by 15m`,
  "select ts, sym, s, count() c, count(d) cd, sum(n) sn, max(d) hi, sum(d) sd, min(d) lo from # sample by 1h align to calendar time zone 'Europe/Berlin'",
  "select sum(n) sn, sym, count() c, ts t, max(d) hi from # sample by 2h align to calendar with offset '00:30'",
  'select ts, concat(sym, s) pair, count() c, first(d) o, last(n) l, avg(d) mean, covar_samp(d, n) both from # sample by 30m',
]
const samples = [
  ...['15m', '30m', '1h', '90m', '2h', '6h', '1d', '1w', '1M', '7m'].map((interval) => `sample by ${interval}`),
  ...['1h', '2h', '1d', '1w'].map((interval) => `sample by ${interval} align to calendar time zone 'Europe/Berlin'`),
  ...["sample by 2h align to calendar with offset '00:30'", "sample by 6h align to calendar with offset '00:30'"],
  ...["sample by 1d align to calendar with offset '00:15'", 'sample by 1h fill(null)', 'sample by 2h fill(prev)'],
]
const keys = ['', 'sym', 'sym, s', 'concat(sym, s) pair', 's']
const conditions = ["sym = 'A'", "sym in ('A', 'B')", 'sym is null', "s = 'p'", 'n > 300', "s <> 'q' and sym = 'B'"]

/** The query, and the query that no view answers. */
function randomQuery({ pick, below, chance }: Random, table: string, [lo, hi]: readonly [string, string]) {
  const key = pick(keys)
  const wanted = [...aggregates].sort(() => below(3) - 1).slice(0, 1 + below(4))
  const where = [
    ...(chance(0.4) ? [pick(conditions)] : []),
    ...(chance(0.5)
      ? [pick([`ts >= '${lo}'`, `ts < '${hi}'`, `ts between '${lo}' and '${hi}'`, "ts in '2024-03-31'"])]
      : []),
  ]
  const rows = `from ${table}${where.length === 0 ? '' : ` where ${where.join(' and ')}`}`
  const isGrouped = chance(0.3)
  const bucket = isGrouped ? pick(["timestamp_floor('1h', ts) t", "date_trunc('day', ts) t", '']) : 'ts t'
  const columns = [...(bucket === '' ? [] : [bucket]), ...(key === '' ? [] : [key]), ...wanted]
  const time = bucket === '' ? [] : ['t']
  const shown = [...time, ...(key === '' ? [] : [key.startsWith('concat') ? 'pair' : key]), ...wanted.map(nameOf)].join(
    ', ',
  )
  const end = isGrouped ? '' : ` ${pick(samples)}`
  return {
    query: `select ${columns.join(', ')} ${rows}${end}`,
    plain: `select ${shown} from (select ${columns.join(', ')}, count_distinct(ts) other ${rows}${end})`,
  }
}

function nameOf(column: string): string {
  return column.split(' ').at(-1) ?? ''
}

for (let seed = first; seed < first + seeds; seed++) {
  test(`queries are the same with and without views [seed=${seed}]`, async () => {
    const random = createRandom(seed + 1000)
    const changes = randomChanges(random)
    const table = `rw${seed}`
    await client.rows(
      `create table ${table} (ts timestamp, sym symbol, d double, n long, s varchar) timestamp(ts) partition by ${random.pick(['hour', 'day', 'month'])}`,
    )
    const names = views.map((text, index) => ({ name: `${table}v${index}`, text: text.replace('#', table) }))
    for (const { name, text } of names)
      await client.rows(`create materialized view ${name} ${random.pick(['', 'refresh manual'])} as (${text})`)
    let rewritten = 0
    for (let step = 0; step < steps; step++) {
      for (const change of changes.change(table, names)) {
        await client.rows(change).catch(() => {})
        if (random.chance(0.3))
          for (const { name } of names) await client.rows(`refresh materialized view ${name}`).catch(() => {})
        for (let index = 0; index < queriesEach; index++) {
          const { query, plain } = randomQuery(random, table, changes.range())
          const [found, expected] = [await rowsOf(query), await rowsOf(plain)]
          expectClose(found, expected, `${query} after ${step}: ${change}`)
          if ((await client.rows(`explain ${query}`).catch(() => '')).includes('(stored buckets)')) rewritten++
        }
      }
    }
    expect(rewritten).toBeGreaterThan(steps / 5)
    await client.rows(`drop table ${table} cascade`)
  }, 600_000)
}

const shapes: readonly (readonly [query: string, settings: string])[] = [
  ['select ts, sym, sum(n), count() from t sample by 1d', 'on, exact'],
  ["select ts, max(d) from t where sym = 'A' and ts >= '2024-03-30T10:10' sample by 2h", 'on, exact'],
  ["select timestamp_floor('1d', ts) day, min(d) from t group by day", 'on, exact'],
  ["select sym, count(d) from t where ts in '2024-03' group by sym", 'on, exact'],
  ['select ts, sym, first(d), last(n) from t sample by 3h', 'on, exact'],
  ['select * from (select ts, sum(n) n from t sample by 1h) where n > 5', 'on, exact'],
  ['select ts, sum(n) from t sample by 1h fill(prev)', 'on, exact'],
  ['select ts, sum(d) from t sample by 1h', 'on'],
  ['select ts, avg(d), count() from t sample by 1h', 'on'],
  // Other keys, conditions, buckets and aggregates than those of the view; nothing to gain; an order to keep.
  ['select ts, s, count() from t sample by 1d', ''],
  ["select ts, count() from t where s = 'p' sample by 1d", ''],
  ["select ts, count() from t where sym = 'A' or ts > '2024-03-30' sample by 1d", ''],
  ['select ts, count() from t sample by 90m', ''],
  ["select ts, count() from t sample by 1d align to calendar time zone 'Europe/Berlin'", ''],
  ["select ts, count() from t sample by 1d align to calendar with offset '00:30'", ''],
  ['select ts, count() from t sample by 1d align to first observation', ''],
  ["select ts, count() from t sample by 1d from '2024-03-30' to '2024-04-02'", ''],
  ['select ts, first(d) from t sample by 1d', ''],
  ['select ts, stddev(d), corr(d, n) from t sample by 1d', 'on'],
  ['select ts, stddev(n) from t sample by 1d', 'on'],
  ['select ts, stddev(d + n), regr_slope(n, d) from t sample by 1d', ''],
  ['select ts, count_distinct(n), approx_count_distinct(n), median(d) from t sample by 1d', 'on, exact'],
  ['select sym, count(distinct s), percentile_cont(d, 0.25), approx_median(n) from t group by sym', 'on, exact'],
  ['select ts, avg(cast(n as decimal(18, 3))), min(s), bool_or(n > 900) from t sample by 1d', 'on, exact'],
  ['select ts, count_distinct(d) from t sample by 1d', ''],
  ['select ts, mode(n) from t sample by 1d', ''],
  ['select count() from t', ''],
  ['select ts, n from t where n = (select max(n) from t)', ''],
]

test.each(['on', 'exact', 'off'] as const)('EXPLAIN says which queries read stored buckets: %s', async (setting) => {
  const own = await engineClient(true, setting)
  await own.rows(
    'create table t (ts timestamp, sym symbol, d double, n long, s varchar) timestamp(ts) partition by day',
  )
  await own.rows(
    `create materialized view v refresh manual as (${(views[0] ?? '').replace('#', 't').replace('15m', '1h')})`,
  )
  await own.rows(
    "insert into t select timestamp_sequence('2024-03-30', 600000000L), 'A', x, x, 'p' from long_sequence(300)",
  )
  await own.rows('refresh materialized view v')
  for (const [query, settings] of shapes) {
    const isStored = (await own.rows(`explain ${query}`)).includes('(stored buckets)')
    expect(isStored, `${setting}: ${query}`).toBe(settings.split(', ').includes(setting))
  }
  await own.close()
})

/** The rows, sorted, because groups of a bucket come in any order; or the error. Sums of the test's numbers are exact. */
async function rowsOf(sql: string): Promise<readonly string[]> {
  try {
    return (await client.rows(sql))
      .split(/(?<=\]),/)
      .filter((row) => row !== '')
      .sort()
  } catch (error) {
    return [error instanceof Error ? error.message : String(error)]
  }
}
