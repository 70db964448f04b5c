// Formats numbers, timestamps and fixed-width values as text. Every function writes at the address `o` and returns the
// address after the text; up to 16 bytes after it may be overwritten. The formats are those of engine/types/number.ts,
// timestamp.ts and text.ts.

import { mulHigh } from './wide'

/** Address of a constant table, which engine/kernels/constants.ts builds. */
const powersOfTen: usize = 2097152 + 16384
const minimum: i64 = i64.MIN_VALUE

@inline
function digitCount(v: u64): i32 {
  if (v < 10000) return v < 100 ? (v < 10 ? 1 : 2) : v < 1000 ? 3 : 4
  if (v < 100000000) return v < 1000000 ? (v < 100000 ? 5 : 6) : v < 10000000 ? 7 : 8
  if (v < 1000000000000) return v < 10000000000 ? (v < 1000000000 ? 9 : 10) : v < 100000000000 ? 11 : 12
  if (v < 10000000000000000) return v < 100000000000000 ? (v < 10000000000000 ? 13 : 14) : v < 1000000000000000 ? 15 : 16
  return v < 1000000000000000000 ? (v < 100000000000000000 ? 17 : 18) : v < 10000000000000000000 ? 19 : 20
}

/** Eight ASCII digits of v < 10^8, the first one in the lowest byte. */
@inline
function eightDigits(v: u32): u64 {
  const high = v / 10000
  let x = <u64>high | (<u64>(v - high * 10000) << 32)
  const hundreds = ((x * 10486) >> 20) & 0x0000007f0000007f
  x = hundreds | ((x - hundreds * 100) << 16)
  const tens = ((x * 103) >> 10) & 0x000f000f000f000f
  return tens | ((x - tens * 10) << 8) | 0x3030303030303030
}

@inline
export function putUnsigned(v: u64, o: usize): usize {
  if (v < 100000000) {
    const n = digitCount(v)
    store<u64>(o, eightDigits(<u32>v) >> (<u64>(8 - n) << 3))
    return o + <usize>n
  }
  return putLarge(v, o)
}

function putLarge(v: u64, o: usize): usize {
  const high = v / 100000000
  const low = <u32>(v - high * 100000000)
  if (high < 100000000) {
    const n = digitCount(high)
    store<u64>(o, eightDigits(<u32>high) >> (<u64>(8 - n) << 3))
    store<u64>(o + <usize>n, eightDigits(low))
    return o + <usize>n + 8
  }
  const top = high / 100000000
  const n = <usize>digitCount(top)
  store<u64>(o, eightDigits(<u32>top) >> (<u64>(8 - n) << 3))
  store<u64>(o + n, eightDigits(<u32>(high - top * 100000000)))
  store<u64>(o + n, eightDigits(low), 8)
  return o + n + 16
}

@inline
export function putSigned(v: i64, o: usize): usize {
  if (v < 0) {
    store<u8>(o++, 45)
    v = -v
  }
  return putUnsigned(<u64>v, o)
}

const tens = memory.data<u64>([
  1, 10, 100, 1000, 10000, 100000, 1000000, 10000000, 100000000, 1000000000, 10000000000, 100000000000, 1000000000000,
  10000000000000, 100000000000000, 1000000000000000, 10000000000000000, 100000000000000000, 1000000000000000000,
  10000000000000000000,
])

/** The same without branches: doubles have 15, 16 or 17 digits, which branch prediction cannot guess. */
@inline
function digitCountEven(v: u64): i32 {
  const n = ((64 - <i32>clz<u64>(v)) * 1233) >> 12
  return n + i32(v >= load<u64>(tens + (<usize>n << 3)))
}

/** The last `width` digits of v, zero padded, width <= 8. */
@inline
function putPadded(v: u32, width: usize, o: usize): usize {
  store<u64>(o, eightDigits(v) >> (<u64>(8 - width) << 3))
  return o + width
}

