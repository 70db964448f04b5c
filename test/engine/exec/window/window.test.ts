// Goal: window functions return the same values as the row-at-a-time interpreter, which recomputes every frame. Method:
// every function over random tables with ties and NULLs, combined with orders and frames of all kinds.

import { describe, expect, test } from 'vitest'
import { dataType } from '../../../../engine/types/column-types.js'
import type { Value } from '../../../../engine/types/value.js'
import { createRandom, type Random } from '../../../support/random.js'
import { runs } from '../../../support/runs.js'
import { createBench, runQuery } from '../exec-support.js'
import { compareWithInterpreter, type Database, makeDatabase, queryOfText, tablesOf } from '../statement-support.js'

const start = 1_710_000_000_000_000n

const columns = [
  { name: 'ts', type: dataType('TIMESTAMP') },
  { name: 'sym', type: dataType('SYMBOL') },
  { name: 'i', type: dataType('INT') },
  { name: 'd', type: dataType('DOUBLE') },
  { name: 'v', type: dataType('VARCHAR') },
  { name: 'l', type: dataType('LONG') },
  { name: 'u', type: dataType('UUID') },
  { name: 'dec', type: dataType('DECIMAL', 10, 2) },
  { name: 'f', type: dataType('FLOAT') },
  { name: 's', type: dataType('SHORT') },
  { name: 'dt', type: dataType('DATE') },
]

function randomRow(random: Random, index: number): Value[] {
  const or = <T extends Value>(value: T): T | null => (random.chance(0.15) ? null : value)
  return [
    start + BigInt(Math.floor(index / 3)) * 1_000_000n,
    or(`s${random.below(4)}`),
    or(random.between(-5, 12)),
    or(random.pick([0, -0, 1.5, 2.5, 1e15, random.next() * 9, random.below(9)])),
    or(random.pick(['', 'one', 'two', 'a longer text that does not fit into sixteen bytes'])),
    or(BigInt(random.between(-4, 6)) * (random.chance(0.2) ? 10_000_000_000n : 1n)),
    or(BigInt(random.below(3))),
    or(BigInt(random.between(-500, 500))),
    or(Math.fround(random.next() * 5)),
    random.between(-3, 3),
    or(BigInt(random.between(0, 9)) * 86_400_000n),
  ]
}

function randomDatabase(seed: number): Database {
  const random = createRandom(seed)
  const rows = Array.from({ length: random.between(1, 60) }, (_, index) => randomRow(random, index))
  const cut = random.below(rows.length + 1)
  return makeDatabase(createBench(), [
    { name: 't', columns, memtables: [rows.slice(0, cut), rows.slice(cut)], timestampId: 0 },
  ])
}

const calls = [
  'row_number()',
  'rank()',
  'dense_rank()',
  'percent_rank()',
  'cume_dist()',
  'ntile(4)',
  'lag(i)',
  'lag(v, 2)',
  'lag(sym, 1, sym)',
  "lag(sym, 3, 'none')",
  'lag(d) ignore nulls',
  'lead(dec, 2)',
  'lead(l, i % 3, 7)',
  'lead(v, 2) ignore nulls',
]

const framed = [
  'sum(i)',
  'sum(d)',
  'avg(l)',
  'avg(f)',
  'count()',
  'count(v)',
  'min(l)',
  'max(d)',
  'min(ts)',
  'max(v)',
  'max(dt)',
  'sum(dec)',
  'first_value(d)',
  'first_value(v) ignore nulls',
  'last_value(sym)',
  'last_value(l) ignore nulls',
  'nth_value(i, 2)',
  'nth_value(u, 3) ignore nulls',
  'stddev(d)',
  'ksum(d)',
  'corr(i, s)',
  'count_distinct(sym)',
  'string_agg(v, $)'.replace('$', "','"),
  'first(v)',
]

const orders = [
  '',
  'order by ts',
  'partition by sym',
  'partition by sym order by ts',
  'partition by sym order by i',
  'partition by sym, s order by d desc',
  'order by v, l desc',
  'partition by i % 3, v order by l',
  'order by sym desc, u',
]

const rowFrames = [
  'rows between unbounded preceding and current row',
  'rows between 3 preceding and current row',
  'rows between 2 preceding and 2 following',
  'rows between 1 following and 4 following',
  'rows between 5 preceding and 2 preceding',
  'rows between current row and unbounded following',
  'rows between unbounded preceding and unbounded following',
  'rows between 3 preceding and current row exclude current row',
  'rows between current row and 3 following exclude current row',
  'rows between 2 preceding and 2 following exclude current row',
  'rows between 4 preceding and 3 following exclude group',
  'rows between 4 preceding and 3 following exclude ties',
]

const orderedFrames = [
  'range between unbounded preceding and current row',
  'range between current row and unbounded following',
  'range between current row and current row',
  'range unbounded preceding exclude group',
  'range between unbounded preceding and unbounded following exclude ties',
  'groups between 1 preceding and 1 following',
  'groups between unbounded preceding and 2 following exclude current row',
  'groups between 1 following and 2 following',
]

