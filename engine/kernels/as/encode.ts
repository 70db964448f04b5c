// Encoding kernel (WebAssembly): formats rows of columns as JSON, CSV, JSON lines or DataRow messages.
// engine/kernels/encode.ts defines the interface and the structures.

import * as layout from '../encode-layout'
import { pgFixedBound, putPgRow } from './shared/pg-row'
import { putDouble, putSigned, putTime } from './shared/print'
import { entryOf } from './shared/symbols'
import { arrayBound, kindArray, kindBinary, kindChar, kindDecimal8, kindIpv4, kindLong256, kindNanos, kindSymbol, kindText, putArray, putChar, putValue, textBound, widthOf } from './shared/values'

const columnBytes: usize = layout.columnBytes
const flagJson: u32 = 1
const flagLines: u32 = 4
const flagQuoteLong: u32 = 2
const flagPg: u32 = 8
/** Size of longer strings is measured; shorter ones are assumed to consist of escapes. */
const measuredFrom: u32 = 1024

// Escape letters of control characters in JSON; 0 = \u00xx.
const escapes = memory.data<u8>([0, 0, 0, 0, 0, 0, 0, 0, 98, 116, 110, 0, 102, 114, 0, 0])

/** Mask of the bytes that must be escaped in JSON, or in CSV. */
@inline
function oddBytes(x: v128, json: bool): v128 {
  const quotes = i8x16.eq(x, i8x16.splat(34))
  if (!json) return quotes
  return v128.or(v128.or(quotes, i8x16.eq(x, i8x16.splat(92))), i8x16.lt_u(x, i8x16.splat(32)))
}

/** Writes the body of a JSON string: 16 bytes at a time up to the next character that needs an escape. */
function putEscaped(p: usize, bytes: u32, o: usize): usize {
  const end = p + <usize>bytes
  while (p < end) {
    const x = v128.load(p)
    v128.store(o, x)
    const bits = i8x16.bitmask(oddBytes(x, true))
    const clean = bits ? <usize>ctz(bits) : 16
    if (p + clean >= end) return o + (end - p)
    p += clean
    o += clean
    if (!bits) continue
    o = putEscape(load<u8>(p), o)
    p++
  }
  return o
}

function putEscape(c: u8, o: usize): usize {
  store<u8>(o, 92)
  const letter = c < 16 ? load<u8>(escapes + <usize>c) : c < 32 ? 0 : c
  if (letter) {
    store<u8>(o, letter, 1)
    return o + 2
  }
  store<u32>(o, 0x30303075, 1)
  store<u8>(o, 48 + (c >> 4), 4)
  const low = c & 15
  store<u8>(o, low < 10 ? 48 + low : 87 + low, 5)
  return o + 6
}

/** Writes the body of a CSV string, with quotes doubled. */
function putDoubled(p: usize, bytes: u32, o: usize): usize {
  const end = p + <usize>bytes
  while (p < end) {
    const x = v128.load(p)
    v128.store(o, x)
    const bits = i8x16.bitmask(oddBytes(x, false))
    const clean = bits ? <usize>ctz(bits) + 1 : 16
    if (p + clean > end) return o + (end - p)
    p += clean
    o += clean
    if (bits) store<u8>(o++, 34)
  }
  return o
}

/** Upper bound of the string's size with escapes and quotes. */
function escapedBound(p: usize, bytes: u32, json: bool): u64 {
  if (bytes <= measuredFrom) return (<u64>bytes * (json ? 6 : 2)) + 2
  let total: u64 = <u64>bytes + 2
  for (let i: u32 = 0; i < bytes; i++) {
    const c = load<u8>(p + <usize>i)
    if (c == 34) total++
    else if (json && c == 92) total++
    else if (json && c < 32) total += 5
  }
  return total
}

@inline
function putText(p: usize, bytes: u32, json: bool, o: usize): usize {
  store<u8>(o++, 34)
  o = json ? putEscaped(p, bytes, o) : putDoubled(p, bytes, o)
  store<u8>(o, 34)
  return o + 1
}

@inline
function putNull(json: bool, o: usize): usize {
  if (!json) return o
  store<u32>(o, 0x6c6c756e)
  return o + 4
}

/** Writes the value of a column without memory. */
function putMissing(kind: u32, json: bool, o: usize): usize {
  if (kind == 0) {
    store<u64>(o, 0x65736c6166)
    return o + 5
  }
  if (kind < kindChar) {
    store<u8>(o, 48)
    return o + 1
  }
  if (!json || (kind != kindChar && kind != kindLong256)) return putNull(json, o)
  store<u16>(o, 0x2222)
  return o + 2
}

