// Goal: too few values in FILL give the error message and position that clients of this dialect expect. Some of these
// positions are -1 (unknown). The PostgreSQL protocol cannot express that, so the cases are not in a golden SQL file,
// which runs over all protocols.

import { expect, test } from 'vitest'
import { MemoryDatabase } from '../../../support/memory-database.js'

test.each([
  ['fill(0)', -1, 'not enough fill values'],
  ["fill(0) align to calendar time zone 'UTC'", -1, 'not enough fill values'],
  ["fill(0) align to calendar with offset '00:15'", 51, /^insufficient fill values .* 2 values but only 1 provided$/],
  ['fill(0) align to first observation', 51, /^insufficient/],
])('%s', (fill, position, message) => {
  const database = new MemoryDatabase()
  database.run('create table t (ts timestamp, v long, w long) timestamp(ts) partition by day')
  const sql = `select ts, sum(v), min(w) from t sample by 1h ${fill}`
  expect(() => database.run(sql)).toThrow(
    expect.objectContaining({ position, message: expect.stringMatching(message) }),
  )
})
