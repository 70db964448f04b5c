// WebAssembly kernel for pages of Parquet files written by other programs: decodes every encoding and Snappy, and
// converts values to memory layout. engine/kernels/foreign.ts describes the functions.
//
// The input is untrusted: each function checks every length, count and offset before it uses it, and returns -1 for
// invalid input. Every buffer is readable, and every target writable, for 64 bytes after its end.

import { copyOne } from './shared/copy'
import { validUtf8 } from './shared/utf8'
export { snappyDecompress } from './shared/unsnappy'

/** End of the last varint; above every address if it was not terminated. */
let cursor: u64 = 0

@inline
function varint(end: u64): u64 {
  let value: u64 = 0
  let shift: u64 = 0
  while (cursor < end && shift < 64) {
    const byte = <u64>load<u8>(<usize>(cursor++))
    value |= (byte & 127) << shift
    if (byte < 128) return value
    shift += 7
  }
  cursor = u64.MAX_VALUE
  return 0
}

@inline
function unzigzag(value: u64): i64 {
  return <i64>(value >> 1) ^ -<i64>(value & 1)
}

// ---- runs and packed bits ----

export function hybrid(source: usize, bytes: i32, count: i32, bits: i32, limit: i32, target: usize): i32 {
  if (bits < 0 || bits > 32 || bytes < 0) return -1
  const end = <u64>source + <u64>bytes
  const width = <u64>bits
  const mask: u64 = bits == 32 ? 0xffffffff : (<u64>1 << width) - 1
  const most = <u64><u32>limit
  let left = <u64>count
  cursor = <u64>source
  while (left > 0) {
    const header = varint(end)
    if (cursor > end || header > 0xffffffff) return -1
    const size = header >> 1
    if ((header & 1) == 0) {
      const valueBytes = (width + 7) >> 3
      if (size > left || cursor + valueBytes > end) return -1
      const value = load<u64>(<usize>cursor) & mask
      if (value > most && size > 0) return -1
      cursor += valueBytes
      for (let i: u64 = 0; i < size; i++) store<u32>(target + (<usize>i << 2), <u32>value)
      target += <usize>size << 2
      left -= size
    } else {
      const packed = size * width
      if (size == 0 || cursor + packed > end) return -1
      // The last group of eight may exceed the number of values.
      const values = min<u64>(size << 3, left)
      if ((size << 3) - values > 503) return -1
      let bit: u64 = 0
      for (let i: u64 = 0; i < values; i++) {
        const value = (load<u64>(<usize>(cursor + (bit >> 3))) >> (bit & 7)) & mask
        if (value > most) return -1
        store<u32>(target, <u32>value)
        target += 4
        bit += width
      }
      cursor += packed
      left -= values
    }
  }
  return <i32>(cursor - <u64>source)
}

export function packedLevels(source: usize, bytes: i32, count: i32, bits: i32, limit: i32, target: usize): i32 {
  if (bits < 1 || bits > 32 || bytes < 0) return -1
  const needed = (<u64>count * <u64>bits + 7) >> 3
  if (needed > <u64>bytes) return -1
  let bit: u64 = 0
  for (let i = 0; i < count; i++) {
    let value: u32 = 0
    for (let k = 0; k < bits; k++) {
      value = (value << 1) | ((<u32>load<u8>(source + <usize>(bit >> 3)) >> (7 - <u32>(bit & 7))) & 1)
      bit++
    }
    if (value > <u32>limit) return -1
    store<u32>(target + (<usize>i << 2), value)
  }
  return <i32>needed
}

export function levelBits(levels: usize, count: i32, level: i32, bits: usize): i32 {
  let present = 0
  for (let first = 0; first < count; first += 8) {
    const n = min(8, count - first)
    let byte: u32 = 0
    for (let i = 0; i < n; i++) {
      const bit = <u32>(load<i32>(levels + (<usize>(first + i) << 2)) == level)
      byte |= bit << i
      present += <i32>bit
    }
    store<u8>(bits + <usize>(first >> 3), <u8>byte)
  }
  return present
}

@inline
function gatherOf(indexes: usize, count: i32, dictionary: usize, width: usize, target: usize): void {
  for (let i: usize = 0; i < <usize>count; i++) {
    copyOne(target + i * width, dictionary + <usize>load<u32>(indexes + (i << 2)) * width, width)
  }
}

export function gather(indexes: usize, count: i32, dictionary: usize, width: i32, target: usize): void {
  if (width == 8) gatherOf(indexes, count, dictionary, 8, target)
  else if (width == 4) gatherOf(indexes, count, dictionary, 4, target)
  else if (width == 1) gatherOf(indexes, count, dictionary, 1, target)
  else if (width == 2) gatherOf(indexes, count, dictionary, 2, target)
  else if (width == 16) gatherOf(indexes, count, dictionary, 16, target)
  else gatherOf(indexes, count, dictionary, 32, target)
}

