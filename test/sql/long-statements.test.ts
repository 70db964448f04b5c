// Goal: statements as large as tools generate are executed correctly: long chains of OR and AND, long lists, CASE with
// many branches, wide results; statements beyond a limit are rejected with its name. Method: each statement runs with
// and without generated kernels (WebAssembly code compiled for the query), rejected ones by default only with; the
// expected results are computed arithmetically.

import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { runs } from '../support/runs.js'
import { type EngineClient, engineClient } from './clients.js'

const terms = 1500
const numbers = Array.from({ length: terms }, (_, index) => index)

const each = (count: number, part: (index: number) => string, between: string): string =>
  Array.from({ length: count }, (_, index) => part(index)).join(between)

/** Applies `part` to its own result, `count` times. */
const nested = (count: number, part: (inner: string) => string, inner = 'x'): string =>
  count === 0 ? inner : nested(count - 1, part, part(inner))

/** Rows have x = 1 to 300, v = 'v<x>', and s = one of ten symbols. */
const cases: readonly [string, string, string][] = [
  ['equalities', `select count() from t where ${numbers.map((n) => `x = ${n * 2}`).join(' or ')}`, '[150]'],
  ['texts', `select count() from t where ${numbers.map((n) => `v = 'v${n * 2}'`).join(' or ')}`, '[150]'],
  ['symbols', `select count() from t where ${numbers.map((n) => `s = 's${n}'`).join(' or ')}`, '[300]'],
  [
    'equalities and others',
    `select count() from t where x > 200 or ${numbers.map((n) => `x = ${n * 2}`).join(' or ')}`,
    '[200]',
  ],
  [
    'conditions of two columns',
    `select count() from t where ${numbers.map((n) => `(x = ${n * 2} and y > ${n})`).join(' or ')}`,
    '[150]',
  ],
  ['inequalities', `select count() from t where ${numbers.map((n) => `x <> ${n * 2}`).join(' and ')}`, '[150]'],
  [
    'a chain as a value',
    `select sum(case when ${numbers.map((n) => `x = ${n * 2}`).join(' or ')} then 1 else 0 end) from t`,
    '[150]',
  ],
  [
    'missing values',
    `select count() from t where ${numbers.map((n) => `x = ${n * 2}`).join(' or ')} or m = null`,
    '[300]',
  ],
  [
    'CASE of numbers',
    `select sum(case x ${numbers.map((n) => `when ${n * 2} then ${n}`).join(' ')} else -1 end) from t`,
    '[11175]',
  ],
  [
    'CASE without ELSE',
    `select count(case ${numbers.map((n) => `when x = ${n * 2} then 'v${n}'`).join(' ')} end) from t`,
    '[150]',
  ],
  [
    'the first branch counts',
    `select sum(case x ${numbers.map((n) => `when ${n % 100} then ${n}`).join(' ')} end) from t`,
    '[4950]',
  ],
  [
    'LATERAL behind LATERAL, each of which makes its rows of one before it',
    `select count(), sum(l39.z) from t ${each(40, (n) => `cross join lateral (select ${n === 0 ? 't.x' : `l${n - 1}.z`} + 1 z) l${n}`, ' ')}`,
    '[300,57150]',
  ],
  [
    'values of sub-queries',
    `select ${each(1000, (n) => `(select max(x) + ${n} from t)`, ',')}`,
    JSON.stringify(Array.from({ length: 1000 }, (_, n) => 300 + n)),
  ],
  ['a sum of aggregates', `select ${each(500, () => 'sum(x)', '+')} from t`, '[22575000]'],
  [
    'columns of USING',
    `select count() from (select ${each(1500, (n) => `x + ${n} c${n}`, ',')} from t) a join (select ${each(1500, (n) => `x + ${n} c${n}`, ',')} from t) b using (${each(1500, (n) => `c${n}`, ',')})`,
    '[300]',
  ],
  ['an array', `select dim_length(array[${each(3000, (n) => `[${n}, 1.5]`, ',')}], 1)`, '[3000]'],
  // A rewrite that repeats an operand would grow exponentially with the nesting.
  ['nested COALESCE', `select sum(${nested(60, (x) => `coalesce(${x}, 1)`)}) from t`, '[45150]'],
  ['nested NULLIF', `select sum(${nested(60, (x) => `nullif(${x}, 7)`)}) from t`, '[45143]'],
  ['nested BETWEEN', `select sum(${nested(60, (x) => `(${x} between 1 and 3)::int`)}) from t`, '[3]'],
  ['nested IN', `select count() from t where ${nested(60, (x) => `(${x} in (1, 2))::int`)} = 1`, '[2]'],
  [
    'nested CASE',
    `select sum(${nested(5, (x) => `case ${x} when 1 then 2 when 3 then 4 else 5 end`)}) from t`,
    '[1500]',
  ],
  [
    'variables within each other',
    `declare ${each(450, (n) => `@v${n} := ${n === 0 ? '1' : `abs(@v${n - 1} - 3)`}`, ', ')} select @v449 + 0`,
    '[2]',
  ],
  ['IN', `select count() from t where x in (${numbers.map((n) => n * 2).join()})`, '[150]'],
  ['ANY of a text', `select count() from t where x = any('{${numbers.map((n) => n * 2).join()}}')`, '[150]'],
  [
    'joins of 50 tables',
    `select count() from ${each(50, (n) => `t t${n}${n === 0 ? '' : ` on t0.x = t${n}.x`}`, ' join ')}`,
    '[300]',
  ],
  [
    'all columns of 15 tables',
    `select t14.v, t1.x from ${each(15, (n) => `t t${n}${n === 0 ? '' : ` on t${n - 1}.x = t${n}.x`}`, ' left join ')} where t0.x = 7`,
    '["v7",7]',
  ],
  [
    'UNION ALL of 3,000 queries',
    `select sum(x) from (${each(3000, (n) => `select ${n} x`, ' union all ')})`,
    '[4498500]',
  ],
  ['UNION of 3,000 queries', `select count() from (${each(3000, (n) => `select ${n % 7} x`, ' union ')})`, '[7]'],
  [
    'UNION of many types',
    `select sum(length(x::string)) from (${each(500, (n) => `select ${n === 400 ? "'abc'" : n === 200 ? '1.5' : '10'} x`, ' union all ')})`,
    '[1800]',
  ],
  [
    'WITH of 3,000 queries',
    `with ${each(3000, (n) => `c${n} as (select ${n} x)`, ',')} select a.x + b.x from c2999 a cross join c1 b`,
    '[3000]',
  ],
  [
    'steps without end',
    'select sum(x) from (select generate_series x from generate_series(0.0, 1e308, 0.5) limit 3)',
    '[1.5]',
  ],
  [
    'ALL of an array',
    `select count() from t where y <> all(array[${numbers.map((n) => `${n * 2}.0`).join()}])`,
    '[150]',
  ],
]

