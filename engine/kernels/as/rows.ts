// The WebAssembly kernel that turns the parameters of Bind messages of the PostgreSQL protocol (rows of an INSERT) into
// columns, one column at a time, and that copies strings. engine/kernels/rows.ts defines the interface and the
// structures.

import { validUtf8 } from './shared/utf8'

@inline
function be16(at: usize): u32 {
  return <u32>bswap<u16>(load<u16>(at))
}

@inline
function be32(at: usize): i32 {
  return <i32>bswap<u32>(load<u32>(at))
}

@inline
function be64(at: usize): i64 {
  return <i64>bswap<u64>(load<u64>(at))
}

function isSame(a: usize, b: usize, bytes: usize): bool {
  let i: usize = 0
  for (; i + 8 <= bytes; i += 8) if (load<u64>(a + i) != load<u64>(b + i)) return false
  for (; i < bytes; i++) if (load<u8>(a + i) != load<u8>(b + i)) return false
  return true
}

// MESSAGES ----------------------------------------------------------------------------------------------------------

/** Whether the formats of all non-null values are those of the prefix. */
function hasFormats(at: usize, prefix: usize, formats: usize, ends: usize, values: u32): bool {
  for (let index: u32 = 0, place = formats; index < values; index++, place += 2) {
    const format = be16(at + place)
    if (format > 1) return false
    if (format != be16(prefix + place) && load<i32>(ends + (<usize>index << 2)) >= 0) return false
  }
  return true
}

/** Records the location of each value in [at, end); false if they do not fill the range exactly. */
@inline
function notePlaces(at: usize, end: usize, starts: usize, ends: usize, values: u32): bool {
  for (let i: usize = 0; i < <usize>values << 2; i += 4) {
    if (at + 4 > end) return false
    const length = be32(at)
    at += 4
    store<u32>(starts + i, <u32>at)
    store<i32>(ends + i, length < 0 ? -1 : <i32>at + length)
    if (length > 0) {
      if (<usize>length > end - at) return false
      at += <usize>length
    }
  }
  return at == end
}

export function findBinds(state: usize): u32 {
  let at = <usize>load<u32>(state)
  const limit = <usize>load<u32>(state, 4)
  const prefix = <usize>load<u32>(state, 8)
  const prefixBytes = <usize>load<u32>(state, 12)
  const suffix = <usize>load<u32>(state, 16)
  const suffixBytes = <usize>load<u32>(state, 20)
  const formats = <usize>load<u32>(state, 24)
  const values = load<u32>(state, 28)
  const bindsMax = load<u32>(state, 32)
  const syncs = load<u32>(state, 36) != 0
  let starts = <usize>load<u32>(state, 40)
  let ends = <usize>load<u32>(state, 44)
  let after = <usize>load<u32>(state, 48)
  const afterFormats = formats + (<usize>values << 1)
  let binds: u32 = 0
  let described = false
  let synced = false
  while (binds < bindsMax) {
    const first = at + 5
    if (first + prefixBytes > limit || load<u8>(at) != 66) break
    const bindEnd = at + 1 + <usize>be32(at + 1)
    if (be32(at + 1) < 0 || bindEnd < first + prefixBytes || bindEnd >= limit) break
    const isExact = isSame(first, prefix, prefixBytes)
    if (!isExact) {
      if (formats == 0 || !isSame(first, prefix, formats)) break
      if (!isSame(first + afterFormats, prefix + afterFormats, prefixBytes - afterFormats)) break
    }
    // 'D' 6 'P' \0
    const describes = bindEnd + 7 <= limit && load<u8>(bindEnd) == 68 && be32(bindEnd + 1) == 6 && be16(bindEnd + 5) == 0x5000
    if (binds > 0 && describes != described) break
    const execute = describes ? bindEnd + 7 : bindEnd
    // 'E' 9 \0 rows
    const end = execute + 10
    if (end > limit || load<u8>(execute) != 69 || be32(execute + 1) != 9 || load<u8>(execute, 5) != 0) break
    // 'S' 4
    const isSynced = syncs && end + 5 <= limit && load<u8>(end) == 83 && be32(end + 1) == 4
    if (binds > 0 && synced && !isSynced) break
    const valuesEnd = bindEnd - suffixBytes
    if (!notePlaces(first + prefixBytes, valuesEnd, starts, ends, values)) break
    if (!isSame(valuesEnd, suffix, suffixBytes)) break
    if (!isExact && !hasFormats(first, prefix, formats, ends, values)) break
    described = describes
    if (binds == 0) synced = isSynced
    at = synced ? end + 5 : end
    store<u32>(after, <u32>at)
    after += 4
    starts += <usize>values << 2
    ends += <usize>values << 2
    binds++
    // The Sync that ends a batch is left to the session.
    if (isSynced != synced) break
  }
  store<u32>(state, <u32>at)
  store<u32>(state, described ? 1 : 0, 52)
  store<u32>(state, synced ? 1 : 0, 56)
  return binds
}

