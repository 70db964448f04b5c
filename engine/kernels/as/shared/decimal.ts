// Parses decimal text to numbers: eight digits at a time within a 64-bit word, and doubles exactly by Clinger's fast
// path and the algorithm of Eisel and Lemire (Lemire, "Number parsing at a gigabyte per second", 2021). May read 16
// bytes beyond the text.

import { mulHigh } from './wide'

/** Address of a constant table, which engine/kernels/constants.ts builds. */
export const powersOfFive: usize = 2097152
const powerMin: i32 = -342
const powerMax: i32 = 308

const powersOfTenF64 = memory.data<f64>([
  1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20,
  1e21, 1e22,
])
export const powersOfTenU64 = memory.data<u64>([1, 10, 100, 1000, 10000, 100000, 1000000, 10000000, 100000000])

/** Value of 8 ASCII digits, the first one in the lowest byte. */
@inline
export function digits8(x: u64): u64 {
  x = ((x & 0x0f0f0f0f0f0f0f0f) * 2561) >> 8
  x = ((x & 0x00ff00ff00ff00ff) * 6553601) >> 16
  return ((x & 0x0000ffff0000ffff) * 42949672960001) >> 32
}

/** How many of the 8 bytes, from the lowest, are digits. Carries only reach bytes after the first non-digit. */
@inline
export function leadingDigits(x: u64): u64 {
  const t = ((x + 0x4646464646464646) | (x - 0x3030303030303030)) & 0x8080808080808080
  return ctz(t) >> 3
}

/** Value of the first n (1 to 7) digits. */
@inline
export function digitsFew(x: u64, n: u64): u64 {
  return digits8(x << (64 - (n << 3)))
}

@inline
export function isDigit(c: u8): bool {
  return <u32>(c - 48) <= 9
}

/** End of the last parsed number; undefined if parsing failed. */
export let parseEnd: usize = 0
/** False if the last parse found no number, more than 19 digits, overflow, or a value that it cannot decide exactly. */
export let parseOk: bool = false

/** Parses an unsigned integer of 1 to 19 digits at p that fits i64. */
@inline
export function parseDigits(p: usize): u64 {
  parseOk = true
  const x = load<u64>(p)
  const n = leadingDigits(x)
  if (n < 8) {
    parseOk = n != 0
    parseEnd = p + <usize>n
    return n == 0 ? 0 : digitsFew(x, n)
  }
  return parseManyDigits(p, x)
}

function parseManyDigits(p: usize, first: u64): u64 {
  let v = digits8(first)
  const x = load<u64>(p, 8)
  const n = leadingDigits(x)
  p += 8 + <usize>n
  if (n < 8) {
    parseEnd = p
    return n == 0 ? v : v * load<u64>(powersOfTenU64 + (<usize>n << 3)) + digitsFew(x, n)
  }
  v = v * 100000000 + digits8(x)
  let more = 0
  while (more < 4 && isDigit(load<u8>(p))) {
    v = v * 10 + (load<u8>(p) - 48)
    p++
    more++
  }
  parseEnd = p
  if (more > 3 || v > <u64>i64.MAX_VALUE) parseOk = false
  return v
}

