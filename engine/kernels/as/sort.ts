// The WebAssembly kernel for sorting: sorts rows by a 64-bit timestamp, merges sorted runs, and copies values in the
// order of a list of row numbers. engine/kernels/sort.ts defines the interface.
//
// V8 replaces a running baseline function by its optimised code only at the next call. So loops over many rows are
// split into calls of `chunk` rows. The chunk functions are exported, which keeps the compiler from inlining them.

const chunk: usize = 16384
const histogramBytes: usize = 8 * 1024

@inline
function upTo(i: usize, rows: usize): usize {
  return i + chunk < rows ? i + chunk : rows
}

// --- statistics of a column ----------------------------------------------------------------------------------------

/** Folds rows [from, to) into {min i64, max i64, sorted i64} at out. */
export function summarizeChunk(ts: usize, from: usize, to: usize, out: usize): void {
  let low = load<i64>(out)
  let high = load<i64>(out, 8)
  let last = from == 0 ? load<i64>(ts) : load<i64>(ts + ((from - 1) << 3))
  let fell: i32 = 0
  for (let p = ts + (from << 3), e = ts + (to << 3); p < e; p += 8) {
    const v = load<i64>(p)
    low = v < low ? v : low
    high = v > high ? v : high
    fell |= i32(v < last)
    last = v
  }
  store<i64>(out, low)
  store<i64>(out, high, 8)
  if (fell) store<i64>(out, 0, 16)
}

function summarize(ts: usize, rows: usize, out: usize): void {
  store<i64>(out, i64.MAX_VALUE)
  store<i64>(out, i64.MIN_VALUE, 8)
  store<i64>(out, 1, 16)
  for (let i: usize = 0; i < rows; i += chunk) summarizeChunk(ts, i, upTo(i, rows), out)
}

// --- packed keys: (ts - min) << rowBits | row ----------------------------------------------------------------------

export function packChunk(ts: usize, from: usize, to: usize, low: i64, rowBits: i64, out: usize): void {
  for (let i = from; i < to; i++) store<i64>(out + (i << 3), ((load<i64>(ts + (i << 3)) - low) << rowBits) | <i64>i)
}

/** Counts all digits of the keys [p, e): 256 counters per digit. */
export function countChunk(p: usize, e: usize, shift: u64, digits: i32, histogram: usize): void {
  for (; p < e; p += 8) {
    let k = load<u64>(p) >> shift
    let h = histogram
    for (let d = 0; d < digits; d++) {
      const q = h + ((<usize>k & 255) << 2)
      store<u32>(q, load<u32>(q) + 1)
      k >>= 8
      h += 1024
    }
  }
}

export function scatterChunk(p: usize, e: usize, shift: u64, positions: usize, out: usize): void {
  for (; p < e; p += 8) {
    const v = load<u64>(p)
    const q = positions + ((<usize>(v >> shift) & 255) << 2)
    const o = load<u32>(q)
    store<u32>(q, o + 1)
    store<u64>(out + (<usize>o << 3), v)
  }
}

/** Turns counts into first positions; false if all rows have the same digit, so that the pass can be skipped. */
function positionsOf(histogram: usize, rows: usize): bool {
  let sum: u32 = 0
  for (let j: usize = 0; j < 1024; j += 4) {
    const count = load<u32>(histogram + j)
    if (count == <u32>rows) return false
    store<u32>(histogram + j, sum)
    sum += count
  }
  return true
}

/** Radix-sorts packed keys by the bits from `shift` on; returns the buffer (a or b) with the result. */
function radixPacked(a: usize, b: usize, rows: usize, shift: i32, digits: i32, histogram: usize): usize {
  memory.fill(histogram, 0, histogramBytes)
  for (let i: usize = 0; i < rows; i += chunk) countChunk(a + (i << 3), a + (upTo(i, rows) << 3), <u64>shift, digits, histogram)
  for (let d = 0; d < digits; d++) {
    const positions = histogram + (<usize>d << 10)
    if (!positionsOf(positions, rows)) continue
    const bit = <u64>(shift + (d << 3))
    for (let i: usize = 0; i < rows; i += chunk) scatterChunk(a + (i << 3), a + (upTo(i, rows) << 3), bit, positions, b)
    const t = a
    a = b
    b = t
  }
  return a
}

export function indexChunk(keys: usize, from: usize, to: usize, mask: u64, out: usize): void {
  for (let i = from; i < to; i++) store<u32>(out + (i << 2), <u32>(load<u64>(keys + (i << 3)) & mask))
}

