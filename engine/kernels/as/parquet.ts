// The WebAssembly kernel that encodes and decodes pages of Parquet files: NULL bitmaps, bit packing,
// DELTA_BINARY_PACKED, dictionaries, BYTE_STREAM_SPLIT and strings. It also computes the minimum, maximum and sum of a
// page, and collects values by a list of row positions. LZ4 and Snappy are in shared/. engine/kernels/parquet.ts
// describes the functions.
//
// Every buffer is readable, and every target writable, for 64 bytes after its end.

import { copyLiterals, copyOne } from './shared/copy'
import { putVarint } from './shared/varint'
export { decodeIndexed, packIndexes, pickIndexed } from './shared/hybrid'
export { lz4Compress, lz4Decompress } from './shared/lz4'
export { snappyCompress } from './shared/snappy'
export { hashPlain } from './shared/hash64'
export { sum } from './shared/sums'
export { dictionaryAdd, dictionaryAddText, dictionaryRehash } from './shared/dictionary'

const I64_MIN: i64 = i64.MIN_VALUE

// Representations of NULL: see nullKinds in engine/kernels/parquet.ts.
@inline
function isNull(at: usize, kind: i32): bool {
  switch (kind) {
    case 1: return load<i8>(at) == -1
    case 2: return load<i16>(at) == -1
    case 3: return load<i32>(at) == -1
    case 4: return load<i64>(at) == -1
    case 5: return load<i32>(at) == i32.MIN_VALUE
    case 6: return load<i64>(at) == I64_MIN
    case 7: return load<i32>(at) == 0
    case 8: { const v = load<f32>(at); return v != v }
    case 9: { const v = load<f64>(at); return v != v }
    case 10: return load<i64>(at) == I64_MIN && load<i64>(at, 8) == I64_MIN
    case 11: return load<i64>(at) == I64_MIN && load<i64>(at, 8) == I64_MIN && load<i64>(at, 16) == I64_MIN && load<i64>(at, 24) == I64_MIN
    case 12: return load<i64>(at) == 0 && load<i64>(at, 8) == I64_MIN
    case 13: return load<i64>(at) == 0 && load<i64>(at, 8) == 0 && load<i64>(at, 16) == 0 && load<i64>(at, 24) == I64_MIN
    case 14: return load<i32>(at, 4) == -1
    default: return false
  }
}

@inline
function storeNull(at: usize, kind: i32): void {
  switch (kind) {
    case 1: store<i8>(at, -1); break
    case 2: store<i16>(at, -1); break
    case 3: store<i32>(at, -1); break
    case 4: store<i64>(at, -1); break
    case 5: store<i32>(at, i32.MIN_VALUE); break
    case 6: store<i64>(at, I64_MIN); break
    case 7: store<i32>(at, 0); break
    case 8: store<u32>(at, 0x7fc00000); break
    case 9: store<u64>(at, 0x7ff8000000000000); break
    case 10: store<i64>(at, I64_MIN); store<i64>(at, I64_MIN, 8); break
    case 11: store<i64>(at, I64_MIN); store<i64>(at, I64_MIN, 8); store<i64>(at, I64_MIN, 16); store<i64>(at, I64_MIN, 24); break
    case 12: store<i64>(at, 0); store<i64>(at, I64_MIN, 8); break
    case 13: store<i64>(at, 0); store<i64>(at, 0, 8); store<i64>(at, 0, 16); store<i64>(at, I64_MIN, 24); break
    case 14: store<i32>(at, 0); store<i32>(at, -1, 4); break
    default: break
  }
}

@inline
function nulls4(at: usize, kind: i32): i32 {
  const v = v128.load(at)
  if (kind == 8) return i32x4.bitmask(f32x4.ne(v, v))
  return i32x4.bitmask(i32x4.eq(v, i32x4.splat(kind == 3 ? -1 : kind == 5 ? i32.MIN_VALUE : 0)))
}

