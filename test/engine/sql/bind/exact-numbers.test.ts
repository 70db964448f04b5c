// Goal: for clients of the PostgreSQL protocol a number literal that becomes a DECIMAL keeps the digits that were
// written: in casts, in DECIMAL columns, and in arithmetic and comparisons with a DECIMAL. Alone it stays a DOUBLE. For
// clients of HTTP it is a DOUBLE everywhere.

import { expect, test } from 'vitest'
import { nonNull } from '../../../../engine/base/assert.js'
import { nativeDialect, postgresDialect } from '../../../../engine/sql/dialect.js'
import { displayText } from '../../../../engine/types/convert.js'
import { MemoryDatabase } from '../../../support/memory-database.js'

function shown(database: MemoryDatabase, sql: string): string[][] {
  const { columns, rows } = database.run(sql)
  return rows.map((row) => row.map((value, index) => displayText(nonNull(value), nonNull(columns[index]).type)))
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
