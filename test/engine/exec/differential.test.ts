// Goal: the executor returns the same rows as the row-at-a-time interpreter. Method: SQL statements over random tables,
// planned once and run by both, with and without generated WebAssembly kernels. Sums of doubles must agree to 12
// digits.

import { describe, expect, test } from 'vitest'
import type { Catalog } from '../../../engine/sql/catalog.js'
import { nativeDialect } from '../../../engine/sql/dialect.js'
import type { Query } from '../../../engine/sql/plan/plan.js'
import { planStatement } from '../../../engine/sql/statements/plan-statement.js'
import { dataType } from '../../../engine/types/column-types.js'
import type { Value } from '../../../engine/types/value.js'
import { interpretQuery } from '../../support/interpreter/plan.js'
import { createRandom, type Random } from '../../support/random.js'
import { runs } from '../../support/runs.js'
import { type Bench, createBench, makeTable, runQuery, type TestTable } from './exec-support.js'

const columns = [
  { name: 'ts', type: dataType('TIMESTAMP') },
  { name: 'sym', type: dataType('SYMBOL') },
  { name: 'host', type: dataType('SYMBOL') },
  { name: 'd', type: dataType('DOUBLE') },
  { name: 'f', type: dataType('FLOAT') },
  { name: 'l', type: dataType('LONG') },
  { name: 'i', type: dataType('INT') },
  { name: 's', type: dataType('SHORT') },
  { name: 'by', type: dataType('BYTE') },
  { name: 'b', type: dataType('BOOLEAN') },
  { name: 'c', type: dataType('CHAR') },
  { name: 'v', type: dataType('VARCHAR') },
  { name: 'dt', type: dataType('DATE') },
  { name: 'u', type: dataType('UUID') },
  { name: 'ip', type: dataType('IPv4') },
  { name: 'ns', type: dataType('TIMESTAMP_NS') },
  { name: 'g', type: dataType('GEOHASH', 20) },
  { name: 'dec', type: dataType('DECIMAL', 10, 2) },
]

const start = 1_710_000_000_000_000n

function randomRow(random: Random, index: number, jitter: number): Value[] {
  const or = <T extends Value>(value: T): T | null => (random.chance(0.15) ? null : value)
  const doubles = [0, -0, 1.5, -2.25, 1e300, -1e-300, random.next() * 1000, Math.floor(random.next() * 20)]
  return [
    start + BigInt(index) * 7_000_000n + BigInt(random.below(jitter + 1)),
    or(`s${random.below(6)}`),
    or(`host ${random.below(3)}`),
    or(random.pick(doubles)),
    or(Math.fround(random.pick(doubles.slice(0, 4)))),
    or(BigInt(random.between(-50, 50)) * (random.chance(0.1) ? 1_000_000_000_000n : 1n)),
    or(random.between(-100, 100)),
    random.between(-30, 30),
    random.between(-5, 5),
    random.chance(0.5),
    random.pick(['', 'a', 'b', 'Z']),
    or(random.pick(['', 'one', 'two', 'thrée', 'a longer text that does not fit into sixteen bytes'])),
    or(BigInt(random.between(-5, 5)) * 86_400_000n),
    or(BigInt(random.below(5))),
    or(random.between(1, 7) * 0x20000000),
    or(BigInt(random.between(0, 9)) * 1_000_000_007n),
    or(BigInt(random.below(1 << 20))),
    or(BigInt(random.between(-10_000, 10_000))),
  ]
}

const members = (count: number, member: (index: number) => string | number): string =>
  Array.from({ length: count }, (_, index) => member(index)).join()

/** Lists of constants that are tried one by one, looked up, and one piece of the plan. */
const lists = [10, 20, 300].flatMap((count) => [
  `select ts, l from t where l in (${members(count, (index) => index * 2 - 40)}, 7000000000000)`,
  `select ts, i from t where i not in (${members(count, (index) => index * 2 - 50)})`,
  `select ts, i from t where i in (${members(count, (index) => index * 1_000_003)}, null, 5, -7)`,
  `select ts, d from t where d in (0.0, 1.5, ${members(count, (index) => `${index}.25`)})`,
  `select ts, f from t where f in (-2.25::float, null, ${members(count, (index) => `${index}.5::float`)})`,
  `select ts, v from t where v in ('one', 'thrée', ${members(count, (index) => `'v${index}'`)}) and l > 0`,
  `select ts, v from t where v not in ('', null, ${members(count, (index) => `'v${index}'`)})`,
  `select count() from t where concat(v, i) in (${members(count, (index) => `'one${index - 5}'`)})`,
  `select ts, sym from t where sym in ('s1', null, ${members(count, (index) => `'s${index + 3}'`)})`,
  `select ts, u from t where u in (${members(count, (index) => `'00000000-0000-0000-0000-0000000${10000 + index * 7}'`)}, '00000000-0000-0000-0000-000000000003')`,
  `select ts, ip from t where ip in ('32.0.0.0', '128.0.0.0', ${members(count, (index) => `'1.2.3.${index % 256}'`)})`,
  `select ts, s from t where s in (${members(count, (index) => index)}) or by in (${members(count, (index) => index * 2)})`,
  `select ts, dt from t where dt in (${members(count, (index) => `'1970-01-${10 + (index % 20)}'`)}, '1970-01-03')`,
  `select ts, dec from t where dec in (${members(count, (index) => `${index}.37m`)}, 5.01m)`,
  `select case when l in (${members(count, (index) => index * 3)}) then 'a' else v end x, count() from t`,
])