// ---- DELTA_BINARY_PACKED, of any sizes of blocks ----

@inline
function unpack(source: u64, n: u64, width: u64, least: i64, start: i64, target: usize, wide: bool): i64 {
  let value = start
  const mask: u64 = width == 64 ? u64.MAX_VALUE : (<u64>1 << width) - 1
  let bit: u64 = 0
  for (let i: u64 = 0; i < n; i++) {
    const at = <usize>(source + (bit >> 3))
    const shift = bit & 7
    let delta = load<u64>(at) >> shift
    if (shift + width > 64) delta |= <u64>load<u8>(at, 8) << (64 - shift)
    value += least + <i64>(delta & mask)
    if (wide) store<i64>(target + (<usize>i << 3), value)
    else store<i32>(target + (<usize>i << 2), <i32>value)
    bit += width
  }
  return value
}

@inline
function deltasOf(source: usize, bytes: i32, count: i32, target: usize, wide: bool): i32 {
  if (bytes < 0) return -1
  const end = <u64>source + <u64>bytes
  const step: usize = wide ? 8 : 4
  cursor = <u64>source
  const block = varint(end)
  const minis = varint(end)
  const total = varint(end)
  let value = unzigzag(varint(end))
  if (cursor > end || total != <u64>count) return -1
  if (block == 0 || block > 0x100000 || minis == 0 || minis > block || block % minis != 0) return -1
  const size = block / minis
  if ((size & 7) != 0) return -1
  if (count > 0) {
    if (wide) store<i64>(target, value)
    else store<i32>(target, <i32>value)
  }
  target += step
  let left: u64 = count > 0 ? <u64>count - 1 : 0
  while (left > 0) {
    const least = unzigzag(varint(end))
    if (cursor > end || cursor + minis > end) return -1
    const widths = cursor
    cursor += minis
    for (let mini: u64 = 0; mini < minis && left > 0; mini++) {
      const width = <u64>load<u8>(<usize>(widths + mini))
      const packed = (width * size) >> 3
      if (width > 64 || cursor + packed > end) return -1
      const n = min<u64>(size, left)
      value = unpack(cursor, n, width, least, value, target, wide)
      cursor += packed
      target += <usize>n * step
      left -= n
    }
  }
  return <i32>(cursor - <u64>source)
}

export function deltas(source: usize, bytes: i32, count: i32, width: i32, target: usize): i32 {
  return width == 8 ? deltasOf(source, bytes, count, target, true) : deltasOf(source, bytes, count, target, false)
}

// ---- texts ----

export function fixedEntries(source: usize, count: i32, width: i32, target: usize): void {
  for (let i: usize = 0; i < <usize>count; i++) {
    store<u32>(target + (i << 3), <u32>(source + i * <usize>width))
    store<i32>(target + (i << 3), width, 4)
  }
}

export function joinedTextBytes(prefixes: usize, suffixes: usize, count: i32, bytes: i32): f64 {
  let total: i64 = 0
  let read: i64 = 0
  let before: i64 = 0
  for (let i: usize = 0; i < <usize>count; i++) {
    const prefix = <i64>load<i32>(prefixes + (i << 2))
    const suffix = <i64>load<i32>(suffixes + (i << 2))
    if (prefix < 0 || suffix < 0 || prefix > before) return -1
    read += suffix
    if (read > <i64>bytes) return -1
    before = prefix + suffix
    total += before
  }
  return read == <i64>bytes ? <f64>total : -1
}

export function joinStrings(prefixes: usize, suffixes: usize, count: i32, source: usize, room: usize, target: usize): void {
  let before = room
  for (let i: usize = 0; i < <usize>count; i++) {
    const prefix = <usize>load<u32>(prefixes + (i << 2))
    const suffix = <usize>load<u32>(suffixes + (i << 2))
    memory.copy(room, before, prefix)
    memory.copy(room + prefix, source, suffix)
    store<u32>(target + (i << 3), <u32>room)
    store<u32>(target + (i << 3), <u32>(prefix + suffix), 4)
    before = room
    room += prefix + suffix
    source += suffix
  }
}

export function firstNoText(entries: usize, count: i32): i32 {
  for (let i = 0; i < count; i++) {
    const entry = entries + (<usize>i << 3)
    if (!validUtf8(<usize>load<u32>(entry), load<i32>(entry, 4))) return i
  }
  return count
}