@inline
function nulls2(at: usize, kind: i32): i32 {
  const v = v128.load(at)
  if (kind == 9) return i64x2.bitmask(f64x2.ne(v, v))
  // An entry is NULL if its length is negative.
  if (kind == 14) return i64x2.bitmask(v)
  return i64x2.bitmask(i64x2.eq(v, i64x2.splat(kind == 4 ? -1 : I64_MIN)))
}

/** One bit per value for eight values of four or eight bytes, 1 = NULL. */
@inline
function nulls8(at: usize, width: usize, kind: i32): i32 {
  if (width == 4) return nulls4(at, kind) | (nulls4(at + 16, kind) << 4)
  return nulls2(at, kind) | (nulls2(at + 16, kind) << 2) | (nulls2(at + 32, kind) << 4) | (nulls2(at + 48, kind) << 6)
}

@inline
function presenceOf(values: usize, count: i32, width: usize, kind: i32, bits: usize): i32 {
  let present = 0
  let at = values
  let first = 0
  if (width == 4 || width == 8) {
    for (; first + 8 <= count; first += 8) {
      const byte = nulls8(at, width, kind) ^ 255
      present += popcnt(byte)
      store<u8>(bits + <usize>(first >> 3), <u8>byte)
      at += width << 3
    }
  }
  for (; first < count; first += 8) {
    const n = min(8, count - first)
    let byte = 0
    for (let i = 0; i < n; i++) {
      const bit = i32(!isNull(at, kind))
      byte |= bit << i
      present += bit
      at += width
    }
    store<u8>(bits + <usize>(first >> 3), <u8>byte)
  }
  return present
}

export function presence(values: usize, count: i32, kind: i32, bits: usize): i32 {
  // One loop per kind, so that the comparison is constant within it.
  switch (kind) {
    case 1: return presenceOf(values, count, 1, 1, bits)
    case 2: return presenceOf(values, count, 2, 2, bits)
    case 3: return presenceOf(values, count, 4, 3, bits)
    case 4: return presenceOf(values, count, 8, 4, bits)
    case 5: return presenceOf(values, count, 4, 5, bits)
    case 6: return presenceOf(values, count, 8, 6, bits)
    case 7: return presenceOf(values, count, 4, 7, bits)
    case 8: return presenceOf(values, count, 4, 8, bits)
    case 9: return presenceOf(values, count, 8, 9, bits)
    case 10: return presenceOf(values, count, 16, 10, bits)
    case 11: return presenceOf(values, count, 32, 11, bits)
    case 12: return presenceOf(values, count, 16, 12, bits)
    case 13: return presenceOf(values, count, 32, 13, bits)
    case 14: return presenceOf(values, count, 8, 14, bits)
    default: return -1
  }
}

@inline
function compactOf(values: usize, count: i32, width: usize, bits: usize, target: usize): void {
  let out = target
  for (let i = 0; i < count; i++) {
    const from = values + <usize>i * width
    const bit = (<u32>load<u8>(bits + <usize>(i >> 3)) >> (i & 7)) & 1
    copyOne(out, from, width)
    out += bit ? width : 0
  }
}

export function compact(values: usize, count: i32, width: i32, bits: usize, target: usize): void {
  if (width == 8) compactOf(values, count, 8, bits, target)
  else if (width == 4) compactOf(values, count, 4, bits, target)
  else if (width == 1) compactOf(values, count, 1, bits, target)
  else if (width == 2) compactOf(values, count, 2, bits, target)
  else if (width == 16) compactOf(values, count, 16, bits, target)
  else compactOf(values, count, 32, bits, target)
}

@inline
function expandOf(values: usize, present: i32, count: i32, width: usize, bits: usize, kind: i32, target: usize): i32 {
  let from = values
  const end = values + <usize>present * width
  let out = target
  for (let i = 0; i < count; i++) {
    const bit = (<u32>load<u8>(bits + <usize>(i >> 3)) >> (i & 7)) & 1
    if (bit) {
      if (from >= end) return -1
      copyOne(out, from, width)
      from += width
    } else storeNull(out, kind)
    out += width
  }
  return from == end ? 0 : -1
}

