// The WebAssembly kernel that splits CSV records into fields, 64 bytes at a time: it computes bit masks of the bytes
// that are quotes, delimiters and line ends, as simdjson does for JSON. engine/kernels/csv.ts defines the interface and
// the structures.
//
// A prefix XOR over the mask of quotes tells which bytes are within quotes. Records for which that rule is not
// sufficient (a quote within an unquoted field, text after a closing quote, a wrong number of fields) are left to the
// caller.

const quote: u8 = 0x22
const lineFeed: u8 = 0x0a
const carriageReturn: u8 = 0x0d
/** Flag in a length: the field contains doubled quotes. */
const doubledMark: i32 = 0x40000000

const outcomeEnd: u32 = 0
const outcomeFull: u32 = 1
const outcomeIrregular: u32 = 2

@inline
function mask(a: v128, b: v128, c: v128, d: v128, byte: v128): u64 {
  const low = <u64>(<u32>i8x16.bitmask(i8x16.eq(a, byte))) | (<u64>(<u32>i8x16.bitmask(i8x16.eq(b, byte))) << 16)
  const high = <u64>(<u32>i8x16.bitmask(i8x16.eq(c, byte))) | (<u64>(<u32>i8x16.bitmask(i8x16.eq(d, byte))) << 16)
  return low | (high << 32)
}

@inline
function prefixXor(bits: u64): u64 {
  let x = bits
  x ^= x << 1
  x ^= x << 2
  x ^= x << 4
  x ^= x << 8
  x ^= x << 16
  x ^= x << 32
  return x
}

@inline
function finish(state: usize, at: usize, line: u32, rows: u32, outcome: u32): u32 {
  store<u32>(state, <u32>at)
  store<u32>(state, line, 28)
  store<u32>(state, outcome, 36)
  return rows
}

export function scanRecords(state: usize, firstRow: u32): u32 {
  const from = <usize>load<u32>(state)
  const end = <usize>load<u32>(state, 4)
  const delimiter = i8x16.splat(<u8>load<u32>(state, 8))
  const columns = load<u32>(state, 12)
  const rowsMax = load<u32>(state, 16)
  const entries = <usize>load<u32>(state, 20)
  const lines = <usize>load<u32>(state, 24)
  const stride = <usize>rowsMax << 3
  const quotes = i8x16.splat(quote)
  const feeds = i8x16.splat(lineFeed)
  let rows = firstRow
  let recordAt = from
  let recordLine = load<u32>(state, 28)
  let line = recordLine
  let fieldAt = from
  let field: u32 = 0
  let entry = entries + (<usize>rows << 3)
  let marked = false
  let inside: u64 = 0
  let quotesSeen: u64 = 0
  let quotesBefore: u64 = 0
  for (let p = from; p < end; p += 64) {
    const a = v128.load(p)
    const b = v128.load(p, 16)
    const c = v128.load(p, 32)
    const d = v128.load(p, 48)
    let q = mask(a, b, c, d, quotes)
    let cuts = mask(a, b, c, d, delimiter)
    let n = mask(a, b, c, d, feeds)
    const left = end - p
    if (left < 64) {
      const valid = (<u64>1 << <u64>left) - 1
      q &= valid
      cuts &= valid
      n &= valid
    }
    let within: u64 = inside
    if (q != 0) {
      within ^= prefixXor(q)
      inside = <u64>(<i64>within >> 63)
    }
    let events = (cuts & ~within) | n
    while (events != 0) {
      const bit = ctz(events)
      events &= events - 1
      const place = <u64>1 << bit
      if ((n & within & place) != 0) {
        line++
        continue
      }
      const at = p + <usize>bit
      const seen = quotesSeen + popcnt(q & (place - 1))
      const count = seen - quotesBefore
      const feed = (n & place) != 0
      let start = fieldAt
      let stop = at
      if (feed && stop > start && load<u8>(stop - 1) == carriageReturn) stop--
      let length = <i32>(stop - start)
      if (count == 0) {
        if (length == 0) {
          if (feed && field == 0) {
            // An empty line.
            line++
            recordLine = line
            recordAt = at + 1
            fieldAt = recordAt
            continue
          }
          length = -1
        }
      } else {
        if (length < 2 || load<u8>(start) != quote || load<u8>(stop - 1) != quote) {
          return finish(state, recordAt, recordLine, rows, outcomeIrregular)
        }
        start++
        length -= 2
        if (count > 2) {
          length |= doubledMark
          marked = true
        }
      }
      if (field < columns) {
        store<u32>(entry, <u32>start)
        store<i32>(entry, length, 4)
        entry += stride
      }
      field++
      fieldAt = at + 1
      quotesBefore = seen
      if (!feed) continue
      if (field != columns) return finish(state, recordAt, recordLine, rows, outcomeIrregular)
      if (marked) {
        if (!undouble(entries + (<usize>rows << 3), stride, columns)) {
          return finish(state, recordAt, recordLine, rows, outcomeIrregular)
        }
        marked = false
      }
      store<u32>(lines + (<usize>rows << 2), recordLine)
      rows++
      line++
      recordLine = line
      recordAt = fieldAt
      field = 0
      entry = entries + (<usize>rows << 3)
      if (rows == rowsMax) return finish(state, recordAt, recordLine, rows, outcomeFull)
    }
    quotesSeen += popcnt(q)
  }
  return finish(state, recordAt, recordLine, rows, outcomeEnd)
}

/** Reduces doubled quotes of a complete record in place; false, and nothing changed, if there is a single one. */
function undouble(entry: usize, stride: usize, columns: u32): bool {
  for (let c: u32 = 0, e = entry; c < columns; c++, e += stride) {
    const length = load<i32>(e, 4)
    if (length < 0 || (length & doubledMark) == 0) continue
    const start = <usize>load<u32>(e)
    const stop = start + <usize>(length ^ doubledMark)
    for (let at = start; at < stop; at++) {
      if (load<u8>(at) != quote) continue
      at++
      if (at >= stop || load<u8>(at) != quote) return false
    }
  }
  for (let c: u32 = 0, e = entry; c < columns; c++, e += stride) {
    const length = load<i32>(e, 4)
    if (length < 0 || (length & doubledMark) == 0) continue
    const start = <usize>load<u32>(e)
    const stop = start + <usize>(length ^ doubledMark)
    let to = start
    for (let at = start; at < stop; at++, to++) {
      const byte = load<u8>(at)
      store<u8>(to, byte)
      if (byte == quote) at++
    }
    store<i32>(e, <i32>(to - start), 4)
  }
  return true
}
