// Goal: casts of fractions to integers round for clients of the PostgreSQL protocol and truncate for clients of HTTP,
// for constants and columns alike.

import { expect, test } from 'vitest'
import { nativeDialect, postgresDialect } from '../../../../engine/sql/dialect.js'
import { MemoryDatabase } from '../../../support/memory-database.js'

function rows(protocol: 'pg' | 'http', sql: string): unknown[][] {
  const database = new MemoryDatabase()
  database.run('create table t (ts timestamp, d double, n decimal(20,4))')
  database.run("insert into t values ('2024-01-01', 2.5, 2.5m), ('2024-01-02', -3.5, -2.5m)")
  database.dialect = protocol === 'pg' ? postgresDialect : nativeDialect
  return database.run(sql).rows.map((row) => row.map((value) => Number(value)))
}

test.each([
  ['select 2.5::int, 3.5::short, cast(2.7 as long)', [[3, 4, 3]], [[2, 3, 2]]],
  ['select 2.5::double::int, 3.5::double::long', [[2, 4]], [[2, 3]]],
  ['select 2.5::numeric::int, 2.5m::long', [[3, 3]], [[2, 2]]],
  [
    'select d::int, d::long, d::short from t',
    [
      [2, 2, 2],
      [-4, -4, -4],
    ],
    [
      [2, 2, 2],
      [-3, -3, -3],
    ],
  ],
  [
    'select n::int, n::long from t',
    [
      [3, 3],
      [-3, -3],
    ],
    [
      [2, 2],
      [-2, -2],
    ],
  ],
])('%s', (sql, overWire, overHttp) => {
  expect(rows('pg', sql)).toEqual(overWire)
  expect(rows('http', sql)).toEqual(overHttp)
})
