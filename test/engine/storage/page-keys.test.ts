// Goal: the hash index of a page's keys finds every row that has one of the given keys, in any range of the page, and
// hardly any other row. It is built at the second request for the page, without a declared key after more requests,
// and then only for rare values. A search by other columns does not use it, and has an index of its own.
// Method: a part (Parquet file) with a column of numbers and one of strings, with NULLs and repeated values; the test
// finds the rows by comparing all values.

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { ResourceError } from '../../../engine/base/errors.js'
import { pageRowsMax } from '../../../engine/base/limits.js'
import { budgets } from '../../../engine/memory/budgets.js'
import { hashRow, type KeyColumn, keyColumnsAt, nullBytes } from '../../../engine/storage/memtable/key-columns.js'
import type { WantedKeys } from '../../../engine/storage/part/part-access.js'
import { writePart } from '../../../engine/storage/part/part-writer.js'
import { dataType } from '../../../engine/types/column-types.js'
import { bench, type Cell, drain, random, schemaOf, sourceOf, versionOf } from './part-support.js'

const next = random(20261129)
const schema = schemaOf([dataType('LONG'), dataType('VARCHAR')])
const rows = pageRowsMax + 5000
let root: string

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'keys-'))
})
afterEach(() => rmSync(root, { recursive: true }))

function longCell(value: number): Cell {
  return new Uint8Array(BigInt64Array.of(BigInt(value)).buffer)
}

test.each([
  { ids: [0], what: 'numbers' },
  { ids: [1], what: 'texts' },
  { ids: [0, 1], what: 'both' },
])('rows of keys of $what', ({ ids }) => {
  const bed = bench(root)
  const numbers = Array.from({ length: rows }, () => (next() < 0.01 ? null : Math.floor(next() * rows)))
  const texts = numbers.map((value) => (value === null || next() < 0.01 ? null : `t${value % 20_000}`))
  const cells = [
    numbers.map((value) => (value === null ? null : longCell(value))),
    texts.map((text): Cell => (text === null ? null : Buffer.from(text))),
  ]
  const place = { partId: 1, partition: 'default', minTxn: 1, maxTxn: 2 }
  const part = drain(writePart(bed.tools, { schema, source: sourceOf(bed, schema, cells), ...place }))
  const handle = bed.access.open(part, versionOf(schema))
  const out = bed.allocator.allocateOrThrow(pageRowsMax * 4, budgets.queries)
  const nulls = bed.allocator.allocateOrThrow(nullBytes, budgets.queries)
  const pageRows = (page: number): number => handle.firstRows[page + 1]! - handle.firstRows[page]!
  const keyOf = (row: number): string => ids.map((id) => (id === 0 ? numbers : texts)[row] ?? 'NULL').join()
  const withColumns = <Result>(page: number, use: (columns: readonly KeyColumn[]) => Result): Result => {
    const pinned: number[] = []
    const columns = keyColumnsAt(bed.memory, schema, ids, nulls, (id) => {
      pinned.push(bed.access.pin(handle, id, page))
      return pinned.at(-1) ?? 0
    })
    const result = use(columns)
    for (const address of pinned) bed.access.unpin(address)
    return result
  }
  const wantedOf = (page: number, sought: readonly number[]) => ({
    columnIds: ids,
    hashes: withColumns(page, (columns) => Int32Array.from(sought, (row) => hashRow(bed.memory, columns, row))),
  })
  const keys = (page: number) => bed.access.keys(handle, page)
  for (let page = 0; page < handle.pageCount; page++) {
    const [own, first] = [pageRows(page), handle.firstRows[page]!]
    const sought = Array.from({ length: 20 }, () => Math.floor(next() * own))
    const wanted = wantedOf(page, sought)
    expect(keys(page).select(wanted, 0, own, out)).toBe(-1)
    expect(keys(page).mayHave(wanted)).toBe(true)
    withColumns(page, (columns) => keys(page).keep(wanted, () => columns))
    expect(keys(page).select(wanted, 0, own, out)).toBe(-1)
    withColumns(page, (columns) => keys(page).keep(wanted, () => columns))
    const values = new Set(sought.map((row) => keyOf(first + row)))
    for (const [from, count] of [
      [0, own],
      [0, 1],
      [100, 3000],
      [own - 9, 9],
    ] as const) {
      const listed = keys(page).select(wanted, from, count, out)
      const found = [...bed.memory.u32.subarray(out >>> 2, (out >>> 2) + listed)]
      const expected = Array.from({ length: count }, (_, row) => row).filter((row) =>
        values.has(keyOf(first + from + row)),
      )
      expect(found).toEqual([...new Set([...found, ...expected])].sort((left, right) => left - right))
      expect(found.length - expected.length).toBeLessThan(5)
    }
    expect(keys(page).mayHave(wanted)).toBe(true)
    const others = { columnIds: ids, hashes: Int32Array.from({ length: 20 }, () => Math.floor(next() * 2 ** 32) | 0) }
    expect(keys(page).select(others, 0, own, out)).toBeLessThan(5)
    expect(keys(page).select({ ...wanted, columnIds: [...ids, 7] }, 0, own, out)).toBe(-1)
  }
})

