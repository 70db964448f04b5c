// Goal: the symbol file of a column (the strings of its dictionary) contains the symbols of that column only, even if
// a previous column with the same id was written and then undone because its request failed. The log keeps the symbols
// of a column until the request that adds the column is acknowledged and its symbols are written.

import { expect, test } from 'vitest'
import { loadKernels } from '../../../../engine/kernels/load.js'
import { createAllocator, initializeHeap } from '../../../../engine/memory/allocator.js'
import { createSharedMemory } from '../../../../engine/memory/shared-memory.js'
import { dictionaryFilePath, readDictionaryFile } from '../../../../engine/storage/memtable/dictionary-file.js'
import { DictionaryIndexes } from '../../../../engine/storage/memtable/dictionary-indexes.js'
import type { TableSchema } from '../../../../engine/storage/schema/schema.js'
import { symbolCounts, symbolsNamed, writeSymbols } from '../../../../engine/storage/writer/writer-records.js'
import { WriterTable } from '../../../../engine/storage/writer/writer-table.js'
import { dataType } from '../../../../engine/types/column-types.js'
import { createFaultyDisk } from '../../../support/simulator/faulty-files.js'

const memory = createSharedMemory(16 * 1024 * 1024)
initializeHeap(memory, { limits: [1, 8, 1, 1, 1].map((mib) => mib * 1024 * 1024) })

const empty: TableSchema = {
  ...{ id: 1, name: 't', version: 1, columns: [], timestampId: -1, partitionBy: 'NONE', bypassWal: false },
  ...{ dedupKeys: [], ttl: null, maxUncommittedRows: 0, o3MaxLagMicros: 0, createdMicros: 0 },
}
const withSymbol: TableSchema = {
  ...{ ...empty, version: 2 },
  columns: [{ id: 0, name: 's', type: dataType('SYMBOL'), dropped: false }],
}

function newTable() {
  const { files } = createFaultyDisk(1)
  files.makeDirectory('/db')
  files.makeDirectory('/db/symbols')
  const resources = {
    ...{ memory, allocator: createAllocator(memory, 1), symbols: loadKernels(memory).ilp, readSymbols: () => [] },
    ...{ kernels: loadKernels(memory), indexes: new DictionaryIndexes() },
  }
  const table = new WriterTable(resources, empty)
  const place = { files, directory: '/db' }
  const id = { tableId: 1, columnId: 0 }
  const stored = (count: number): string[] =>
    readDictionaryFile(files, dictionaryFilePath('/db/symbols', id), id, count).strings.map((text) =>
      Buffer.from(text).toString(),
    )
  return { table, place, stored }
}

/** A request adds the column, and its first symbol. */
function addColumn(table: WriterTable, symbol: string): void {
  table.committed = table.schema
  table.schema = withSymbol
  table.addDictionaries()
  table.dictionary(0).append(Buffer.from(symbol))
}

test('a column whose request is undone leaves no symbols to the next one', () => {
  const { table, place, stored } = newTable()
  addColumn(table, 'undone')
  // Another table is flushed meanwhile, and the symbols of all are written.
  writeSymbols(place, [table])
  expect(symbolCounts(table)).toEqual([])
  table.schema = empty
  table.removeUnknownDictionaries()
  addColumn(table, 'kept')
  table.committed = undefined
  table.settle(withSymbol)
  writeSymbols(place, [table])
  expect(symbolCounts(table)).toEqual([[0, 1]])
  expect(stored(1)).toEqual(['kept'])
})

test('neither does one whose symbols were written with its schema, which was undone', () => {
  const { table, place, stored } = newTable()
  table.addDictionary(0)
  table.dictionary(0).append(Buffer.from('undone'))
  writeSymbols(place, [table], withSymbol)
  expect(stored(1)).toEqual(['undone'])
  table.removeUnknownDictionaries()
  addColumn(table, 'kept')
  table.settle(withSymbol)
  writeSymbols(place, [table])
  expect(stored(1)).toEqual(['kept'])
})

test('the log keeps the symbols of a column that is not acknowledged', () => {
  const { table, place } = newTable()
  addColumn(table, 'new')
  table.symbolsLsn = 5
  writeSymbols(place, [table])
  symbolsNamed(table)
  expect(table.symbolsLsn).toBe(5)
  table.settle(withSymbol)
  writeSymbols(place, [table])
  symbolsNamed(table)
  expect(table.symbolsLsn).toBe(Number.POSITIVE_INFINITY)
})
