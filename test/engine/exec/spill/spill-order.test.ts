// Goal: an operator that runs short of memory after it has returned rows, and starts again with temporary files,
// returns each row once. This also holds when several threads divide its groups among them, and when memory is so small
// that the operator would need several passes. Method: GROUP BY and DISTINCT with many groups, compared with the same
// query with enough memory. The allocator reports that little memory is left but refuses nothing, and a shortage is
// reported after random slices of work.

import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { nodeFiles } from '../../../../engine/base/files.js'
import { budgets } from '../../../../engine/memory/budgets.js'
import { temporaryFiles } from '../../../../engine/storage/part/temporary-files.js'
import { dataType } from '../../../../engine/types/column-types.js'
import type { Value } from '../../../../engine/types/value.js'
import { createRandom } from '../../../support/random.js'
import { createBench, runQuery } from '../exec-support.js'
import { type Database, makeDatabase, queryOfText, tablesOf } from '../statement-support.js'

const columns = [
  { name: 'ts', type: dataType('TIMESTAMP') },
  { name: 'k', type: dataType('LONG') },
]
const symbolColumns = [
  { name: 'ts', type: dataType('TIMESTAMP') },
  { name: 's', type: dataType('SYMBOL') },
]
const rowsCount = 400_000
const mebibyte = 1024 * 1024

let directory: string
let database: Database
beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), 'penstock-spill-'))
  const rows = Array.from({ length: rowsCount }, (_, row): Value[] => [1_000_000n + BigInt(row), BigInt(row) * 7n])
  database = makeDatabase(createBench(256), [{ name: 't', columns, memtables: [rows], timestampId: 0 }])
})
afterAll(() => rmSync(directory, { recursive: true }))

test.each([
  'select count(), sum(k), sum(h) from (select distinct k / 1000 h, k from t)',
  'select count(), sum(k), sum(n) from (select k, count() n from t group by k)',
  'select h, count(), sum(k) from (select distinct k / 1000 h, k from t) order by h',
])('each row comes once: %s', (sql) => {
  const { bench } = database
  const query = queryOfText(sql, database)
  const tables = tablesOf(query, database)
  const expected = runQuery(bench, query, tables).rows.map(String)
  const random = createRandom(sql.length)
  const temporary = temporaryFiles({ directory, memory: bench.memory, threadId: 1, files: nodeFiles() })
  for (const left of [2, 4]) {
    const limit = () => bench.allocator.used(budgets.queries) + left * mebibyte
    const narrow = { ...bench, allocator: { ...bench.allocator, limit } }
    for (const chance of [0, 0.02]) {
      const heapState = () => (random.chance(chance) ? 'crowded' : 'free') as 'crowded' | 'free'
      const { rows } = runQuery(narrow, query, tables, { temporary, heapState })
      expect(rows.map(String), `${left} MiB, ${chance}`).toEqual(expected)
    }
  }
  expect(readdirSync(directory)).toEqual([])
})

// A walk in the order of time over the symbols of parts and memtables, while the rows that are read with temporary files
// come in the order of the memtables.
test('each symbol comes once', () => {
  const symbols = 9000
  const memtable = (first: number, time: bigint): Value[][] =>
    Array.from({ length: symbols }, (_, row) => [time + BigInt(row), `s${first + row}`])
  const memtables = [memtable(0, 9_000_000n), memtable(symbols, 1_000_000n)]
  const own = makeDatabase(createBench(256), [{ name: 'u', columns: symbolColumns, memtables, timestampId: 0 }])
  const { bench } = own
  const query = queryOfText('select s, count() n from (select distinct s from u) group by s having n > 1', own)
  const whole = queryOfText('select distinct s from u', own)
  const tables = tablesOf(whole, own)
  const temporary = temporaryFiles({ directory, memory: bench.memory, threadId: 1, files: nodeFiles() })
  const random = createRandom(7)
  for (let attempt = 0; attempt < 20; attempt++) {
    const heapState = () => (random.chance(0.3) ? 'crowded' : 'free') as 'crowded' | 'free'
    const { rows } = runQuery(bench, whole, tables, { temporary, heapState })
    expect(new Set(rows.map(String)).size, `attempt ${attempt}`).toBe(2 * symbols)
    expect(rows.length).toBe(2 * symbols)
    expect(runQuery(bench, query, tables, { temporary, heapState }).rows).toEqual([])
  }
  expect(readdirSync(directory)).toEqual([])
})

