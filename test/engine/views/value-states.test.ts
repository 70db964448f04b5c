// Goal: materialized views that keep distinct values and numbers as states answer as if they did not, whatever the type
// of the values is, and also for buckets of which they keep none, because these have too many values: such buckets are
// computed from the table, and rows that come for them after they were sealed are counted as left out. Method: tables
// with buckets on both sides of the limit; queries run twice, the second time with one more aggregate that no view has,
// which stops the rewrite.

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import type { Engine } from '../../../engine/api/engine.js'
import { viewStateBytesMax } from '../../../engine/base/limits.js'
import { executeOptions, openTestEngine } from '../../support/test-engine.js'

type Run = (sql: string) => Promise<string[]>

interface Opened {
  readonly run: Run
  readonly engine: () => Engine
  readonly restart: () => Promise<void>
}

async function withEngine(body: (opened: Opened) => Promise<void>): Promise<void> {
  const directory = mkdtempSync(join(tmpdir(), 'penstock-values-'))
  const open = (): Promise<Engine> => openTestEngine(directory, { queryThreads: 1 })
  let engine = await open()
  const run: Run = async (sql) => {
    const result = await engine.execute(sql, executeOptions)
    const rows: string[] = []
    if (result.kind === 'rows')
      for await (const some of result.values)
        for (const row of some)
          rows.push(JSON.stringify(row, (_, value) => (typeof value === 'bigint' ? `${value}` : value)))
    return rows.sort()
  }
  const restart = async (): Promise<void> => {
    await engine.close()
    engine = await open()
  }
  try {
    await body({ run, restart, engine: () => engine })
  } finally {
    await engine.close()
    rmSync(directory, { recursive: true })
  }
}

/** Runs the query as it is and without stored buckets. */
async function expectStored(run: Run, columns: string, rest: string): Promise<void> {
  const names = columns.split(/, (?![^()]*\))/).map((column) => column.split(' ').at(-1))
  const query = `select ${columns} ${rest}`
  expect((await run(`explain ${query}`)).join('\n'), query).toContain('(stored buckets)')
  const plain = `select ${names.join(', ')} from (select ${columns}, count_distinct(ts) other ${rest})`
  expect(await run(query), query).toEqual(await run(plain))
}

const typed = [
  ...['b boolean', 'y byte', 'h short', 'i int', 'l long', 'f float', 'd double', 'dt date', 'tn timestamp_ns'],
  ...['v varchar', 'st string', 'sy symbol', 'u uuid', 'w long256', 'ip ipv4', 'g geohash(4c)', 'm decimal(10, 2)'],
  ...['m2 decimal(30, 3)', 'm3 decimal(60, 1)'],
]
const names = typed.map((column) => column.split(' ')[0] ?? '')
const numeric = ['y', 'h', 'i', 'l', 'f', 'd']

/** Rows with some equal values, zeros of both signs and NULL. */
function values(seed: string): string {
  return `${seed} % 2 = 0, ${seed} % 7, ${seed} % 11, case when ${seed} % 5 = 0 then null else (${seed} % 13)::int end,
    case when ${seed} % 6 = 0 then null else ${seed} % 17 * 1000000007 end,
    case when ${seed} % 3 = 0 then -0.0 when ${seed} % 3 = 1 then 0.0 else ${seed} % 19 * 0.25 end,
    case when ${seed} % 4 = 0 then null when ${seed} % 4 = 1 then -0.0 else ${seed} % 23 * 1.5 - 20 end,
    (${seed} % 5)::date, (${seed} % 9)::timestamp_ns, 'v' || ${seed} % 8, case when ${seed} % 3 = 0 then null else 'é' || ${seed} % 4 end,
    's' || ${seed} % 6, ('00000000-0000-0000-0000-00000000000' || ${seed} % 9)::uuid, ('0x0' || ${seed} % 7)::long256,
    ('10.0.0.' || ${seed} % 6)::ipv4, cast('u33' || ${seed} % 5 as geohash(4c)), (${seed} % 29)::decimal(10, 2), (${seed} % 31 * 1000003)::decimal(30, 3),
    (${seed} % 37 - 5)::decimal(60, 1)`
}

