// Goal: a plan that statements of one form share returns what a plan of its own would return, with the same columns, and
// the same errors at the same places. Method: random statements with random constants run in two engines with the same
// tables; one shares plans, the other does not. Also which statements share, and until when.

import { beforeAll, describe, expect, test } from 'vitest'
import { allRights, noRights } from '../../../engine/base/rights.js'
import type { ExecuteOptions, Session } from '../../../engine/engine.js'
import { nativeDialect, postgresDialect } from '../../../engine/sql/dialect.js'
import type { Value } from '../../../engine/types/value.js'
import { InlineEngine } from '../../support/inline-engine.js'
import { createRandom, type Random } from '../../support/random.js'
import { runs } from '../../support/runs.js'
import { createFaultyDisk } from '../../support/simulator/faulty-files.js'
import { executeOptions } from '../../support/test-engine.js'

const pg: Session = { user: 'admin', protocol: 'pg', dialect: postgresDialect, readOnly: false, rights: allRights }
const http: Session = { ...pg, protocol: 'http', dialect: nativeDialect }

const tables = [
  `create table t (ts timestamp, s symbol, v varchar, d double, f float, i int, l long, b boolean, c char, dec decimal(10,2),
    dt date, u uuid, ip ipv4, g geohash(4c)) timestamp(ts) partition by day`,
  `insert into t select dateadd('m', x::int, '2024-05-01T00:00:00Z'), 's' || (x % 7), 'text ' || (x % 50), x / 4.0,
    (x / 8.0)::float, (x % 100)::int, x, x % 3 = 0, 'a', (x % 1000) / 100.0, '2024-05-01'::date, null, '1.2.3.4', #u33d
    from long_sequence(3000)`,
  `insert into t select dateadd('m', x::int, '2024-05-02T00:00:30Z'), null, null, null, null, null, null, null, 'b', null,
    null, '11111111-2222-3333-4444-555555555555', null, null from long_sequence(20)`,
  'create table other (k symbol, name varchar, n int)',
  "insert into other values ('s1', 'one', 1), ('s2', 'two', 2), ('s3', 'it''s', 3)",
  'create view late_rows as (select ts, l, s, i from t where l > 1000)',
]

async function openEngine(sharesPlans: boolean): Promise<InlineEngine> {
  const { files } = createFaultyDisk()
  files.makeDirectory('/db')
  files.syncDirectory('/')
  const engine = new InlineEngine({ files, inline: true, sharesPlans })
  await engine.settle()
  for (const sql of tables) await engine.run(sql)
  return engine
}

let sharing: InlineEngine
let alone: InlineEngine

beforeAll(async () => {
  sharing = await openEngine(true)
  alone = await openEngine(false)
})

interface Answer {
  readonly columns: readonly string[]
  readonly rows: readonly (readonly Value[])[]
  readonly cached: boolean
}

async function answerOf(engine: InlineEngine, sql: string, more: Partial<ExecuteOptions>): Promise<Answer> {
  const result = await engine.until(engine.engine.execute(sql, { ...executeOptions, session: pg, ...more }))
  if (result.kind !== 'rows') throw new Error('a query is expected')
  const rows: (readonly Value[])[] = []
  const all = (async () => {
    for await (const some of result.values) rows.push(...some)
  })()
  await engine.until(all)
  const columns = result.columns.map(({ name, type }) => `${name} ${type.name} ${type.a} ${type.b}`)
  return { columns, rows, cached: result.cached }
}

function failure(error: unknown): Answer {
  const { message, position = null } = error as Error & { readonly position?: number }
  return { columns: [], rows: [[message, position]], cached: false }
}

/** The answer of the engine that shares plans, which is that of the other one. */
async function compared(sql: string, more: Partial<ExecuteOptions> = {}): Promise<Answer> {
  const [one, other] = await Promise.all([
    answerOf(sharing, sql, more).catch(failure),
    answerOf(alone, sql, more).catch(failure),
  ])
  expect({ ...one, cached: null }, sql).toEqual({ ...other, cached: null })
  return one
}

// RANDOM STATEMENTS -----------------------------------------------------------------------------------------------

type Make = (random: Random) => string

const oneOf =
  (...texts: readonly string[]): Make =>
  (random) =>
    random.pick(texts)

