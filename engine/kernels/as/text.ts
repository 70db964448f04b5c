// String kernel (WebAssembly): matches LIKE patterns, compares, searches and cuts strings. engine/kernels/text.ts
// defines the interface and the structures.
//
// A literal is searched by its first and last byte, at 16 positions at a time; positions where both match are compared.
// Most strings are ASCII, where a byte is a character. Others are processed byte by byte, or left to the caller.

const anchoredStart: u32 = 1
const anchoredEnd: u32 = 2
const ignoreCase: u32 = 4
const wildcards: u32 = 8
const anyByte: u8 = 255
const highBits: u64 = 0x8080808080808080
const no: u8 = 0
const yes: u8 = 1
const undecided: u8 = 2

@inline
function lowered(x: v128): v128 {
  const upper = i8x16.lt_u(i8x16.sub(x, i8x16.splat(65)), i8x16.splat(26))
  return v128.or(x, v128.and(upper, i8x16.splat(32)))
}

@inline
function folded(byte: u8): u8 {
  return byte - 65 < 26 ? byte | 32 : byte
}

function matchesAt(at: usize, literal: usize, bytes: usize, fold: bool): bool {
  for (let i: usize = 0; i < bytes; i++) {
    const byte = load<u8>(at + i)
    if ((fold ? folded(byte) : byte) != load<u8>(literal + i)) return false
  }
  return true
}

/** The first match at or after `from`, or 0 (no string has the address 0). */
function find(from: usize, end: usize, literal: usize, bytes: usize, fold: bool): usize {
  if (from + bytes > end) return 0
  const last = end - bytes
  const memoryEnd = <usize>memory.size() << 16
  const firstByte = i8x16.splat(load<u8>(literal))
  const lastByte = i8x16.splat(load<u8>(literal + bytes - 1))
  for (let at = from; at <= last; at += 16) {
    if (at + bytes + 16 > memoryEnd) return findSlowly(at, last, literal, bytes, fold)
    let x = v128.load(at)
    let y = v128.load(at + bytes - 1)
    if (fold) {
      x = lowered(x)
      y = lowered(y)
    }
    let places = i8x16.bitmask(v128.and(i8x16.eq(x, firstByte), i8x16.eq(y, lastByte)))
    while (places) {
      const place = at + <usize>ctz(places)
      if (place > last) return 0
      if (matchesAt(place, literal, bytes, fold)) return place
      places &= places - 1
    }
  }
  return 0
}

function findSlowly(from: usize, last: usize, literal: usize, bytes: usize, fold: bool): usize {
  for (let at = from; at <= last; at++) if (matchesAt(at, literal, bytes, fold)) return at
  return 0
}

function isAscii(from: usize, end: usize): bool {
  let at = from
  for (; at + 8 <= end; at += 8) if ((load<u64>(at) & highBits) != 0) return false
  for (; at < end; at++) if (load<u8>(at) > 127) return false
  return true
}

function matchesWildAt(at: usize, literal: usize, bytes: usize, fold: bool): bool {
  for (let i: usize = 0; i < bytes; i++) {
    const wanted = load<u8>(literal + i)
    const byte = load<u8>(at + i)
    if (wanted != anyByte && (fold ? folded(byte) : byte) != wanted) return false
  }
  return true
}

function findWild(from: usize, end: usize, literal: usize, bytes: usize, fold: bool): usize {
  for (let at = from; at + bytes <= end; at++) if (matchesWildAt(at, literal, bytes, fold)) return at
  return 0
}

