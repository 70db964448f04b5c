// Encodes and decodes Parquet's hybrid of RLE and bit packing, which stores the dictionary indexes of a page. Decoding
// replaces indexes by dictionary values in SIMD registers where possible.

import { copyOne } from './copy'
import { putVarint } from './varint'

@inline
function packRun(values: usize, count: i32, width: i32, target: usize): usize {
  let word: u64 = 0
  let used: u64 = 0
  const w = <u64>width
  for (let i: usize = 0; i < <usize>count; i++) {
    word |= <u64>load<u32>(values + (i << 2)) << used
    used += w
    if (used >= 32) {
      store<u32>(target, <u32>word)
      target += 4
      word >>= 32
      used -= 32
    }
  }
  store<u32>(target, <u32>word)
  return target + <usize>((used + 7) >> 3)
}

const RUN_MIN = 32

@inline
function putPacked(values: usize, count: i32, width: i32, target: usize): usize {
  if (count == 0) return target
  const groups = (count + 7) >> 3
  const at = putVarint(target, <u32>((groups << 1) | 1))
  const end = at + <usize>(groups * width)
  const done = packRun(values, count, width, at)
  if (done < end) memory.fill(done, 0, end - done)
  return end
}

@inline
function runLength(values: usize, from: i32, count: i32): i32 {
  const value = load<u32>(values + (<usize>from << 2))
  let i = from + 1
  while (i < count && load<u32>(values + (<usize>i << 2)) == value) i++
  return i - from
}

export function packIndexes(values: usize, count: i32, width: i32, target: usize): i32 {
  let out = target
  let pending = 0
  let i = 0
  while (i < count) {
    // A run may only begin at a multiple of eight values, counted from the start of the pending bit-packed run.
    const run = load<u32>(values + (<usize>i << 2)) == load<u32>(values + (<usize>min(i + RUN_MIN - 1, count - 1) << 2)) ? runLength(values, i, count) : 1
    if (run >= RUN_MIN || (run == count - i && run > 8)) {
      out = putPacked(values + (<usize>pending << 2), i - pending, width, out)
      out = putVarint(out, <u32>run << 1)
      const value = load<u32>(values + (<usize>i << 2))
      store<u32>(out, value)
      out += <usize>((width + 7) >> 3)
      i += run
      pending = i
    } else i += 8
  }
  out = putPacked(values + (<usize>pending << 2), count - pending, width, out)
  return <i32>(out - target)
}

@inline
function lookUp(index: u32, dictionary: usize, width: usize, target: usize): void {
  copyOne(target, dictionary + <usize>index * width, width)
}

/** For each of eight packed indexes of up to eight bits, the two bytes that contain it. */
@inline
function windowsOf(bits: i32): v128 {
  const bytes = i16x8.shr_u(i16x8.mul(i16x8(0, 1, 2, 3, 4, 5, 6, 7), i16x8.splat(<i16>bits)), 3)
  return v128.or(bytes, i16x8.shl(i16x8.add(bytes, i16x8.splat(1)), 8))
}

/** Factors that shift each index to bit 8 of its two bytes: SIMD has no shifts per lane, but products. */
@inline
function liftsOf(bits: i32): v128 {
  const shifts = v128.and(i16x8.mul(i16x8(0, 1, 2, 3, 4, 5, 6, 7), i16x8.splat(<i16>bits)), i16x8.splat(7))
  // A position beyond the table selects zero, for the upper byte of each lane.
  const places = v128.or(shifts, i16x8.splat(-32768))
  return i8x16.swizzle(i8x16(-128, 64, 32, 16, 8, 4, 2, 1, 0, 0, 0, 0, 0, 0, 0, 0), places)
}

@inline
function spreadEight(source: usize, windows: v128, lifts: v128, mask: v128): v128 {
  return v128.and(i16x8.shr_u(i16x8.mul(i8x16.swizzle(v128.load64_zero(source), windows), lifts), 7), mask)
}

