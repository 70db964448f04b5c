// Goal: a table scan in timestamp order returns rows with ascending timestamps, ties in commit order, even if rows
// within memtable blocks are unordered and memtables overlap in time. A descending scan reverses both orders; time
// ranges and filters apply, and LATEST ON finds the newest rows. Method: random tables, compared with a stable sort.

import { describe, expect, test } from 'vitest'
import { dataType } from '../../../engine/types/column-types.js'
import type { Value } from '../../../engine/types/value.js'
import { createRandom } from '../../support/random.js'
import { runs } from '../../support/runs.js'
import { callOf, columnOf, constantOf, createBench, makeTable, queryOf, runQuery, scanOf } from './exec-support.js'

const columns = [
  { name: 'ts', type: dataType('TIMESTAMP') },
  { name: 'row', type: dataType('LONG') },
  { name: 'sym', type: dataType('SYMBOL') },
  { name: 'note', type: dataType('VARCHAR') },
]

const byTime = (a: readonly Value[], b: readonly Value[]): number => Number((a[0] as bigint) - (b[0] as bigint))

describe('ordered scans', () => {
  for (const seed of [7, 4, 2, 1, 8, 3, 5, 6].slice(0, runs(8, 4))) {
    test(`seed ${seed}`, () => {
      const bench = createBench()
      const random = createRandom(seed)
      const jitter = random.pick([0, 1, 50, 5000, 1_000_000])
      const step = random.pick([0, 1, 3])
      let row = 0n
      const memtable = (count: number): Value[][] =>
        Array.from({ length: count }, () => {
          row++
          const ts = 1_000_000n + row * BigInt(step) + BigInt(random.below(jitter + 1))
          return [ts, row, random.chance(0.2) ? null : `s${random.below(9)}`, random.chance(0.3) ? null : `note ${row}`]
        })
      const memtables = Array.from({ length: random.between(1, 4) }, () => memtable(random.between(1, 40_000)))
      const table = makeTable(bench, columns, memtables, 0)
      const sorted = table.rows.toSorted(byTime)
      expect(runQuery(bench, queryOf(scanOf(table, { order: 'ascending' })), [table]).rows).toEqual(sorted)
      expect(runQuery(bench, queryOf(scanOf(table, { order: 'descending' })), [table]).rows).toEqual(
        sorted.toReversed(),
      )
      const [lo, hi] = [sorted[sorted.length >> 2]?.[0] as bigint, sorted[sorted.length >> 1]?.[0] as bigint]
      const ranges = [
        { lo, hi: lo + 5n },
        { lo: lo + 100n, hi: hi + 200n },
      ]
      const inside = sorted.filter(([ts]) =>
        ranges.some((range) => (ts as bigint) >= range.lo && (ts as bigint) <= range.hi),
      )
      const held = scanOf(table, {
        order: 'ascending',
        ranges,
        filter: callOf('=', [columnOf(columns, 2), constantOf('s3', dataType('STRING'))]),
      })
      expect(runQuery(bench, queryOf(held), [table]).rows).toEqual(inside.filter(([, , sym]) => sym === 's3'))
      const any = runQuery(bench, queryOf({ ...held, order: 'any' }), [table]).rows
      expect(any.toSorted((a, b) => Number((a[1] as bigint) - (b[1] as bigint)))).toEqual(
        inside.filter(([, , sym]) => sym === 's3').toSorted((a, b) => Number((a[1] as bigint) - (b[1] as bigint))),
      )
      const latest = runQuery(
        bench,
        queryOf({
          kind: 'latest',
          columns,
          input: scanOf(table, { order: 'ascending' }),
          timestampIndex: 0,
          keys: [2],
        }),
        [table],
      ).rows
      const newest = new Map<Value, readonly Value[]>()
      for (const entry of sorted) newest.set(entry[2] as Value, entry)
      expect(latest).toEqual([...newest.values()].toSorted((a, b) => sorted.indexOf(a) - sorted.indexOf(b)))
    })
  }

  test.each([255, 256, 700])('%d generations of one moment', (count) => {
    const bench = createBench()
    const random = createRandom(count)
    let row = 0n
    const memtables = Array.from({ length: count }, () =>
      Array.from({ length: random.between(1, 30) }, (): Value[] => {
        row++
        return [1_000_000n + BigInt(random.below(500)), row, `s${row % 7n}`, row % 5n === 0n ? null : `note ${row}`]
      }),
    )
    const table = makeTable(bench, columns, memtables, 0)
    const sorted = table.rows.toSorted(byTime)
    expect(runQuery(bench, queryOf(scanOf(table, { order: 'ascending' })), [table]).rows).toEqual(sorted)
    expect(runQuery(bench, queryOf(scanOf(table, { order: 'descending' })), [table]).rows).toEqual(sorted.toReversed())
  })
})
