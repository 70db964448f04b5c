// Goal: a prepared query is planned once for many executions, unless its plan depends on the values of its parameters,
// and each execution returns what planning with its own parameter values would have returned, whatever was written,
// changed or dropped in between. Method: each execution is compared with an unprepared statement of the same text,
// whose plan is not cached.

import { beforeAll, expect, test } from 'vitest'
import { allRights, noRights } from '../../../engine/base/rights.js'
import type { Description, ExecuteOptions, ParsedStatement } from '../../../engine/engine.js'
import { postgresDialect } from '../../../engine/sql/dialect.js'
import { type DataType, dataType } from '../../../engine/types/column-types.js'
import type { Value } from '../../../engine/types/value.js'
import { InlineEngine } from '../../support/inline-engine.js'
import { createFaultyDisk } from '../../support/simulator/faulty-files.js'
import { executeOptions } from '../../support/test-engine.js'

const session = { user: 'admin', protocol: 'pg', dialect: postgresDialect, readOnly: false, rights: allRights } as const

const tables = [
  'create table t (ts timestamp, s symbol, v varchar, d double, i int, l long, b boolean, u uuid) timestamp(ts) partition by day',
  `insert into t select dateadd('m', x::int, '2024-05-01T00:00:00Z'), 's' || (x % 7), 'text ' || (x % 50), x / 4.0,
    (x % 100)::int, x, x % 3 = 0, null from long_sequence(3000)`,
  "insert into t select dateadd('m', x::int, '2024-05-02T00:00:30Z'), null, null, null, null, null, null, null from long_sequence(20)",
  'create table other (k symbol, name varchar)',
  "insert into other values ('s1', 'one'), ('s2', 'two'), ('s3', 'three')",
  'create view late_rows as (select ts, l, s from t where l > 1000)',
]

type Parameters = ExecuteOptions['parameters']

let engine: InlineEngine

beforeAll(async () => {
  const { files } = createFaultyDisk()
  files.makeDirectory('/db')
  files.syncDirectory('/')
  engine = new InlineEngine({ files, inline: true })
  await engine.settle()
  for (const sql of tables) await engine.run(sql)
})

function prepared(sql: string): ParsedStatement {
  return engine.engine.parse(sql)[0] as ParsedStatement
}

interface Answer {
  readonly rows: readonly (readonly Value[])[]
  readonly cached: boolean
}

async function run(sql: string, parameters: Parameters, more: Partial<ExecuteOptions>): Promise<Answer> {
  const result = await engine.until(engine.engine.execute(sql, { ...executeOptions, session, parameters, ...more }))
  if (result.kind !== 'rows') throw new Error('a query is expected')
  const rows: (readonly Value[])[] = []
  const all = (async () => {
    for await (const some of result.values) rows.push(...some)
  })()
  await engine.until(all)
  return { rows, cached: result.cached }
}

/** Both ways; the error's words in place of rows. */
async function compared(parsed: ParsedStatement, parameters: Parameters): Promise<Answer> {
  const failed = (error: unknown): Answer => ({ rows: [[String(error)]], cached: false })
  const cached = await run(parsed.text, parameters, { parsed }).catch(failed)
  const anew = await run(parsed.text, parameters, {}).catch(failed)
  expect(cached.rows).toEqual(anew.rows)
  expect(anew.cached).toBe(false)
  return cached
}

const micros = (text: string): bigint => BigInt(Date.parse(text)) * 1000n
const timestamp = dataType('TIMESTAMP')
const text = dataType('STRING')
const long = dataType('LONG')
const int = dataType('INT')
const double = dataType('DOUBLE')
const at = (value: string): Parameters[number] => ({ value: micros(value), type: timestamp })
const of = (value: Value, type: DataType): Parameters[number] => ({ value, type })

const noon = at('2024-05-01T12:00:00Z')
const morning = at('2024-05-01T06:00:00Z')
const never = at('2031-05-01T06:00:00Z')