/** Moves keys below the running maximum to `side`, and closes the gaps. Returns the number of moved keys. */
export function splitChunk(p: usize, e: usize, state: usize): void {
  let o = <usize>load<u32>(state)
  let s = <usize>load<u32>(state, 4)
  let high = load<u64>(state, 8)
  for (; p < e; p += 8) {
    const v = load<u64>(p)
    const late = v < high
    store<u64>(o, v)
    store<u64>(s, v)
    o += select<usize>(0, 8, late)
    s += select<usize>(8, 0, late)
    high = select(high, v, late)
  }
  store<u32>(state, <u32>o)
  store<u32>(state, <u32>s, 4)
  store<u64>(state, high, 8)
}

/** Merges up to `chunk` keys of two runs to row numbers; the cursors are in state {a, ae, b, be, out}. */
export function mergeIndexChunk(state: usize, mask: u64): void {
  let a = <usize>load<u32>(state)
  const ae = <usize>load<u32>(state, 4)
  let b = <usize>load<u32>(state, 8)
  const be = <usize>load<u32>(state, 12)
  let o = <usize>load<u32>(state, 16)
  const oe = o + (chunk << 2)
  while (a < ae && b < be && o < oe) {
    const x = load<u64>(a)
    const y = load<u64>(b)
    const first = x <= y
    store<u32>(o, <u32>(select(x, y, first) & mask))
    o += 4
    a += select<usize>(8, 0, first)
    b += select<usize>(0, 8, first)
  }
  store<u32>(state, <u32>a)
  store<u32>(state, <u32>b, 8)
  store<u32>(state, <u32>o, 16)
}

function sortPacked(ts: usize, rows: usize, low: i64, rowBits: i32, valueBits: i32, scratch: usize, out: usize): void {
  const histogram = scratch
  const state = scratch + histogramBytes - 64
  const a = scratch + histogramBytes
  const b = a + (rows << 3) + 64
  const mask = (<u64>1 << <u64>rowBits) - 1
  const digits = (valueBits + 7) >> 3
  for (let i: usize = 0; i < rows; i += chunk) packChunk(ts, i, upTo(i, rows), low, <i64>rowBits, a)
  store<u32>(state, <u32>a)
  store<u32>(state, <u32>b, 4)
  store<u64>(state, load<u64>(a), 8)
  // The split is abandoned when a quarter of the rows is late; radix sorting then starts from newly packed keys.
  let tried: usize = 0
  while (tried < rows) {
    const to = upTo(tried, rows)
    splitChunk(a + (tried << 3), a + (to << 3), state)
    tried = to
    if (((<usize>load<u32>(state, 4) - b) >> 3) * 4 > tried) break
  }
  const late = (<usize>load<u32>(state, 4) - b) >> 3
  if (tried < rows || late * 4 > rows) {
    for (let i: usize = 0; i < rows; i += chunk) packChunk(ts, i, upTo(i, rows), low, <i64>rowBits, a)
    const sorted = radixPacked(a, b, rows, rowBits, digits, histogram)
    for (let i: usize = 0; i < rows; i += chunk) indexChunk(sorted, i, upTo(i, rows), mask, out)
    return
  }
  // The late keys are sorted with the space that they have left as second buffer.
  const side = radixPacked(b, a + ((rows - late) << 3), late, rowBits, digits, histogram)
  mergeIndex(a, rows - late, side, late, mask, state, out)
}

function mergeIndex(a: usize, aRows: usize, b: usize, bRows: usize, mask: u64, state: usize, out: usize): void {
  store<u32>(state, <u32>a)
  store<u32>(state, <u32>(a + (aRows << 3)), 4)
  store<u32>(state, <u32>b, 8)
  store<u32>(state, <u32>(b + (bRows << 3)), 12)
  store<u32>(state, <u32>out, 16)
  while (load<u32>(state) < load<u32>(state, 4) && load<u32>(state, 8) < load<u32>(state, 12)) mergeIndexChunk(state, mask)
  let p = <usize>load<u32>(state)
  let e = <usize>load<u32>(state, 4)
  if (p == e) {
    p = <usize>load<u32>(state, 8)
    e = <usize>load<u32>(state, 12)
  }
  const rest = (e - p) >> 3
  const o = <usize>load<u32>(state, 16)
  for (let i: usize = 0; i < rest; i += chunk) indexChunk(p, i, upTo(i, rest), mask, o)
}

// --- pairs {ts - min u64, row u64}, if the packed key does not fit 64 bits ------------------------------------------

export function pairChunk(ts: usize, from: usize, to: usize, low: i64, out: usize): void {
  for (let i = from; i < to; i++) {
    store<i64>(out + (i << 4), load<i64>(ts + (i << 3)) - low)
    store<u64>(out + (i << 4), <u64>i, 8)
  }
}