export function expand(values: usize, present: i32, count: i32, width: i32, bits: usize, kind: i32, target: usize): i32 {
  if (width == 8) return expandOf(values, present, count, 8, bits, kind, target)
  if (width == 4) return expandOf(values, present, count, 4, bits, kind, target)
  if (width == 1) return expandOf(values, present, count, 1, bits, kind, target)
  if (width == 2) return expandOf(values, present, count, 2, bits, kind, target)
  if (width == 16) return expandOf(values, present, count, 16, bits, kind, target)
  return expandOf(values, present, count, 32, bits, kind, target)
}

export function fillNull(count: i32, width: i32, kind: i32, target: usize): void {
  for (let i = 0; i < count; i++) storeNull(target + <usize>i * <usize>width, kind)
}

// kind: 0 i8, 1 i16, 2 u16
export function widen(values: usize, count: i32, kind: i32, target: usize): void {
  if (kind == 0) for (let i: usize = 0; i < <usize>count; i++) store<i32>(target + (i << 2), <i32>load<i8>(values + i))
  else if (kind == 1) for (let i: usize = 0; i < <usize>count; i++) store<i32>(target + (i << 2), <i32>load<i16>(values + (i << 1)))
  else for (let i: usize = 0; i < <usize>count; i++) store<i32>(target + (i << 2), <i32>load<u16>(values + (i << 1)))
}

export function narrow(values: usize, count: i32, width: i32, target: usize): void {
  if (width == 1) for (let i: usize = 0; i < <usize>count; i++) store<u8>(target + i, <u8>load<u32>(values + (i << 2)))
  else for (let i: usize = 0; i < <usize>count; i++) store<u16>(target + (i << 1), <u16>load<u32>(values + (i << 2)))
}

export function packBooleans(values: usize, count: i32, target: usize): void {
  for (let i = 0; i < count; i += 8) {
    let byte = 0
    const n = min(8, count - i)
    for (let k = 0; k < n; k++) byte |= i32(load<u8>(values + <usize>(i + k)) != 0) << k
    store<u8>(target + <usize>(i >> 3), <u8>byte)
  }
}

export function unpackBooleans(bits: usize, count: i32, target: usize): void {
  for (let i = 0; i < count; i++) store<u8>(target + <usize>i, (load<u8>(bits + <usize>(i >> 3)) >> <u8>(i & 7)) & 1)
}

// ---- DELTA_BINARY_PACKED: blocks of 128 in 4 miniblocks ----

@inline
function putVarint64(target: usize, value: u64): usize {
  while (value > 127) {
    store<u8>(target++, <u8>(value | 128))
    value >>= 7
  }
  store<u8>(target, <u8>value)
  return target + 1
}

@inline
function zigzag(value: i64): u64 {
  return (<u64>value << 1) ^ <u64>(value >> 63)
}

@inline
function value64(values: usize, index: i32, wide: bool): i64 {
  return wide ? load<i64>(values + (<usize>index << 3)) : <i64>load<i32>(values + (<usize>index << 2))
}

@inline
function deltaBetween(values: usize, index: i32, wide: bool): i64 {
  // 32-bit deltas wrap in 32 bits, as other readers expect.
  if (wide) return value64(values, index, true) - value64(values, index - 1, true)
  const delta: i32 = load<i32>(values + (<usize>index << 2)) - load<i32>(values + (<usize>(index - 1) << 2))
  return <i64>delta
}

