// Goal: an aggregation without GROUP BY returns exactly one row, also if no row matches a condition on a long table or
// a join with an empty table. With GROUP BY it then returns no row.

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Engine } from '../../../engine/engine.js'
import { openTestEngine, rowsFrom } from '../../support/test-engine.js'

const directory = mkdtempSync(join(tmpdir(), 'no-rows-'))
let engine: Engine
beforeAll(async () => {
  engine = await openTestEngine(directory, { queryThreads: 2 })
  await rowsFrom(engine, 'create table empty (v long, ts timestamp) timestamp(ts)')
  await rowsFrom(
    engine,
    `create table t as (select x id, (x * 7919) % 1000003 k, timestamp_sequence(0, 1000000) ts from long_sequence(400000))
      timestamp(ts) partition by day`,
  )
})
afterAll(async () => {
  await engine.close()
  rmSync(directory, { recursive: true })
})

test.each([
  ["select count() from t where k::varchar like 'zzz%'", [[0n]]],
  ["select count(), sum(id) from t where concat('t', k) like 'zzz%'", [[0n, null]]],
  ['select count() from empty a join t b on a.v = b.id', [[0n]]],
  ['select count(), sum(b.k) from t b join empty a on a.v = b.k', [[0n, null]]],
  ["select k, count() from t where k::varchar like 'zzz%' group by k", []],
])('%s', async (sql, rows) => {
  expect(await rowsFrom(engine, sql)).toEqual(rows)
})