/** Writes d * 10^e, 0 < d < 10^17 without trailing zeros: plain from 0.001 up to 10^7, else with an exponent. */
function putDecimal(d: u64, e: i32, o: usize): usize {
  const n = digitCountEven(d)
  const exponent = n + e - 1
  if (exponent >= 7 || exponent < -3) {
    // The digits are written one byte to the right; then the first one is moved before the point.
    putUnsigned(d, o + 1)
    store<u8>(o, load<u8>(o + 1))
    store<u8>(o, 46, 1)
    o += <usize>n + 1
    if (n == 1) store<u8>(o++, 48)
    store<u8>(o++, 69)
    return putSigned(exponent, o)
  }
  if (e >= 0) {
    o = putUnsigned(d, o)
    store<u64>(o, 0x3030303030303030)
    o += <usize>e
    store<u16>(o, 0x302e)
    return o + 2
  }
  // Seventeen digits from the first one on; those after the last significant one are not used.
  const all = d * load<u64>(tens + (<usize>(17 - n) << 3))
  const leading = <u32>(all / 1000000000)
  const rest = <u32>(all - <u64>leading * 1000000000)
  const digits = eightDigits(leading)
  if (exponent < 0) {
    store<u64>(o, 0x303030302e30)
    o -= <usize>exponent
    putAfter(digits, rest, o)
    return o + <usize>n + 1
  }
  putAfter(digits, rest, o)
  // At most seven digits and the point precede them.
  const whole = <u64>(exponent + 1) << 3
  const mask = (<u64>1 << whole) - 1
  store<u64>(o, (digits & mask) | (<u64>46 << whole) | ((digits & ~mask) << 8))
  return o + <usize>n + 1
}

/** Writes eight digits and nine more, from o + 1 on. */
@inline
function putAfter(digits: u64, rest: u32, o: usize): void {
  const tenth = rest / 10
  store<u64>(o, digits, 1)
  store<u64>(o, eightDigits(tenth), 9)
  store<u8>(o, 48 + <u8>(rest - tenth * 10), 17)
}

/** d / 10 if 10 divides d, else a value larger than any such quotient. */
@inline
function exactTenth(d: u64): u64 {
  return rotr<u64>(d * 0xcccccccccccccccd, 1)
}

/** Writes d * 10^e without trailing zeros; d > 0. */
function putTrimmed(d: u64, e: i32, o: usize): usize {
  for (let tenth = exactTenth(d); tenth <= 0x1999999999999999; tenth = exactTenth(d)) {
    d = tenth
    e++
  }
  return putDecimal(d, e, o)
}

