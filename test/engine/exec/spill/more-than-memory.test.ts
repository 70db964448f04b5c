// Goal: each operator over rows that are several times larger than the memory of queries returns the rows that it
// returns with ample memory, in the same order. Method: every statement of spill-matrix.ts, or every fifth, with ample
// and with little memory, in which each of them writes temporary files, and the compositions of two operators of
// spill-compositions.ts. test/crash/more-than-memory.ts runs them over millions of rows.

import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { dataType } from '../../../../engine/types/column-types.js'
import type { Value } from '../../../../engine/types/value.js'
import { createRandom } from '../../../support/random.js'
import { runs } from '../../../support/runs.js'
import { createBench, type RunOptions, runQuery } from '../exec-support.js'
import { type Database, expectSameRows, makeDatabase, queryOfText, tablesOf } from '../statement-support.js'
import { spillCompositions } from './spill-compositions.js'
import { spillMatrix } from './spill-matrix.js'
import { countedFiles } from './spill-support.js'

const columns = [
  { name: 'ts', type: dataType('TIMESTAMP') },
  { name: 'l', type: dataType('LONG') },
  { name: 'i', type: dataType('INT') },
  { name: 'd', type: dataType('DOUBLE') },
  { name: 'v', type: dataType('VARCHAR') },
  { name: 'y', type: dataType('SYMBOL') },
  { name: 'u', type: dataType('UUID') },
  { name: 'p', type: dataType('DECIMAL', 20, 2) },
  { name: 'few', type: dataType('SYMBOL') },
  { name: 'one', type: dataType('INT') },
]
const rowsCount = 30_000
const keysCount = 15_000
/** 2 MiB are reserved for queries that have sent rows. The rows of a table have 4.5 MB. */
const memoryLeft = 4 * 1024 * 1024
/** No run of rows to be sorted has less than 2 MiB. With more memory, window functions must be told that it is short. */
const sorting: RunOptions = { memoryLeft: 2 * memoryLeft, heapState: () => 'crowded' }
const sorts = new Set(['ORDER BY', 'windows without PARTITION BY'])

let directory: string
let database: Database
beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), 'penstock-spill-'))
  const table = (name: string, first: number) => {
    const rows = Array.from({ length: rowsCount }, (_, row): Value[] => {
      const key = first + ((row * 7919) % keysCount)
      return [
        ...[1_000_000n + BigInt(row) * 66_000n, BigInt(key) * 1_000_000_007n, key, key / 4],
        ...[`text ${key} of more than a few bytes`, `s${key}`, BigInt(key), BigInt(key) * 5n, `few ${key % 4}`, 1],
      ]
    })
    return { name, columns, memtables: [rows.slice(0, 9000), rows.slice(9000)], timestampId: 0 }
  }
  database = makeDatabase(createBench(64), [table('t', 0), table('r', keysCount / 2)])
})
afterAll(() => rmSync(directory, { recursive: true }))

const every = runs(1, 5)
test.each(spillMatrix.filter((_, index) => index % every === 0))('$name: $sql', ({ name, sql }) => {
  const query = queryOfText(sql, database)
  const tables = tablesOf(query, database)
  const { created, temporary } = countedFiles(directory, database.bench.memory)
  const { rows } = runQuery(database.bench, query, tables, {
    temporary,
    memoryLeft,
    ...(sorts.has(name) ? sorting : {}),
  })
  expectSameRows(rows, runQuery(database.bench, query, tables).rows)
  expect(rows.length).toBeGreaterThan(100)
  expect(created()).toBeGreaterThan(0)
  expect(readdirSync(directory)).toEqual([])
})

/** Two operators need their memory at once, so some of them are told that it is short. */
const composedLeft = 9 * 1024 * 1024
/** test/crash/more-than-memory.ts runs all pairs, with memory for both operators. */
const everyPair = 16
test.each(spillCompositions(1).filter((_, index) => index % everyPair === 0))('$name: $sql', ({ name, sql }) => {
  const query = queryOfText(sql, database)
  const tables = tablesOf(query, database)
  const { temporary } = countedFiles(directory, database.bench.memory)
  const random = createRandom(sql.length)
  const heapState = () => (random.chance(0.15) ? 'crowded' : 'free') as 'crowded' | 'free'
  const { rows } = runQuery(database.bench, query, tables, { temporary, memoryLeft: composedLeft, heapState })
  expectSameRows(rows, runQuery(database.bench, query, tables).rows)
  // INTERSECT and EXCEPT of other rows may have none.
  if (!name.startsWith('set over')) expect(rows.length).toBeGreaterThan(0)
  expect(readdirSync(directory)).toEqual([])
})
