// Goal: SAMPLE BY with short time buckets, many of which are aggregated in one pass, returns the values of GROUP BY
// timestamp_floor(..). Method: thousands of buckets over Parquet files and memory, dense and sparse, with and without
// aggregates that only the general operator supports. Buckets with FILL are compared with the same buckets without it.

import { beforeAll, describe, expect, test } from 'vitest'
import { firstDifference } from '../../support/differences.js'
import { emptyEngine, type InlineEngine } from '../../support/inline-engine.js'
import { runs } from '../../support/runs.js'

let engine: InlineEngine

beforeAll(async () => {
  engine = await emptyEngine({ noCompactions: true })
  await engine.run('create table t (ts timestamp, host symbol, x double, n int) timestamp(ts) partition by day')
  // Every 7 s for a day, then every 20 ms, then one a minute with holes.
  const stretches = ['x * 7000000', '86400000000 + x * 20000', '90000000000 + x * 60000000 + (x / 100) * 3600000000']
  for (const [index, micros] of stretches.entries()) {
    await engine.run(
      `insert into t select (1704067200000000 + ${micros})::timestamp, 'h' || (x % 5), case when x % 11 = 3 then null else (x * 37 % 1009) / 8.0 end, (x % 100)::int from long_sequence(${index === 1 ? 30_000 : 12_000})`,
    )
    if (index < 2) await engine.run('checkpoint')
  }
})

const aggregates = 'first(x) f, last(x) l, min(x) a, max(n) b, count() c, count(x) k, sum(n) s, stddev(x) d, avg(x) m'

describe.each(['10s', '20m', '1s', '1m'].slice(0, runs(4, 2)))('buckets of %s', (step) => {
  test.each(['true', "host = 'h3'", 'n < 40 and x > 3'])('where %s', async (condition) => {
    const grouped = await engine.rows(
      `select timestamp_floor('${step}', ts) t, ${aggregates} from t where ${condition} group by t order by t`,
    )
    expect(grouped.length).toBeGreaterThan(200)
    const sample = `select ts, ${aggregates} from t where ${condition} sample by ${step}`
    expect(firstDifference(await engine.rows(sample), grouped)).toBe(null)
    const filled = await engine.rows(`select * from (${sample} fill(null)) where c is not null`)
    expect(firstDifference(filled, grouped)).toBe(null)
  })
})

test('the grid may begin at the first row or elsewhere', async () => {
  const aligned = await engine.rows(
    `select ts, ${aggregates} from t sample by 7m align to calendar with offset '00:03' limit 3000`,
  )
  const grouped = await engine.rows(
    `select timestamp_floor('7m', ts, '1970-01-01T00:03:00Z') t, ${aggregates} from t order by t limit 3000`,
  )
  expect(firstDifference(aligned, grouped)).toBe(null)
  const first = await engine.rows(`select ts, ${aggregates} from t sample by 10s align to first observation`)
  const fromFirst = await engine.rows(
    `select timestamp_floor('10s', ts, '2024-01-01T00:00:07Z') t, ${aggregates} from t order by t`,
  )
  expect(firstDifference(first, fromFirst)).toBe(null)
})
