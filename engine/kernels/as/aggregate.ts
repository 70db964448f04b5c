// The WebAssembly kernel of aggregation: adds the values of columns to accumulators such as sums, and gives each
// distinct key of GROUP BY a number by means of a hash table. engine/kernels/aggregate.ts defines the interface and the
// structures.

import { mix } from './shared/mix'
import { sameBytes } from './shared/symbols'

const none: u32 = 0xffffffff
const chunk: usize = 8192

// Kinds of values.
const kindF64: u32 = 0
const kindF32: u32 = 1
const kindI64: u32 = 2
const kindI32: u32 = 3
const kindI16: u32 = 4

// --- whole columns -------------------------------------------------------------------------------------------------

/** Lane masks of rows r and r + 1. */
@inline
function laneMask(mask: usize, r: usize): v128 {
  const m = v128.load16_splat(mask + r)
  return i64x2.extend_low_i32x4_s(i32x4.extend_low_i16x8_s(i16x8.extend_low_i8x16_s(m)))
}

@inline
function doubles<MASKED>(values: usize, mask: usize, rows: usize, extremes: bool, stats: usize): void {
  const top = f64x2.splat(Infinity)
  const bottom = f64x2.splat(-Infinity)
  let sum0 = f64x2.splat(0)
  let sum1 = sum0
  let count0 = i64x2.splat(0)
  let count1 = count0
  let low0 = top
  let low1 = top
  let high0 = bottom
  let high1 = bottom
  const quads = rows & ~3
  let r: usize = 0
  for (; r < quads; r += 4) {
    const x = v128.load(values + (r << 3))
    const y = v128.load(values + (r << 3), 16)
    let a = f64x2.eq(x, x)
    let b = f64x2.eq(y, y)
    if (isManaged<MASKED>()) {
      a = v128.and(a, laneMask(mask, r))
      b = v128.and(b, laneMask(mask, r + 2))
    }
    sum0 = f64x2.add(sum0, v128.and(x, a))
    sum1 = f64x2.add(sum1, v128.and(y, b))
    count0 = i64x2.sub(count0, a)
    count1 = i64x2.sub(count1, b)
    if (extremes) {
      low0 = f64x2.pmin(low0, v128.bitselect(x, top, a))
      low1 = f64x2.pmin(low1, v128.bitselect(y, top, b))
      high0 = f64x2.pmax(high0, v128.bitselect(x, bottom, a))
      high1 = f64x2.pmax(high1, v128.bitselect(y, bottom, b))
    }
  }
  sum0 = f64x2.add(sum0, sum1)
  count0 = i64x2.add(count0, count1)
  const low = f64x2.pmin(low0, low1)
  const high = f64x2.pmax(high0, high1)
  let sum = f64x2.extract_lane(sum0, 0) + f64x2.extract_lane(sum0, 1)
  let n = i64x2.extract_lane(count0, 0) + i64x2.extract_lane(count0, 1)
  let least = min(f64x2.extract_lane(low, 0), f64x2.extract_lane(low, 1))
  let most = max(f64x2.extract_lane(high, 0), f64x2.extract_lane(high, 1))
  for (; r < rows; r++) {
    const x = load<f64>(values + (r << 3))
    if (x != x) continue
    if (isManaged<MASKED>() && load<u8>(mask + r) == 0) continue
    sum += x
    n++
    if (x < least) least = x
    if (x > most) most = x
  }
  store<f64>(stats, load<f64>(stats) + sum)
  store<i64>(stats, load<i64>(stats, 8) + n, 8)
  if (extremes) {
    store<f64>(stats, min(load<f64>(stats, 16), least), 16)
    store<f64>(stats, max(load<f64>(stats, 24), most), 24)
  }
}

// A managed type means "with a mask", so that the compiler generates each variant without the other's branch.
class Masked {}

