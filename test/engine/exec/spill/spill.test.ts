// Goal: an operator that outgrows its memory and spills to temporary files returns the same rows, in the same order, as
// with enough memory. Method: random statements over random tables, with enough memory, and with so little that the
// operator partitions its rows. In a second run, operators are told to spill at random times, also after their first
// rows and within partitions, which are then partitioned again. Sums of doubles may differ in the last digits.

import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { dataType } from '../../../../engine/types/column-types.js'
import type { Value } from '../../../../engine/types/value.js'
import { createRandom, type Random } from '../../../support/random.js'
import { runs } from '../../../support/runs.js'
import { createBench, runQuery } from '../exec-support.js'
import { type Database, makeDatabase, queryOfText, tablesOf } from '../statement-support.js'
import { countedFiles } from './spill-support.js'

const columns = [
  { name: 'ts', type: dataType('TIMESTAMP') },
  { name: 'l', type: dataType('LONG') },
  { name: 'i', type: dataType('INT') },
  { name: 's', type: dataType('SHORT') },
  { name: 'd', type: dataType('DOUBLE') },
  { name: 'f', type: dataType('FLOAT') },
  { name: 'v', type: dataType('VARCHAR') },
  { name: 'sym', type: dataType('SYMBOL') },
  { name: 'u', type: dataType('UUID') },
  { name: 'few', type: dataType('SYMBOL') },
  { name: 'c', type: dataType('CHAR') },
]
const start = 1_710_000_000_000_000n
const keysMax = 12_000

function rowsOf(random: Random, count: number): Value[][] {
  const or = <T extends Value>(value: T): T | null => (random.chance(0.004) ? null : value)
  return Array.from({ length: count }, (_, row) => [
    start + BigInt(row) * 1_000n,
    or(BigInt(random.below(keysMax)) * 1_000_000_007n),
    or(random.below(keysMax)),
    random.between(-30_000, 30_000),
    or(random.chance(0.004) ? random.pick([0, -0]) : random.below(keysMax) / 4),
    or(Math.fround(random.below(keysMax) / 8)),
    or(random.chance(0.004) ? '' : `text ${random.below(keysMax)} of more than a few bytes`),
    or(`s${random.below(keysMax)}`),
    or(BigInt(random.below(keysMax))),
    or(`few ${random.below(4)}`),
    random.pick(['', 'a', 'b']),
  ])
}

const keys = ['l', 'i', 's', 'd', 'f', 'v', 'sym', 'u'] as const
const aggregates = [
  'count()',
  'sum(i)',
  'sum(d)',
  'avg(l)',
  'min(d)',
  'max(v)',
  'first(v)',
  'last(sym)',
  'first(l)',
  'last(d)',
  'count_distinct(i)',
  'count_distinct(v)',
  "string_agg(few, ',')",
  'approx_percentile(d, 0.5)',
  'stddev(i)',
] as const

function groupBy(random: Random): string {
  const own = [...new Set([random.pick(keys), random.pick(keys), random.pick(['few', 'c'])])]
  const chosen = own.slice(0, random.between(1, own.length))
  const calls = [random.pick(aggregates), random.pick(aggregates), random.pick(aggregates)]
  return `select ${chosen.join()}, ${calls.map((call, index) => `${call} a${index}`).join()} from t group by ${chosen.join()}`
}

function samples(random: Random): string {
  const own = [...new Set([random.pick(keys), ...(random.chance(0.3) ? ['few'] : [])])]
  const calls = [random.pick(aggregates), random.pick(aggregates)]
  const interval = random.pick(['3s', '20s', '1m', "1m align to calendar with offset '00:10'"])
  return `select ts, ${own.join()}, ${calls.map((call, index) => `${call} a${index}`).join()} from t sample by ${interval}`
}

function filled(random: Random): string {
  const key = random.pick(keys)
  const fill = random.pick(['prev', 'null', 'linear', '0, 1'])
  const calls = fill === 'null' || fill === 'prev' ? 'last(v) a, count() b' : 'sum(i) a, avg(d) b'
  const align = random.pick(['', ' align to first observation', " align to calendar with offset '00:03'"])
  return `select ts, ${key}, ${calls} from t where s > 10000 sample by 7s fill(${fill})${align}`
}

