// Goal: the result of `select max(ts) from t`, where ts is the designated timestamp of t (the time column by which the
// table is ordered), has this column as its own designated timestamp. The same holds for min, first and last. A result
// with several columns, or from a sub-query or a join, has no designated timestamp.

import { expect, test } from 'vitest'
import { MemoryDatabase } from '../../../support/memory-database.js'

test.each([
  ['select max(ts) from t', 0],
  ['select first(ts) from t where v > 1', 0],
  ['select max(ts), count() from t', -1],
  ['select max(ts) from (select * from t)', -1],
  ['with q as (select * from t) select min(ts) from q', -1],
  ['select max(a.ts) from t a join t b on a.v = b.v', -1],
])('%s', (sql, index) => {
  const database = new MemoryDatabase()
  database.run('create table t (ts timestamp, v long) timestamp(ts) partition by day')
  expect(database.run(sql).timestampIndex).toBe(index)
})
