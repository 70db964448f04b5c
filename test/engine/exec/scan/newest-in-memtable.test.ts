// Goal: what a thread remembers of a memtable is the newest row of each symbol among the rows that were visible, and
// later queries read only the rows that came since. Method: a memtable is published in random steps, with late rows,
// equal timestamps and NULLs; after each, the places are compared with a loop over the values. Queries of earlier
// snapshots, too many symbols and forgotten columns get nothing that is wrong.

import { expect, test } from 'vitest'
import { listRuns, type Run } from '../../../../engine/exec/scan/morsels.js'
import { NewestInMemtables, placeWords } from '../../../../engine/exec/scan/newest-in-memtable.js'
import { dataType } from '../../../../engine/types/column-types.js'
import type { Value } from '../../../../engine/types/value.js'
import { createRandom } from '../../../support/random.js'
import { createBench, makeTable, noParts, type TestTable } from '../exec-support.js'

const timestampId = 0
const keyId = 1
const columns = [
  { name: 'ts', type: dataType('TIMESTAMP'), sourceName: null },
  { name: 'k', type: dataType('SYMBOL'), sourceName: null },
] as const
const rowCount = 9000
const symbols = 40

const bench = createBench(64)

function tableOf(seed: number): TestTable {
  const random = createRandom(seed)
  const rows: Value[][] = []
  for (let row = 0; row < rowCount; row++) {
    const late = random.chance(0.1) ? random.below(5000) : 0
    const key = random.chance(0.02) ? null : `s${random.below(random.chance(0.9) ? 20 : symbols)}`
    rows.push([BigInt(Math.max(-50, Math.floor(row / random.pick([1, 3])) - late)), key])
  }
  return makeTable(bench, columns, [rows], timestampId)
}

/** The run of the table's first rows. */
function runOfFirst({ snapshot }: TestTable, rows: number): Run {
  const [run] = listRuns(bench.memory, noParts, { ...snapshot, visibleRows: [rows] }, null)
  if (run === undefined) throw new Error('no rows')
  return run
}

/** Row numbers of the newest rows, ascending. */
function expectedRows({ rows }: TestTable, count: number): number[] {
  const newest = new Map<Value, number>()
  rows.slice(0, count).forEach(([ts, key], row) => {
    const known = newest.get(key as Value)
    if (known === undefined || (ts as bigint) >= (rows[known]?.[0] as bigint)) newest.set(key as Value, row)
  })
  return [...newest.values()].sort((a, b) => a - b)
}

function placesOf(words: Int32Array): number[] {
  const places: number[] = []
  for (let at = 0; at < words.length; at += placeWords) if (words[at] !== 0) places.push((words[at] as number) - 1)
  return places.sort((a, b) => a - b)
}

test.each([1, 2, 3, 4])('rows are added once, as they become visible, seed %d', (seed) => {
  const random = createRandom(seed * 100)
  const table = tableOf(seed)
  const known = new NewestInMemtables()
  let added = 0
  for (let visible = 200; visible <= rowCount; visible += random.between(1, 1500)) {
    const run = runOfFirst(table, visible)
    // The dictionary may have grown since the last query.
    const newest = known.of(run, keyId, symbols + 1 + Math.floor(visible / 300))
    if (newest === undefined) throw new Error('nothing is known')
    for (let rows = -1; rows !== 0; added += rows) rows = newest.add(bench.memory, run, keyId, timestampId)
    expect(placesOf(newest.words)).toEqual(expectedRows(table, visible))
    expect(added).toBe(visible)
    expect(known.of(runOfFirst(table, visible - 1), keyId, symbols + 1)).toBeUndefined()
  }
})

test('columns that were not used for long are forgotten, and many symbols are not remembered', () => {
  const run = runOfFirst(tableOf(9), rowCount)
  const known = new NewestInMemtables()
  const slots = 4000
  const first = known.of(run, 100, slots)
  expect(known.of(run, 100, slots)).toBe(first)
  for (let columnId = 101; columnId < 300; columnId++) known.of(run, columnId, slots)
  const again = known.of(run, 100, slots)
  expect(again).not.toBe(first)
  expect(again?.rows).toBe(0)
  expect(known.of(run, keyId, rowCount)).toBeUndefined()
  expect(known.of({ ...run, rows: 2 ** 24 }, keyId, 2 ** 20)).toBeUndefined()
  // What is too large to be kept is not made either.
  const largest = Math.floor((4 * 1024 * 1024) / (placeWords * 4))
  for (const many of [2 ** 18 + 1, largest]) {
    const large = known.of({ ...run, rows: 2 ** 24 }, keyId, many)
    expect(large?.words.length).toBe(largest * placeWords)
    expect(known.of({ ...run, rows: 2 ** 24 }, keyId, many)).toBe(large)
  }
  expect(known.of({ ...run, rows: 2 ** 24 }, keyId, largest + 1)).toBeUndefined()
})
