// Goal: conditions that look for certain values of a column without a declared key return the rows that a full scan
// finds, before, while and after the pages get an index of the column (storage/part/page-keys.ts), and after changes
// of the table. Method: random statements; each query is compared with the same query with `n + 0` instead of `n`,
// which uses no index. Values are rare or frequent, or NULL.

import { expect, test } from 'vitest'
import { emptyEngine } from '../../../support/inline-engine.js'
import { createRandom, type Random } from '../../../support/random.js'
import { runs } from '../../../support/runs.js'

const day = 86_400_000_000
const start = 1_704_067_200_000_000

/** One value in 3 rows, others in a few, and NULL. */
function insert(random: Random, step: number): string {
  return `insert into t select (${start + random.below(2 * day)} + x * ${random.pick([0, 1, 1_000_000])})::timestamp,
    case when x % 3 = 0 then 7 when x % 50 = 1 then null else x * 31 % 5000 end, (x % 4)::int, 'v' || (x + ${step})
    from long_sequence(${random.pick([1, 400, 6000])})`
}

type Statement = (random: Random, step: number) => string

const statements: readonly Statement[] = [
  insert,
  insert,
  () => 'checkpoint',
  () => 'checkpoint',
  (random) => `delete from t where n = ${random.below(5000)}`,
  (random) => `update t set n = ${random.below(5000)} where n = ${random.below(5000)}`,
  (random) => `update t set n = null where n in (7, 8) and i = ${random.below(4)}`,
]

function conditionsOf(random: Random): string[] {
  const value = (): number => random.below(5000)
  return [
    `n = ${value()}`,
    `${value()} = n`,
    'n = 7',
    `n in (${value()}, ${value()}, 7, null)`,
    `n in (${value()}, ${value()}, ${value()})`,
    'n = null',
    `(n = ${value()} and i = 1) or (i = 2 and n = ${value()})`,
    `n = ${value()} and ts > ${start + random.below(2 * day)}::timestamp`,
    `n in (${value()}, 31) and v <> 'v7'`,
    `i = 1 and n = ${value()}`,
    `i in (1, 2) and n in (${value()}, ${value()}, 7)`,
  ]
}

const shapes = [
  (where: string) => `select ts, i, v, n from t where ${where}`,
  (where: string) => `select ts, i, v, n from t where ${where} order by ts desc limit 5`,
  (where: string) => `select count(), sum(i), max(v) from t where ${where}`,
  (where: string) => `select i, count() c, min(n) m from t where ${where} group by i order by i`,
]

test.each(Array.from({ length: runs(8, 2) }, (_, seed) => [seed, seed % 2 === 0 ? '' : 'dedup upsert keys(ts, i)']))(
  'random statements, seed %d %s',
  async (seed, dedup) => {
    const random = createRandom(Number(seed) + 300)
    const engine = await emptyEngine({ noCompactions: random.chance(0.5), inline: random.chance(0.5) })
    await engine.run(`create table t (ts timestamp, n long, i int, v varchar) timestamp(ts) partition by day ${dedup}`)
    for (let step = 0; step < 15; step++) {
      const sql = random.pick(statements)(random, step)
      await engine.run(sql)
      for (const where of conditionsOf(random)) {
        const query = random.pick(shapes)
        const expected = await engine.rows(query(where.replaceAll(/\bn\b/g, 'n + 0')))
        expect(await engine.rows(query(where)), `step ${step}: ${sql}; ${query(where)}`).toEqual(expected)
      }
    }
  },
)

test('the indexes of many pages are made in the course of a few searches, once', async () => {
  const engine = await emptyEngine({ noCompactions: true })
  await engine.run('create table t (ts timestamp, n long, v double) timestamp(ts) partition by day')
  await engine.run(
    `insert into t select (${start} + x * 1000)::timestamp, x * 7919 % 1000003, x from long_sequence(1000000)`,
  )
  await engine.run('checkpoint')
  const chunks: number[] = []
  for (let search = 1; search <= 20; search++) {
    const row = search * 40_000 + 17
    const before = engine.engine.metrics().cache
    expect(await engine.rows(`select v from t where n = ${(row * 7919) % 1_000_003}`)).toEqual([[row]])
    const after = engine.engine.metrics().cache
    chunks.push(after.hits + after.misses - before.hits - before.misses)
  }
  const usual = chunks[0] ?? 0
  const making = chunks.flatMap((count, search) => (count > usual ? [search] : []))
  expect(making.length).toBeGreaterThan(4)
  expect(making.every((search) => search >= 3 && search < 12)).toBe(true)
  expect(chunks.at(-1)).toBeLessThanOrEqual(usual)
})

test('of several columns, the one with rare values gets an index', async () => {
  const engine = await emptyEngine({ noCompactions: true })
  await engine.run('create table t (ts timestamp, status int, n long, v double) timestamp(ts) partition by day')
  await engine.run(
    `insert into t select (${start} + x * 1000)::timestamp, (x % 3)::int, x * 7919 % 1000003, x
     from long_sequence(300000)`,
  )
  await engine.run('checkpoint')
  const chunks: number[] = []
  for (let search = 1; search <= 20; search++) {
    const before = engine.engine.metrics().cache
    // No row has the number.
    const query = `select v from t where status = 1 and n = ${((300_000 + search * 7) * 7919) % 1_000_003}`
    expect(await engine.rows(query)).toEqual([])
    const after = engine.engine.metrics().cache
    chunks.push(after.hits + after.misses - before.hits - before.misses)
  }
  // One of each of the five pages.
  expect(chunks.at(-1)).toBeLessThan(10)
})