@inline
function longs<MASKED>(values: usize, mask: usize, rows: usize, extremes: bool, stats: usize): void {
  const nothing = i64x2.splat(i64.MIN_VALUE)
  const top = i64x2.splat(i64.MAX_VALUE)
  let sum = i64x2.splat(0)
  let words = i64x2.splat(0)
  let count = i64x2.splat(0)
  let low = top
  let low1 = top
  let high = nothing
  let high1 = nothing
  const quads = rows & ~3
  let r: usize = 0
  for (; r < quads; r += 4) {
    const x = v128.load(values + (r << 3))
    const y = v128.load(values + (r << 3), 16)
    let a = i64x2.ne(x, nothing)
    let b = i64x2.ne(y, nothing)
    if (isManaged<MASKED>()) {
      a = v128.and(a, laneMask(mask, r))
      b = v128.and(b, laneMask(mask, r + 2))
    }
    const xs = v128.and(x, a)
    const ys = v128.and(y, b)
    sum = i64x2.add(sum, i64x2.add(xs, ys))
    words = i64x2.add(words, i64x2.add(i64x2.shr_s(xs, 32), i64x2.shr_s(ys, 32)))
    count = i64x2.sub(count, i64x2.add(a, b))
    if (extremes) {
      // Masked rows are replaced by the neutral element; NULL already is that of the maximum.
      const xl = v128.bitselect(x, top, a)
      const yl = v128.bitselect(y, top, b)
      low = v128.bitselect(xl, low, i64x2.lt_s(xl, low))
      low1 = v128.bitselect(yl, low1, i64x2.lt_s(yl, low1))
      const xh = v128.bitselect(x, nothing, a)
      const yh = v128.bitselect(y, nothing, b)
      high = v128.bitselect(xh, high, i64x2.gt_s(xh, high))
      high1 = v128.bitselect(yh, high1, i64x2.gt_s(yh, high1))
    }
  }
  low = v128.bitselect(low, low1, i64x2.lt_s(low, low1))
  high = v128.bitselect(high, high1, i64x2.gt_s(high, high1))
  let total = i64x2.extract_lane(sum, 0) + i64x2.extract_lane(sum, 1)
  let upper = i64x2.extract_lane(words, 0) + i64x2.extract_lane(words, 1)
  let n = i64x2.extract_lane(count, 0) + i64x2.extract_lane(count, 1)
  let least = min(i64x2.extract_lane(low, 0), i64x2.extract_lane(low, 1))
  let most = max(i64x2.extract_lane(high, 0), i64x2.extract_lane(high, 1))
  for (; r < rows; r++) {
    const x = load<i64>(values + (r << 3))
    if (x == i64.MIN_VALUE) continue
    if (isManaged<MASKED>() && load<u8>(mask + r) == 0) continue
    total += x
    upper += x >> 32
    n++
    least = min(least, x)
    most = max(most, x)
  }
  store<i64>(stats, load<i64>(stats, 32) + upper, 32)
  addLongs(stats, total, n, least, most)
}

@inline
function addLongs(stats: usize, sum: i64, count: i64, least: i64, most: i64): void {
  store<i64>(stats, load<i64>(stats) + sum)
  store<i64>(stats, load<i64>(stats, 8) + count, 8)
  store<i64>(stats, min(load<i64>(stats, 16), least), 16)
  store<i64>(stats, max(load<i64>(stats, 24), most), 24)
}

/** Folds narrow integers one by one. `nothing` is NULL, or a value that does not occur. */
@inline
function integers<T>(values: usize, mask: usize, rows: usize, nothing: i64, stats: usize): void {
  let sum: i64 = 0
  let count: i64 = 0
  let least: i64 = i64.MAX_VALUE
  let most: i64 = i64.MIN_VALUE
  for (let r: usize = 0; r < rows; r++) {
    if (mask != 0 && load<u8>(mask + r) == 0) continue
    const x = <i64>load<T>(values + r * sizeof<T>())
    if (x == nothing) continue
    sum += x
    count++
    least = min(least, x)
    most = max(most, x)
  }
  addLongs(stats, sum, count, least, most)
}

function ints(values: usize, rows: usize, stats: usize): void {
  const nothing = i32x4.splat(i32.MIN_VALUE)
  let sum = i64x2.splat(0)
  let count: i64 = 0
  let low = i32x4.splat(i32.MAX_VALUE)
  let high = i32x4.splat(i32.MIN_VALUE)
  const quads = rows & ~3
  for (let r: usize = 0; r < quads; r += 4) {
    const x = v128.load(values + (r << 2))
    const taken = i32x4.ne(x, nothing)
    const kept = v128.and(x, taken)
    sum = i64x2.add(sum, i64x2.add(i64x2.extend_low_i32x4_s(kept), i64x2.extend_high_i32x4_s(kept)))
    count += <i64>popcnt(i32x4.bitmask(taken))
    low = i32x4.min_s(low, v128.bitselect(x, low, taken))
    high = i32x4.max_s(high, v128.bitselect(x, high, taken))
  }
  if (count > 0) {
    const least = min(min(i32x4.extract_lane(low, 0), i32x4.extract_lane(low, 1)), min(i32x4.extract_lane(low, 2), i32x4.extract_lane(low, 3)))
    const most = max(max(i32x4.extract_lane(high, 0), i32x4.extract_lane(high, 1)), max(i32x4.extract_lane(high, 2), i32x4.extract_lane(high, 3)))
    addLongs(stats, i64x2.extract_lane(sum, 0) + i64x2.extract_lane(sum, 1), count, <i64>least, <i64>most)
  }
  integers<i32>(values + (quads << 2), 0, rows - quads, i32.MIN_VALUE, stats)
}

