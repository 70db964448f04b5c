// Goal: avg() of DECIMAL values has 18 decimal places for clients of the PostgreSQL protocol (fewer if the type has no
// room for them): in groups, over windows, with DISTINCT and with FILTER. For clients of HTTP it has the decimal places
// of its values. Also: length() counts characters for clients of the PostgreSQL protocol, and length(NULL) is NULL; for
// clients of HTTP it counts UTF-16 units, and length(NULL) is -1.

import { expect, test } from 'vitest'
import { nonNull } from '../../../../engine/base/assert.js'
import { nativeDialect, postgresDialect } from '../../../../engine/sql/dialect.js'
import { displayText } from '../../../../engine/types/convert.js'
import { MemoryDatabase } from '../../../support/memory-database.js'

function rows(protocol: 'pg' | 'http', sql: string): unknown[][] {
  const database = new MemoryDatabase()
  database.run('create table t (i int, n decimal(10,2), w decimal(76,10), s string)')
  database.run("insert into t values (1, 1m, 1m, 'a😀b'), (2, 1.01m, 2m, 'aé'), (2, 1.01m, 2m, null)")
  database.dialect = protocol === 'pg' ? postgresDialect : nativeDialect
  const { columns, rows } = database.run(sql)
  return rows.map((row) =>
    row.map((value, index) => (value === null ? 'NULL' : displayText(value, nonNull(columns[index]).type))),
  )
}

test.each([
  ['select avg(i::numeric) from t', [['1.666666666666666667']], [['2']]],
  ['select avg(i::decimal(5,0)) from t', [['1.666666666666666667']], [['2']]],
  ['select avg(n) from t', [['1.006666666666666667']], [['1.01']]],
  ['select avg(distinct n) from t', [['1.005000000000000000']], [['1.00']]],
  ['select avg(n) filter (where i = 2) from t', [['1.010000000000000000']], [['1.01']]],
  ['select avg(n) over () from t limit 1', [['1.006666666666666667']], [['1.01']]],
  ['select avg(n) over (order by i rows 1 preceding) from t limit 1', [['1.000000000000000000']], [['1.00']]],
  ['select i, avg(n) from t group by i order by avg(n) desc limit 1', [['2', '1.010000000000000000']], [['2', '1.01']]],
  [
    'select avg(n), 2 * avg(n) from t having avg(n) > 1',
    [['1.006666666666666667', '2.013333333333333334']],
    [['1.01', '2.02']],
  ],
  ['select avg(w) from t', [['1.6666666667']], [['1.6666666667']]],
  ['select avg(n, 3) from t', [['1.007']], [['1.007']]],
  ['select avg(i) from t', [['1.6666666666666667']], [['1.6666666666666667']]],
  [
    'select length(s), char_length(s) from t',
    [
      ['3', '3'],
      ['2', '2'],
      ['NULL', 'NULL'],
    ],
    [
      ['4', '3'],
      ['2', '2'],
      ['-1', '-1'],
    ],
  ],
  [
    'select length(null) is null, character_length(s) = -1, count(length(s)) from t where s is null',
    [['true', 'false', '0']],
    [['false', 'true', '1']],
  ],
])('%s', (sql, overWire, overHttp) => {
  expect(rows('pg', sql)).toEqual(overWire)
  expect(rows('http', sql)).toEqual(overHttp)
})
