// Input of the tests of parallel query fragments (coordinator.test.ts): random rows of a table with one column of each
// kind, and statements whose aggregations, sorts and joins several threads can run.

import { dataType } from '../../../../engine/types/column-types.js'
import type { Value } from '../../../../engine/types/value.js'
import type { Random } from '../../../support/random.js'

export const columns = [
  { name: 'ts', type: dataType('TIMESTAMP') },
  { name: 'sym', type: dataType('SYMBOL') },
  { name: 'd', type: dataType('DOUBLE') },
  { name: 'i', type: dataType('INT') },
  { name: 'v', type: dataType('VARCHAR') },
]

/** `late`: microseconds by which rows may be late. */
export function randomRows(random: Random, count: number, late = 2_000_000): Value[][][] {
  const rows = Array.from({ length: count }, (_, index): Value[] => [
    1_710_000_000_000_000n + BigInt(index) * 700_000n + BigInt(random.below(late)),
    random.chance(0.1) ? null : `s${random.below(3 + Math.floor(index / 1000))}`,
    random.chance(0.1) ? null : random.next() * 10 ** random.between(-9, 9),
    random.chance(0.1) ? null : random.between(-1000, 1000),
    random.chance(0.1) ? null : `v${random.below(50)}`,
  ])
  const sizes = Array.from({ length: 12 }, () => Math.floor(count / 12))
  return sizes.map((size, index) => rows.slice(index * size, (index + 1) * size))
}

export const statements = [
  'select sum(d), avg(d), min(d), max(d), count() from t',
  'select sum(d), count() from t where i > 0',
  'select sym, sum(d), avg(i), count() from t',
  "select sym, sum(d) from t where sym in ('s1', 's27') and d > 1",
  "select timestamp_floor('10m', ts) m, sym, sum(d), count() from t",
  'select ts, sum(d), count() from t sample by 17m',
  'select ts, sym, avg(d) from t sample by 30m fill(prev)',
  "select sum(d) from t where ts > '2024-03-09T17:00' and ts < '2024-03-09T19:30:01' and i > (select avg(i) from t)",
  'select v, sum(d), count(), min(i), max(d), avg(i) from t',
  'select i % 50 x, sum(d), count() from t',
  'select sym, i > 0 and v is not null x, sum(i), count(d) from t where i + 1 > d',
  'select d, count(), sum(i), max(ts) from t limit 38000, 39000',
  'select count(), sum(d), min(i) from (select distinct d, i from t)',
  'select distinct v, sym from t order by v, sym',
  "select concat(v, ':', i) x, sum(d), min(i), count(d) from t order by x desc limit 100",
  'select v, sym, i, max(d) m, count() from t order by m, v, sym, i limit 50',
  "select count(), sum(d), min(ts) from t where v like '%3'",
  'select sym, stddev(d), var_pop(i), corr(d, i), vwap(d, i), geomean(abs(d) + 1) from t',
  'select stddev_pop(d), covar_samp(d, i), regr_slope(i, d) from untimed',
  'select v, sym, i, stddev_pop(d), count(), first(d) from calm order by v, sym, i limit 50',
  'select sym, first(d), last(i), first(ts), last(d * 2), max(i) from calm where i > -300',
  'select first(i), last(ts), first(d), sum(i) from calm',
  'select first(i), last(d), i % 7 x from untimed',
  'select sym, bit_and(i), bit_xor(i * 4294967297L), bit_or(i * -1L), bool_and(d > 0), bool_or(i > 7) from t',
  'select bit_and(i), bit_xor(i), bit_xor(i * 4294967297L), bool_and(d > 0), bool_or(i > 7) from untimed',
  'select s, sum(x) from (select sym s, sum(d) x from t) group by s',
  'select ts, sym, v, d from t order by d desc, i limit 20',
  'select t.sym, sum(t.d), count(), max(u.d) from t join untimed u on t.i = u.i and u.d > t.d group by t.sym',
  'select t.v, count(), sum(x.n) from t left join (select i, count() n from untimed group by i) x on t.i = x.i group by t.v',
  'select t.i, count(), min(u.d) from t join untimed u on t.sym = u.sym and t.i = u.i group by t.i',
  'select t.d, count(), max(x.n) from t join (select i, count() n from untimed group by i) x on t.i = x.i group by t.d limit 3000, 3100',
  "select concat(v, '!') x, i from t where sym <> 's1' order by i, v desc limit 300",
]
