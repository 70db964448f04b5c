// Goal: LATEST ON partitioned by one symbol column, and max(ts) grouped by it, return the rows that a full scan finds.
// The executor answers them from lists of the newest row of each symbol in parts, and from what threads remember of
// memtables. Changes of the table after a list was made must not matter: late rows, deduplication, UPDATE, DELETE,
// dropped partitions, TTL, TRUNCATE, changed types, compaction, a restart. The same holds for a query of an earlier
// snapshot. Method: random statements; each query is compared with the same query over the column cast to a string, for
// which all rows are read.

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import type { ReadSnapshot } from '../../../../engine/api/session.js'
import type { Value } from '../../../../engine/types/value.js'
import { emptyEngine, InlineEngine } from '../../../support/inline-engine.js'
import { createRandom, type Random } from '../../../support/random.js'
import { runs } from '../../../support/runs.js'
import { createFaultyDisk } from '../../../support/simulator/faulty-files.js'
import { executeOptions, openTestEngine, rowsFrom } from '../../../support/test-engine.js'

const day = 86_400_000_000
const start = 1_704_067_200_000_000

type Rows = (readonly Value[])[]

async function rowsOf(engine: InlineEngine, sql: string, snapshot?: ReadSnapshot): Promise<Rows> {
  const session = { ...executeOptions.session, ...(snapshot === undefined ? {} : { snapshot }) }
  const result = await engine.until(engine.engine.execute(sql, { ...executeOptions, session }))
  const rows: Rows = []
  if (result.kind !== 'rows') return rows
  const all = (async () => {
    for await (const some of result.values) rows.push(...some)
  })()
  await engine.until(all)
  return rows
}

/** Conditions on time that leave out whole parts, cut parts, and both. */
function conditions(random: Random): string[] {
  const some = (): number => start + random.below(3 * day)
  return ['', `where ts >= ${some()}`, `where ts <= ${some()}`, `where ts between ${some()} and ${some()}`]
}

async function compare(engine: InlineEngine, note: string, random: Random, snapshot?: ReadSnapshot): Promise<void> {
  for (const where of conditions(random)) {
    const found = await rowsOf(engine, `select ts, i, k, v, d from t ${where} latest on ts partition by k`, snapshot)
    const expected = await rowsOf(
      engine,
      `select ts, i, k, v, d from (select ts, i, k::varchar k, v, d from t ${where}) latest on ts partition by k`,
      snapshot,
    )
    expect(found, `${note} ${where}`).toEqual(expected)
    const newest = `select k, max(ts) m, last(v) v, last(d) d from t ${where} group by k order by m, k`
    const all = `select k, max(ts) m, last(v) v, last(d) d from (select k::varchar k, ts, v, d from t ${where}) group by k order by m, k`
    expect(await rowsOf(engine, newest, snapshot), `${newest}, ${note}`).toEqual(await rowsOf(engine, all, snapshot))
  }
}

/** Rows at the end of the table, or late; often with equal timestamps; some symbols vanish for long. */
function insert(random: Random, step: number): string {
  const late = random.chance(0.4)
  const from = late ? start + random.below(12) * (day / 4) : start + Math.floor(step * day * 0.1)
  const stride = random.pick([0, 1, 1_000_000, 30_000_000])
  const symbols = random.between(1, 14)
  const shift = random.below(20)
  const nulls = random.pick([2, 5, 1_000_000])
  return `insert into t select (${from} + x / ${random.pick([1, 20])} * ${stride})::timestamp, (x + ${step * 10_000})::int,
    case when x % ${nulls} = 1 then null else 's' || (x * 7 % ${symbols} + ${shift}) end, 'text ' || x, x / 3.0
    from long_sequence(${random.pick([1, 300, 900, 2500])})`
}

type Statement = (random: Random, step: number) => string

const statements: readonly (readonly [weight: number, statement: Statement])[] = [
  [10, insert],
  [8, () => 'checkpoint'],
  [3, (random) => `delete from t where k = 's${random.below(20)}'`],
  [2, (random) => `delete from t where i % 10 > ${random.between(1, 8)} and ts > ${start + random.below(3 * day)}`],
  [2, (random) => `update t set k = 's${random.below(30)}' where k = 's${random.below(20)}' and i % 3 > 0`],
  [1, (random) => `update t set d = d + 1 where i % 5 = ${random.below(5)}`],
  [1, (random) => `alter table t drop partition where ts < ${start + random.below(day)}`],
  [0.5, () => 'truncate table t'],
  [1, (_, step) => `alter table t alter column i type ${step % 2 === 0 ? 'long' : 'int'}`],
  [1, () => 'alter table t alter column k type varchar; alter table t alter column k type symbol'],
  [1, (random) => `alter table t set ttl ${random.pick(['2 days', '0h'])}`],
  [0.5, (random) => `alter table t dedup enable upsert keys(ts${random.pick(['', ', k'])})`],
  [0.5, () => 'alter table t dedup disable'],
]
const weighted = statements.flatMap(([weight, statement]) => Array.from({ length: weight * 2 }, () => statement))

/** ALTER TYPE refuses the type that the column has. */
function sameType(error: unknown): void {
  if (!(error instanceof Error && error.message.includes('already'))) throw error
}

const dedups = ['', 'dedup upsert keys(ts, k)', 'dedup upsert keys(ts)', 'dedup skip keys(ts, k)']