// VALUES OF FIXED WIDTH ---------------------------------------------------------------------------------------------

const nan: i64 = i64.MIN_VALUE

@inline
function isDigit(byte: u8): bool {
  return <u32>(byte - 48) <= 9
}

/** Value of two digits, or a large number if they are none. */
@inline
function two(at: usize): u32 {
  const high = <u32>load<u8>(at) - 48
  const low = <u32>load<u8>(at, 1) - 48
  return high <= 9 && low <= 9 ? high * 10 + low : 1000000
}

/** Parses an integer of up to 15 digits; `nan` for anything else. */
function integerAt(at: usize, end: usize): i64 {
  const negative = at < end && load<u8>(at) == 45
  if (negative) at++
  if (at >= end || end - at > 15) return nan
  let value: i64 = 0
  for (; at < end; at++) {
    const byte = load<u8>(at)
    if (!isDigit(byte)) return nan
    value = value * 10 + (byte - 48)
  }
  return negative ? -value : value
}

const powersOfTen = memory.data<f64>([1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15])
const integersOfTen = memory.data<i64>([1, 10, 100, 1000, 10000, 100000, 1000000])

/** Parses a decimal number of up to 15 digits; NaN for anything else. */
function decimalAt(at: usize, end: usize): f64 {
  const negative = at < end && load<u8>(at) == 45
  if (negative) at++
  let value: i64 = 0
  let digits = 0
  let fraction = -1
  for (; at < end; at++) {
    const byte = load<u8>(at)
    if (byte == 46) {
      if (fraction >= 0) return NaN
      fraction = 0
      continue
    }
    if (!isDigit(byte) || ++digits > 15) return NaN
    value = value * 10 + (byte - 48)
    if (fraction >= 0) fraction++
  }
  if (digits == 0) return NaN
  let number = <f64>value
  if (fraction > 0) number /= load<f64>(powersOfTen + (<usize>fraction << 3))
  return negative ? -number : number
}

/** Days before each month in a year of 365 days. */
const monthStarts = memory.data<u16>([0, 0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334, 365])

/** Minutes since 1970 of `2024-01-02[ T]03:04`; `nan` for another form, an invalid time, or one before 1970. */
function minutesAt(at: usize): i64 {
  const separator = load<u8>(at, 10)
  if (load<u8>(at, 4) != 45 || load<u8>(at, 7) != 45 || (separator != 32 && separator != 84) || load<u8>(at, 13) != 58) return nan
  const days = daysAt(at)
  const hour = two(at + 11)
  const minute = two(at + 14)
  if (days == nan || hour > 23 || minute > 59) return nan
  return (days * 24 + hour) * 60 + minute
}

/** Days since 1970 of `2024-01-02`, whose hyphens were checked. */
function daysAt(at: usize): i64 {
  const year = two(at) * 100 + two(at + 2)
  const month = two(at + 5)
  const day = two(at + 8)
  if (year < 1970 || year > 9999 || month < 1 || month > 12) return nan
  const leap: u32 = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0 ? 1 : 0
  const start = <u32>load<u16>(monthStarts + (<usize>month << 1))
  const next = <u32>load<u16>(monthStarts + (<usize>month << 1), 2) + (month == 2 ? leap : 0)
  if (day < 1 || day > next - start) return nan
  const before = year - 1
  const leaps = before / 4 - before / 100 + before / 400
  return <i64>before * 365 + leaps + start + (month > 2 ? leap : 0) + day - 719163
}

/** Parses `:05[.6{1,6}][Z|+00|+00:00]` up to `end`, in microseconds; `nan` for any other form. */
function secondsAt(at: usize, end: usize): i64 {
  if (end < at + 3 || load<u8>(at) != 58) return nan
  const second = two(at + 1)
  if (second > 59) return nan
  at += 3
  let micros: i64 = 0
  if (at < end && load<u8>(at) == 46) {
    at++
    let digits: usize = 0
    for (; at < end && digits < 6 && isDigit(load<u8>(at)); at++, digits++) micros = micros * 10 + (load<u8>(at) - 48)
    if (digits == 0) return nan
    micros *= load<i64>(integersOfTen + ((6 - digits) << 3))
  }
  if (at != end && !isUtc(at, end)) return nan
  return <i64>second * 1000000 + micros
}

