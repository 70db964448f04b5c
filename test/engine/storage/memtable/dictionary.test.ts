// Goal: symbol dictionaries (strings of SYMBOL columns by id) keep their ids and strings while they grow and when
// memory is short, so that they are evicted and read again; and are restored from their files up to the first damaged
// record.

import { expect, test } from 'vitest'
import type { Files } from '../../../../engine/base/files.js'
import { loadKernels } from '../../../../engine/kernels/load.js'
import { createAllocator, initializeHeap } from '../../../../engine/memory/allocator.js'
import { budgets } from '../../../../engine/memory/budgets.js'
import { holdDictionary, releaseDictionary } from '../../../../engine/memory/column-layout.js'
import { createSharedMemory } from '../../../../engine/memory/shared-memory.js'
import { SymbolDictionary } from '../../../../engine/storage/memtable/dictionary.js'
import {
  appendDictionaryFile,
  type DictionaryFileId,
  readDictionaryFile,
} from '../../../../engine/storage/memtable/dictionary-file.js'
import { DictionaryIndexes } from '../../../../engine/storage/memtable/dictionary-indexes.js'
import { SyncGroup } from '../../../../engine/storage/part/sync-group.js'
import { referenceKernels } from '../../../reference/kernels.js'
import { createFaultyDisk } from '../../../support/simulator/faulty-files.js'

const MIB = 1024 * 1024

function setup(useReference: boolean) {
  const memory = createSharedMemory(32 * MIB)
  initializeHeap(memory, { limits: [4 * MIB, 16 * MIB, MIB, MIB, MIB] })
  const allocator = createAllocator(memory, 1)
  const kernels = useReference ? referenceKernels(memory) : loadKernels(memory)
  const scratch = allocator.allocateOrThrow(MIB, budgets.ingest)
  const dictionary = new SymbolDictionary(memory, allocator, kernels.ilp)
  const intern = (text: string | Uint8Array) => {
    const bytes = typeof text === 'string' ? new TextEncoder().encode(text) : text
    memory.u8.set(bytes, scratch)
    return dictionary.intern(scratch, bytes.length)
  }
  return { memory, allocator, dictionary, intern }
}

test.each([false, true])('ids stay while the dictionary grows (useReference: %s)', (useReference) => {
  const { allocator, dictionary, intern } = setup(useReference)
  const strings = Array.from({ length: 3000 }, (_, n) => (n % 3 === 0 ? `host_${n}_with_a_long_name_é` : `h${n}`))
  strings.push('', 'x'.repeat(100_000))
  strings.forEach((text, id) => expect(intern(text)).toBe(id))
  strings.forEach((text, id) => expect(intern(text)).toBe(id))
  expect(dictionary.count).toBe(strings.length)
  strings.forEach((text, id) => expect(new TextDecoder().decode(dictionary.textOf(id))).toBe(text))
  expect(intern(new Uint8Array([0xff]))).toBe(undefined)
  dictionary.free()
  expect(allocator.used(budgets.memtables)).toBe(0)
})

test.each([false, true])(
  'tables of dictionaries that rest go, and come back with the same ids (useReference: %s)',
  (useReference) => {
    const memory = createSharedMemory(64 * MIB)
    initializeHeap(memory, { limits: [4 * MIB, 10 * MIB, MIB, MIB, MIB] })
    const indexes = new DictionaryIndexes()
    const allocator = indexes.over(createAllocator(memory, 1))
    const kernels = useReference ? referenceKernels(memory) : loadKernels(memory)
    const scratch = allocator.allocateOrThrow(MIB, budgets.ingest)
    const intern = (dictionary: SymbolDictionary, text: string): number | undefined => {
      const bytes = new TextEncoder().encode(text)
      memory.u8.set(bytes, scratch)
      indexes.beginRequest()
      return dictionary.intern(scratch, bytes.length)
    }
    const textOf = (index: number, id: number): string => (id % 2 === 0 ? `${index} of many ${id}` : `${index}${id}`)
    // Forty tables of a quarter of a MiB do not fit beside their texts.
    const dictionaries = Array.from({ length: 40 }, () => new SymbolDictionary(memory, allocator, kernels.ilp, indexes))
    const count = 3000
    const ids = Array.from({ length: count }, (_, id) => id)
    for (const [index, dictionary] of dictionaries.entries())
      expect(ids.filter((id) => intern(dictionary, textOf(index, id)) !== id)).toEqual([])
    for (let round = 0; round < 2; round++)
      for (const [index, dictionary] of dictionaries.entries())
        for (let id = 0; id < count; id += 97) expect(intern(dictionary, textOf(index, id))).toBe(id)
    for (const [index, dictionary] of dictionaries.entries()) {
      expect(dictionary.count).toBe(count)
      expect(intern(dictionary, `${index} is new`)).toBe(count)
    }
    for (const dictionary of dictionaries) dictionary.free()
    expect(allocator.used(budgets.memtables)).toBe(0)
  },
)

