// Goal: reading a live view always gives the result of its query over the rows of its table from START FROM on,
// whatever has changed since its rows were stored. Rows that depend on rows of a dropped partition stay as they were.
// Method: random changes of the table (late rows, ties, updates, deletes, DEDUP, dropped and detached partitions,
// changes of columns, flushes) and refreshes in any order; after each of them every view is compared with its query. A
// second kind of random changes has few rows of many keys, mostly in the order of time, and no automatic refreshes.
// Then the marks at which views start to compute (live-grid.ts) are far apart and often become invalid.
//
//   VIEW_SEED=7 npx vitest run test/engine/views/live-views.test.ts     replays one seed
//   VIEW_SEEDS=50 VIEW_STEPS=200 npx vitest ...                         a long run

import { afterAll, beforeAll, expect, test } from 'vitest'
import { type EngineClient, engineClient } from '../../sql/clients.js'
import { createRandom, type Random } from '../../support/random.js'
import { type RandomChanges, randomChanges } from './random-changes.js'

const only = process.env['VIEW_SEED']
const seeds = only === undefined ? Number(process.env['VIEW_SEEDS'] ?? 2) : 1
const first = Number(only ?? 1)
const steps = Number(process.env['VIEW_STEPS'] ?? 12)

let client: EngineClient

beforeAll(async () => {
  client = await engineClient(true, 'off')
})

afterAll(() => client.close())

interface View {
  readonly name: string
  readonly query: string
  readonly start: string | null
  /** Time ranges of frozen rows, as text, and these rows. */
  frozen: readonly (readonly [string, string])[]
  rows: readonly string[]
}

const start = '2024-03-31T12:00:00.000000Z'
const queries: readonly (readonly [query: string, start: string | null])[] = [
  ['select ts, sym, d, sum(d) over (partition by sym order by ts rows 3 preceding) s from #', null],
  [
    'select ts, n, lag(n, 2) over (partition by sym, s order by ts) p, n - lag(n) over (partition by s order by ts) q from #',
    null,
  ],
  [
    'select ts, sym, avg(n) over (partition by sym order by ts range between 2 hour preceding and current row) m from # where n > 100',
    null,
  ],
  [
    "select ts, s, count() over w c, rank() over w r, sum(n) over w t from # window w as (partition by s order by ts anchor daily '09:30' 'Europe/Berlin')",
    null,
  ],
  [
    "select ts, sym, row_number() over w r, max(d) over (partition by sym order by ts range between 90 minute preceding and 1 minute preceding) m from # window w as (partition by sym order by ts anchor expression timestamp_floor('6h', ts))",
    null,
  ],
  [
    "select ts, sym, first_value(d) over (partition by sym order by ts rows between 4 preceding and 1 preceding) f, dense_rank() over w r from # window w as (partition by sym order by ts anchor expression date_trunc('day', ts))",
    start,
  ],
  ['select ts, sym, cnt, sum(cnt) over (partition by sym order by ts rows 2 preceding) c from #hours', null],
]

for (let seed = first; seed < first + seeds; seed++) {
  test(`live views are their queries [seed=${seed}]`, async () => {
    const random = createRandom(seed)
    await compare({
      ...{ random, changes: randomChanges(random), table: `live${seed}`, count: steps },
      ...{ partition: random.pick(['hour', 'day']), flushEvery: () => random.pick(['100ms', '1s', '1m']) },
    })
  }, 600_000)

  test(`live views of rare keys are their queries [seed=${seed}]`, async () => {
    const random = createRandom(seed)
    await compare({
      ...{ random, changes: sparseChanges(random), table: `sparse${seed}`, count: steps * 4 },
      ...{ partition: 'day', flushEvery: () => '60m' },
    })
  }, 600_000)
}

interface Comparison {
  readonly random: Random
  readonly changes: RandomChanges
  readonly table: string
  readonly count: number
  readonly partition: string
  readonly flushEvery: () => string
}

