// Goal: reading a live view always gives the result of its query over the rows of its table from START FROM on, whatever
// has changed since its rows were stored. Rows that a dropped partition reached stay as they were before. Method: random
// changes of the table (late rows, ties, updates, deletes, DEDUP, dropped and detached partitions, changes of columns,
// flushes) and refreshes in any order. After each of them every view is compared with its query.
//
//   VIEW_SEED=7 npx vitest run test/engine/views/live-views.test.ts     replays one seed
//   VIEW_SEEDS=50 VIEW_STEPS=200 npx vitest ...                         a long run

import { afterAll, beforeAll, expect, test } from 'vitest'
import { type EngineClient, engineClient } from '../../sql/clients.js'
import { createRandom, type Random } from '../../support/random.js'
import { randomChanges } from './random-changes.js'

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
    const changes = randomChanges(random)
    const table = `live${seed}`
    await client.rows(
      `create table ${table} (ts timestamp, sym symbol, d double, n long, s varchar) timestamp(ts) partition by ${random.pick(['hour', 'day'])}`,
    )
    await client.rows(
      `create materialized view ${table}hours refresh manual deferred as (select ts, sym, count() cnt from ${table} sample by 1h)`,
    )
    const views = queries.map(([text, from], index): View => {
      const query = text.replaceAll('#', table)
      return { ...{ name: `${table}v${index}`, query, start: from }, ...{ frozen: [], rows: [] } }
    })
    for (const { name, query, start: from } of views)
      await client.rows(
        `create live view ${name} flush every ${random.pick(['100ms', '1s', '1m'])} start from ${from === null ? 'beginning' : `'${from}'`} as ${query}`,
      )
    for (let step = 0; step < steps; step++) {
      for (const made of changes.change(table, views)) {
        const change = ofLive(made, random)
        const before = await Promise.all(views.map(expectedRows))
        await client.rows(change).catch((error: unknown) => expectAllowed(change, error))
        for (const [index, view] of views.entries()) {
          await noteFrozen(view, before[index] ?? [])
          await expectSame(view, changes.range(), `${step}: ${change}`)
        }
      }
    }
    await client.rows(`drop table ${table} cascade`)
  }, 600_000)
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