/** Writes a finite double with its shortest digits (Giulietti, "The Schubfach way to render doubles"). */
export function putDouble(x: f64, o: usize): usize {
  const bits = reinterpret<u64>(x)
  const a = abs(x)
  if (bits >> 63) store<u8>(o++, 45)
  if (a < 1e7 && (a >= 0.001 || a == 0)) {
    // With at most four decimals, fifteen digits identify the double, so these are the shortest ones.
    const scaled = nearest(a * 10000.0)
    if (scaled / 10000.0 == a) {
      const u = <u32>(<u64>scaled / 10000)
      const fraction = <u32>(<u64>scaled - <u64>u * 10000)
      o = putUnsigned(u, o)
      store<u8>(o, 46)
      putPadded(fraction, 4, o + 1)
      o += 5
      if (load<u16>(o - 2) == 0x3030) o -= 2
      if (load<u8>(o - 1) == 48 && load<u8>(o - 2) != 46) o--
      return o
    }
  }
  const biased = <i32>((bits >> 52) & 2047)
  const mantissa = bits & 0xfffffffffffff
  const c = biased ? mantissa | 0x10000000000000 : mantissa
  const q = biased ? biased - 1075 : -1074
  if (q <= 0 && -q < 53 && (c & ((<u64>1 << <u64>-q) - 1)) == 0) return putTrimmed(c >> <u64>-q, 0, o)
  const odd = c & 1
  const narrow = mantissa == 0 && biased > 1
  let k = (q * 1262611 - (narrow ? 524031 : 0)) >> 22
  const h = <u64>(q + ((-k * 1741647) >> 19) + 1)
  const power = powersOfTen + (<usize>(292 - k) << 4)
  const high = load<u64>(power)
  const low = load<u64>(power, 8)
  // The product for the middle has 192 bits; the bounds differ from it by the power of ten times a power of two. All
  // are rounded to odd.
  const middle = (4 * c) << h
  const m0 = low * middle
  const m1 = high * middle + mulHigh(low, middle)
  const m2 = mulHigh(high, middle) + u64(m1 < high * middle)
  const up = h + 1
  const u0 = low << up
  const u1 = (high << up) | (low >> (64 - up))
  const p1 = m1 + u1
  const upper1 = p1 + u64(m0 + u0 < u0)
  const upper = m2 + (high >> (64 - up)) + u64(p1 < u1) + u64(upper1 < p1)
  const down = up - u64(narrow)
  const l1 = (high << down) | (low >> (64 - down))
  const q1 = m1 - l1
  const borrow = u64(m0 < low << down)
  const lower = m2 - (high >> (64 - down)) - u64(m1 < l1) - u64(q1 < borrow)
  return putShortest((lower | u64(q1 - borrow > 1)) + odd, m2 | u64(m1 > 1), (upper | u64(upper1 > 1)) - odd, k, o)
}

/**
 * The shortest decimal between the bounds (in quarters) that is nearest to the middle. Branchless, because it is
 * unpredictable whether one digit less suffices.
 */
@inline
function putShortest(lower: u64, middle: u64, upper: u64, k: i32, o: usize): usize {
  const s = middle >> 2
  const tenth = s / 10
  const overTenth = 40 * tenth + 40 <= upper
  const shorter = s >= 10 && (lower <= 40 * tenth) != overTenth
  const over = 4 * s + 4 <= upper
  const half = 4 * s + 2
  const nearer = u64(middle > half) | (u64(middle == half) & s)
  const step = select<u64>(u64(over), nearer & 1, (lower <= 4 * s) != over)
  return putTrimmed(select<u64>(tenth + u64(overTenth), s + step, shorter), k + i32(shorter), o)
}

@inline
function roundToOdd32(g: u64, cp: u64): u64 {
  const p = mulHigh(g, cp << 32)
  return (p >> 32) | u64((p & 0xffffffff) > 1)
}

/** Writes a finite float with its shortest digits. */
export function putFloat(x: f32, o: usize): usize {
  const bits = reinterpret<u32>(x)
  if (bits >> 31) store<u8>(o++, 45)
  const biased = <i32>((bits >> 23) & 255)
  const mantissa = <u64>(bits & 0x7fffff)
  const c = biased ? mantissa | 0x800000 : mantissa
  const q = biased ? biased - 150 : -149
  if (c == 0) {
    store<u32>(o, 0x302e30)
    return o + 3
  }
  if (q <= 0 && -q < 24 && (c & ((<u64>1 << <u64>-q) - 1)) == 0) return putTrimmed(c >> <u64>-q, 0, o)
  const odd = c & 1
  const narrow = mantissa == 0 && biased > 1
  const k = (q * 1262611 - (narrow ? 524031 : 0)) >> 22
  const h = <u64>(q + ((-k * 1741647) >> 19) + 1)
  const power = powersOfTen + (<usize>(292 - k) << 4)
  const g = load<u64>(power) + u64(load<u64>(power, 8) != 0)
  const lower = roundToOdd32(g, (4 * c - 2 + u64(narrow)) << h) + odd
  const middle = roundToOdd32(g, (4 * c) << h)
  const upper = roundToOdd32(g, (4 * c + 2) << h) - odd
  return putShortest(lower, middle, upper, k, o)
}