function answer(pattern: usize, start: usize, end: usize): u8 {
  const count = load<u32>(pattern)
  const flags = load<u32>(pattern, 4)
  const fold = (flags & ignoreCase) != 0
  const wild = (flags & wildcards) != 0
  if ((fold || wild) && !isAscii(start, end)) return undecided
  if (count == 0) return (flags & anchoredEnd) != 0 && start < end ? no : yes
  let at = start
  for (let i: u32 = 0; i < count; i++) {
    const literal: usize = load<u32>(pattern + (<usize>i << 3), 8)
    const bytes: usize = load<u32>(pattern + (<usize>i << 3), 12)
    const pinnedStart = i == 0 && (flags & anchoredStart) != 0
    const pinnedEnd = i == count - 1 && (flags & anchoredEnd) != 0
    if (at + bytes > end) return no
    if (pinnedEnd || pinnedStart) {
      const place = pinnedEnd ? end - bytes : at
      if (pinnedStart && place != at) return no
      if (!(wild ? matchesWildAt(place, literal, bytes, fold) : matchesAt(place, literal, bytes, fold))) return no
      at = place + bytes
    } else {
      const place = wild ? findWild(at, end, literal, bytes, fold) : find(at, end, literal, bytes, fold)
      if (place == 0) return no
      at = place + bytes
    }
  }
  return yes
}

export function matchStrings(pattern: usize, entries: usize, rows: u32, out: usize): void {
  for (let row: usize = 0; row < <usize>rows; row++) {
    const start: usize = load<u32>(entries + (row << 3))
    const bytes = load<i32>(entries + (row << 3), 4)
    store<u8>(out + row, bytes < 0 ? no : answer(pattern, start, start + <usize>bytes))
  }
}

// Comparisons -------------------------------------------------------------------------------------------------------

@inline
function isEqual(a: usize, b: usize, bytes: usize): bool {
  let at: usize = 0
  for (; at + 8 <= bytes; at += 8) if (load<u64>(a + at) != load<u64>(b + at)) return false
  for (; at < bytes; at++) if (load<u8>(a + at) != load<u8>(b + at)) return false
  return true
}

export function memberStrings(entries: usize, rows: u32, members: usize, count: u32, out: usize): void {
  for (let row: usize = 0; row < <usize>rows; row++) {
    const text: usize = load<u32>(entries + (row << 3))
    const bytes = load<i32>(entries + (row << 3), 4)
    let found: u8 = no
    for (let i: usize = 0; i < <usize>count; i++) {
      if (load<i32>(members + (i << 3), 4) != bytes) continue
      if (bytes >= 0 && !isEqual(text, load<u32>(members + (i << 3)), bytes)) continue
      found = yes
      break
    }
    store<u8>(out + row, found)
  }
}

/** 0: less, 1: equal, 2: greater. */
@inline
function orderOf(a: usize, aBytes: usize, b: usize, bBytes: usize): u32 {
  const common = aBytes < bBytes ? aBytes : bBytes
  let at: usize = 0
  for (; at + 8 <= common; at += 8) {
    const x = load<u64>(a + at)
    const y = load<u64>(b + at)
    if (x != y) return bswap(x) < bswap(y) ? 0 : 2
  }
  for (; at < common; at++) {
    const x = load<u8>(a + at)
    const y = load<u8>(b + at)
    if (x != y) return x < y ? 0 : 2
  }
  return aBytes == bBytes ? 1 : aBytes < bBytes ? 0 : 2
}

export function orderStrings(entries: usize, rows: u32, text: usize, textBytes: u32, wanted: u32, out: usize): void {
  for (let row: usize = 0; row < <usize>rows; row++) {
    const start: usize = load<u32>(entries + (row << 3))
    const bytes = load<i32>(entries + (row << 3), 4)
    const order = bytes < 0 ? 3 : orderOf(start, bytes, text, textBytes)
    store<u8>(out + row, <u8>((wanted >> order) & 1))
  }
}

// Characters --------------------------------------------------------------------------------------------------------

/** Length in UTF-16 code units: continuation bytes count nothing, first bytes of four-byte characters count two. */
function unitsOf(start: usize, end: usize): i32 {
  let units: i32 = 0
  let at = start
  while (at < end) {
    if (at + 8 <= end && (load<u64>(at) & highBits) == 0) {
      units += 8
      at += 8
      continue
    }
    const byte = load<u8>(at)
    units += byte >= 0xf0 ? 2 : (byte & 0xc0) == 0x80 ? 0 : 1
    at++
  }
  return units
}

