// Goal: reading a materialized view always gives the result of its query over the base table, whatever has changed
// since its time buckets were stored. A bucket that has lost rows to DROP PARTITION is sealed: it stays as it was
// before, apart from late rows, which are added if the view's aggregates combine and the table has no DEDUP. Method:
// random changes of the base table (late rows, updates, deletes, DEDUP, dropped and detached partitions, changes of
// columns, flushes) and refreshes in any order. After each of them every view is compared with its query. Rows in sealed
// buckets are compared with the result of the query before the bucket was sealed; or, if late rows are added, with its
// result over a second table, which keeps the rows that were dropped and gets those that are late.
//
//   VIEW_SEED=7 npx vitest run test/engine/views/differential.test.ts     replays one seed
//   VIEW_SEEDS=50 VIEW_STEPS=200 npx vitest ...                           a long run

import { afterAll, beforeAll, expect, test } from 'vitest'
import { type EngineClient, engineClient } from '../../sql/clients.js'
import { createRandom } from '../../support/random.js'
import { type RandomChanges, randomChanges } from './random-changes.js'

const only = process.env['VIEW_SEED']
const seeds = only === undefined ? Number(process.env['VIEW_SEEDS'] ?? 2) : 1
const first = Number(only ?? 1)
const steps = Number(process.env['VIEW_STEPS'] ?? 18)

let client: EngineClient

beforeAll(async () => {
  client = await engineClient(true, 'off')
})

afterAll(() => client.close())

interface View {
  readonly name: string
  readonly query: string
  readonly zoned: boolean
  /** Time ranges of sealed buckets, as text, and the rows in them. */
  sealed: readonly (readonly [string, string])[]
  frozen: readonly string[]
  /** The rows of sealed buckets, if late rows are added to them. */
  readonly kept: string | null
}

/** The views whose sealed buckets get late rows. */
const adding: ReadonlySet<number> = new Set([0, 1, 2, 3, 9, 10])

const queries = [
  'select ts, sym, first(d) o, last(d) c, min(d) lo, max(d) hi, sum(n) sn, count() cnt from # sample by 1h',
  "select ts, count() cnt, max(n) mx, count_distinct(s) cd from # where n > 100 sample by 1d align to calendar time zone 'Europe/Berlin'",
  "select ts, s, max(d) md, min(n) mn from # sample by 15m align to calendar with offset '00:05'",
  "select ts, sym, max(d) md, count() c from # sample by 2h align to calendar time zone 'Europe/Berlin'",
  // Joins with tables that do not change.
  'select b.ts, l.label, count() cnt, max(b.n) mx from # b join #labels l on b.sym = l.sym sample by 30m',
  'select b.ts, b.sym, sum(b.n * r.rate) worth, max(r.ts) newest from # b asof join #rates r on sym sample by 2h',
  // Views over views: hours, parts of days, days and weeks.
  'select ts, sym, min(lo) lo, max(hi) hi, sum(sn) sn, sum(cnt) cnt from #v0 sample by 6h',
  "select ts, max(hi) hi, sum(cnt) cnt from #v0 sample by 1d align to calendar time zone 'Europe/Berlin'",
  "select ts, max(hi) hi, sum(cnt) cnt from #v7 sample by 1w align to calendar time zone 'Europe/Berlin'",
  // Which states are stored depends on the type of n.
  'select ts, sym, avg(n) mean, round(stddev(n), 3) dev, avg(d) md from # sample by 3h',
  'select ts, count_distinct(n) kn, count(distinct s) * 2 ks, median(d) mid, percentile_disc(n, 0.8) most, min(s) s0, last(sym) ls, first(s) fs, avg(d::decimal(18, 2)) md, bool_or(n > 500) b from # sample by 90m',
]
const strategies = ['', 'refresh manual', 'refresh manual deferred', 'refresh immediate period (sample by interval)']

for (let seed = first; seed < first + seeds; seed++) {
  test(`views are their queries [seed=${seed}]`, async () => {
    const random = createRandom(seed)
    const changes = randomChanges(random)
    const table = `base${seed}`
    const unit = random.pick(['hour', 'day', 'month'])
    await client.rows(
      `create table ${table} (ts timestamp, sym symbol, d double, n long, s varchar) timestamp(ts) partition by ${unit}`,
    )
    await client.rows(`create table ${table}labels as (select cast('A' as symbol) sym, 'first' label)`)
    await client.rows(
      `create table ${table}rates as (select timestamp_sequence('2024-03-30', 3600000000L) ts, cast(case when x % 3 = 0 then 'A' else 'B' end as symbol) sym, x rate from long_sequence(90)) timestamp(ts) partition by day`,
    )
    const views = queries.map(
      (text, index): View => ({
        ...{ name: `${table}v${index}`, query: text.replaceAll('#', table), zoned: text.includes('zone') },
        ...{ sealed: [], frozen: [], kept: adding.has(index) ? `${table}kept${index}` : null },
      }),
    )
    const columns = 'ts timestamp, sym symbol, d double, n long, s varchar'
    for (const name of [`${table}before`, ...views.flatMap(({ kept }) => kept ?? [])])
      await client.rows(`create table ${name} (${columns}) timestamp(ts) partition by month`)
    for (const { name, query } of views)
      await client.rows(`create materialized view ${name} ${random.pick(strategies)} as (${query})`)
    for (let step = 0; step < steps; step++) {
      for (const change of changes.change(table, views)) {
        const before = await Promise.all(views.map((view) => expectedRows(view, table)))
        if (change.includes('drop partition')) await copyRows(table, `${table}before`)
        await client.rows(change).catch((error: unknown) => expectAllowed(change, error))
        if (change.startsWith('insert into')) await keepLate(views, change, table)
        for (const [index, view] of views.entries()) await noteSealed(view, before[index] ?? [], table)
        for (const view of views) await expectSame(view, table, changes, `${step}: ${change}`)
      }
    }
    await client.rows(`drop table ${table} cascade`)
  }, 600_000)
}

