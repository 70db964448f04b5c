// Goal: DROP and TRUNCATE of a table do not deadlock with an UPDATE or DELETE of the table that holds a snapshot and
// waits for the flush of its rows. DROP and TRUNCATE succeed; the other statement succeeds or ends with an error.

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { executeOptions, openTestEngine, rowsFrom } from '../../support/test-engine.js'

test.each([
  ['update t set v = v + 1 where v in (select v from t)', 'drop table t'],
  ['delete from t where v in (select max(v) from t)', 'drop table t'],
  ['update t set v = o.v from t o where o.v = t.v', 'truncate table t'],
])('%s, then %s', async (change, removal) => {
  const directory = mkdtempSync(join(tmpdir(), 'penstock-dropped-'))
  const engine = await openTestEngine(directory, { queryThreads: 1 })
  const run = (sql: string): Promise<unknown> => engine.execute(sql, executeOptions)
  try {
    await run('create table t (ts timestamp, v long) timestamp(ts) partition by day')
    await run('insert into t select (x * 1000000)::timestamp, x from long_sequence(1000)')
    const [changed, removed] = await Promise.allSettled([run(change), run(removal)])
    expect(removed?.status).toBe('fulfilled')
    if (changed?.status === 'rejected') expect(String(changed.reason)).toMatch(/does not exist|dropped|changed/)
    const left = await rowsFrom(engine, "select count() from tables() where table_name = 't'")
    expect(left).toEqual([[removal.startsWith('drop') ? 0n : 1n]])
  } finally {
    await engine.close()
    rmSync(directory, { recursive: true })
  }
})