@inline
function floorDivide(v: i64, by: i64): i64 {
  const q = v / by
  return q - i64(q * by > v)
}

// Cache: the date of the last timestamp, `yyyy-mm-ddT`, because adjacent timestamps mostly share it.
let dayCached: i64 = minimum
let dayLow: u64 = 0
let dayHigh: u32 = 0

function putDay(day: i64, o: usize): usize {
  const shifted = day + 719468
  const era = floorDivide(shifted, 146097)
  const dayOfEra = <i32>(shifted - era * 146097)
  const yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36524 - dayOfEra / 146096) / 365
  const dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
  const monthIndex = (5 * dayOfYear + 2) / 153
  const month = monthIndex < 10 ? monthIndex + 3 : monthIndex - 9
  let year = <i64>yearOfEra + era * 400 + i64(month <= 2)
  const start = o
  if (year < 0) {
    store<u8>(o++, 45)
    year = -year
  }
  o = year < 10000 ? putPadded(<u32>year, 4, o) : putUnsigned(<u64>year, o)
  store<u8>(o++, 45)
  o = putPadded(<u32>month, 2, o)
  store<u8>(o++, 45)
  o = putPadded(<u32>(dayOfYear - (153 * monthIndex + 2) / 5 + 1), 2, o)
  store<u8>(o++, 84)
  if (o - start == 11) {
    dayCached = day
    dayLow = load<u64>(start)
    dayHigh = load<u32>(start, 8)
  }
  return o
}

// Start of the last timestamp's day and its length, in ticks.
let dayFrom: i64 = 0
let dayTicks: i64 = 0

// Second of the day of the last timestamp, and its text `hh:mm:ss`.
let secondCached: u32 = 0xffffffff
let clockCached: u64 = 0

/** `2024-01-02T03:04:05.678901Z`; digits is 3, 6 or 9 and ticksPerSecond the power of ten of it. */
@inline
export function putTime(ticks: i64, ticksPerSecond: i64, digits: usize, o: usize): usize {
  const ticksPerDay = ticksPerSecond * 86400
  let rest = ticks - dayFrom
  if (ticks >= dayFrom && ticksPerDay == dayTicks && <u64>rest < <u64>ticksPerDay) {
    store<u64>(o, dayLow)
    store<u32>(o, dayHigh, 8)
    o += 11
  } else {
    const day = floorDivide(ticks, ticksPerDay)
    rest = ticks - day * ticksPerDay
    o = putDay(day, o)
    dayFrom = ticks - rest
    // The first day begins before the first timestamp.
    dayTicks = day == dayCached && dayFrom <= ticks ? ticksPerDay : 0
  }
  const second = digits == 6 ? (<u32>(rest >> 6)) / 15625 : <u32>(rest / ticksPerSecond)
  const fraction = <u32>(rest - <i64>second * ticksPerSecond)
  if (second != secondCached) {
    const minute = second / 60
    const hour = minute / 60
    // Spreads eight digits to hh:mm:ss within one word.
    store<u64>(o, eightDigits(hour * 1000000 + (minute - hour * 60) * 1000 + (second - minute * 60)))
    store<u8>(o, 58, 2)
    store<u8>(o, 58, 5)
    secondCached = second
    clockCached = load<u64>(o)
  } else store<u64>(o, clockCached)
  store<u8>(o, 46, 8)
  o += 9
  if (digits == 9) {
    const high = fraction / 100
    store<u64>(o, eightDigits(high) >> 8)
    o = putPadded(fraction - high * 100, 2, o + 7)
  } else o = putPadded(fraction, digits, o)
  store<u8>(o, 90)
  return o + 1
}

const hexDigits = memory.data<u8>([48, 49, 50, 51, 52, 53, 54, 55, 56, 57, 97, 98, 99, 100, 101, 102])