async function compare({ random, changes, table, count, partition, flushEvery }: Comparison): Promise<void> {
  await client.rows(
    `create table ${table} (ts timestamp, sym symbol, d double, n long, s varchar) timestamp(ts) partition by ${partition}`,
  )
  await client.rows(
    `create materialized view ${table}hours refresh manual deferred as (select ts, sym, count() cnt from ${table} sample by 1h)`,
  )
  const views = queries.map(([text, from], index): View => {
    const query = text.replaceAll('#', table)
    return { ...{ name: `${table}v${index}`, query, start: from }, ...{ frozen: [], rows: [] } }
  })
  for (const { name, query, start: from } of views) {
    await client.rows(
      `create live view ${name} flush every ${flushEvery()} start from ${from === null ? 'beginning' : `'${from}'`} as ${query}`,
    )
    await client.rows(`refresh live view ${name}`)
  }
  for (let step = 0; step < count; step++) {
    for (const made of changes.change(table, views)) {
      const change = ofLive(made, random)
      const before = await Promise.all(views.map(expectedRows))
      await client.rows(change).catch((error: unknown) => expectAllowed(change, error))
      for (const [index, view] of views.entries()) {
        const rows = before[index] ?? []
        await noteFrozen(view, rows)
        await expectSame(view, changes.range(), `${step}: ${change}`)
        if (change.includes('drop partition') && rows[0] !== 'unknown column' && !view.query.includes('hours'))
          expect(await expectedRows(view), `${view.name} keeps its rows after ${change}`).toEqual(rows)
      }
    }
  }
  await client.rows(`drop table ${table} cascade`)
}

const firstDayMs = Date.UTC(2024, 2, 30)
const dayMs = 24 * 3600 * 1000

/** Few rows of many keys, most of them later than all others. */
function sparseChanges({ below, pick }: Random): RandomChanges {
  let newestMs = firstDayMs
  const between = (lo: number, hi: number): number => lo + below(Math.max(1, hi - lo))
  const text = (ms: number): string => new Date(ms).toISOString()
  const day = (): string => text(between(firstDayMs, newestMs)).slice(0, 10)
  const insert = (table: string): string => {
    const rows = Array.from({ length: 1 + below(4) }, () => {
      const isLate = below(4) === 0
      if (!isLate) newestMs += below(dayMs / 2)
      const ms = isLate ? between(firstDayMs, newestMs) : newestMs
      const key = pick(['A', 'B', 'C', 'D', 'E', 'F'])
      return `('${text(Math.floor(ms / 3_600_000) * 3_600_000)}', '${key}', ${below(1000) / 8}, ${101 + below(1000)}, '${key}')`
    })
    return `insert into ${table} (ts, sym, d, n, s) values ${rows.join(', ')}`
  }
  const changes: readonly ((table: string, view: string) => readonly string[])[] = [
    ...Array.from({ length: 6 }, () => (table: string) => [insert(table)]),
    ...Array.from({ length: 3 }, () => (table: string) => [insert(table), 'checkpoint']),
    ...Array.from({ length: 4 }, () => (_: string, view: string) => [`refresh materialized view ${view}`]),
    ...Array.from({ length: 2 }, () => (table: string) => [`alter table ${table} drop partition list '${day()}'`]),
    (table) => [`delete from ${table} where sym = '${pick(['A', 'B', 'C', 'D', 'E', 'F'])}' and ts > '${day()}'`],
    (table) => [`alter table ${table} dedup enable upsert keys(ts, sym)`],
    (table) => [`alter table ${table} dedup disable`],
  ]
  return {
    range: () => {
      const [lo, hi] = [between(firstDayMs, newestMs), between(firstDayMs, newestMs)].sort((x, y) => x - y)
      return [text(lo ?? 0), text(hi ?? 0)]
    },
    change: (table, views) => pick(changes)(table, pick(views).name),
  }
}

function ofLive(change: string, { pick }: Random): string {
  const [, view] = /^refresh materialized view (\S+)/.exec(change) ?? []
  return view === undefined ? change : `refresh live view ${view} ${pick(['', '', 'full'])}`
}