/** Writes a CHAR: quoted in JSON, in CSV only if necessary; 0 is empty. */
function putCharacter(c: u32, json: bool, delimiter: u32, o: usize): usize {
  if (json) {
    store<u8>(o++, 34)
    if (c != 0) o = c == 34 || c == 92 || c < 32 ? putEscape(<u8>c, o) : putChar(c, o)
    store<u8>(o, 34)
    return o + 1
  }
  if (c == 0) return o
  if (c != 34 && c != 10 && c != 13 && c != delimiter) return putChar(c, o)
  store<u8>(o++, 34)
  o = putChar(c, o)
  if (c == 34) store<u8>(o++, 34)
  store<u8>(o, 34)
  return o + 1
}

/** Upper bound of a row's size, without values of variable width. */
function fixedBound(columns: usize, end: usize, lines: bool): usize {
  let bytes: usize = 64
  for (let c = columns; c < end; c += columnBytes) {
    bytes += textBound(load<u32>(c, layout.columnKind)) + 3
    if (lines) bytes += <usize>load<u32>(c, layout.columnLabelBytes)
  }
  return bytes
}

/** Address of a variable-width value's string; the function returns its length, or -1 for NULL. */
let textAt: usize = 0

@inline
function textOf(kind: u32, column: usize, values: usize, row: usize): i32 {
  if (kind == kindSymbol) {
    const id = load<i32>(values + (row << 2))
    if (id < 0) return -1
    const entry = entryOf(<usize>load<u32>(column, layout.columnDictionary), <u32>id)
    textAt = <usize>load<u32>(entry)
    return load<i32>(entry, 4)
  }
  const entry = values + (row << 3)
  textAt = <usize>load<u32>(entry)
  return load<i32>(entry, 4)
}

/** Writes a value of one of the less frequent kinds, with its quotes. */
function putOther(kind: u32, column: usize, row: usize, json: bool, state: usize, o: usize): usize {
  const p = <usize>load<u32>(column, layout.columnValues) + row * widthOf(kind)
  if (kind == kindChar) return putCharacter(<u32>load<u16>(p), json, load<u32>(state, layout.stateDelimiter), o)
  const large = kind == 5 && json && (load<u32>(state, layout.stateFlags) & flagQuoteLong) != 0
  const quoted = large || (kind >= 6 && kind <= kindNanos) || kind >= kindDecimal8 || (kind >= 16 && kind < kindBinary) || (json && kind >= kindLong256 && kind <= kindIpv4)
  const start = o
  if (quoted) store<u8>(o++, 34)
  const end = putValue(kind, p, load<u32>(column, layout.columnParameter), state + layout.stateScratch, o)
  if (end == 0) {
    if (json && kind == kindLong256) {
      store<u16>(start, 0x2222)
      return start + 2
    }
    return putNull(json, start)
  }
  if (!quoted) return end
  store<u8>(end, 34)
  return end + 1
}

