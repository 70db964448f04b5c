// Goal: first() and last() without GROUP BY, for which the executor reads a table only from its two ends, return the
// values that a full scan finds: wherever the first matching row is, also next to other aggregates, with late or
// replaced rows, and when no row matches. Method: tables of a million rows and more; the test computes the expected
// values.

import { beforeAll, expect, test } from 'vitest'
import { emptyEngine, type InlineEngine } from '../../../support/inline-engine.js'

const partRows = 100_000
const parts = 12
const base = 1_704_067_200_000_000

interface Row {
  readonly n: number
  readonly d: number | null
  readonly k: string | null
  readonly v: string | null
}

const rowOf = (x: number): Row => ({
  n: x,
  d: x < 10 || x > 1_199_900 ? null : x / 4,
  k: x % 7 === 1 ? null : `k${x % 7}`,
  v: x < 1_150_000 ? null : `text ${x}`,
})

async function empty(options = ''): Promise<InlineEngine> {
  const engine = await emptyEngine({ noCompactions: true })
  await engine.run(
    `create table t (ts timestamp, n int, d double, k symbol, v varchar, b boolean) timestamp(ts) partition by day ${options}`,
  )
  return engine
}

/** Parts come from the newest one on, so that none is in the order of its number. */
async function filled(): Promise<InlineEngine> {
  const engine = await empty()
  // Memory is small here: a part at a time.
  for (let part = parts - 1; part >= 0; part--) {
    const x = `(x + ${part * partRows})`
    await engine.run(
      `insert into t select (${base} + ${x} * 100)::timestamp, ${x}::int, case when ${x} < 10 or ${x} > 1199900 then null else ${x} / 4.0 end, case when ${x} % 7 = 1 then null else 'k' || (${x} % 7) end, case when ${x} < 1150000 then null else 'text ' || ${x} end, ${x} % 2 = 0 from long_sequence(${partRows})`,
    )
    if (part > 1) await engine.run('checkpoint')
  }
  return engine
}

let engine: InlineEngine

beforeAll(async () => {
  engine = await filled()
})

const all = Array.from({ length: parts * partRows }, (_, index) => rowOf(index + 1))

test.each<readonly [string, (row: Row) => boolean]>([
  ['true', () => true],
  ['n % 1000 = 77', ({ n }) => n % 1000 === 77],
  ['n = 1150001', ({ n }) => n === 1_150_001],
  ['n > 5 and n < 9', ({ n }) => n > 5 && n < 9],
  ["k = 'k3' and n > 400000", ({ k, n }) => k === 'k3' && n > 400_000],
  ['n < 0', () => false],
])('rows where %s', async (condition, chosen) => {
  const rows = all.filter(chosen)
  const [first, last] = [rows[0] ?? null, rows.at(-1) ?? null]
  const present = <Key extends keyof Row>(key: Key, list: readonly Row[]): Row[Key] | null =>
    list.find((row) => row[key] !== null)?.[key] ?? null
  const reversed = rows.toReversed()
  const ends = 'first(n), last(n), first(d), last(d), first(k), last(k), first(v), last(v)'
  const ofEnds = [first?.n, last?.n, first?.d, last?.d, first?.k, last?.k, first?.v, last?.v].map(
    (value) => value ?? null,
  )
  const values =
    'first_not_null(d), last_not_null(d), first_not_null(v), last_not_null(k), first(n + 1), last(upper(v))'
  const ofValues = [
    present('d', rows),
    present('d', reversed),
    present('v', rows),
    present('k', reversed),
    first === null ? null : first.n + 1,
    last?.v?.toUpperCase() ?? null,
  ]
  const where = `from t where ${condition}`
  expect(await engine.rows(`select ${ends} ${where}`)).toEqual([ofEnds])
  expect(await engine.rows(`select ${values} ${where}`)).toEqual([ofValues])
  const timeOf = (row: Row | null): bigint | null => (row === null ? null : BigInt(base + row.n * 100))
  const times = [timeOf(first), timeOf(last)]
  expect(await engine.rows(`select first(ts), min(ts), max(ts), last(n) ${where}`)).toEqual([
    [times[0], ...times, last?.n ?? null],
  ])
  const sum = rows.length === 0 ? null : rows.reduce((total, { n }) => total + BigInt(n), 0n)
  expect(await engine.rows(`select count(), last(k), max(ts), sum(n), first(n) ${where}`)).toEqual([
    [BigInt(rows.length), last?.k ?? null, times[1], sum, first?.n ?? null],
  ])
})

test('rows that came late, were replaced or are not there', async () => {
  const other = await empty('dedup upsert keys(ts)')
  const row = (at: number, n: number): string => `(${base + at}L, ${n}, 0.5, 'k', 'v', true)`
  const ends = 'select first(n), last(n), first(b), count() from t'
  expect(await other.rows(ends)).toEqual([[null, null, false, 0n]])
  await other.run(`insert into t values ${row(10, 1)}, ${row(20, 2)}`)
  expect(await other.rows(ends)).toEqual([[1, 2, true, 2n]])
  await other.run(`insert into t values ${row(20, 3)}, ${row(5, 4)}`)
  expect(await other.rows(ends)).toEqual([[4, 3, true, 3n]])
  await other.run('checkpoint')
  await other.run(`insert into t values ${row(5, 6)}`)
  expect(await other.rows(ends)).toEqual([[6, 3, true, 3n]])
  await other.run('delete from t where n = 3')
  expect(await other.rows(ends)).toEqual([[6, 1, true, 2n]])
})
