// Goal: GROUP BY on functions of the designated timestamp, such as hour(ts), returns the same groups whether it is
// executed by time buckets, as an optimisation, or by the value of each row. Method: several days of rows on disk and
// in memory, some of them late; each key is compared with an equivalent key that the optimisation does not recognise.

import { expect, test } from 'vitest'
import { emptyEngine, type InlineEngine } from '../../support/inline-engine.js'

async function filled(): Promise<InlineEngine> {
  const engine = await emptyEngine({ noCompactions: true })
  await engine.run('create table t (ts timestamp, host symbol, l long) timestamp(ts) partition by day')
  for (const [first, stored] of [
    [0, true],
    [6000, true],
    [3000, false],
  ] as const) {
    await engine.run(
      `insert into t select (1703980800000000 + (x + ${first}) * 20000000)::timestamp, 'h' || (x % 3), x % 50 from long_sequence(6000)`,
    )
    if (stored) await engine.run('checkpoint')
  }
  return engine
}

const keys = ['hour(ts)', 'day(ts)', 'day_of_week(ts)', 'year(ts)', "extract('week' from ts)", 'minute(ts)']

test('parts of the timestamp are keys like any other', async () => {
  const engine = await filled()
  for (const key of keys) {
    for (const query of [
      'select # k, count(), sum(l), min(ts), max(l) from t group by k order by k',
      'select host, # k, count(), sum(l) from t where l > 7 group by k, host order by host, k',
      "select # k, count() from t where ts >= '2023-12-31T05:10' and ts < '2024-01-02T01:30' group by k order by k",
    ]) {
      const expected = await engine.rows(query.replaceAll('#', `(${key} + 0)`))
      expect(await engine.rows(query.replaceAll('#', key)), query.replaceAll('#', key)).toEqual(expected)
      expect(expected.length > 0).toBe(true)
    }
  }
})