const rangeFrames = [
  'order by ts range between 2 second preceding and current row',
  'partition by sym order by ts range between 3 second preceding and 1 second following',
  'order by i range between 2 preceding and 2 following',
  'order by i desc range between 2 preceding and 1 following',
  'partition by sym order by d range between unbounded preceding and 3 following',
  'order by d desc range between 1 preceding and unbounded following',
  'partition by sym order by l range between 1 following and 3 following',
  'order by l desc range between current row and 2 following',
]

function statement(list: readonly string[], over: string): string {
  return `select ts, ${list.map((call, index) => `${call} over (${over}) c${index}`).join(', ')} from t`
}

describe('window functions and the interpreter agree', () => {
  for (const seed of [31, 32, 33].slice(0, runs(3, 2))) {
    const database = randomDatabase(seed)
    const overs = [
      ...orders,
      ...orders.flatMap((order) => rowFrames.map((frame) => `${order} ${frame}`)),
      ...orders
        .filter((order) => order.includes('order'))
        .flatMap((order) => orderedFrames.map((frame) => `${order} ${frame}`)),
      ...rangeFrames,
    ]
    for (const order of orders) {
      test(`seed ${seed}: places over (${order})`, () => void compareWithInterpreter(statement(calls, order), database))
    }
    for (const over of overs) {
      test(`seed ${seed}: over (${over})`, () => void compareWithInterpreter(statement(framed, over), database))
    }
  }
})

describe('window functions', () => {
  test('a value that left the frame leaves no trace', () => {
    const rows = [1e300, 1, 2, 3].map((value, index) => [start + BigInt(index), value])
    const database = makeDatabase(createBench(), [
      { name: 't', columns: [columns[0], columns[3]] as typeof columns, memtables: [rows], timestampId: 0 },
    ])
    const query = queryOfText('select sum(d) over (order by ts rows 1 preceding) from t', database)
    const sums = runQuery(database.bench, query, tablesOf(query, database)).rows
    expect(sums).toEqual([[1e300], [1e300], [3], [5]])
  })

  test('partitions and frames go over the ends of batches and steps', () => {
    const database = randomDatabase(41)
    const overall = (sql: string): unknown[] => {
      const query = queryOfText(`select count(), sum(s), min(s), max(s) from (${sql})`, database)
      return [...(runQuery(database.bench, query, tablesOf(query, database)).rows[0] ?? [])]
    }
    const numbers = 'from long_sequence(150000)'
    const sums = overall(`select sum(x) over (partition by x % 3 order by x rows 100 preceding) s ${numbers}`)
    expect(sums).toEqual([150000n, 1133986590000, 1, 101 * 150000 - 3 * 5050])
    const peaks = overall(
      `select max(x % 1000) over (order by x rows between 500 preceding and 500 following) s ${numbers}`,
    )
    expect(peaks).toEqual([150000n, 149725749n, 501n, 999n])
    const places = overall(`select row_number() over (partition by x % 50000) s ${numbers}`)
    expect(places).toEqual([150000n, 300000n, 1n, 3n])
    const spreads = overall(`select stddev(x) over (order by x rows 50 preceding) s ${numbers}`)
    expect(spreads[3]).toBeCloseTo(Math.sqrt((51 * 52) / 12), 9)
  })

  test('blocks of a stream answer as rows that are kept', () => {
    const random = createRandom(43)
    const many = Array.from({ length: 50_000 }, (_, index) => randomRow(random, index))
    const database = makeDatabase(createBench(256), [
      { name: 't', columns, memtables: [many.slice(0, 20_000), many.slice(20_000)], timestampId: 0 },
    ])
    const run = (sql: string) => {
      const query = queryOfText(sql, database)
      return runQuery(database.bench, query, tablesOf(query, database)).rows
    }
    const streams = [
      'row_number() over (partition by sym order by ts)',
      'row_number() over ()',
      'lag(v, 5) over (partition by l order by ts)',
      'lag(sym, 2, v::symbol) over (partition by sym, i)',
      'sum(i) over (partition by sym order by ts rows between 70 preceding and current row)',
      'avg(i) over (order by ts rows between unbounded preceding and current row)',
      'sum(l) over (partition by v order by ts rows between unbounded preceding and current row)',
      'count(d) over (partition by v rows between unbounded preceding and current row)',
      'max(dec) over (partition by u order by ts rows between 9 preceding and 3 preceding)',
      'last_value(v) ignore nulls over (partition by sym order by ts rows 4 preceding)',
      'count() over (rows between 3000 preceding and current row exclude current row)',
    ]
    // rank needs all rows: the same calls without a stream.
    const list = (calls: readonly string[]) =>
      `select ${calls.map((call, index) => `${call} c${index}`).join(', ')} from t`
    const retained = run(list([...streams, 'rank() over (order by i)']))
    const streamed = run(list(streams))
    expect(streamed.length).toBe(50_000)
    expect(streamed).toEqual(retained.map((row) => row.slice(0, -1)))
  })

  test('a distance in anything but numbers is refused', () => {
    const database = randomDatabase(42)
    for (const order of ['order by v', 'order by i, l', '']) {
      const text = `select sum(i) over (${order} range between 1 preceding and 2 following) from t`
      const run = () => {
        const query = queryOfText(text, database)
        return runQuery(database.bench, query, tablesOf(query, database))
      }
      expect(run).toThrow(/RANGE with (an )?offset/)
    }
  })
})
