// Goal: the writer frees a part (Parquet file) that a compaction has replaced as soon as the main thread knows the new
// table version and no query holds a version that references the part, and not before.

import { expect, test } from 'vitest'
import type { PartDescriptor, TableSchema } from '../../../../engine/storage/schema/schema.js'
import { type TableMemory, WriterTable } from '../../../../engine/storage/writer/writer-table.js'

const schema: TableSchema = {
  ...{ id: 1, name: 't', version: 1, columns: [], timestampId: -1, partitionBy: 'NONE', bypassWal: false },
  ...{ dedupKeys: [], ttl: null, maxUncommittedRows: 0, o3MaxLagMicros: 0, createdMicros: 0 },
}

function part(id: number): PartDescriptor {
  return {
    ...{ id, file: `${id}.parquet`, partition: 'default', rows: 1, bytes: 1, columnIds: [] },
    ...{ minTs: 0n, maxTs: 0n, minTxn: id, maxTxn: id },
  }
}

/** Version 1 names the first part, version 2 the first two, version 3 the third, made of these. */
function merged() {
  // A table without columns takes no memory.
  const table = new WriterTable({} as TableMemory, schema)
  const freed: number[] = []
  const [first, second, third] = [part(1), part(2), part(3)]
  table.parts = [first]
  table.nextVersion()
  table.parts = [first, second]
  table.nextVersion()
  table.parts = [third]
  table.retireParts([first, second], ({ id }) => freed.push(id))
  table.nextVersion()
  return { table, freed }
}

test('nothing is freed before the version without it is known', () => {
  const { table, freed } = merged()
  table.released(2, [])
  expect(freed).toEqual([])
  table.released(3, [])
  expect(freed).toEqual([1, 2])
})

test('a version that is held keeps what it names alone', () => {
  const { table, freed } = merged()
  table.released(3, [1])
  expect(freed).toEqual([2])
  table.released(3, [1])
  table.released(3, [])
  expect(freed).toEqual([2, 1])
})

test('each of the versions that are held keeps what it names', () => {
  const { table, freed } = merged()
  table.released(3, [1, 2])
  expect(freed).toEqual([])
  table.released(3, [2])
  expect(freed).toEqual([])
  table.released(3, [])
  expect(freed).toEqual([1, 2])
})
