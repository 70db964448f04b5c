// Goal: the inverted index of a page (the rows of each symbol) gives the same rows as a scan, in any range of the page,
// and is built at the second request for a page. Method: random symbols with NULLs in pages of a data file; sets of one
// id and of several, with ids that the file does not contain.

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { pageRowsMax } from '../../../../engine/base/limits.js'
import { budgets } from '../../../../engine/memory/budgets.js'
import { writePart } from '../../../../engine/storage/part/part-writer.js'
import { dataType } from '../../../../engine/types/column-types.js'
import { bench, type Cell, drain, random, schemaOf, sourceOf, versionOf } from '../part-support.js'

const next = random(20261125)
const schema = schemaOf([dataType('SYMBOL')])
const rows = pageRowsMax + 5000
let root: string

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'lists-'))
})
afterEach(() => rmSync(root, { recursive: true }))

/** A part of so many different symbols; `values`: their ids, -1 is NULL. */
function written(symbols: number): { readonly pages: readonly (readonly number[])[]; readonly find: Find } {
  const bed = bench(root)
  const values = Array.from({ length: rows }, (_, row) =>
    row < symbols ? row : next() < 0.05 ? -1 : Math.floor(next() * symbols),
  )
  const cells = values.map((id): Cell => (id < 0 ? null : new Uint8Array(Uint32Array.of(id).buffer)))
  const place = { partId: 1, partition: 'default', minTxn: 1, maxTxn: 2 }
  const part = drain(writePart(bed.tools, { schema, source: sourceOf(bed, schema, [cells]), ...place }))
  const handle = bed.access.open(part, versionOf(schema))
  const out = bed.allocator.allocateOrThrow(pageRowsMax * 4, budgets.queries)
  const find: Find = (page, ids, from, count) => {
    const found = bed.access.symbolRows(handle, 0, page, ids, from, count, out)
    return found < 0 ? null : [...bed.memory.u32.subarray(out >>> 2, (out >>> 2) + found)]
  }
  const firstRows = [...handle.firstRows]
  return { pages: firstRows.slice(1).map((end, page) => values.slice(firstRows[page], end)), find }
}

/** null: not listed. */
type Find = (page: number, ids: readonly number[], from: number, count: number) => number[] | null

test('rows of one id and of several, in whole pages and in stretches of them', () => {
  const { pages, find } = written(700)
  expect(pages.length).toBeGreaterThan(1)
  pages.forEach((own, page) => {
    const stretches = [
      [0, own.length],
      [0, 1],
      [31, 2],
      [1000, 3001],
      [own.length - 7, 7],
    ] as const
    expect(find(page, [3], 0, own.length)).toBeNull()
    for (const ids of [[3], [699], [5000], [0, 3, 17], [-1], [2, 5000, 698], [3]]) {
      for (const [from, count] of stretches) {
        const expected = [...own.slice(from, from + count).keys()].filter((row) =>
          ids.includes(own[from + row] as number),
        )
        expect(find(page, ids, from, count), `${ids} of [${from}, ${from + count})`).toEqual(expected)
      }
    }
  })
})

test('few symbols are looked at, and too many are not listed', () => {
  const few = written(100)
  for (let times = 0; times < 3; times++) expect(few.find(0, [1, 2], 0, 10)).toBeNull()
  expect(few.find(0, [1], 0, 10)).toBeNull()
  expect(few.find(0, [1], 0, 10)).toEqual([1])
  expect(few.find(0, [], 0, 10)).toBeNull()
  rmSync(root, { recursive: true })
  const many = written(40_000)
  for (let times = 0; times < 3; times++) expect(many.find(0, [1], 0, 10)).toBeNull()
})