export function countPairs(p: usize, e: usize, digits: i32, histogram: usize): void {
  for (; p < e; p += 16) {
    let k = load<u64>(p)
    let h = histogram
    for (let d = 0; d < digits; d++) {
      const q = h + ((<usize>k & 255) << 2)
      store<u32>(q, load<u32>(q) + 1)
      k >>= 8
      h += 1024
    }
  }
}

export function scatterPairs(p: usize, e: usize, shift: u64, positions: usize, out: usize): void {
  for (; p < e; p += 16) {
    const v = v128.load(p)
    const q = positions + ((<usize>(<u64>i64x2.extract_lane(v, 0) >> shift) & 255) << 2)
    const o = load<u32>(q)
    store<u32>(q, o + 1)
    v128.store(out + (<usize>o << 4), v)
  }
}

function sortPairs(ts: usize, rows: usize, low: i64, valueBits: i32, scratch: usize, out: usize): void {
  const histogram = scratch
  let a = scratch + histogramBytes
  let b = a + (rows << 4)
  const digits = (valueBits + 7) >> 3
  memory.fill(histogram, 0, histogramBytes)
  for (let i: usize = 0; i < rows; i += chunk) {
    const to = upTo(i, rows)
    pairChunk(ts, i, to, low, a)
    countPairs(a + (i << 4), a + (to << 4), digits, histogram)
  }
  for (let d = 0; d < digits; d++) {
    const positions = histogram + (<usize>d << 10)
    if (!positionsOf(positions, rows)) continue
    for (let i: usize = 0; i < rows; i += chunk) scatterPairs(a + (i << 4), a + (upTo(i, rows) << 4), <u64>(d << 3), positions, b)
    const t = a
    a = b
    b = t
  }
  for (let i: usize = 0; i < rows; i++) store<u32>(out + (i << 2), load<u32>(a + (i << 4), 8))
}

/** Maps a double to bits whose signed order is that of the numbers: NaN becomes `missing`, both zeros are equal. */
@inline
function doubleWord(v: f64, missing: i64): i64 {
  if (v != v) return missing
  const bits = reinterpret<i64>(v + 0.0)
  return bits ^ ((bits >> 63) & i64.MAX_VALUE)
}

@inline
function wordAt(kind: u32, values: usize, r: usize, missing: i64, nullWord: i64): i64 {
  if (kind == 0) return doubleWord(load<f64>(values + (r << 3)), nullWord)
  if (kind == 1) return doubleWord(<f64>load<f32>(values + (r << 2)), nullWord)
  const word = kind == 2 ? load<i64>(values + (r << 3)) : <i64>load<i32>(values + (r << 2))
  // The largest word is reserved for NULL at the end: no column contains both the smallest integer and NULL.
  return word == missing ? nullWord : word - i64(nullWord == i64.MAX_VALUE)
}

export function orderWords(kind: u32, values: usize, rows: usize, missing: i64, nullWord: i64, turn: i64, out: usize): void {
  for (let r: usize = 0; r < rows; r++) store<i64>(out + (r << 3), wordAt(kind, values, r, missing, nullWord) ^ turn)
}

/** The number with that word. */
@inline
function ofDoubleWord(word: i64): f64 {
  return reinterpret<f64>(word ^ ((word >> 63) & i64.MAX_VALUE))
}

@inline
function withinAt(kind: u32, values: usize, r: usize, end: usize, missing: i64, nullWord: i64, turn: i64, bound: i64, out: usize, n: usize): usize {
  for (; r < end; r++) {
    store<u32>(out + (n << 2), <u32>r)
    n += usize((wordAt(kind, values, r, missing, nullWord) ^ turn) <= bound)
  }
  return n
}

/** For bounds with few rows below them: checks eight rows at once. */
function doublesWithin(values: usize, rows: usize, nullWord: i64, turn: i64, bound: i64, out: usize): usize {
  const limit = f64x2.splat(ofDoubleWord(bound ^ turn))
  const nulls = i64x2.splat((nullWord ^ turn) <= bound ? -1 : 0)
  const descending = i64x2.splat(turn)
  let n: usize = 0
  let r: usize = 0
  for (; r + 8 <= rows; r += 8) {
    let any = i64x2.splat(0)
    for (let i: usize = 0; i < 4; i++) {
      const v = v128.load(values + (r << 3) + (i << 4))
      any = v128.or(any, v128.bitselect(f64x2.ge(v, limit), f64x2.le(v, limit), descending))
      any = v128.or(any, v128.and(f64x2.ne(v, v), nulls))
    }
    if (v128.any_true(any)) n = withinAt(0, values, r, r + 8, 0, nullWord, turn, bound, out, n)
  }
  return withinAt(0, values, r, rows, 0, nullWord, turn, bound, out, n)
}

