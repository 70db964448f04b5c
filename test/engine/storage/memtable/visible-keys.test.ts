// Goal: a search in the index of a memtable's keys finds the visible rows with a key, the newest first, and no row that
// an upsert has removed for that snapshot. Method: random keys with NULLs, removals at random moments, and snapshots
// that get newer; the test keeps the rows in a list.

import { expect, test } from 'vitest'
import { budgets } from '../../../../engine/memory/budgets.js'
import { blockColumn } from '../../../../engine/memory/column-layout.js'
import { hashRow, keyColumnsAt, nullBytes } from '../../../../engine/storage/memtable/key-columns.js'
import { VisibleKeys } from '../../../../engine/storage/memtable/visible-keys.js'
import { dataType } from '../../../../engine/types/column-types.js'
import type { Value } from '../../../../engine/types/value.js'
import { createRandom } from '../../../support/random.js'
import { createBench, makeTable } from '../../exec/exec-support.js'

const columns = [
  { name: 'number', type: dataType('LONG') },
  { name: 'text', type: dataType('VARCHAR') },
]
const rows = 5000

test.each([
  { ids: [0], what: 'numbers' },
  { ids: [1], what: 'texts' },
  { ids: [0, 1], what: 'both' },
])('visible rows by $what', ({ ids }) => {
  const random = createRandom(20261129)
  const bench = createBench()
  const { memory } = bench
  const values = Array.from({ length: rows }, (): Value[] => [
    random.chance(0.02) ? null : BigInt(random.below(300)),
    random.chance(0.02) ? null : `text of a key ${random.below(20)}`,
  ])
  const { snapshot, memtables } = makeTable(bench, columns, [values], -1)
  const [memtable] = memtables
  if (memtable === undefined) throw new Error('the table has a memtable')
  const nulls = bench.allocator.allocateOrThrow(nullBytes, budgets.queries)
  const { schema } = snapshot.version
  const keys = new VisibleKeys({ memory, memtable: memtable.address, schema, columnIds: ids, nulls })
  /** By row: how many rows a snapshot sees that does not see this one any more. */
  const removedAt = new Map<number, number>()
  const texts = values.map((row) => ids.map((id) => String(row[id])).join())
  let visible = 0
  while (visible < rows) {
    visible = Math.min(rows, visible + 1 + random.below(random.chance(0.2) ? 2500 : 60))
    // A search that may not read so many rows is complete later.
    for (let turns = 0; !keys.catchUp(visible, 400); turns++) expect(turns).toBeLessThan(20)
    for (let count = random.below(30); count > 0; count--) {
      const row = random.below(visible)
      const seen = visible + random.below(40)
      if (removedAt.has(row) || !memtable.reserveMark(row)) continue
      memtable.markSuperseded(row, seen)
      removedAt.set(row, seen)
    }
    for (let count = 0; count < 10; count++) {
      const sought = random.below(visible)
      const place = keys.placeOf(sought)
      const { address, hash } = wantedAt(place)
      const found = keys.find(address, place.index, hash, visible)
      const expected = Array.from({ length: visible }, (_, row) => row).filter(
        (row) => texts[row] === texts[sought] && (removedAt.get(row) ?? Number.POSITIVE_INFINITY) > visible,
      )
      expect(found).toEqual(expected.reverse())
    }
  }
  expect(keys.catchUp(rows - 1, rows), 'an older snapshot').toBe(false)
  expect(keys.catchUp(rows, 0)).toBe(true)

  function wantedAt({ block, index }: { readonly block: number; readonly index: number }) {
    const address = keyColumnsAt(memory, schema, ids, nulls, (id) => blockColumn(memory, block, id))
    return { address, hash: hashRow(memory, address, index) }
  }
})
