// Goal: joins return the same rows as an interpreter that joins by nested loops. Method: SQL statements over random
// tables with different dictionaries, many equal and missing keys, equal timestamps, and more matches than fit in a
// batch.

import { describe, expect, test } from 'vitest'
import { dataType } from '../../../../engine/types/column-types.js'
import type { Value } from '../../../../engine/types/value.js'
import { createRandom, type Random } from '../../../support/random.js'
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
  { name: 'c', type: dataType('CHAR') },
  { name: 'dec', type: dataType('DECIMAL', 10, 2) },
]

const dimensions = [
  { name: 'sym', type: dataType('SYMBOL') },
  { name: 'name', type: dataType('STRING') },
  { name: 'k', type: dataType('INT') },
  { name: 'big', type: dataType('DECIMAL', 30, 2) },
  { name: 'ns', type: dataType('TIMESTAMP_NS') },
]

function randomRow(random: Random, index: number, step: bigint, symbols: number): Value[] {
  const or = <T extends Value>(value: T): T | null => (random.chance(0.1) ? null : value)
  return [
    start + (BigInt(index) * step) / 3n,
    or(`s${random.below(symbols)}`),
    or(random.between(0, 30)),
    or(random.pick([0, -0, 1.5, 2.5, random.below(9)])),
    or(random.pick(['', 'one', 's1', 's2', 'a longer text that does not fit into sixteen bytes'])),
    or(BigInt(random.between(0, 12)) * (random.chance(0.2) ? 10_000_000_000n : 1n)),
    or(BigInt(random.below(6))),
    random.pick(['', 'a', 'b']),
    or(BigInt(random.between(0, 20))),
  ]
}

function randomDatabase(seed: number): Database {
  const random = createRandom(seed)
  const rowsOf = (count: number, step: bigint, symbols: number): Value[][] =>
    Array.from({ length: count }, (_, index) => randomRow(random, index, step, symbols))
  const t = rowsOf(random.between(1, 500), 7_000n, 6)
  const q = rowsOf(random.between(0, 400), random.pick([7_000n, 9_000n, 1_000n]), 8)
  const cut = random.below(t.length + 1)
  const dims = Array.from({ length: 9 }, (_, index) => [
    random.chance(0.2) ? null : `s${random.below(7)}`,
    random.pick(['one', 's1', '', null]),
    index,
    BigInt(random.between(0, 20)),
    (start + BigInt(index) * 400_000n) * 1000n + BigInt(random.below(1000)),
  ])
  return makeDatabase(createBench(), [
    { name: 't', columns, memtables: [t.slice(0, cut), t.slice(cut)], timestampId: 0 },
    { name: 'q', columns, memtables: [q], timestampId: 0 },
    { name: 'dims', columns: dimensions, memtables: [dims], timestampId: -1 },
  ])
}

const statements = [
  'select * from t join q on t.i = q.i',
  'select t.sym, q.sym, t.i, q.d from t join q on t.sym = q.sym and t.i = q.i',
  'select * from t left join q on t.sym = q.sym and t.i = q.i',
  'select t.i, q.i, dims.k from t left join q on t.i = q.i and t.l = q.l left join dims on dims.sym = q.sym',
  'select t.ts, t.i, q.i from t right join q on t.i = q.i and t.u = q.u',
  'select t.i, q.i, t.sym, q.sym from t full join q on t.i = q.i and t.v = q.v',
  'select t.i, q.i, t.d, q.d from t full join q on t.d = q.d and t.i < q.i',
  'select t.i, q.i, t.d, q.d from t left join q on t.i = q.i and t.d > q.d',
  'select t.i, q.i, t.d, q.d from t right join q on t.i = q.i and t.d > q.d and t.l = 3',
  'select t.sym, dims.name, dims.k from t join dims on t.sym = dims.name',
  'select t.v, dims.sym, dims.k from t left join dims on t.v = dims.sym',
  'select t.c, q.v from t join q on t.c = q.v',
  'select t.dec, dims.big, dims.k from t join dims on t.dec = dims.big',
  'select dims.k, a.k from dims cross join dims a',
  'select dims.k, a.k from dims join dims a on dims.k < a.k',
  'select dims.k, t.i, t.ts from dims left join t on dims.k > t.i and t.d > 2',
  'select dims.k, t.i from dims full join t on dims.k * 2 = t.i + 1',
  'select a.ts, b.ts from t a join t b on a.ts = b.ts',
  'select a.sym, b.sym from (select distinct sym from t) a join (select distinct sym from q) b on a.sym = b.sym',
  "select a.x, b.sym from (select concat('s', i) x from t) a join q b on a.x = b.sym",
  'select a.s, b.s from (select sym::symbol s from t) a join (select v::symbol s from q) b on a.s = b.s',
  'select count(), sum(t.i + q.i), max(q.ts) from t join q on t.u = q.u',
  'select * from t asof join q on (sym)',
  'select t.ts, q.ts, t.i, q.i, q.v, q.sym from t asof join q on (sym, u)',
  'select t.ts, q.ts, q.d, q.v from t asof join q',
  'select t.ts, q.ts, q.d, q.v from t lt join q on (sym)',
  'select t.ts, q.ts, q.d from t lt join q',
  'select a.ts, b.ts, a.sym, b.sym, b.i from t a lt join t b on (sym)',
  'select t.ts, q.ts, q.d from t asof join q on (sym) tolerance 10T',
  'select t.ts, q.ts, q.d from t lt join q on (i) tolerance 1s',
  "select t.ts, q.ts, q.d, q.sym from t asof join (select * from q where d > 1 and sym != 's1') q on (sym)",
  'select t.ts, q.ts, q.i from t asof join q on t.v = q.sym',
  'select t.ts, q.ts, p.ts, p.i from t asof join q on (sym) asof join t p on (u)',
  'select t.ts, q.ts, t.sym, q.sym, t.i, q.i from t splice join q on (sym)',
  'select t.ts, q.ts, t.i, q.i from t splice join q',
  'select t.i, dims.k, dims.name from t left join dims on t.i = dims.k',
  'select t.i, dims.k, dims.name from t left join dims on t.i = dims.k and t.d > 1',
  'select t.i, dims.k, dims.name from t left join dims on t.i = dims.k and dims.k > 4',
  'select t.l, x.l, x.n from t full join (select l, count() n from q group by l) x on t.l = x.l',
  'select t.l, x.l, x.n from t join (select l, u, count() n from q group by l, u) x on t.l = x.l and t.u = x.u',
  'select t.i, x.n from t left join (select i, v, count() n from q group by i, v) x on t.i = x.i and t.v = x.v and x.n > 1',
  'select t.sym, count(), sum(t.i), max(x.n) from t left join (select i, count() n from q group by i) x on t.i = x.i group by t.sym',
  'select t.sym, count(), sum(t.i), max(dims.k) from t join dims on t.sym = dims.sym join q on q.l = t.l group by t.sym',
  'select distinct t.sym, dims.name from t join dims on t.i = dims.k',
  'select t.sym, count(), avg(q.d) from t asof join q on (sym) order by t.sym',
]

