// Goal: queries that combine stored states of aggregates (sums and counts, moments) give the same result as without the
// view, also where a sum or a moment is not finite, and after a column of the table got another type. Method: small
// tables; each query runs twice, the second time with one more aggregate that no view has, which stops the rewrite.

import { afterAll, beforeAll, expect, test } from 'vitest'
import { type EngineClient, engineClient } from '../../sql/clients.js'
import { expectClose } from './close-rows.js'

let client: EngineClient

beforeAll(async () => {
  client = await engineClient(true)
})

afterAll(() => client.close())

const ofOne = ['sum(x)', 'count(x)', 'avg(x)', 'variance(x)', 'stddev(x)', 'var_pop(x)', 'stddev_pop(x)']
const ofTwo = [
  ...['corr', 'covar_samp', 'covar_pop', 'regr_slope', 'regr_intercept', 'regr_r2', 'regr_avgx', 'regr_avgy'],
  ...['regr_sxx', 'regr_syy', 'regr_sxy', 'regr_count'],
].map((name) => `${name}(x, y)`)

/** Whether the planner answers the query from stored buckets, which must not change its result. */
async function isFromView(table: string, aggregate: string, by: string): Promise<boolean> {
  const query = `select ts, sym, ${aggregate} a from ${table} sample by ${by}`
  const plain = `select ts, sym, a from (select ts, sym, ${aggregate} a, count_distinct(ts) from ${table} sample by ${by})`
  expectClose(await sorted(query), await sorted(plain), query)
  return (await client.rows(`explain ${query}`)).includes('(stored buckets)')
}

test('sums and moments that are not finite', async () => {
  await client.rows('create table big (ts timestamp, sym symbol, x double, y double) timestamp(ts) partition by day')
  await client.rows(
    `create materialized view big_h refresh manual deferred as
      (select ts, sym, avg(x) m, stddev(x) d, corr(x, y) c from big sample by 1h)`,
  )
  await client.rows(
    'create materialized view big_2h refresh manual deferred as (select ts, sym, sum(x) s from big sample by 2h)',
  )
  const rows = [
    ...["('2024-01-01T00:10', 'sum', 1e308, 1)", "('2024-01-01T00:20', 'sum', 1e308, 2)"],
    ...["('2024-01-01T02:10', 'sum', 3, 2)", "('2024-01-01T05:20', 'sum', null, 3)"],
    ...["('2024-01-01T00:10', 'late', 3, 4)", "('2024-01-01T02:10', 'late', 1e200, 1)"],
    "('2024-01-01T02:20', 'late', 1e200, 2)",
    ...[
      "('2024-01-01T00:10', 'y', 3, 1e200)",
      "('2024-01-01T00:20', 'y', 7, -1e200)",
      "('2024-01-01T02:10', 'y', 4, 5)",
    ],
    ...["('2024-01-01T00:10', 'none', null, 1)", "('2024-01-01T02:10', 'none', 4, 1)"],
    ...["('2024-01-01T04:10', 'none', 4, null)", "('2024-01-01T06:10', 'none', null, null)"],
  ]
  await client.rows(`insert into big values ${rows.join(', ')}`)
  await client.rows('refresh materialized view big_h')
  await client.rows('refresh materialized view big_2h')
  for (const by of ['2h', '1d'])
    for (const aggregate of [...ofOne, ...ofTwo])
      expect(await isFromView('big', aggregate, by), `${aggregate} by ${by}`).toBe(true)
  await client.rows('drop table big cascade')
}, 120_000)

test('an aggregate that is also within an expression', async () => {
  await client.rows('create table kept (ts timestamp, sym symbol, x double) timestamp(ts) partition by day')
  await client.rows(
    `create materialized view kept_h refresh manual deferred as
      (select ts, sym, sum(x) * 0.001 k, count(x) + 1 more, avg(x) m from kept sample by 1h)`,
  )
  await client.rows("insert into kept values ('2024-01-01T00:10', 'a', 1), ('2024-01-01T01:10', 'a', 4)")
  await client.rows('refresh materialized view kept_h')
  for (const aggregate of ['avg(x)', 'sum(x)', 'count(x)'])
    expect(await isFromView('kept', aggregate, '1d'), aggregate).toBe(true)
  await client.rows('drop table kept cascade')
}, 120_000)

