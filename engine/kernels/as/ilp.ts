// The WebAssembly kernel that decodes line protocol: it compares lines with templates and writes their values to
// columns. engine/kernels/ilp.ts defines the interface, ilp-layout.ts the structures.
//
// A template predicts the lines of a table: its columns in an order. The predicted key includes its separator
// (`,region=`), so that one 16-byte comparison checks name and separator. Where a line has another column than the
// predicted one, seekColumn() looks for it among the template's columns; those that the line lacks get NULL. Decoding
// stops at the start of a line that has an unknown column, one column twice, or a value that is not supported.

import * as symbolLayout from '../../memory/dictionary-layout'
import * as layout from '../ilp-layout'
import { digits8, isDigit, leadingDigits, parseDigits, parseDouble, parseEnd, parseOk } from './shared/decimal'
import { findLong, internLong, internShort, longHash, rehash, shortHash, shortText } from './shared/symbols'
import { validUtf8 } from './shared/utf8'

// Results of parseLine() below any valid address.
const otherTable: usize = 0
const oddValue: usize = 1
const needDictionary: usize = 2
const noRoom: usize = 3

export function intern(dictionary: usize, p: usize, bytes: i32): i32 {
  return bytes <= 16 ? internShort(dictionary, p, bytes) : internLong(dictionary, p, bytes)
}

export function find(dictionary: usize, p: usize, bytes: i32): i32 {
  if (bytes > 16) {
    const slot = findLong(dictionary, longHash(p, bytes), p, bytes)
    return load<u32>(slot, symbolLayout.slotLength) == 0 ? symbolLayout.missing : <i32>load<u32>(slot, symbolLayout.slotId)
  }
  const v = shortText(p, bytes)
  const mask = load<u32>(dictionary, symbolLayout.slotMask)
  const slots = <usize>load<u32>(dictionary, symbolLayout.slots)
  let at = shortHash(v) & mask
  for (;;) {
    const slot = slots + (<usize>at << 5)
    const stored = load<u32>(slot, symbolLayout.slotLength)
    if (stored == 0) return symbolLayout.missing
    if (stored == <u32>(bytes + 1) && !v128.any_true(v128.xor(v128.load(slot), v))) return <i32>load<u32>(slot, symbolLayout.slotId)
    at = (at + 1) & mask
  }
  return symbolLayout.missing
}

export function rehashDictionary(dictionary: usize): void {
  rehash(dictionary)
}

/** Size of the symbol at p: up to a comma, space, equals sign, backslash or newline. */
@inline
function symbolBytes(p: usize): i32 {
  let n = 0
  for (;;) {
    const x = v128.load(p + <usize>n)
    const stop = v128.or(
      v128.or(i8x16.eq(x, i8x16.splat(44)), i8x16.eq(x, i8x16.splat(32))),
      v128.or(v128.or(i8x16.eq(x, i8x16.splat(61)), i8x16.eq(x, i8x16.splat(92))), i8x16.eq(x, i8x16.splat(10))),
    )
    const bits = i8x16.bitmask(stop)
    if (bits) return n + ctz(bits)
    n += 16
  }
  return 0
}

/** Size of the quoted string at p up to its closing quote; -1 if it has an escape, a newline or invalid UTF-8. */
function textBytes(p: usize): i32 {
  let n = 0
  let high = 0
  for (;;) {
    const x = v128.load(p + <usize>n)
    const quotes = i8x16.bitmask(i8x16.eq(x, i8x16.splat(34)))
    const odd = i8x16.bitmask(v128.or(i8x16.eq(x, i8x16.splat(92)), i8x16.eq(x, i8x16.splat(10))))
    const before = quotes ? (quotes & -quotes) - 1 : 0xffff
    if (odd & before) return -1
    high |= i8x16.bitmask(x) & before
    if (quotes) {
      n += ctz(quotes)
      return high == 0 || validUtf8(p, n) ? n : -1
    }
    n += 16
  }
  return -1
}

/** Size of a boolean word at p, with its value in bit 7; 0 if it is not one. */
function booleanWord(p: usize): u32 {
  const c = load<u8>(p)
  const next = load<u8>(p, 1)
  const short = next == 44 || next == 32 || next == 10 || next == 13
  const word = load<u32>(p)
  if (c == 116 || c == 84) {
    if (short) return 0x81
    // true True TRUE
    return word == 0x65757274 || word == 0x65757254 || word == 0x45555254 ? 0x84 : 0
  }
  if (c == 102 || c == 70) {
    if (short) return 1
    const tail = load<u32>(p, 1)
    return tail == 0x65736c61 || (c == 70 && tail == 0x45534c41) ? 5 : 0
  }
  return 0
}