// ---- other forms of values ----

export function joinStreams(source: usize, count: i32, width: i32, target: usize): void {
  const n = <usize>count
  const w = <usize>width
  for (let k: usize = 0; k < w; k++) {
    const from = source + k * n
    let out = target + k
    for (let i: usize = 0; i < n; i++) {
      store<u8>(out, load<u8>(from + i))
      out += w
    }
  }
}

/** Converts a big-endian integer of `bytes` bytes to a little-endian one of `width`; false if it does not fit. */
@inline
function bigEndian(from: usize, bytes: i32, width: i32, target: usize): bool {
  const fill: u8 = bytes > 0 && load<i8>(from) < 0 ? 255 : 0
  const spare = bytes - width
  for (let i = 0; i < spare; i++) if (load<u8>(from + <usize>i) != fill) return false
  if (spare > 0 && <u8>(load<i8>(from + <usize>spare) >> 7) != fill) return false
  for (let i = 0; i < width; i++) {
    store<u8>(target + <usize>i, i < bytes ? load<u8>(from + <usize>(bytes - 1 - i)) : fill)
  }
  return true
}

export function integersOfFixed(source: usize, count: i32, bytes: i32, width: i32, target: usize): i32 {
  for (let i = 0; i < count; i++) {
    if (!bigEndian(source + <usize>i * <usize>bytes, bytes, width, target + <usize>i * <usize>width)) return i
  }
  return count
}

export function integersOfStrings(entries: usize, count: i32, width: i32, target: usize): i32 {
  for (let i = 0; i < count; i++) {
    const entry = entries + (<usize>i << 3)
    if (!bigEndian(<usize>load<u32>(entry), load<i32>(entry, 4), width, target + <usize>i * <usize>width)) return i
  }
  return count
}

export function widenIntegers(source: usize, count: i32, bytes: i32, width: i32, target: usize): void {
  const words = <usize>width >> 3
  for (let i: usize = 0; i < <usize>count; i++) {
    const value: i64 = bytes == 4 ? <i64>load<i32>(source + (i << 2)) : load<i64>(source + (i << 3))
    const out = target + i * <usize>width
    store<i64>(out, value)
    for (let word: usize = 1; word < words; word++) store<i64>(out + (word << 3), value >> 63)
  }
}

export function widenUnsigned(source: usize, count: i32, target: usize): void {
  for (let i: usize = 0; i < <usize>count; i++) store<i64>(target + (i << 3), <i64>load<u32>(source + (i << 2)))
}

export function firstNegative(source: usize, count: i32): i32 {
  for (let i = 0; i < count; i++) if (load<i64>(source + (<usize>i << 3)) < 0) return i
  return count
}

export function multiply(source: usize, count: i32, bytes: i32, factor: i32, target: usize): i32 {
  const most = i64.MAX_VALUE / <i64>factor
  for (let i = 0; i < count; i++) {
    const value: i64 = bytes == 4 ? <i64>load<i32>(source + (<usize>i << 2)) : load<i64>(source + (<usize>i << 3))
    if (value > most || value < -most) return i
    store<i64>(target + (<usize>i << 3), value * <i64>factor)
  }
  return count
}

/** The Julian day of 1970-01-01, and the range of days around it that 64-bit nanoseconds represent. */
const EPOCH_DAY: i64 = 2440588
const DAY_NANOS: i64 = 86400000000000
const DAYS_MAX: i64 = 106750

export function nanosOfInt96(source: usize, count: i32, target: usize): i32 {
  for (let i = 0; i < count; i++) {
    const at = source + <usize>i * 12
    const nanos = load<i64>(at)
    const days = <i64>load<i32>(at, 8) - EPOCH_DAY
    if (days > DAYS_MAX || days < -DAYS_MAX || nanos < -DAY_NANOS || nanos > DAY_NANOS) return i
    store<i64>(target + (<usize>i << 3), days * DAY_NANOS + nanos)
  }
  return count
}

export function floatsOfHalves(source: usize, count: i32, target: usize): void {
  for (let i: usize = 0; i < <usize>count; i++) {
    const half = <u32>load<u16>(source + (i << 1))
    const sign = (half & 0x8000) << 16
    const exponent = (half >> 10) & 31
    const fraction = half & 1023
    let bits: u32 = 0
    if (exponent == 31) bits = 0x7f800000 | (fraction << 13)
    else if (exponent > 0) bits = ((exponent + 112) << 23) | (fraction << 13)
    else if (fraction > 0) bits = reinterpret<u32>(<f32>fraction * <f32>5.9604644775390625e-8)
    store<u32>(target + (i << 2), sign | bits)
  }
}