export function rowsWithin(kind: u32, values: usize, rows: usize, missing: i64, nullWord: i64, turn: i64, bound: i64, out: usize): u32 {
  const number = ofDoubleWord(bound ^ turn)
  if (kind == 0 && number == number) return <u32>doublesWithin(values, rows, nullWord, turn, bound, out)
  return <u32>withinAt(kind, values, 0, rows, missing, nullWord, turn, bound, out, 0)
}

/** Counts each number at two places after its own: prefix sums then become starts, which advance in place. */
export function groupRows(numbers: usize, rows: usize, low: i32, span: u32, starts: usize, out: usize): u32 {
  memory.fill(starts, 0, (<usize>span + 2) << 2)
  for (let r: usize = 0; r < rows; r++) {
    const number = <u32>(load<i32>(numbers + (r << 2)) - low)
    if (number >= span) return 0
    const p = starts + (<usize>number << 2)
    store<u32>(p, load<u32>(p, 8) + 1, 8)
  }
  let sum: u32 = 0
  for (let p = starts + 8, e = starts + ((<usize>span + 2) << 2); p < e; p += 4) {
    sum += load<u32>(p)
    store<u32>(p, sum)
  }
  for (let r: usize = 0; r < rows; r++) {
    const p = starts + (<usize>(load<i32>(numbers + (r << 2)) - low) << 2)
    const place = load<u32>(p, 4)
    store<u32>(p, place + 1, 4)
    store<u16>(out + (<usize>place << 1), <u16>r)
  }
  return 1
}

export function identity(rows: usize, out: usize): void {
  for (let i: usize = 0; i < rows; i++) store<u32>(out + (i << 2), <u32>i)
}

export function sortPermutation(ts: usize, rows: usize, scratch: usize, scratchBytes: usize, out: usize): i32 {
  if (scratchBytes < histogramBytes) return -1
  summarize(ts, rows, scratch)
  const low = load<i64>(scratch)
  if (rows < 2 || load<i64>(scratch, 16) == 1) {
    identity(rows, out)
    return 1
  }
  const valueBits = 64 - <i32>clz(load<i64>(scratch, 8) - low)
  const rowBits = 32 - <i32>clz(<u32>rows - 1)
  if (valueBits + rowBits <= 64) {
    if (<u64>scratchBytes < <u64>histogramBytes + (<u64>rows << 4) + 128) return -1
    sortPacked(ts, rows, low, rowBits, valueBits, scratch, out)
    return 0
  }
  if (<u64>scratchBytes < <u64>histogramBytes + (<u64>rows << 5)) return -1
  sortPairs(ts, rows, low, valueBits, scratch, out)
  return 0
}

// --- merging -------------------------------------------------------------------------------------------------------

/** First index in [from, to) of sorted values with a value above v (orEqual: at or above). */
@inline
function boundary(ts: usize, from: u32, to: u32, v: i64, orEqual: bool): u32 {
  let step: u32 = 1
  let low = from
  while (low + step < to) {
    const x = load<i64>(ts + (<usize>(low + step) << 3))
    if (orEqual ? x >= v : x > v) break
    low += step
    step <<= 1
  }
  let high = low + step < to ? low + step : to
  while (low < high) {
    const middle = (low + high) >> 1
    const x = load<i64>(ts + (<usize>middle << 3))
    if (orEqual ? x >= v : x > v) high = middle
    else low = middle + 1
  }
  return low
}

export function lowerBound(ts: usize, from: u32, to: u32, v: i64): u32 {
  return boundary(ts, from, to, v, true)
}

export function upperBound(ts: usize, from: u32, to: u32, v: i64): u32 {
  return boundary(ts, from, to, v, false)
}