/** Unpacks sixteen indexes of up to eight bits to bytes. */
@inline
function spreadIndexes(source: usize, bits: i32, windows: v128, lifts: v128): v128 {
  const mask = i16x8.splat((<i16>1 << <i16>bits) - 1)
  const low = spreadEight(source, windows, lifts, mask)
  return i8x16.narrow_i16x8_u(low, spreadEight(source + <usize>bits, windows, lifts, mask))
}

/** Table of byte `plane` of up to 16 four-byte values. */
@inline
function planeOf(dictionary: usize, entries: u32, plane: usize): v128 {
  let bytes = i8x16.splat(0)
  // Lane numbers must be constants, so a mask selects the lane of the byte.
  for (let entry: u32 = 0; entry < 16; entry++) {
    const byte = entry < entries ? load<u8>(dictionary + (<usize>entry << 2) + plane) : 0
    const lane = i8x16.eq(i8x16(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15), i8x16.splat(<i8>entry))
    bytes = v128.or(bytes, v128.and(lane, i8x16.splat(<i8>byte)))
  }
  return bytes
}

/**
 * Decodes whole groups of 16 packed indexes of at most eight bits to four-byte values: by tables in registers for at
 * most 16 values, else by lookups. Returns the number of values; -1 if an index is too large.
 */
function fewIndexed(source: usize, count: i32, bits: i32, dictionary: usize, entries: u32, target: usize): i32 {
  const rows = count & ~15
  if (rows == 0) return 0
  const windows = windowsOf(bits)
  const lifts = liftsOf(bits)
  let worst = i8x16.splat(0)
  let out = target
  if (entries <= 16) {
    const t0 = planeOf(dictionary, entries, 0)
    const t1 = planeOf(dictionary, entries, 1)
    const t2 = planeOf(dictionary, entries, 2)
    const t3 = planeOf(dictionary, entries, 3)
    for (let r = 0; r < rows; r += 16) {
      const codes = spreadIndexes(source, bits, windows, lifts)
      source += <usize>bits << 1
      worst = i8x16.max_u(worst, codes)
      const p0 = i8x16.swizzle(t0, codes)
      const p1 = i8x16.swizzle(t1, codes)
      const p2 = i8x16.swizzle(t2, codes)
      const p3 = i8x16.swizzle(t3, codes)
      const low = i8x16.shuffle(p0, p1, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23)
      const lowEnd = i8x16.shuffle(p0, p1, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31)
      const high = i8x16.shuffle(p2, p3, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23)
      const highEnd = i8x16.shuffle(p2, p3, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31)
      v128.store(out, i16x8.shuffle(low, high, 0, 8, 1, 9, 2, 10, 3, 11))
      v128.store(out, i16x8.shuffle(low, high, 4, 12, 5, 13, 6, 14, 7, 15), 16)
      v128.store(out, i16x8.shuffle(lowEnd, highEnd, 0, 8, 1, 9, 2, 10, 3, 11), 32)
      v128.store(out, i16x8.shuffle(lowEnd, highEnd, 4, 12, 5, 13, 6, 14, 7, 15), 48)
      out += 64
    }
  } else {
    for (let r = 0; r < rows; r += 16) {
      const codes = spreadIndexes(source, bits, windows, lifts)
      source += <usize>bits << 1
      worst = i8x16.max_u(worst, codes)
      const low = i64x2.extract_lane(codes, 0), high = i64x2.extract_lane(codes, 1)
      // Indexes beyond the entries are detected below; the memory after the entries may be read.
      for (let i: usize = 0; i < 8; i++) {
        store<u32>(out + (i << 2), load<u32>(dictionary + (<usize>((low >> (i << 3)) & 255) << 2)))
        store<u32>(out + (i << 2), load<u32>(dictionary + (<usize>((high >> (i << 3)) & 255) << 2)), 32)
      }
      out += 64
    }
  }
  return i8x16.all_true(i8x16.lt_u(worst, i8x16.splat(<i8>entries))) || entries == 256 ? rows : -1
}

/** Number of tables of sixteen bytes each; with more, a lookup per byte is faster. */
const tablesMax: u32 = 8