function isUtc(at: usize, end: usize): bool {
  if (load<u8>(at) == 90) return at + 1 == end
  if (load<u8>(at) != 43 || (end - at != 3 && end - at != 6)) return false
  for (at++; at < end; at++) if (load<u8>(at) != 48 && load<u8>(at) != 58) return false
  return true
}

/** Parses a timestamp with or without seconds, or a date, from 1970 on; `nan` for another form. */
function timeAt(at: usize, end: usize): i64 {
  const bytes = end - at
  if (bytes == 10) {
    if (load<u8>(at, 4) != 45 || load<u8>(at, 7) != 45) return nan
    const days = daysAt(at)
    return days == nan ? nan : days * 86400000000
  }
  if (bytes < 19) return nan
  const minutes = minutesAt(at)
  if (minutes == nan) return nan
  const micros = secondsAt(at + 16, end)
  return micros == nan ? nan : minutes * 60000000 + micros
}

export function takeDoubles(starts: usize, ends: usize, stride: usize, rows: u32, target: usize, missing: usize): u32 {
  let row: u32 = 0
  for (; row < rows; row++, starts += stride, ends += stride, target += 8) {
    if (load<i32>(ends) < 0) {
      if (missing == 0) break
      store<i64>(target, load<i64>(missing))
      continue
    }
    const at = <usize>load<u32>(starts)
    if (load<u32>(ends) != <u32>at + 8) break
    const value = reinterpret<f64>(be64(at))
    if (value != value) break
    store<f64>(target, value)
  }
  return row
}

/** Copies LONG values. NULL has the same bits in the caller's columns. */
export function takeLongs(starts: usize, ends: usize, stride: usize, rows: u32, target: usize, missing: usize): u32 {
  let row: u32 = 0
  for (; row < rows; row++, starts += stride, ends += stride, target += 8) {
    if (load<i32>(ends) < 0) {
      if (missing == 0) break
      store<i64>(target, load<i64>(missing))
      continue
    }
    const at = <usize>load<u32>(starts)
    if (load<u32>(ends) != <u32>at + 8) break
    store<i64>(target, be64(at))
  }
  return row
}

export function takeInts(starts: usize, ends: usize, stride: usize, rows: u32, target: usize, missing: usize): u32 {
  let row: u32 = 0
  for (; row < rows; row++, starts += stride, ends += stride, target += 4) {
    if (load<i32>(ends) < 0) {
      if (missing == 0) break
      store<i32>(target, load<i32>(missing))
      continue
    }
    const at = <usize>load<u32>(starts)
    if (load<u32>(ends) != <u32>at + 4) break
    const value = be32(at)
    if (value == i32.MIN_VALUE) break
    store<i32>(target, value)
  }
  return row
}

export function takeWideInts(starts: usize, ends: usize, stride: usize, rows: u32, target: usize, missing: usize): u32 {
  let row: u32 = 0
  for (; row < rows; row++, starts += stride, ends += stride, target += 8) {
    if (load<i32>(ends) < 0) {
      if (missing == 0) break
      store<i64>(target, load<i64>(missing))
      continue
    }
    const at = <usize>load<u32>(starts)
    if (load<u32>(ends) != <u32>at + 4) break
    store<i64>(target, <i64>be32(at))
  }
  return row
}

/** Converts binary timestamps, microseconds since 2000; those before 1970 or beyond 2^52 are not supported. */
export function takeMicros(starts: usize, ends: usize, stride: usize, rows: u32, target: usize, missing: usize): u32 {
  let row: u32 = 0
  for (; row < rows; row++, starts += stride, ends += stride, target += 8) {
    if (load<i32>(ends) < 0) {
      if (missing == 0) break
      store<i64>(target, load<i64>(missing))
      continue
    }
    const at = <usize>load<u32>(starts)
    if (load<u32>(ends) != <u32>at + 8) break
    const value = be64(at)
    if (value < -946684800000000 || value >= 4503599627370496) break
    store<i64>(target, value + 946684800000000)
  }
  return row
}