function floats(values: usize, mask: usize, rows: usize, stats: usize): void {
  let sum: f64 = 0
  let count: i64 = 0
  let least = load<f64>(stats, 16)
  let most = load<f64>(stats, 24)
  for (let r: usize = 0; r < rows; r++) {
    const x = <f64>load<f32>(values + (r << 2))
    if (x != x || (mask != 0 && load<u8>(mask + r) == 0)) continue
    sum += x
    count++
    if (x < least) least = x
    if (x > most) most = x
  }
  store<f64>(stats, load<f64>(stats) + sum)
  store<i64>(stats, load<i64>(stats, 8) + count, 8)
  store<f64>(stats, least, 16)
  store<f64>(stats, most, 24)
}

export function statsChunk(kind: u32, values: usize, mask: usize, rows: usize, stats: usize): void {
  if (kind == kindF64) {
    if (mask) doubles<Masked>(values, mask, rows, true, stats)
    else doubles<i32>(values, 0, rows, true, stats)
  } else if (kind == kindI64) {
    if (mask) longs<Masked>(values, mask, rows, true, stats)
    else longs<i32>(values, 0, rows, true, stats)
  } else if (kind == kindF32) floats(values, mask, rows, stats)
  else if (kind == kindI32) {
    if (mask) integers<i32>(values, mask, rows, i32.MIN_VALUE, stats)
    else ints(values, rows, stats)
  } else if (kind == kindI16) integers<i16>(values, mask, rows, i64.MIN_VALUE, stats)
  else integers<i8>(values, mask, rows, i64.MIN_VALUE, stats)
}

export function sumChunk(kind: u32, values: usize, mask: usize, rows: usize, stats: usize): void {
  if (kind == kindF64) {
    if (mask) doubles<Masked>(values, mask, rows, false, stats)
    else doubles<i32>(values, 0, rows, false, stats)
  } else if (kind == kindI64) {
    const least = load<i64>(stats, 16)
    const most = load<i64>(stats, 24)
    if (mask) longs<Masked>(values, mask, rows, false, stats)
    else longs<i32>(values, 0, rows, false, stats)
    store<i64>(stats, least, 16)
    store<i64>(stats, most, 24)
  } else {
    const least = load<i64>(stats, 16)
    const most = load<i64>(stats, 24)
    statsChunk(kind, values, mask, rows, stats)
    store<i64>(stats, least, 16)
    store<i64>(stats, most, 24)
  }
}

@inline
function widthOf(kind: u32): usize {
  return kind == kindF64 || kind == kindI64 ? 8 : kind == kindF32 || kind == kindI32 ? 4 : kind == kindI16 ? 2 : 1
}

export function stats(kind: u32, values: usize, mask: usize, rows: usize, out: usize): void {
  const width = widthOf(kind)
  for (let r: usize = 0; r < rows; r += chunk) statsChunk(kind, values + r * width, mask ? mask + r : 0, min(chunk, rows - r), out)
}

export function sum(kind: u32, values: usize, mask: usize, rows: usize, out: usize): void {
  const width = widthOf(kind)
  for (let r: usize = 0; r < rows; r += chunk) sumChunk(kind, values + r * width, mask ? mask + r : 0, min(chunk, rows - r), out)
}

@inline
function isNull(kind: u32, values: usize, r: usize): bool {
  if (kind == kindF64) {
    const x = load<f64>(values + (r << 3))
    return x != x
  }
  if (kind == kindF32) {
    const x = load<f32>(values + (r << 2))
    return x != x
  }
  if (kind == kindI64) return load<i64>(values + (r << 3)) == i64.MIN_VALUE
  return kind == kindI32 ? load<i32>(values + (r << 2)) == i32.MIN_VALUE : false
}

// --- groups by number ----------------------------------------------------------------------------------------------

/** The row's group; `none` if the row is masked or its number is out of range. */
@inline
function groupOf(ids: usize, mask: usize, r: usize, groups: u32): u32 {
  const id = load<u32>(ids + (r << 2))
  return id >= groups || (mask != 0 && load<u8>(mask + r) == 0) ? none : id
}