// Generated code returns the groups of each bucket in the order in which the table has them first. With temporary files
// they come in the order in which the bucket has them. The pairs of joins without an order come partition by partition
// when the join spills. Method: the heap is crowded after two slices of work.
describe('each group comes once when its order depends on memory', () => {
  const symbols = 3000
  let own: Database
  beforeAll(() => {
    // The groups of each hour begin at another symbol.
    const rows = Array.from({ length: 20 * symbols * 2 }, (_, row): Value[] => {
      const hour = Math.floor(row / (symbols * 2))
      return [3_600_000_000n * BigInt(hour) + BigInt(row), `s${(row * 7 + hour * 1013) % symbols}`]
    })
    const pairs = (factor: number) =>
      Array.from({ length: 60_000 }, (_, row): Value[] => [BigInt(row), BigInt((row * factor) % 60_000)])
    own = makeDatabase(createBench(256), [
      { name: 'u', columns: symbolColumns, memtables: [rows.toReversed(), rows], timestampId: 0 },
      { name: 'l', columns, memtables: [pairs(7)], timestampId: 0 },
      { name: 'r', columns, memtables: [pairs(11)], timestampId: 0 },
    ])
  })
  test.each([
    'select ts, s, count() n from u sample by 1h',
    "select timestamp_floor('1h', ts) h, s, count() n from u group by h, s",
    'select l.k, count() n from l join r on l.k = r.k group by l.k',
  ])('%s', (sql) => {
    const { bench } = own
    const query = queryOfText(sql, own)
    const tables = tablesOf(query, own)
    const expected = runQuery(bench, query, tables).rows.map(String).sort()
    const temporary = temporaryFiles({ directory, memory: bench.memory, threadId: 1, files: nodeFiles() })
    for (let from = 0; from < 12; from++) {
      let slices = 0
      const heapState = () => {
        const slice = slices++ - from
        return slice >= 0 && slice < 2 ? 'crowded' : 'free'
      }
      const rows = runQuery(bench, query, tables, { temporary, heapState }).rows.map(String).sort()
      expect(
        rows.findIndex((row, at) => row !== expected[at]),
        `from slice ${from}`,
      ).toBe(-1)
      expect(rows.length).toBe(expected.length)
    }
    expect(readdirSync(directory)).toEqual([])
  })
})

// The join of a MERGE into a large table returns the matches in the order of the table, and rows without a match last.
test('a MERGE finds each row of its source once, in the same order', () => {
  const stored = Array.from({ length: 80_000 }, (_, row): Value[] => [1_000_000n + BigInt(row), BigInt(row) * 7n])
  const added = Array.from({ length: 1000 }, (_, row): Value[] => [BigInt(row), BigInt(row) * 7n + 1n])
  const known = Array.from({ length: 12_000 }, (_, row): Value[] => [2000n + BigInt(row), BigInt(row) * 35n])
  const own = makeDatabase(createBench(256), [
    { name: 'big', columns, memtables: [stored], timestampId: 0, key: [1] },
    { name: 'src', columns, memtables: [[...added, ...known]], timestampId: 0 },
  ])
  const { bench } = own
  const query = queryOfText(
    `merge into big t using src s on t.k = s.k when matched then update set ts = s.ts
     when not matched then insert (ts, k) values (s.ts, s.k)`,
    own,
  )
  const tables = tablesOf(query, own)
  const expected = runQuery(bench, query, tables).rows.map(String)
  expect(expected.length).toBe(added.length + known.length)
  const random = createRandom(11)
  const temporary = temporaryFiles({ directory, memory: bench.memory, threadId: 1, files: nodeFiles() })
  for (let attempt = 0; attempt < 10; attempt++) {
    const heapState = () => (random.chance(0.3) ? 'crowded' : 'free') as 'crowded' | 'free'
    const { rows } = runQuery(bench, query, tables, { temporary, heapState })
    expect(rows.map(String)).toEqual(expected)
  }
  expect(readdirSync(directory)).toEqual([])
})
