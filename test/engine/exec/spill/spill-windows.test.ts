// Goal: window functions whose partitions outgrow the memory return the rows that they return with enough memory: those
// without PARTITION BY, and those of a key that all rows have. Method: each function and kind of frame over rows in
// random order, with so little memory that few rows are in memory at a time, and told to spill at random times.

import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { nodeFiles } from '../../../../engine/base/files.js'
import { WindowOrder } from '../../../../engine/exec/window/window-order.js'
import { temporaryFiles } from '../../../../engine/storage/part/temporary-files.js'
import { dataType } from '../../../../engine/types/column-types.js'
import type { Value } from '../../../../engine/types/value.js'
import { createRandom } from '../../../support/random.js'
import { createBench, runQuery } from '../exec-support.js'
import { type Database, expectSameRows, makeDatabase, queryOfText, tablesOf } from '../statement-support.js'

const columns = [
  { name: 'ts', type: dataType('TIMESTAMP') },
  { name: 'l', type: dataType('LONG') },
  { name: 'v', type: dataType('VARCHAR') },
  { name: 'y', type: dataType('SYMBOL') },
  { name: 'p', type: dataType('DECIMAL', 20, 2) },
  { name: 'one', type: dataType('INT') },
  { name: 'few', type: dataType('SYMBOL') },
  { name: 'd', type: dataType('DOUBLE') },
  { name: 'n', type: dataType('INT') },
]
const rowsCount = 36_000
/** 4 MiB are reserved for queries that have sent rows. */
const memoryLeft = 16 * 1024 * 1024

let directory: string
let database: Database
beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), 'penstock-spill-'))
  const random = createRandom(3)
  const rows = Array.from({ length: rowsCount }, (_, row): Value[] => {
    const key = (row * 7919) % rowsCount
    // The frequent key comes first, and sorts last. The rows of the others have many equal values.
    const isOther = row % 20 === 5
    const n = random.chance(0.1) ? null : random.below(isOther ? 20 : rowsCount / 3)
    const few = isOther ? `few ${Math.floor(row / 20) % 32}` : 'most'
    return [
      ...[1_000_000n + BigInt(row) * 20_000n, BigInt(key), `text ${key}`, `s${key % 5000}`, BigInt(key) * 5n],
      ...[1, few, random.chance(0.1) ? null : random.below(1000) / 4, n],
    ]
  })
  const memtables = [rows.slice(0, 10_000), rows.slice(10_000)]
  database = makeDatabase(createBench(128), [{ name: 't', columns, memtables, timestampId: 0 }])
})
afterAll(() => rmSync(directory, { recursive: true }))

const places = ['row_number()', 'rank()', 'dense_rank()', 'percent_rank()', 'cume_dist()', 'ntile(7)']
const aggregates = ['sum(d)', 'avg(n)', 'count(d)', 'count()', 'min(v)', 'max(p)', 'sum(l)', 'stddev(d)', 'max(l)']
const picks = ['first_value(v)', 'last_value(y)', 'nth_value(l, 3)', 'first_value(d) ignore nulls']
const neighbours = ['lag(v, 2)', 'lead(d)', 'lag(d) ignore nulls', 'lead(d, 2, -1.0) ignore nulls', 'lag(y, 70)']
const frames = [
  '',
  'rows between unbounded preceding and current row',
  'rows between 3 preceding and 20 following',
  'rows between 30 preceding and 5 preceding',
  'rows between unbounded preceding and 7 following',
  'rows between unbounded preceding and 2 preceding',
  'rows between unbounded preceding and unbounded following',
  'rows between unbounded preceding and current row exclude current row',
  'rows between 2 preceding and 2 following exclude ties',
  'range between 10 preceding and 10 following',
  'range between unbounded preceding and 5 following',
  'range between 20 preceding and 10 preceding',
  'groups between 2 preceding and 2 following',
  'groups between unbounded preceding and 1 following',
  'groups between 3 preceding and current row exclude group',
]
const endless = ['sum(d)', 'count()', 'max(l)', 'first_value(v)', 'last_value(y)', 'nth_value(l, 3)', 'nth_value(v, n)']
const orderedAggregates = ['first(v)', 'last_not_null(d)', 'any_value(d)', 'bit_xor(l)', 'bool_or(n > 3)']
const movingAverages = ["avg(d, 'alpha', 0.1)", "avg(l, 'period', 10)", "avg(d, 'alpha', 0.01, n)"]
const computedNumbers = [
  ...[
    'lag(v, n % 50)',
    'lead(d, n % 700)',
    'lag(y, n)',
    'lag(l, n, -1)',
    'lead(v, n % 9, v)',
    'lag(d, n - 500) ignore nulls',
  ],
  ...['lead(d, n % 20, -1.0) ignore nulls', 'nth_value(v, n % 100)', 'nth_value(d, n % 40) ignore nulls'],
]
const orders = ['n', 'n desc nulls last', 'n nulls last']