test.each(Array.from({ length: runs(16, 4) }, (_, seed) => [seed, dedups[seed % dedups.length]]))(
  'random statements, seed %d %s',
  async (seed, dedup) => {
    const random = createRandom(Number(seed) + 100)
    const { files } = createFaultyDisk(1)
    files.makeDirectory('/db')
    files.syncDirectory('/')
    const options = { files, noCompactions: random.chance(0.5), inline: random.chance(0.5) }
    let engine = new InlineEngine(options)
    await engine.settle()
    await engine.run(
      `create table t (ts timestamp, i int, k symbol, v varchar, d double) timestamp(ts) partition by day ${dedup}`,
    )
    let held: { readonly snapshot: ReadSnapshot; readonly step: number } | null = null
    for (let step = 0; step < 40; step++) {
      const sql = random.pick(weighted)(random, step)
      for (const part of sql.split('; ')) await engine.run(part).catch(sameType)
      if (random.chance(0.6)) await compare(engine, `seed ${seed}, step ${step}: ${sql}`, random)
      // A snapshot does not outlive a change of the table's definition.
      if (held !== null && /alter|truncate/.test(sql)) {
        held.snapshot.release()
        held = null
      } else if (held !== null && step - held.step > 4) {
        await compare(engine, `seed ${seed}, the snapshot of step ${held.step} at step ${step}`, random, held.snapshot)
        held.snapshot.release()
        held = null
      } else if (held === null && random.chance(0.3)) {
        held = { snapshot: engine.engine.holdSnapshot(), step }
        if (random.chance(0.5))
          await compare(engine, `seed ${seed}, the snapshot of step ${step}`, random, held.snapshot)
      }
      if (held === null && random.chance(0.1)) {
        await engine.settle()
        engine = new InlineEngine(options)
        await engine.settle()
        await compare(engine, `seed ${seed}, restarted after step ${step}`, random)
      }
    }
  },
)

// ALTER TABLE removes replaced rows before the keys change, but beside ingestion it does not wait without end for the last
// ones. Each statement inserts pairs of rows with equal timestamps, before all others.
test('rows in memory that earlier DEDUP keys have replaced do not count', async () => {
  const engine = await emptyEngine()
  await engine.run(
    'create table t (ts timestamp, i int, k symbol) timestamp(ts) partition by day dedup upsert keys(ts)',
  )
  let inserts = 0
  const insert = (): Promise<unknown> =>
    engine.run(`insert into t select (${start + day / 2 - inserts++ * 100} + x / 2)::timestamp, x::int, case x % 2 when 0 then 'a'
      else 'b' end from long_sequence(41)`)
  await insert()
  const change = engine.engine.execute('alter table t dedup enable upsert keys(ts, k)', executeOptions)
  let isChanged = false
  change.finally(() => {
    isChanged = true
  })
  while (!isChanged) await insert()
  engine.jobsRun = false
  await change
  expect(inserts).toBeGreaterThan(10)
  expect(await engine.rows("select count() from tables() where table_name = 't' and dedup")).toEqual([[1n]])
  const rows = await rowsOf(
    engine,
    'select ts, i, k from (select ts, i, k::varchar k from t) latest on ts partition by k',
  )
  expect(await rowsOf(engine, 'select ts, i, k from t latest on ts partition by k')).toEqual(rows)
})

test('a symbol that has not been seen for long costs no scan once the lists are made', async () => {
  const engine = await emptyEngine({ noCompactions: true })
  await engine.run('create table t (ts timestamp, i int, k symbol) timestamp(ts) partition by day')
  await engine.run(`insert into t values (${start}, 0, 'rare')`)
  for (let part = 0; part < 3; part++) {
    await engine.run(
      `insert into t select (${start + part * day} + x * 100000)::timestamp, x::int, 's' || (x % 9) from long_sequence(500000)`,
    )
    await engine.run('checkpoint')
  }
  const pagesRead = async (): Promise<number> => {
    const before = engine.engine.metrics().cache
    const found = await engine.rows('select k, i from t latest on ts partition by k')
    expect(found.length).toBe(10)
    expect(found[0]).toEqual(['rare', 0])
    expect(found.at(-1)).toEqual(['s5', 500_000])
    const after = engine.engine.metrics().cache
    return after.hits + after.misses - before.hits - before.misses
  }
  const first = await pagesRead()
  const second = await pagesRead()
  expect(first).toBeGreaterThan(2 * 8)
  expect(second).toBeLessThan(16)
})

test.each([true, false])(
  'rows that upserts have moved are found where they are now, stored: %s',
  async (stored) => {
    const directory = mkdtempSync(join(tmpdir(), 'penstock-test-latest-'))
    const engine = await openTestEngine(directory)
    try {
      const random = createRandom(5)
      await rowsFrom(
        engine,
        'create table t (ts timestamp, i int primary key, k symbol, d double) timestamp(ts) partition by day',
      )
      await rowsFrom(
        engine,
        `insert into t select (${start} + x * 60000000)::timestamp, x::int, 's' || (x % 9), x from long_sequence(4000)`,
      )
      if (stored) await rowsFrom(engine, 'checkpoint')
      const newest = 'select ts, i, k, d from t latest on ts partition by k'
      const all = 'select ts, i, k, d from (select ts, i, k::varchar k, d from t) latest on ts partition by k'
      expect(await rowsFrom(engine, newest)).toEqual(await rowsFrom(engine, all))
      for (let step = 0; step < 10; step++) {
        const [from, to] = [random.below(4 * day), 3980 - step]
        await rowsFrom(
          engine,
          `insert into t select (${start + from} + x)::timestamp, (${to} + x)::int, 's' || x % 7, x / 2.0 from long_sequence(12)
         on conflict (i) do update set ts = excluded.ts, k = excluded.k, d = excluded.d`,
        )
        expect(await rowsFrom(engine, newest), `step ${step}`).toEqual(await rowsFrom(engine, all))
      }
    } finally {
      await engine.close()
      rmSync(directory, { recursive: true })
    }
  },
  60_000,
)