const whole: Make = (random) => String(random.pick([0, 1, 5, 7, 42, 99, 100, 1000, 2999, random.below(3000)]))
const huge = oneOf('2147483647', '2147483648', '9223372036854775807', '9223372036854775808', '123456789012345678901')
const fraction = oneOf('0.25', '1.5', '2.50', '749.75', '0.1', '100.0', '1e3', '2.5e-1', '1.5f', '7.5m', '00.25')
const symbol = oneOf(
  "'s1'",
  "'s2'",
  "'s6'",
  "'nobody'",
  "''",
  "'it''s'",
  "'a'",
  "''''",
  "'a much longer name than the others'",
)
const text = oneOf("'text 1'", "'text 22'", "'none'", "'x'", "''", "'text '' 7'", "'te--xt'", "'/* no */'", "'$today'")
const time = oneOf(
  ...[
    "'2024-05-01T12:00:00Z'",
    "'2024-05-01T06:30:00.000000Z'",
    "'2024-05-02'",
    "'2024-05-01 10:00:00'",
    "'2031-01-01'",
  ],
  ...["'no time'", "'2024-13-01'", "''", "'2024-05-01T12'", "'5'"],
)
const interval = oneOf(
  ...["'2024-05-01T10'", "'2024-05-01T11'", "'2024-05-01;1h'", "'2024-05-01T00:00;10m;1h;3'", "'2024-05-02'"],
  ...["'[2024-05-01T01,2024-05-01T05]'", "'nothing'", "'$today'", "'2024'"],
)
const uuid = oneOf(
  "'11111111-2222-3333-4444-555555555555'",
  "'no uuid'",
  "''",
  "'11111111-2222-3333-4444-555555555556'",
)
const address = oneOf("'1.2.3.4'", "'1.2.3.5'", "'nowhere'", "''")
const place = oneOf('#u33d', '#u33', '##0101', "'u33d'", "'u3'", "'!'", "'u33e'")
const word = oneOf('null', 'true', 'false', 'null')
const any: Make = (random) =>
  random.pick([whole, huge, fraction, symbol, text, time, interval, uuid, address, place, word])(random)

/** Columns with constants that suit them. */
const columns: readonly (readonly [string, Make])[] = [
  ...([
    ['ts', time],
    ['s', symbol],
    ['v', text],
    ['d', fraction],
    ['f', fraction],
    ['i', whole],
    ['l', whole],
    ['b', word],
    ['c', symbol],
    ['dec', fraction],
    ['dt', time],
    ['u', uuid],
    ['ip', address],
    ['g', place],
  ] as const),
  ...([
    ['ts', interval],
    ['dec', whole],
    ['d', whole],
    ['l', huge],
    ['s', whole],
    ['i + 1', whole],
    ['l * 2', whole],
    ['d / 2', fraction],
    ['dec * 2', fraction],
    ['concat(s, i)', text],
    ['abs(i - 50)', whole],
    ["case when l > 5 then 'x' else s end", symbol],
  ] as const),
]

/** A part of a statement: text, or a place for constants of one kind. */
type Part = string | Make

const operators = ['=', '=', '=', '<>', '!=', '<', '<=', '>', '>=']
const gap = (random: Random): string => (random.chance(0.05) ? random.pick([' /* why */ ', ' -- so\n', '  ']) : ' ')

function condition(random: Random): Part[] {
  const [column, suited] = random.pick(columns)
  const make = random.chance(0.08) ? any : suited
  const signed: Part[] = make === whole && random.chance(0.2) ? ['-', make] : [make]
  switch (random.below(10)) {
    case 0:
      return [column, gap(random), 'between ', ...signed, ' and ', make]
    case 1:
      return [
        column,
        random.chance(0.3) ? ' not in (' : ' in (',
        ...signed,
        ', ',
        make,
        random.pick(['', ', null']),
        ')',
      ]
    case 2:
      return [column, ' in (', make, ')']
    case 3:
      return [...signed, ` ${random.pick(operators)} `, column]
    case 4:
      return ['not (', column, ' = ', make, ' or ', column, ' > ', make, ')']
    case 5:
      return random.chance(0.5)
        ? ['ts in ', random.chance(0.7) ? interval : time]
        : ['ts >= ', time, ' and ts < ', random.chance(0.7) ? time : any]
    case 6:
      return [column, ' = ', make, random.pick(['::varchar', '::int', '::timestamp', '::double', ''])]
    case 7:
      return ["ts > dateadd('h', ", whole, ', ', time, ')']
    case 8:
      return [column, ` ${random.pick(operators)} `, make, random.pick([' + ', ' - ', ' * ', ' / ']), make]
    default:
      return [column, ` ${random.pick(operators)}${gap(random)}`, ...signed]
  }
}

function conditions(random: Random): Part[] {
  const parts = condition(random)
  while (random.chance(0.5)) parts.push(gap(random), random.pick(['and ', 'and ', 'and ', 'or ']), ...condition(random))
  return parts
}