export function textUnits(entries: usize, rows: u32, out: usize): void {
  for (let row: usize = 0; row < <usize>rows; row++) {
    const start: usize = load<u32>(entries + (row << 3))
    const bytes = load<i32>(entries + (row << 3), 4)
    store<i32>(out + (row << 2), bytes < 0 ? -1 : unitsOf(start, start + <usize>bytes))
  }
}

@inline
function placeIn(place: i32, bytes: i32): i32 {
  if (place >= 0) return place < bytes ? place : bytes
  return place + bytes > 0 ? place + bytes : 0
}

export function sliceStrings(entries: usize, rows: u32, from: i32, to: i32, out: usize): u32 {
  let left: u32 = 0
  for (let row: usize = 0; row < <usize>rows; row++) {
    const start: usize = load<u32>(entries + (row << 3))
    const bytes = load<i32>(entries + (row << 3), 4)
    const ascii = bytes <= 0 || isAscii(start, start + <usize>bytes)
    const first = bytes < 0 ? 0 : placeIn(from, bytes)
    const last = bytes < 0 ? -1 : placeIn(to, bytes)
    store<u32>(out + (row << 3), <u32>start + first)
    store<i32>(out + (row << 3), bytes < 0 ? -1 : ascii ? (last > first ? last - first : 0) : -2, 4)
    if (!ascii) left++
  }
  return left
}

export function foldStrings(entries: usize, rows: u32, upper: u32, heap: usize, out: usize): u32 {
  const first: u8 = upper != 0 ? 97 : 65
  let left: u32 = 0
  let target = heap
  for (let row: usize = 0; row < <usize>rows; row++) {
    const start: usize = load<u32>(entries + (row << 3))
    const bytes = load<i32>(entries + (row << 3), 4)
    const ascii = bytes <= 0 || isAscii(start, start + <usize>bytes)
    store<u32>(out + (row << 3), <u32>target)
    store<i32>(out + (row << 3), ascii ? bytes : -2, 4)
    if (!ascii) left++
    else if (bytes > 0) {
      for (let at: usize = 0; at < <usize>bytes; at++) {
        const byte = load<u8>(start + at)
        store<u8>(target + at, byte - first < 26 ? byte ^ 32 : byte)
      }
      target += bytes
    }
  }
  return left
}

/** The result may exceed the memory, since entries may share bytes. */
export function stringsBytes(entries: usize, rows: u32): f64 {
  let sum: u64 = 0
  for (let row: usize = 0; row < <usize>rows; row++) {
    const bytes = load<i32>(entries + (row << 3), 4)
    if (bytes > 0) sum += bytes
  }
  return <f64>sum
}

@inline
function paddedBytes(bytes: i32): i32 {
  return bytes > 0 ? (bytes + 7) & ~7 : 0
}

export function movedBytes(entries: usize, rows: u32): f64 {
  let sum: u64 = 0
  for (let row: usize = 0; row < <usize>rows; row++) sum += paddedBytes(load<i32>(entries + (row << 3), 4))
  return <f64>sum
}

/** Shorter strings are copied in whole words, with up to seven bytes too many. */
const wordsMax: usize = 64

export function moveStrings(entries: usize, rows: u32, target: usize, base: u32): void {
  let to = target
  for (let entry = entries, end = entries + (<usize>rows << 3); entry < end; entry += 8) {
    const padded: usize = paddedBytes(load<i32>(entry, 4))
    if (padded == 0) continue
    const from: usize = load<u32>(entry)
    store<u32>(entry, <u32>to - base)
    if (padded > wordsMax) memory.copy(to, from, padded)
    else for (let at: usize = 0; at < padded; at += 8) store<u64>(to + at, load<u64>(from + at))
    to += padded
  }
}

