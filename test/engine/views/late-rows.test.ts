// Goal: when a refresh merges late rows into stored buckets of materialized views, the buckets equal those of the
// query. Buckets that cannot be merged are computed. Method: a table with many rows; late rows, some with equal
// timestamps, flushes and restarts in random order. After each refresh the stored rows of all views are compared with
// their queries. A merge rewrites no rows of the view, so the metric of rewritten rows tells when a refresh merged.
//
//   VIEW_SEED=7 npx vitest run test/engine/views/late-rows.test.ts          replays one seed
//   VIEW_SEEDS=50 VIEW_STEPS=200 npx vitest ...                             a long run

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import type { Engine } from '../../../engine/api/engine.js'
import type { ExecuteOptions } from '../../../engine/api/statements.js'
import { CancelledError, ResourceError } from '../../../engine/base/errors.js'
import { dataType } from '../../../engine/types/column-types.js'
import { isReplaced } from '../../../engine/views/late-rows.js'
import { createRandom } from '../../support/random.js'
import { executeOptions, openTestEngine } from '../../support/test-engine.js'
import { schemaOf, versionOf } from '../storage/part-support.js'
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
  'select ts, concat(sym, s) pair, round(var_pop(d), 3) spread, regr_slope(d, n) slope, count(d) present, avg(n) level from t sample by 30m',
  'select ts, count_distinct(n) kinds, count(distinct s) * 2 texts, median(d) middle, percentile_disc(n, 0.9) most, first(s) s0, max(sym) top, avg(d::decimal(18, 3)) mean, bool_and(n > 3) each from t sample by 1h',
]
const computed = ['select ts, sym, mode(n) kind, avg(n) mean from t sample by 2h']
const queries = [...merged, ...computed]

async function rowsOf(engine: Engine, sql: string, parameters: ExecuteOptions['parameters'] = []): Promise<string[]> {
  const result = await engine.execute(sql, { ...executeOptions, parameters })
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

// What cannot be merged --------------------------------------------------------------------------------------------

/** Runs a test with an engine of its own. */
async function withEngine(
  body: (engine: Engine, run: (sql: string) => Promise<string[]>) => Promise<void>,
  memoryBytes = 512 * 1024 * 1024,
): Promise<void> {
  const directory = mkdtempSync(join(tmpdir(), 'penstock-late-'))
  const engine = await openTestEngine(directory, { queryThreads: 1, memoryBytes })
  try {
    await body(engine, (sql) => rowsOf(engine, sql))
  } finally {
    await engine.close()
    rmSync(directory, { recursive: true })
  }
}

test('minima, maxima and sums with infinite values', async () => {
  await withEngine(async (engine, run) => {
    await run('create table t (ts timestamp, sym symbol, d double, f float) timestamp(ts) partition by day')
    const double = dataType('DOUBLE')
    const add = async (start: string, sym: string, d: number | null, f: number | null): Promise<void> => {
      const values = [d, f].map((value, index) => ({ value, type: index === 0 ? double : dataType('FLOAT') }))
      await rowsOf(engine, `insert into t values ('2024-01-01T${start}', '${sym}', $1, $2)`, values)
    }
    const [most, least] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY]
    for (let index = 0; index < 40; index++) await add(`00:${10 + index}`, 'many', index, index)
    for (const [sym, value] of [
      ['most', most],
      ['least', least],
      ['none', null],
      ['some', 3],
    ] as const)
      for (const start of ['00:10', '01:10']) await add(start, sym, value, value)
    const queries = {
      v_counted: 'select ts, sym, min(d) lo, max(d) hi, sum(d) total from t sample by 30m',
      v_plain: 'select ts, sym, min(d) lo, max(d) hi, min(f) low, max(f) high from t sample by 30m',
      v_over: 'select ts, sym, min(lo) lo, max(hi) hi, sum(total) total from v_counted sample by 1h',
      v_again: 'select ts, sym, min(lo) lo, max(hi) hi, min(low) low, max(high) high from v_plain sample by 2h',
    }
    for (const [name, query] of Object.entries(queries)) {
      await run(`create materialized view ${name} refresh manual as (${query})`)
    }
    await run('checkpoint')
    for (const name of Object.keys(queries)) await run(`refresh materialized view ${name}`)
    for (const sym of ['most', 'least', 'none', 'some']) {
      await add('00:20', sym, 5, 5)
      await add('01:20', sym, sym === 'some' ? most : null, sym === 'none' ? least : null)
    }
    await run('checkpoint')
    for (const name of Object.keys(queries)) await run(`refresh materialized view ${name}`)
    for (const [name, query] of Object.entries(queries)) {
      const found = await run(`select /*+ view_stored */ * from ${name}`)
      // The further aggregate keeps the planner from the stored buckets of the table.
      const plain = query.replace(' from', ', count_distinct(ts) other from')
      const columns = query.replace('select ', '').replace(/\S+\(\w+\) | from.*/g, '')
      expect(found, name).toEqual(await run(`select ${columns} from (${plain})`))
    }
  })
}, 120_000)