/** Adds {x, 1} to the group's cell; a NaN adds {0, 0}, so that there is no branch to mispredict. */
@inline
function addDouble(values: usize, id: u32, groups: u32, sums: usize): void {
  if (id >= groups) return
  const x = v128.load64_splat(values)
  const cell = sums + (<usize>id << 4)
  v128.store(cell, f64x2.add(v128.load(cell), v128.and(f64x2.replace_lane(x, 1, 1.0), f64x2.eq(x, x))))
}

function groupSumsF64(values: usize, ids: usize, mask: usize, rows: usize, groups: u32, sums: usize): void {
  if (mask) {
    for (let r: usize = 0; r < rows; r++) addDouble(values + (r << 3), groupOf(ids, mask, r, groups), groups, sums)
    return
  }
  const pairs = rows & ~1
  let r: usize = 0
  for (; r < pairs; r += 2) {
    const both = load<u64>(ids + (r << 2))
    addDouble(values + (r << 3), <u32>both, groups, sums)
    addDouble(values + (r << 3) + 8, <u32>(both >> 32), groups, sums)
  }
  if (r < rows) addDouble(values + (r << 3), load<u32>(ids + (r << 2)), groups, sums)
}

@inline
function groupSumsInteger<T>(kind: u32, values: usize, ids: usize, mask: usize, rows: usize, groups: u32, sums: usize): void {
  for (let r: usize = 0; r < rows; r++) {
    const id = groupOf(ids, mask, r, groups)
    if (id == none || isNull(kind, values, r)) continue
    const cell = sums + (<usize>id << 4)
    v128.store(cell, i64x2.add(v128.load(cell), i64x2.replace_lane(i64x2.splat(1), 0, <i64>load<T>(values + r * sizeof<T>()))))
  }
}

/** Cells of three words; the third one has the sum of the high words. */
function groupSumsLong(values: usize, ids: usize, mask: usize, rows: usize, groups: u32, sums: usize): void {
  for (let r: usize = 0; r < rows; r++) {
    const id = groupOf(ids, mask, r, groups)
    const x = load<i64>(values + (r << 3))
    if (id == none || x == i64.MIN_VALUE) continue
    const cell = sums + <usize>id * 24
    v128.store(cell, i64x2.add(v128.load(cell), i64x2.replace_lane(i64x2.splat(1), 0, x)))
    store<i64>(cell, load<i64>(cell, 16) + (x >> 32), 16)
  }
}

export function groupSums(kind: u32, values: usize, ids: usize, mask: usize, rows: usize, groups: u32, sums: usize): void {
  if (kind == kindF64) groupSumsF64(values, ids, mask, rows, groups, sums)
  else if (kind == kindI64) groupSumsLong(values, ids, mask, rows, groups, sums)
  else if (kind == kindI32) groupSumsInteger<i32>(kindI32, values, ids, mask, rows, groups, sums)
  else if (kind == kindI16) groupSumsInteger<i16>(kindI16, values, ids, mask, rows, groups, sums)
  else if (kind != kindF32) groupSumsInteger<i8>(5, values, ids, mask, rows, groups, sums)
  else {
    for (let r: usize = 0; r < rows; r++) {
      const id = groupOf(ids, mask, r, groups)
      const x = <f64>load<f32>(values + (r << 2))
      if (id == none || x != x) continue
      const cell = sums + (<usize>id << 4)
      store<f64>(cell, load<f64>(cell) + x)
      store<f64>(cell, load<f64>(cell, 8) + 1, 8)
    }
  }
}

@inline
function groupExtremesOf<T, W>(kind: u32, values: usize, ids: usize, mask: usize, rows: usize, groups: u32, extremes: usize): void {
  for (let r: usize = 0; r < rows; r++) {
    const id = groupOf(ids, mask, r, groups)
    if (id == none || isNull(kind, values, r)) continue
    const cell = extremes + (<usize>id << 4)
    const x = <W>load<T>(values + r * sizeof<T>())
    if (x < load<W>(cell)) store<W>(cell, x)
    if (x > load<W>(cell, 8)) store<W>(cell, x, 8)
  }
}