/**
 * Decodes whole groups of 16 packed indexes of at most eight bits to one-byte values. Returns the number of values; -1
 * if an index is too large.
 */
function fewBytes(source: usize, count: i32, bits: i32, dictionary: usize, entries: u32, target: usize): i32 {
  const rows = count & ~15
  if (rows == 0) return 0
  let worst = i8x16.splat(0)
  let r = 0
  const windows = windowsOf(bits)
  const lifts = liftsOf(bits)
  if (entries <= 16) {
    const table = byteTable(dictionary, entries)
    // Indexes of four bits, or of one, are unpacked in registers.
    if (bits == 4) {
      const low = i8x16.splat(15)
      for (; r + 32 <= rows; r += 32) {
        const packed = v128.load(source)
        const even = v128.and(packed, low)
        const odd = i8x16.shr_u(packed, 4)
        worst = i8x16.max_u(worst, i8x16.max_u(even, odd))
        const evens = i8x16.swizzle(table, even)
        const odds = i8x16.swizzle(table, odd)
        v128.store(target, i8x16.shuffle(evens, odds, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23))
        v128.store(target, i8x16.shuffle(evens, odds, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31), 16)
        source += 16
        target += 32
      }
    } else if (bits == 1) {
      const places = i8x16(1, 2, 4, 8, 16, 32, 64, -128, 1, 2, 4, 8, 16, 32, 64, -128)
      for (; r < rows; r += 16) {
        const packed = i8x16.swizzle(i16x8.splat(load<i16>(source)), i8x16(0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1))
        const codes = v128.and(i8x16.eq(v128.and(packed, places), places), i8x16.splat(1))
        worst = i8x16.max_u(worst, codes)
        v128.store(target, i8x16.swizzle(table, codes))
        source += 2
        target += 16
      }
    }
    for (; r < rows; r += 16) {
      const codes = spreadIndexes(source, bits, windows, lifts)
      source += <usize>bits << 1
      worst = i8x16.max_u(worst, codes)
      v128.store(target, i8x16.swizzle(table, codes))
      target += 16
    }
  }
  const inTables = entries <= tablesMax * 16
  for (; r < rows; r += 16) {
    const codes = spreadIndexes(source, bits, windows, lifts)
    source += <usize>bits << 1
    worst = i8x16.max_u(worst, codes)
    // Indexes beyond the entries are detected below; the memory after the entries may be read.
    if (inTables) {
      // A position beyond a table selects zero from it.
      let places = codes
      let bytes = i8x16.swizzle(v128.load(dictionary), places)
      for (let at: u32 = 16; at < entries; at += 16) {
        places = i8x16.sub(places, i8x16.splat(16))
        bytes = v128.or(bytes, i8x16.swizzle(v128.load(dictionary + <usize>at), places))
      }
      v128.store(target, bytes)
    } else {
      const low = i64x2.extract_lane(codes, 0), high = i64x2.extract_lane(codes, 1)
      for (let i: usize = 0; i < 8; i++) {
        store<u8>(target + i, load<u8>(dictionary + <usize>((low >> (i << 3)) & 255)))
        store<u8>(target + i, load<u8>(dictionary + <usize>((high >> (i << 3)) & 255)), 8)
      }
    }
    target += 16
  }
  return i8x16.all_true(i8x16.lt_u(worst, i8x16.splat(<i8>entries))) || entries == 256 ? rows : -1
}

/** Table of up to 16 one-byte values. */
function byteTable(dictionary: usize, entries: u32): v128 {
  let bytes = i8x16.splat(0)
  for (let entry: u32 = 0; entry < entries; entry++) {
    const lane = i8x16.eq(i8x16(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15), i8x16.splat(<i8>entry))
    bytes = v128.or(bytes, v128.and(lane, i8x16.splat(load<i8>(dictionary + <usize>entry))))
  }
  return bytes
}