test('exact means and sums of large numbers', async () => {
  await client.rows(
    'create table large (ts timestamp, sym symbol, n long, d decimal(38, 2)) timestamp(ts) partition by day',
  )
  const exact = ['avg(n)', 'sum(d)', 'min(d)', 'max(d)']
  const columns = exact.map((aggregate, index) => `${aggregate} a${index}`).join(', ')
  const views = {
    large_h: `select ts, sym, ${columns} from large sample by 1h`,
    // Within expressions, so that the view needs states.
    large_2h:
      'select ts, sym, avg(n) / 2 m, max(d) - min(d) w, sum(d) + 1 s, count_distinct(n) c from large sample by 2h',
  }
  for (const [view, query] of Object.entries(views))
    await client.rows(`create materialized view ${view} refresh manual deferred as (${query})`)
  const numbers = [
    ...['9223372036854775807', '9223372036854775806', '-9223372036854775807', '-1', '1', '4294967296', 'null'],
  ]
  const times = ['2024-01-01T00:10', '2024-01-01T01:20', '2024-01-02T05:30']
  const rows = numbers.flatMap((n, index) =>
    times.map((ts, day) => `('${ts}', 'k${(index + day) % 3}', ${n}, ${n === 'null' ? n : `${n.slice(0, 15)}.07m`})`),
  )
  await client.rows(`insert into large values ${rows.join(', ')}`)
  const expectEqual = async (): Promise<void> => {
    for (const [view, query] of Object.entries(views)) {
      await client.rows(`refresh materialized view ${view}`)
      expect(await sorted(`select /*+ view_stored */ * from ${view}`)).toEqual(await sorted(query))
    }
    for (const by of ['1h', '2h', '1d'])
      for (const aggregate of exact) {
        const query = `select ts, sym, ${aggregate} a from large sample by ${by}`
        expect(await sorted(query), query).toEqual(
          await sorted(`select ts, sym, a from (${query.replace(' from', ', count_distinct(ts) from')})`),
        )
        expect(await client.rows(`explain ${query}`), query).toContain('(stored buckets)')
      }
  }
  await expectEqual()
  await client.rows("insert into large values ('2024-01-01T00:50', 'k0', 9223372036854775807, 1234567890123456.50m)")
  await expectEqual()
  await client.rows('drop table large cascade')
}, 120_000)

async function sorted(sql: string): Promise<string[]> {
  return (await client.rows(sql)).split(/(?<=\]),/).sort()
}

const types = ['short', 'int', 'long', 'float']

test.each(types)(
  'a column of type %s becomes DOUBLE',
  async (type) => {
    await client.rows(`create table t (ts timestamp, sym symbol, n ${type}) timestamp(ts) partition by day`)
    await client.rows(
      `create materialized view v refresh manual deferred as
      (select ts, sym, avg(n) a, stddev(n) s, corr(n, n) c from t sample by 1h) partition by day`,
    )
    await client.rows(
      "insert into t select timestamp_sequence('2024-01-01', 600000000L), 'a', cast(x as int) from long_sequence(500)",
    )
    await client.rows('refresh materialized view v')
    expect(await isFromView('t', 'avg(n)', '1d')).toBe(true)
    expect(await isFromView('t', 'corr(n, n)', '1d')).toBe(true)
    const buckets = await client.rows('select * from v')
    await client.rows('alter table t alter column n type double')
    expect(await client.rows('select * from v')).toBe(buckets)
    await client.rows('refresh materialized view v')
    expect(await client.rows('select * from v')).toBe(buckets)
    expect(await client.rows('select /*+ view_stored */ * from v')).toBe(buckets)
    expect(await client.rows("select invalidation_reason from materialized_views() where view_name = 'v'")).toBe(
      '[null]',
    )
    // The mean of DOUBLE has other states than that of LONG.
    for (const aggregate of ['avg(n)', 'corr(n, n)', 'variance(n)'])
      expect(await isFromView('t', aggregate, '1d'), aggregate).toBe(type !== 'long')
    // Buckets outlive the rows after the change, too.
    await client.rows("alter table t drop partition where ts < '2024-01-03'")
    expect(await client.rows('select * from v')).toBe(buckets)
    await client.rows('drop table t cascade')
  },
  120_000,
)
