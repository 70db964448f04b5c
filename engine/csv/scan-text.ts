// Splits input in PostgreSQL's text format of COPY into fields, each stored as {address, length} like those of scan.ts.
// There are no quotes; a backslash escapes a byte (\t, \n, \\, \101, \x41), \N is NULL, and a line \. ends the data.
// Escapes are replaced in place, in the input.

import { assert } from '../base/assert.js'
import { type CsvScan, extraFields, isNullText, missingFields } from './scan-state.js'
import type { CsvReject } from './shape.js'

const backslash = 92
const lineFeed = 10
const carriageReturn = 13

/** Scans complete records up to `end`; returns the number of rows. */
export function scanTextRecords(scan: CsvScan, end: number, last: boolean, rejects: CsvReject[]): number {
  let rows = 0
  while (rows < scan.rowsMax && scan.at < end) {
    const { u8 } = scan.memory
    const close = recordEnd(u8, scan.at, end, last)
    if (close < 0) break
    const bytes = close > scan.at && u8[close - 1] === carriageReturn ? close - 1 : close
    if (bytes - scan.at === 2 && u8[scan.at] === backslash && u8[scan.at + 1] === 46) {
      scan.at = end
      break
    }
    const fields = scanFields(scan, rows, scan.at, bytes)
    if (fields === scan.columns) scan.memory.u32[(scan.lines >>> 2) + rows++] = scan.line
    else {
      const extra = fields > scan.columns
      rejects.push({ line: scan.line, column: -1, reason: extra ? extraFields : missingFields, extra })
    }
    scan.at = Math.min(end, close + 1)
    scan.line++
  }
  assert(scan.at <= end, 'P1: a scan ends within its block')
  return rows
}

/** Address of the line feed that ends the record, or the end of the input; -1 when more bytes are needed. */
function recordEnd(u8: Uint8Array, start: number, end: number, last: boolean): number {
  let at = start
  for (; at < end; at++) {
    const byte = u8[at]
    if (byte === lineFeed) return at
    if (byte === backslash) at++
  }
  return last ? end : -1
}

function scanFields(scan: CsvScan, row: number, start: number, end: number): number {
  const { u8, u32, i32 } = scan.memory
  const { delimiter, columns, rowsMax } = scan
  let word = (scan.entries >>> 2) + row * 2
  let field = 0
  let first = start
  let escaped = false
  for (let at = start; ; at++) {
    if (at < end && u8[at] !== delimiter) {
      if (u8[at] === backslash) {
        escaped = true
        at++
      }
      continue
    }
    const stop = Math.min(at, end)
    if (field < columns) {
      u32[word] = first
      i32[word + 1] = isNullText(scan, first, stop - first)
        ? -1
        : escaped
          ? unescapeField(u8, first, stop)
          : stop - first
      word += rowsMax * 2
    }
    field++
    if (at >= end) return field
    first = at + 1
    escaped = false
  }
}

const escapes: ReadonlyMap<number, number> = new Map(
  Object.entries({ b: 8, f: 12, n: 10, r: 13, t: 9, v: 11 }).map(([escaped, byte]) => [escaped.charCodeAt(0), byte]),
)

/** Unescapes in place; returns the number of bytes left. */
function unescapeField(u8: Uint8Array, start: number, end: number): number {
  let to = start
  for (let from = start; from < end; from++) {
    if (u8[from] !== backslash || from + 1 >= end) {
      u8[to++] = u8[from]!
      continue
    }
    from++
    const byte = u8[from]!
    const octal = digitsAt(u8, from, end, 3, 8)
    const hex = byte === 120 ? digitsAt(u8, from + 1, end, 2, 16) : 0
    if (octal > 0) {
      u8[to++] = numberAt(u8, from, octal, 8) & 255
      from += octal - 1
    } else if (hex > 0) {
      u8[to++] = numberAt(u8, from + 1, hex, 16)
      from += hex
    } else u8[to++] = escapes.get(byte) ?? byte
  }
  return to - start
}

function digitsAt(u8: Uint8Array, at: number, end: number, max: number, base: number): number {
  let count = 0
  while (count < max && at + count < end && digitOf(u8[at + count]!) < base) count++
  return count
}

function digitOf(byte: number): number {
  if (byte >= 48 && byte <= 57) return byte - 48
  const escaped = byte | 32
  return escaped >= 97 && escaped <= 102 ? escaped - 87 : 99
}

function numberAt(u8: Uint8Array, at: number, count: number, base: number): number {
  let value = 0
  for (let index = 0; index < count; index++) value = value * base + digitOf(u8[at + index]!)
  return value
}
