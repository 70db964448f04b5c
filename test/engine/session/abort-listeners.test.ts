// Goal: one signal may serve any number of statements: each stops listening to it when it ends, however it ends.

import { getEventListeners } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { TimeoutError } from '../../../engine/base/errors.js'
import { openTestEngine, rowsFrom } from '../../support/test-engine.js'

test('statements leave no listeners on their signal', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'abort-listeners-'))
  const engine = await openTestEngine(directory)
  const { signal } = new AbortController()
  const statements = [
    'create table t (ts timestamp, x long) timestamp(ts) partition by day dedup upsert keys(ts)',
    'insert into t select x::timestamp, x from long_sequence(1000)',
    'insert into t select x::timestamp, x from long_sequence(10) on conflict (ts) do update set x = excluded.x',
    'create table u (ts timestamp, x long) timestamp(ts) partition by day',
    'insert into u select * from t',
    'with gone as (delete from u where x = 5 returning x) select count() from gone',
    'explain analyze select sum(x) from t',
    'select sum(x), count_distinct(x) from t',
    'delete from t where x = 7',
  ]
  for (const sql of statements) {
    await rowsFrom(engine, sql, { signal })
    expect([sql, getEventListeners(signal, 'abort')]).toEqual([sql, []])
  }
  const endless = 'select count() from long_sequence(1_000_000_000_000) where x % 7 = 8'
  await expect(rowsFrom(engine, endless, { signal, timeoutMs: 20 })).rejects.toThrow(TimeoutError)
  expect(getEventListeners(signal, 'abort')).toEqual([])
  await engine.close()
  rmSync(directory, { recursive: true })
}, 60_000)
