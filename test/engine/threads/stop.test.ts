// Goal: a cancelled statement, or one past its deadline, ends soon whatever it is doing: within a single batch, in a
// job of the writer, in an EXPLAIN. It changes nothing, is no longer listed, and does not affect later statements.

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Engine, ExecuteOptions } from '../../../engine/engine.js'
import { openTestEngine, rowsFrom } from '../../support/test-engine.js'

const directory = mkdtempSync(join(tmpdir(), 'stop-'))
let engine: Engine
beforeAll(async () => {
  engine = await openTestEngine(directory, { queryThreads: 2 })
  await run(`create table t as (select x v, rnd_str(20, 20, 0) s, timestamp_sequence(0, 1000000) ts
    from long_sequence(20000)) timestamp(ts) partition by day`)
})
afterAll(async () => {
  await engine.close()
  rmSync(directory, { recursive: true })
})

function run(sql: string, options: Partial<ExecuteOptions> = {}): Promise<unknown[]> {
  return rowsFrom(engine, sql, options)
}

/** What runs besides this query. */
async function underWay(): Promise<unknown[]> {
  return run("select query_id, query from query_activity() where query not like '%query_activity%'")
}

async function until(condition: () => Promise<boolean>): Promise<void> {
  while (!(await condition())) await new Promise((resolve) => setTimeout(resolve, 5))
}

// Each would take minutes; a single batch of the functions' rows seconds.
const pairs = 't a cross join t b'
const forever: [string, string][] = [
  ['functions over a batch', 'select max(length(rnd_str(4000000, 4000000, 0))) from long_sequence(100000)'],
  ['a scan', `select count() from ${pairs} where a.s || b.s = 'x'`],
  ['EXPLAIN ANALYZE', `explain analyze select count() from ${pairs} where a.s || b.s = 'x'`],
  ['UPDATE', 'update t set v = length(rnd_str(4000000, 4000000, 0))'],
  ['UPDATE .. FROM', `update t set v = o.n from (select a.v n from ${pairs} where a.s || b.s = 'x') o where t.v = o.n`],
  ['DELETE', `delete from t where v > (select count() from ${pairs} where a.s || b.s = 'x')`],
  ['DELETE row by row', 'delete from t where length(rnd_str(4000000, 4000000, 0)) = v'],
]

describe.each(forever)('%s', (_, sql) => {
  test('ends when its client goes', async () => {
    const abort = new AbortController()
    const running = run(sql, { signal: abort.signal })
    running.catch(() => {})
    await until(async () => (await underWay()).length > 0)
    abort.abort()
    await expect(running).rejects.toThrow('the client disconnected')
    await until(async () => (await underWay()).length === 0)
  })

  test('ends when its time is over', async () => {
    await expect(run(sql, { timeoutMs: 30 })).rejects.toThrow('timeout')
    await until(async () => (await underWay()).length === 0)
  })

  test('ends by CANCEL QUERY', async () => {
    const running = run(sql)
    running.catch(() => {})
    await until(async () => (await underWay()).length > 0)
    const [[id]] = (await underWay()) as [[bigint]]
    await run(`cancel query ${id}`)
    await expect(running).rejects.toThrow('cancelled by user')
    await until(async () => (await underWay()).length === 0)
  })
})

test('hundreds of long texts in one row leave the main thread to others', async () => {
  const strings = Array.from({ length: 300 }, (_, index) => `length(md5(rpad('x', 8000000, '${index}')))`)
  let turns = 0
  const turn = setInterval(() => turns++, 5)
  await expect(run(`select ${strings.join('+')}`, { timeoutMs: 400 })).rejects.toThrow('timeout')
  clearInterval(turn)
  // The whole takes seconds; on the main thread nothing else would have its turn in them.
  expect(turns).toBeGreaterThan(10)
})

test('nothing was changed, and changes go on', async () => {
  expect(await run('select count(), sum(v) from t')).toEqual([[20_000n, 200_010_000n]])
  await run('update t set v = v + 1')
  await run('alter table t alter column s type symbol')
  expect(await run('select count(), sum(v), count(s) from t')).toEqual([[20_000n, 200_030_000n, 20_000n]])
})