// The value parsers below return the address after the value, or oddValue / needDictionary.

/** Parses `123i` to an integer of the width. `floor`: the minimum is NULL and not accepted. */
@inline
function parseInteger<T extends number>(p: usize, out: usize, low: i64, high: i64): usize {
  const negative = load<u8>(p) == 45
  if (negative) p++
  const digits = <i64>parseDigits(p)
  if (!parseOk) return oddValue
  p = parseEnd
  const value = negative ? -digits : digits
  if (load<u8>(p) != 105 || value < low || value > high) return oddValue
  store<T>(out, <T>value)
  return p + 1
}

function parseSmall(kind: u32, p: usize, out: usize, row: usize): usize {
  if (kind == 2) return parseInteger<i8>(p, out + row, -128, 127)
  if (kind == 3) return parseInteger<i16>(p, out + (row << 1), -32768, 32767)
  return parseInteger<i32>(p, out + (row << 2), -2147483647, 2147483647)
}

/** Parses a number in any form on the wire (`1.5`, `1i`, binary) to a double; sets parseEnd and parseOk. */
@inline
function numberAt(p: usize): f64 {
  const value = parseDouble(p)
  if (parseOk && load<u8>(parseEnd) != 105) return value
  return otherNumber(p)
}

let otherEnd: usize = 0

function otherNumber(p: usize): f64 {
  otherEnd = 0
  if (load<u16>(p) == 0x103d) {
    otherEnd = p + 10
    return load<f64>(p, 2)
  }
  const negative = load<u8>(p) == 45
  if (negative) p++
  const digits = <i64>parseDigits(p)
  if (!parseOk || load<u8>(parseEnd) != 105) return 0
  otherEnd = parseEnd + 1
  return <f64>(negative ? -digits : digits)
}

function parseFloat32(p: usize, out: usize): usize {
  const value = parseDouble(p)
  let end = parseEnd
  let d = value
  if (!parseOk || load<u8>(end) == 105) {
    d = otherNumber(p)
    end = otherEnd
    if (end == 0) return oddValue
  }
  const f = <f32>d
  if (abs(f) == Infinity && abs(d) != Infinity) return oddValue
  store<f32>(out, f)
  return end
}

/** Parses `1..t` (micros), `1..n` (nanos) or `1..i` (the column's unit) to micros (8), nanos (9) or millis (10). */
function parseTime(kind: u32, p: usize, out: usize): usize {
  const negative = load<u8>(p) == 45
  if (negative) p++
  const digits = <i64>parseDigits(p)
  if (!parseOk) return oddValue
  p = parseEnd
  const unit = load<u8>(p)
  let value = negative ? -digits : digits
  let divisor: i64 = 1
  if (unit == 116) {
    if (kind == 10) divisor = 1000
    else if (kind == 9) {
      if (digits > i64.MAX_VALUE / 1000) return oddValue
      value *= 1000
    }
  } else if (unit == 110) {
    if (kind == 10) divisor = 1000000
    else if (kind == 8) divisor = 1000
  } else if (unit != 105) return oddValue
  if (divisor != 1) {
    const quotient = value / divisor
    if (negative && quotient * divisor != value) return oddValue
    value = quotient
  }
  store<i64>(out, value)
  return p + 1
}

function parseText(p: usize, out: usize): usize {
  if (load<u8>(p) != 34) return oddValue
  const bytes = textBytes(p + 1)
  if (bytes < 0) return oddValue
  store<u32>(out, <u32>p + 1)
  store<u32>(out, <u32>bytes, 4)
  return p + <usize>bytes + 2
}

/** `=` 0x0e 0x0a dimensions u8, lengths u32.., doubles: the entry covers everything after the two type bytes. */
function parseArray(p: usize, end: usize, out: usize): usize {
  if (p + 4 > end || load<u16>(p) != 0x0e3d || load<u8>(p, 2) != 10) return oddValue
  const dimensions = <usize>load<u8>(p, 3)
  if (dimensions < 1 || dimensions > 32 || p + 4 + (dimensions << 2) > end) return oddValue
  let values: u64 = 1
  for (let i: usize = 0; i < dimensions; i++) {
    values *= <u64>load<u32>(p + 4 + (i << 2))
    if (values > 0x10000000) return oddValue
  }
  const bytes = 1 + (<u64>dimensions << 2) + (values << 3)
  if (<u64>p + 3 + bytes >= <u64>end) return oddValue
  store<u32>(out, <u32>p + 3)
  store<u32>(out, <u32>bytes, 4)
  return p + 3 + <usize>bytes
}