/** Parses timestamps in text form. Only the first one within a minute is parsed entirely. */
export function takeTimes(starts: usize, ends: usize, stride: usize, rows: u32, target: usize, missing: usize): u32 {
  let row: u32 = 0
  let minuteLow: u64 = 0
  let minuteHigh: u64 = 0
  let minute: i64 = -1
  for (; row < rows; row++, starts += stride, ends += stride, target += 8) {
    if (load<i32>(ends) < 0) {
      if (missing == 0) break
      store<i64>(target, load<i64>(missing))
      continue
    }
    const at = <usize>load<u32>(starts)
    const end = <usize>load<u32>(ends)
    let micros: i64
    if (minute >= 0 && end >= at + 19 && load<u64>(at) == minuteLow && load<u64>(at, 8) == minuteHigh) {
      micros = secondsAt(at + 16, end)
      if (micros == nan) break
      micros += minute
    } else {
      micros = timeAt(at, end)
      if (micros == nan) break
      // Above 2^53 the reference implementation's numbers are not exact.
      if (micros >= 9007199254740992) break
      if (end >= at + 19) {
        minuteLow = load<u64>(at)
        minuteHigh = load<u64>(at, 8)
        minute = micros - micros % 60000000
      }
    }
    store<i64>(target, micros)
  }
  return row
}

/** Parses integers of up to 15 digits to LONG. */
export function takeWholes(starts: usize, ends: usize, stride: usize, rows: u32, target: usize, missing: usize): u32 {
  let row: u32 = 0
  for (; row < rows; row++, starts += stride, ends += stride, target += 8) {
    if (load<i32>(ends) < 0) {
      if (missing == 0) break
      store<i64>(target, load<i64>(missing))
      continue
    }
    const value = integerAt(<usize>load<u32>(starts), <usize>load<u32>(ends))
    if (value == nan) break
    store<i64>(target, value)
  }
  return row
}

/** Parses numbers of up to 15 digits to DOUBLE. */
export function takeDecimals(starts: usize, ends: usize, stride: usize, rows: u32, target: usize, missing: usize): u32 {
  let row: u32 = 0
  for (; row < rows; row++, starts += stride, ends += stride, target += 8) {
    if (load<i32>(ends) < 0) {
      if (missing == 0) break
      store<i64>(target, load<i64>(missing))
      continue
    }
    const value = decimalAt(<usize>load<u32>(starts), <usize>load<u32>(ends))
    if (value != value) break
    store<f64>(target, value)
  }
  return row
}

// TEXTS -------------------------------------------------------------------------------------------------------------

/** Copies a few bytes; reads and writes up to 15 too many. */
@inline
function copyText(target: usize, source: usize, bytes: usize): void {
  if (bytes <= 16) v128.store(target, v128.load(source))
  else if (bytes <= 64) {
    for (let i: usize = 0; i < bytes; i += 16) v128.store(target + i, v128.load(source + i))
  } else memory.copy(target, source, bytes)
}

/** Whether the bytes are valid UTF-8 without a zero byte. */
@inline
function isText(at: usize, bytes: usize): bool {
  let high = i8x16.splat(0)
  let i: usize = 0
  for (; i + 16 <= bytes; i += 16) {
    const x = v128.load(at + i)
    if (!i8x16.all_true(x)) return false
    high = v128.or(high, x)
  }
  if (i < bytes) {
    const left = bytes - i
    const x = v128.load(at + i)
    const zeros = i8x16.bitmask(i8x16.eq(x, i8x16.splat(0)))
    const mask = (1 << <i32>left) - 1
    if (zeros & mask) return false
    if (i8x16.bitmask(x) & mask) return validUtf8(at, <i32>bytes)
  }
  return i8x16.bitmask(high) == 0 || validUtf8(at, <i32>bytes)
}

export function takeStrings(starts: usize, ends: usize, stride: usize, rows: u32, lengths: usize, heap: usize): u32 {
  let row: u32 = 0
  for (; row < rows; row++, starts += stride, ends += stride, lengths += 4) {
    if (load<i32>(ends) < 0) {
      store<i32>(lengths, -1)
      continue
    }
    const at = <usize>load<u32>(starts)
    const bytes = <usize>load<u32>(ends) - at
    if (!isText(at, bytes)) break
    copyText(heap, at, bytes)
    heap += bytes
    store<i32>(lengths, <i32>bytes)
  }
  return row
}

