// WebAssembly kernel that formats columns of values as text and parses them. engine/kernels/number.ts defines the
// interface.

import { digitsFew, isDigit, leadingDigits, parseDigits, parseDouble, parseEnd, parseOk } from './shared/decimal'
import { putValue, textBound, widthOf } from './shared/values'

const longestText: i32 = 48

export function formatColumn(kind: u32, values: usize, parameter: u32, rows: u32, entries: usize, out: usize, outEnd: usize, scratch: usize): u32 {
  const width = widthOf(kind)
  // Printing may write up to 16 bytes after the text.
  const bound = <u64>textBound(kind) + 16
  for (let r: u32 = 0; r < rows; r++) {
    if (<u64>out + bound > <u64>outEnd) return r
    const entry = entries + (<usize>r << 3)
    const end = putValue(kind, values + <usize>r * width, parameter, scratch, out)
    if (end == 0) {
      store<u32>(entry, 0)
      store<i32>(entry, -1, 4)
      continue
    }
    store<u32>(entry, <u32>out)
    store<u32>(entry, <u32>(end - out), 4)
    out = end
  }
  return rows
}

function putNull(kind: u32, at: usize): void {
  switch (kind) {
    case 0:
    case 1:
      store<u8>(at, 0)
      return
    case 2:
      store<u16>(at, 0)
      return
    case 4:
      store<i32>(at, i32.MIN_VALUE)
      return
    case 9:
      store<f32>(at, f32.NaN)
      return
    case 10:
      store<f64>(at, f64.NaN)
      return
    case 14:
      store<i64>(at, i64.MIN_VALUE)
      store<i64>(at, i64.MIN_VALUE, 8)
      return
    case 15:
      store<u32>(at, 0)
      return
    default:
      store<i64>(at, i64.MIN_VALUE)
  }
}

/** Copies the text to scratch, followed by zeros, so that no parser reads beyond it. */
@inline
function isolate(p: usize, bytes: usize, scratch: usize): void {
  v128.store(scratch, v128.load(p))
  v128.store(scratch, v128.load(p, 16), 16)
  v128.store(scratch, v128.load(p, 32), 32)
  v128.store(scratch + bytes, i8x16.splat(0))
  v128.store(scratch + bytes, i8x16.splat(0), 16)
}

/** Whether the byte ends every number and timestamp, so that text before it can be parsed in place. */
@inline
function endsText(byte: u8): bool {
  return byte == 44 || byte == 34 || byte == 10 || byte == 13 || byte == 59 || byte == 9 || byte == 124
}

/** Whether there are only zeros before an exponent. */
function isZero(p: usize, end: usize): bool {
  for (; p < end; p++) {
    const byte = load<u8>(p)
    if ((byte | 32) == 101) return true
    if (byte > 48 && byte < 58) return false
  }
  return true
}

/** Numbers that are too large for the type or too close to zero are not decided. */
function parseFloating(kind: u32, p: usize, end: usize, at: usize): bool {
  const value = parseDouble(p)
  if (!parseOk || parseEnd != end) return false
  const held = kind == 9 ? <f64>(<f32>value) : value
  if (Math.abs(held) == Infinity || (held == 0 && !isZero(p, end))) return false
  if (kind == 9) store<f32>(at, <f32>value)
  else store<f64>(at, value)
  return true
}

function parseInteger(kind: u32, p: usize, end: usize, at: usize): bool {
  const negative = load<u8>(p) == 45
  if (negative) p++
  const digits = <i64>parseDigits(p)
  if (!parseOk || parseEnd != end) return false
  const value = negative ? -digits : digits
  switch (kind) {
    case 1:
      if (value < -128 || value > 127) return false
      store<i8>(at, <i8>value)
      return true
    case 2:
      if (value < -32768 || value > 32767) return false
      store<i16>(at, <i16>value)
      return true
    case 4:
      if (value < -2147483647 || value > 2147483647) return false
      store<i32>(at, <i32>value)
      return true
    default:
      store<i64>(at, value)
      return true
  }
}

/** Value of two digits, or 1000 if they are none. */
@inline
function two(p: usize): i32 {
  const a = load<u8>(p)
  const b = load<u8>(p, 1)
  return isDigit(a) && isDigit(b) ? <i32>(a - 48) * 10 + <i32>(b - 48) : 1000
}

