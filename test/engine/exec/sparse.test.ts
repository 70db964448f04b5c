// Goal: values that are decoded singly from an encoded page, after a selective filter (late materialisation), equal
// those of the whole decoded page. Method: Parquet files with columns of every encoding, with and without NULLs, and
// queries of every kind that decodes single values. Each is compared with a query whose equivalent condition neither
// WebAssembly kernels nor indexes support.

import { expect, test } from 'vitest'
import { emptyEngine, type InlineEngine } from '../../support/inline-engine.js'

const rows = 2000

async function filled(): Promise<InlineEngine> {
  const engine = await emptyEngine({ noCompactions: true })
  await engine.run(
    'create table t (ts timestamp, host symbol, i int, l long, d double, u uuid, v varchar, s short, n int, side symbol, few symbol) timestamp(ts) partition by day',
  )
  for (let part = 0; part < 6; part++) {
    await engine.run(
      `insert into t select (1704067200000000 + (x + ${part * rows}) * 120000000)::timestamp, 'h' || (x % 211), (x % 50)::int, x % 11, (x % 9) / 4.0,
       ('00000000-0000-0000-0000-00000000000' || (x % 10))::uuid, 'text ' || (x % 13), (x % 20)::short,
       case when x % 3 = 0 then null else (x % 5)::int end, 'side ' || (x % 3), case when x % 4 = 0 then null else 'f' || (x % 7) end from long_sequence(${rows})`,
    )
    await engine.run('checkpoint')
  }
  return engine
}

const queries = [
  'select * from t where #',
  'select * from t where # order by ts desc',
  'select * from (t where #) order by l, ts',
  'select sum(i), avg(d), max(l), count(n), min(s) from t where #',
  'select ts, sum(i), max(d), count(n) from t where # sample by 1d',
  'select host, l, sum(i), max(d) from t where # group by host, l order by host, l',
  "select sum(i) from t where # and ts >= '2024-01-02T05:00' and ts < '2024-01-04T07:00'",
  'select v, count() from t where # group by v order by v',
  'select side, few, sum(l), count() from t where # group by side, few order by side, few',
  'select count() from t where #',
  'select min(ts), max(ts), max(ts) from t where #',
  "select max(ts) from t where # and ts < '2024-01-06T07:00'",
  'select * from t where # latest on ts partition by host',
  'select * from t where # latest on ts partition by side',
  'select * from t where # latest on ts partition by host, side',
  'select host, count() from t where # group by host order by host',
]

test('picked values are those of the page', async () => {
  const engine = await filled()
  for (const [condition, plain] of [
    ["host = 'h7'", "host::varchar = 'h7'"],
    ["host in ('h7', 'h9', 'none')", "host::varchar in ('h7', 'h9')"],
    ["host = 'none'", "host::varchar = 'none'"],
    ["(host = 'h7' or host = 'h9' or host in ('h11', 'none'))", "host::varchar in ('h7', 'h9', 'h11')"],
    ["(host = 'h7' or host = 'h7') and i > 3", "host::varchar = 'h7' and i + 0 > 3"],
    ["(host = 'h7' or side = 'side 2')", "(host::varchar = 'h7' or side::varchar = 'side 2')"],
    ["side = 'side 2' and few <> 'f1'", "side::varchar = 'side 2' and few::varchar <> 'f1'"],
    ["host = 'h3' and i > 25", "host::varchar = 'h3' and i + 0 > 25"],
    [
      "few <> 'f1' and host in ('h3', 'h200') and n > 1",
      "few::varchar <> 'f1' and host::varchar in ('h3', 'h200') and n + 0 > 1",
    ],
  ] as const) {
    for (const query of queries) {
      const expected = await engine.rows(query.replace('#', plain))
      expect(await engine.rows(query.replace('#', condition)), query).toEqual(expected)
      if (query.endsWith('desc')) {
        const times = expected.map(([ts]) => ts as bigint)
        expect(times).toEqual(times.toSorted((a, b) => (a < b ? 1 : a > b ? -1 : 0)))
      }
      if (query === queries[0]) expect(expected.length > 20).toBe(!condition.includes("= 'none'"))
    }
  }
})

test('symbols that a scan unpacks are those of the page', async () => {
  const engine = await filled()
  for (const query of [
    'select side#, few#, sum(l), count() from t group by side#, few# order by 1, 2',
    'select host#, sum(i), count() from t group by host# order by 1',
    "select count(), sum(i) from t where host# = 'h7' and side# = 'side 2'",
    "select count(), sum(i) from t where side# <> 'side 2' and few# in ('f1', 'f2', 'none')",
    "select count(), sum(i), max(d) from t where few# = 'f1' or few# = 'f2' or side# <> 'none'",
  ]) {
    const unpacked = await engine.rows(query.replaceAll('#', ''))
    expect(unpacked).toEqual(await engine.rows(query.replaceAll('#', '::varchar')))
  }
})
