// The WebAssembly kernel of joins: finds the pairs of rows whose keys are equal, given as numbers (codes), and for
// ASOF, LT and SPLICE joins also those that are nearest in time. engine/kernels/join.ts defines the interface and the
// structures.

const none: u32 = 0xffffffff
const noTime: i64 = i64.MIN_VALUE

@inline
function at32(base: usize, index: u32): u32 {
  return load<u32>(base + (<usize>index << 2))
}

@inline
function put32(base: usize, index: u32, value: u32): void {
  store<u32>(base + (<usize>index << 2), value)
}

@inline
function at64(base: usize, index: u32): i64 {
  return load<i64>(base + (<usize>index << 3))
}

// --- codes ---------------------------------------------------------------------------------------------------------

export function pairWords(low: usize, high: usize, rows: usize, out: usize): void {
  for (let i: usize = 0; i < rows; i++) {
    store<u32>(out + (i << 3), load<u32>(low + (i << 2)))
    store<u32>(out + (i << 3), high == 0 ? 0 : load<u32>(high + (i << 2)), 4)
  }
}

export function mapIds(ids: usize, rows: u32, map: usize, mapRows: u32, out: usize): u32 {
  if (map == 0) {
    for (let i: u32 = 0; i < rows; i++) put32(out, i, at32(ids, i) + 1)
    return rows
  }
  for (let i: u32 = 0; i < rows; i++) {
    const id = at32(ids, i)
    if (id == none) {
      put32(out, i, 0)
      continue
    }
    if (id >= mapRows) return i
    const code = at32(map, id)
    if (code == none) return i
    put32(out, i, code + 1)
  }
  return rows
}

// --- listings ------------------------------------------------------------------------------------------------------

export function countCodes(codes: usize, rows: u32, counts: usize): void {
  for (let i: u32 = 0; i < rows; i++) {
    const cell = counts + (<usize>at32(codes, i) << 2)
    store<u32>(cell, load<u32>(cell) + 1)
  }
}

export function startsOf(counts: usize, count: u32): void {
  let sum: u32 = 0
  for (let i: u32 = 0; i < count; i++) {
    const rows = at32(counts, i)
    put32(counts, i, sum)
    sum += rows
  }
  put32(counts, count, sum)
}

export function listRows(codes: usize, order: usize, from: u32, to: u32, cursors: usize, out: usize): void {
  for (let i = from; i < to; i++) {
    const row = order == 0 ? i : at32(order, i)
    const cell = cursors + (<usize>at32(codes, row) << 2)
    const place = load<u32>(cell)
    store<u32>(cell, place + 1)
    put32(out, place, row)
  }
}

// --- hash join -----------------------------------------------------------------------------------------------------

export function expand(
  state: usize,
  codes: usize,
  rows: u32,
  starts: usize,
  codeCount: u32,
  list: usize,
  mode: u32,
  outLeft: usize,
  outRight: usize,
  limit: u32,
): u32 {
  let row = load<u32>(state)
  let taken = load<u32>(state, 4)
  let n: u32 = 0
  while (row < rows && n < limit) {
    const code = at32(codes, row)
    let p: u32 = 0
    let e: u32 = 0
    if (code < codeCount) {
      p = at32(starts, code)
      e = at32(starts, code + 1)
    }
    const matches = e - p
    for (p += taken; p < e && n < limit; p++, n++, taken++) {
      put32(outLeft, n, row)
      put32(outRight, n, at32(list, p))
    }
    if (taken < matches) break
    if (mode == 2 || (mode == 1 && matches == 0)) {
      if (n == limit) break
      put32(outLeft, n, row)
      put32(outRight, n, none)
      n++
    }
    row++
    taken = 0
  }
  store<u32>(state, row)
  store<u32>(state, taken, 4)
  return n
}

// --- buckets -------------------------------------------------------------------------------------------------------

export function maskWords(words: usize, rows: u32, mask: u32, out: usize): void {
  for (let i: u32 = 0; i < rows; i++) put32(out, i, at32(words, i) & mask)
}