/** The two hexadecimal digits of the byte at p, the high one first. */
@inline
function putHexByte(p: usize, o: usize): usize {
  const b = <usize>load<u8>(p)
  store<u8>(o, load<u8>(hexDigits + (b >> 4)))
  store<u8>(o, load<u8>(hexDigits + (b & 15)), 1)
  return o + 2
}

/** A 128-bit little-endian number as UUID text. */
export function putUuid(p: usize, o: usize): usize {
  for (let i = 15; i >= 0; i--) {
    o = putHexByte(p + <usize>i, o)
    if (i == 12 || i == 10 || i == 8 || i == 6) store<u8>(o++, 45)
  }
  return o
}

/** A 256-bit little-endian number as `0x`, whole bytes, no leading zero bytes. */
export function putLong256(p: usize, o: usize): usize {
  store<u16>(o, 0x7830)
  o += 2
  let i = 31
  while (i > 0 && load<u8>(p + <usize>i) == 0) i--
  for (; i >= 0; i--) o = putHexByte(p + <usize>i, o)
  return o
}

export function putIpv4(v: u32, o: usize): usize {
  for (let shift: u32 = 24; ; shift -= 8) {
    o = putUnsigned(<u64>((v >> shift) & 255), o)
    if (shift == 0) return o
    store<u8>(o++, 46)
  }
  return o
}

// 0123456789bcdefghjkmnpqrstuvwxyz
const geohashLetters = memory.data<u8>([
  48, 49, 50, 51, 52, 53, 54, 55, 56, 57, 98, 99, 100, 101, 102, 103, 104, 106, 107, 109, 110, 112, 113, 114, 115, 116,
  117, 118, 119, 120, 121, 122,
])

/** Characters if the bits fill whole characters, else binary digits. */
export function putGeohash(v: u64, bits: u32, o: usize): usize {
  const step: u32 = bits % 5 == 0 ? 5 : 1
  for (let shift = <i32>(bits - step); shift >= 0; shift -= <i32>step) {
    const c = <usize>(v >> <u64>shift) & (step == 5 ? 31 : 1)
    store<u8>(o++, step == 5 ? load<u8>(geohashLetters + c) : <u8>(48 + c))
  }
  return o
}

/** Writes a two's complement integer of 1 to 4 words divided by 10^scale. `scratch`: 128 bytes separate from o. */
export function putFixed(p: usize, words: usize, scale: i32, scratch: usize, o: usize): usize {
  const negative = load<i64>(p + ((words - 1) << 3)) < 0
  let carry: u64 = 1
  for (let i: usize = 0; i < words; i++) {
    let w = load<u64>(p + (i << 3))
    if (negative) {
      w = ~w + carry
      carry = u64(carry == 1 && w == 0)
    }
    store<u64>(scratch + (i << 3), w)
  }
  if (negative) store<u8>(o++, 45)
  // The digits, at most 77, are generated backwards in scratch.
  let limbs = <i32>words * 2
  const end = scratch + 128
  let s = end
  let n = 0
  while (limbs > 0) {
    while (limbs > 0 && load<u32>(scratch + (<usize>(limbs - 1) << 2)) == 0) limbs--
    if (limbs == 0) break
    let rest: u64 = 0
    for (let i = limbs - 1; i >= 0; i--) {
      const at = scratch + (<usize>i << 2)
      const v = (rest << 32) | <u64>load<u32>(at)
      store<u32>(at, <u32>(v / 1000000000))
      rest = v % 1000000000
    }
    for (let i = 0; i < 9; i++) {
      store<u8>(--s, <u8>(48 + rest % 10))
      rest /= 10
      n++
    }
  }
  while (n > 0 && load<u8>(s) == 48) {
    s++
    n--
  }
  while (n <= scale) {
    store<u8>(--s, 48)
    n++
  }
  const whole = <usize>(n - scale)
  memory.copy(o, s, whole)
  o += whole
  if (scale == 0) return o
  store<u8>(o++, 46)
  memory.copy(o, s + whole, <usize>scale)
  return o + <usize>scale
}
