// Splits CSV bytes into fields, each stored as {address, length}. An unquoted field that equals the NULL string, which
// is empty by default, is NULL and has length -1. The format is RFC 4180 with LF or CRLF (also mixed); empty lines are
// skipped. A quote begins a quoted field only as the field's first byte.
//
// Entries are stored by column: column c, row r at entries + (c * rowsMax + r) * 8. Doubled quotes are reduced in
// place, but only when the record is complete, since an incomplete one is scanned again with the next bytes.

import { assert } from '../base/assert.js'
import { csvOutcomes, readCsvScan, writeCsvScan } from '../kernels/csv.js'
import { type CsvScan, extraFields, isNullText, missingFields } from './scan-state.js'
import { scanTextRecords } from './scan-text.js'
import type { CsvReject } from './shape.js'

const quote = 34
const lineFeed = 10
const carriageReturn = 13

/**
 * Scans complete records up to `end` and returns the number of rows; `last`: nothing follows. The kernel scans
 * regular records; irregular ones and the last one are scanned byte by byte. Rejects are appended to the list.
 */
export function scanRecords(scan: CsvScan, end: number, last: boolean, rejects: CsvReject[]): number {
  assert(scan.at <= end, 'P2: a block does not end before its beginning')
  scan.begun = scan.at
  if (scan.copyText === true) return scanTextRecords(scan, end, last, rejects)
  const { memory, kernel, state, rowsMax, nullText } = scan
  let rows = 0
  while (rows < rowsMax && scan.at < end) {
    // The kernel supports only the empty field as NULL.
    if (nullText === undefined) {
      writeCsvScan(memory, state, { ...scan, end })
      rows = kernel.scanRecords(state, rows)
      const { at, line, outcome } = readCsvScan(memory, state)
      assert(at >= scan.at, 'P1: a scan never goes back')
      assert(at <= end, 'P1: a scan ends within its block')
      assert(rows <= rowsMax, 'K3: a kernel takes no more rows than it has room for')
      scan.at = at
      scan.line = line
      if (outcome === csvOutcomes.full || at >= end) break
    }
    if (skipEmptyLine(scan, end, last)) continue
    const problem = scanRecord(scan, rows, end, last)
    if (problem === 'incomplete') break
    if (problem === null) memory.u32[(scan.lines >>> 2) + rows++] = scan.recordLine
    else rejects.push({ line: scan.recordLine, column: -1, reason: problem, extra: problem === extraFields })
  }
  return rows
}

function skipEmptyLine(scan: CsvScan, end: number, last: boolean): boolean {
  const { u8 } = scan.memory
  const first = u8[scan.at]!
  if (first === lineFeed) {
    scan.at++
    scan.line++
    return true
  }
  const empty = first === carriageReturn && (scan.at + 1 < end ? u8[scan.at + 1] === lineFeed : last)
  if (empty) scan.at++
  return empty
}

const unclosed = 'a quote is not closed'
const afterQuote = 'text after a closing quote'

/** Scans one record; null: it is a row. */
function scanRecord(scan: CsvScan, row: number, end: number, last: boolean): string | 'incomplete' | null {
  const { u8, u32, i32 } = scan.memory
  const { delimiter, columns, rowsMax, doubled } = scan
  let word = (scan.entries >>> 2) + row * 2
  let at = scan.at
  let { line } = scan
  let field = 0
  let problem: string | null = null
  doubled.length = 0
  for (;;) {
    let start = at
    let length: number
    if (u8[at] === quote && at < end) {
      let close = at + 1
      let pairs = false
      for (; close < end; close++) {
        const byte = u8[close]!
        if (byte === lineFeed) line++
        if (byte !== quote) continue
        if (close + 1 < end && u8[close + 1] === quote) {
          close++
          pairs = true
        } else break
      }
      if (close >= end || (close + 1 >= end && !last)) {
        if (!last) return 'incomplete'
        if (close >= end) problem = unclosed
      }
      start = at + 1
      length = close - start
      at = close + 1
      if (pairs && field < columns) doubled.push(word)
      while (at < end && u8[at] !== delimiter && u8[at] !== lineFeed) {
        if (u8[at] !== carriageReturn) problem ??= afterQuote
        at++
      }
    } else {
      while (at < end) {
        const byte = u8[at]!
        if (byte === delimiter || byte === lineFeed) break
        at++
      }
      length = at - start
      if (length > 0 && u8[at - 1] === carriageReturn && (at >= end || u8[at] === lineFeed)) length--
      if (scan.nullText === undefined ? length === 0 : isNullText(scan, start, length)) length = -1
    }
    if (at >= end && !last) return 'incomplete'
    if (field < columns) {
      u32[word] = start
      i32[word + 1] = length
      word += rowsMax * 2
    }
    field++
    if (at >= end || u8[at] === lineFeed) break
    at++
  }
  for (const entry of doubled) i32[entry + 1] = singleQuotes(u8, u32[entry]!, i32[entry + 1]!)
  scan.recordLine = scan.line
  scan.at = Math.min(end, at + 1)
  scan.line = line + 1
  if (problem !== null) return problem
  if (field === columns || (field > columns && scan.skipExtra === true)) return null
  return field > columns ? extraFields : missingFields
}

/** Reduces doubled quotes in place; returns the number of bytes left. */
function singleQuotes(u8: Uint8Array, start: number, length: number): number {
  let to = start
  for (let from = start; from < start + length; from++) {
    const byte = u8[from]!
    u8[to++] = byte
    if (byte === quote) from++
  }
  return to - start
}