/** Statements, and the values of executions. All but the first find a plan. */
const keeping: readonly (readonly [string, readonly Parameters[]])[] = [
  ['select * from t where ts = $1', [[noon], [morning], [never], [noon]]],
  ['select l from t where $1 = ts', [[noon], [morning]]],
  [
    'select l from t where ts >= $1 and ts < $2',
    [
      [morning, noon],
      [noon, morning],
      [noon, never],
    ],
  ],
  [
    'select l from t where not (ts < $1 or ts > $2)',
    [
      [morning, noon],
      [noon, morning],
    ],
  ],
  [
    "select l from t where ts > $1 and ts < '2024-05-01T07:00:00Z' and d > $2",
    [
      [morning, of(5, double)],
      [noon, of(-5, double)],
    ],
  ],
  [
    'select l from t where ts between $1 and $2',
    [
      [morning, noon],
      [noon, morning],
    ],
  ],
  [
    'select l from t where ts in ($1, $2)',
    [
      [morning, noon],
      [noon, never],
      [never, never],
    ],
  ],
  [
    'select l, ts from t where ts <> $1 and l < $2',
    [
      [morning, of(500n, long)],
      [noon, of(3n, long)],
    ],
  ],
  ['select count() from t where ts < dateadd($$d$$, 1, $1)'.replaceAll('$$', "'"), [[morning], [noon]]],
  ['select * from t where s = $1', [[of('s1', text)], [of('s2', text)], [of('nobody', text)], [of('', text)]]],
  [
    'select * from t where s = $1 and ts >= $2 order by ts desc limit 3',
    [
      [of('s1', text), noon],
      [of('s6', text), morning],
    ],
  ],
  [
    'select l from t where s in ($1, $2)',
    [
      [of('s1', text), of('s2', text)],
      [of('s3', text), of('x', text)],
    ],
  ],
  ['select l from t where s <> $1 and l < 20', [[of('s1', text)], [of('none', text)]]],
  ['select l from t where v = $1', [[of('text 7', text)], [of('text 8', text)]]],
  ['select v from t where l = $1', [[of(7n, long)], [of(8n, long)]]],
  ['select v from t where l = $1', [[of(7, int)], [of(8, int)]]],
  [
    'select v from t where i between $1 and $2',
    [
      [of(7, int), of(8, int)],
      [of(99, int), of(98, int)],
    ],
  ],
  ['select v from t where d * 2 >= $1 + 1', [[of(1497.5, double)], [of(1499, double)]]],
  ['select l, $1 given from t where l <= $1', [[of(3n, long)], [of(5n, long)]]],
  ['select s, sum(l) from t where ts > $1 group by s order by s', [[noon], [morning]]],
  [
    'select ts, sum(l) from t where ts >= $1 and ts < $2 sample by 1h',
    [
      [morning, noon],
      [noon, never],
    ],
  ],
  ['select * from t where ts < $1 latest on ts partition by s', [[noon], [morning]]],
  ['select o.name, t.l from t join other o on t.s = o.k where t.ts = $1', [[noon], [at('2024-05-01T01:01:00Z')]]],
  [
    'select l from late_rows where s = $1 and ts > $2',
    [
      [of('s1', text), noon],
      [of('s2', text), never],
    ],
  ],
  [
    'with w as (select l, s from t where ts >= $1) select s, count() from w where l > $2 group by s order by s',
    [
      [noon, of(10n, long)],
      [morning, of(2990n, long)],
    ],
  ],
  ['select l from t where l = (select max(l) from t where ts <= $1)', [[noon], [morning]]],
  [
    'select l from t where ts = $1 union all select l from t where ts = $2',
    [
      [noon, morning],
      [morning, never],
    ],
  ],
  ['select l from t where ts = $1::timestamp', [[noon], [morning]]],
  ['select l from t where v like $1 and l < 60', [[of('text 1%', text)], [of('text 1%', text)]]],
  // A whole table of them: a query thread's work.
  ['select a.l from t a cross join t b where a.l + b.l = $1', [[of(3n, long)], [of(4n, long)]]],
]

test.each(keeping)('%s', async (sql, executions) => {
  const parsed = prepared(sql)
  for (const [index, parameters] of executions.entries()) {
    const { cached } = await compared(parsed, parameters)
    expect(cached).toBe(index > 0)
  }
})

