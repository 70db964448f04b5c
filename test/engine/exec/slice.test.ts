// Goal: plans over a memtable run from scan to encoded result: filter, projection, aggregation, sort, limit and
// distinct. The result is values or JSON, and all memory is freed.

import { describe, expect, test } from 'vitest'
import { dataType } from '../../../engine/types/column-types.js'
import {
  callOf,
  columnOf,
  constantOf,
  createBench,
  json,
  makeTable,
  queryOf,
  runQuery,
  scanOf,
} from './exec-support.js'

const bench = createBench()
const columns = [
  { name: 'ts', type: dataType('TIMESTAMP') },
  { name: 'sym', type: dataType('SYMBOL') },
  { name: 'price', type: dataType('DOUBLE') },
  { name: 'size', type: dataType('LONG') },
  { name: 'note', type: dataType('VARCHAR') },
]
const start = 1_704_067_200_000_000n
const rows = Array.from({ length: 10_000 }, (_, index) => [
  start + BigInt(index) * 1_000_000n,
  index % 7 === 0 ? null : `s${index % 5}`,
  index % 11 === 0 ? null : index / 4,
  index % 13 === 0 ? null : BigInt(index),
  index % 3 === 0 ? null : `n"${index}`,
])
const table = makeTable(bench, columns, [rows.slice(0, 6000), rows.slice(6000)], 0)

describe('plans over a memtable', () => {
  test('a scan gives every value', () => {
    expect(runQuery(bench, queryOf(scanOf(table)), [table]).rows).toEqual(rows)
  })

  test('ranges and filters restrict it', () => {
    const filter = callOf('=', [columnOf(columns, 1), constantOf('s2', dataType('STRING'))])
    const plan = scanOf(table, { ranges: [{ lo: start + 5n, hi: start + 7_000_000_000n }], filter })
    const expected = rows.filter(
      ([ts, sym]) => sym === 's2' && (ts as bigint) >= start + 5n && (ts as bigint) <= start + 7_000_000_000n,
    )
    expect(runQuery(bench, queryOf(plan), [table]).rows).toEqual(expected)
  })

  test('groups are found in order of first appearance', () => {
    const plan = {
      kind: 'aggregate' as const,
      input: scanOf(table),
      columns: [
        columns[1] as (typeof columns)[number],
        { name: 'n', type: dataType('LONG') },
        { name: 'sum', type: dataType('DOUBLE') },
      ],
      keys: [columnOf(columns, 1)],
      aggregates: [
        { name: 'count', args: [], type: dataType('LONG'), position: 0 },
        { name: 'sum', args: [columnOf(columns, 2)], type: dataType('DOUBLE'), position: 0 },
      ],
    }
    const expected = new Map<unknown, [bigint, number]>()
    for (const [, sym, price] of rows) {
      const [count, sum] = expected.get(sym) ?? [0n, 0]
      expected.set(sym, [count + 1n, sum + Number(price ?? 0)])
    }
    expect(runQuery(bench, queryOf(plan), [table]).rows).toEqual(
      [...expected].map(([key, [count, sum]]) => [key, count, sum]),
    )
  })

  test('sort, limit and distinct', () => {
    const sorted = {
      kind: 'sort' as const,
      columns,
      input: scanOf(table),
      keys: [
        { index: 1, descending: true, nullsFirst: false },
        { index: 2, descending: false, nullsFirst: true },
      ],
      limit: null,
    }
    const limited = { kind: 'limit' as const, columns, input: sorted, lo: -3, hi: null }
    const got = runQuery(bench, queryOf(limited), [table]).rows
    const nulls = rows.filter(([, sym]) => sym === null)
    expect(got.map(([, sym]) => sym)).toEqual([null, null, null])
    expect(got.map((row) => row[2])).toEqual(
      nulls
        .map((row) => row[2] as number | null)
        .sort((a, b) => (a ?? -1) - (b ?? -1))
        .slice(-3),
    )
  })

  test('json', () => {
    const plan = { kind: 'limit' as const, columns, input: scanOf(table), lo: 0, hi: 2 }
    expect(runQuery(bench, queryOf(plan), [table], { encoding: json }).text).toBe(
      '["2024-01-01T00:00:00.000000Z",null,null,null,null],["2024-01-01T00:00:01.000000Z","s1",0.25,1,"n\\"1"]',
    )
  })

  test('rows are skipped, cut and counted', () => {
    const { rows: got, end } = runQuery(bench, queryOf(scanOf(table)), [table], {
      skip: 5000,
      rowsMax: 10,
      countAll: true,
    })
    expect(got).toEqual(rows.slice(5000, 5010))
    expect(end).toMatchObject({ rows: 10_000, cut: true })
  })
})