/** Fewer buckets stay in the cache and need no prefetch. */
const touchFrom: u32 = 16384
const touchRows: u32 = 64
/** Keeps touchBuckets from being optimised away. */
export let touched: u32 = 0

/** Prefetches the buckets of the next rows, so that their cache misses overlap. */
@inline
function touchBuckets<T>(table: usize, hashes: usize, row: u32, rows: u32): void {
  const starts = <usize>load<u32>(table)
  const mask = load<u32>(table, 4)
  const list = <usize>load<u32>(table, 8)
  const stored = <usize>load<u32>(table, 12)
  let sink: u32 = 0
  for (let i = row; i < rows; i++) {
    const place = at32(starts, at32(hashes, i) & mask)
    sink |= at32(list, place) | <u32>load<T>(stored + <usize>place * sizeof<T>())
  }
  touched = sink
}

@inline
function matchWords<T>(
  state: usize,
  table: usize,
  hashes: usize,
  keys: usize,
  rows: u32,
  mode: u32,
  outLeft: usize,
  outRight: usize,
  limit: u32,
): u32 {
  const starts = <usize>load<u32>(table)
  const mask = load<u32>(table, 4)
  const list = <usize>load<u32>(table, 8)
  const stored = <usize>load<u32>(table, 12)
  let row = load<u32>(state)
  let taken = load<u32>(state, 4)
  let matched = load<u32>(state, 8)
  let n: u32 = 0
  while (row < rows && n < limit) {
    if ((row & (touchRows - 1)) == 0 && mask > touchFrom) touchBuckets<T>(table, hashes, row, min(rows, row + touchRows))
    const bucket = at32(hashes, row) & mask
    const start = at32(starts, bucket)
    const end = at32(starts, bucket + 1)
    const key = load<T>(keys + <usize>row * sizeof<T>())
    let p = start + taken
    for (; p < end && n < limit; p++) {
      if (load<T>(stored + <usize>p * sizeof<T>()) != key) continue
      put32(outLeft, n, row)
      put32(outRight, n, at32(list, p))
      n++
      matched = 1
    }
    taken = p - start
    if (p < end) break
    if (mode == 2 || (mode == 1 && matched == 0)) {
      if (n == limit) break
      put32(outLeft, n, row)
      put32(outRight, n, none)
      n++
    }
    row++
    taken = 0
    matched = 0
  }
  store<u32>(state, row)
  store<u32>(state, taken, 4)
  store<u32>(state, matched, 8)
  return n
}

export function matchKeys(
  state: usize,
  table: usize,
  hashes: usize,
  keys: usize,
  rows: u32,
  mode: u32,
  outLeft: usize,
  outRight: usize,
  limit: u32,
): u32 {
  if (load<u32>(table, 16) == 8) return matchWords<u64>(state, table, hashes, keys, rows, mode, outLeft, outRight, limit)
  return matchWords<u32>(state, table, hashes, keys, rows, mode, outLeft, outRight, limit)
}

/** Index of a key in a range; that of NULL follows all others; none = outside. */
@inline
function placeInRange<T>(keys: usize, row: u32, min: i64, count: u32): u32 {
  const key = <i64>load<T>(keys + <usize>row * sizeof<T>())
  if (key == (sizeof<T>() == 8 ? i64.MIN_VALUE : <i64>i32.MIN_VALUE)) return count
  const place = <u64>(key - min)
  return place < <u64>count ? <u32>place : none
}

@inline
function fillPlaces<T>(range: usize, keys: usize, from: u32, to: u32): u32 {
  const min = load<i64>(range)
  const count = load<u32>(range, 8)
  const map = <usize>load<u32>(range, 12)
  for (let row = from; row < to; row++) {
    const place = placeInRange<T>(keys, row, min, count)
    if (at32(map, place) != none) return 0
    put32(map, place, row)
  }
  return 1
}

export function fillRange(range: usize, width: u32, keys: usize, from: u32, to: u32): u32 {
  return width == 8 ? fillPlaces<i64>(range, keys, from, to) : fillPlaces<i32>(range, keys, from, to)
}