function statement(random: Random): Part[] {
  const where = ['where ', ...conditions(random)]
  switch (random.below(12)) {
    case 0:
      return ['select ts, sum(l), max(d) from t ', ...where, ' sample by 1h']
    case 1:
      return ['select s, count(), sum(i) from t ', ...where, ' group by s order by 1, 2']
    case 2:
      return ['select * from t ', ...where, ' latest on ts partition by s']
    case 3:
      return ['select o.name, t.l from t join other o on t.s = o.k ', ...where, ' order by t.l limit 20']
    case 4:
      return ['select l, ', whole, ' one, ', text, ' from t ', ...where, ' order by l limit 3']
    case 5:
      return ['select l from t where l = (select max(l) from t ', ...where, ') and i < ', whole, ' order by l']
    case 6:
      return ['select l from t ', ...where, ' union all select n from other where n > ', whole, ' order by 1']
    case 7:
      return [
        'with w as (select * from t ',
        ...where,
        ') select s, count() from w where l > ',
        whole,
        ' group by s order by s',
      ]
    case 8:
      return [
        'select l, ts from late_rows where s = ',
        symbol,
        ' and i < ',
        whole,
        ' and ts > ',
        time,
        ' order by l limit 9',
      ]
    case 9:
      return ['select ts, avg(d) from t ', ...where, ' sample by 1h fill(prev)']
    case 10:
      return ['select distinct s from t ', ...where, ' order by s']
    default:
      return ['select * from t ', ...where, ' order by ts, l limit ', whole, random.pick(['', ' offset 3'])]
  }
}

const written = (parts: readonly Part[], random: Random): string =>
  parts.map((part) => (typeof part === 'string' ? part : part(random))).join('')

describe('random statements', () => {
  const seeds = Array.from({ length: runs(400, 40) }, (_, seed) => seed + 1)
  let shared = 0
  test.each(seeds)('seed %i', async (seed) => {
    const random = createRandom(seed)
    for (let count = 0; count < 5; count++) {
      const parts = statement(random)
      const session = random.chance(0.5) ? pg : http
      for (let execution = 0; execution < 6; execution++)
        if ((await compared(written(parts, random), { session })).cached) shared++
    }
  })
  test('many of them have shared a plan', () => {
    expect(shared).toBeGreaterThan(seeds.length * 4)
  })
})

// SHARING -----------------------------------------------------------------------------------------------------------

/** Statements of one form. All but the first find the plan. */
const families: readonly (readonly string[])[] = [
  ["select l from t where s = 's1' and l < 20", "select l from t where s = 'nobody' and l < 300"],
  [
    "select ts, max(d) from t where s = 's1' and ts >= '2024-05-01T01:00:00Z' and ts < '2024-05-01T02:00:00Z' sample by 1m",
    "select ts, max(d) from t where s = 's4' and ts >= '2024-05-01T05:10:00Z' and ts < '2024-05-01T06:20:00Z' sample by 1m",
  ],
  ["select count() from t where ts in '2024-05-01T01'", "select count() from t where ts in '2024-05-01;3h'"],
  ["select count() from t where s in ('s1', 's2')", "select count() from t where s in ('s3', 'nobody else')"],
  ['select l from t where l between 5 and 7', 'select l from t where l between 1000 and 1001'],
  ['select l from t where d = 1.25 or d > 749.5', 'select l from t where d = 10.5 or d > 749.75'],
  [
    "select * from t where s = 's1' latest on ts partition by s",
    "select * from t where s = 's22' latest on ts partition by s",
  ],
  ['select l from t where i = -5 or l = 7', 'select l from t where i = -50 or l = 77'],
  [
    "select l from t where l = (select max(l) from t where ts <= '2024-05-01T01:00:00Z')",
    "select l from t where l = (select max(l) from t where ts <= '2024-05-01T02:00:00Z')",
  ],
]

test.each(families)('%s', async (...family) => {
  for (const session of [pg, http]) {
    for (const [index, sql] of family.entries()) {
      const { rows, cached } = await compared(sql, { session })
      expect(cached).toBe(index > 0)
      if (index === 0) expect(rows).not.toEqual([])
    }
  }
})

test('errors are where they are in the statement', async () => {
  await compared("select l from t where ts > '2024-05-01' and l > 5")
  const wrong = "select l from t where ts > 'a wrong one' and l > 5"
  expect((await compared(wrong)).rows).toEqual([["Invalid date [str='a wrong one']", wrong.indexOf("'a wrong")]])
  // Found while rows are read.
  const failing = (name: string): string =>
    `select l from t where s = '${name}' and 1 / (l - l) = (l::varchar || 'x')::uuid`
  for (const name of ['s1', 's3', 'nobody', 's2']) await compared(failing(name))
  const many = (name: string, least: number): string =>
    `select l from t where l > ${least} and s = '${name}' and l = (select l from t where s = '${name}')`
  const messages = []
  for (const sql of [many('s1', 1), many('s2', 1000), many('s3', 22)]) {
    const { rows } = await compared(sql)
    messages.push(rows[0]?.[0])
    expect(rows[0]?.[1]).toBeGreaterThan(sql.indexOf("' and"))
  }
  expect(new Set(messages).size).toBe(1)
})

