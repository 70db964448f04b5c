// Encodes one result row as a DataRow message of the PostgreSQL wire protocol, with each value in the text or binary
// format of engine/types/pg-encode-value.ts. ARRAY, and DECIMAL in binary format, are not supported here.

import * as layout from '../../encode-layout'
import { putDouble, putFloat, putTime } from './print'
import { entryOf } from './symbols'
import { kindBinary, kindSymbol, kindText, putChar, putValue, textBound, widthOf } from './values'

const columnBytes: usize = layout.columnBytes
const minimum: i64 = i64.MIN_VALUE
/** Microseconds from 1970 to 2000. */
const epoch: i64 = 946684800000000
const hexDigits = memory.data<u8>([48, 49, 50, 51, 52, 53, 54, 55, 56, 57, 97, 98, 99, 100, 101, 102])

/** Upper bound of a row's size, without strings. */
export function pgFixedBound(columns: usize, end: usize): usize {
  let bytes: usize = 64
  for (let c = columns; c < end; c += columnBytes) bytes += textBound(load<u32>(c, layout.columnKind)) + 24
  return bytes
}

/** Formats `2024-01-02 03:04:05.678` without a zone; `tail` is the number of bytes from the T to the end. */
@inline
function withoutZone(end: usize, tail: usize): usize {
  store<u8>(end - tail, 32)
  return end - 1
}

function putHex(p: usize, bytes: u32, o: usize): usize {
  store<u16>(o, 0x785c)
  o += 2
  for (let i: u32 = 0; i < bytes; i++) {
    const b = <usize>load<u8>(p + <usize>i)
    store<u8>(o, load<u8>(hexDigits + (b >> 4)))
    store<u8>(o, load<u8>(hexDigits + (b & 15)), 1)
    o += 2
  }
  return o
}

/** Writes a value in text format; returns 0 for NULL. */
function putText(kind: u32, column: usize, p: usize, scratch: usize, o: usize): usize {
  switch (kind) {
    case 0:
      store<u8>(o, load<u8>(p) ? 116 : 102)
      return o + 1
    case 3: {
      const c = <u32>load<u16>(p)
      return c == 0 ? 0 : putChar(c, o)
    }
    case 6: {
      const v = load<i64>(p)
      return v == minimum ? 0 : withoutZone(putTime(v, 1000, 3, o), 14)
    }
    case 7: {
      const v = load<i64>(p)
      return v == minimum ? 0 : withoutZone(putTime(v, 1000000, 6, o), 17)
    }
    case 8: {
      const v = load<i64>(p)
      // Six digits as in PostgreSQL, because clients read no more.
      return v == minimum ? 0 : withoutZone(putTime(v, 1000000000, 9, o), 20) - 3
    }
    case 9: {
      const v = load<f32>(p)
      return v - v == 0 ? putFloat(v, o) : 0
    }
    case 10: {
      const v = load<f64>(p)
      return v - v == 0 ? putDouble(v, o) : 0
    }
    default:
      return putValue(kind, p, load<u32>(column, layout.columnParameter), scratch, o)
  }
}

@inline
function putMicros(v: i64, o: usize): usize {
  store<u64>(o, bswap<u64>(<u64>(v - epoch)))
  return o + 8
}

@inline
function floorBy1000(v: i64): i64 {
  const q = v / 1000
  return q - i64(q * 1000 > v)
}

/** Writes a value in binary format; returns 0 for NULL. Types that PostgreSQL does not have are text. */
function putBinary(kind: u32, column: usize, p: usize, scratch: usize, o: usize): usize {
  switch (kind) {
    case 0:
      store<u8>(o, load<u8>(p) ? 1 : 0)
      return o + 1
    case 1:
      store<u16>(o, bswap<u16>(<u16>(<i16>load<i8>(p))))
      return o + 2
    case 2:
      store<u16>(o, bswap<u16>(load<u16>(p)))
      return o + 2
    case 4: {
      const v = load<u32>(p)
      if (<i32>v == i32.MIN_VALUE) return 0
      store<u32>(o, bswap<u32>(v))
      return o + 4
    }
    case 5: {
      const v = load<u64>(p)
      if (<i64>v == minimum) return 0
      store<u64>(o, bswap<u64>(v))
      return o + 8
    }
    case 6: {
      const v = load<i64>(p)
      return v == minimum ? 0 : putMicros(v * 1000, o)
    }
    case 7: {
      const v = load<i64>(p)
      return v == minimum ? 0 : putMicros(v, o)
    }
    case 8: {
      const v = load<i64>(p)
      return v == minimum ? 0 : putMicros(floorBy1000(v), o)
    }
    case 9: {
      const v = load<f32>(p)
      if (v - v != 0) return 0
      store<u32>(o, bswap<u32>(load<u32>(p)))
      return o + 4
    }
    case 10: {
      const v = load<f64>(p)
      if (v - v != 0) return 0
      store<u64>(o, bswap<u64>(load<u64>(p)))
      return o + 8
    }
    case 14:
      if (load<i64>(p) == minimum && load<i64>(p, 8) == minimum) return 0
      store<u64>(o, bswap<u64>(load<u64>(p, 8)))
      store<u64>(o, bswap<u64>(load<u64>(p)), 8)
      return o + 16
    default:
      return putText(kind, column, p, scratch, o)
  }
}