/** Statements that do not apply to the table as it happens to be. */
function expectAllowed(change: string, error: unknown): void {
  const message = error instanceof Error ? error.message : String(error)
  expect(message, change).toMatch(/partition|detach|attach|deduplicat|expected, found|Invalid column/i)
}

async function expectSame(view: View, range: readonly [string, string], after: string): Promise<void> {
  const expected = await expectedRows(view)
  expect(await rowsOf(`select * from ${view.name}`), `${view.name} after ${after}`).toEqual(expected)
  if (expected[0] === 'unknown column') return
  const [lo, hi] = range.map((ts) => ts.replace('Z', '000Z')) as [string, string]
  const within = expected.filter((row) => timeOf(row) >= lo && timeOf(row) < hi)
  const found = await rowsOf(`select * from ${view.name} where ts >= '${lo}' and ts < '${hi}'`)
  expect(found, `${view.name} from ${lo} to ${hi} after ${after}`).toEqual(within)
}

async function expectedRows({ query, start: from, frozen, rows }: View): Promise<readonly string[]> {
  const now = await rowsOf(from === null ? query : startingAt(query, from))
  if (now[0] === 'unknown column') return now
  return [...rows, ...now.filter((row) => !isWithin(row, frozen))].sort()
}

function startingAt(query: string, from: string): string {
  return query.replace(/ from (\w+) window/, ` from $1 where ts >= '${from}' window`)
}

/** Takes note of the rows that a change has frozen; `before` has the rows before it. */
async function noteFrozen(view: View, before: readonly string[]): Promise<void> {
  const [row] = await rowsOf(`select frozen_ranges from live_views() where view_name = '${view.name}'`)
  const [text = null]: (string | null)[] = JSON.parse(row ?? '[null]')
  const frozen = text === null ? [] : text.split(', ').map((range) => range.split('..') as [string, string])
  const isNew = JSON.stringify(frozen) !== JSON.stringify(view.frozen)
  view.frozen = frozen
  if (frozen.length === 0) view.rows = []
  else if (isNew) view.rows = before.filter((frozenRow) => isWithin(frozenRow, frozen))
}

function isWithin(row: string, ranges: View['frozen']): boolean {
  const ts = timeOf(row)
  return ranges.some(([lo, hi]) => lo <= ts && ts <= hi)
}

function timeOf(row: string): string {
  return /"(.*?)"/.exec(row)?.[1] ?? ''
}

/** Sorted; or `unknown column`. */
async function rowsOf(sql: string): Promise<readonly string[]> {
  try {
    const text = await client.rows(sql)
    return text
      .replaceAll(/(\d)\.0(?=[,\]])/g, '$1')
      .split(/(?<=\]),/)
      .filter((row) => row !== '')
      .sort()
  } catch (error) {
    // A dropped column stops the view as it stops its query.
    if (error instanceof Error && error.message.startsWith('Invalid column')) return ['unknown column']
    throw error
  }
}

test('rows with equal timestamps keep the order of the table', async () => {
  await client.rows('create table ties (ts timestamp, k symbol, x long) timestamp(ts) partition by day')
  await client.rows(
    'create live view tied flush every 1s start from beginning as select ts, k, x, lag(x) over (partition by k order by ts) p, sum(x) over (partition by k order by ts rows 2 preceding) s from ties',
  )
  const expectEqual = async (): Promise<void> =>
    expect(await client.rows('select * from tied')).toBe(
      await client.rows(
        'select ts, k, x, lag(x) over (partition by k order by ts) p, sum(x) over (partition by k order by ts rows 2 preceding) s from ties',
      ),
    )
  for (let round = 0; round < 6; round++) {
    await client.rows(
      `insert into ties select cast(((x * ${7 + round}) % 4) * 3600000000L as timestamp), case when x % 3 = 0 then 'a' else 'b' end, x + ${round * 100} from long_sequence(40)`,
    )
    await expectEqual()
    await client.rows(round % 2 === 0 ? 'checkpoint' : 'refresh live view tied')
    await expectEqual()
  }
  await client.rows('drop table ties cascade')
})