const statements = [
  ...lists,
  'select * from t',
  'select d + 1, d * f, i - s, l * 2, -i, i / 3, i % 7, l / 4 from t',
  "select ts, d from t where sym = 's1' and d > 1",
  "select * from t where sym in ('s1', 's2', 'nope') or host != 'host 1'",
  "select v, i from t where v in ('one', 'x', '') or v in ('thrée')",
  "select v in ('one', null, 'x'), v not in ('one'), u in ('11111111-1111-1111-1111-111111111111'), v in ('x', 'y') from t",
  "select count() from t where concat(v, i) in ('one5', '7') or upper(v) not in ('ONE', 'X')",
  'select * from t where d > 0 and i < 50 and l >= -20',
  'select * from t where not (d <= 1.5) and i is not null',
  'select * from t where l between -10 and 10 or b',
  "select * from t where v = 'one' or v like 't%' or v is null",
  "select * from t where ts in '2024-03-09T16'",
  "select * from t where ts > '2024-03-09T16:30' and ts <= '2024-03-09T17:10:00.5'",
  'select count(), count(d), sum(d), avg(d), min(d), max(d) from t',
  'select count(i), sum(i), avg(i), min(i), max(i), sum(l), avg(l), min(l), max(l), sum(s), min(ts), max(ts), sum(f) from t',
  'select sum(d), count(), max(i) from t where sym = $1 and d > 0'.replace('$1', "'s2'"),
  'select sum(d * 2 + i), avg(d - f), min(i + s) from t where i > 0',
  'select sym, count(), sum(d), avg(i), min(l), max(d), first(i), last(v) from t',
  'select sym, host, count(), sum(i), max(ts) from t where d > 0',
  'select host, b, c, count() from t',
  'select i, count(), sum(d) from t',
  'select v, sum(l), min(f) from t',
  'select u, ip, count() from t',
  'select l, d, count() from t',
  'select g, dt, ns, count() from t',
  'select dec, count(), sum(dec) from t',
  'select distinct sym, b from t',
  'select count_distinct(sym), count_distinct(i), stddev(d), first(sym), last(host) from t',
  "select timestamp_floor('10m', ts) m, sym, sum(i), count() from t",
  'select ts, count(), sum(i), avg(d) from t sample by 10m',
  'select ts, sym, count(), min(i), last(d) from t sample by 7m',
  'select ts, sum(i), avg(d) from t sample by 1m fill(null)',
  'select ts, sym, sum(i), first(l) from t sample by 5m fill(prev)',
  'select ts, sum(d), min(i) from t sample by 1m fill(linear)',
  'select ts, sum(i) from t sample by 90s fill(42)',
  "select ts, count() from t sample by 1h align to calendar time zone 'Europe/Berlin'",
  "select ts, count() from t sample by 1d align to calendar with offset '05:30'",
  'select ts, count() from t sample by 13m align to first observation',
  "select ts, count() from t sample by 30m from '2024-03-09T15' to '2024-03-10' fill(null)",
  'select * from t latest on ts partition by sym',
  'select * from t latest on ts partition by sym, host',
  'select * from t where d > 5 latest on ts partition by host',
  'select * from t order by d, ts limit 20',
  'select * from t order by sym desc, i, v desc, ts',
  'select * from t order by ts desc limit 10',
  'select i, l from t order by l desc, i limit 5, 15',
  'select * from t order by u, ip desc, g, dec, c, f',
  'select * from t limit -7',
  'select * from t limit 10, 20',
  'select * from t limit -20, -5',
  'select sym, n from (select sym, count() n from t) where n > 5 order by n desc, sym',
  'select i from t union select s from t',
  'select sym from t union all select host from t',
  'select i from t except select s from t',
  'select i from t intersect select s from t',
  'select case when d > 10 then sym when i > 0 then host else v end, coalesce(i, s), cast(d as int), cast(i as double) from t',
  "select upper(v), length(sym), concat(sym, '-', i), v || 'x' from t",
  'select * from t where i in (1, 2, 3, 50) or l in (5, 6)',
  'select x, x * x from long_sequence(20000) where x % 3 = 0',
  'select sum(x), count(), min(x) from long_sequence(100000)',
  'select hour(ts), count(), avg(d) from t',
  'select ts, i from t limit -7',
  'select count_distinct(i), 1 from t',
  'select count_distinct(v) from t where d > 0',
  'select sym, count_distinct(l) c from t',
  'select host, b, count_distinct(sym) from t order by host, b',
  'select * from t limit -100000',
  'select ts, v, i + 1 from t where i > 0 limit -9, -3',
  'select year(ts), month(ts), day(ts), minute(ts), second(ts), day_of_week(ts), week_of_year(ts), hour(ns), day(ns) from t',
  "select extract(doy from ts), date_part('quarter', ts), days_in_month(ts), hour(null::timestamp) from t",
  "select v like '%o%', v like 't%', v like '%e', v like 'one', v like '%', v like '', v not like 't%e', v like 'o_e' from t",
  "select v ilike '%O%', v ilike 'T%E', v ilike 'ONE' from t",
  "select date_trunc('hour', ts) h, host, avg(d), avg(i), max(f) from t order by h, host",
  'select * from t where i = (select max(i) from t)',
  'select count() from t where sym in (select host from t)',
  'select sum(i) s, sym from t where l > 5 group by sym order by s limit 3',
  'select min(v), max(v), min(c), max(sym), max(ip), max(dt), min(ns) from t',
  'select host, min(sym), max(sym), max(host), count() from t where i > 0',
  'select bit_and(i), bit_or(i), bit_xor(i), bit_and(l), bit_or(l), bit_xor(l), bit_xor(s), bit_or(by), bool_and(b) from t',
  'select host, bit_and(i), bit_xor(i), bit_and(l), bit_or(l), bit_xor(l * 1000000007), bit_and(s), bit_xor(by) from t',
  'select sym, bool_and(b), bool_or(b), bool_and(d > 0), bool_or(i > 5) from t',
  'select bool_and(b), bool_or(b), bit_xor(l), bit_and(i), bit_or(s) from t where i > 1000000',
  'select min(x), max(x) from (select sym x, i from t union all select host x, i from t)',
  'select b, min(x), max(x) from (select sym x, b from t union all select host x, b from t)',
  'select min(v::symbol), max(cast(i as symbol)), max(null::symbol) from t',
  'select host, min(v::symbol), max(cast(i as symbol)), max(null::symbol) from t',
  'select max(dec), min(dec), avg(dec) from t',
  'select round(d, 1), round(d), round_up(d, 2), round_down(f, 1), round_half_even(d, 0), round(d, s), round(i, -1) from t',
  'select floor(d), ceil(f), floor(i), ceiling(d), floor(l), ceil(f + i), abs(i), abs(d - f), sign(s), sign(f) from t',
  'select round(d), trunc(d), round(d * 0.5), round(d + 0.5), trunc(-d), round(f) from t',
  "select concat(v, '-', host, 1, true, null, 2.5), host || '-' || sym, upper(host), length(host), host::varchar, left(sym, 2) || i from t",
  "select host || '-' || sym k, count(), max(upper(host)), sum(length(sym)) from t",
  'select x, count() from (select host x from t union all select sym from t) order by x',
  'select host x from t union select sym from t order by x',
  'select count() from (select * from t union all select * from t)',
  'select i, v from (select * from t where i > 3 union all select * from t where s < 3) where l > 5',
  'select ts, sm from (select *, row_number() over (partition by host order by ts) r, sum(i) over () sm from t)',
  'select count(), sum(i) from (select *, lag(d) over (partition by host order by ts) p from t)',
  'select sum(round(d)), max(trunc(f)), sum(round(i / 4.0)) from t where round(d) > 1 or trunc(f) = 0',
  'select sqrt(d), ln(abs(d) + 1), log(f), sin(d / 3) + cos(i), atan2(d, f), exp(i / 50.0), power(f, 2) from t',
  'select power(d, 0), power(null, 0), radians(i) - degrees(f), cbrt(l), tan(s), cot(by) from t',
  'select sum(round(f, 1) + i), sum(case when i > 0 then round(f, 1) else ln(abs(f)) end), avg(floor(f / 3)) from t',
  'select floor(f / 2)::int k, count(), sum(round(f)) from t where round(f, 1) >= -2.2',
  'select case when v is null then 0 else round(f, 0) end, f + round(f, 1) * length(v), not (round(f) = 1 or b) from t',
  'select i from t where not (i in (select s from t)) and sqrt(abs(d)) > 1',
  'select nullif(i, s), nullif(d, 0), nullif(l, i), nullif(v, host), coalesce(nullif(f, 1.5), -1), sum(nullif(s, 5)) from t',
  "select dateadd('h', 2, ts), dateadd('d', i, ts), dateadd('s', -s, ns), dateadd('u', i, ns), dateadd('M', s, ts) from t",
  "select dateadd('w', 1, dateadd('m', s, ts)), dateadd('n', 5, ns), dateadd('n', 5000, ts), dateadd('y', 1, ns) from t",
  "select datediff('h', ts, '2024-03-10'), datediff('s', ts, ns), datediff('u', ts, dateadd('d', i, ts)) from t",
  "select to_str(ts, 'yyyy-MM-dd HH'), to_str(ns, 'E w YYYY'), to_str(ts, 'mm:ss'), to_str(ts, 'SSS'), to_str(ns, '''x''') from t",
  "select to_str(ts, 'yyyy-MM-ddTHH:mm') m, count() from t",
  'select host, min(v), max(concat(v, i)), min(lower(v)), max(cast(i as varchar)) from t',
  'select min(v), max(concat(v, i)), min(null::varchar) from t where i > 0',
  'select v, i from t order by v desc, i limit 7',
  'select v, ts from t order by v desc nulls last, ts limit 200',
  'select concat(v, i) x, ts from t order by x, ts limit 30',
  'select i::varchar, l::string, s::varchar, by::string, ts::varchar, ns::string, u::varchar, ip::string from t',
  'select min((l * 1000000007)::varchar), max(concat(i::varchar, ts::varchar)) from t',
  'select approx_count_distinct(i), host from t',
  'select approx_count_distinct(l, 8) from t where d > 0',
  "select sum(datediff('m', ts, dateadd('h', i, ts))), max(datediff('n', ns, null)), min(datediff('M', ts, ns)) from t",
]