@inline
function packDeltas(values: usize, first: i32, n: i32, least: i64, width: u64, wide: bool, target: usize): usize {
  let word: u64 = 0
  let used: u64 = 0
  for (let i = 0; i < 32; i++) {
    let v: u64 = i < n ? <u64>(deltaBetween(values, first + i, wide) - least) : 0
    if (!wide) v &= 0xffffffff
    word |= v << used
    if (used + width >= 64) {
      store<u64>(target, word)
      target += 8
      const taken = 64 - used
      word = taken == 64 ? 0 : v >> taken
      used = used + width - 64
    } else used += width
  }
  store<u64>(target, word)
  return target + <usize>(used >> 3)
}

@inline
function deltaEncodeOf(values: usize, count: i32, target: usize, wide: bool): i32 {
  let out = putVarint(putVarint(target, 128), 4)
  out = putVarint(out, <u32>count)
  out = putVarint64(out, zigzag(count > 0 ? value64(values, 0, wide) : 0))
  for (let block = 1; block < count; block += 128) {
    const end = min(block + 128, count)
    let least = i64.MAX_VALUE
    for (let i = block; i < end; i++) least = min(least, deltaBetween(values, i, wide))
    out = putVarint64(out, zigzag(least))
    const widths = out
    out += 4
    for (let mini = 0; mini < 4; mini++) {
      const first = block + mini * 32
      const n = min(32, end - first)
      let all: u64 = 0
      for (let i = 0; i < n; i++) {
        let v = <u64>(deltaBetween(values, first + i, wide) - least)
        if (!wide) v &= 0xffffffff
        all |= v
      }
      const width = 64 - clz<u64>(all)
      store<u8>(widths + <usize>mini, <u8>width)
      if (width > 0) out = packDeltas(values, first, n, least, width, wide, out)
    }
  }
  return <i32>(out - target)
}

export function deltaEncode32(values: usize, count: i32, target: usize): i32 {
  return deltaEncodeOf(values, count, target, false)
}

export function deltaEncode64(values: usize, count: i32, target: usize): i32 {
  return deltaEncodeOf(values, count, target, true)
}

let cursor: usize = 0

@inline
function getVarint64(end: usize): u64 {
  let value: u64 = 0
  let shift: u64 = 0
  while (cursor < end && shift < 64) {
    const byte = <u64>load<u8>(cursor++)
    value |= (byte & 127) << shift
    if (byte < 128) return value
    shift += 7
  }
  cursor = usize.MAX_VALUE
  return 0
}

@inline
function unzigzag(value: u64): i64 {
  return <i64>(value >> 1) ^ -<i64>(value & 1)
}

@inline
function unpackDeltas(source: usize, n: i32, width: u64, least: i64, start: i64, target: usize, wide: bool): i64 {
  let value = start
  const mask: u64 = width == 64 ? u64.MAX_VALUE : (<u64>1 << width) - 1
  let bit: u64 = 0
  const step: usize = wide ? 8 : 4
  for (let i = 0; i < n; i++) {
    const at = source + <usize>(bit >> 3)
    const shift = bit & 7
    let delta = load<u64>(at) >> shift
    // Only widths above 56 reach a ninth byte.
    if (shift + width > 64) delta |= <u64>load<u8>(at, 8) << (64 - shift)
    value += least + <i64>(delta & mask)
    if (wide) store<i64>(target, value)
    else store<i32>(target, <i32>value)
    target += step
    bit += width
  }
  return value
}

@inline
function deltaDecodeOf(source: usize, bytes: i32, count: i32, target: usize, wide: bool): i32 {
  const end = source + <usize>bytes
  const step: usize = wide ? 8 : 4
  cursor = source
  if (getVarint64(end) != 128 || getVarint64(end) != 4) return -1
  if (getVarint64(end) != <u64>count) return -1
  let value = unzigzag(getVarint64(end))
  if (cursor > end) return -1
  if (count == 0) return <i32>(cursor - source)
  if (wide) store<i64>(target, value)
  else store<i32>(target, <i32>value)
  target += step
  let left = count - 1
  while (left > 0) {
    const least = unzigzag(getVarint64(end))
    if (cursor > end || cursor + 4 > end) return -1
    const widths = cursor
    cursor += 4
    for (let mini: usize = 0; mini < 4 && left > 0; mini++) {
      const width = <u64>load<u8>(widths + mini)
      if (width > 64 || cursor + (<usize>width << 2) > end) return -1
      const n = min(32, left)
      value = unpackDeltas(cursor, n, width, least, value, target, wide)
      cursor += <usize>width << 2
      target += <usize>n * step
      left -= n
    }
  }
  return <i32>(cursor - source)
}