interface Story {
  readonly title: string
  readonly keys?: string
  readonly statements: readonly string[]
  /** The rows that the view has then. */
  readonly rows: readonly string[]
}

/** A row of key P is `P 1 09 5`: on 1 January, at nine, 5. */
const stories: readonly Story[] = [
  {
    title: 'rows after a dropped partition that all marks need',
    statements: ['P 1 09 1; P 2 09 2; Q 3 09 3', 'refresh', 'drop 2', 'P 4 09 4'],
    rows: ['P 1 09 1 null', 'P 2 09 2 1', 'Q 3 09 3 null', 'P 4 09 4 1'],
  },
  {
    title: 'a late row in frozen time is in the frames of later ones',
    statements: ['P 1 09 1; P 2 09 2', 'refresh', 'drop 1', 'R 2 08 3', 'R 3 09 4'],
    rows: ['P 1 09 1 null', 'P 2 09 2 1', 'R 3 09 4 3'],
  },
  {
    title: 'a dropped partition freezes rows with late rows in their frames',
    statements: ['P 1 09 1; P 2 09 2', 'refresh', 'P 3 09 3', 'refresh', 'R 2 08 4; R 3 08 5', 'drop 3'],
    rows: ['P 1 09 1 null', 'R 2 08 4 null', 'P 2 09 2 1', 'R 3 08 5 4', 'P 3 09 3 2'],
  },
  {
    title: 'rows after those that an upsert reaches',
    keys: 'dedup upsert keys(ts, k)',
    statements: [
      ...['P 1 07 7; P 1 08 8; P 1 09 1; P 2 09 2', 'refresh', 'P 3 09 3', 'refresh'],
      ...['P 1 09 6', 'R 2 08 4; R 3 08 5', 'refresh'],
    ],
    rows: ['P 1 07 7 null', 'P 1 08 8 7', 'P 1 09 6 8', 'R 2 08 4 null', 'P 2 09 2 6', 'R 3 08 5 4', 'P 3 09 3 2'],
  },
  {
    title: 'a dropped partition freezes rows that reach it since others were deleted',
    statements: ['P 1 09 1; P 2 09 2', 'refresh', 'P 3 09 3', 'delete 2', 'drop 1'],
    rows: ['P 1 09 1 null', 'P 3 09 3 1'],
  },
]

for (const [index, { title, keys = '', statements, rows }] of stories.entries())
  test(title, async () => {
    const [table, view] = [`story${index}`, `told${index}`]
    await client.rows(`create table ${table} (ts timestamp, k symbol, x long) timestamp(ts) partition by day ${keys}`)
    await client.rows(
      `create live view ${view} flush every 60m start from beginning as select ts, k, x, lag(x) over (partition by k order by ts) p from ${table}`,
    )
    // The next automatic refresh is after an hour.
    await client.rows(`refresh live view ${view}`)
    for (const statement of statements) {
      const [verb, day] = statement.split(' ')
      if (verb === 'refresh') await client.rows(`refresh live view ${view}`)
      else if (verb === 'drop') await client.rows(`alter table ${table} drop partition list '2024-01-0${day}'`)
      else if (verb === 'delete') await client.rows(`delete from ${table} where ts in '2024-01-0${day}'`)
      else {
        const values = statement.split('; ').map((row) => {
          const [k, d, hour, x] = row.split(' ')
          return `('2024-01-0${d}T${hour}', '${k}', ${x})`
        })
        await client.rows(`insert into ${table} values ${values.join(', ')}`)
        await client.rows('checkpoint')
      }
    }
    const expected = rows.map((row) => {
      const [k, d, hour, x, p] = row.split(' ')
      return `["2024-01-0${d}T${hour}:00:00.000000Z","${k}",${x},${p}]`
    })
    expect(await client.rows(`select * from ${view}`)).toBe(expected.join(','))
    await client.rows(`drop table ${table} cascade`)
  })