/** Parses a value of one of the less frequent kinds. */
function parseOther(kind: u32, p: usize, end: usize, out: usize, row: usize): usize {
  switch (kind) {
    case 1: {
      const word = booleanWord(p)
      if (word == 0) return oddValue
      store<u8>(out + row, <u8>(word >> 7))
      return p + <usize>(word & 7)
    }
    case 2:
    case 3:
    case 4:
      return parseSmall(kind, p, out, row)
    case 6:
      return parseFloat32(p, out + (row << 2))
    case 8:
    case 9:
    case 10:
      return parseTime(kind, p, out + (row << 3))
    case 11:
      return parseText(p, out + (row << 3))
    case 12:
      return parseArray(p, end, out + (row << 3))
    default:
      return oddValue
  }
}

/** Stores the row's timestamp, and updates range and order. */
@inline
function putTimestamp(template: usize, row: usize, ts: i64): void {
  store<i64>(<usize>load<u32>(template, layout.templateTimestamps) + (row << 3), ts)
  if (ts < load<i64>(template, layout.templateLastTs)) store<u32>(template, 0, layout.templateSorted)
  store<i64>(template, ts, layout.templateLastTs)
  if (ts < load<i64>(template, layout.templateMinTs)) store<i64>(template, ts, layout.templateMinTs)
  if (ts > load<i64>(template, layout.templateMaxTs)) store<i64>(template, ts, layout.templateMaxTs)
}

/** Parses the end of a line after its fields; returns the next line's address or oddValue. */
@inline
function lineEnd(p: usize, template: usize, state: usize, row: usize): usize {
  if (load<u8>(p) == 32 && load<i64>(state, layout.stateUnitNanos) == 1) {
    // 19 digits of nanoseconds and a newline: the first 16 are the microseconds.
    const a = load<u64>(p, 1)
    const b = load<u64>(p, 9)
    const c = load<u32>(p, 17)
    if (leadingDigits(a) == 8 && leadingDigits(b) == 8 && leadingDigits(<u64>c) == 3 && c >> 24 == 10) {
      const micros = <i64>(digits8(a) * 100000000 + digits8(b))
      const rest = <i64>((c & 15) * 100 + ((c >> 8) & 15) * 10 + ((c >> 16) & 15))
      if (micros < 9223372036854775) {
        putTimestamp(template, row, load<u32>(template, layout.templateNanos) == 0 ? micros : micros * 1000 + rest)
        return p + 21
      }
    }
  }
  return otherLineEnd(p, template, state, row)
}

/** The unit that makes the timestamp a time before the year 2128. */
function guessedUnit(ts: i64): i64 {
  if (ts < 5000000000) return 1000000000
  if (ts < 5000000000000) return 1000000
  return ts < 5000000000000000 ? 1000 : 1
}

function otherLineEnd(p: usize, template: usize, state: usize, row: usize): usize {
  const nanos = load<u32>(template, layout.templateNanos) != 0
  let ts: i64 = 0
  if (load<u8>(p) == 32) {
    p++
    ts = <i64>parseDigits(p)
    if (!parseOk) return oddValue
    p = parseEnd
    let unit = load<i64>(state, layout.stateUnitNanos)
    const suffix = load<u8>(p)
    if (suffix == 116) unit = 1000
    else if (suffix == 110) unit = 1
    else if (unit == 0) unit = guessedUnit(ts)
    if (suffix == 116 || suffix == 110) p++
    if (nanos || unit >= 1000) {
      const factor = nanos ? unit : unit / 1000
      if (ts > i64.MAX_VALUE / factor) return oddValue
      ts *= factor
    } else ts /= 1000
  } else {
    // The last symbol of a line without fields may have taken the return.
    if (load<u8>(p) == 10 && load<u8>(p - 1) == 13) return oddValue
    ts = load<i64>(state, layout.stateNowMicros)
    if (nanos) ts *= 1000
  }
  if (load<u8>(p) == 13) p++
  if (load<u8>(p) != 10) return oddValue
  putTimestamp(template, row, ts)
  return p + 1
}

/** Whether the bytes at p are those of the key, without its first byte: a separator that depends on the line. */
@inline
function isNamed(p: usize, column: usize): bool {
  const differ = v128.and(v128.xor(v128.load(p), v128.load(column)), v128.load(column, layout.columnMask))
  if (v128.any_true(i8x16.replace_lane(differ, 0, 0))) return false
  const keyBytes = <usize>load<u32>(column, layout.columnKeyBytes)
  return keyBytes <= 16 || restMatches(p, <usize>load<u32>(column, layout.columnKeyAddress), keyBytes)
}