/** RUN {ts u32, rows u32, cursor u32, 0}: writes up to `limit` rows {run u8, row u32} in order; ties by run. */
export function mergeRuns(runs: usize, count: u32, limit: u32, outRun: usize, outRow: usize): u32 {
  let done: u32 = 0
  while (done < limit) {
    let best: u32 = count
    let bestTs: i64 = 0
    let second: u32 = count
    let secondTs: i64 = 0
    for (let r: u32 = 0; r < count; r++) {
      const run = runs + (<usize>r << 4)
      const cursor = load<u32>(run, 8)
      if (cursor >= load<u32>(run, 4)) continue
      const v = load<i64>(<usize>load<u32>(run) + (<usize>cursor << 3))
      if (best == count || v < bestTs) {
        second = best
        secondTs = bestTs
        best = r
        bestTs = v
      } else if (second == count || v < secondTs) {
        second = r
        secondTs = v
      }
    }
    if (best == count) break
    const run = runs + (<usize>best << 4)
    const cursor = load<u32>(run, 8)
    let end = load<u32>(run, 4)
    if (end - cursor > limit - done) end = cursor + (limit - done)
    // All rows of the winner before the second one's head are written at once.
    if (second != count) end = boundary(<usize>load<u32>(run), cursor, end, secondTs, second < best)
    memory.fill(outRun + <usize>done, <u8>best, <usize>(end - cursor))
    for (let i = cursor; i < end; i++) store<u32>(outRow + (<usize>(done + i - cursor) << 2), i)
    done += end - cursor
    store<u32>(run, end, 8)
  }
  return done
}

// --- gathering -----------------------------------------------------------------------------------------------------

@inline
function gatherOf<T>(source: usize, index: usize, rows: usize, out: usize): void {
  for (let i: usize = 0; i < rows; i++) store<T>(out + i * sizeof<T>(), load<T>(source + <usize>load<u32>(index + (i << 2)) * sizeof<T>()))
}

export function gather(width: u32, source: usize, index: usize, rows: usize, out: usize): void {
  if (width == 8) gatherOf<u64>(source, index, rows, out)
  else if (width == 4) gatherOf<u32>(source, index, rows, out)
  else if (width == 1) gatherOf<u8>(source, index, rows, out)
  else if (width == 2) gatherOf<u16>(source, index, rows, out)
  else if (width == 16) gatherWide(source, index, rows, out, 16)
  else gatherWide(source, index, rows, out, 32)
}

function gatherWide(source: usize, index: usize, rows: usize, out: usize, width: usize): void {
  for (let i: usize = 0; i < rows; i++) {
    const from = source + <usize>load<u32>(index + (i << 2)) * width
    const to = out + i * width
    v128.store(to, v128.load(from))
    if (width == 32) v128.store(to, v128.load(from, 16), 16)
  }
}

@inline
function gatherRunsOf<T>(sources: usize, run: usize, row: usize, rows: usize, out: usize): void {
  for (let i: usize = 0; i < rows; i++) {
    const source = <usize>load<u32>(sources + (<usize>load<u8>(run + i) << 2))
    store<T>(out + i * sizeof<T>(), load<T>(source + <usize>load<u32>(row + (i << 2)) * sizeof<T>()))
  }
}

export function gatherRuns(width: u32, sources: usize, run: usize, row: usize, rows: usize, out: usize): void {
  if (width == 8) gatherRunsOf<u64>(sources, run, row, rows, out)
  else if (width == 4) gatherRunsOf<u32>(sources, run, row, rows, out)
  else if (width == 1) gatherRunsOf<u8>(sources, run, row, rows, out)
  else if (width == 2) gatherRunsOf<u16>(sources, run, row, rows, out)
  else {
    const wide = <usize>width
    for (let i: usize = 0; i < rows; i++) {
      const from = <usize>load<u32>(sources + (<usize>load<u8>(run + i) << 2)) + <usize>load<u32>(row + (i << 2)) * wide
      const to = out + i * wide
      v128.store(to, v128.load(from))
      for (let at: usize = 16; at < wide; at += 16) v128.store(to + at, v128.load(from + at))
    }
  }
}

@inline
function gatherOrOf<T>(source: usize, index: usize, rows: usize, nothing: usize, out: usize): void {
  const absent = load<T>(nothing)
  for (let i: usize = 0; i < rows; i++) {
    const row = load<u32>(index + (i << 2))
    store<T>(out + i * sizeof<T>(), row == 0xffffffff ? absent : load<T>(source + <usize>row * sizeof<T>()))
  }
}

export function gatherOr(width: u32, source: usize, index: usize, rows: usize, nothing: usize, out: usize): void {
  if (width == 8) gatherOrOf<u64>(source, index, rows, nothing, out)
  else if (width == 4) gatherOrOf<u32>(source, index, rows, nothing, out)
  else if (width == 1) gatherOrOf<u8>(source, index, rows, nothing, out)
  else if (width == 2) gatherOrOf<u16>(source, index, rows, nothing, out)
  else {
    const wide = <usize>width
    for (let i: usize = 0; i < rows; i++) {
      const row = load<u32>(index + (i << 2))
      const from = row == 0xffffffff ? nothing : source + <usize>row * wide
      const to = out + i * wide
      v128.store(to, v128.load(from))
      if (wide == 32) v128.store(to, v128.load(from, 16), 16)
    }
  }
}