export function deltaDecode32(source: usize, bytes: i32, count: i32, target: usize): i32 {
  return deltaDecodeOf(source, bytes, count, target, false)
}

export function deltaDecode64(source: usize, bytes: i32, count: i32, target: usize): i32 {
  return deltaDecodeOf(source, bytes, count, target, true)
}

// ---- BYTE_STREAM_SPLIT ----

export function splitBytes(values: usize, count: i32, width: i32, target: usize): void {
  const n = <usize>count
  if (width == 8) {
    for (let i: usize = 0; i < n; i++) {
      const v = load<u64>(values + (i << 3))
      let out = target + i
      store<u8>(out, <u8>v)
      store<u8>((out += n), <u8>(v >> 8))
      store<u8>((out += n), <u8>(v >> 16))
      store<u8>((out += n), <u8>(v >> 24))
      store<u8>((out += n), <u8>(v >> 32))
      store<u8>((out += n), <u8>(v >> 40))
      store<u8>((out += n), <u8>(v >> 48))
      store<u8>((out += n), <u8>(v >> 56))
    }
    return
  }
  for (let i: usize = 0; i < n; i++) {
    const v = load<u32>(values + (i << 2))
    let out = target + i
    store<u8>(out, <u8>v)
    store<u8>((out += n), <u8>(v >> 8))
    store<u8>((out += n), <u8>(v >> 16))
    store<u8>((out += n), <u8>(v >> 24))
  }
}

@inline
function pairs(low: v128, high: v128, target: usize): void {
  v128.store(target, i8x16.shuffle(low, high, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23))
  v128.store(target, i8x16.shuffle(low, high, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31), 16)
}

@inline
function join8(source: usize, n: usize, target: usize): void {
  // 16 values: bytes are interleaved to 16, 32 and 64 bits.
  const s0 = v128.load(source), s1 = v128.load(source + n), s2 = v128.load(source + 2 * n), s3 = v128.load(source + 3 * n)
  const s4 = v128.load(source + 4 * n), s5 = v128.load(source + 5 * n), s6 = v128.load(source + 6 * n), s7 = v128.load(source + 7 * n)
  for (let half = 0; half < 2; half++) {
    const a = half == 0 ? low8(s0, s1) : high8(s0, s1)
    const b = half == 0 ? low8(s2, s3) : high8(s2, s3)
    const c = half == 0 ? low8(s4, s5) : high8(s4, s5)
    const d = half == 0 ? low8(s6, s7) : high8(s6, s7)
    const ab0 = low16(a, b), ab1 = high16(a, b), cd0 = low16(c, d), cd1 = high16(c, d)
    v128.store(target, low32(ab0, cd0))
    v128.store(target, high32(ab0, cd0), 16)
    v128.store(target, low32(ab1, cd1), 32)
    v128.store(target, high32(ab1, cd1), 48)
    target += 64
  }
}

@inline
function low8(a: v128, b: v128): v128 { return i8x16.shuffle(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23) }
@inline
function high8(a: v128, b: v128): v128 { return i8x16.shuffle(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31) }
@inline
function low16(a: v128, b: v128): v128 { return i16x8.shuffle(a, b, 0, 8, 1, 9, 2, 10, 3, 11) }
@inline
function high16(a: v128, b: v128): v128 { return i16x8.shuffle(a, b, 4, 12, 5, 13, 6, 14, 7, 15) }
@inline
function low32(a: v128, b: v128): v128 { return i32x4.shuffle(a, b, 0, 4, 1, 5) }
@inline
function high32(a: v128, b: v128): v128 { return i32x4.shuffle(a, b, 2, 6, 3, 7) }