@inline
function hashOf(at: usize, bytes: usize): u32 {
  let h: u64 = <u64>bytes * 0xff51afd7ed558ccd
  let i: usize = 0
  for (; i + 8 <= bytes; i += 8) h = (h ^ load<u64>(at + i)) * 0x9e3779b97f4a7c15 + (h >> 29)
  if (i < bytes) h = (h ^ (load<u64>(at + i) & (((<u64>1) << (<u64>(bytes - i) << 3)) - 1))) * 0x9e3779b97f4a7c15 + (h >> 29)
  h ^= h >> 32
  h *= 0x9e3779b97f4a7c15
  return <u32>(h >> 32)
}

/** Numbers strings in the order of their first use; each is stored once, preceded by its length. */
export function takeSymbols(state: usize, starts: usize, ends: usize, stride: usize, rows: u32, ids: usize): u32 {
  const slots = <usize>load<u32>(state)
  const mask = load<u32>(state, 4)
  const heap = <usize>load<u32>(state, 8)
  let count = load<u32>(state, 12)
  let used = <usize>load<u32>(state, 16)
  let row: u32 = 0
  for (; row < rows; row++, starts += stride, ends += stride, ids += 4) {
    if (load<i32>(ends) < 0) {
      store<i32>(ids, -1)
      continue
    }
    const at = <usize>load<u32>(starts)
    const bytes = <usize>load<u32>(ends) - at
    let slot = hashOf(at, bytes) & mask
    let id: u32 = 0
    for (;;) {
      const entry = slots + (<usize>slot << 3)
      const place = load<u32>(entry)
      if (place == 0) {
        if (!isText(at, bytes)) break
        store<u32>(heap + used, <u32>bytes)
        copyText(heap + used + 4, at, bytes)
        store<u32>(entry, <u32>used + 1)
        used += 4 + bytes
        id = ++count
        store<u32>(entry, id, 4)
        break
      }
      const known = heap + <usize>place - 1
      if (load<u32>(known) == <u32>bytes && isSame(known + 4, at, bytes)) {
        id = load<u32>(entry, 4)
        break
      }
      slot = (slot + 1) & mask
    }
    if (id == 0) break
    store<u32>(ids, id - 1)
  }
  store<u32>(state, count, 12)
  store<u32>(state, <u32>used, 16)
  return row
}

// ENTRIES -----------------------------------------------------------------------------------------------------------

/** Writes entries {address, length} for strings that are concatenated from `heap` on. */
export function entriesOf(lengths: usize, rows: u32, heap: usize, entries: usize): void {
  for (let row: u32 = 0; row < rows; row++, lengths += 4, entries += 8) {
    const length = load<i32>(lengths)
    store<u32>(entries, <u32>heap)
    store<i32>(entries, length, 4)
    if (length > 0) heap += <usize>length
  }
}

/** Moves the strings of entries to a heap, each aligned to 8, while they fit; returns the number of rows. */
export function moveStrings(entries: usize, rows: u32, state: usize): u32 {
  let heap = <usize>load<u32>(state)
  const heapEnd = <usize>load<u32>(state, 4)
  // Strings at the very end of the memory are copied without reading beyond it.
  const safeEnd = (<usize>memory.size() << 16) - 64
  let row: u32 = 0
  for (; row < rows; row++, entries += 8) {
    const length = load<i32>(entries, 4)
    if (length < 0) continue
    const bytes = <usize>length
    if (heap + bytes > heapEnd) break
    const source = <usize>load<u32>(entries)
    if (source + bytes <= safeEnd) copyText(heap, source, bytes)
    else memory.copy(heap, source, bytes)
    store<u32>(entries, <u32>heap)
    heap += (bytes + 7) & ~7
  }
  store<u32>(state, <u32>heap)
  return row
}

/** Sum of the sizes of the strings of entries. */
export function stringsBytes(entries: usize, rows: u32): f64 {
  let bytes: u64 = 0
  for (let row: u32 = 0; row < rows; row++, entries += 8) bytes += <u64>max(0, load<i32>(entries, 4))
  return <f64>bytes
}

/** Writes the lengths of the strings of entries, and the strings one after the other; returns the end of these. */
export function packStrings(entries: usize, rows: u32, lengths: usize, heap: usize): usize {
  const safeEnd = (<usize>memory.size() << 16) - 64
  for (let row: u32 = 0; row < rows; row++, entries += 8, lengths += 4) {
    const length = load<i32>(entries, 4)
    store<i32>(lengths, length)
    if (length <= 0) continue
    const bytes = <usize>length
    const source = <usize>load<u32>(entries)
    if (source + bytes <= safeEnd) copyText(heap, source, bytes)
    else memory.copy(heap, source, bytes)
    heap += bytes
  }
  return heap
}
