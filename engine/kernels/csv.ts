// The CSV kernel (WebAssembly), which splits records into fields: its TypeScript interface and its state.
//
// SCAN (40 bytes, 8-byte aligned):
//
//   0  at u32          address of the next record; advanced by the kernel
//   4  end u32         64 readable bytes must follow
//   8  delimiter u32   one ASCII character
//  12  columns u32
//  16  rowsMax u32
//  20  entries u32     address of entries {address u32, length i32}: column c, row r at entries + (c * rowsMax + r) * 8
//  24  lines u32       address of u32 by row: the line in which it begins
//  28  line u32        line of the next record; advanced by the kernel
//  32  reserved u32
//  36  outcome u32     csvOutcomes
//
// Records follow RFC 4180, with LF or CRLF; empty lines are skipped. An empty field without quotes has the length -1.
// Doubled quotes are reduced to single ones in place, when the record is complete.

import { assert } from '../base/assert.js'
import type { SharedMemory } from '../memory/shared-memory.js'

export const csvScanBytes = 40

export const csvOutcomes = {
  /** The rest up to `end` is not a complete record, or that cannot be decided yet. */
  end: 0,
  /** rowsMax rows were read. */
  full: 1,
  /** The record at `at` violates a rule or needs the general parser. */
  irregular: 2,
} as const

export interface CsvKernel {
  /** Reads records to rows from `firstRow` on; returns the row after the last one. */
  scanRecords(state: number, firstRow: number): number
}

export interface CsvScanState {
  readonly at: number
  readonly end: number
  readonly delimiter: number
  readonly columns: number
  readonly rowsMax: number
  readonly entries: number
  readonly lines: number
  readonly line: number
}

export function writeCsvScan({ u32, bytes }: SharedMemory, state: number, scan: CsvScanState): void {
  assert(state % 8 === 0, 'K1: a scan is aligned to 8 bytes')
  assert(scan.at <= scan.end, 'K2: a block does not end before its beginning')
  assert(scan.end + 64 <= bytes, 'K2: readable bytes follow a block')
  const word = state >>> 2
  const { at, end, delimiter, columns, rowsMax, entries, lines, line } = scan
  const words = [at, end, delimiter, columns, rowsMax, entries, lines, line, 0, 0]
  for (const [index, value] of words.entries()) u32[word + index] = value
}

export function readCsvScan({ u32 }: SharedMemory, state: number): { at: number; line: number; outcome: number } {
  const word = state >>> 2
  return { at: u32[word]!, line: u32[word + 7]!, outcome: u32[word + 9]! }
}
