// Formats one value of any column type as text. engine/kernels/encode.ts defines the numbers by which callers name the
// types, and how each type represents NULL.

import { putDouble, putFixed, putFloat, putGeohash, putIpv4, putLong256, putSigned, putTime, putUuid } from './print'

const minimum: i64 = i64.MIN_VALUE

// Kinds, as in encodeKinds.
export const kindBoolean: u32 = 0
export const kindChar: u32 = 3
export const kindDate: u32 = 6
export const kindNanos: u32 = 8
export const kindText: u32 = 11
export const kindSymbol: u32 = 12
export const kindLong256: u32 = 13
export const kindIpv4: u32 = 15
export const kindGeohash8: u32 = 16
export const kindBinary: u32 = 20
export const kindArray: u32 = 21
export const kindDecimal8: u32 = 22
export const kindInterval: u32 = 25

/** Size of a value by kind. */
const widths = memory.data<u8>([1, 1, 2, 2, 4, 8, 8, 8, 8, 4, 8, 8, 4, 32, 16, 4, 1, 2, 4, 8, 8, 8, 8, 16, 32, 16])
/** Upper bound of the text of a fixed-width value, without quotes. */
const textBounds = memory.data<u8>([
  5, 4, 6, 6, 11, 20, 30, 32, 34, 16, 26, 0, 0, 66, 36, 15, 12, 15, 31, 60, 4, 0, 40, 80, 100, 80,
])

@inline
export function widthOf(kind: u32): usize {
  return <usize>load<u8>(widths + <usize>kind)
}

@inline
export function textBound(kind: u32): usize {
  return <usize>load<u8>(textBounds + <usize>kind)
}

function wordsAreMinimum(p: usize, words: usize): bool {
  for (let i: usize = 0; i < words; i++) if (load<i64>(p + (i << 3)) != minimum) return false
  return true
}

function decimalIsNull(p: usize, words: usize): bool {
  if (load<i64>(p + ((words - 1) << 3)) != minimum) return false
  for (let i: usize = 0; i < words - 1; i++) if (load<i64>(p + (i << 3)) != 0) return false
  return true
}

@inline
function finite(x: f64): bool {
  return (reinterpret<u64>(x) & 0x7ff0000000000000) != 0x7ff0000000000000
}

/** Writes the value at p; returns 0 if it is NULL. Not for strings, SYMBOL, BINARY, ARRAY and CHAR. */
export function putValue(kind: u32, p: usize, parameter: u32, scratch: usize, o: usize): usize {
  switch (kind) {
    case 0:
      if (load<u8>(p)) {
        store<u32>(o, 0x65757274)
        return o + 4
      }
      store<u64>(o, 0x65736c6166)
      return o + 5
    case 1:
      return putSigned(<i64>load<i8>(p), o)
    case 2:
      return putSigned(<i64>load<i16>(p), o)
    case 4: {
      const v = load<i32>(p)
      return v == i32.MIN_VALUE ? 0 : putSigned(<i64>v, o)
    }
    case 5: {
      const v = load<i64>(p)
      return v == minimum ? 0 : putSigned(v, o)
    }
    case 6: {
      const v = load<i64>(p)
      return v == minimum ? 0 : putTime(v, 1000, 3, o)
    }
    case 7: {
      const v = load<i64>(p)
      return v == minimum ? 0 : putTime(v, 1000000, 6, o)
    }
    case 8: {
      const v = load<i64>(p)
      return v == minimum ? 0 : putTime(v, 1000000000, 9, o)
    }
    case 9: {
      const v = load<f32>(p)
      return finite(<f64>v) ? putFloat(v, o) : 0
    }
    case 10: {
      const v = load<f64>(p)
      return finite(v) ? putDouble(v, o) : 0
    }
    case 13:
      return wordsAreMinimum(p, 4) ? 0 : putLong256(p, o)
    case 14:
      return wordsAreMinimum(p, 2) ? 0 : putUuid(p, o)
    case 15: {
      const v = load<u32>(p)
      return v == 0 ? 0 : putIpv4(v, o)
    }
    case 16:
      return geohash(<i64>load<i8>(p), parameter, o)
    case 17:
      return geohash(<i64>load<i16>(p), parameter, o)
    case 18:
      return geohash(<i64>load<i32>(p), parameter, o)
    case 19:
      return geohash(load<i64>(p), parameter, o)
    case 22:
      return decimalIsNull(p, 1) ? 0 : putFixed(p, 1, <i32>parameter, scratch, o)
    case 23:
      return decimalIsNull(p, 2) ? 0 : putFixed(p, 2, <i32>parameter, scratch, o)
    case 24:
      return decimalIsNull(p, 4) ? 0 : putFixed(p, 4, <i32>parameter, scratch, o)
    case 25:
      return interval(p, o)
    default:
      return 0
  }
}

