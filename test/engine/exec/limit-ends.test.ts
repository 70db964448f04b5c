// Goal: LIMIT with bounds that count from the end returns the rows that it means, however wide and many they are, in
// bounded memory. Method: ranges of rows of a table in its order and in another one, that are several times larger than
// the memory of queries, compared with the same ranges of a list.

import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { dataType } from '../../../engine/types/column-types.js'
import type { Value } from '../../../engine/types/value.js'
import { createBench, runQuery } from './exec-support.js'
import { countedFiles } from './spill/spill-support.js'
import { type Database, makeDatabase, queryOfText, tablesOf } from './statement-support.js'

const columns = [
  { name: 'ts', type: dataType('TIMESTAMP') },
  { name: 'k', type: dataType('LONG') },
  { name: 's', type: dataType('SYMBOL') },
  { name: 'v', type: dataType('VARCHAR') },
]
const rowsCount = 24_000
/** 4 MiB are reserved. The rows have 25 MB. */
const memoryLeft = 12 * 1024 * 1024

let directory: string
let database: Database
let byTime: Value[][]
let byKey: Value[][]
beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), 'penstock-limit-'))
  byTime = Array.from({ length: rowsCount }, (_, row): Value[] => {
    const key = (row * 7919) % rowsCount
    return [1_000_000n + BigInt(row), BigInt(key), `s${key % 30}`, `${key} ${'wide '.repeat(200)}`]
  })
  byKey = byTime.toSorted((a, b) => Number(a[1]) - Number(b[1]))
  const memtables = [byTime.slice(0, 9000), byTime.slice(9000)]
  database = makeDatabase(createBench(128), [{ name: 't', columns, memtables, timestampId: 0 }])
})
afterAll(() => rmSync(directory, { recursive: true }))

function limited(sql: string): { readonly rows: readonly (readonly Value[])[]; readonly files: number } {
  const query = queryOfText(sql, database)
  const { created, temporary } = countedFiles(directory, database.bench.memory)
  const { rows } = runQuery(database.bench, query, tablesOf(query, database), { memoryLeft, temporary })
  expect(readdirSync(directory)).toEqual([])
  return { rows, files: created() }
}

const ranges = [
  { limit: '-10', from: -10, to: rowsCount },
  { limit: '-20000', from: -20_000, to: rowsCount },
  { limit: '-20000, -300', from: -20_000, to: -300 },
  { limit: '-23990, -23980', from: -23_990, to: -23_980 },
  { limit: '7, -5', from: 7, to: -5 },
  { limit: '20000, -3990', from: 20_000, to: -3990 },
  { limit: '-30000', from: -30_000, to: rowsCount },
]

describe.each(ranges)('limit $limit', ({ limit, from, to }) => {
  test('of a table', () => {
    const { rows } = limited(`select * from t limit ${limit}`)
    expect(rows).toEqual(byTime.slice(from, to))
  })

  test('of rows in another order', () => {
    const { rows, files } = limited(`select * from (select * from t order by k) limit ${limit}`)
    expect(rows).toEqual(byKey.slice(from, to))
    expect(files).toBeGreaterThan(0)
  })
})

test('few rows from the end need no files, however wide they are', () => {
  const { rows, files } = limited(
    'select k, v from (select k, v from t where k >= 0 union all select k, v from t where k < 0) limit -10',
  )
  expect(rows).toEqual(byTime.slice(-10).map(([, key, , text]) => [key, text]))
  expect(files).toBe(0)
})
