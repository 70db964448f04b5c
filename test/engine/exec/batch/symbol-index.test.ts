// Goal: the index by which a thread finds the id of a string in a symbol dictionary returns the ids that a scan of the
// dictionary finds: at every use, while the dictionary grows, and after another dictionary was stored at its address.

import { expect, test } from 'vitest'
import { findSymbols } from '../../../../engine/exec/batch/symbol-index.js'
import { loadKernels } from '../../../../engine/kernels/load.js'
import { createAllocator, initializeHeap } from '../../../../engine/memory/allocator.js'
import { createSharedMemory } from '../../../../engine/memory/shared-memory.js'
import { SymbolDictionary } from '../../../../engine/storage/memtable/dictionary.js'

const MIB = 1024 * 1024

function setup() {
  const memory = createSharedMemory(64 * MIB)
  initializeHeap(memory, { limits: [4 * MIB, 48 * MIB, MIB, MIB, MIB] })
  const allocator = createAllocator(memory, 1)
  const { ilp } = loadKernels(memory)
  const scratch = allocator.allocateOrThrow(1024, 0)
  const create = () => {
    const dictionary = new SymbolDictionary(memory, allocator, ilp)
    const intern = (text: string) => {
      const bytes = memory.u8.subarray(scratch, scratch + Buffer.byteLength(text))
      bytes.set(Buffer.from(text))
      dictionary.intern(scratch, bytes.length)
    }
    const ids = (strings: readonly string[], from = 0, to = dictionary.count) =>
      findSymbols(
        memory,
        dictionary.address,
        from,
        to,
        strings.map((text) => Buffer.from(text)),
      )
    return { dictionary, intern, ids }
  }
  return { create }
}

test('ids of texts in a dictionary that grows beyond what a question takes in', () => {
  const { intern, ids } = setup().create()
  const strings: string[] = []
  for (let stage = 0; stage < 9; stage++) {
    const more = stage === 4 ? 40_000 : 2000
    for (let n = 0; n < more; n++) {
      const text = strings.length === 700 ? '' : `host_${(strings.length * 7919) % 100_003}${n % 3 === 0 ? 'é' : ''}`
      strings.push(text)
      intern(text)
    }
    const last = strings.length - 1
    const wanted = [last, 5, 700, 1999, last >> 1].filter((id) => id < strings.length)
    const ascending = [...new Set(wanted)].sort((a, b) => a - b)
    const requested = [...wanted.map((id) => strings[id] as string), 'host_', 'nobody', strings[5] as string]
    for (let time = 0; time < 5; time++) expect(ids(requested)).toEqual(ascending)
    expect(ids(requested, 6, last)).toEqual(ascending.filter((id) => id >= 6 && id < last))
    expect(ids(['nobody'])).toEqual([])
  }
})

test('a dictionary that has the address of one before it', () => {
  const { create } = setup()
  const first = create()
  for (const text of ['a', 'b', 'c']) first.intern(text)
  for (let time = 0; time < 4; time++) expect(first.ids(['c'])).toEqual([2])
  first.dictionary.free()
  const second = create()
  expect(second.dictionary.address).toBe(first.dictionary.address)
  for (const text of ['x', 'c']) second.intern(text)
  for (let time = 0; time < 4; time++) expect(second.ids(['c', 'x', 'b'])).toEqual([0, 1])
})