export function groupExtremes(kind: u32, values: usize, ids: usize, mask: usize, rows: usize, groups: u32, extremes: usize): void {
  if (kind == kindF64) groupExtremesOf<f64, f64>(kindF64, values, ids, mask, rows, groups, extremes)
  else if (kind == kindF32) groupExtremesOf<f32, f64>(kindF32, values, ids, mask, rows, groups, extremes)
  else if (kind == kindI64) groupExtremesOf<i64, i64>(kindI64, values, ids, mask, rows, groups, extremes)
  else if (kind == kindI32) groupExtremesOf<i32, i64>(kindI32, values, ids, mask, rows, groups, extremes)
  else if (kind == kindI16) groupExtremesOf<i16, i64>(kindI16, values, ids, mask, rows, groups, extremes)
  else groupExtremesOf<i8, i64>(5, values, ids, mask, rows, groups, extremes)
}

export function groupCounts(ids: usize, mask: usize, rows: usize, groups: u32, counts: usize): void {
  for (let r: usize = 0; r < rows; r++) {
    const id = groupOf(ids, mask, r, groups)
    if (id == none) continue
    const cell = counts + (<usize>id << 3)
    store<i64>(cell, load<i64>(cell) + 1)
  }
}

export function groupRows(ids: usize, mask: usize, rows: usize, groups: u32, firstRow: u32, cells: usize): void {
  for (let r: usize = 0; r < rows; r++) {
    const id = groupOf(ids, mask, r, groups)
    if (id == none) continue
    const cell = cells + (<usize>id << 3)
    if (load<u32>(cell) == none) store<u32>(cell, firstRow + <u32>r)
    store<u32>(cell, firstRow + <u32>r, 4)
  }
}

// --- group numbers -------------------------------------------------------------------------------------------------

export function combineIds(ids: usize, rows: usize, cardinality: u32, previous: usize, out: usize): void {
  for (let r: usize = 0; r < rows; r++) {
    const before = previous ? load<u32>(previous + (r << 2)) : 0
    store<u32>(out + (r << 2), before * cardinality + load<u32>(ids + (r << 2)) + 1)
  }
}

export function pairIds(low: usize, high: usize, rows: usize, out: usize): void {
  for (let r: usize = 0; r < rows; r++) {
    store<u32>(out + (r << 3), load<u32>(low + (r << 2)))
    store<u32>(out + (r << 3), high ? load<u32>(high + (r << 2)) : 0, 4)
  }
}

export function fillWithin(ts: usize, from: usize, rows: usize, low: i64, last: i64, width: u32, value: i64, out: usize): usize {
  let r = from
  if (width == 4) {
    for (; r < rows; r++) {
      const t = load<i64>(ts + (r << 3))
      if (t < low || t > last) break
      store<i32>(out + (r << 2), <i32>value)
    }
    return r
  }
  for (; r < rows; r++) {
    const t = load<i64>(ts + (r << 3))
    if (t < low || t > last) break
    store<i64>(out + (r << 3), value)
  }
  return r
}

/** Prefetches the slots of the next keys, so that their cache misses overlap. The result only keeps the loads alive. */
@inline
function touchSlots(slots: usize, slotMask: u32, keys: usize, rows: u32): u32 {
  let sink: u32 = 0
  const end = keys + (<usize>rows << 3)
  for (; keys < end; keys += 8) sink |= load<u32>(slots + (<usize>(mix(load<u64>(keys)) & slotMask) << 4), 8)
  return sink
}

/** Smaller tables stay in the cache and need no prefetch. */
const touchFrom: u32 = 16384
const touchRows: u32 = 64
/** Keeps touchSlots from being optimised away. */
export let touched: u32 = 0

export function numberKeys8(table: usize, keys: usize, mask: usize, rows: u32, ids: usize): u32 {
  const slots = <usize>load<u32>(table)
  const slotMask = load<u32>(table, 4)
  const distinct = <usize>load<u32>(table, 16)
  const countMax = load<u32>(table, 12)
  let n = load<u32>(table, 8)
  let r: u32 = 0
  // Rows in time order often repeat the last key.
  let last: u64 = 0
  let lastId: u32 = 0
  for (; r < rows; r++) {
    const row = <usize>r
    if ((r & (touchRows - 1)) == 0 && slotMask > touchFrom) touched = touchSlots(slots, slotMask, keys + (row << 3), min(touchRows, rows - r))
    if (mask != 0 && load<u8>(mask + row) == 0) {
      store<u32>(ids + (row << 2), none)
      continue
    }
    const key = load<u64>(keys + (row << 3))
    if (lastId != 0 && key == last) {
      store<u32>(ids + (row << 2), lastId - 1)
      continue
    }
    let slot = slots + (<usize>(mix(key) & slotMask) << 4)
    let id = load<u32>(slot, 8)
    while (id != 0 && load<u64>(slot) != key) {
      slot = slots + ((slot - slots + 16) & ((<usize>slotMask << 4) | 15))
      id = load<u32>(slot, 8)
    }
    if (id == 0) {
      if (n >= countMax) break
      store<u64>(slot, key)
      store<u64>(distinct + (<usize>n << 3), key)
      id = ++n
      store<u32>(slot, id, 8)
    }
    last = key
    lastId = id
    store<u32>(ids + (row << 2), id - 1)
  }
  store<u32>(table, n, 8)
  return r
}

