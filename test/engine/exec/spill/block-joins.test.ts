// Goal: joins without equal keys, and joins whose rows have almost all the same keys, return the same rows in the same
// order when their build side outgrows the memory. Method: each kind of join with conditions that keep few or all of the
// pairs, with enough memory and with so little that the build side is read in several blocks.

import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { TemporaryFiles } from '../../../../engine/storage/part/temporary-files.js'
import { dataType } from '../../../../engine/types/column-types.js'
import type { Value } from '../../../../engine/types/value.js'
import { createRandom } from '../../../support/random.js'
import { createBench, runQuery } from '../exec-support.js'
import { type Database, expectSameRows, makeDatabase, queryOfText, tablesOf } from '../statement-support.js'
import { countedFiles } from './spill-support.js'

const columns = [
  { name: 'ts', type: dataType('TIMESTAMP') },
  { name: 'n', type: dataType('INT') },
  { name: 'one', type: dataType('LONG') },
  { name: 'few', type: dataType('SYMBOL') },
  { name: 'v', type: dataType('VARCHAR') },
]
const probeRows = 120
const buildRows = 30_000
const longRows = 160
/** Of the bench's 32 MiB for queries, 2 are reserved. The build side alone has 3. */
const memoryLeft = 5 * 1024 * 1024

let directory: string
let database: Database
beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), 'penstock-spill-'))
  const random = createRandom(23)
  const rowsOf = (count: number): Value[][] =>
    Array.from({ length: count }, (_, row) => {
      const n = random.chance(0.02) ? null : random.below(buildRows)
      const few = random.chance(0.003) ? `few ${random.below(3)}` : null
      return [1_000_000n + BigInt(row), n, random.chance(0.002) ? 2n : 1n, few, `text ${row} ${'of a row '.repeat(8)}`]
    })
  const table = (name: string, count: number) => {
    const rows = rowsOf(count)
    const half = count >> 1
    return { name, columns, memtables: [rows.slice(0, half), rows.slice(half)], timestampId: 0 }
  }
  const long = Array.from({ length: longRows }, (_, row): Value[] => [
    ...[1_000_000n + BigInt(row), random.below(buildRows), 1n, null, `${row} ${'long'.repeat(12_500)}`],
  ])
  const tables = [table('t', probeRows), table('r', buildRows)]
  database = makeDatabase(createBench(64), [...tables, { name: 'l', columns, memtables: [long], timestampId: 0 }])
})
afterAll(() => rmSync(directory, { recursive: true }))

/** The side that is built is `r`. */
const sides = ['t join r', 't left join r', 'r right join t', 't full join r']
const near = 't.n < r.n and r.n < t.n + 4'
const keys = ['', 't.one = r.one and ', 't.few = r.few and ', 't.one = r.one and t.few = r.few and ']
const pairs = 'select t.ts, t.v, r.ts, r.few, r.v w'
const sums = 'select count(), sum(t.n * 3 + r.n), max(t.v), min(r.v)'
/** Of millions of rows, some in their order. */
const parts = ['limit 40', 'limit 1000000, 1003000']

const statements = [
  ...sides.flatMap((from) => keys.map((key) => `${pairs} from ${from} on ${key}${near}`)),
  ...sides.map((from) => `${pairs} from ${from} on t.one = r.one and t.n <> r.n ${parts[1]}`),
  ...parts.map((part) => `${pairs} from t cross join r ${part}`),
  ...parts.map((part) => `${pairs} from t left join r on t.few is null or t.n > r.n ${part}`),
  `${sums} from t join r on t.one = r.one and t.n < r.n`,
  `${sums} from t full join r on t.one = r.one and t.n < r.n`,
  `${sums} from t cross join r`,
]

function run(sql: string, temporary?: TemporaryFiles) {
  const query = queryOfText(sql, database)
  return runQuery(
    database.bench,
    query,
    tablesOf(query, database),
    temporary === undefined ? {} : { temporary, memoryLeft },
  ).rows
}

/** With little memory the statement writes temporary files, and has the rows that it has with enough. */
function expectSpilt(sql: string): void {
  const { created, temporary } = countedFiles(directory, database.bench.memory)
  const rows = run(sql, temporary)
  expectSameRows(rows, run(sql))
  expect(rows.length).toBeGreaterThan(0)
  expect(created()).toBeGreaterThan(0)
  expect(readdirSync(directory)).toEqual([])
}

test.each(statements)('%s', expectSpilt)

/** The rows of `r`, each of them twenty times: many times larger than the memory. */
const many = '(select r.n n, r.v v from r cross join (select ts from t limit 20) x)'

test('pairs in very many blocks are merged in little memory', () => {
  const few = "t.v like 'text 7 %' and (t.one + b.n) % 48 = 0"
  const once = run(`select t.n, b.n, b.v from t left join r b on ${few}`)
  const expected = once.flatMap((row) => (row[1] === null ? [row] : Array.from({ length: 20 }, () => row)))
  const { created, temporary } = countedFiles(directory, database.bench.memory)
  expectSameRows(run(`select t.n, b.n, b.v from t left join ${many} b on ${few}`, temporary), expected)
  expect(expected.length).toBeGreaterThan(10_000)
  expect(created()).toBeGreaterThan(60)
  expect(readdirSync(directory)).toEqual([])
})

test.each(['join', 'left join', 'full join'])('a %s whose rows are so long that few of them fit in memory', (join) => {
  const near = 't.n < l.n and l.n < t.n + 1000 and length(l.v) > t.n'
  expectSpilt(`select t.ts, t.n, l.n m, length(l.v) from t ${join} l on ${near}`)
})