export function joinBytes(source: usize, count: i32, width: i32, target: usize): void {
  const n = <usize>count
  let i: usize = 0
  if (width == 8) {
    for (; i + 16 <= n; i += 16) join8(source + i, n, target + (i << 3))
    for (; i < n; i++) for (let k: usize = 0; k < 8; k++) store<u8>(target + (i << 3) + k, load<u8>(source + k * n + i))
    return
  }
  for (; i + 16 <= n; i += 16) {
    const at = source + i
    const out = target + (i << 2)
    const a = v128.load(at), b = v128.load(at + n), c = v128.load(at + 2 * n), d = v128.load(at + 3 * n)
    const ab0 = low8(a, b), ab1 = high8(a, b), cd0 = low8(c, d), cd1 = high8(c, d)
    v128.store(out, low16(ab0, cd0))
    v128.store(out, high16(ab0, cd0), 16)
    v128.store(out, low16(ab1, cd1), 32)
    v128.store(out, high16(ab1, cd1), 48)
  }
  for (; i < n; i++) for (let k: usize = 0; k < 4; k++) store<u8>(target + (i << 2) + k, load<u8>(source + k * n + i))
}

export function reverseBytes(values: usize, count: i32, width: i32, target: usize): void {
  const n = <usize>count
  for (let i: usize = 0; i < n; i++) {
    if (width == 16) {
      const at = values + (i << 4)
      const a = bswap<u64>(load<u64>(at)), b = bswap<u64>(load<u64>(at, 8))
      store<u64>(target + (i << 4), b)
      store<u64>(target + (i << 4), a, 8)
    } else {
      const at = values + (i << 5), out = target + (i << 5)
      const a = bswap<u64>(load<u64>(at)), b = bswap<u64>(load<u64>(at, 8)), c = bswap<u64>(load<u64>(at, 16)), d = bswap<u64>(load<u64>(at, 24))
      store<u64>(out, d)
      store<u64>(out, c, 8)
      store<u64>(out, b, 16)
      store<u64>(out, a, 24)
    }
  }
}

// ---- text ----

export function textLengths(entries: usize, count: i32, target: usize): i32 {
  let total = 0
  for (let i: usize = 0; i < <usize>count; i++) {
    const length = load<i32>(entries + (i << 3), 4)
    store<i32>(target + (i << 2), length)
    total += length
  }
  return total
}

export function textBytes(entries: usize, count: i32, target: usize): void {
  for (let i: usize = 0; i < <usize>count; i++) {
    const from = <usize>load<u32>(entries + (i << 3))
    const length = <usize>load<u32>(entries + (i << 3), 4)
    copyLiterals(target, from, length)
    target += length
  }
}

export function plainStrings(entries: usize, count: i32, target: usize): i32 {
  let at = target
  for (let i: usize = 0; i < <usize>count; i++) {
    const from = <usize>load<u32>(entries + (i << 3))
    const length = <usize>load<u32>(entries + (i << 3), 4)
    store<u32>(at, <u32>length)
    at += 4
    copyLiterals(at, from, length)
    at += length
  }
  return <i32>(at - target)
}

export function textEntries(lengths: usize, count: i32, base: usize, bytes: i32, target: usize): i32 {
  let at: u64 = <u64>base
  const end: u64 = <u64>base + <u64>bytes
  for (let i: usize = 0; i < <usize>count; i++) {
    const length = load<i32>(lengths + (i << 2))
    if (length < 0) return -1
    store<u32>(target + (i << 3), <u32>at)
    store<i32>(target + (i << 3), length, 4)
    at += <u64>length
    if (at > end) return -1
  }
  return at == end ? 0 : -1
}