@inline
function daysInMonth(year: i32, month: i32): i32 {
  if (month == 2) return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) ? 29 : 28
  return month == 4 || month == 6 || month == 9 || month == 11 ? 30 : 31
}

/** Number of the day since 1970-01-01. */
function daysFromCivil(year: i32, month: i32, day: i32): i32 {
  const y = month <= 2 ? year - 1 : year
  const era = y / 400
  const yearOfEra = y - era * 400
  const dayOfYear = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1
  return era * 146097 + yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear - 719468
}

// Cache: the ten bytes of the last date and its day, because most dates of a column repeat.
let dateHead: u64 = 0
let dateTail: u16 = 0
let dateDays: i32 = 0

function parseDate(p: usize): bool {
  const year = two(p) * 100 + two(p + 2)
  const month = two(p + 5)
  const day = two(p + 8)
  if (year < 1970 || year > 2261 || load<u8>(p, 4) != 45 || load<u8>(p, 7) != 45) return false
  if (month < 1 || month > 12 || day < 1 || day > 31 || day > daysInMonth(year, month)) return false
  dateHead = load<u64>(p)
  dateTail = load<u16>(p, 8)
  dateDays = daysFromCivil(year, month, day)
  return true
}

/** 0: by magnitude; 1 to 4: seconds, milliseconds, microseconds, nanoseconds. */
let epochScale: u32 = 0

/** Parses an integer since 1970; converts it to another precision only if no digit is lost. */
function parseEpoch(kind: u32, p: usize, end: usize, at: usize): bool {
  const value = <i64>parseDigits(p)
  if (!parseOk || parseEnd != end) return false
  let scale = epochScale
  if (scale == 0) {
    if (value < 100000000) return false
    // Eight digits may be a date.
    if (end - p == 8) return false
    scale = value < 100000000000 ? 1 : value < 100000000000000 ? 2 : value < 100000000000000000 ? 3 : 4
  }
  const wanted = kind == 6 ? 2 : kind == 7 ? 3 : 4
  let ticks = value
  for (; scale < <u32>wanted; scale++) {
    if (ticks > i64.MAX_VALUE / 1000) return false
    ticks *= 1000
  }
  for (; scale > <u32>wanted; scale--) {
    if (ticks % 1000 != 0) return false
    ticks /= 1000
  }
  store<i64>(at, ticks)
  return true
}

/** Seconds of an offset `+02:00`, `-0330`, `+01` at the end of the text; i32.MIN_VALUE if it is invalid. */
function offsetSeconds(p: usize, end: usize): i32 {
  const sign = load<u8>(p)
  const hours = two(p + 1)
  const bytes = end - p
  if ((sign != 43 && sign != 45) || hours > 23) return i32.MIN_VALUE
  let minutes = 0
  if (bytes == 6 && load<u8>(p, 3) == 58) minutes = two(p + 4)
  else if (bytes == 5) minutes = two(p + 3)
  else if (bytes != 3) return i32.MIN_VALUE
  if (minutes > 59) return i32.MIN_VALUE
  const seconds = hours * 3600 + minutes * 60
  return sign == 45 ? -seconds : seconds
}

function parseTime(kind: u32, p: usize, end: usize, at: usize): bool {
  if (end - p < 10 || load<u8>(p, 4) != 45) return parseEpoch(kind, p, end, at)
  if ((load<u64>(p) != dateHead || load<u16>(p, 8) != dateTail) && !parseDate(p)) return false
  let seconds = <i64>dateDays * 86400
  let fraction: i64 = 0
  const digitsMax = kind == 6 ? 3 : kind == 7 ? 6 : 9
  p += 10
  if (p < end) {
    const hour = two(p + 1)
    const minute = two(p + 4)
    const second = two(p + 7)
    const separator = load<u8>(p)
    if ((separator != 84 && separator != 32) || load<u8>(p, 3) != 58 || load<u8>(p, 6) != 58) return false
    if (hour > 23 || minute > 59 || second > 59) return false
    seconds += <i64>(hour * 3600 + minute * 60 + second)
    p += 9
    let digits = 0
    if (load<u8>(p) == 46) {
      const few = leadingDigits(load<u64>(p, 1))
      if (few > 0 && few < 8) {
        fraction = <i64>digitsFew(load<u64>(p, 1), few)
        digits = <i32>few
      }
      p += 1 + <usize>digits
      while (isDigit(load<u8>(p))) {
        if (digits == digitsMax) return false
        fraction = fraction * 10 + <i64>(load<u8>(p) - 48)
        digits++
        p++
      }
      if (digits == 0 || digits > digitsMax) return false
    }
    for (; digits < digitsMax; digits++) fraction *= 10
    if (load<u8>(p) == 90) p++
    else if (p < end) {
      const offset = offsetSeconds(p, end)
      if (offset == i32.MIN_VALUE) return false
      seconds -= <i64>offset
      p = end
    }
  }
  if (p != end) return false
  const perSecond: i64 = kind == 6 ? 1000 : kind == 7 ? 1000000 : 1000000000
  store<i64>(at, seconds * perSecond + fraction)
  return true
}