test('states of each type', async () => {
  await withEngine(async ({ run, restart }) => {
    await run(`create table t (ts timestamp, k symbol, ${typed.join(', ')}) timestamp(ts) partition by day`)
    const rows = (from: string, step: string, count: number, more: number): string =>
      `insert into t select timestamp_sequence('${from}', ${step}), 'k' || x % 3, ${values(`(x + ${more})`)} from long_sequence(${count})`
    await run(rows('2024-01-01', '300000000L', 700, 0))
    const aggregates = [
      ...names.map((name) => `count_distinct(${name}) n_${name}`),
      ...numeric.map((name) => `median(${name}) m_${name}`),
      ...['percentile_disc(d, 0.3) p1', 'percentile_cont(l, 0.7) p2', 'approx_percentile(i, 0.9) p3'],
      ...['avg(m) a1', 'avg(m2) a2', 'first(m) f1', 'last(v) f2', 'last(sy) f3', 'min(v) e1', 'max(sy) e2'],
      ...['min(b) e3', 'max(ip) e4', 'bool_and(b) b1', 'bit_or(i) b2', 'bit_xor(h) b3', 'count_if(d > 1) c1'],
    ].join(', ')
    const views = {
      v: `select ts, k, ${aggregates} from t sample by 1h`,
      // Within expressions, so that all states are hidden columns.
      hidden: `select ts, ${names.map((name) => `count_distinct(${name}) + 1 n_${name}`).join(', ')}, coalesce(last(m), first(m2)) f, concat(last(v), first(sy)) g, avg(m) + 1 a from t sample by 2h`,
    }
    for (const [name, query] of Object.entries(views))
      await run(`create materialized view ${name} refresh manual as (${query})`)
    const expectSame = async (): Promise<void> => {
      for (const [name, query] of Object.entries(views)) {
        await run(`refresh materialized view ${name}`)
        const found = await run(`select /*+ view_stored */ * from ${name}`)
        // A query for the whole table is not answered from buckets.
        expect(found, name).toEqual(
          await run(query.replace(' from t', ' from (select * from t order by ts) timestamp(ts)')),
        )
      }
      await expectStored(run, `ts, k, ${aggregates}`, 'from t sample by 1d')
      for (const name of names) await expectStored(run, `k, count_distinct(${name}) n`, 'from t group by k')
    }
    await expectSame()
    // Late rows, in some buckets and in new groups.
    await run(rows('2024-01-01T00:01', '7000000000L', 30, 100))
    await run('checkpoint')
    await restart()
    await expectSame()
  })
}, 240_000)

/** As many distinct integers as a state has room for. */
const kept = (viewStateBytesMax - 8) / 8

test('buckets with too many values', async () => {
  await withEngine(async ({ run, restart }) => {
    await run('create table t (ts timestamp, n long, d double) timestamp(ts) partition by day')
    const rows = (hour: string, count: number, first: number): string =>
      `insert into t select timestamp_sequence('2024-01-01T${hour}:00', 1000L), x + ${first}, (x + ${first}) * 0.5 from long_sequence(${count})`
    await run(rows('00', kept, 0))
    await run(rows('01', kept + 1, 100))
    await run(rows('02', 10, 5))
    await run(rows('03', kept * 2, 5000))
    await run("insert into t values ('2024-01-05', 1, 1)")
    const columns = 'count_distinct(n) kinds, median(d) middle'
    await run(`create materialized view v refresh manual as (select ts, ${columns} from t sample by 1h)`)
    await run('refresh materialized view v')
    const expectAll = async (): Promise<void> => {
      for (const by of ['sample by 2h', 'sample by 1d']) await expectStored(run, `ts, ${columns}`, `from t ${by}`)
      const day = `timestamp_floor('1d', ts) day, ${columns}`
      await expectStored(run, day, "from t where ts < '2024-01-01T03:30' group by day")
    }
    await expectAll()
    await restart()
    await expectAll()
    // Late rows: to a bucket that is full then, to one that keeps nothing, and to a small one.
    await run(
      "insert into t values ('2024-01-01T00:30', -1, -1), ('2024-01-01T01:30', -1, -1), ('2024-01-01T02:30', 1000, 1)",
    )
    await expectAll()
    await run('refresh materialized view v')
    await expectAll()
    expect(await run("select /*+ view_stored */ kinds from v where ts < '2024-01-02'")).toEqual(
      [kept + 1, kept + 2, 11, kept * 2].map((count) => JSON.stringify([`${count}`])).sort(),
    )
    // A deletion makes the state small enough again.
    await run("delete from t where ts in '2024-01-01T01' and n > 500")
    await run('refresh materialized view v')
    await expectAll()
  })
}, 240_000)