function distinct(random: Random): string {
  const chosen = [...new Set([random.pick(keys), random.pick(keys), 'few'])]
  return random.pick([
    `select distinct ${chosen.join()} from t`,
    `select count() from (select distinct ${chosen.join()} from t)`,
  ])
}

function sets(random: Random): string {
  const [a, b] = [random.pick(keys), random.pick(keys)]
  const operation = random.pick(['union', 'except', 'intersect', 'except all', 'intersect all'])
  return `select ${a}, ${b} from t ${operation} select ${a}, ${b} from r`
}

const pairs = ['t.l = r.l', 't.i = r.i', 't.v = r.v', 't.sym = r.sym', 't.sym = r.v', 't.u = r.u', 't.d = r.d'] as const

function joins(random: Random): string {
  const kind = random.pick(['join', 'left join', 'right join', 'full join'])
  const on = [random.pick(pairs), ...(random.chance(0.3) ? ['t.few = r.few'] : [])].join(' and ')
  return random.pick([
    `select t.ts, t.l, r.v, r.i from t ${kind} r on ${on}`,
    `select count(), sum(t.i), min(r.v) from t ${kind} r on ${on}`,
    `select t.ts, r.ts, t.i, r.s from t ${kind} r on ${on} and t.s < r.s`,
  ])
}

function windows(random: Random): string {
  const key = random.pick(keys)
  const call = random.pick([
    `row_number() over (partition by ${key} order by i, ts)`,
    `sum(i) over (partition by ${key} order by s rows between 2 preceding and current row)`,
    `avg(d) over (partition by ${key})`,
    `lag(v) over (partition by ${key} order by l, ts)`,
    `row_number() over (partition by ${key})`,
    `rank() over (partition by ${key} order by s)`,
    `max(i) over (partition by ${key}, few)`,
  ])
  const other = random.pick([
    '',
    `, count() over (partition by ${random.pick(keys)})`,
    ', row_number() over (order by ts)',
  ])
  return `select ts, v, ${call} w${other} from t`
}

function latest(random: Random): string {
  const chosen = [...new Set([random.pick(keys), ...(random.chance(0.3) ? ['few'] : [])])]
  return random.pick([
    `select ts, i, v from t latest on ts partition by ${chosen.join()}`,
    `select ts, i, v from (select * from t where s > -20000) latest on ts partition by ${chosen.join()}`,
  ])
}

function asof(random: Random): string {
  const kind = random.pick(['asof', 'lt', 'splice'])
  const key = random.pick(['l', 'i', 'v', 'sym', 'u'])
  return `select t.ts, t.i, r.ts, r.v from t ${kind} join r on (${key})`
}

const makers = { groupBy, samples, filled, distinct, sets, joins, windows, latest, asof } as const

let directory: string
let database: Database
beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), 'penstock-spill-'))
  const random = createRandom(11)
  const bench = createBench(benchMebibytes)
  const table = (name: string, count: number) => {
    const rows = rowsOf(random, count)
    const half = count >> 1
    return { name, columns, memtables: [rows.slice(0, half), rows.slice(half)], timestampId: 0 }
  }
  database = makeDatabase(bench, [table('t', 40_000), table('r', 60_000)])
})
afterAll(() => rmSync(directory, { recursive: true }))

function same(a: Value | undefined, b: Value | undefined): boolean {
  if (typeof a !== 'number' || typeof b !== 'number') return String(a) === String(b)
  return Object.is(a, b) || Math.abs(a - b) <= 1e-9 * Math.max(1, Math.abs(a), Math.abs(b))
}

function expectSame(rows: readonly (readonly Value[])[], expected: readonly (readonly Value[])[]): void {
  const wrong = expected.findIndex((row, at) => row.some((value, column) => !same(rows[at]?.[column], value)))
  expect({ count: rows.length, wrong, row: rows[wrong] }).toEqual({ count: expected.length, wrong: -1, row: undefined })
}

const benchMebibytes = 128
/** A sixteenth of the memory of queries (half of the bench's) is reserved for queries that have sent rows. */
const reservedMebibytes = benchMebibytes / 2 / 16
const limits = [8, 5, 4].map((mebibytes) => (reservedMebibytes + mebibytes) * 1024 * 1024)