function catalogOf(table: TestTable): Catalog {
  return {
    table: (name) => (name === 't' ? table.snapshot.version : undefined),
    tables: () => [table.snapshot.version],
    statistics: () => {
      throw new Error('no figures here')
    },
    relation: () => undefined,
    view: () => undefined,
    views: () => [],
    activity: () => [],
    parameters: () => [],
    users: () => [],
  }
}

function planOf(sql: string, table: TestTable): Query {
  const planned = planStatement(sql, {
    catalog: catalogOf(table),
    parameters: [],
    dialect: nativeDialect,
    nowMicros: 1e15,
    user: 'admin',
  })
  if (planned.kind !== 'query') throw new Error('not a query')
  return planned.query
}

/** Doubles by 12 digits; everything else as it is. */
function rounded(rows: readonly (readonly Value[])[]): unknown[][] {
  return rows.map((row) => row.map((value) => (typeof value === 'number' ? Number(value.toPrecision(12)) + 0 : value)))
}

function compare(bench: Bench, table: TestTable, sql: string, jit: boolean): void {
  const query = planOf(sql, table)
  const expected = interpretQuery(query, {
    tables: [{ columnIds: columns.map((_, id) => id), timestampId: 0, rows: table.rows }],
  })
  const { rows } = runQuery(
    bench,
    query,
    query.tables.map(() => table),
    { jit },
  )
  // Rows of one bucket come in any order.
  const ordered = /order by|latest|select \* from t( where|$)|limit/.test(sql) || /^select ts, [^y]*sample by/.test(sql)
  const shown = (all: readonly (readonly Value[])[]): string[] => {
    const lines = rounded(all).map((row) => row.map(String).join(' | '))
    return ordered ? lines : lines.sort()
  }
  expect(shown(rows)).toEqual(shown(expected))
}

describe('the executor and the interpreter agree', () => {
  for (const seed of [11, 12, 13].slice(0, runs(3, 1))) {
    const random = createRandom(seed)
    const jitter = random.pick([0, 20_000_000, 900_000_000])
    const sizes = [random.between(1, 1500), random.between(1, 700)]
    const bench = createBench()
    let index = 0
    const memtables = sizes.map((size) => Array.from({ length: size }, () => randomRow(random, index++, jitter)))
    const table = makeTable(bench, columns, memtables, 0)
    for (const sql of statements) {
      test(`seed ${seed}: ${sql}`, () => {
        compare(bench, table, sql, true)
        compare(bench, table, sql, false)
      })
    }
  }
})
