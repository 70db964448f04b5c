// Reference implementation of symbol dictionaries in plain TypeScript: hashing, lookup, insertion and rehashing over
// the layout of engine/memory/dictionary-layout.ts. The kernels use engine/kernels/as/shared/symbols.ts.

import { dictionaryEntry } from '../../engine/memory/column-layout.js'
import * as layout from '../../engine/memory/dictionary-layout.js'
import type { SharedMemory } from '../../engine/memory/shared-memory.js'

const decoder = new TextDecoder('utf-8', { fatal: true })

/** Hash of the text at an address. */
function symbolHash(u8: Uint8Array, address: number, bytes: number): number {
  return bytes <= 16 ? shortHash(u8, address, bytes) : longHash(u8, address, bytes)
}

/** The little-endian word at index i of a text, zero padded. */
function wordAt(u8: Uint8Array, address: number, bytes: number, i: number): number {
  let word = 0
  for (let k = Math.min(3, bytes - i * 4 - 1); k >= 0; k--) word = (word << 8) | u8[address + i * 4 + k]!
  return word
}

function shortHash(u8: Uint8Array, address: number, bytes: number): number {
  const low =
    Math.imul(wordAt(u8, address, bytes, 0), 0x9e3779b1) + Math.imul(wordAt(u8, address, bytes, 1), 0x85ebca77)
  const high =
    Math.imul(wordAt(u8, address, bytes, 2), 0xc2b2ae3d) + Math.imul(wordAt(u8, address, bytes, 3), 0x27d4eb2f)
  const sum = (low + high) | 0
  const h = Math.imul(sum ^ (sum >>> 15), 0x2c1b3c6d)
  return (h ^ (h >>> 13)) >>> 0
}

export function longHash(u8: Uint8Array, address: number, bytes: number): number {
  let h = Math.imul(bytes, 0x9e3779b1)
  for (let i = 0; i * 4 < bytes; i++) {
    h = Math.imul(h ^ wordAt(u8, address, bytes, i), 0x85ebca77)
    h ^= h >>> 15
  }
  h = Math.imul(h, 0x2c1b3c6d)
  return (h ^ (h >>> 13)) >>> 0
}

function slotsOf(memory: SharedMemory, dictionary: number): { slots: number; mask: number } {
  return {
    slots: memory.u32[(dictionary + layout.slots) >>> 2]!,
    mask: memory.u32[(dictionary + layout.slotMask) >>> 2]!,
  }
}

function sameText(memory: SharedMemory, a: number, b: number, bytes: number): boolean {
  for (let i = 0; i < bytes; i++) if (memory.u8[a + i] !== memory.u8[b + i]) return false
  return true
}

/** Address of the slot that holds the text, or of the free one where it belongs. */
function slotOf(memory: SharedMemory, dictionary: number, address: number, bytes: number): number {
  const { slots, mask } = slotsOf(memory, dictionary)
  let at = (symbolHash(memory.u8, address, bytes) & mask) >>> 0
  for (;;) {
    const slot = slots + at * layout.slotBytes
    const stored = memory.u32[(slot + layout.slotLength) >>> 2]!
    if (stored === 0) return slot
    if (stored === bytes + 1 && sameText(memory, memory.u32[(slot + layout.slotText) >>> 2]!, address, bytes))
      return slot
    at = ((at + 1) & mask) >>> 0
  }
}

/** Does what IlpKernel.find does. */
export function findSymbol(memory: SharedMemory, dictionary: number, address: number, bytes: number): number {
  const slot = slotOf(memory, dictionary, address, bytes)
  if (memory.u32[(slot + layout.slotLength) >>> 2] === 0) return layout.missing
  return memory.u32[(slot + layout.slotId) >>> 2]!
}

/** Does what IlpKernel.intern does. */
export function internSymbol(memory: SharedMemory, dictionary: number, address: number, bytes: number): number {
  const slot = slotOf(memory, dictionary, address, bytes)
  if (memory.u32[(slot + layout.slotLength) >>> 2] !== 0) return memory.u32[(slot + layout.slotId) >>> 2]!
  const id = memory.u32[(dictionary + layout.count) >>> 2]!
  const heap = memory.u32[(dictionary + layout.heapNext) >>> 2]!
  if (id >= memory.u32[(dictionary + layout.capacity) >>> 2]!) return layout.full
  if ((id + 1) * 2 > memory.u32[(dictionary + layout.slotMask) >>> 2]! + 1) return layout.full
  if (heap + bytes + 16 > memory.u32[(dictionary + layout.heapEnd) >>> 2]!) return layout.full
  if (!validText(memory, address, bytes)) return layout.invalid
  memory.u8.copyWithin(heap, address, address + bytes)
  memory.u32[(dictionary + layout.heapNext) >>> 2] = heap + bytes
  const entry = dictionaryEntry(memory, dictionary, id)
  memory.u32[entry >>> 2] = heap
  memory.u32[(entry + 4) >>> 2] = bytes
  writeSlot(memory, slot, id, heap, bytes)
  Atomics.store(memory.u32, (dictionary + layout.count) >>> 2, id + 1)
  return id
}

/** Whether the bytes are well-formed UTF-8. */
export function validText(memory: SharedMemory, address: number, bytes: number): boolean {
  try {
    decoder.decode(memory.u8.slice(address, address + bytes))
    return true
  } catch {
    return false
  }
}

function writeSlot(memory: SharedMemory, slot: number, id: number, text: number, bytes: number): void {
  memory.u8.fill(0, slot, slot + layout.slotBytes)
  if (bytes <= 16) memory.u8.copyWithin(slot, text, text + bytes)
  else memory.u32[slot >>> 2] = symbolHash(memory.u8, text, bytes)
  memory.u32[(slot + layout.slotLength) >>> 2] = bytes + 1
  memory.u32[(slot + layout.slotId) >>> 2] = id
  memory.u32[(slot + layout.slotText) >>> 2] = text
}

/** Does what IlpKernel.rehashDictionary does. */
export function rehashSymbols(memory: SharedMemory, dictionary: number): void {
  const count = memory.u32[(dictionary + layout.count) >>> 2]!
  for (let id = 0; id < count; id++) {
    const entry = dictionaryEntry(memory, dictionary, id)
    const text = memory.u32[entry >>> 2]!
    const bytes = memory.u32[(entry + 4) >>> 2]!
    writeSlot(memory, slotOf(memory, dictionary, text, bytes), id, text, bytes)
  }
}
