// Looks up and inserts strings in a symbol dictionary in shared memory: maps strings to ids by a hash table with open
// addressing, and ids to strings by arrays of growing size (chunks). Layout: engine/memory/dictionary-layout.ts. Only
// the writer thread inserts. It publishes the number of strings last, so readers never see an incomplete one.
//
// The hash of a string of at most 16 bytes is computed from its four zero-padded little-endian words; that of a longer
// one word by word. A slot begins with the 16 padded bytes, or for longer strings with {hash u32, 0, 0, 0}.

import * as symbolLayout from '../../../memory/dictionary-layout'
import { validUtf8 } from './utf8'

// Sixteen bytes of ones, then zeros: a load at 16 - n is a mask of n bytes.
const maskBytes = memory.data<u8>([
  255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
  0, 0, 0,
])

/** The bytes (at most 16) at p, zero padded. */
@inline
export function shortText(p: usize, bytes: i32): v128 {
  return v128.and(v128.load(p), v128.load(maskBytes + <usize>(16 - bytes)))
}

@inline
export function shortHash(v: v128): u32 {
  const a = <u64>i64x2.extract_lane(v, 0)
  const b = <u64>i64x2.extract_lane(v, 1)
  let h = <u32>a * 0x9e3779b1 + <u32>(a >> 32) * 0x85ebca77 + <u32>b * 0xc2b2ae3d + <u32>(b >> 32) * 0x27d4eb2f
  h = (h ^ (h >> 15)) * 0x2c1b3c6d
  return h ^ (h >> 13)
}

export function longHash(p: usize, bytes: i32): u32 {
  const whole = p + <usize>(bytes & ~3)
  const rest = <u32>bytes & 3
  let h = <u32>bytes * 0x9e3779b1
  for (; p < whole; p += 4) {
    h = (h ^ load<u32>(p)) * 0x85ebca77
    h ^= h >> 15
  }
  if (rest) {
    h = (h ^ (load<u32>(p) & ((<u32>1 << (rest << 3)) - 1))) * 0x85ebca77
    h ^= h >> 15
  }
  h *= 0x2c1b3c6d
  return h ^ (h >> 13)
}

export function sameBytes(a: usize, b: usize, bytes: i32): bool {
  const n = <usize>bytes
  let i: usize = 0
  for (; i + 16 <= n; i += 16) {
    if (v128.any_true(v128.xor(v128.load(a + i), v128.load(b + i)))) return false
  }
  const rest = <i32>(n - i)
  if (rest == 0) return true
  return !v128.any_true(v128.xor(shortText(a + i, rest), shortText(b + i, rest)))
}

/** Id of a string of at most 16 bytes, inserted if new; symbolLayout.full or symbolLayout.invalid. */
@inline
export function internShort(dictionary: usize, p: usize, bytes: i32): i32 {
  const v = shortText(p, bytes)
  const mask = load<u32>(dictionary, symbolLayout.slotMask)
  const slots = <usize>load<u32>(dictionary, symbolLayout.slots)
  let at = shortHash(v) & mask
  for (;;) {
    const slot = slots + (<usize>at << 5)
    const stored = load<u32>(slot, symbolLayout.slotLength)
    if (stored == <u32>(bytes + 1) && !v128.any_true(v128.xor(v128.load(slot), v))) return <i32>load<u32>(slot, symbolLayout.slotId)
    if (stored == 0) return insert(dictionary, slot, v, p, bytes)
    at = (at + 1) & mask
  }
  return symbolLayout.full
}

/** The same for a longer string. */
export function internLong(dictionary: usize, p: usize, bytes: i32): i32 {
  const hash = longHash(p, bytes)
  const slot = findLong(dictionary, hash, p, bytes)
  if (load<u32>(slot, symbolLayout.slotLength) != 0) return <i32>load<u32>(slot, symbolLayout.slotId)
  return insert(dictionary, slot, i32x4(<i32>hash, 0, 0, 0), p, bytes)
}

