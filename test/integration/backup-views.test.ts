// Goal: a backup has materialized and live views with what they have outlived. Method: views over a table lose a
// partition of it; the restored server gives the same answers as the first one, now and after the same further
// statements, and its refreshes go on by themselves.

import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { command, TestServer } from '../support/server.js'

const settings = ['memory.bytes=512m', 'query.threads=1']
const server = new TestServer(settings)
const copy = new TestServer(settings)
const folder = mkdtempSync(join(tmpdir(), 'penstock-backup-views-'))
const backup = join(folder, 'backup')

const views = ['hours', 'days', 'lags', 'sums', 'means'] as const
const questions = [
  ...views.map((view) => `select * from ${view} order by 1, 2, 3`),
  'select view_name, base_table_name, sealed_buckets from materialized_views() order by 1',
  'select view_name, view_sql, flush_every_interval, frozen_ranges from live_views() order by 1',
  ...['show create materialized view hours', 'show create live view sums'],
  'select ts, k, sum(x), max(x) from tides sample by 1d order by 1, 2',
]

beforeAll(() => server.start())
afterAll(async () => {
  await server.remove()
  await copy.remove()
  rmSync(folder, { recursive: true, force: true })
})

async function run(of: TestServer, statements: readonly string[]): Promise<void> {
  for (const statement of statements) await of.rows(statement)
}

async function answers(of: TestServer): Promise<unknown[]> {
  const all: unknown[] = []
  for (const question of questions) all.push(await of.rows(question))
  return all
}

function tool(args: readonly string[]): void {
  const env = { ...process.env, PENSTOCK_URL: `http://${server.address('http')}` }
  const { status, stderr } = spawnSync(process.execPath, [command, ...args], { env, encoding: 'utf8' })
  expect({ status, stderr }, args.join(' ')).toEqual({ status: 0, stderr: '' })
}

test('views of a restored backup answer as before, and are refreshed', async () => {
  await run(server, [
    'create table tides (ts timestamp, k symbol, x long) timestamp(ts) partition by day',
    'create materialized view hours as (select ts, k, sum(x) x, avg(x) mean from tides sample by 1h)',
    'create materialized view days refresh manual as (select ts, k, max(x) x from hours sample by 1d)',
    'create live view lags flush every 100ms start from beginning as select ts, k, lag(x) over (partition by k order by ts) p from tides',
    "create live view sums flush every 1m start from '2024-01-01T06:00' as select ts, k, sum(x) over w s from tides window w as (partition by k order by ts anchor daily '06:00')",
    'create live view means flush every 1s start from beginning as select ts, k, avg(x) over (partition by k order by ts rows 3 preceding) m from hours',
    "insert into tides select dateadd('m', x::int * 30, '2024-01-01'), case when x % 3 = 0 then 'A' else 'B' end, x from long_sequence(200)",
    ...['refresh materialized view hours', 'refresh materialized view days', 'refresh live view lags'],
    "alter table tides drop partition list '2024-01-02'",
    // Late, and in memory only.
    "insert into tides values ('2024-01-03T07:10', 'A', 1000), ('2024-01-06T01:00', 'B', 2000)",
  ])
  const before = await answers(server)
  tool(['backup', backup, '-d', server.root])
  tool(['restore', backup, '-d', copy.root])
  await copy.start()
  expect(await answers(copy)).toEqual(before)
  const frozen = await copy.rows('select count() from live_views() where frozen_ranges is not null')
  const sealed = await copy.rows('select count() from materialized_views() where sealed_buckets is not null')
  expect([frozen, sealed]).toEqual([[[2]], [[1]]])

  const further = [
    "insert into tides values ('2024-01-01T07:20', 'A', 3000), ('2024-01-05T23:00', 'A', 4000), ('2024-01-06T02:00', 'B', 5000)",
    "update tides set x = 7 where ts = '2024-01-04T00:00'",
    "alter table tides drop partition list '2024-01-03'",
    'checkpoint',
  ]
  for (const of of [server, copy]) await run(of, further)
  const after = await answers(server)
  expect(after).not.toEqual(before)
  expect(await answers(copy)).toEqual(after)
  for (const view of ['hours', 'lags', 'means']) {
    const [whole] = await copy.rows(`select count(), max(ts) from ${view}`)
    await copy.untilRows(`select /*+ view_stored */ count(), max(ts) from ${view}`, [whole ?? []])
  }
}, 120_000)