/** Parses a double with an optional minus sign, fraction and exponent. Sets parseOk and parseEnd. */
@inline
export function parseDouble(p: usize): f64 {
  let negative = false
  if (load<u8>(p) == 45) {
    negative = true
    p++
  }
  parseOk = true
  const start = p
  let x = load<u64>(p)
  let n = leadingDigits(x)
  let w: u64 = 0
  let digits = n
  if (n < 8) {
    w = n ? digitsFew(x, n) : 0
    p += <usize>n
  } else {
    for (;;) {
      if (n == 8) {
        w = w * 100000000 + digits8(x)
        p += 8
      } else {
        if (n) w = w * load<u64>(powersOfTenU64 + (<usize>n << 3)) + digitsFew(x, n)
        p += <usize>n
        break
      }
      x = load<u64>(p)
      n = leadingDigits(x)
      digits += n
    }
  }
  let exponent = 0
  if (load<u8>(p) == 46) {
    p++
    x = load<u64>(p)
    n = leadingDigits(x)
    let fraction: u64 = n
    for (;;) {
      if (n == 8) {
        w = w * 100000000 + digits8(x)
        p += 8
      } else {
        if (n) w = w * load<u64>(powersOfTenU64 + (<usize>n << 3)) + digitsFew(x, n)
        p += <usize>n
        break
      }
      x = load<u64>(p)
      n = leadingDigits(x)
      fraction += n
    }
    exponent = -<i32>fraction
    digits += fraction
  }
  if ((load<u8>(p) | 32) == 101) {
    exponent += parseExponent(p)
    p = parseEnd
  }
  parseEnd = p
  if (digits == 0) {
    parseOk = false
    return 0
  }
  if (digits > 19 && significant(start, digits) > 19) {
    parseOk = false
    return 0
  }
  if (w <= 9007199254740992 && exponent >= -22 && exponent <= 22) {
    let d = <f64>w
    if (exponent < 0) d /= load<f64>(powersOfTenF64 + (<usize>-exponent << 3))
    else d *= load<f64>(powersOfTenF64 + (<usize>exponent << 3))
    return negative ? -d : d
  }
  return eiselLemire(w, exponent, negative)
}

function parseExponent(p: usize): i32 {
  p++
  let negative = false
  const sign = load<u8>(p)
  if (sign == 45 || sign == 43) {
    negative = sign == 45
    p++
  }
  if (!isDigit(load<u8>(p))) parseOk = false
  let value = 0
  while (isDigit(load<u8>(p))) {
    if (value < 100000) value = value * 10 + (load<u8>(p) - 48)
    p++
  }
  parseEnd = p
  return negative ? -value : value
}

/** Number of digits without leading zeros. */
function significant(p: usize, digits: u64): u64 {
  for (;;) {
    const c = load<u8>(p++)
    if (c == 48) digits--
    else if (c != 46) break
  }
  return digits
}

/** w * 10^q, correctly rounded; sets parseOk to false on overflow, and in the rare case that 128 bits do not suffice. */
export function eiselLemire(w: u64, q: i32, negative: bool): f64 {
  if (w == 0 || q < powerMin) return negative ? -0.0 : 0.0
  if (q > powerMax) {
    parseOk = false
    return 0
  }
  const zeros = <i32>clz(w)
  w <<= <u64>zeros
  const power = powersOfFive + (<usize>(q - powerMin) << 4)
  const powerHigh = load<u64>(power)
  let low = w * powerHigh
  let high = mulHigh(w, powerHigh)
  if ((high & 0x1ff) == 0x1ff) {
    const more = low + mulHigh(w, load<u64>(power, 8))
    if (more < low) high++
    low = more
  }
  if (low == 0xffffffffffffffff && (q < -27 || q > 55)) {
    parseOk = false
    return 0
  }
  const upper = <i32>(high >> 63)
  let mantissa = high >> <u64>(upper + 9)
  let power2 = ((217706 * q) >> 16) + 63 + upper - zeros + 1023
  if (power2 <= 0) return subnormal(mantissa, power2, negative)
  if (low <= 1 && q >= -4 && q <= 23 && (mantissa & 3) == 1 && mantissa << <u64>(upper + 9) == high) mantissa &= ~(<u64>1)
  mantissa += mantissa & 1
  mantissa >>= 1
  if (mantissa >= <u64>2 << 52) {
    mantissa = <u64>1 << 52
    power2++
  }
  mantissa &= ~(<u64>1 << 52)
  if (power2 >= 2047) {
    parseOk = false
    return 0
  }
  return reinterpret<f64>(mantissa | (<u64>power2 << 52) | (<u64>negative << 63))
}

function subnormal(mantissa: u64, power2: i32, negative: bool): f64 {
  if (-power2 + 1 >= 64) return negative ? -0.0 : 0.0
  mantissa >>= <u64>(-power2 + 1)
  mantissa += mantissa & 1
  mantissa >>= 1
  const exponent: u64 = mantissa < <u64>1 << 52 ? 0 : 1
  return reinterpret<f64>((mantissa & 0xfffffffffffff) | (exponent << 52) | (<u64>negative << 63))
}