describe('the result is that of an operator with enough memory', () => {
  for (const [name, make] of Object.entries(makers)) {
    test(name, () => {
      const random = createRandom(name.length * 31 + 5)
      // The number of slices depends on time, so these draws must not choose the statements.
      const heap = createRandom(name.length)
      let created = 0
      for (let run = 0; run < runs(20, 3); run++) {
        const sql = make(random)
        const query = queryOfText(sql, database)
        const tables = tablesOf(query, database)
        const expected = runQuery(database.bench, query, tables).rows
        // Some spill early, however few slices there are.
        let slices = 0
        const heapState = () =>
          ((++slices === 1 && run % 3 === 0) || heap.chance(0.1) ? 'crowded' : 'free') as 'crowded' | 'free'
        for (const shortage of [{ heapState }, ...limits.map((memoryLeft) => ({ memoryLeft }))]) {
          const files = countedFiles(directory, database.bench.memory)
          const { temporary } = files
          try {
            expectSame(runQuery(database.bench, query, tables, { temporary, ...shortage }).rows, expected)
          } catch (error) {
            throw new Error(
              `${sql} with ${Object.entries(shortage)}: ${error instanceof Error ? error.message : error}`,
            )
          }
          created += files.created()
        }
      }
      expect(created).toBeGreaterThan(0)
      expect(readdirSync(directory)).toEqual([])
    })
  }
})

test('FILL adds rows for the buckets of all rows where local time is turned back over midnight', () => {
  // At 02:31 UTC, one minute after midnight, it is 23:01 of the day before again.
  const midnight = BigInt(Date.UTC(2006, 9, 29, 2, 30)) * 1000n
  const rows = Array.from({ length: 40_000 }, (_, row): Value[] => [
    midnight + 30_000_000n + BigInt(row) * 30_000n,
    `key ${row} ${'of many bytes '.repeat(8)}`,
  ])
  const night = [
    { name: 'ts', type: dataType('TIMESTAMP') },
    { name: 'v', type: dataType('VARCHAR') },
  ]
  const own = makeDatabase(database.bench, [{ name: 'night', columns: night, memtables: [rows], timestampId: 0 }])
  const sql = `select ts, v, count() c from night sample by 1d fill(0) align to calendar time zone 'America/St_Johns'`
  const query = queryOfText(sql, own)
  const tables = tablesOf(query, own)
  const expected = runQuery(own.bench, query, tables).rows
  const { temporary, created } = countedFiles(directory, database.bench.memory)
  expectSame(runQuery(own.bench, query, tables, { temporary, memoryLeft: limits[1] ?? 0 }).rows, expected)
  expect(expected.length).toBe(80_000)
  expect(created()).toBeGreaterThan(0)
})

// At 01:00 UTC it is 02:00 again. The bucket from 00:30 on begins then, but 00:30 is in the bucket from 00:15 on.
test.each([
  { fill: '', files: 1 },
  { fill: 'fill(null)', files: 0 },
])('distinct values are counted in each bucket where clocks are set back $fill', ({ fill, files }) => {
  const midnight = BigInt(Date.UTC(2024, 9, 27)) * 1000n
  const rows = Array.from({ length: 40_000 }, (_, row): Value[] => [
    midnight + BigInt(row) * 200_000n,
    `key ${row % 3000}`,
    row % 2,
  ])
  const night = [
    { name: 'ts', type: dataType('TIMESTAMP') },
    { name: 'v', type: dataType('VARCHAR') },
    { name: 'k', type: dataType('INT') },
  ]
  const own = makeDatabase(database.bench, [{ name: 'night', columns: night, memtables: [rows], timestampId: 0 }])
  for (const calls of [
    'count() c, count(distinct v) d',
    'count(distinct v) d',
    'count(distinct v) d, sum(distinct k) s',
  ]) {
    const sql = `select ts, ${calls} from night sample by 45m ${fill} align to calendar time zone 'Europe/Berlin'`
    const query = queryOfText(sql, own)
    const tables = tablesOf(query, own)
    const expected = runQuery(own.bench, query, tables).rows
    const { temporary, created } = countedFiles(directory, database.bench.memory)
    const heapState = () => 'crowded' as const
    expect(runQuery(own.bench, query, tables, { temporary, heapState }).rows).toEqual(expected)
    expect(expected.length).toBe(5)
    expect(Math.sign(created())).toBe(files)
  }
})