/** Compares what follows the first 16 bytes. */
function restMatches(p: usize, key: usize, bytes: usize): bool {
  for (let i: usize = 16; i < bytes; i++) if (load<u8>(p + i) != load<u8>(key + i)) return false
  return true
}

@inline
function storeNull(column: usize, row: usize): void {
  const kind = load<u32>(column, layout.columnKind)
  const out = <usize>load<u32>(column, layout.columnValues)
  if (kind == 7) store<u64>(out + (row << 3), 0x7ff8000000000000)
  else if (kind == 0) store<i32>(out + (row << 2), -1)
  else if (kind == 5 || (kind >= 8 && kind <= 10)) store<i64>(out + (row << 3), i64.MIN_VALUE)
  else if (kind == 4) store<i32>(out + (row << 2), i32.MIN_VALUE)
  else if (kind == 6) store<u32>(out + (row << 2), 0x7fc00000)
  else if (kind <= 2) store<u8>(out + row, 0)
  else if (kind == 3) store<u16>(out + (row << 1), 0)
  else store<u64>(out + (row << 3), 0xffffffff00000000)
}

/** Stores NULL for the columns that the line lacks: those from `next` on, and those that it has skipped. */
function fillAbsent(columns: usize, next: usize, columnsEnd: usize, row: usize, line: u64): void {
  for (let c = columns; c < columnsEnd; c += layout.columnBytes) {
    if (c >= next || (line != 0 && load<u64>(c, layout.columnSkipped) == line)) storeNull(c, row)
    else store<u32>(c, 1, layout.columnPresent)
  }
}

/**
 * The column of the template that the line has at p, where `next` was predicted; 0 if there is none that the line may
 * have there. Columns before `next` are looked for if this line has skipped them. `line`: its number.
 */
function seekColumn(p: usize, next: usize, template: usize, line: u64): usize {
  const separator = load<u8>(p)
  const fields = <usize>load<u32>(template, layout.templateFieldsAt)
  const columns = <usize>load<u32>(template, layout.templateColumnsAt)
  const columnsEnd = columns + <usize>load<u32>(template, layout.templateColumns) * layout.columnBytes
  let from = columns
  let to = fields
  if (next > fields) {
    if (separator != 44) return 0
    from = fields
    to = columnsEnd
  } else if (separator == 32) {
    from = fields
    to = columnsEnd
  } else if (separator != 44) return 0
  for (let c = max(from, next); c < to; c += layout.columnBytes) {
    if (!isNamed(p, c)) continue
    for (let skipped = next; skipped < c; skipped += layout.columnBytes) store<u64>(skipped, line, layout.columnSkipped)
    return c
  }
  for (let c = from; c < next; c += layout.columnBytes) {
    if (load<u64>(c, layout.columnSkipped) != line || !isNamed(p, c)) continue
    store<u64>(c, 0, layout.columnSkipped)
    return c
  }
  return 0
}

/** Whether the line at p is one of the template's table. */
@inline
function isOfTable(p: usize, template: usize): bool {
  const differ = v128.xor(v128.load(p), v128.load(template, layout.templateName))
  if (v128.any_true(v128.and(differ, v128.load(template, layout.templateNameMask)))) return false
  const bytes = <usize>load<u32>(template, layout.templateNameBytes)
  if (bytes > 16 && !restMatches(p, <usize>load<u32>(template, layout.templateNameAddress), bytes)) return false
  const separator = load<u8>(p + bytes)
  return separator == 44 || separator == 32
}

/** Whether the fields, or the tags of a line without fields, end at p. */
@inline
function isEnd(p: usize, inFields: bool): bool {
  const byte = load<u8>(p)
  return byte == 10 || byte == 13 || (byte == 32 && inFields)
}

