// Matching texts against LIKE patterns. Structures and the contract: engine/kernels/text.ts.
//
// A literal is searched by its first and last byte, 16 places at a time; places where both fit are compared.

const anchoredStart: u32 = 1
const anchoredEnd: u32 = 2
const ignoreCase: u32 = 4
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

/** The first place at or behind `from`, or 0 (address 0 is never a text's). */
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
  for (let at = from; at < end; at++) if (load<u8>(at) > 127) return false
  return true
}

function answer(pattern: usize, start: usize, end: usize): u8 {
  const count = load<u32>(pattern)
  const flags = load<u32>(pattern, 4)
  const fold = (flags & ignoreCase) != 0
  if (fold && !isAscii(start, end)) return undecided
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
      if (!matchesAt(place, literal, bytes, fold)) return no
      at = place + bytes
    } else {
      const place = find(at, end, literal, bytes, fold)
      if (place == 0) return no
      at = place + bytes
    }
  }
  return yes
}

export function matchTexts(pattern: usize, entries: usize, rows: u32, out: usize): void {
  for (let row: usize = 0; row < <usize>rows; row++) {
    const start: usize = load<u32>(entries + (row << 3))
    const bytes = load<i32>(entries + (row << 3), 4)
    store<u8>(out + row, bytes < 0 ? no : answer(pattern, start, start + <usize>bytes))
  }
}