/** The slot of the string, or the free slot where it belongs. */
export function findLong(dictionary: usize, hash: u32, p: usize, bytes: i32): usize {
  const mask = load<u32>(dictionary, symbolLayout.slotMask)
  const slots = <usize>load<u32>(dictionary, symbolLayout.slots)
  let at = hash & mask
  for (;;) {
    const slot = slots + (<usize>at << 5)
    const stored = load<u32>(slot, symbolLayout.slotLength)
    if (stored == 0) return slot
    if (stored == <u32>(bytes + 1) && load<u32>(slot) == hash && sameBytes(<usize>load<u32>(slot, symbolLayout.slotText), p, bytes)) return slot
    at = (at + 1) & mask
  }
  return 0
}

/** Address of the {string address, bytes} entry of an id. */
@inline
export function entryOf(dictionary: usize, id: u32): usize {
  const chunk = 31 - clz((id >> 8) + 1)
  const base = <usize>load<u32>(dictionary + (<usize>chunk << 2), symbolLayout.chunks)
  return base + (<usize>(id - 256 * ((<u32>1 << chunk) - 1)) << 3)
}

function insert(dictionary: usize, slot: usize, value: v128, p: usize, bytes: i32): i32 {
  const id = load<u32>(dictionary, symbolLayout.count)
  const heap = load<u32>(dictionary, symbolLayout.heapNext)
  if (id >= load<u32>(dictionary, symbolLayout.capacity)) return symbolLayout.full
  if ((id + 1) * 2 > load<u32>(dictionary, symbolLayout.slotMask) + 1) return symbolLayout.full
  if (<u64>heap + <u64>bytes + 16 > <u64>load<u32>(dictionary, symbolLayout.heapEnd)) return symbolLayout.full
  if (!validUtf8(p, bytes)) return symbolLayout.invalid
  memory.copy(<usize>heap, p, <usize>bytes)
  store<u32>(dictionary, heap + <u32>bytes, symbolLayout.heapNext)
  const entry = entryOf(dictionary, id)
  store<u32>(entry, heap)
  store<u32>(entry, <u32>bytes, 4)
  v128.store(slot, value)
  store<u32>(slot, <u32>bytes + 1, symbolLayout.slotLength)
  store<u32>(slot, id, symbolLayout.slotId)
  store<u32>(slot, heap, symbolLayout.slotText)
  store<u32>(slot, 0, symbolLayout.slotText + 4)
  atomic.store<u32>(dictionary, id + 1)
  return <i32>id
}

/** Inserts every string into the dictionary's new slot table, which is zeroed and large enough. */
export function rehash(dictionary: usize): void {
  const count = load<u32>(dictionary, symbolLayout.count)
  const mask = load<u32>(dictionary, symbolLayout.slotMask)
  const slots = <usize>load<u32>(dictionary, symbolLayout.slots)
  for (let id: u32 = 0; id < count; id++) {
    const entry = entryOf(dictionary, id)
    const text = <usize>load<u32>(entry)
    const bytes = <i32>load<u32>(entry, 4)
    const v = bytes <= 16 ? shortText(text, bytes) : i32x4(<i32>longHash(text, bytes), 0, 0, 0)
    let at = (bytes <= 16 ? shortHash(v) : <u32>i32x4.extract_lane(v, 0)) & mask
    while (load<u32>(slots + (<usize>at << 5), symbolLayout.slotLength) != 0) at = (at + 1) & mask
    const slot = slots + (<usize>at << 5)
    v128.store(slot, v)
    store<u32>(slot, <u32>bytes + 1, symbolLayout.slotLength)
    store<u32>(slot, id, symbolLayout.slotId)
    store<u32>(slot, <u32>text, symbolLayout.slotText)
    store<u32>(slot, 0, symbolLayout.slotText + 4)
  }
}
