// Goal: the parts of a table (Parquet files) are mapped correctly to units. A unit is the set of rows that becomes one
// data file of the Iceberg table. Without DEDUP keys each part is a unit. With DEDUP keys the parts of a partition that
// overlap in time form one unit. The name of a unit changes whenever its rows may have changed.

import { expect, test } from 'vitest'
import { unitSnapshot, unitsOf } from '../../../engine/lake/lake-units.js'
import type { PartDescriptor, TableSchema, TableVersion } from '../../../engine/storage/schema/schema.js'

function part(id: number, minTs: number, maxTs: number, partition = 'p'): PartDescriptor {
  return {
    ...{ id, partition, file: `${id}.parquet`, rows: 10, bytes: 100, minTxn: id, maxTxn: id, columnIds: [0] },
    ...{ minTs: BigInt(minTs), maxTs: BigInt(maxTs) },
  }
}

function version(parts: readonly PartDescriptor[], dedupKeys: readonly number[] = []): TableVersion {
  const schema: TableSchema = {
    ...{ id: 1, name: 't', version: 1, columns: [], timestampId: 0, partitionBy: 'DAY', bypassWal: false, dedupKeys },
    ...{ ttl: null, maxUncommittedRows: 0, o3MaxLagMicros: 0, createdMicros: 0 },
  }
  return { version: 1, schema, parts, memtables: [{ id: 1, address: 8 }], dictionaries: [], flushedTxn: 5 }
}

const none = (): number => 0
const shown = (all: ReturnType<typeof unitsOf>) => all.map(({ name, parts }) => [name, parts.map(({ id }) => id)])

test('without keys each part is a unit, whether parts overlap or not', () => {
  const parts = [part(3, 0, 10), part(4, 5, 20)]
  expect(shown(unitsOf(version(parts), none))).toEqual([
    ['3', [3]],
    ['4', [4]],
  ])
})

test('with keys parts that overlap are one unit, in transaction order, also in chains', () => {
  const parts = [part(1, 50, 60), part(2, 0, 10), part(3, 9, 30), part(4, 30, 49), part(5, 0, 100, 'q')]
  expect(shown(unitsOf(version(parts, [0]), none))).toEqual([
    ['2_3_4', [2, 3, 4]],
    ['1', [1]],
    ['5', [5]],
  ])
})

test('a part inside of another one is found, and so is what only the longer one reaches', () => {
  const parts = [part(1, 0, 100), part(2, 5, 6), part(3, 90, 95)]
  expect(shown(unitsOf(version(parts, [0]), none))).toEqual([['1_2_3', [1, 2, 3]]])
})

test('removed rows change the name, and long names stay short and different', () => {
  const removed = (id: number): number => (id === 4 ? 7 : 0)
  expect(shown(unitsOf(version([part(3, 0, 1), part(4, 2, 3)]), removed)).map(([name]) => name)).toEqual(['3', '4r7'])
  const many = Array.from({ length: 40 }, (_, index) => part(1000 + index, 0, 10))
  const [one] = unitsOf(version(many, [0]), none)
  const [other] = unitsOf(version(many.slice(0, 39), [0]), none)
  expect(one?.name).toMatch(/^1000_[0-9a-f]{32}$/)
  expect(other?.name).not.toBe(one?.name)
})

test('the snapshot of a unit has its parts alone, and removals up to the last flushed transaction', () => {
  const parts = [part(3, 0, 1), part(4, 2, 3)]
  const whole = { version: version(parts), visibleRows: [9], transaction: 8 }
  expect(unitSnapshot(whole, parts.slice(0, 1))).toMatchObject({
    version: { parts: [{ id: 3 }], memtables: [] },
    visibleRows: [],
  })
  expect(unitSnapshot(whole, parts)).not.toHaveProperty('transaction')
  const marked = { ...whole, version: { ...whole.version, removals: [] } }
  expect(unitSnapshot(marked, parts).transaction).toBe(5)
})