describe.each([true, false])('long statements, jit %s', (jit) => {
  let client: EngineClient
  beforeAll(async () => {
    client = await engineClient(jit)
    await client.run(
      "create table t as (select x, x * 1.0 y, ('v' || x) v, ('s' || x % 10)::symbol s, null::int m from long_sequence(300))",
    )
  })
  afterAll(async () => client?.close())

  it.each(cases)('%s', async (_name, sql, rows) => {
    expect(await client.rows(sql)).toBe(rows)
  })

  // They are refused before any kernel is generated.
  it.runIf(jit || runs(1, 0) > 0).each([
    ['joins', `select 1 from ${each(600, (n) => `t t${n}`, ',')}`, /too many joins \[max=500\]/],
    ['unions', each(4100, () => 'select 1', ' union all '), /too many set operations \[max=4000\]/],
    ['WITH', `with ${each(5001, (n) => `c${n} as (select 1)`, ',')} select 1`, /too many queries in WITH \[max=5000\]/],
    ['ORDER BY', `select x from t order by ${each(5001, () => 'x', ',')}`, /list is too long \[max=5000\]/],
    [
      'PARTITION BY',
      `select sum(x) over (partition by ${each(5001, () => 'x', ',')}) from t`,
      /list is too long \[max=5000\]/,
    ],
    ['arguments', `select greatest(${each(5001, () => 'x', ',')}) from t`, /list is too long \[max=5000\]/],
    [
      'computed members of IN',
      `select count() from t where x in (${each(20_001, (n) => `x + ${n}`, ',')})`,
      /too many conditions \[max=20000\]/,
    ],
    [
      'aggregates of HAVING',
      `select s from t group by s having ${each(5001, (n) => `sum(x + ${n}) > 0`, ' and ')}`,
      /too many aggregates \[max=5000\]/,
    ],
    [
      'orders of aggregates',
      `select ${each(257, (n) => `array_agg(x order by x + ${n}) a${n}`, ',')} from t`,
      /too many orders of aggregates \[max=256\]/,
    ],
    [
      'rows of IN',
      `select count() from t where (x, y) in (${each(10_001, (n) => `(${n}, ${n})`, ',')})`,
      /too many conditions \[max=20000\]/,
    ],
    [
      'sub-queries of rows',
      `select x from t where ${each(201, (n) => `exists (select 1 from t b where b.x = t.x + ${n})`, ' and ')}`,
      /too many correlated sub-queries \[max=200\]/,
    ],
    [
      'LATERAL, each of which reads all before it again',
      `select count() from t ${each(40, (n) => `cross join lateral (select t.x + ${n} z limit 1) l${n}`, ' ')}`,
      /too many sources, including those of WITH and views \[max=5000\]/,
    ],
    [
      'actions of ALTER TABLE',
      `alter table t ${each(5001, (n) => `add column c${n} int`, ', ')}`,
      /list is too long \[max=5000\]/,
    ],
    ['arithmetic', `select ${each(502, () => 'x', '+')} from t`, /expression is too long \[operators=500\]/],
    ['a regular expression', `select count() from t where v ~ '${'x'.repeat(20_001)}'`, /pattern is too long/],
    ['a LIKE pattern', `select count() from t where v like '${'_'.repeat(20_001)}'`, /pattern is too long/],
    [
      'texts that grow',
      `select ${'replace('.repeat(20)}'aaaa'${",'a','aaaa')".repeat(20)}`,
      /replaced text is too long/,
    ],
    [
      'groups that grow',
      "select regexp_replace(repeat('a', 1000000), '^(a+)$', '$1$1$1$1$1$1$1$1$1')",
      /replaced text is too long/,
    ],
    [
      'subjects of CASE',
      `select ${nested(20, (x) => `case ${x} when 1 then 2 when 3 then 4 else 5 end`)} from t`,
      /the operand of CASE is too large \[parts=\d+, branches=2, max=4000\]: compute it in a sub-query/,
    ],
    [
      'variables within each other',
      `declare ${each(1100, (n) => `@v${n} := ${n === 0 ? '1' : `abs(@v${n - 1})`}`, ', ')} select @v1099`,
      /variables are nested too deeply \[max=1000\]/,
    ],
    [
      'collected texts',
      "select string_agg(repeat('a', 1000000), ',') from long_sequence(100000)",
      /aggregated text is too long/,
    ],
    ['lists', "select array_agg(repeat('a', 1000000)) from long_sequence(100000)", /aggregated text is too long/],
    ['arrays', 'select array_agg(x) from long_sequence(17000000)', /array is too long \[max=16777216\]/],
    ['joined texts', `select ${each(3, () => "repeat('a', 3000000)", '||')}`, /joined text is too long/],
  ])('%s beyond a limit: its name and nothing else', async (_name, sql, message) => {
    await expect(client.rows(sql)).rejects.toThrow(message)
  })

  it('wide results', async () => {
    const columns = Array.from({ length: 3000 }, (_, index) => `sum(x + ${index}) c${index}`)
    const [row] = JSON.parse(`[${await client.rows(`select ${columns.join()} from t`)}]`) as number[][]
    expect(row).toEqual(columns.map((_, index) => 45_150 + index * 300))
  })
})
