// Goal: late rows that a refresh merges into stored buckets of materialized views give the buckets that the query has,
// and buckets that cannot be merged are computed. Method: a table with many rows; late rows, some of them with the
// timestamps of others, flushes and restarts in random order. After each refresh the stored rows of all views are
// compared with their queries. A merge rewrites no part of the view, so that metric tells how a refresh went.
//
//   VIEW_SEED=7 npx vitest run test/engine/views/late-rows.test.ts          replays one seed
//   VIEW_SEEDS=50 VIEW_STEPS=200 npx vitest ...                             a long run

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import type { Engine } from '../../../engine/api/engine.js'
import { createRandom } from '../../support/random.js'
import { executeOptions, openTestEngine } from '../../support/test-engine.js'
import { expectClose } from './close-rows.js'

const only = process.env['VIEW_SEED']
const seeds = only === undefined ? Number(process.env['VIEW_SEEDS'] ?? 1) : 1
const first = Number(only ?? 1)
const steps = Number(process.env['VIEW_STEPS'] ?? 4)

/** The views whose late rows are merged, and one that is always computed. */
const merged = [
  'select ts, sym, first(d) o, last(n) c, min(d) lo, max(d) hi, sum(n) sn, avg(d) mean, stddev(d) dev, corr(d, n) rel, count() cnt from t sample by 1h',
  "select ts, s, count() cnt, sum(d) * 2 twice, max(n) - min(n) span, max(ts) newest from t where n > 100 sample by 1d align to calendar time zone 'Europe/Berlin'",
  'select ts, sym, first(o) o, last(c) c, min(lo) lo, sum(sn) sn, sum(cnt) cnt from v0 sample by 6h',
  'select ts, concat(sym, s) pair, round(var_pop(d), 3) spread, regr_slope(d, n) slope, count(d) present from t sample by 30m',
]
const computed = ['select ts, sym, count_distinct(n) kinds, avg(n) mean from t sample by 2h']
const queries = [...merged, ...computed]

async function rowsOf(engine: Engine, sql: string): Promise<string[]> {
  const result = await engine.execute(sql, executeOptions)
  const rows: string[] = []
  if (result.kind === 'rows')
    for await (const some of result.values)
      for (const row of some)
        rows.push(JSON.stringify(row, (_, value) => (typeof value === 'bigint' ? `${value}` : value)))
  return rows.sort()
}

for (let seed = first; seed < first + seeds; seed++) {
  test(`late rows are merged into stored buckets [seed=${seed}]`, async () => {
    const directory = mkdtempSync(join(tmpdir(), 'penstock-late-'))
    const { below, pick, chance } = createRandom(seed + 900)
    const open = (): Promise<Engine> => openTestEngine(directory, { queryThreads: 1 })
    let engine = await open()
    const run = (sql: string): Promise<string[]> => rowsOf(engine, sql)
    try {
      const unit = pick(['hour', 'day', 'month'])
      await run(
        `create table t (ts timestamp, sym symbol, d double, n long, s varchar) timestamp(ts) partition by ${unit}`,
      )
      await run(
        `insert into t select timestamp_sequence('2024-03-29', 90000000L), 's' || (x % 3), x * 0.25, x % 1000, 'k' || (x % 2) from long_sequence(4000)`,
      )
      for (const [index, query] of queries.entries())
        await run(`create materialized view v${index} refresh manual as (${query})`)
      const row = (): string => {
        const micros = Date.UTC(2024, 2, 29) + 90_000 * below(4000) + (chance(0.8) ? 1 + below(89_000) : 0)
        const sym = pick(["'s0'", "'s1'", "'new'", 'null'])
        return `('${new Date(micros).toISOString()}', ${sym}, ${pick(['null', below(9000) / 8])}, ${below(1000)}, ${pick(["'k1'", "'k2'", 'null'])})`
      }
      let merges = 0
      for (let step = 0; step < steps; step++) {
        for (let batch = 0; batch <= below(2); batch++) {
          await run(`insert into t values ${Array.from({ length: 1 + below(30) }, row).join(', ')}`)
          if (chance(0.5)) await run('checkpoint')
        }
        if (chance(0.2)) {
          await engine.close()
          engine = await open()
        }
        if (chance(0.1)) await run(`update t set d = d + 1 where ts in '2024-03-30T05' and sym = 's1'`)
        if (chance(0.1)) await run(`delete from t where ts in '2024-03-31T07' and n < 400`)
        for (const [index, query] of queries.entries()) {
          const before = engine.metrics().counts.rewrittenRows
          await run(`refresh materialized view v${index}`)
          if (engine.metrics().counts.rewrittenRows === before) merges++
          const found = await run(`select /*+ view_stored */ * from v${index}`)
          expectClose(found, await run(query), `v${index} in step ${step}`)
        }
      }
      expect(merges).toBeGreaterThan(steps / 2)
    } finally {
      await engine.close()
      rmSync(directory, { recursive: true })
    }
  }, 600_000)
}