function statements(): string[] {
  const random = createRandom(5)
  const over = (call: string, frame: string, order = random.pick(orders)) =>
    `select ts, l, ${call} over (# order by ${order} ${frame}) w from t`
  return [
    ...places.map((call) => over(call, '')),
    ...neighbours.map((call) => over(call, '')),
    ...frames.flatMap((frame) => [over(random.pick(aggregates), frame), over(random.pick(picks), frame)]),
    ...[...endless, ...orderedAggregates].map((call) => over(call, 'rows between current row and unbounded following')),
    ...[...movingAverages, ...computedNumbers].map((call) => over(call, '')),
    over("avg(d, 'minute', 2)", '', 'ts'),
    over("avg(d, 'minute', 2, n)", '', 'ts desc'),
    over('nth_value(v, n % 7)', 'rows between 4 preceding and 20 following'),
    over('nth_value(v, 20)', 'rows between 4 preceding and unbounded following'),
    over('nth_value(v, n % 30)', 'rows between 4 preceding and unbounded following'),
    over('nth_value(d, 5) ignore nulls', 'rows between 2 following and unbounded following'),
    over('nth_value(v, n % 90)', 'groups between current row and unbounded following'),
    over('nth_value(v, n)', 'rows between unbounded preceding and unbounded following'),
    over('sum(d)', 'range between 5 following and unbounded following'),
    over('sum(d)', '', 'ts'),
    over('max(d)', 'range between 10 seconds preceding and current row', 'ts'),
    over('rank()', '', 'few'),
    over('sum(d)', '', 'few'),
    over('any_value(d)', 'rows between unbounded preceding and current row'),
    over('any_value(n)', 'range between unbounded preceding and 5 following', 'n'),
    ...['avg(d)', 'count()', 'row_number()', 'last_value(v)', 'rank()'].map((w) => `select l, ${w} over (#) w from t`),
    'select v, rank() over (# order by n) a, sum(d) over (# order by l) b, max(d) over (partition by v) c from t',
    'select l, sum(d) over (# order by n, l) a, cume_dist() over (# order by n, l) b, lead(v) over (# order by n, l) from t',
  ]
}

const partitions = [
  { name: 'one partition', partition: '', each: 2 },
  { name: 'one key', partition: 'partition by one', each: 9 },
  { name: 'one frequent key', partition: 'partition by few', each: 4 },
]
for (const [place, { name, partition, each }] of partitions.entries()) {
  const chosen = statements().filter((_, index) => index % each === place % each)
  test.each(chosen.map((sql) => sql.replaceAll('#', partition)))(`${name}: %s`, (sql) => {
    const query = queryOfText(sql, database)
    const tables = tablesOf(query, database)
    const expected = runQuery(database.bench, query, tables).rows
    const random = createRandom(sql.length)
    const heapState = () => (random.chance(0.4) ? 'crowded' : 'free') as 'crowded' | 'free'
    const temporary = temporaryFiles({ directory, memory: database.bench.memory, threadId: 1, files: nodeFiles() })
    expectSameRows(runQuery(database.bench, query, tables, { temporary, memoryLeft, heapState }).rows, expected)
    expect(readdirSync(directory)).toEqual([])
  })
}

function spilledRows(sql: string): { rows: readonly (readonly Value[])[]; expected: readonly (readonly Value[])[] } {
  const query = queryOfText(sql, database)
  const tables = tablesOf(query, database)
  const expected = runQuery(database.bench, query, tables).rows
  const temporary = temporaryFiles({ directory, memory: database.bench.memory, threadId: 1, files: nodeFiles() })
  const heapState = () => 'crowded' as const
  return { rows: runQuery(database.bench, query, tables, { temporary, memoryLeft, heapState }).rows, expected }
}

const frequent = 'over (partition by few order by n)'
test.each([
  `select l, rank() ${frequent} a, dense_rank() ${frequent} b, row_number() ${frequent} c, sum(d) ${frequent} d from t`,
  `select l, cume_dist() ${frequent} a, percent_rank() ${frequent} b, any_value(d) ${frequent} c from t`,
  'select l, any_value(d) over (order by n rows between unbounded preceding and current row) w from t',
])('codes in another order than partitions, and any_value(): %s', (sql) => {
  const { rows, expected } = spilledRows(sql)
  expectSameRows(rows, expected)
})

