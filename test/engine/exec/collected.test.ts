// Goal: percentiles and time-weighted averages, which need all values of a group at once, are exact for groups, time
// buckets and whole tables, and ignore NULL. Method: inputs in many orders; the test computes the results from sorted
// numbers.

import { expect, test } from 'vitest'
import { collectedNumbersMax } from '../../../engine/base/limits.js'
import { NumberCollector } from '../../../engine/exec/aggregate/collecting-accumulators.js'
import type { ExecContext } from '../../../engine/exec/batch/context.js'
import { continuousQuantile, discreteQuantile } from '../../../engine/sql/functions/aggregates/aggregates-statistics.js'
import { dataType } from '../../../engine/types/column-types.js'
import { emptyEngine, type InlineEngine } from '../../support/inline-engine.js'
import { createRandom, type Random } from '../../support/random.js'

const shares = [0, 0.001, 0.25, 0.5, 0.75, 0.9, 0.999, 1]

function discrete(sorted: readonly number[], share: number): number | null {
  return sorted[Math.min(sorted.length - 1, Math.max(0, Math.ceil(share * sorted.length) - 1))] ?? null
}

function continuous(sorted: readonly number[], share: number): number | null {
  if (sorted.length === 0) return null
  const place = share * (sorted.length - 1)
  const [below, above] = [sorted[Math.floor(place)] as number, sorted[Math.ceil(place)] as number]
  return above === below ? below : below + (above - below) * (place - Math.floor(place))
}

const orders: Readonly<Record<string, (at: number, count: number, random: Random) => number>> = {
  random: (_at, _count, random) => random.next() * 1e6,
  few: (_at, _count, random) => random.below(3),
  equal: () => 7,
  rising: (at) => at,
  falling: (_at, count) => count - _at,
  'rising and falling': (at, count) => Math.min(at, count - at),
  halves: (at, count) => (at % 2 === 0 ? at : count + at),
  infinite: (at) => (at % 3 === 0 ? Number.POSITIVE_INFINITY : at % 3 === 1 ? Number.NEGATIVE_INFINITY : at),
}

test.each(Object.keys(orders))('quantiles of %s numbers are those of a sort', (order) => {
  const random = createRandom(11)
  for (const count of [0, 1, 2, 3, 31, 32, 33, 34, 100, 1_001, 20_000]) {
    const numbers = Array.from({ length: count }, (_, at) => orders[order]?.(at, count, random) ?? 0)
    const sorted = [...numbers].sort((a, b) => (a < b ? -1 : a > b ? 1 : 0))
    for (const share of shares) {
      expect(discreteQuantile(Float64Array.from(numbers), share)).toBe(discrete(sorted, share))
      expect(continuousQuantile(Float64Array.from(numbers), share)).toBe(continuous(sorted, share))
    }
  }
})

test('quantiles between numbers whose difference is infinite are finite', () => {
  expect(continuousQuantile(Float64Array.of(1.7e308, -1.7e308), 0.5)).toBe(0)
  expect(continuousQuantile(Float64Array.of(1.6e308, -1.6e308), 0.75)).toBeCloseTo(0.8e308, -300)
})

test('no aggregate keeps more numbers than its limit', () => {
  const collector = new NumberCollector({} as ExecContext, 1, (numbers) => numbers.length)
  const column = { type: dataType('DOUBLE'), address: 0, dictionary: 0 }
  expect(() => collector.add([column], collectedNumbersMax + 1, 0)).toThrow(/at most 268435456 numbers/)
})

const rows = 30_000
const base = 1_704_067_200_000_000
const key = (x: number): string => `k${(x * 7) % 11}`
const number = (x: number): number | null => (x % 13 === 0 ? null : (x * 7_919) % 10_007)

async function filled(): Promise<InlineEngine> {
  const engine = await emptyEngine({ noCompactions: true })
  await engine.run(
    'create table t (ts timestamp, k symbol, i int, l long, f float, d double) timestamp(ts) partition by day',
  )
  const value = 'case when x % 13 = 0 then null else (x * 7919) % 10007 end'
  await engine.run(
    `insert into t select (${base} + x * 1000000)::timestamp, 'k' || ((x * 7) % 11), (${value})::int, (${value})::long * 4294967296, (${value})::float, (${value})::double / 4 from long_sequence(${rows})`,
  )
  return engine
}