/** Statements that do not apply to the table as it happens to be. */
function expectAllowed(change: string, error: unknown): void {
  const message = error instanceof Error ? error.message : String(error)
  expect(message, change).toMatch(/partition|detach|attach|deduplicat|expected, found/i)
}

async function expectSame(view: View, table: string, changes: RandomChanges, after: string): Promise<void> {
  const { name } = view
  const [lo = '', hi = ''] = changes.range().map((ts) => ts.replace('Z', '000Z'))
  const expected = await expectedRows(view, table)
  expect(await rowsOf(`select * from ${name}`), `${name} after ${after}`).toEqual(expected)
  if (expected[0] === 'unknown column') return
  const times = expected.map(timeOf).filter((ts) => ts >= lo && ts < hi)
  const found = await rowsOf(`select ts, ts from ${name} where ts >= '${lo}' and ts < '${hi}'`)
  expect(found.map(timeOf), `${name} from ${lo} to ${hi} after ${after}`).toEqual(times.sort())
}

async function expectedRows({ query, sealed, frozen, kept }: View, table: string): Promise<readonly string[]> {
  const rows = await rowsOf(query)
  if (rows[0] === 'unknown column') return rows
  const old = kept === null ? frozen : sealed.length === 0 ? [] : await rowsOf(query.replaceAll(table, kept))
  return [...old, ...rows.filter((row) => !isWithin(row, sealed))].sort()
}

async function copyRows(from: string, to: string): Promise<void> {
  await client.rows(`truncate table ${to}`)
  await client.rows(`insert into ${to} select ts, sym, d, n, s from ${from}`)
}

/** Adds the inserted rows to those of sealed buckets. */
async function keepLate(views: readonly View[], insert: string, table: string): Promise<void> {
  const [dedup = ''] = await rowsOf(`select dedup, 1 from tables() where table_name = '${table}'`)
  if (dedup.includes('true')) return
  for (const { kept, sealed } of views) {
    if (kept === null) continue
    const late = (insert.match(/\(''?.*?\)/g) ?? []).filter((row) => isWithin(`"${stampOf(row)}"`, sealed))
    if (late.length > 0) await client.rows(`insert into ${kept} values ${late.join(', ')}`)
  }
}

/** The timestamp of a row of VALUES, as results show it. */
function stampOf(row: string): string {
  return (/'(.*?)'/.exec(row)?.[1] ?? '').replace('Z', '000Z')
}

/** Takes note of the buckets that were sealed by a change; `before` has the rows before it. */
async function noteSealed(view: View, before: readonly string[], table: string): Promise<void> {
  const rows = await rowsOf(`select sealed_buckets from materialized_views() where view_name = '${view.name}'`)
  const [text = null]: (string | null)[] = JSON.parse(rows[0] ?? '[null]')
  const sealed = text === null ? [] : text.split(', ').map((range) => range.split('..') as [string, string])
  const isNew = JSON.stringify(sealed) !== JSON.stringify(view.sealed)
  if (view.kept !== null && isNew) await keepSealed(view.kept, view.sealed, sealed, table)
  view.sealed = sealed
  if (sealed.length === 0) view.frozen = []
  else if (isNew) view.frozen = before.filter((row) => isWithin(row, sealed))
  const newest = timeOf((await rowsOf(`select max(ts), 1 from ${table}`))[0] ?? '')
  // Only the newest bucket may lose rows: it is at most a day long, or near to a change of the UTC offset.
  if (isNew && !view.zoned && sealed.length > 0) {
    const day = new Date(Date.parse(newest) - 24 * 3600 * 1000).toISOString().replace('Z', '000Z')
    const older = before.filter((row) => timeOf(row) < day)
    expect(await rowsOf(`select * from ${view.name} where ts < '${day}'`), view.name).toEqual(older)
  }
}

/** Adds the rows of buckets that were sealed. */
async function keepSealed(kept: string, before: View['sealed'], now: View['sealed'], table: string): Promise<void> {
  if (now.length === 0) {
    await client.rows(`truncate table ${kept}`)
    return
  }
  const within = (ranges: View['sealed']): string =>
    ranges.map(([lo, hi]) => `ts between '${lo}' and '${hi}'`).join(' or ') || 'false'
  const added = `(${within(now)}) and not (${within(before)})`
  await client.rows(`insert into ${kept} select * from ${table}before where ${added}`)
}

function isWithin(row: string, ranges: View['sealed']): boolean {
  const ts = timeOf(row)
  return ranges.some(([lo, hi]) => lo <= ts && ts <= hi)
}

function timeOf(row: string): string {
  return /"(.*?)"/.exec(row)?.[1] ?? ''
}

/** The rows, sorted, because groups of a bucket come in the order in which they were stored; or `unknown column`. */
async function rowsOf(sql: string): Promise<readonly string[]> {
  try {
    return (
      (await client.rows(sql))
        // Sums of n are DOUBLE while n is.
        .replaceAll(/(\d)\.0(?=[,\]])/g, '$1')
        .split(/(?<=\]),/)
        .filter((row) => row !== '')
        .sort()
    )
  } catch (error) {
    // A dropped column stops the view as it stops its query.
    if (error instanceof Error && error.message.startsWith('Invalid column')) return ['unknown column']
    throw error
  }
}