export function plainTextEntries(source: usize, bytes: i32, count: i32, target: usize): i32 {
  let at: u64 = <u64>source
  const end: u64 = at + <u64>bytes
  for (let i: usize = 0; i < <usize>count; i++) {
    if (at + 4 > end) return -1
    const length = load<u32>(<usize>at)
    at += 4
    store<u32>(target + (i << 3), <u32>at)
    store<u32>(target + (i << 3), length, 4)
    at += <u64>length
    if (at > end || length > 0x7fffffff) return -1
  }
  return at == end ? 0 : -1
}

// ---- ranges: kind 0 i32, 1 u32, 2 i64, 3 f32, 4 f64 ----

@inline
function rangeOf<T extends number>(values: usize, count: i32, target: usize): void {
  let low = load<T>(values)
  let high = low
  for (let i: usize = 1; i < <usize>count; i++) {
    const v = load<T>(values + i * sizeof<T>())
    low = min<T>(low, v)
    high = max<T>(high, v)
  }
  store<T>(target, low)
  store<T>(target, high, 8)
}

export function range(values: usize, count: i32, kind: i32, target: usize): void {
  switch (kind) {
    case 0: rangeOf<i32>(values, count, target); break
    case 1: rangeOf<u32>(values, count, target); break
    case 2: rangeOf<i64>(values, count, target); break
    case 3: rangeOf<f32>(values, count, target); break
    default: rangeOf<f64>(values, count, target)
  }
}

// ---- gather ----

/** Minimum length of a run that is copied as a block; shorter ones are faster one by one. */
const runMin: u32 = 4

/** Number of consecutive positions within a block from here on: 1, or at least `runMin`. */
@inline
function runLength(positions: usize, end: usize, position: u32, most: u32): u32 {
  if (end - positions < 16 || most < runMin) return 1
  const upwards = i32x4.add(i32x4.splat(<i32>position), i32x4(0, 1, 2, 3))
  if (!i32x4.all_true(i32x4.eq(v128.load(positions), upwards))) return 1
  let run = runMin
  while (run < most && positions + (<usize>run << 2) < end && load<u32>(positions + (<usize>run << 2)) == position + run) run++
  return run
}

@inline
function gatherOf(positions: usize, count: i32, shift: u32, bases: usize, width: usize, kind: i32, target: usize): void {
  const mask: u32 = (<u32>1 << shift) - 1
  const end = positions + (<usize>count << 2)
  for (let at = positions; at < end; at += 4) {
    const position = load<u32>(at)
    const base = <usize>load<u32>(bases + (<usize>(position >> shift) << 2))
    if (base == 0) {
      // Checked before searching for a run, which each row of NULL would do in vain.
      if (kind == 0) memory.fill(target, 0, width)
      else storeNull(target, kind)
      target += width
      continue
    }
    const run = runLength(at, end, position, mask + 1 - (position & mask))
    if (run == 1) copyOne(target, base + <usize>(position & mask) * width, width)
    else memory.copy(target, base + <usize>(position & mask) * width, <usize>run * width)
    at += <usize>(run - 1) << 2
    target += <usize>run * width
  }
}

export function gatherBlocks(positions: usize, count: i32, shift: i32, bases: usize, width: i32, kind: i32, target: usize): void {
  const s = <u32>shift
  if (width == 8) gatherOf(positions, count, s, bases, 8, kind, target)
  else if (width == 4) gatherOf(positions, count, s, bases, 4, kind, target)
  else if (width == 1) gatherOf(positions, count, s, bases, 1, kind, target)
  else if (width == 2) gatherOf(positions, count, s, bases, 2, kind, target)
  else if (width == 16) gatherOf(positions, count, s, bases, 16, kind, target)
  else gatherOf(positions, count, s, bases, 32, kind, target)
}