test('constants that become NULL have plans of their own', async () => {
  const of = (text: string): string => `select l from t where d = '${text}'::int or l = 77 order by l`
  for (const session of [http, pg])
    for (const text of ['7', '8', 'none', '9', 'no']) await compared(of(text), { session })
})

test('a number cast to NUMERIC has the digits that it is written with', async () => {
  const of = (number: string): string =>
    `select l from t where ${number}::numeric::varchar = ${number}::varchar and l = 7`
  const written = (text: string): string => `select l from t where l = 7 and '${text}'::numeric::varchar = '${text}'`
  for (const session of [http, pg])
    for (const number of ['2.5', '3.5', '3.55', '26', '7000000000']) {
      for (const sql of [of(number), written(number)]) expect((await compared(sql, { session })).rows).toEqual([[7n]])
    }
})

test('a text of a known form has the syntax tree of its own', async () => {
  const of = (n: number): string => `select s, l from t where l = ${n} and s in ('s1', 's2') order by l limit 5 ;\n`
  await compared(of(1))
  for (const n of [22, 333]) {
    const [later, now] = [sharing, alone].map(({ engine }) => engine.parse(of(n)))
    expect(later?.map((parsed) => ({ ...parsed, statement: { ...parsed.statement } }))).toEqual(now)
    expect(later).toHaveLength(1)
    expect((await compared(of(n))).cached).toBe(true)
  }
})

test('values that are found while planning are those of the statement', async () => {
  const of = (hour: string): string =>
    `select * from t where ts < '2024-05-01T00:0${hour}' pivot (sum(l) for s in (select distinct s from t where ts < '2024-05-01T00:0${hour}' order by 1) group by b) order by b`
  for (const hour of ['3', '5', '2', '4', '6', '3']) await compared(of(hour))
})

test('a plan is shared until its table changes', async () => {
  const statements = ['create table moving (ts timestamp, n long) timestamp(ts) partition by day']
  statements.push("insert into moving values ('2024-05-01T12:00:00Z', 1), ('2024-05-01T13:00:00Z', 2)")
  const each = async (sql: string): Promise<void> => {
    for (const engine of [sharing, alone]) await engine.run(sql)
  }
  for (const sql of statements) await each(sql)
  const of = (n: number): string => `select * from moving where n = ${n}`
  expect((await compared(of(1))).cached).toBe(false)
  expect((await compared(of(2))).cached).toBe(true)
  for (const change of ['alter table moving add column more int', 'alter table moving drop column n']) {
    await each(change)
    await compared(of(1))
    await compared(of(2))
  }
  await each('drop table moving')
  expect((await compared(of(3))).rows[0]?.[0]).toContain('table does not exist')
})

test('a view is created between two statements', async () => {
  const of = (l: number): string => `select * from soon where l = ${l}`
  await compared(of(1))
  for (const engine of [sharing, alone]) await engine.run('create view soon as (select l, s from t where l < 10)')
  expect((await compared(of(7))).rows).toEqual([[7n, 's0']])
  expect((await compared(of(8))).cached).toBe(true)
})

test('nobody reads without the right', async () => {
  await compared("select l from t where s = 's1' and l < 9")
  const stranger = { ...pg, user: 'stranger', rights: noRights }
  const { rows } = await compared("select l from t where s = 's2' and l < 9", { session: stranger })
  expect(rows[0]?.[0]).toContain('the right is missing')
})

test('EXPLAIN shows the constants of its statement', async () => {
  const of = (name: string): string => `select l from t where s = '${name}' and ts > '2024-05-01T01:00:00Z'`
  await compared(of('s1'))
  await compared(of('s2'))
  const { rows } = await compared(`explain ${of('s3')}`)
  expect(rows.flat().join('\n')).toContain('s3')
  const result = await sharing.until(
    sharing.engine.execute(of('s4'), { ...executeOptions, session: http, explain: true }),
  )
  expect(result.kind === 'plan' && result.lines.join('\n')).toContain('s4')
})

test('a form whose plans depend on the constants is planned as it comes', async () => {
  for (let length = 1; length < 40; length++) {
    const sql = `select l from t where v::timestamp = '${2000 + length}-01-01'::timestamp or l = ${length}`
    expect((await compared(sql)).rows).toEqual([[BigInt(length)]])
  }
})
