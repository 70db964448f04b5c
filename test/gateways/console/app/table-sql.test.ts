// Goal: the console's forms for creating and changing tables produce the SQL statements that their fields describe.

import { expect, test } from 'vitest'
import { alterTableSql, createTableSql } from '../../../../gateways/console/app/table-sql.js'

const columns = [
  { name: 'ts', type: 'TIMESTAMP', key: false },
  { name: 'sensor id', type: 'SYMBOL', key: true },
  { name: '', type: 'DOUBLE', key: false },
]

test('a table with everything', () => {
  expect(createTableSql({ name: 't', columns, timestamp: 'ts', partitionBy: 'DAY', ttl: '30 DAYS' })).toBe(
    'CREATE TABLE t (\n  ts TIMESTAMP,\n  "sensor id" SYMBOL\n) TIMESTAMP(ts) PARTITION BY DAY TTL 30 DAYS DEDUP UPSERT KEYS(ts, "sensor id");',
  )
})

test('a table without time has no partitions, TTL and keys', () => {
  expect(createTableSql({ name: 'a b', columns, timestamp: '', partitionBy: 'DAY', ttl: '30 DAYS' })).toBe(
    'CREATE TABLE "a b" (\n  ts TIMESTAMP,\n  "sensor id" SYMBOL\n);',
  )
  const plain = columns.map((column) => ({ ...column, key: false }))
  expect(createTableSql({ name: 't', columns: plain, timestamp: 'ts', partitionBy: 'NONE', ttl: '1d' })).toMatch(
    /\) TIMESTAMP\(ts\) PARTITION BY NONE;$/,
  )
})

test('changes of a table', () => {
  expect(alterTableSql('t', { kind: 'add', column: 'a b', type: 'INT' })).toBe('ALTER TABLE t ADD COLUMN "a b" INT;')
  expect(alterTableSql('t', { kind: 'rename', column: 'a', to: 'b' })).toBe('ALTER TABLE t RENAME COLUMN a TO b;')
  expect(alterTableSql('t', { kind: 'type', column: 'a', type: 'LONG' })).toBe(
    'ALTER TABLE t ALTER COLUMN a TYPE LONG;',
  )
  expect(alterTableSql('t', { kind: 'drop', column: 'a' })).toBe('ALTER TABLE t DROP COLUMN a;')
  expect(alterTableSql('t', { kind: 'ttl', ttl: '7d' })).toBe('ALTER TABLE t SET TTL 7d;')
  expect(alterTableSql('t', { kind: 'ttl', ttl: '' })).toBe('ALTER TABLE t SET TTL 0h;')
  expect(alterTableSql('a-b', { kind: 'rename-table', to: 'c' })).toBe('RENAME TABLE "a-b" TO c;')
})
