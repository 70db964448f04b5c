// Goal: strings that a data file stores as a dictionary give the same query results as plain strings in memory. Method:
// the same rows in a table on disk and in one in memory, with NULL, empty and non-ASCII strings. The queries evaluate
// an expression once per dictionary entry, group by strings, gather them after a filter, or fail for some strings.

import { expect, test } from 'vitest'
import { emptyEngine, type InlineEngine } from '../../../support/inline-engine.js'

const rows = 700

async function filled(jit: boolean): Promise<InlineEngine> {
  const engine = await emptyEngine({ noCompactions: true, jit })
  const fill = async (table: string, stored: boolean): Promise<void> => {
    await engine.run(`create table ${table} (ts timestamp, v varchar, s string, n varchar, i int) timestamp(ts)`)
    for (let part = 0; part < 3; part++) {
      await engine.run(
        `insert into ${table} select (1704067200000000 + (x + ${part * rows}) * 60000000)::timestamp,
         case when x % 17 = 0 then null when x % 19 = 0 then '' else 'Text Ä' || ((x * 7 + ${part}) % 23) end,
         'k' || (x % ${3 + part * 40}), 'n' || (x % 11), (x % 50)::int from long_sequence(${rows})`,
      )
      if (stored) await engine.run('checkpoint')
    }
  }
  await fill('t', true)
  await fill('m', false)
  return engine
}

const queries = [
  "select count(), sum(i) from # where v like '%1%'",
  "select count(), sum(i) from # where v ilike 'text%2'",
  "select count(), sum(i) from # where v ~ 'Ä(1|2)[0-4]$' and i > 3",
  "select count() from # where v = 'Text Ä3' or v is null",
  "select count() from # where v in ('Text Ä1', '', 'none') and s <> 'k1'",
  "select count() from # where not (v like '%2') and length(s) > 2",
  "select * from # where v like '%7' and s like 'k2%'",
  "select v, i from # where v like '%7' order by ts desc limit 20",
  'select v, count(), sum(i), min(ts) from # group by v',
  "select v, count() from # where i > 40 and s not like '%1' group by v",
  'select v, s, count() c, max(i) from # group by v, s order by c desc, v, s limit 50',
  'select v, n, count() from # group by v, n order by v, n',
  "select case when v like '%2%' then 'two' when v is null then 'none' else 'other' end c, count() from # group by c order by c",
  'select length(v) l, count(), sum(i) from # group by l order by l',
  'select distinct v from #',
  'select distinct v, s from # order by v, s',
  'select count_distinct(v), count_distinct(s) from #',
  "select ts, s, count_distinct(case when false then left(v, 3) else 'S' end) c from # sample by 3h",
  "select ts, count_distinct(coalesce(v, 'none')) c, count_distinct(nullif(v, 'Text Ä3')) d, count() from # sample by 3h",
  "select ts, count_distinct(case when i > 20 then 'a' when i > 10 then 'b' end) c, count() from # sample by 20m",
  'select upper(v) u, count() from # group by u order by u',
  "select ts, count() from # where v like '%3' sample by 1d",
  "select cast(replace(v, 'Text Ä', '') as int) x, sum(i) from # group by x order by x",
  'select v from # where v >= s order by v, ts limit 30',
  "select count() from # where v::int > 0 and v like '%nowhere%'",
  'select * from # latest on ts partition by v',
  'select v, s, i from # limit 690, 720',
  'select v, s, i from # limit -7',
]

test.each([true, false])('texts in parts answer as texts in memory do, with generated code: %s', async (jit) => {
  const engine = await filled(jit)
  const ask = async (sql: string): Promise<unknown> => {
    try {
      return await engine.rows(sql)
    } catch (error) {
      return (error as Error).message
    }
  }
  for (const query of queries) {
    expect(await ask(query.replaceAll('#', 't')), query).toEqual(await ask(query.replaceAll('#', 'm')))
  }
})
