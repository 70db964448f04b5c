// Goal: query_progress() shows how many rows a running statement has read, of how many. The first number never exceeds
// the second, which is the number of rows of the scans after pruning. A statement that has ended is not listed.

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Engine, ExecuteOptions } from '../../../engine/engine.js'
import { openTestEngine, rowsFrom } from '../../support/test-engine.js'

const directory = mkdtempSync(join(tmpdir(), 'progress-'))
const rows = 1_500_000
const few = 1000
let engine: Engine
beforeAll(async () => {
  engine = await openTestEngine(directory, { queryThreads: 2 })
  await run(`create table t as (select x v, rnd_symbol('a', 'b') s, timestamp_sequence(0, 1000000) ts
    from long_sequence(${rows})) timestamp(ts) partition by day`)
  await run(`create table few as (select x v from long_sequence(${few}))`)
})
afterAll(async () => {
  await engine.close()
  rmSync(directory, { recursive: true })
})

function run(sql: string, options: Partial<ExecuteOptions> = {}): Promise<unknown[]> {
  return rowsFrom(engine, sql, options)
}

interface Seen {
  readonly read: number
  readonly total: number
}

const others = "query not like '%query_progress%'"

/** Runs the statement until something was read, and returns the reports of its progress until then. */
async function reportsOf(sql: string): Promise<Seen[]> {
  const abort = new AbortController()
  let isOver = false
  const running = run(sql, { signal: abort.signal }).then(
    () => 'the statement has ended before it reported',
    (error: Error) => error.message,
  )
  void running.then(() => (isOver = true))
  const seen: Seen[] = []
  while (!isOver && (seen.at(-1)?.read ?? 0) === 0) {
    await pause()
    const [row] = await run(`select rows_read, rows_total from query_progress() where ${others} and rows_read >= 0`)
    const [read, total] = (row ?? []) as bigint[]
    if (read !== undefined && Number(read) !== seen.at(-1)?.read)
      seen.push({ read: Number(read), total: Number(total) })
  }
  abort.abort()
  expect(await running).toBe('the client disconnected')
  while ((await run(`select query from query_progress() where ${others}`)).length > 0) await pause()
  return seen
}

function pause(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, 20))
}

const hash = (column: string): string => `${'md5('.repeat(8)}${column}::string${')'.repeat(8)}`
const slow = `${hash('v')} = 'x'`
/** Statement, and the rows of its scans. */
const statements: [string, string, number][] = [
  ['a scan', `select v from t where ${slow}`, rows],
  ['a scan in order', `select v from t where ${slow} order by ts desc limit 10`, rows],
  ['groups', `select s, count() from t where ${slow} group by s`, rows],
  ['many groups', `select ${hash('v')} h, count() from t group by h`, rows],
  ['sorted rows', `select v from t where ${slow} order by v limit 5`, rows],
  [
    'a join',
    `select count() from t left join few on t.v = few.v where ${hash('concat(t.v, few.v)')} = 'x'`,
    rows + few,
  ],
  ['a sub-query', `select count() from few where v > (select count() from t where ${slow})`, rows + few],
  ['a time range', `select s, count() from t where ts in '1970-01-03;9d' and ${slow} group by s`, 9 * 86_400],
]

test.each(statements)('%s', async (_, sql, total) => {
  const seen = await reportsOf(sql)
  for (const { read } of seen) expect(read).toBeLessThanOrEqual(total)
  expect(new Set(seen.map((report) => report.total))).toEqual(new Set([total]))
})

test('a statement that has not reported yet has no numbers', async () => {
  expect(await run('select rows_read, rows_total, query from query_progress()')).toEqual([
    [null, null, 'select rows_read, rows_total, query from query_progress()'],
  ])
})