test('late rows of sealed buckets', async () => {
  await withEngine(async ({ run, restart }) => {
    await run('create table t (ts timestamp, n long) timestamp(ts) partition by day')
    const rows = (hour: string, count: number, first: number): string =>
      `insert into t select timestamp_sequence('2024-01-01T${hour}:00', 1000L), x + ${first} from long_sequence(${count})`
    await run(rows('00', 100, 0))
    await run(rows('01', kept - 1, 0))
    await run(rows('02', kept + 1, 0))
    await run("insert into t values ('2024-01-05', 1)")
    await run(
      'create materialized view v refresh manual as (select ts, count_distinct(n) kinds, median(n) middle, count() c from t sample by 1h)',
    )
    await run("alter table t drop partition list '2024-01-01'")
    const sealed = (hint = ''): Promise<string[]> => run(`select ${hint} kinds, c from v where ts in '2024-01-01'`)
    const pair = (kinds: number, count: number): string => JSON.stringify([`${kinds}`, `${count}`])
    const omitted = (): Promise<string[]> => run('select omitted_rows from materialized_views()')
    // One is new and one is not; the second bucket is full then; the third one keeps no values.
    await run("insert into t values ('2024-01-01T00:10', 7), ('2024-01-01T00:10', 1000), ('2024-01-01T01:10', -7)")
    await run("insert into t values ('2024-01-01T02:10', 1), ('2024-01-01T02:10', -1)")
    const first = [pair(101, 102), pair(kept, kept), pair(kept + 1, kept + 1)].sort()
    expect(await sealed()).toEqual(first)
    await restart()
    await run('refresh materialized view v')
    expect(await sealed('/*+ view_stored */')).toEqual(first)
    expect(await sealed()).toEqual(first)
    expect(await omitted()).toEqual(['["2"]'])
    // Beyond the limit, the bucket still gets these rows, and no later ones.
    await run("insert into t values ('2024-01-01T01:20', -8), ('2024-01-01T01:20', -9)")
    const second = [pair(101, 102), pair(kept + 2, kept + 2), pair(kept + 1, kept + 1)].sort()
    expect(await sealed()).toEqual(second)
    await run('refresh materialized view v')
    expect(await sealed('/*+ view_stored */')).toEqual(second)
    await run("insert into t values ('2024-01-01T01:30', -10), ('2024-01-01T00:30', -10), ('2024-01-05', 2)")
    await run('checkpoint')
    const third = [pair(102, 103), pair(kept + 2, kept + 2), pair(kept + 1, kept + 1)].sort()
    expect(await sealed()).toEqual(third)
    await run('refresh materialized view v')
    expect(await sealed('/*+ view_stored */')).toEqual(third)
    expect(await sealed()).toEqual(third)
    expect(await omitted()).toEqual(['["3"]'])
    // The planner takes what the table has now.
    expect(await run("select count_distinct(n) from t where ts in '2024-01-01'")).toEqual(['["8"]'])
    await run("alter table t drop partition list '2024-01-01'")
    expect(await sealed()).toEqual(third)
  })
}, 240_000)

test('a column gets a type with other bytes', async () => {
  await withEngine(async ({ run }) => {
    await run('create table t (ts timestamp, n int) timestamp(ts) partition by day')
    await run("insert into t select timestamp_sequence('2024-01-01', 60000000L), x % 50 from long_sequence(3000)")
    await run(
      'create materialized view v refresh manual as (select ts, count_distinct(n) kinds, median(n) m from t sample by 1h)',
    )
    for (const type of ['long', 'double', 'varchar', 'long']) {
      await run('refresh materialized view v')
      if (type !== 'varchar') await run("insert into t values ('2024-01-01T00:00:30', 7), ('2024-01-01T00:00:40', 70)")
      await run('refresh materialized view v')
      const query = 'select ts, count_distinct(n) kinds from t sample by 1d'
      const plain =
        'select ts, kinds from (select ts, count_distinct(n) kinds, count_distinct(ts) other from t sample by 1d)'
      expect(await run(query), type).toEqual(await run(plain))
      if (type !== 'varchar') await run(`alter table t alter column n type ${type}`)
      expect(await run(query), type).toEqual(await run(plain))
    }
  })
}, 240_000)