let textAt: usize = 0

/** Size of a variable-width value, -1 for NULL; sets `textAt` to its address. */
@inline
function textOf(kind: u32, column: usize, values: usize, row: usize): i32 {
  let entry = values + (row << 3)
  if (kind == kindSymbol) {
    const id = load<i32>(values + (row << 2))
    if (id < 0) return -1
    entry = entryOf(<usize>load<u32>(column, layout.columnDictionary), <u32>id)
  }
  textAt = <usize>load<u32>(entry)
  return load<i32>(entry, 4)
}

/** Writes the value of a column without memory; returns 0 for NULL. */
function putMissing(kind: u32, binary: bool, o: usize): usize {
  if (kind > 2) return 0
  if (!binary) {
    store<u8>(o, kind == 0 ? 102 : 48)
    return o + 1
  }
  store<u16>(o, 0)
  return kind == 0 ? o + 1 : o + 2
}

/** Writes `+00`, the zone of all timestamps. */
@inline
function putZone(o: usize): usize {
  store<u8>(o, 43)
  store<u16>(o, 0x3030, 1)
  return o + 3
}

/**
 * Returns the address after the row, or 0 if it needs more space, which is set in `state`. `type` is the message type.
 */
export function putPgRow(state: usize, row: usize, start: usize, fixed: usize, type: u32): usize {
  const columns = <usize>load<u32>(state, layout.stateColumns)
  const count = <usize>load<u32>(state, layout.stateCount)
  const end = columns + count * columnBytes
  const limit = <u64>load<u32>(state, layout.stateOutEnd)
  const scratch = state + layout.stateScratch
  if (<u64>start + <u64>fixed > limit) return outgrown(state, <u64>fixed)
  store<u8>(start, <u8>type)
  store<u16>(start, bswap<u16>(<u16>count), 5)
  let o = start + 7
  for (let c = columns; c < end; c += columnBytes) {
    const kind = load<u32>(c, layout.columnKind)
    const values = <usize>load<u32>(c, layout.columnValues)
    const binary = load<u32>(c, layout.columnLabel) == 1
    const body = o + 4
    let after: usize = 0
    if (values == 0) after = putMissing(kind, binary, body)
    else if (kind == kindText || kind == kindSymbol || kind == kindBinary) {
      const bytes = textOf(kind, c, values, row)
      if (bytes >= 0) {
        const hex = kind == kindBinary && !binary
        const bound = <u64>bytes * (hex ? 2 : 1) + 32
        if (<u64>o + <u64>fixed + bound > limit) return outgrown(state, <u64>(o - start) + <u64>fixed + bound)
        if (hex) after = putHex(textAt, <u32>bytes, body)
        else {
          memory.copy(body, textAt, <usize>bytes)
          after = body + <usize>bytes
        }
      }
    } else {
      const p = values + row * widthOf(kind)
      after = binary ? putBinary(kind, c, p, scratch, body) : putText(kind, c, p, scratch, body)
      if (after != 0 && load<u32>(c, layout.columnLabel) == 2) after = putZone(after)
    }
    if (after == 0) {
      store<i32>(o, -1)
      o = body
    } else {
      store<u32>(o, bswap<u32>(<u32>(after - body)))
      o = after
    }
  }
  store<u32>(start, bswap<u32>(<u32>(o - start - 1)), 1)
  return o
}

function outgrown(state: usize, needed: u64): usize {
  store<u32>(state, <u32>min<u64>(needed, 0xffffffff), layout.stateNeeded)
  return 0
}