test.each([false, true])('whole dictionaries go while nobody needs them (useReference: %s)', (useReference) => {
  const memory = createSharedMemory(64 * MIB)
  initializeHeap(memory, { limits: [4 * MIB, 4 * MIB, MIB, MIB, MIB] })
  const indexes = new DictionaryIndexes()
  const allocator = indexes.over(createAllocator(memory, 1))
  const kernels = useReference ? referenceKernels(memory) : loadKernels(memory)
  const scratch = allocator.allocateOrThrow(64 * 1024, budgets.ingest)
  const count = 5000
  const textOf = (index: number, id: number): string => `the text of symbol ${id} of dictionary ${index}`
  const encoded = (index: number, id: number): Uint8Array => new TextEncoder().encode(textOf(index, id))
  const retained = new Set<number>()
  let reads = 0
  // Twenty of 300 KiB each.
  const dictionaries = Array.from({ length: 20 }, (_, index) => {
    const read = (some: number) => {
      reads++
      return Array.from({ length: some }, (_, id) => encoded(index, id))
    }
    const mayEvict = (some: number) => some === count && !retained.has(index)
    return new SymbolDictionary(memory, allocator, kernels.ilp, indexes, { mayEvict, read })
  })
  const intern = (index: number, id: number): number | undefined => {
    const bytes = encoded(index, id)
    memory.u8.set(bytes, scratch)
    return dictionaries[index]?.intern(scratch, bytes.length)
  }
  const at = (index: number) => dictionaries[index] as SymbolDictionary
  for (let index = 0; index < 20; index++) {
    indexes.beginRequest()
    for (let id = 0; id < count; id++) at(index).append(encoded(index, id))
    if (index === 3) expect(holdDictionary(memory, at(3).address)).toBe(true)
    if (index === 4) retained.add(4)
  }
  expect(dictionaries.filter(({ resident }) => !resident).length).toBeGreaterThan(5)
  expect(reads).toBe(0)
  expect([at(3).resident, at(4).resident]).toEqual([true, true])
  expect(holdDictionary(memory, at(0).address)).toBe(false)
  expect(dictionaries.map((dictionary) => dictionary.count)).toEqual(dictionaries.map(() => count))
  releaseDictionary(memory, at(3).address)
  for (let round = 0; round < 2; round++)
    for (let index = 0; index < 20; index++) {
      indexes.beginRequest()
      if (round === 0) at(index).restore()
      for (let id = 0; id < count; id += 499) expect(intern(index, id)).toBe(id)
      for (let id = 0; id < count; id += 611) {
        expect(new TextDecoder().decode(at(index).textOf(id))).toBe(textOf(index, id))
      }
    }
  expect(at(3).resident).toBe(false)
  // What the request under way has read again is not given away: it would be read for each of its lines.
  indexes.beginRequest()
  expect(() => {
    for (const dictionary of dictionaries) dictionary.restore()
  }).toThrow('out of memory')
  expect(at(0).resident).toBe(true)
  for (const dictionary of dictionaries) dictionary.free()
  expect(allocator.used(budgets.memtables)).toBe(0)
})

test('a file gives back what was appended; a damaged record ends it', () => {
  const { dictionary, intern } = setup(true)
  for (let n = 0; n < 500; n++) intern(`symbol ${n}`)
  const disk = createFaultyDisk(1)
  disk.files.makeDirectory('/s')
  const id = { tableId: 3, columnId: 7 }
  const appendEntries = (from: number, to: number, end: number) =>
    append(disk.files, id, end, { firstId: from, count: to - from, ...dictionary.packed(from, to) })
  const first = appendEntries(0, 200, 0)
  const second = appendEntries(200, 500, first)
  const decode = (strings: readonly Uint8Array[]) => strings.map((text) => new TextDecoder().decode(text))
  const all = readDictionaryFile(disk.files, '/s/f', id, 500)
  expect(decode(all.strings)).toEqual(Array.from({ length: 500 }, (_, n) => `symbol ${n}`))
  expect(all.end).toBe(second)
  disk.damage('/s/f', second - 10, new Uint8Array([0]))
  expect(readDictionaryFile(disk.files, '/s/f', id, 200)).toMatchObject({ end: first })
  expect(() => readDictionaryFile(disk.files, '/s/f', id, 201)).toThrow('damaged')
  expect(readDictionaryFile(disk.files, '/s/f', { ...id, tableId: 4 }, 0)).toEqual({ strings: [], end: 0 })
})

test('the bytes on disk', () => {
  const disk = createFaultyDisk(1)
  disk.files.makeDirectory('/s')
  const record = {
    firstId: 0,
    count: 2,
    lengths: new Uint8Array([1, 0, 0, 0, 2, 0, 0, 0]),
    bytes: new TextEncoder().encode('abc'),
  }
  append(disk.files, { tableId: 1, columnId: 2 }, 0, record)
  expect(Buffer.from(disk.peek('/s/f')).toString('hex')).toMatchInlineSnapshot(
    `"505344310100000002000000189c4a6e000000000200000003000000f51e1d8b0100000002000000616263"`,
  )
})

function append(
  files: Files,
  id: DictionaryFileId,
  end: number,
  record: Parameters<typeof appendDictionaryFile>[5],
): number {
  const group = new SyncGroup(files)
  const next = appendDictionaryFile(files, group, '/s/f', id, end, record)
  group.commit()
  return next
}