const varying: readonly (readonly [string, readonly Parameters[]])[] = [
  [
    "select (ts - $1::interval)::varchar x, '2024-03-31'::timestamp + $2 * $1::interval y from t where l = $2",
    [
      [of('90 minutes', text), of(1n, long)],
      [of('2 days', text), of(1n, long)],
      [of('2 days', text), of(2n, long)],
      [of(null, text), of(1n, long)],
    ],
  ],
  [
    'select case when l > $1 then $2 else s end x from t where l < 5',
    [
      [of(2n, long), of('big', text)],
      [of(4n, long), of('huge', text)],
    ],
  ],
  [
    'select l from t where l > $1 order by ts limit $2',
    [
      [of(5n, long), of(3n, long)],
      [of(5n, long), of(4n, long)],
      [of(9n, long), of(3n, long)],
      [of(9n, long), of(-3n, long)],
    ],
  ],
  ['select l from t where ts in $1', [[of('2024-05-01T10', text)], [of('2024-05-01T11', text)], [of('nothing', text)]]],
  [
    'select l from t where ts = $1',
    [[of('2024-05-01T10:00:00Z', text)], [of('no time', text)], [of('2024-05-01T11:00:00Z', text)]],
  ],
  [
    'select l from t where l = $1',
    [[of('7', text)], [of('x', text)], [of('8', text)], [of(null, text)], [of(7n, long)], [of(7.5, double)]],
  ],
  ['select l from t where s = $1 and l < 50', [[of('s1', text)], [of(null, text)], [of('s2', text)], [of(null, text)]]],
  ['select l from t where ts > $1 and l < 5', [[noon], [of(null, timestamp)], [morning], [of(null, timestamp)]]],
  [
    'select l from t where u = $1',
    [[of('no uuid', text)], [of('', text)], [of('11111111-2222-3333-4444-555555555555', text)]],
  ],
  ['select l from t where $1 and l < 3', [[of(true, dataType('BOOLEAN'))], [of(false, dataType('BOOLEAN'))]]],
  ['select l from t where l = any($1)', [[of('{1,2}', text)], [of('{3}', text)]]],
  [
    'select $1 + $2 from t limit 1',
    [
      [of(1, int), of(2, int)],
      [of(2_147_483_647, int), of(1, int)],
      [of(1.5, double), of(1, int)],
    ],
  ],
  ['select cast($1 as int) x from t limit 1', [[of('5', text)], [of('x', text)], [of(null, text)], [of(7n, long)]]],
  [
    'select nullif($1, $2) = v x from t limit 1',
    [
      [of('a', text), of('a', text)],
      [of('a', text), of('b', text)],
    ],
  ],
  ['select concat(s, $1) x from t where l < 3', [[of('a', text)], [of('b', text)]]],
  [
    'select dateadd($1, $2, ts) x from t where l < 3',
    [
      [of('d', text), of(1, int)],
      [of('h', text), of(2, int)],
      [of('?', text), of(1, int)],
    ],
  ],
  ['select x from long_sequence($1)', [[of(2n, long)], [of(3n, long)]]],
  ['select l, round(d, $1) from t where l < 5', [[of(1, int)], [of(0, int)]]],
  [
    'select substring(v, $1, $2) from t where l < 5',
    [
      [of(1, int), of(3, int)],
      [of(2, int), of(1, int)],
      [of(2, int), of(-1, int)],
    ],
  ],
  ['select l from t where ts > now() - $1', [[of(5n, long)], [of(6n, long)]]],
  [
    'select * from t where ts < $1 pivot (sum(l) for s in (select distinct s from t where ts < $1 order by 1) group by b)',
    [[at('2024-05-01T00:03:00Z')], [at('2024-05-01T00:05:00Z')]],
  ],
]

test.each(varying)('%s', async (sql, executions) => {
  const parsed = prepared(sql)
  for (const parameters of [...executions, ...executions]) await compared(parsed, parameters)
})

test('rows are there as soon as they are written, in memory, in parts and late', async () => {
  await engine.run('create table fresh (ts timestamp, s symbol, n long) timestamp(ts) partition by day')
  const bySymbol = prepared('select n from fresh where s = $1 order by n')
  const byTime = prepared('select n from fresh where ts >= $1 order by n')
  const day = at('2024-05-02T00:00:00Z')
  for (const [index, when] of ['2024-05-02', '2024-05-03', '2024-04-01', '2024-05-02'].entries()) {
    await engine.run(`insert into fresh values ('${when}T00:00:00Z', 'new ${index}', ${index})`)
    for (let name = 0; name <= index; name++) {
      const { rows } = await compared(bySymbol, [of(`new ${name}`, text)])
      expect(rows).toEqual([[BigInt(name)]])
    }
    expect((await compared(bySymbol, [of(`new ${index + 1}`, text)])).rows).toEqual([])
    expect((await compared(byTime, [day])).rows).toHaveLength([1, 2, 2, 3][index] as number)
    if (index === 1) await engine.run('checkpoint')
    await engine.settle()
  }
})