/** Decodes one line to the template's next row; returns the next line's address, or a code below any address. */
function parseLine(start: usize, end: usize, template: usize, state: usize): usize {
  if (!isOfTable(start, template)) return otherTable
  const row = <usize>load<u32>(template, layout.templateRows)
  if (<u32>row >= load<u32>(template, layout.templateMaxRows)) return noRoom
  const columns = <usize>load<u32>(template, layout.templateColumnsAt)
  const columnsEnd = columns + <usize>load<u32>(template, layout.templateColumns) * layout.columnBytes
  const fields = <usize>load<u32>(template, layout.templateFieldsAt)
  const first = start + <usize>load<u32>(template, layout.templateNameBytes)
  let p = first
  let line: u64 = 0
  // All columns before it have a value, or are skipped.
  let next = columns
  for (;;) {
    let c = next
    let isPredicted = next < columnsEnd && !v128.any_true(v128.and(v128.xor(v128.load(p), v128.load(c)), v128.load(c, layout.columnMask)))
    if (isPredicted) {
      const keyBytes = <usize>load<u32>(c, layout.columnKeyBytes)
      if (keyBytes > 16) isPredicted = restMatches(p, <usize>load<u32>(c, layout.columnKeyAddress), keyBytes)
    }
    if (isPredicted) next += layout.columnBytes
    else {
      if (p != first && isEnd(p, next > fields)) break
      if (line == 0) {
        line = load<u64>(template, layout.templateLine) + 1
        store<u64>(template, line, layout.templateLine)
      }
      c = seekColumn(p, next, template, line)
      if (c == 0) return oddValue
      if (c >= next) next = c + layout.columnBytes
    }
    p += <usize>load<u32>(c, layout.columnKeyBytes)
    const kind = load<u32>(c, layout.columnKind)
    const out = <usize>load<u32>(c, layout.columnValues)
    if (kind == 7) {
      const value = parseDouble(p)
      if (parseOk && load<u8>(parseEnd) != 105) {
        p = parseEnd
        store<f64>(out + (row << 3), value)
      } else {
        const other = otherNumber(p)
        p = otherEnd
        // A binary value may exceed the end of the block.
        if (p == 0 || p >= end) return oddValue
        store<f64>(out + (row << 3), other)
      }
    } else if (kind == 0) {
      const bytes = symbolBytes(p)
      if (bytes == 0) return oddValue
      const dictionary = <usize>load<u32>(c, layout.columnDictionary)
      const id = bytes <= 16 ? internShort(dictionary, p, bytes) : internLong(dictionary, p, bytes)
      if (id < 0) return id == symbolLayout.full ? fullDictionary(c, bytes, template, state) : oddValue
      store<i32>(out + (row << 2), id)
      p += <usize>bytes
    } else if (kind == 5) {
      p = parseInteger<i64>(p, out + (row << 3), -i64.MAX_VALUE, i64.MAX_VALUE)
      if (p == oddValue) return oddValue
    } else {
      p = parseOther(kind, p, end, out, row)
      if (p == oddValue || p >= end) return oddValue
    }
  }
  const following = lineEnd(p, template, state, row)
  if (following == oddValue) return oddValue
  if (line == 0 && next == columnsEnd) store<u32>(template, 1, layout.templateComplete)
  else fillAbsent(columns, next, columnsEnd, row, line)
  store<u32>(template, <u32>row + 1, layout.templateRows)
  return following
}

function fullDictionary(column: usize, bytes: i32, template: usize, state: usize): usize {
  const columns = <usize>load<u32>(template, layout.templateColumnsAt)
  store<u32>(state, <u32>((column - columns) / layout.columnBytes), layout.stateStoppedColumn)
  store<u32>(state, <u32>bytes, layout.stateStoppedBytes)
  return needDictionary
}

/** The slot of the table's template in the hash table, or the free slot where it belongs; `p`: the table's name. */
export function templateSlot(templates: usize, mask: u32, p: usize): usize {
  let at = longHash(p, symbolBytes(p)) & mask
  for (;;) {
    const slot = templates + (<usize>at << 2)
    const template = <usize>load<u32>(slot)
    if (template == 0 || isOfTable(p, template)) return slot
    at = (at + 1) & mask
  }
  return 0
}

export function decode(state: usize): u32 {
  let p = <usize>load<u32>(state, layout.stateCursor)
  const end = <usize>load<u32>(state, layout.stateEnd)
  const templates = <usize>load<u32>(state, layout.stateTemplates)
  const mask = load<u32>(state, layout.stateMask)
  let template = <usize>load<u32>(state, layout.stateCurrent)
  if (p >= end) return layout.done
  if (load<u8>(end - 1) != 10) return layout.badBlock
  store<u32>(state, 0, layout.stateStoppedTemplate)
  let code: u32 = layout.done
  while (p < end) {
    let next = template == 0 ? otherTable : parseLine(p, end, template, state)
    if (next == otherTable) {
      const other = <usize>load<u32>(templateSlot(templates, mask, p))
      if (other != 0) {
        template = other
        next = parseLine(p, end, template, state)
      }
    }
    if (next <= noRoom) {
      code = next == needDictionary ? layout.dictionaryFull : next == noRoom ? layout.templateFull : layout.otherLine
      if (next != otherTable) store<u32>(state, <u32>template, layout.stateStoppedTemplate)
      break
    }
    p = next
  }
  store<u32>(state, <u32>p, layout.stateCursor)
  store<u32>(state, <u32>template, layout.stateCurrent)
  return code
}