const columns: readonly (readonly [string, number])[] = [
  ['i', 1],
  ['l', 4_294_967_296],
  ['f', 1],
  ['d', 0.25],
]

function ofRows(chosen: (x: number) => boolean, scale: number): number[] {
  const numbers: number[] = []
  for (let x = 1; x <= rows; x++) {
    const value = number(x)
    if (chosen(x) && value !== null) numbers.push(value * scale)
  }
  return numbers.sort((a, b) => a - b)
}

test.each(columns)('of column %s', async (column, scale) => {
  const engine = await filled()
  const list = `percentile_disc(${column}, 0.25), percentile_cont(${column}, 0.9), median(${column}), approx_percentile(${column}, 0.99, 3)`
  const over = (sorted: readonly number[]): unknown[] => [
    discrete(sorted, 0.25),
    continuous(sorted, 0.9),
    continuous(sorted, 0.5),
    discrete(sorted, 0.99),
  ]
  const all = over(ofRows(() => true, scale))
  expect(await engine.rows(`select ${list} from t`)).toEqual([all])
  expect(await engine.rows(`select ${list} from t where i < 0`)).toEqual([over([])])

  const keys = [...new Set(Array.from({ length: 11 }, (_, at) => key(at)))].sort()
  const byKey = keys.map((k) => [k, ...over(ofRows((x) => key(x) === k, scale))])
  expect(await engine.rows(`select k, ${list} from t order by k`)).toEqual(byKey)

  // Buckets of an hour begin anew.
  const buckets = await engine.rows(`select ${list} from t sample by 1h`)
  const hours = Math.floor(rows / 3600) + 1
  expect(buckets).toEqual(
    Array.from({ length: hours }, (_, hour) => over(ofRows((x) => Math.floor(x / 3600) === hour, scale))),
  )
  // A group that has nothing but NULL.
  expect(await engine.rows(`select i is null as n, median(${column}) from t order by n`)).toEqual([
    [
      false,
      continuous(
        ofRows(() => true, scale),
        0.5,
      ),
    ],
    [true, null],
  ])
})

/** Of rows x, whose times are seconds. */
function heldMean(list: readonly number[]): number | null {
  const points = list.filter((x) => number(x) !== null)
  const price = (index: number): number => (number(points[index] as number) as number) / 4
  if (points.length < 2) return points.length === 0 ? null : price(0)
  const from = points[0] as number
  const span = (points[points.length - 1] as number) - from
  let total = 0
  for (let index = 0; index + 1 < points.length; index++)
    total += price(index) * ((points[index + 1] as number) - (points[index] as number)) * 1e6
  return total / (span * 1e6)
}

test('means by time', async () => {
  const engine = await filled()
  const all = Array.from({ length: rows }, (_, index) => index + 1)
  expect(await engine.rows('select twap(d, ts) from t')).toEqual([[heldMean(all)]])
  expect(await engine.rows('select twap(d, ts) from t where i < 0')).toEqual([[null]])
  expect(await engine.rows('select twap(d, ts) from (select d, ts from t order by l)')).toEqual([[heldMean(all)]])
  expect(await engine.rows('select twap(d, ts::timestamp_ns) from t')).toEqual([[heldMean(all)]])
  const keys = [...new Set(all.map(key))].sort()
  const byKey = keys.map((k) => [k, heldMean(all.filter((x) => key(x) === k))])
  expect(await engine.rows('select k, twap(d, ts) from t order by k')).toEqual(byKey)
  const hours = Array.from({ length: Math.floor(rows / 3600) + 1 }, (_, hour) => [
    heldMean(all.filter((x) => Math.floor(x / 3600) === hour)),
  ])
  expect(await engine.rows('select twap(d, ts) from t sample by 1h')).toEqual(hours)
  // At one moment only, the mean of the prices.
  await engine.run(`insert into t (ts, d) values (${base + 1e12}L, 1.0), (${base + 1e12}L, 2.0)`)
  expect(await engine.rows(`select twap(d, ts) from t where ts >= ${base + 1e12}L`)).toEqual([[1.5]])
})