test('a table that is changed, emptied, renamed or dropped', async () => {
  const make = 'create table moving (ts timestamp, n long) timestamp(ts) partition by day'
  const fill = "insert into moving (ts, n) values ('2024-05-01T12:00:00Z', 1)"
  await engine.run(make)
  await engine.run(fill)
  const parsed = prepared('select * from moving where ts = $1')
  const steps = [
    'alter table moving add column more int',
    'alter table moving drop column n',
    'alter table moving rename column more to n',
    'truncate table moving',
    'rename table moving to moved',
    make,
    fill,
    'drop table moving',
  ]
  for (const step of steps) {
    await compared(parsed, [noon])
    await engine.run(step)
    await engine.settle()
    await compared(parsed, [noon])
    await compared(parsed, [morning])
  }
  expect((await compared(parsed, [noon])).rows[0]?.[0]).toContain('table does not exist [table=moving]')
})

test('a view that is changed', async () => {
  const parsed = prepared('select * from seen where l = $1')
  await engine.run('create view seen as (select l, s from t where l < 10)')
  expect((await compared(parsed, [of(7n, long)])).rows).toEqual([[7n, 's0']])
  await engine.run('create or replace view seen as (select l from t where l > 10)')
  expect((await compared(parsed, [of(7n, long)])).rows).toEqual([])
  expect((await compared(parsed, [of(11n, long)])).rows).toEqual([[11n]])
  await engine.run('drop view seen')
  await compared(parsed, [of(11n, long)])
})

test('nobody reads without the right', async () => {
  const parsed = prepared('select l from t where ts = $1')
  await compared(parsed, [noon])
  const stranger = { ...session, user: 'stranger', rights: noRights }
  await expect(run(parsed.text, [noon], { parsed, session: stranger })).rejects.toThrow('the right is missing')
})

test('two portals of one statement are read in turns', async () => {
  const parsed = prepared('select l from t where l between $1 and $2')
  const open = async (lo: bigint, hi: bigint) => {
    const parameters = [of(lo, long), of(hi, long)]
    const result = await engine.until(
      engine.engine.execute(parsed.text, { ...executeOptions, session, parsed, parameters }),
    )
    if (result.kind !== 'rows') throw new Error('a query is expected')
    return result.values[Symbol.asyncIterator]()
  }
  const first = await open(1n, 2n)
  const second = await open(2001n, 2003n)
  expect((await engine.until(second.next())).value).toEqual([[2001n], [2002n], [2003n]])
  expect((await engine.until(first.next())).value).toEqual([[1n], [2n]])
})

test('rows of a transaction are beside those of the table', async () => {
  const parsed = prepared('select count() from t where ts > $1')
  const [[before]] = (await compared(parsed, [never])).rows as [[bigint]]
  expect(before).toBe(0n)
  const own = [[micros('2031-06-01T00:00:00Z'), 's1', 'v', 1, 1, 1n, true, null]]
  const transaction = { rows: 1, own: () => own }
  const inside = { ...session, transaction }
  expect((await run(parsed.text, [never], { parsed, session: inside })).rows).toEqual([[1n]])
  expect((await compared(parsed, [never])).rows).toEqual([[0n]])
})

test('now() is the time of the execution', async () => {
  const parsed = prepared('select now() from t where l = $1')
  const [[first]] = (await run(parsed.text, [of(1n, long)], { parsed })).rows as [[bigint]]
  engine.ms += 5000
  const [[second]] = (await run(parsed.text, [of(1n, long)], { parsed })).rows as [[bigint]]
  expect(second - first).toBeGreaterThanOrEqual(5_000_000n)
})

test('a statement whose plan is of no use to others is planned as it comes', async () => {
  const parsed = prepared('select l from t order by ts limit $1')
  for (let limit = 1n; limit < 40n; limit++) {
    const { rows, cached } = await compared(parsed, [of(limit, long)])
    expect(rows).toHaveLength(Number(limit))
    expect(cached).toBe(false)
  }
})

test('a described statement is planned without values, and executed with them', async () => {
  const parsed = prepared('select l from t where ts = $1 and i < $2')
  const described: Description = engine.engine.describe(parsed, session, [])
  expect(described.parameters.map(({ type }) => type.name)).toEqual(['TIMESTAMP', 'INT'])
  await compared(parsed, [noon, of(50, int)])
  expect(engine.engine.describe(parsed, session, []).columns).toEqual(described.columns)
  expect((await compared(parsed, [morning, of(70, int)])).cached).toBe(true)
})