@inline
function hash128(p: usize): u32 {
  return mix(load<u64>(p) ^ (load<u64>(p, 8) * 0xff51afd7ed558ccd))
}

export function numberKeys16(table: usize, keys: usize, mask: usize, rows: u32, ids: usize): u32 {
  const slots = <usize>load<u32>(table)
  const slotMask = load<u32>(table, 4)
  const distinct = <usize>load<u32>(table, 16)
  const countMax = load<u32>(table, 12)
  let n = load<u32>(table, 8)
  let r: u32 = 0
  for (; r < rows; r++) {
    const row = <usize>r
    if (mask != 0 && load<u8>(mask + row) == 0) {
      store<u32>(ids + (row << 2), none)
      continue
    }
    const key = v128.load(keys + (row << 4))
    const hash = hash128(keys + (row << 4))
    let at = hash & slotMask
    let id: u32 = 0
    for (;;) {
      const slot = slots + (<usize>at << 3)
      id = load<u32>(slot, 4)
      if (id == 0) {
        if (n >= countMax) {
          store<u32>(table, n, 8)
          return r
        }
        v128.store(distinct + (<usize>n << 4), key)
        id = ++n
        store<u32>(slot, hash)
        store<u32>(slot, id, 4)
        break
      }
      if (load<u32>(slot) == hash && !v128.any_true(v128.xor(v128.load(distinct + (<usize>(id - 1) << 4)), key))) break
      at = (at + 1) & slotMask
    }
    store<u32>(ids + (row << 2), id - 1)
  }
  store<u32>(table, n, 8)
  return r
}

function textHash(p: usize, bytes: i32): u32 {
  let h = <u64>bytes * 0x9e3779b97f4a7c15
  if (bytes < 0) return mix(h)
  const end = p + <usize>bytes
  for (; p + 8 <= end; p += 8) {
    h = (h ^ load<u64>(p)) * 0xff51afd7ed558ccd
    h ^= h >> 32
  }
  if (p < end) {
    h = (h ^ (load<u64>(p) & ((<u64>1 << (<u64>(end - p) << 3)) - 1))) * 0xff51afd7ed558ccd
    h ^= h >> 32
  }
  return mix(h)
}

/** Copies a new key's bytes to the heap; false if it is full. */
function keepText(table: usize, entry: usize, p: usize, bytes: i32): bool {
  store<u32>(entry, 0)
  store<i32>(entry, bytes, 4)
  if (bytes <= 0) return true
  const heap = load<u32>(table, 20)
  if (<u64>heap + <u64>bytes + 16 > <u64>load<u32>(table, 24)) return false
  memory.copy(<usize>heap, p, <usize>bytes)
  store<u32>(entry, heap)
  store<u32>(table, heap + <u32>bytes, 20)
  return true
}

/** Writes the hashes of the next strings to ids, and prefetches what each will be compared with. */
function hashStrings(slots: usize, slotMask: u32, entries: usize, rows: u32, ids: usize): u32 {
  let sink: u32 = 0
  for (let r: usize = 0; r < rows; r++) {
    const entry = entries + (r << 3)
    const hash = textHash(<usize>load<u32>(entry), load<i32>(entry, 4))
    store<u32>(ids + (r << 2), hash)
    if (slotMask > touchFrom) sink |= load<u32>(slots + (<usize>(hash & slotMask) << 4), 4)
  }
  if (slotMask <= touchFrom) return sink
  for (let r: usize = 0; r < rows; r++) {
    const slot = slots + (<usize>(load<u32>(ids + (r << 2)) & slotMask) << 4)
    if (load<i32>(slot, 12) > 0) sink |= <u32>load<u8>(<usize>load<u32>(slot, 8))
  }
  return sink
}