export function textWords(entries: usize, rows: u32, from: u32, missing: i64, out: usize): void {
  for (let row: usize = 0; row < <usize>rows; row++) {
    const entry = entries + (row << 3)
    const bytes = load<i32>(entry, 4)
    const rest = bytes - <i32>from
    let word: u64 = 0
    if (rest > 0) word = bswap<u64>(load<u64>(<usize>load<u32>(entry) + <usize>from))
    if (rest > 0 && rest < 8) word &= ~(u64.MAX_VALUE >> (<u64>rest << 3))
    store<i64>(out + (row << 3), bytes < 0 ? missing : <i64>word ^ i64.MIN_VALUE)
  }
}

/** Number of characters between two addresses; continuation bytes are not counted. */
function charactersOf(start: usize, end: usize): i32 {
  let characters: i32 = 0
  for (let at = start; at < end; at++) characters += i32((load<u8>(at) & 0xc0) != 0x80)
  return characters
}

/** The first position of a string within each, in characters from 1; 0 if there is none. */
export function findInStrings(entries: usize, rows: u32, text: usize, textBytes: u32, out: usize): void {
  for (let row: usize = 0; row < <usize>rows; row++) {
    const start: usize = load<u32>(entries + (row << 3))
    const bytes = load<i32>(entries + (row << 3), 4)
    let place = i32.MIN_VALUE
    if (bytes >= 0) {
      const found = textBytes == 0 ? start : find(start, start + <usize>bytes, text, textBytes, false)
      place = textBytes != 0 && found == 0 ? 0 : charactersOf(start, found) + 1
    }
    store<i32>(out + (row << 2), place)
  }
}

export function trimStrings(entries: usize, rows: u32, sides: u32, out: usize): void {
  for (let row: usize = 0; row < <usize>rows; row++) {
    let start: usize = load<u32>(entries + (row << 3))
    const bytes = load<i32>(entries + (row << 3), 4)
    let end = start + (bytes < 0 ? 0 : <usize>bytes)
    if ((sides & 1) != 0) while (start < end && load<u8>(start) == 32) start++
    if ((sides & 2) != 0) while (end > start && load<u8>(end - 1) == 32) end--
    store<u32>(out + (row << 3), <u32>start)
    store<i32>(out + (row << 3), bytes < 0 ? -1 : <i32>(end - start), 4)
  }
}

// Strings from strings ----------------------------------------------------------------------------------------------

@inline
function copyBytes(target: usize, source: usize, bytes: usize): void {
  let at: usize = 0
  for (; at + 8 <= bytes; at += 8) store<u64>(target + at, load<u64>(source + at))
  for (; at < bytes; at++) store<u8>(target + at, load<u8>(source + at))
}

export function joinStrings(columns: usize, count: u32, rows: u32, heap: usize, out: usize): void {
  let target = heap
  for (let row: usize = 0; row < <usize>rows; row++) {
    const start = target
    for (let column: usize = 0; column < <usize>count; column++) {
      const entry = <usize>load<u32>(columns + (column << 2)) + (row << 3)
      const bytes = load<i32>(entry, 4)
      if (bytes <= 0) continue
      copyBytes(target, load<u32>(entry), bytes)
      target += bytes
    }
    store<u32>(out + (row << 3), <u32>start)
    store<i32>(out + (row << 3), <i32>(target - start), 4)
  }
}

export function replaceInStrings(
  entries: usize,
  rows: u32,
  from: usize,
  fromBytes: u32,
  to: usize,
  toBytes: u32,
  heap: usize,
  out: usize,
): void {
  let target = heap
  for (let row: usize = 0; row < <usize>rows; row++) {
    let at: usize = load<u32>(entries + (row << 3))
    const bytes = load<i32>(entries + (row << 3), 4)
    const end = at + (bytes < 0 ? 0 : <usize>bytes)
    const start = target
    while (at < end) {
      const place = find(at, end, from, fromBytes, false)
      const until = place == 0 ? end : place
      copyBytes(target, at, until - at)
      target += until - at
      at = until
      if (place == 0) continue
      copyBytes(target, to, toBytes)
      target += toBytes
      at += fromBytes
    }
    store<u32>(out + (row << 3), <u32>start)
    store<i32>(out + (row << 3), bytes < 0 ? -1 : <i32>(target - start), 4)
  }
}