test('a window in random order has one order for all that is computed over it', () => {
  const { rows } = spilledRows('select l, lag(l, one) over (order by rnd_double()) w from t')
  const nextOf = new Map(rows.map(([l, before]) => [before, l]))
  let found = 0
  for (let l = nextOf.get(null); l !== undefined && found <= rowsCount; l = nextOf.get(l)) found++
  expect(found).toBe(rowsCount)
})

test('rows that stay in memory are computed again few times', () => {
  const make = WindowOrder.make
  let computed = 0
  const spy = vi.spyOn(WindowOrder, 'make').mockImplementation((rows, keys) => {
    if (keys.together) computed += rows.rows
    return make(rows, keys)
  })
  const { rows, expected } = spilledRows('select l, lead(v, 20000) over (order by n) w from t')
  spy.mockRestore()
  expectSameRows(rows, expected)
  expect(computed).toBeGreaterThanOrEqual(rowsCount)
  expect(computed).toBeLessThan(rowsCount * 6)
})

const sumColumns = [
  { name: 'ts', type: dataType('TIMESTAMP') },
  { name: 'n', type: dataType('INT') },
  { name: 'few', type: dataType('SYMBOL') },
  { name: 'wide', type: dataType('LONG') },
  { name: 'huge', type: dataType('LONG') },
]

/** The sums over the frame from `lo` to `hi` rows away, of each partition; rows are in the order of the window. */
function exactSums(rows: readonly (readonly Value[])[], column: number, lo: number, hi: number): Map<Value, number> {
  const sums = new Map<Value, number>()
  for (const few of ['a', 'b']) {
    const own = rows.filter((row) => row[2] === few)
    own.forEach((row, at) => {
      const frame = own.slice(Math.max(0, at + lo), Math.max(0, at + hi + 1)).map((other) => other[column])
      const values = frame.filter((value) => typeof value === 'bigint')
      if (values.length > 0) sums.set(row[0] ?? null, Number(values.reduce((sum, value) => sum + value, 0n)))
    })
  }
  return sums
}

// The values of `wide` are exact as doubles, and their sums are not; those of `huge` are not.
describe('sums of integers are exact', () => {
  const random = createRandom(17)
  const rows = Array.from({ length: 2000 }, (_, row): Value[] => {
    const value = (bits: bigint): bigint | null =>
      random.chance(0.05) ? null : (1n << bits) - BigInt(random.below(1_000_000)) * 2n - 1n
    return [1_000_000n + BigInt(row), (row * 7919) % 2000, random.pick(['a', 'b']), value(53n), value(63n)]
  })
  const byNumber = [...rows].sort((a, b) => Number(a[1]) - Number(b[1]))
  const own = makeDatabase(createBench(64), [
    { name: 't', columns: sumColumns, memtables: [rows.slice(0, 900), rows.slice(900)], timestampId: 0 },
  ])
  test.each([
    { order: 'ts', ordered: rows, lo: -2000, hi: 0 },
    { order: 'n', ordered: byNumber, lo: -2000, hi: 0 },
    { order: 'n', ordered: byNumber, lo: -700, hi: -3 },
    { order: 'n', ordered: byNumber, lo: -3, hi: 900 },
    { order: 'n', ordered: byNumber, lo: 2, hi: 2000 },
    { order: 'n', ordered: byNumber, lo: -2000, hi: 2000 },
  ])('by $order, $lo to $hi', ({ order, ordered, lo, hi }) => {
    const bound = (by: number): string =>
      Math.abs(by) === 2000
        ? `unbounded ${by < 0 ? 'preceding' : 'following'}`
        : by === 0
          ? 'current row'
          : `${Math.abs(by)} ${by < 0 ? 'preceding' : 'following'}`
    const over = `over (partition by few order by ${order} rows between ${bound(lo)} and ${bound(hi)})`
    const sql = `select ts, sum(wide) ${over} a, sum(huge) ${over} b, avg(wide) ${over} * count(wide) ${over} c from t`
    const query = queryOfText(sql, own)
    const temporary = temporaryFiles({ directory, memory: own.bench.memory, threadId: 1, files: nodeFiles() })
    const [wide, huge] = [exactSums(ordered, 3, lo, hi), exactSums(ordered, 4, lo, hi)]
    const expected = rows.map(([ts = null]) => [ts, wide.get(ts) ?? null, huge.get(ts) ?? null])
    for (const heapState of ['free', 'crowded'] as const) {
      const found = runQuery(own.bench, query, tablesOf(query, own), { temporary, heapState: () => heapState }).rows
      expect(found.map((row) => row.slice(0, 3))).toEqual(expected)
      expectSameRows(
        found.map((row) => [row[3] ?? null]),
        expected.map((row) => [row[1] ?? null]),
      )
    }
  })
})