/** Slots: {hash u32, id + 1 u32, address u32, bytes i32}. */
export function internStrings(table: usize, entries: usize, mask: usize, rows: u32, ids: usize): u32 {
  const slots = <usize>load<u32>(table)
  const slotMask = load<u32>(table, 4)
  const distinct = <usize>load<u32>(table, 16)
  const countMax = load<u32>(table, 12)
  let n = load<u32>(table, 8)
  let r: u32 = 0
  for (; r < rows; r++) {
    const row = <usize>r
    if ((r & (touchRows - 1)) == 0)
      touched = hashStrings(slots, slotMask, entries + (row << 3), min(touchRows, rows - r), ids + (row << 2))
    if (mask != 0 && load<u8>(mask + row) == 0) {
      store<u32>(ids + (row << 2), none)
      continue
    }
    const p = <usize>load<u32>(entries + (row << 3))
    const bytes = load<i32>(entries + (row << 3), 4)
    const hash = load<u32>(ids + (row << 2))
    let slot = slots + (<usize>(hash & slotMask) << 4)
    let id: u32 = 0
    for (;;) {
      id = load<u32>(slot, 4)
      if (id == 0) {
        const entry = distinct + (<usize>n << 3)
        if (n >= countMax || !keepText(table, entry, p, bytes)) {
          store<u32>(table, n, 8)
          return r
        }
        id = ++n
        store<u32>(slot, hash)
        store<u32>(slot, id, 4)
        store<u64>(slot, load<u64>(entry), 8)
        break
      }
      if (load<u32>(slot) == hash && load<i32>(slot, 12) == bytes)
        if (bytes <= 0 || sameBytes(<usize>load<u32>(slot, 8), p, bytes)) break
      slot = slots + ((slot - slots + 16) & ((<usize>slotMask << 4) | 15))
    }
    store<u32>(ids + (row << 2), id - 1)
  }
  store<u32>(table, n, 8)
  return r
}

// --- partitions ----------------------------------------------------------------------------------------------------

/** The bytes of a value as a number, with one representation for zero and one for NaN. */
@inline
function plainWord(kind: u32, p: usize): u64 {
  if (kind == kindF64) {
    const x = load<f64>(p)
    return x == 0 ? 0 : x != x ? 0x7ff8000000000000 : reinterpret<u64>(x)
  }
  if (kind == kindF32) {
    const x = load<f32>(p)
    return x == 0 ? 0 : x != x ? 0x7fc00000 : <u64>reinterpret<u32>(x)
  }
  return kind == kindI64 ? load<u64>(p) : kind == kindI32 ? <u64>load<u32>(p) : kind == kindI16 ? <u64>load<u16>(p) : <u64>load<u8>(p)
}

@inline
function hashColumn(kind: u32, width: usize, values: usize, rows: usize, hashes: usize): void {
  for (let r: usize = 0; r < rows; r++) {
    const at = hashes + (r << 2)
    store<u32>(at, mix((<u64>load<u32>(at) << 32) ^ (plainWord(kind, values + r * width) + <u64>load<u32>(at))))
  }
}

@inline
function hashWide(width: usize, values: usize, rows: usize, hashes: usize): void {
  for (let r: usize = 0; r < rows; r++) {
    const at = hashes + (r << 2)
    let word: u64 = 0
    for (let p = values + r * width; p < values + (r + 1) * width; p += 8) word = (word ^ load<u64>(p)) * 0xff51afd7ed558ccd
    store<u32>(at, mix((<u64>load<u32>(at) << 32) ^ word))
  }
}

export function hashKeys(kind: u32, values: usize, rows: usize, hashes: usize): void {
  if (kind == kindI64) hashColumn(kindI64, 8, values, rows, hashes)
  else if (kind == kindF64) hashColumn(kindF64, 8, values, rows, hashes)
  else if (kind == kindI32) hashColumn(kindI32, 4, values, rows, hashes)
  else if (kind == kindF32) hashColumn(kindF32, 4, values, rows, hashes)
  else if (kind == kindI16) hashColumn(kindI16, 2, values, rows, hashes)
  else if (kind == 5) hashColumn(5, 1, values, rows, hashes)
  else if (kind == 7) hashWide(16, values, rows, hashes)
  else if (kind == 8) hashWide(32, values, rows, hashes)
  else {
    for (let r: usize = 0; r < rows; r++) {
      const at = hashes + (r << 2)
      const entry = values + (r << 3)
      store<u32>(at, mix((<u64>load<u32>(at) << 32) ^ <u64>textHash(<usize>load<u32>(entry), load<i32>(entry, 4))))
    }
  }
}