/** Encodes one row; returns the address after it, or 0 if it needs more space (state.needed is set then). */
function encodeRow(state: usize, row: usize, start: usize, fixed: usize): usize {
  const flags = load<u32>(state, layout.stateFlags)
  const json = (flags & flagJson) != 0
  const lines = (flags & flagLines) != 0
  const columns = <usize>load<u32>(state, layout.stateColumns)
  const columnsEnd = columns + <usize>load<u32>(state, layout.stateCount) * columnBytes
  const limit = <u64>load<u32>(state, layout.stateOutEnd)
  const separator = json ? <u8>44 : <u8>load<u32>(state, layout.stateDelimiter)
  let o = start
  if (<u64>o + <u64>fixed > limit) return outgrown(state, <u64>fixed)
  if (json && !lines) {
    if (load<u32>(state, layout.stateWritten) != 0) store<u8>(o++, 44)
    store<u8>(o++, 91)
  }
  for (let c = columns; c < columnsEnd; c += columnBytes) {
    if (lines) {
      const labelBytes = <usize>load<u32>(c, layout.columnLabelBytes)
      memory.copy(o, <usize>load<u32>(c, layout.columnLabel), labelBytes)
      o += labelBytes
    } else if (c != columns) store<u8>(o++, separator)
    const kind = load<u32>(c, layout.columnKind)
    const values = <usize>load<u32>(c, layout.columnValues)
    if (values == 0) {
      o = putMissing(kind, json, o)
    } else if (kind == 10) {
      const v = load<f64>(values + (row << 3))
      o = v - v == 0 ? putDouble(v, o) : putNull(json, o)
    } else if (kind == 4) {
      const v = load<i32>(values + (row << 2))
      o = v == i32.MIN_VALUE ? putNull(json, o) : putSigned(<i64>v, o)
    } else if (kind == 0) {
      const truth = load<u8>(values + row) != 0
      store<u64>(o, select<u64>(0x65757274, 0x65736c6166, truth))
      o += 5 - usize(truth)
    } else if (kind == 5 && (flags & flagQuoteLong) == 0) {
      const v = load<i64>(values + (row << 3))
      o = v == i64.MIN_VALUE ? putNull(json, o) : putSigned(v, o)
    } else if (kind == 7) {
      const v = load<i64>(values + (row << 3))
      if (v == i64.MIN_VALUE) o = putNull(json, o)
      else {
        store<u8>(o, 34)
        o = putTime(v, 1000000, 6, o + 1)
        store<u8>(o++, 34)
      }
    } else if (kind == kindSymbol || kind == kindText) {
      const bytes = textOf(kind, c, values, row)
      if (bytes < 0) {
        o = putNull(json, o)
        continue
      }
      if (bytes <= 16 && <u64>o + <u64>fixed + <u64>bytes + 2 <= limit) {
        const x = v128.load(textAt)
        if ((i8x16.bitmask(oddBytes(x, json)) & ((1 << bytes) - 1)) == 0) {
          store<u8>(o, 34)
          v128.store(o, x, 1)
          o += <usize>bytes + 1
          store<u8>(o++, 34)
          continue
        }
      }
      const bound = escapedBound(textAt, <u32>bytes, json)
      if (<u64>o + <u64>fixed + bound > limit) return outgrown(state, <u64>(o - start) + <u64>fixed + bound)
      o = putText(textAt, <u32>bytes, json, o)
    } else if (kind == kindArray) {
      const bytes = textOf(kind, c, values, row)
      if (bytes < 0) {
        o = putNull(json, o)
        continue
      }
      const bound = arrayBound(textAt)
      if (<u64>o + <u64>fixed + bound > limit) return outgrown(state, <u64>(o - start) + <u64>fixed + bound)
      if (!json) store<u8>(o++, 34)
      o = putArray(textAt, o)
      if (!json) store<u8>(o++, 34)
    } else if (kind == kindBinary) {
      o = putNull(json, o)
    } else {
      o = putOther(kind, c, row, json, state, o)
    }
  }
  if (lines) {
    store<u16>(o, 0x0a7d)
    o += 2
  } else if (json) store<u8>(o++, 93)
  else {
    store<u16>(o, 0x0a0d)
    o += 2
  }
  return o
}

function outgrown(state: usize, needed: u64): usize {
  store<u32>(state, <u32>min<u64>(needed, 0xffffffff), layout.stateNeeded)
  return 0
}

export function encode(state: usize): u32 {
  const columns = <usize>load<u32>(state, layout.stateColumns)
  const lines = (load<u32>(state, layout.stateFlags) & flagLines) != 0
  const pg = (load<u32>(state, layout.stateFlags) & flagPg) != 0
  const columnsEnd = columns + <usize>load<u32>(state, layout.stateCount) * columnBytes
  const fixed = pg ? pgFixedBound(columns, columnsEnd) : fixedBound(columns, columnsEnd, lines)
  const type = load<u32>(state, layout.stateDelimiter)
  const from = load<u32>(state, layout.stateRow)
  const to = load<u32>(state, layout.stateRowEnd)
  const index = <usize>load<u32>(state, layout.stateIndex)
  let o = <usize>load<u32>(state, layout.stateOut)
  let row = from
  store<u32>(state, 0, layout.stateNeeded)
  for (; row < to; row++) {
    const at = index ? load<u32>(index + (<usize>row << 2)) : row
    const end = pg ? putPgRow(state, <usize>at, o, fixed, type) : encodeRow(state, <usize>at, o, fixed)
    if (end == 0) break
    store<u32>(state, 1, layout.stateWritten)
    o = end
  }
  store<u32>(state, row, layout.stateRow)
  store<u32>(state, <u32>o, layout.stateOut)
  return row - from
}