/** Value of a hexadecimal digit, or 255 if it is none. */
@inline
function hex(c: u8): u8 {
  if (isDigit(c)) return c - 48
  const letter = c | 32
  return letter >= 97 && letter <= 102 ? letter - 87 : 255
}

function parseUuid(p: usize, end: usize, at: usize): bool {
  if (end - p != 36) return false
  for (let i = 15; i >= 0; i--) {
    const high = hex(load<u8>(p))
    const low = hex(load<u8>(p, 1))
    if (high > 15 || low > 15) return false
    store<u8>(at + <usize>i, (high << 4) | low)
    p += 2
    if ((i == 12 || i == 10 || i == 8 || i == 6) && load<u8>(p++) != 45) return false
  }
  // If both words are the minimum, the value would be NULL.
  return load<i64>(at) != i64.MIN_VALUE || load<i64>(at, 8) != i64.MIN_VALUE
}

function parseIpv4(p: usize, end: usize, at: usize): bool {
  let value: u32 = 0
  for (let part = 0; part < 4; part++) {
    let n: u32 = 0
    let digits = 0
    while (isDigit(load<u8>(p)) && digits < 4) {
      n = n * 10 + (load<u8>(p++) - 48)
      digits++
    }
    if (digits == 0 || digits > 3 || n > 255) return false
    value = (value << 8) | n
    if (part < 3 && load<u8>(p++) != 46) return false
  }
  store<u32>(at, value)
  return p == end && value != 0
}

/** Parses `true` and `false` in any case, 1 and 0. */
function parseBoolean(p: usize, end: usize, at: usize): bool {
  if (end - p == 1 && (load<u8>(p) | 1) == 49) {
    store<u8>(at, load<u8>(p) & 1)
    return true
  }
  const head = load<u32>(p) | 0x20202020
  const isTrue = end - p == 4 && head == 0x65757274
  store<u8>(at, isTrue ? 1 : 0)
  return isTrue || (end - p == 5 && head == 0x736c6166 && (load<u8>(p, 4) | 32) == 101)
}

@inline
function parseOne(kind: u32, p: usize, end: usize, at: usize): bool {
  if (kind == 9 || kind == 10) return parseFloating(kind, p, end, at)
  if (kind == 0) return parseBoolean(p, end, at)
  if (kind <= 5) return parseInteger(kind, p, end, at)
  if (kind <= 8) return parseTime(kind, p, end, at)
  return kind == 14 ? parseUuid(p, end, at) : kind == 15 ? parseIpv4(p, end, at) : false
}

export function parseColumn(scaledKind: u32, entries: usize, rows: u32, out: usize, status: usize, scratch: usize): u32 {
  const kind = scaledKind & 255
  epochScale = scaledKind >> 8
  const width = widthOf(kind)
  let open: u32 = 0
  for (let r: u32 = 0; r < rows; r++) {
    const at = out + <usize>r * width
    const p = <usize>load<u32>(entries + (<usize>r << 3))
    const bytes = load<i32>(entries + (<usize>r << 3), 4)
    store<u8>(status + <usize>r, 0)
    if (bytes > 0 && bytes <= longestText) {
      let start = p
      if (!endsText(load<u8>(p + <usize>bytes))) {
        isolate(p, <usize>bytes, scratch)
        start = scratch
      }
      if (parseOne(kind, start, start + <usize>bytes, at)) continue
    }
    putNull(kind, at)
    if (bytes < 0) continue
    store<u8>(status + <usize>r, 1)
    open++
  }
  return open
}