/**
 * Decodes whole groups of eight packed indexes of at most 28 bits, two per load. Returns the number of values; -1 if an
 * index is too large. Every index that the bits can represent is within the memory, so entries may be read before the
 * check.
 */
@inline
function manyIndexed(source: usize, count: i32, bits: i32, dictionary: usize, entries: u32, width: usize, target: usize): i32 {
  const rows = count & ~7
  const wide = <u64>bits
  const mask = (<u64>1 << wide) - 1
  const last = <i64>entries - 1
  const at2 = <usize>((2 * bits) >> 3), at4 = <usize>((4 * bits) >> 3), at6 = <usize>((6 * bits) >> 3)
  const shift2 = (wide << 1) & 7, shift4 = (wide << 2) & 7, shift6 = (wide * 6) & 7
  let beyond: i64 = 0
  for (let r = 0; r < rows; r += 8) {
    const a = load<u64>(source), b = load<u64>(source + at2) >> shift2, c = load<u64>(source + at4) >> shift4, d = load<u64>(source + at6) >> shift6
    const i0 = a & mask, i1 = (a >> wide) & mask, i2 = b & mask, i3 = (b >> wide) & mask
    const i4 = c & mask, i5 = (c >> wide) & mask, i6 = d & mask, i7 = (d >> wide) & mask
    beyond |= (last - i0) | (last - i1) | (last - i2) | (last - i3) | (last - i4) | (last - i5) | (last - i6) | (last - i7)
    copyOne(target, dictionary + <usize>i0 * width, width)
    copyOne(target + width, dictionary + <usize>i1 * width, width)
    copyOne(target + 2 * width, dictionary + <usize>i2 * width, width)
    copyOne(target + 3 * width, dictionary + <usize>i3 * width, width)
    copyOne(target + 4 * width, dictionary + <usize>i4 * width, width)
    copyOne(target + 5 * width, dictionary + <usize>i5 * width, width)
    copyOne(target + 6 * width, dictionary + <usize>i6 * width, width)
    copyOne(target + 7 * width, dictionary + <usize>i7 * width, width)
    source += <usize>bits
    target += width << 3
  }
  return beyond < 0 ? -1 : rows
}

@inline
function indexedOf(source: usize, end: usize, count: i32, bits: i32, dictionary: usize, entries: u32, width: usize, target: usize): i32 {
  let out = target
  let left = count
  const mask = bits == 32 ? 0xffffffff : (<u64>1 << <u64>bits) - 1
  while (left > 0) {
    let header: u32 = 0
    let shift: u32 = 0
    for (;;) {
      if (source >= end || shift > 28) return -1
      const byte = <u32>load<u8>(source++)
      header |= (byte & 127) << shift
      if (byte < 128) break
      shift += 7
    }
    if (header & 1) {
      const groups = header >> 1
      if (groups == 0 || <u64>source + <u64>groups * <u64>bits > <u64>end) return -1
      const n = <i32>min<u64>(<u64>groups * 8, <u64>left)
      let worst: u64 = 0
      if (width <= 4 && bits <= 8 && entries <= 256) {
        const done = width == 1 ? fewBytes(source, n, bits, dictionary, entries, out) : fewIndexed(source, n, bits, dictionary, entries, out)
        if (done < 0) return -1
        out += <usize>done * width
        let bit = <u64>done * <u64>bits
        for (let i = done; i < n; i++) {
          const index = (load<u64>(source + <usize>(bit >> 3)) >> (bit & 7)) & mask
          worst = max(worst, index)
          lookUp(index < <u64>entries ? <u32>index : 0, dictionary, width, out)
          out += width
          bit += <u64>bits
        }
      } else if (bits == 8) {
        for (let i: usize = 0; i < <usize>n; i++) {
          const index = <u64>load<u8>(source + i)
          worst = max(worst, index)
          lookUp(index < <u64>entries ? <u32>index : 0, dictionary, width, out)
          out += width
        }
      } else {
        const roomy = <u64>dictionary + (mask + 1) * <u64>width <= <u64>memory.size() << 16
        const done = width <= 8 && bits <= 28 && roomy ? manyIndexed(source, n, bits, dictionary, entries, width, out) : 0
        if (done < 0) return -1
        out += <usize>done * width
        let bit = <u64>done * <u64>bits
        for (let i = done; i < n; i++) {
          const index = (load<u64>(source + <usize>(bit >> 3)) >> (bit & 7)) & mask
          worst = max(worst, index)
          lookUp(index < <u64>entries ? <u32>index : 0, dictionary, width, out)
          out += width
          bit += <u64>bits
        }
      }
      if (worst >= <u64>entries) return -1
      source += <usize>groups * <usize>bits
      left -= n
    } else {
      const run = header >> 1
      const bytes = <usize>((bits + 7) >> 3)
      if (source + bytes > end || run > <u32>left || run == 0) return -1
      const index = <u32>(load<u64>(source) & mask)
      if (index >= entries) return -1
      source += bytes
      for (let i: u32 = 0; i < run; i++) {
        lookUp(index, dictionary, width, out)
        out += width
      }
      left -= <i32>run
    }
  }
  return 0
}