/** A part of these numbers. The other columns contain nothing. */
function numbersBed(numbers: readonly number[]) {
  const bed = bench(root)
  const cells = [numbers.map(longCell), numbers.map((): Cell => null)]
  const place = { partId: 1, partition: 'default', minTxn: 1, maxTxn: 2 }
  const part = drain(writePart(bed.tools, { schema, source: sourceOf(bed, schema, cells), ...place }))
  const handle = bed.access.open(part, versionOf(schema))
  const out = bed.allocator.allocateOrThrow(pageRowsMax * 4, budgets.queries)
  const nulls = bed.allocator.allocateOrThrow(nullBytes, budgets.queries)
  const columnsAt = (address: number, ids: readonly number[]): KeyColumn[] =>
    keyColumnsAt(bed.memory, schema, ids, nulls, (id) => (id === 0 ? address : 0))
  const value = bed.allocator.allocateOrThrow(64, budgets.queries)
  return {
    keys: (page = 0) => bed.access.keys(handle, page),
    hashOf: (number: number, ids: readonly number[]): number => {
      bed.memory.i64[value >>> 3] = BigInt(number)
      return hashRow(bed.memory, columnsAt(value, ids), 0)
    },
    keep: (wanted: WantedKeys, page = 0): boolean => {
      const address = bed.access.pin(handle, 0, page)
      const isKept = bed.access.keys(handle, page).keep(wanted, () => columnsAt(address, wanted.columnIds))
      bed.access.unpin(address)
      return isKept
    },
    select: (wanted: WantedKeys, from: number, rows: number): number[] | null => {
      const count = bed.access.keys(handle, 0).select(wanted, from, rows, out)
      return count < 0 ? null : [...bed.memory.u32.subarray(out >>> 2, (out >>> 2) + count)]
    },
  }
}

test('without a declared key, pages take turns', () => {
  const { keys, keep } = numbersBed(Array.from({ length: 3 * pageRowsMax }, (_, row) => row))
  const wanted = { columnIds: [0], hashes: Int32Array.of(1), searches: 3 }
  const searchesUntilKept = (page: number): number => {
    for (let searches = 1; ; searches++) {
      expect(keep(wanted, page)).toBe(true)
      if (keys(page).select(wanted, 0, 10, 0) >= 0) return searches
    }
  }
  expect([0, 1, 2].map(searchesUntilKept)).toEqual([4, 5, 6])
})

test('keys that begin with the same column have an index each, and count their searches apart', () => {
  const { keep, select, hashOf } = numbersBed(Array.from({ length: 5000 }, (_, row) => row))
  const keys = [[0], [0, 1]].map((columnIds) => ({ columnIds, hashes: Int32Array.of(hashOf(4321, columnIds)) }))
  for (const wanted of keys) {
    keep(wanted)
    expect(select(wanted, 0, 5000)).toBe(null)
  }
  for (const wanted of keys) keep(wanted)
  for (const wanted of keys) expect(select(wanted, 0, 5000)).toEqual([4321])
})

test('frequent values are not listed, not even a part of their rows, and lead to no index', () => {
  const { keep, select, hashOf } = numbersBed(
    Array.from({ length: pageRowsMax }, (_, row) => (row % 10 === 3 ? 7 : row)),
  )
  const wantedOf = (number: number): WantedKeys => ({
    columnIds: [0],
    hashes: Int32Array.of(hashOf(number, [0])),
    searches: 3,
  })
  const [frequent, rare] = [wantedOf(7), wantedOf(50_001)]
  expect(Array.from({ length: 5 }, () => keep(frequent))).toEqual([true, true, true, false, false])
  expect(select(rare, 0, 1024)).toBe(null)
  for (let search = 0; search < 8; search++) keep(rare)
  expect(select(frequent, 0, 1024)).toBe(null)
  expect(select(rare, 0, pageRowsMax)).toEqual([50_001])
  expect(select(rare, 50_000, 1024)).toEqual([1])
  expect(select(rare, 50_002, 1024)).toEqual([])
  expect(keep(frequent)).toBe(false)
})

test('columns are read only when an index is made, which a full cache prevents', () => {
  const { keys, select } = numbersBed(Array.from({ length: 5000 }, (_, row) => row))
  const wanted = { columnIds: [0], hashes: Int32Array.of(1), searches: 3 }
  let reads = 0
  const columnsOf = (): KeyColumn[] => {
    reads++
    throw new ResourceError('the cache is full')
  }
  for (let search = 0; search < 3; search++) keys().keep(wanted, columnsOf)
  expect(reads).toBe(0)
  expect(keys().keep(wanted, columnsOf)).toBe(true)
  expect(reads).toBe(1)
  expect(select(wanted, 0, 5000)).toBe(null)
})