@inline
function matchPlaces<T>(
  state: usize,
  range: usize,
  keys: usize,
  rows: u32,
  mode: u32,
  outLeft: usize,
  outRight: usize,
  limit: u32,
): u32 {
  const min = load<i64>(range)
  const count = load<u32>(range, 8)
  const map = <usize>load<u32>(range, 12)
  let row = load<u32>(state)
  let taken = load<u32>(state, 4)
  let n: u32 = 0
  for (; row < rows && n < limit; row++) {
    const place = placeInRange<T>(keys, row, min, count)
    const found = place == none ? none : at32(map, place)
    put32(outLeft, n, row)
    put32(outRight, n, taken == 0 ? found : none)
    n += found != none || mode != 0 ? 1 : 0
    if (mode != 2) continue
    // A row with a match gets no pair with none.
    taken = taken == 0 && found != none ? 1 : 0
    if (taken == 1) row--
  }
  store<u32>(state, row)
  store<u32>(state, taken, 4)
  return n
}

export function matchRange(
  state: usize,
  range: usize,
  width: u32,
  keys: usize,
  rows: u32,
  mode: u32,
  outLeft: usize,
  outRight: usize,
  limit: u32,
): u32 {
  if (width == 8) return matchPlaces<i64>(state, range, keys, rows, mode, outLeft, outRight, limit)
  return matchPlaces<i32>(state, range, keys, rows, mode, outLeft, outRight, limit)
}

export function repeatsKeys(table: usize, from: u32, to: u32): u32 {
  const starts = <usize>load<u32>(table)
  const stored = <usize>load<u32>(table, 12)
  const wide = load<u32>(table, 16) == 8
  for (let bucket = from; bucket < to; bucket++) {
    const end = at32(starts, bucket + 1)
    for (let p = at32(starts, bucket); p < end; p++) {
      for (let q = p + 1; q < end; q++) {
        if (wide ? at64(stored, p) == at64(stored, q) : at32(stored, p) == at32(stored, q)) return 1
      }
    }
  }
  return 0
}

/** Compares values; kinds are hashKinds of engine/kernels/aggregate.ts. */
function equalValues(kind: u32, p: usize, q: usize): bool {
  if (kind == 2) return load<u64>(p) == load<u64>(q)
  if (kind == 3) return load<u32>(p) == load<u32>(q)
  if (kind == 0) {
    const a = load<f64>(p)
    const b = load<f64>(q)
    return a == b || (a != a && b != b)
  }
  if (kind == 6) {
    const bytes = load<i32>(p, 4)
    if (bytes != load<i32>(q, 4)) return false
    return bytes <= 0 || memory.compare(<usize>load<u32>(p), <usize>load<u32>(q), <usize>bytes) == 0
  }
  return memory.compare(p, q, kind == 7 ? 16 : 32) == 0
}

export function keepEqual(kind: u32, left: usize, right: usize, leftRows: usize, rightRows: usize, count: u32): u32 {
  const shift: usize = kind == 3 ? 2 : kind == 7 ? 4 : kind == 8 ? 5 : 3
  let n: u32 = 0
  for (let i: u32 = 0; i < count; i++) {
    const a = at32(leftRows, i)
    const b = at32(rightRows, i)
    if (b != none && !equalValues(kind, left + (<usize>a << shift), right + (<usize>b << shift))) continue
    put32(leftRows, n, a)
    put32(rightRows, n, b)
    n++
  }
  return n
}

export function settle(state: usize, mask: usize, left: usize, right: usize, count: u32): u32 {
  let matched = load<u32>(state)
  let n: u32 = 0
  for (let i: u32 = 0; i < count; i++) {
    const a = at32(left, i)
    const b = at32(right, i)
    if (b == none) {
      if (matched == a + 1) continue
    } else {
      if (load<u8>(mask + <usize>i) == 0) continue
      matched = a + 1
    }
    put32(left, n, a)
    put32(right, n, b)
    n++
  }
  store<u32>(state, matched)
  return n
}

export function markRows(rows: usize, count: u32, marks: usize): void {
  for (let i: u32 = 0; i < count; i++) {
    const row = at32(rows, i)
    if (row != none) store<u8>(marks + <usize>row, 1)
  }
}