export function decodeIndexed(source: usize, bytes: i32, count: i32, bits: i32, dictionary: usize, entries: i32, width: i32, target: usize): i32 {
  const end = source + <usize>bytes
  if (bits > 32) return -1
  if (width == 1) return indexedOf(source, end, count, bits, dictionary, <u32>entries, 1, target)
  if (width == 4) return indexedOf(source, end, count, bits, dictionary, <u32>entries, 4, target)
  if (width == 8) return indexedOf(source, end, count, bits, dictionary, <u32>entries, 8, target)
  if (width == 16) return indexedOf(source, end, count, bits, dictionary, <u32>entries, 16, target)
  return indexedOf(source, end, count, bits, dictionary, <u32>entries, 32, target)
}

@inline
function pickOf(source: usize, end: usize, count: u32, bits: i32, dictionary: usize, entries: u32, width: usize, index: usize, first: u32, picked: u32, target: usize): i32 {
  const mask = bits == 32 ? 0xffffffff : (<u64>1 << <u64>bits) - 1
  const last = index + (<usize>picked << 2)
  // Number of rows before the run.
  let before: u32 = 0
  while (index < last) {
    let header: u32 = 0
    let shift: u32 = 0
    for (;;) {
      if (source >= end || shift > 28) return -1
      const byte = <u32>load<u8>(source++)
      header |= (byte & 127) << shift
      if (byte < 128) break
      shift += 7
    }
    const packed = (header & 1) != 0
    const size = header >> 1
    const bytes = packed ? <u64>size * <u64>bits : <u64>((bits + 7) >> 3)
    const rows = <u32>min<u64>(packed ? <u64>size * 8 : <u64>size, <u64>(count - before))
    if (rows == 0 || <u64>source + bytes > <u64>end) return -1
    for (; index < last; index += 4) {
      const row = first + load<u32>(index) - before
      if (row >= rows) break
      const bit = packed ? <u64>row * <u64>bits : 0
      const entry = (load<u64>(source + <usize>(bit >> 3)) >> (bit & 7)) & mask
      if (entry >= <u64>entries) return -1
      lookUp(<u32>entry, dictionary, width, target)
      target += width
    }
    source += <usize>bytes
    before += rows
  }
  return 0
}

export function pickIndexed(source: usize, bytes: i32, count: i32, bits: i32, dictionary: usize, entries: i32, width: i32, index: usize, first: i32, picked: i32, target: usize): i32 {
  const end = source + <usize>bytes
  if (bits > 32) return -1
  if (width == 4) return pickOf(source, end, count, bits, dictionary, <u32>entries, 4, index, first, picked, target)
  if (width == 8) return pickOf(source, end, count, bits, dictionary, <u32>entries, 8, index, first, picked, target)
  if (width == 16) return pickOf(source, end, count, bits, dictionary, <u32>entries, 16, index, first, picked, target)
  return pickOf(source, end, count, bits, dictionary, <u32>entries, 32, index, first, picked, target)
}
