// Goal: for clients of the PostgreSQL protocol a number literal keeps all its digits where it becomes a DECIMAL: in
// casts, in DECIMAL columns, and next to a DECIMAL in arithmetic, comparisons, CASE, functions that return one of their
// arguments, set operations and VALUES. A literal that stands alone is a DOUBLE. For clients of HTTP a literal is a
// DOUBLE, except in the DEFAULT of a DECIMAL column, where it keeps all its digits, too.

import { expect, test } from 'vitest'
import { nonNull } from '../../../../engine/base/assert.js'
import { nativeDialect, postgresDialect } from '../../../../engine/sql/dialect.js'
import { displayText } from '../../../../engine/types/convert.js'
import { MemoryDatabase } from '../../../support/memory-database.js'

function shown(database: MemoryDatabase, sql: string): string[][] {
  const { columns, rows } = database.run(sql)
  return rows.map((row) =>
    row.map((value, index) => (value === null ? 'NULL' : displayText(value, nonNull(columns[index]).type))),
  )
}

function rows(protocol: 'pg' | 'http', sql: string): string[][] {
  const database = new MemoryDatabase()
  database.run('create table t (n decimal(38,18), m decimal(10,2), d double)')
  database.run('insert into t values (1234567890123456789.5m, 1.1m, 1.1)')
  database.dialect = protocol === 'pg' ? postgresDialect : nativeDialect
  return shown(database, sql)
}

test.each([
  ['select 1234567890123456789.5::numeric', '1234567890123456789.5', '1234567890123456800'],
  ['select 0.1234567890123456789::numeric', '0.1234567890123456789', '0.12345678901234568'],
  ['select -1234567890123456789.5::numeric(30,2)', '-1234567890123456789.50', '-1234567890123456800.00'],
  ['select (-1234567890123456789.5)::numeric', '-1234567890123456789.5', '-1234567890123456800'],
  ['select cast(12345678901234567890123 as numeric)', '12345678901234567890123', '12345678901234568000000'],
  ['select 1.5::numeric(3,1), 1e3::numeric, 2.675::numeric(5,2)', '1.5 1000 2.68', '1.5 1000 2.68'],
  ['select n = 1234567890123456789.5, n < 1234567890123456789.6 from t', 'true true', 'true false'],
  ['select n in (1.5, 1234567890123456789.5) from t', 'true', 'true'],
  ['select n between 1234567890123456789.4 and 1234567890123456789.6 from t', 'true', 'true'],
  [
    'select n + 0.5, m * 1.05 from t',
    '1234567890123456790.000000000000000000 1.1550',
    '1.2345678901234568E18 1.1550000000000002',
  ],
  [
    'select coalesce(n, 0.5), coalesce(null, m, 0.125) from t',
    '1234567890123456789.500000000000000000 1.100',
    '1.2345678901234568E18 1.1',
  ],
  ['select coalesce(sum(n), 0.0), nullif(m, 1.1) from t', '1234567890123456789.500000000000000000 NULL', ''],
  ['select greatest(m, 0.125), least(1.5, n) from t', '1.100 1.500000000000000000', '1.1 1.5'],
  [
    'select case when m > 1 then n else 0.5 end, case when m > 1 then 0.25 else m end from t',
    '1234567890123456789.500000000000000000 0.25',
    '1.2345678901234568E18 0.25',
  ],
  ['select case m when 1.1 then -0.5 when 2 then m end from t', '-0.50', '-0.5'],
  [
    'select max(x) from (select 0.25 x union all select 1 union all select n from t union all select 1.5)',
    '1234567890123456789.500000000000000000',
    '1.2345678901234568E18',
  ],
  ['select m, 1.5 from t union select 1.10, 1.50::decimal(5,2)', '1.10 1.50', '1.1 1.5'],
  ['select n from t except select 0.5', '1234567890123456789.500000000000000000', '1.2345678901234568E18'],
  ['select 1.1 intersect select m from t', '1.10', ''],
  [
    'select max(column1), typeof(max(column1)) from (values (0.5), (1234567890123456789.5m), (2))',
    '1234567890123456789.5 DECIMAL(20,1)',
    '',
  ],
  [
    'select typeof(coalesce(d, 0.5)), typeof(case when m > 1 then d else m end), typeof(coalesce(i, 1.5)) from (select d, m, 1 i from t)',
    'DOUBLE DOUBLE DOUBLE',
    'DOUBLE DOUBLE DOUBLE',
  ],
  [
    'select typeof(m + 0.5), typeof(1.5), typeof(d + m), typeof(m * 1.5::double) from t',
    'DECIMAL(11,2) DOUBLE DOUBLE DOUBLE',
    '',
  ],
  [
    'select 1.5, 0.1 + 0.2, d * 1.1 from t',
    '1.5 0.30000000000000004 1.2100000000000002',
    '1.5 0.30000000000000004 1.2100000000000002',
  ],
])('%s', (sql, overWire, overHttp) => {
  expect(rows('pg', sql).map((row) => row.join(' '))).toEqual([overWire])
  if (overHttp !== '') expect(rows('http', sql).map((row) => row.join(' '))).toEqual([overHttp])
})

test('INSERT and UPDATE store the digits that were written', () => {
  const database = new MemoryDatabase()
  database.dialect = postgresDialect
  database.run('create table t (n numeric, m numeric(30,4))')
  database.run('insert into t values (1234567890123456789.5, -1234567890123456789.123456)')
  database.run('insert into t select 1234567890123456789.25, 0.5')
  expect(shown(database, 'select n, m from t')).toEqual([
    ['1234567890123456789.500000000000000000', '-1234567890123456789.1235'],
    ['1234567890123456789.250000000000000000', '0.5000'],
  ])
})

test('a DEFAULT of a DECIMAL column keeps the digits that were written, for clients of either protocol', () => {
  for (const dialect of [nativeDialect, postgresDialect]) {
    const database = new MemoryDatabase()
    database.dialect = dialect
    const columns = 'n decimal(38,4) default 1234567890123456789.1234, m decimal(38,2) default -12345678901234567890123'
    database.run(`create table t (i int, ${columns}, r decimal(4,1) default 1.25, z decimal(4,1) default 1e-100)`)
    database.run('insert into t (i) values (1)')
    database.run('insert into t (i) select 2')
    database.run('insert into t values (3, default, default, default, default)')
    const expected = ['1234567890123456789.1234', '-12345678901234567890123.00', '1.3', '0.0']
    expect(shown(database, 'select n, m, r, z from t')).toEqual([expected, expected, expected])
  }
})