export function rowsMarked(marks: usize, wanted: u32, from: u32, to: u32, limit: u32, out: usize): u32 {
  let n: u32 = 0
  for (let row = from; row < to && n < limit; row++) {
    if (<u32>load<u8>(marks + <usize>row) != wanted) continue
    put32(out, n, row)
    n++
  }
  return n
}

export function renumber(values: usize, count: u32, map: usize): void {
  for (let i: u32 = 0; i < count; i++) {
    const row = at32(values, i)
    if (row != none) put32(values, i, at32(map, row))
  }
}

// --- by time -------------------------------------------------------------------------------------------------------

export function asof(state: usize): u32 {
  const leftTs = <usize>load<u32>(state)
  const leftCodes = <usize>load<u32>(state, 4)
  const leftRows = load<u32>(state, 8)
  let i = load<u32>(state, 12)
  const rightTs = <usize>load<u32>(state, 16)
  const rightCodes = <usize>load<u32>(state, 20)
  const rightRows = load<u32>(state, 24)
  let j = load<u32>(state, 28)
  const last = <usize>load<u32>(state, 32)
  const first = load<u32>(state, 36)
  const strict = load<u32>(state, 40) != 0
  const complete = load<u32>(state, 44) != 0
  const tolerance = load<i64>(state, 48)
  const out = <usize>load<u32>(state, 56)
  for (; i < leftRows; i++) {
    const t = at64(leftTs, i)
    for (; j < rightRows; j++) {
      const r = at64(rightTs, j)
      if (strict ? r >= t : r > t) break
      if (r != noTime) put32(last, at32(rightCodes, j - first), j)
    }
    if (j == rightRows && !complete) break
    let row = t == noTime ? none : at32(last, at32(leftCodes, i))
    if (row != none && tolerance >= 0 && t - at64(rightTs, row) > tolerance) row = none
    put32(out, i, row)
  }
  store<u32>(state, i, 12)
  store<u32>(state, j, 28)
  return i
}

export function splice(state: usize, outLeft: usize, outRight: usize, limit: u32): u32 {
  const leftTs = <usize>load<u32>(state)
  const leftCodes = <usize>load<u32>(state, 4)
  const leftRows = load<u32>(state, 8)
  let i = load<u32>(state, 12)
  const rightTs = <usize>load<u32>(state, 16)
  const rightCodes = <usize>load<u32>(state, 20)
  const rightRows = load<u32>(state, 24)
  let j = load<u32>(state, 28)
  const lastLeft = <usize>load<u32>(state, 32)
  const lastRight = <usize>load<u32>(state, 36)
  let leftEnd = load<u32>(state, 40)
  let rightEnd = load<u32>(state, 44)
  let n: u32 = 0
  while (n < limit) {
    if (i < leftEnd) {
      put32(outLeft, n, i)
      put32(outRight, n, at32(lastRight, at32(leftCodes, i)))
      i++
      n++
    } else if (j < rightEnd) {
      const code = at32(rightCodes, j)
      const row = at32(lastLeft, code)
      // A left row of this timestamp may already have been written with the last right row.
      if (row == none || at64(leftTs, row) != at64(rightTs, j) || at32(lastRight, code) != j) {
        put32(outLeft, n, row)
        put32(outRight, n, j)
        n++
      }
      j++
    } else {
      if (i == leftRows && j == rightRows) break
      const t = i == leftRows ? at64(rightTs, j) : j == rightRows ? at64(leftTs, i) : min(at64(leftTs, i), at64(rightTs, j))
      for (; leftEnd < leftRows && at64(leftTs, leftEnd) == t; leftEnd++) put32(lastLeft, at32(leftCodes, leftEnd), leftEnd)
      for (; rightEnd < rightRows && at64(rightTs, rightEnd) == t; rightEnd++) {
        put32(lastRight, at32(rightCodes, rightEnd), rightEnd)
      }
    }
  }
  store<u32>(state, i, 12)
  store<u32>(state, j, 28)
  store<u32>(state, leftEnd, 40)
  store<u32>(state, rightEnd, 44)
  return n
}
