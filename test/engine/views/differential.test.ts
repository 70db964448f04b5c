// Goal: reading a materialized view always gives the result of its query over the base table, whatever has changed
// since its time buckets were stored. Method: random changes of the base table (late rows, updates, deletes, DEDUP,
// dropped and detached partitions, changes of columns, flushes) and refreshes in any order; after each of them every
// view is compared with its query.
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
const steps = Number(process.env['VIEW_STEPS'] ?? 25)

let client: EngineClient

beforeAll(async () => {
  client = await engineClient(true)
})

afterAll(() => client.close())

interface View {
  readonly name: string
  readonly query: string
}

const queries = [
  'select ts, sym, first(d) o, last(d) c, min(d) lo, max(d) hi, sum(n) sn, count() cnt from # sample by 1h',
  "select ts, count() cnt, max(n) mx, count_distinct(s) cd from # where n > 100 sample by 1d align to calendar time zone 'Europe/Berlin'",
  "select ts, s, max(d) md, min(n) mn from # sample by 15m align to calendar with offset '00:05'",
  "select ts, sym, max(d) md, count() c from # sample by 2h align to calendar time zone 'Europe/Berlin'",
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
    const views = queries.map((text, index): View => ({ name: `${table}v${index}`, query: text.replace('#', table) }))
    for (const { name, query } of views)
      await client.rows(`create materialized view ${name} ${random.pick(strategies)} as (${query})`)
    for (let step = 0; step < steps; step++) {
      for (const change of changes.change(table, views)) {
        await client.rows(change).catch((error: unknown) => expectAllowed(change, error))
        for (const view of views) await expectSame(view, changes, `${step}: ${change}`)
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

async function expectSame({ name, query }: View, changes: RandomChanges, after: string): Promise<void> {
  const [lo, hi] = changes.range()
  const where = `where ts >= '${lo}' and ts < '${hi}'`
  // Groups of a bucket come in the order in which they were stored.
  const rows = async (from: string): Promise<string[]> =>
    (await answer(`select * from ${from} x`)).split(/(?<=\]),/).sort()
  const found = await rows(name)
  expect(found, `${name} after ${after}`).toEqual(await rows(`(${query})`))
  const counts = 'select count(), min(ts), max(ts) from'
  const some = await answer(`${counts} ${name} ${where}`)
  expect(some, `${name} ${where} after ${after}`).toBe(await answer(`${counts} (${query}) ${where}`))
}

/** The rows, or `unknown column`: a dropped column stops the view as it stops its query. */
async function answer(sql: string): Promise<string> {
  try {
    return await client.rows(sql)
  } catch (error) {
    if (error instanceof Error && error.message.startsWith('Invalid column')) return 'unknown column'
    throw error
  }
}
