// Builds the dictionary of a column chunk of a Parquet file: a hash table of the distinct values in order of first use.
// Layout of the state (64 bytes):
//
//    0 slots u32 (address of u32 index + 1)  4 slotMask u32   8 values u32 (address)  12 count u32
//   16 countMax u32   20 width u32 (0 = strings)   24 bytes u32 (strings: used)   28 bytesMax u32
//
// Values of a string dictionary are stored as in Parquet's PLAIN encoding: length u32, bytes. `offsets` (state + 32) is
// the address of the u32 offset of each string.

import { mix } from './mix'

@inline
function hashFixed(at: usize, width: usize): u32 {
  if (width == 4) return mix(<u64>load<u32>(at))
  if (width == 8) return mix(load<u64>(at))
  let h = load<u64>(at) ^ (load<u64>(at, 8) * 0xff51afd7ed558ccd)
  if (width == 32) h ^= (load<u64>(at, 16) * 0xc4ceb9fe1a85ec53) ^ (load<u64>(at, 24) * 0x94d049bb133111eb)
  return mix(h)
}

@inline
function sameFixed(a: usize, b: usize, width: usize): bool {
  if (width == 4) return load<u32>(a) == load<u32>(b)
  if (width == 8) return load<u64>(a) == load<u64>(b)
  if (!(load<u64>(a) == load<u64>(b) && load<u64>(a, 8) == load<u64>(b, 8))) return false
  return width == 16 || (load<u64>(a, 16) == load<u64>(b, 16) && load<u64>(a, 24) == load<u64>(b, 24))
}

@inline
function addOf(state: usize, values: usize, count: i32, width: usize, indexes: usize): i32 {
  const slots = <usize>load<u32>(state)
  const mask = load<u32>(state, 4)
  const entries = <usize>load<u32>(state, 8)
  let used = load<u32>(state, 12)
  const most = load<u32>(state, 16)
  for (let i: usize = 0; i < <usize>count; i++) {
    const at = values + i * width
    let slot = hashFixed(at, width) & mask
    let index: u32 = 0
    for (;;) {
      index = load<u32>(slots + (<usize>slot << 2))
      if (index == 0) {
        if (used == most) {
          store<u32>(state, used, 12)
          return <i32>i
        }
        memory.copy(entries + <usize>used * width, at, width)
        index = ++used
        store<u32>(slots + (<usize>slot << 2), index)
        break
      }
      if (sameFixed(entries + <usize>(index - 1) * width, at, width)) break
      slot = (slot + 1) & mask
    }
    store<u32>(indexes + (i << 2), index - 1)
  }
  store<u32>(state, used, 12)
  return count
}

export function dictionaryAdd(state: usize, values: usize, count: i32, indexes: usize): i32 {
  const width = load<u32>(state, 20)
  if (width == 4) return addOf(state, values, count, 4, indexes)
  if (width == 8) return addOf(state, values, count, 8, indexes)
  if (width == 16) return addOf(state, values, count, 16, indexes)
  return addOf(state, values, count, 32, indexes)
}

@inline
function hashText(at: usize, length: usize): u32 {
  let h: u64 = <u64>length * 0xff51afd7ed558ccd
  let i: usize = 0
  for (; i + 8 <= length; i += 8) h = (h ^ load<u64>(at + i)) * 0x9e3779b97f4a7c15 + (h >> 29)
  if (i < length) h = (h ^ (load<u64>(at + i) & (((<u64>1) << (<u64>(length - i) << 3)) - 1))) * 0x9e3779b97f4a7c15 + (h >> 29)
  return mix(h)
}

@inline
function sameText(a: usize, b: usize, length: usize): bool {
  let i: usize = 0
  for (; i + 8 <= length; i += 8) if (load<u64>(a + i) != load<u64>(b + i)) return false
  if (i == length) return true
  return ((load<u64>(a + i) ^ load<u64>(b + i)) & (((<u64>1) << (<u64>(length - i) << 3)) - 1)) == 0
}

export function dictionaryAddText(state: usize, entries: usize, count: i32, indexes: usize): i32 {
  const slots = <usize>load<u32>(state)
  const mask = load<u32>(state, 4)
  const heap = <usize>load<u32>(state, 8)
  let used = load<u32>(state, 12)
  const most = load<u32>(state, 16)
  let bytes = load<u32>(state, 24)
  const bytesMax = load<u32>(state, 28)
  const offsets = <usize>load<u32>(state, 32)
  let i: usize = 0
  for (; i < <usize>count; i++) {
    const at = <usize>load<u32>(entries + (i << 3))
    const length = <usize>load<u32>(entries + (i << 3), 4)
    let slot = hashText(at, length) & mask
    let index: u32 = 0
    let full = false
    for (;;) {
      index = load<u32>(slots + (<usize>slot << 2))
      if (index == 0) {
        if (used == most || <u64>bytes + <u64>length + 4 > <u64>bytesMax) {
          full = true
          break
        }
        store<u32>(offsets + (<usize>used << 2), bytes)
        store<u32>(heap + <usize>bytes, <u32>length)
        memory.copy(heap + <usize>bytes + 4, at, length)
        bytes += <u32>length + 4
        index = ++used
        store<u32>(slots + (<usize>slot << 2), index)
        break
      }
      const known = heap + <usize>load<u32>(offsets + (<usize>(index - 1) << 2))
      if (<usize>load<u32>(known) == length && sameText(known + 4, at, length)) break
      slot = (slot + 1) & mask
    }
    if (full) break
    store<u32>(indexes + (i << 2), index - 1)
  }
  store<u32>(state, used, 12)
  store<u32>(state, bytes, 24)
  return <i32>i
}

/** Fills a new slot table, zeroed by the caller, whose address and mask are already in the state. */
export function dictionaryRehash(state: usize): void {
  const slots = <usize>load<u32>(state)
  const mask = load<u32>(state, 4)
  const entries = <usize>load<u32>(state, 8)
  const used = load<u32>(state, 12)
  const width = <usize>load<u32>(state, 20)
  const offsets = <usize>load<u32>(state, 32)
  for (let i: u32 = 0; i < used; i++) {
    let slot: u32 = 0
    if (width == 0) {
      const text = entries + <usize>load<u32>(offsets + (<usize>i << 2))
      slot = hashText(text + 4, <usize>load<u32>(text)) & mask
    } else slot = hashFixed(entries + <usize>i * width, width) & mask
    while (load<u32>(slots + (<usize>slot << 2)) != 0) slot = (slot + 1) & mask
    store<u32>(slots + (<usize>slot << 2), i + 1)
  }
}
