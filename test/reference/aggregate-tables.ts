// Part of the reference implementation of the aggregation kernel (WebAssembly) in plain TypeScript: assigns group ids
// to keys. It searches the list of distinct keys instead of hash slots.

import { type AggregateKernel, tableFullId } from '../../engine/kernels/aggregate.js'
import type { SharedMemory } from '../../engine/memory/shared-memory.js'

type TableKernel = Pick<
  AggregateKernel,
  | 'combineIds'
  | 'pairIds'
  | 'fillWithin'
  | 'numberKeys8'
  | 'numberKeys16'
  | 'internStrings'
  | 'numberCodes'
  | 'rehashKeys'
>

export function tableTwin(memory: SharedMemory): TableKernel {
  return {
    combineIds: (ids, rows, cardinality, previous, out) => {
      for (let r = 0; r < rows; r++) {
        const before = previous === 0 ? 0 : memory.u32[(previous >>> 2) + r]!
        memory.u32[(out >>> 2) + r] = (Math.imul(before, cardinality) + memory.u32[(ids >>> 2) + r]! + 1) >>> 0
      }
    },
    pairIds: (low, high, rows, out) => {
      for (let r = 0; r < rows; r++) {
        memory.u32[(out >>> 2) + r * 2] = memory.u32[(low >>> 2) + r]!
        memory.u32[(out >>> 2) + r * 2 + 1] = high === 0 ? 0 : memory.u32[(high >>> 2) + r]!
      }
    },
    fillWithin: (ts, from, rows, low, last, width, value, out) => {
      for (let r = from; r < rows; r++) {
        const t = memory.i64[(ts >>> 3) + r]!
        if (t < low || t > last) return r
        if (width === 4) memory.i32[(out >>> 2) + r] = Number(value)
        else memory.i64[(out >>> 3) + r] = value
      }
      return Math.max(from, rows)
    },
    numberKeys8: (table, keys, mask, rows, ids) =>
      numberKeys(memory, table, mask, rows, ids, (r) => ({ at: keys + r * 8, bytes: 8, entry: 0 }), 8),
    numberKeys16: (table, keys, mask, rows, ids) =>
      numberKeys(memory, table, mask, rows, ids, (r) => ({ at: keys + r * 16, bytes: 16, entry: 0 }), 16),
    internStrings: (table, entries, mask, rows, ids) =>
      numberKeys(memory, table, mask, rows, ids, (r) => textAt(memory, entries + r * 8), 0),
    numberCodes: (table, codes, entries, _idsByCode, mask, rows, ids) => {
      const entryOf = (row: number): number => entries + memory.u32[(codes >>> 2) + row]! * 8
      return numberKeys(memory, table, mask, rows, ids, (r) => textAt(memory, entryOf(r)), 0)
    },
    rehashKeys: () => undefined,
  }
}

interface Key {
  readonly at: number
  /** -1 for NULL. */
  readonly bytes: number
  readonly entry: number
}

function textAt(memory: SharedMemory, entry: number): Key {
  return { at: memory.u32[entry >>> 2]!, bytes: memory.i32[(entry + 4) >>> 2]!, entry }
}

function keyText(memory: SharedMemory, { at, bytes }: Key): string {
  return bytes < 0 ? 'null' : `.${Buffer.from(memory.u8.buffer, at, bytes).toString('latin1')}`
}

/** width 0 = text. */
function numberKeys(
  memory: SharedMemory,
  table: number,
  mask: number,
  rows: number,
  ids: number,
  keyAt: (row: number) => Key,
  width: number,
): number {
  const word = table >>> 2
  const keys = memory.u32[word + 4]!
  const known = new Map<string, number>()
  for (let id = 0; id < memory.u32[word + 2]!; id++) {
    const key = width === 0 ? textAt(memory, keys + id * 8) : { at: keys + id * width, bytes: width, entry: 0 }
    known.set(keyText(memory, key), id)
  }
  for (let r = 0; r < rows; r++) {
    const out = (ids >>> 2) + r
    if (mask !== 0 && memory.u8[mask + r] === 0) {
      memory.u32[out] = tableFullId
      continue
    }
    const key = keyAt(r)
    const text = keyText(memory, key)
    const id = known.get(text) ?? known.size
    if (id === known.size) {
      if (id >= memory.u32[word + 3]! || !keep(memory, word, keys, id, key, width)) return r
      known.set(text, id)
      memory.u32[word + 2] = id + 1
    }
    memory.u32[out] = id
  }
  return rows
}

/** Stores a new key; false when the heap of texts is full. */
function keep(memory: SharedMemory, word: number, keys: number, id: number, key: Key, width: number): boolean {
  if (width > 0) {
    memory.u8.copyWithin(keys + id * width, key.at, key.at + width)
    return true
  }
  const entry = (keys >>> 2) + id * 2
  memory.u32[entry] = 0
  memory.i32[entry + 1] = key.bytes
  if (key.bytes <= 0) return true
  const heap = memory.u32[word + 5]!
  if (heap + key.bytes + 16 > memory.u32[word + 6]!) return false
  memory.u8.copyWithin(heap, key.at, key.at + key.bytes)
  memory.u32[entry] = heap
  memory.u32[word + 5] = heap + key.bytes
  return true
}