test('late rows of sealed buckets are not compacted with rows that the buckets have', async () => {
  await withEngine(async (engine, run) => {
    const rows = (minute: number): string =>
      `select dateadd('s', x::int, '2024-01-01T01:0${minute}'::timestamp), 1 from long_sequence(10)`
    await run('create table t (ts timestamp, n long) timestamp(ts) partition by hour')
    await run('create materialized view v refresh manual as (select ts, sum(n) total from t sample by 1d)')
    await run("insert into t values ('2024-01-01T00:30', 1), ('2024-01-03', 1)")
    await run(`insert into t ${rows(0)}`)
    await run('checkpoint')
    // The bucket of the day keeps a row that is gone, and has those of the next hour.
    await run("alter table t drop partition list '2024-01-01T00'")
    for (let minute = 1; minute <= 5; minute++) {
      await run(`insert into t ${rows(minute)}`)
      await run('checkpoint')
    }
    for (let tries = 0; engine.metrics().counts.merges === 0 && tries < 200; tries++)
      await new Promise((resolve) => setTimeout(resolve, 25))
    expect(engine.metrics().counts.merges).toBeGreaterThan(0)
    const total = "select total from v where ts = '2024-01-01'"
    expect(await run(total)).toEqual(['["61"]'])
    await run('refresh materialized view v')
    expect(await run(total)).toEqual(['["61"]'])
    expect(await run("select count() from t where ts in '2024-01-01'")).toEqual(['["60"]'])
  })
}, 120_000)

test('late rows whose own sum is out of range', async () => {
  await withEngine(async (_engine, run) => {
    await run('create table t (ts timestamp, n long) timestamp(ts) partition by day')
    await run(
      "insert into t select timestamp_sequence('2024-01-01', 1000L), -5000000000000000L from long_sequence(1000)",
    )
    await run('checkpoint')
    await run('create materialized view v refresh manual as (select ts, sum(n) total from t sample by 1h)')
    await run('refresh materialized view v')
    await run(
      "insert into t values ('2024-01-01T00:00:00.5', 5000000000000000000), ('2024-01-01T00:00:00.6', 5000000000000000000)",
    )
    await run('checkpoint')
    await run('refresh materialized view v')
    const stored = 'select /*+ view_stored */ total from v'
    expect(await run(stored)).toEqual(['["5000000000000000000"]'])
  })
}, 120_000)

test('late rows that change too much for one transaction', async () => {
  await withEngine(async (_engine, run) => {
    await run('create table t (ts timestamp, s varchar) timestamp(ts) partition by hour')
    await run("insert into t select timestamp_sequence('2024-01-01', 20000L), 'k' from long_sequence(120000)")
    await run("insert into t select timestamp_sequence('2024-01-01T01', 60000000L), 'k' || x from long_sequence(3000)")
    await run('checkpoint')
    await run('create materialized view v refresh manual as (select ts, s, count() c from t sample by 1h)')
    await run('refresh materialized view v')
    await run('checkpoint')
    await run(
      "insert into t select timestamp_sequence('2024-01-01', 40000L), lpad('' || x, 1000, '0') from long_sequence(52000)",
    )
    await run('checkpoint')
    await run('refresh materialized view v')
    const counts = 'count() keys, sum(c) all_rows'
    expect(await run(`select /*+ view_stored */ ${counts} from v`)).toEqual(['["55001","175000"]'])
  }, 2 ** 31)
}, 240_000)

test('a lack of memory to replace rows is no error, but a cancel is', async () => {
  const view = versionOf(schemaOf([]))
  const input = { tableId: 1, rows: 1, columns: [] }
  const removal = { schemaVersion: 1, transaction: 1, parts: [], memtables: [], hidden: new Uint32Array() }
  const unused = (): Promise<never> => Promise.reject(new Error('not used'))
  const failing = (error: Error) => ({
    ...{ buckets: unused, changes: unused, computed: unused, unkept: unused },
    ...{ replace: () => Promise.reject(error) },
  })
  expect(await isReplaced(failing(ResourceError.outOfMemory('memtables', 4)), view, { input, removal })).toBe(false)
  await expect(isReplaced(failing(new CancelledError()), view, { input, removal })).rejects.toThrow(CancelledError)
})