describe('joins and the interpreter agree', () => {
  for (const seed of [21, 22, 23, 24]) {
    const database = randomDatabase(seed)
    for (const sql of statements) test(`seed ${seed}: ${sql}`, () => void compareWithInterpreter(sql, database))
  }
})

describe('joins', () => {
  test('lists of matches go over the end of a batch', () => {
    const values = (count: number): Value[][] => Array.from({ length: count }, (_, index) => [index, index % 3])
    const pair = [
      { name: 'x', type: dataType('INT') },
      { name: 'k', type: dataType('INT') },
    ]
    const database = makeDatabase(createBench(), [
      { name: 't', columns: pair, memtables: [values(400)], timestampId: -1 },
      { name: 'q', columns: pair, memtables: [values(1000)], timestampId: -1 },
    ])
    const rows = [
      'select t.x, q.x from t join q on t.k = q.k',
      'select t.x, q.x from t left join q on t.k = q.k and q.x > t.x + 500',
      'select t.x, q.x from t full join q on t.k = q.k and q.x - t.x = 700',
      'select t.x, q.x from t cross join q where q.x < 300',
    ].map((sql) => compareWithInterpreter(sql, database))
    expect(rows[0]).toBeGreaterThan(16_384 * 8)
  })

  test('rows that no key names any more are dropped', () => {
    const database = makeDatabase(createBench(512), [])
    const left = '(select (x * 1000)::timestamp ts, x % 9 k from long_sequence(800)) timestamp(ts)'
    const right = "(select x::timestamp ts, x % 7 k, x, concat('text ', x) v from long_sequence(800000)) timestamp(ts)"
    const query = queryOfText(`select t.ts, t.k, q.x, q.v from (${left}) t asof join (${right}) q on (k)`, database)
    const { rows } = runQuery(database.bench, query, tablesOf(query, database))
    const expected = Array.from({ length: 800 }, (_, index) => {
      const [ts, key] = [(index + 1) * 1000, (index + 1) % 9]
      const found = key > 6 ? null : ts - ((((ts - key) % 7) + 7) % 7)
      const value = found === null ? null : BigInt(found)
      return [BigInt(ts), BigInt(key), value, found === null ? null : `text ${found}`]
    })
    expect(rows).toEqual(expected)
  })

  test('timestamps of micros and nanos are compared by the moment', () => {
    const database = makeDatabase(createBench(), [
      { name: 'm', columns: columns.slice(0, 1), memtables: [[[start], [start + 5n]]], timestampId: 0 },
      {
        name: 'n',
        columns: [{ name: 'ns', type: dataType('TIMESTAMP_NS') }],
        memtables: [[[start * 1000n + 4999n], [start * 1000n + 5001n]]],
        timestampId: 0,
      },
    ])
    const query = queryOfText('select m.ts, n.ns from m asof join n', database)
    expect(runQuery(database.bench, query, tablesOf(query, database)).rows).toEqual([
      [start, null],
      [start + 5n, start * 1000n + 4999n],
    ])
  })

  test('a join beyond the memory of queries is refused, and gives all back', () => {
    const rows = Array.from({ length: 300 }, (_, index) => [start + BigInt(index)])
    const database = makeDatabase(createBench(16), [
      { name: 't', columns: columns.slice(0, 1), memtables: [rows], timestampId: 0 },
    ])
    const sql = 'select a.ts, b.ts from t a join (select x.ts from t x cross join t y cross join t z) b on a.ts = b.ts'
    const query = queryOfText(sql, database)
    expect(() => runQuery(database.bench, query, tablesOf(query, database))).toThrow(/memory/)
  })

  test('a large cross join can be stopped', () => {
    const rows = Array.from({ length: 3000 }, (_, index) => [start + BigInt(index)])
    const database = makeDatabase(createBench(), [
      { name: 't', columns: columns.slice(0, 1), memtables: [rows], timestampId: 0 },
    ])
    const sql = 'select count() from t a cross join t b cross join t c where a.ts > b.ts'
    const query = queryOfText(sql, database)
    expect(() => runQuery(database.bench, query, tablesOf(query, database), { timeoutMs: 50 })).toThrow(/timeout/)
  })
})