function geohash(v: i64, bits: u32, o: usize): usize {
  return v == -1 ? 0 : putGeohash(<u64>v, bits, o)
}

/** Writes `('low', 'high')` with milliseconds, or with microseconds if they are not zero; NULL if both bounds are. */
function interval(p: usize, o: usize): usize {
  if (wordsAreMinimum(p, 2)) return 0
  const low = load<i64>(p)
  const high = load<i64>(p, 8)
  const precise = low % 1000 != 0 || high % 1000 != 0
  store<u16>(o, 0x2728)
  o = precise ? putTime(low, 1000000, 6, o + 2) : putTime(low / 1000, 1000, 3, o + 2)
  store<u32>(o, 0x27202c27)
  o = precise ? putTime(high, 1000000, 6, o + 4) : putTime(high / 1000, 1000, 3, o + 4)
  store<u16>(o, 0x2927)
  return o + 2
}

/** Upper bound of an array's text. */
export function arrayBound(p: usize): u64 {
  const dimensions = <usize>load<u32>(p)
  let cells: u64 = 1
  let bytes: u64 = 64
  for (let i: usize = 0; i < dimensions; i++) {
    bytes += cells * 3
    cells *= <u64>load<u32>(p + 4 + (i << 2))
  }
  return bytes + cells * 27
}

let arrayValues: usize = 0

/** Writes nested brackets with doubles; NaN is `null`. */
export function putArray(p: usize, o: usize): usize {
  const dimensions = load<u32>(p)
  arrayValues = p + ((4 + (<usize>dimensions << 2) + 7) & ~7)
  return putLevel(p + 4, dimensions, o)
}

function putLevel(lengths: usize, levels: u32, o: usize): usize {
  const n = load<u32>(lengths)
  store<u8>(o++, 91)
  for (let i: u32 = 0; i < n; i++) {
    if (i > 0) store<u8>(o++, 44)
    if (levels > 1) {
      o = putLevel(lengths + 4, levels - 1, o)
      continue
    }
    const v = load<f64>(arrayValues)
    arrayValues += 8
    if (finite(v)) o = putDouble(v, o)
    else {
      store<u32>(o, 0x6c6c756e)
      o += 4
    }
  }
  store<u8>(o, 93)
  return o + 1
}

/** Writes a UTF-16 code unit as UTF-8; half a surrogate pair becomes `?`. */
export function putChar(c: u32, o: usize): usize {
  if (c < 0x80) {
    store<u8>(o, <u8>c)
    return o + 1
  }
  if (c < 0x800) {
    store<u8>(o, <u8>(0xc0 | (c >> 6)))
    store<u8>(o, <u8>(0x80 | (c & 63)), 1)
    return o + 2
  }
  if (c >= 0xd800 && c < 0xe000) {
    store<u8>(o, 63)
    return o + 1
  }
  store<u8>(o, <u8>(0xe0 | (c >> 12)))
  store<u8>(o, <u8>(0x80 | ((c >> 6) & 63)), 1)
  store<u8>(o, <u8>(0x80 | (c & 63)), 2)
  return o + 3
}