export function spreadRows(hashes: usize, rows: usize, shift: u32, starts: usize, out: usize): void {
  const parts = <usize>1 << (32 - shift)
  memory.fill(starts, 0, (parts + 1) << 2)
  for (let r: usize = 0; r < rows; r++) {
    const at = starts + (<usize>(load<u32>(hashes + (r << 2)) >> shift) << 2)
    store<u32>(at, load<u32>(at, 4) + 1, 4)
  }
  for (let p: usize = 1; p <= parts; p++) store<u32>(starts + (p << 2), load<u32>(starts + (p << 2)) + load<u32>(starts + (p << 2) - 4))
  // Each start advances to its end, and moves back by one place.
  for (let r: usize = 0; r < rows; r++) {
    const at = starts + (<usize>(load<u32>(hashes + (r << 2)) >> shift) << 2)
    const to = load<u32>(at)
    store<u32>(out + (<usize>to << 2), <u32>r)
    store<u32>(at, to + 1)
  }
  for (let p = parts; p > 0; p--) store<u32>(starts + (p << 2), load<u32>(starts + (p << 2) - 4))
  store<u32>(starts, 0)
}

/** The id + 1 of a string, which is added as a key if it is new; 0 if there is no room. */
function idOfText(table: usize, entry: usize): u32 {
  const slots = <usize>load<u32>(table)
  const slotMask = load<u32>(table, 4)
  const n = load<u32>(table, 8)
  const p = <usize>load<u32>(entry)
  const bytes = load<i32>(entry, 4)
  const hash = textHash(p, bytes)
  let slot = slots + (<usize>(hash & slotMask) << 4)
  for (;;) {
    const id = load<u32>(slot, 4)
    if (id == 0) break
    if (load<u32>(slot) == hash && load<i32>(slot, 12) == bytes)
      if (bytes <= 0 || sameBytes(<usize>load<u32>(slot, 8), p, bytes)) return id
    slot = slots + ((slot - slots + 16) & ((<usize>slotMask << 4) | 15))
  }
  const kept = <usize>load<u32>(table, 16) + (<usize>n << 3)
  if (n >= load<u32>(table, 12) || !keepText(table, kept, p, bytes)) return 0
  store<u32>(slot, hash)
  store<u32>(slot, n + 1, 4)
  store<u64>(slot, load<u64>(kept), 8)
  store<u32>(table, n + 1, 8)
  return n + 1
}

export function numberCodes(table: usize, codes: usize, entries: usize, idsByCode: usize, mask: usize, rows: u32, ids: usize): u32 {
  for (let r: u32 = 0; r < rows; r++) {
    const row = <usize>r
    if (mask != 0 && load<u8>(mask + row) == 0) {
      store<u32>(ids + (row << 2), none)
      continue
    }
    const code = <usize>load<u32>(codes + (row << 2))
    let id = load<u32>(idsByCode + (code << 2))
    if (id == 0) {
      id = idOfText(table, entries + (code << 3))
      if (id == 0) return r
      store<u32>(idsByCode + (code << 2), id)
    }
    store<u32>(ids + (row << 2), id - 1)
  }
  return rows
}

export function rehashKeys(table: usize, width: u32): void {
  const slots = <usize>load<u32>(table)
  const slotMask = load<u32>(table, 4)
  const distinct = <usize>load<u32>(table, 16)
  const n = load<u32>(table, 8)
  for (let i: u32 = 0; i < n; i++) {
    if (width == 8) {
      const key = load<u64>(distinct + (<usize>i << 3))
      let at = mix(key) & slotMask
      while (load<u32>(slots + (<usize>at << 4), 8) != 0) at = (at + 1) & slotMask
      store<u64>(slots + (<usize>at << 4), key)
      store<u32>(slots + (<usize>at << 4), i + 1, 8)
      continue
    }
    if (width == 0) {
      const entry = distinct + (<usize>i << 3)
      const hash = textHash(<usize>load<u32>(entry), load<i32>(entry, 4))
      let at = hash & slotMask
      while (load<u32>(slots + (<usize>at << 4), 4) != 0) at = (at + 1) & slotMask
      const slot = slots + (<usize>at << 4)
      store<u32>(slot, hash)
      store<u32>(slot, i + 1, 4)
      store<u64>(slot, load<u64>(entry), 8)
      continue
    }
    const hash = hash128(distinct + (<usize>i << 4))
    let at = hash & slotMask
    while (load<u32>(slots + (<usize>at << 3), 4) != 0) at = (at + 1) & slotMask
    store<u32>(slots + (<usize>at << 3), hash)
    store<u32>(slots + (<usize>at << 3), i + 1, 4)
  }
}
